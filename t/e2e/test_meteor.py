# SPDX-License-Identifier: MIT
"""meteor_bundle: weir in front of a bundle answers as the app's own server does, file by file, and goes on doing so
through deployments."""
import gzip
import json
import os
import re
import shutil
import tempfile
import threading
import urllib.parse

import pytest
from harness import meteor, util
from test_basic_auth import basic, hashed

CONF = 'sites = ( { listen = "127.0.0.1:@PORT@"; meteor_bundle = "bundle"; proxy = "@APP@"; } );\n'
ALONE = 'sites = ( { listen = "127.0.0.1:@PORT@"; meteor_bundle = "bundle"; } );\n'
FIELDS = ("content-type", "content-length", "cache-control", "x-sourcemap", "content-range", "etag")
MODERN, OLD = {"User-Agent": "a modern browser"}, {"User-Agent": "an old one"}


class Pair:
    """weir with a bundle, and the oracle that is also the app behind it."""

    def __init__(self, weir, node, conf=CONF, release="1", prefix=""):
        # The bundle must be there before weir is: it is made where weir's folder will be looked for.
        self.home = tempfile.mkdtemp(prefix="weir-bundle-")
        os.chmod(self.home, 0o755)
        self.bundle = meteor.write(os.path.join(self.home, "bundle"), release)
        with open(meteor.ORACLE) as f:
            self.app = node(f.read(), env={"BUNDLE": self.bundle, "PREFIX": prefix})
        self.w = weir(conf.replace('"bundle"', '"%s"' % self.bundle), APP=self.app.addr)

    def direct(self, method, target, headers=()):
        return self.w.request(method, target, headers, port=self.app.port)

    def compare(self, method, target, headers=()):
        """What weir answers must be what the oracle answers; returns True if weir answered it from the bundle."""
        got, want = self.w.request(method, target, headers), self.direct(method, target, headers)
        what = "%s %s %r" % (method, target, headers)
        assert got.status == want.status, "%s: %d, expected %d" % (what, got.status, want.status)
        assert got.body == want.body, what
        if got.get("x-from"):  # it came from the app: then it must be what the app says
            assert got.get("x-from") == want.get("x-from"), what
            return False
        assert want.get("x-from") == "file", what + ": not a file of the bundle"
        assert got.get("last-modified") is None, what
        for name in FIELDS:
            mine, theirs = got.get(name), want.get(name)
            if name == "cache-control" and mine:
                mine = mine.replace(", immutable", "")
            if name == "etag" and not re.fullmatch(r'"[0-9a-f]{40}"', theirs or ""):
                assert mine, what  # the manifest has no hash for a source map: any tag will do
                continue
            if name in ("content-type", "content-length") and got.status == 304:
                continue
            assert mine == theirs, "%s: %s: %s, expected %s" % (what, name, mine, theirs)
        assert got.get("sourcemap") == got.get("x-sourcemap")
        return True


@pytest.fixture
def pair(weir, node):
    made = []

    def make(*args, **kw):
        made.append(Pair(weir, node, *args, **kw))
        return made[-1]
    yield make
    for p in made:
        shutil.rmtree(p.home, ignore_errors=True)


def encode(url):
    """The request target a browser makes of a URL of the manifest."""
    return urllib.parse.quote(url.split("#")[0], safe="/?&=%:@!$'()*+,;-._~")


def targets(bundle):
    """(program, target, item) for every URL of every manifest, source maps too."""
    for name in meteor.CLIENTS:
        for item in meteor.manifest(bundle, name):
            if item["where"] == "client":
                yield name, encode(item["url"]), item
                if "sourceMap" in item:
                    yield name, encode(item["sourceMapUrl"]), {"cacheable": True}


# --- the same answers ---

def test_every_url_of_every_manifest(pair):
    p = pair()
    n = 0
    for name, target, item in targets(p.bundle):
        depends = target.startswith("/packages/modules.js")
        for agent in (MODERN, OLD):
            for method in ("GET", "HEAD"):
                assert p.compare(method, target, agent) != depends, (name, target)
        n += 1
    assert n > 70


