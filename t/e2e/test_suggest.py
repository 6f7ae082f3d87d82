# SPDX-License-Identifier: MIT
"""weir suggest: what an app's folders and its access log say about which files need not trouble the app; what is
printed is a configuration that does it."""
import json
import os
import re

import pytest
from harness import meteor

STAMP = "[30/Nov/2026:12:00:00 +0000]"


def put(top, **files):
    for name, content in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    os.chmod(top, 0o755)


def combined(*requests):
    return "".join('192.0.2.1 - - %s "%s %s HTTP/1.1" %d %d "-" "test"\n' % (STAMP, *r) for r in requests)


@pytest.fixture
def suggest(cli, tmp_path):
    """suggest(files, log text or None) → (stdout, what weir check says of it is checked)."""
    def run(files=(), log=None, app=None, code=0, *args):
        app = app or tmp_path / "app"
        app.mkdir(exist_ok=True)
        put(app, **dict(files))
        more = list(args)
        if log is not None:
            (tmp_path / "access.log").write_text(log)
            more += ["--log", tmp_path / "access.log"]
        done = cli("suggest", "--app", app, *more)
        assert done.returncode == code, done.stderr
        if code == 0:
            (tmp_path / "proxy.conf").write_text(done.stdout)
            checked = cli("check", "-c", tmp_path / "proxy.conf")
            assert checked.returncode == 0, checked.stderr + done.stdout
        return done
    return run


def test_the_shares_of_a_log(suggest):
    log = combined(("GET", "/logo.png", 200, 900), ("GET", "/logo.png", 304, 0), ("HEAD", "/logo.png", 200, 0),
                   ("GET", "/css/a.css?v=3", 206, 50), ("GET", "/", 200, 40), ("GET", "/api", 200, 5),
                   ("POST", "/logo.png", 200, 5), ("GET", "/logo.png", 404, 0))
    out = suggest({"public/logo.png": "x", "public/css/a.css": "y"}, log).stdout
    assert re.search(r"^# .*/app: of 8 requests the files below take 4 requests \(50\.0 %\), 950 bytes \(95\.0 %\)$",
                     out, re.M)
    assert "# public: 4 requests (50.0 %), 950 bytes (95.0 %)\n" in out
    assert re.search(r'root = ".*/app/public";', out) and 'proxy = "127.0.0.1:3000";' in out


def test_json_logs_and_stdin(suggest, cli, tmp_path):
    lines = [{"method": "GET", "uri": "/a.txt", "status": 200, "body_bytes_sent": 10},
             {"method": "GET", "uri": "/%61.txt", "status": 200, "body_bytes_sent": 10},
             {"method": "GET", "uri": "/page", "status": 200, "body_bytes_sent": 20}]
    log = "".join(json.dumps(line) + "\n" for line in lines)
    out = suggest({"public/a.txt": "x"}, log).stdout
    assert "# public: 2 requests (66.7 %), 20 bytes (50.0 %)" in out
    with open(tmp_path / "access.log") as f:
        again = cli("suggest", "--app", tmp_path / "app", "--log", "-", stdin=f)
    assert again.stdout == out


def test_the_log_that_weir_writes_itself(weir, backend, suggest, tmp_path):
    app = tmp_path / "app"
    app.mkdir()
    put(app, **{"public/\u00fc \"x\".txt": "x", "public/b.txt": "y"})
    for form in ("combined", "json"):
        w = weir('access_log = { path = "stdout"; format = "%s"; };\n'
                 'sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@APP@"; } );' % form, APP=backend().addr)
        for target in ("/%C3%BC%20%22x%22.txt", "/b.txt", "/other", "/b.txt?q"):
            assert w.get(target).status == 200
        w.wait_access(r"/b\.txt\?q")
        out = suggest((), "\n".join(w.access()) + "\n", app).stdout
        assert "# public: 3 requests (75.0 %)" in out, form


def test_without_a_log_it_counts_files(suggest):
    done = suggest({"public/a.txt": "xx", "public/b/c.txt": "yyy"})
    assert "what lies there; with --log" in done.stdout and "# public: 2 files, 5 bytes" in done.stdout


def test_next_static_under_its_own_prefix(suggest):
    chunk = "/_next/static/chunks/main-0123456789abcdef.js"
    files = {".next" + chunk[6:]: "x", "public/favicon.ico": "i", ".next/server/secret.js": "s"}
    out = suggest(files, combined(("GET", chunk, 200, 100), ("GET", "/favicon.ico", 200, 10),
                                  ("GET", "/_next/data/x.json", 200, 10))).stdout
    assert re.search(r'match = "\^~ /_next/static/"; alias = ".*/app/\.next/static"; proxy = "127.0.0.1:3000"; '
                     r'expires = "365d";', out)
    assert "# .next/static: 1 request (33.3 %), 100 bytes (83.3 %)" in out
    put_more = {".next/static/css/plain.css": "not named by its content"}
    out = suggest(put_more, combined(("GET", chunk, 200, 100))).stdout
    assert "alias" in out and "expires" not in out and "root =" not in out


