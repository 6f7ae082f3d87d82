# SPDX-License-Identifier: MIT
"""A Meteor-shaped bundle, as `meteor build` leaves one, and the Node server that answers from it by Meteor's rules.

    /usr/bin/python3 t/e2e/harness/meteor.py DIR [RELEASE]      writes one to look at or to measure with

The programs web.browser, web.browser.legacy and web.cordova have scripts and style sheets named by their SHA-1, source
maps, packages under ?hash= URLs, dynamic modules, the public folder (app/) with names that need care, and entries that
are no client files; programs/server has what must never be served.
"""
import functools
import gzip
import hashlib
import json
import os
import sys

ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "meteor_oracle.js")
CLIENTS = ("web.browser", "web.browser.legacy", "web.cordova")


def sha1(data):
    return hashlib.sha1(data).hexdigest()


class Program:
    def __init__(self, bundle, name):
        self.bundle, self.name, self.items = bundle, name, []
        self.dir = os.path.join(bundle, "programs", name)

    def write(self, path, data):
        at = os.path.join(self.dir, path)
        os.makedirs(os.path.dirname(at), exist_ok=True)
        with open(at + ".fresh", "wb") as f:
            f.write(data)
        os.rename(at + ".fresh", at)

    def add(self, kind, path, url, data, cacheable=False, source_map=None, where="client"):
        item = {"path": path, "where": where, "type": kind, "cacheable": cacheable, "url": url}
        if source_map is not None:
            item["sourceMap"] = path + ".map"
            item["sourceMapUrl"] = os.path.dirname(url.split("?")[0]).rstrip("/") + "/" + sha1(data) + ".map"
            self.write(item["sourceMap"], source_map)
        item.update(size=len(data), hash=sha1(data), sri="not-looked-at")
        self.write(path, data)
        self.items.append(item)

    def internal(self, path, data):
        self.write(path, data)
        self.items.append({"path": path, "where": "internal", "type": "head", "hash": sha1(data)})

    def finish(self, **more):
        self.write("program.json", json.dumps({"format": "web-program-pre1", "manifest": self.items, **more},
                                              indent=2).encode())


def data_of(seed, n):
    """n bytes that look random and depend on the seed alone."""
    return hashlib.shake_128(seed.encode()).digest(n)


def client(bundle, name, release):
    p = Program(bundle, name)
    script = ("(function(){/* %s %s */%s})();" % (name, release, "go();" * 9000)).encode()
    style = ("body{color:#%s}" % sha1(release.encode())[:6] + ".a{b:c}" * 500).encode()  # the same in every program
    p.internal("head.html", b"<title>app</title>")
    p.internal("body.html", b"<p>%s" % release.encode())
    p.add("js", sha1(script) + ".js", "/%s.js?meteor_js_resource=true" % sha1(script), script, True,
          b")]}'\n" + json.dumps({"version": 3, "release": release, "program": name}).encode())
    p.add("css", sha1(style) + ".css", "/%s.css?meteor_css_resource=true" % sha1(style), style, True)
    # A debug build: the URL's path stays, its ?hash= changes, and the programs differ under one name.
    modules = ("/* modules for %s, %s */" % (name, release)).encode()
    p.add("js", "packages/modules.js", "/packages/modules.js?hash=" + sha1(modules), modules, True)
    p.add("js", "packages/meteor.js", "/packages/meteor.js?hash=" + sha1(b"meteor"), b"Meteor = {};", True,
          b'{"version":3}')
    p.add("asset", "packages/icons_pack/icons.woff2", "/packages/icons_pack/icons.woff2", data_of("icons", 3000))
    for module in ("client/editor.js", "node_modules/meteor/dynamic/module.js"):
        text = ("module.export({ /* %s */ })" % release).encode()
        p.add("dynamic js", "dynamic/" + module, "/dynamic/" + module, text, True)
    for path, data in public(release).items():
        p.add("json" if path == "data.json" else "asset", "app/" + path, "/" + path, data)
    p.add("asset", "app/escaped name.txt", "/escaped%20name.txt?v=1#top", b"escaped in the manifest")
    p.add("asset", "app/twice-1.txt", "/twice.txt", b"the first of two")
    p.add("asset", "app/twice-2.txt", "/twice.txt", b"the last one holds")
    p.write("app/not-in-the-manifest.txt", b"secret of the folder")
    if name == "web.cordova":
        p.add("asset", "app/phone.txt", "/phone.txt", b"only on the phone")
    p.finish(**({"cordovaCompatibilityVersions": {"ios": "1"}} if name == "web.cordova" else {}))


@functools.lru_cache
def public(release):
    """The public folder: not cacheable, some of it new in each release, some of it the same."""
    return {
        "image.jpg": data_of("image" + release, 100018),
        "robots.txt": b"User-agent: *\n",
        "favicon.ico": data_of("icon", 1150),
        "empty.txt": b"",
        "large.bin": data_of("large" + release, 1300000),
        "data.json": b'{"release": "%s"}' % release.encode(),
        "page.html": b"<p>a page that lies in the public folder",
        "manifest.json": b'{"name": "a web app of that name"}',
        "folder with blanks/a b & c.txt": b"blanks",
        "logo.svgz": gzip.compress(b"<svg/>" * 300, mtime=0),
        "\u00fcber/\u65e5\u672c.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "100%25 sure.txt": b"a name with a per cent sign in its URL",
        ".well-known/assetlinks.json": b"[]",
        ".hidden": b"Meteor serves what the manifest has",
        "same-size.txt": (b"A" if release == "1" else b"B") * 40,
    }


def write(bundle, release="1"):
    """A whole bundle; written into an existing one it replaces file by file, each by rename."""
    for name in CLIENTS:
        client(bundle, name, release)
    server = Program(bundle, "server")
    server.write("assets/app/private.txt", b"secret of the server")
    server.write("program.json", json.dumps({"format": "javascript-image-pre1", "load": []}).encode())
    server.write("config.json", json.dumps({"meteorRelease": "METEOR@3.0", "clientArchs": list(CLIENTS)}).encode())
    with open(os.path.join(bundle, "main.js"), "w") as f:
        f.write("require('./programs/server/boot.js');\n")
    return bundle


def manifest(bundle, name):
    with open(os.path.join(bundle, "programs", name, "program.json")) as f:
        return json.load(f)["manifest"]


if __name__ == "__main__":
    write(*sys.argv[1:3])