def test_an_app_under_a_path(pair):
    p = pair(conf='''sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@APP@"; locations = (
        { match = "/app/"; meteor_bundle = "bundle"; proxy = "@APP@"; strip_prefix = true; rewrite = "$request_uri"; } ); } );
    ''', prefix="/app")
    n = 0
    for name, target, item in targets(p.bundle):
        for agent in (MODERN, OLD):
            assert p.compare("GET", "/app" + target, agent) != target.startswith("/packages/modules.js"), (name, target)
            assert not p.compare("GET", target, agent), target
        n += 1
    assert n > 70
    for target in ("/app/", "/app/page?a=%20b&c", "/app/sockjs/info", "/app//image.jpg", "/%61pp/image.jpg", "/app"):
        assert not p.compare("GET", target), target


def test_a_year_for_what_never_changes_and_immutable_where_the_name_says_so(pair):
    p = pair()
    for name, target, item in targets(p.bundle):
        said = p.w.get(target, MODERN).get("cache-control")
        if target.startswith("/packages/modules.js"):
            continue
        by_name = re.search(r"/[0-9a-f]{40}\.(js|css|map)", target)
        assert said == ("public, max-age=31536000, immutable" if by_name else "public, max-age=31536000"
                        if item["cacheable"] else "public, max-age=0"), target


def test_programs_under_their_prefix(pair):
    p = pair()
    for name, target, item in targets(p.bundle):
        prefixed = "/__" + name[4:] + target
        plain = "%" not in target and target != "/manifest.json"
        assert p.compare("GET", prefixed, MODERN) == plain, prefixed
    # asked of one program, found in another; no such program; no such file
    assert p.compare("GET", "/__browser/phone.txt")
    for target in ("/__android/image.jpg", "/__browser", "/__browser/", "/__cordova/nothing.js",
                   "/__browserx/image.jpg", "/__browser/manifest.json", "/__browser.legacy/manifest.json",
                   "/__cordova/manifest.json"):
        assert not p.compare("GET", target), target


def test_what_is_no_client_file_is_the_apps(pair):
    p = pair()
    for target in ("/", "/any/page", "/sockjs/info?cb=x", "/sockjs/123/abcdefgh/xhr", "/websocket", "/head.html",
                   "/body.html", "/program.json", "/app/image.jpg", "/not-in-the-manifest.txt", "/config.json",
                   "/app/private.txt", "/meteor_runtime_config.js", "/__meteor__/dynamic-import/fetch",
                   "/image.jpg/", "/IMAGE.JPG", "/image.jpg%20", "/twice-1.txt", "/packages/", "/%FF", "/_timesync"):
        for method in ("GET", "HEAD"):
            assert not p.compare(method, target, MODERN), target


def test_only_the_spelling_that_the_app_knows(pair):
    p = pair()
    for target in ("//image.jpg", "/./image.jpg", "/x/../image.jpg", "/image.jpg/.", "/packages//meteor.js"):
        assert not p.compare("GET", target, MODERN), target
    for target in ("/im%61ge.jpg", "/image.jpg?", "/image.jpg?hash=whatever&x=/../y", "/100%25%20sure.txt"):
        assert p.compare("GET", target, MODERN), target


def test_other_methods_go_to_the_app(pair):
    p = pair()
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        for target in ("/image.jpg", "/", "/__meteor__/dynamic-import/fetch"):
            assert not p.compare(method, target), (method, target)