def test_a_build_with_its_code_is_not_offered_whole(suggest):
    """dist without index.html may be the server's own: only what clients were given before, by name."""
    files = {"dist/server.js": "secret", "dist/assets/app.js": "a", "dist/hello.txt": "h"}
    out = suggest(files, combined(("GET", "/assets/app.js", 200, 10), ("GET", "/hello.txt", 200, 5))).stdout
    assert re.search(r'match = "\^~ /assets/"; root = ".*/dist";', out)
    assert re.search(r'match = "= /hello.txt"; root = ".*/dist";', out)
    assert "server.js" not in out and not re.search(r"^    root =", out, re.M)
    assert "as far as can be told without --log" in suggest({}, None, None, 1).stderr


def test_a_client_build_is(suggest):
    out = suggest({"dist/index.html": "<p>", "dist/assets/app.js": "a", "public/seed.txt": "s"},
                  combined(("GET", "/assets/app.js", 200, 10), ("GET", "/assets/app.js", 200, 10),
                           ("GET", "/seed.txt", 200, 1))).stdout
    assert re.search(r'^    root = ".*/dist";$', out, re.M)
    assert re.search(r'match = "= /seed.txt"; root = ".*/public";', out)


def test_a_location_never_takes_what_the_folder_of_the_site_has(suggest):
    out = suggest({"public/img/a.png": "a", "public/b.png": "b", "dist/img/c.png": "c"},
                  combined(("GET", "/img/a.png", 200, 1), ("GET", "/b.png", 200, 1),
                           ("GET", "/img/c.png", 200, 1))).stdout
    assert "/img/" not in out and "take 2 requests (66.7 %)" in out


def test_a_meteor_bundle(suggest, tmp_path):
    app = tmp_path / "app"
    meteor.write(str(app / "bundle"))
    put(app, **{"public/robots.txt": "also in the bundle", "public/new.txt": "not yet built"})
    script = next(i["url"] for i in meteor.manifest(app / "bundle", "web.browser") if i.get("type") == "js")
    out = suggest((), combined(("GET", script, 200, 100), ("GET", "/robots.txt", 200, 10), ("GET", "/", 200, 20),
                               ("GET", "/packages/modules.js?hash=x", 200, 10), ("GET", "/sockjs/info", 200, 10)),
                  app).stdout
    assert re.search(r'^    meteor_bundle = ".*/app/bundle";$', out, re.M) and "root =" not in out
    assert "# bundle: 2 requests (40.0 %), 110 bytes (73.3 %)" in out
    assert "meteor_bundle" in suggest((), None, app).stdout
    assert "meteor_bundle" in suggest((), None, app / "bundle").stdout


def test_what_is_printed_does_what_it_says(weir, backend, suggest, tmp_path):
    app = tmp_path / "app"
    app.mkdir()
    origin = backend()
    chunk = "/_next/static/chunks/main-0123456789abcdef.js"
    put(app, **{".next" + chunk[6:]: "chunk", "public/a.txt": "file", "dist/only/d.txt": "dist"})
    requests = [("GET", t, 200, 10) for t in (chunk, "/a.txt", "/a.txt", "/only/d.txt", "/", "/api/x")]
    conf = suggest((), combined(*requests), app).stdout
    assert "take 4 requests (66.7 %)" in conf
    os.chmod(tmp_path, 0o755)
    w = weir(conf.replace('"8080"', '"127.0.0.1:@PORT@"').replace("127.0.0.1:3000", origin.addr))
    for _, target, _, _ in requests:
        assert w.get(target).status == 200
    assert origin.targets() == ["/", "/api/x"]


def test_hidden_files_links_out_and_folders_do_not_count(suggest, tmp_path):
    app = tmp_path / "app"
    put(app, **{"public/.env": "secret", "public/index.html": "home", "public/a.txt": "a"})
    (tmp_path / "outside.txt").write_text("x")
    os.symlink(tmp_path / "outside.txt", app / "public" / "out.txt")
    out = suggest((), combined(("GET", "/.env", 200, 1), ("GET", "/", 200, 1), ("GET", "/out.txt", 200, 1),
                               ("GET", "/a.txt", 200, 1), ("GET", "/x/../../a.txt", 200, 1)), app).stdout
    assert "# public: 1 request (20.0 %)" in out


def test_a_folder_with_a_name_that_needs_care(suggest, tmp_path):
    app = tmp_path / "an \"app\" $HOME \\ \u00fc"
    app.mkdir()
    put(app, **{"public/a.txt": "a"})
    assert "# public: 1 request (100.0 %)" in suggest((), combined(("GET", "/a.txt", 200, 1)), app).stdout


def test_what_it_says_when_there_is_nothing(suggest, cli, tmp_path):
    assert "no public, dist, build, .next/static or Meteor bundle" in suggest({}, None, None, 1).stderr
    done = suggest({"public/a.txt": "a"}, combined(("GET", "/b", 200, 1)), None, 1)
    assert "none of the 1 logged requests was for a file" in done.stderr and done.stdout == ""
    done = suggest({}, "nonsense\n" + combined(("GET", "/a.txt", 200, 1)))
    assert "1 of 2 lines are neither combined nor JSON" in done.stderr
    for args, code in ((("--app", tmp_path / "nowhere"), 1), (("--app", tmp_path / "access.log"), 1), ((), 2),
                       (("--app",), 2), (("--app", tmp_path, "more"), 2),
                       (("--app", tmp_path / "app", "--log", tmp_path / "no.log"), 1)):
        done = cli("suggest", *args)
        assert (done.returncode, done.stdout) == (code, ""), args
        assert done.stderr