def test_conditions_and_ranges(pair):
    p = pair()
    big = next(t for n, t, i in targets(p.bundle) if i.get("path") == "app/large.bin")
    script = next(t for n, t, i in targets(p.bundle) if i.get("type") == "js")
    for target in ("/image.jpg", big, script, "/empty.txt", "/data.json"):
        tag = p.direct("GET", target).get("etag")
        for headers in ({"If-None-Match": tag}, {"If-None-Match": "W/" + tag}, {"If-None-Match": '"x", ' + tag},
                        {"If-None-Match": '"x"'}, {"If-None-Match": "*"},
                        {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"}):
            for method in ("GET", "HEAD"):
                assert p.compare(method, target, headers), (target, headers)
    for target in ("/image.jpg", big, script):
        tag = p.direct("GET", target).get("etag")
        for extra in ({}, {"If-Range": tag}, {"If-Range": '"x"'}):
            for r in ("bytes=0-0", "bytes=10-19", "bytes=-5", "bytes=100-"):
                assert p.compare("GET", target, {"Range": r, **extra}), (target, r, extra)
    assert p.w.get("/image.jpg", {"Range": "bytes=200000-"}).status == 416
    r = p.w.get("/image.jpg", {"Range": "bytes=0-1,10-11"})
    image = meteor.public("1")["image.jpg"]
    assert r.status == 206 and r.get("content-type").startswith("multipart/byteranges")
    assert image[0:2] in r.body and image[10:12] in r.body and b"Content-Type: image/jpeg" in r.body
    assert r.get("etag") == '"%s"' % meteor.sha1(image)


def test_expires_is_the_manifests_affair(pair):
    p = pair(CONF.replace("proxy", 'expires = "30d"; proxy'))
    r = p.w.get("/image.jpg")
    assert (r.all("cache-control"), r.get("expires")) == (["public, max-age=0"], None)


def test_behind_a_password_it_is_for_no_shared_cache(pair):
    p = pair(CONF.replace("proxy", 'basic_auth = { users = "a:%s"; }; proxy' % hashed("b")))
    for target, age in (("/image.jpg", "0"), ("/packages/meteor.js?hash=" + meteor.sha1(b"meteor"), "31536000")):
        for headers in ({}, {"Range": "bytes=0-1"}, {"If-None-Match": "*"}):
            r = p.w.get(target, {**MODERN, **basic("a", "b"), **headers})
            assert (target, r.get("cache-control")) == (target, "private, max-age=" + age)


def test_an_svgz_says_that_it_is_gzipped(pair):
    p = pair(CONF.replace("proxy", "gzip = true; proxy"))
    for headers in ({}, {"Accept-Encoding": "gzip"}):
        r = p.w.get("/logo.svgz", headers)
        assert (r.body, r.all("content-encoding")) == (meteor.public("1")["logo.svgz"], ["gzip"])
        assert (r.get("content-type"), r.get("cache-control")) == ("image/svg+xml", "public, max-age=0")
        r = p.w.get("/logo.svgz", {**headers, "If-None-Match": r.get("etag")})
        assert (r.status, r.get("content-encoding"), r.get("cache-control")) == (304, None, "public, max-age=0")


def test_compressed_forms(pair):
    """On the way, and from siblings in the program's folder: a tag of its own, the rest as the manifest says."""
    p = pair(CONF.replace("proxy", "gzip = true; proxy"))
    target, item = next((t, i) for n, t, i in targets(p.bundle) if i.get("type") == "js")
    plain = p.w.get(target)
    r = p.w.get(target, {"Accept-Encoding": "gzip"})
    assert (r.get("content-encoding"), gzip.decompress(r.body)) == ("gzip", plain.body)
    assert (r.get("vary"), r.get("etag")) == ("Accept-Encoding", 'W/"%s"' % item["hash"])
    packed = gzip.compress(plain.body, 9) + gzip.compress(b"")  # unlike what weir makes
    for name in meteor.CLIENTS:
        meteor.Program(p.bundle, name).write(item["path"] + ".gz", packed)

    def sibling():
        r = p.w.get(target, {"Accept-Encoding": "gzip"})
        return r if r.body == packed else None
    r = util.wait_for("the sibling", 3, sibling)
    assert r.get("content-encoding") == "gzip" and r.get("vary") == "Accept-Encoding"
    assert item["hash"] not in r.get("etag") and r.get("last-modified") is None
    for name in ("content-type", "cache-control", "x-sourcemap"):
        assert r.get(name) == plain.get(name)
    again = p.w.get(target)
    assert (again.body, again.get("etag")) == (plain.body, '"%s"' % item["hash"])
    # The app has no URL for a sibling, so neither has weir.
    assert p.w.get(target.split("?")[0] + ".gz").get("x-from") == "app"


# --- where the two browser programs differ ---

def test_a_url_with_two_files_is_the_apps_choice(pair):
    p = pair()
    for agent, program in ((MODERN, "web.browser"), (OLD, "web.browser.legacy")):
        r = p.w.get("/packages/modules.js", agent)
        assert r.get("x-from") == "file" and program.encode() + b"," in r.body


def test_without_an_app_the_modern_one_answers(pair):
    p = pair(ALONE)
    r = p.w.get("/packages/modules.js", OLD)
    assert r.status == 200 and b"web.browser," in r.body
    assert p.w.get("/").status == 404
    r = p.w.post("/image.jpg", b"x")
    assert (r.status, r.get("allow")) == (405, "GET, HEAD")
    assert p.w.post("/", b"x").status == 404


def test_a_bundle_without_the_legacy_program(pair):
    p = pair()
    shutil.rmtree(os.path.join(p.bundle, "programs", "web.browser.legacy"))
    os.kill(p.app.pid, 1)
    util.wait_for("the app has read it again", 5, lambda: "read" in p.app.log())
    util.wait_for("the one program answers", 5, lambda: p.w.get("/packages/modules.js", OLD).get("x-from") is None)
    assert p.compare("GET", "/packages/modules.js", OLD)


# --- together with other actions ---

def test_a_folder_between_bundle_and_app(pair, tmp_path):
    (tmp_path / "extra.txt").write_text("of the folder")
    (tmp_path / "image.jpg").write_text("hidden by the bundle")
    os.chmod(tmp_path, 0o755)
    p = pair(CONF.replace("proxy", 'root = "%s"; proxy' % tmp_path))
    assert p.w.get("/extra.txt").body == b"of the folder"
    assert p.w.get("/image.jpg").body == meteor.public("1")["image.jpg"]
    assert p.w.get("/page").get("x-from") == "app"


def test_a_location_of_its_own_in_front(pair):
    p = pair('sites = ( { listen = "127.0.0.1:@PORT@"; meteor_bundle = "bundle"; proxy = "@APP@"; locations = ('
             '{ match = "/api"; proxy = "@APP@"; }, { match = "= /image.jpg"; respond = 403; } ); } );')
    assert p.w.get("/image.jpg").status == 403
    assert p.w.get("/favicon.ico").get("x-from") is None


def test_explain_says_which_program(pair):
    p = pair()
    r = p.w.cli("explain", "/favicon.ico")
    assert "programs/web.browser/app/favicon.ico: served" in r.stdout and "upstream" not in r.stdout
    r = p.w.cli("explain", "/nothing")
    assert "not in the manifest" in r.stdout and "upstream" in r.stdout


# --- deployments ---

def tag_of(data):
    return '"%s"' % meteor.sha1(data)


def serves(p, release):
    """Does weir answer the whole public folder of this release, with its hashes?"""
    return all(r.body == data and r.get("etag") == tag_of(data) and not r.get("x-from")
               for data, r in ((data, p.w.get(encode("/" + path))) for path, data in meteor.public(release).items()))


def test_a_bundle_replaced_in_place_shows_within_a_second(pair):
    p = pair()
    assert serves(p, "1")
    meteor.write(p.bundle, "2")
    util.wait_for("the second release", 1, lambda: serves(p, "2"))


@pytest.mark.threads
def test_a_swapped_release_link_shows_within_a_second(pair):
    p = pair()
    for release in ("1", "2"):
        meteor.write(os.path.join(p.home, "releases", release), release)
    link = os.path.join(p.home, "current")
    os.symlink("releases/1", link)
    p.w.reload(p.w.configure(CONF.replace('"bundle"', '"%s"' % link)))
    assert serves(p, "1")
    for release in ("2", "1"):
        os.symlink("releases/" + release, link + ".new")
        os.rename(link + ".new", link)
        util.wait_for("release " + release, 1, lambda: serves(p, release))
    os.symlink("releases/2", link + ".new")
    os.rename(link + ".new", link)
    shutil.rmtree(os.path.join(p.home, "releases", "1"))
    util.wait_for("release 2", 1, lambda: serves(p, "2"))


def test_a_renamed_folder_shows_within_a_second(pair):
    p = pair()
    meteor.write(p.bundle + ".next", "2")
    assert serves(p, "1")
    os.rename(p.bundle, p.bundle + ".old")
    os.rename(p.bundle + ".next", p.bundle)
    util.wait_for("the second release", 1, lambda: serves(p, "2"))


def test_never_a_new_head_with_an_old_body(pair):
    """A manifest that comes before its files: what is not yet what it says goes out under a tag of its own."""
    p = pair()
    old, new = meteor.public("1")["same-size.txt"], meteor.public("2")["same-size.txt"]
    assert len(old) == len(new)
    control = os.path.join(p.bundle, "programs", "%s", "program.json")
    for name in meteor.CLIENTS:
        with open(control % name) as f:
            text = f.read().replace(meteor.sha1(old), meteor.sha1(new))
        meteor.Program(p.bundle, name).write("program.json", text.encode())

    def tag():
        r = p.w.get("/same-size.txt")
        assert (r.body, r.get("cache-control")) == (old, "public, max-age=0")
        return r.get("etag")
    util.wait_for("a tag of its own", 2, lambda: tag() != tag_of(old))
    assert tag() != tag_of(new)
    for name in meteor.CLIENTS:
        meteor.Program(p.bundle, name).write("app/same-size.txt", new)

    def is_new():  # each loop sees it in its own time, and never with the other's tag
        r = p.w.get("/same-size.txt")
        assert (r.body == new) == (r.get("etag") == tag_of(new))
        return r.body == new
    util.wait_for("the new file", 2, is_new)


def test_a_cacheable_file_that_is_not_what_the_manifest_says_is_not_kept_for_a_year(pair):
    p = pair()
    name, target, item = next(t for t in targets(p.bundle) if t[2].get("type") == "css")
    for program in meteor.CLIENTS:
        meteor.Program(p.bundle, program).write(item["path"], b"/* edited on the server */")
    util.wait_for("the edited file", 2, lambda: p.w.get(target).body == b"/* edited on the server */")
    r = p.w.get(target)
    assert r.get("cache-control") == "public, max-age=0" and r.get("etag") != tag_of(b"/* edited on the server */")
    assert p.w.get(target, {"If-None-Match": r.get("etag")}).status == 304


@pytest.mark.parametrize("text, reason", [
    ("{", r"line 1: "), ("{}", r"format is ``; expected"), ('{"format": "web-program-pre1"}', r"no list"),
    ('{"format": "web-program-pre1", "manifest": [}', r"line 1: ")])
def test_a_malformed_manifest_leaves_the_last_good_one(pair, text, reason):
    p = pair()
    assert serves(p, "1")
    meteor.Program(p.bundle, "web.browser").write("program.json", text.encode())
    p.w.wait_error(r"\[error\] .*meteor_bundle .* is not taken: .*/web\.browser/program\.json: " + reason)
    assert serves(p, "1")
    before = len(re.findall("is not taken", p.w.errors()))
    meteor.write(p.bundle, "2")
    util.wait_for("the next good one", 2, lambda: serves(p, "2"))
    assert len(re.findall("is not taken", p.w.errors())) == before <= 2  # once, and once more when it has settled


def test_a_bundle_that_is_gone_leaves_its_urls_to_the_app(pair):
    p = pair()
    assert serves(p, "1")
    os.rename(p.bundle, p.bundle + ".gone")
    p.w.wait_error(r"no programs/web\.\*/program\.json in it")
    util.wait_for("the app is asked", 3, lambda: p.w.get("/").get("x-from") == "app")
    util.wait_for("no file any more", 3, lambda: p.w.get("/robots.txt").status in (500, 502)
                  or p.w.get("/robots.txt").get("x-from"))
    os.rename(p.bundle + ".gone", p.bundle)
    util.wait_for("it is back", 3, lambda: serves(p, "1"))


def test_paths_that_lead_out_are_never_opened(pair):
    p = pair()
    secret = os.path.join(p.bundle, "programs", "server", "config.json")
    items = [{"path": path, "where": "client", "url": "/out%d.txt" % i, "type": "asset"}
             for i, path in enumerate(("../server/config.json", secret, "app/../../server/config.json", "link.txt",
                                       "folder/config.json"))]
    items.append({"path": "app/robots.txt", "where": "client", "url": "/in.txt", "type": "asset"})
    here = os.path.join(p.bundle, "programs", "web.browser")
    os.symlink("../server/config.json", os.path.join(here, "link.txt"))
    os.symlink("../server", os.path.join(here, "folder"))
    for name in meteor.CLIENTS[1:]:
        shutil.rmtree(os.path.join(p.bundle, "programs", name))
    meteor.Program(p.bundle, "web.browser").write(
        "program.json", json.dumps({"format": "web-program-pre1", "manifest": items}).encode())
    util.wait_for("the manifest", 2, lambda: p.w.get("/in.txt").body == b"User-agent: *\n")
    for i in range(5):
        r = p.w.get("/out%d.txt" % i)
        assert r.get("x-from") == "app" and b"clientArchs" not in r.body
    p.w.wait_error(r"3 entries are no files below its folder, the first is entry 0 ")


@pytest.mark.threads
def test_redeployed_under_load_every_answer_is_of_one_release(pair):
    """Requests without a pause while the bundle is replaced, swapped and replaced again: tag and body belong together,
    and nothing fails."""
    p = pair(ALONE)
    releases = {r: meteor.public(r) for r in ("1", "2", "3")}
    paths = ("image.jpg", "data.json", "large.bin", "same-size.txt", "favicon.ico")
    by_tag = {path: {tag_of(release[path]): release[path] for release in releases.values()} for path in paths}
    wrong, n, stop = [], [0] * 4, threading.Event()

    def ask(k):
        while not stop.is_set() and not wrong:
            path = paths[(n[k] + k) % len(paths)]
            r = p.w.get("/" + path)
            n[k] += 1
            known = by_tag[path].get(r.get("etag"))
            if r.status != 200 or not r.complete or (known is not None and r.body != known) or (
                    known is None and r.body not in by_tag[path].values()):
                wrong.append((path, r.status, r.get("etag"), len(r.body), r.get("x-from")))
    threads = [threading.Thread(target=ask, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    try:
        for release in ("2", "3", "1", "2", "3"):
            meteor.write(p.bundle, release)
            util.wait_for("release " + release, 3, lambda: wrong or serves(p, release))
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not wrong and min(n) > 10, (wrong, n)


@pytest.mark.threads
def test_a_reload_that_brings_a_bundle(pair):
    p = pair('sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@APP@"; } );')
    assert p.w.get("/robots.txt").get("x-from") == "file"
    p.w.reload(ALONE.replace('"bundle"', '"%s"' % p.bundle))
    assert serves(p, "1")
    p.w.reload('sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@APP@"; } );')
    assert p.w.get("/robots.txt").get("x-from") == "file"


# --- the configuration ---

@pytest.mark.parametrize("make, word", [
    (lambda d: None, "No such file"), (lambda d: (d / "bundle").mkdir(), "expected a Meteor bundle"),
    (lambda d: (d / "bundle").write_text(""), "expected a folder")])
def test_check_wants_a_bundle(cli, tmp_path, make, word):
    make(tmp_path)
    (tmp_path / "proxy.conf").write_text('sites = ( { listen = "8080"; meteor_bundle = "bundle"; } );')
    done = cli("check", "-c", tmp_path / "proxy.conf")
    assert done.returncode == 1 and "proxy.conf:1: " in done.stderr and word in done.stderr
