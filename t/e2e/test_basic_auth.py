# SPDX-License-Identifier: MIT
"""basic_auth: who gets in, what it costs whom, and what becomes of the password."""
import base64
import ctypes
import ctypes.util
import threading
import time

import pytest
from harness.util import wait_for

LIBCRYPT = ctypes.CDLL(ctypes.util.find_library("crypt"))
LIBCRYPT.crypt.restype = ctypes.c_char_p
SALTS = {"sha512": "$6$rounds=1000$saltsalt$", "sha256": "$5$rounds=1000$saltsalt$", "yescrypt": "$y$j75$abcdefgh$",
         "bcrypt": "$2b$04$abcdefghijklmnopqrstuu", "slow": "$6$rounds=400000$saltsalt$"}


def hashed(password, how="sha512"):
    return LIBCRYPT.crypt(password.encode(), SALTS[how].encode()).decode()


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()}


CONF = """
    workers = 1; access_log = "stdout";
    sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; basic_auth = { realm = "the \\"inner\\" room"; file = "users"; users = "eve:@EVE@"; };
                locations = ( { match = "/open"; proxy = "@B@"; basic_auth = false; } ); } );
"""


def guarded(weir, b, **users):
    lines = "# who may\n\n" + "".join("%s:%s\n" % row for row in users.items())
    return weir(CONF, B=b.addr, EVE=hashed("eve's"), files={"users": lines})


def test_only_with_the_right_password(weir, backend):
    b = backend()
    w = guarded(weir, b, **{how: hashed("pass:word", how) for how in ("sha512", "sha256", "yescrypt", "bcrypt")})
    r = w.get("/x")
    assert (r.status, r.all("www-authenticate")) == (401, [r'Basic realm="the \"inner\" room", charset="UTF-8"'])
    for how in ("sha512", "sha256", "yescrypt", "bcrypt"):
        assert w.get("/x", basic(how, "pass:word")).status == 200, how
        assert w.get("/x", basic(how, "pass:wor")).status == 401, how
    assert w.get("/x", basic("eve", "eve's")).status == 200
    assert w.get("/x", basic("nobody", "pass:word")).status == 401
    assert w.get("/open").status == 200
    w.wait_access(r'^127\.0\.0\.1 - bcrypt \[.*"GET /x HTTP/1\.1" 200 ')
    w.wait_access(r'^127\.0\.0\.1 - - \[.*"GET /x HTTP/1\.1" 401 ')
    assert all(not q.has("authorization") for q in b.take())  # whoever checks it keeps it


@pytest.mark.parametrize("value", ["Basic", "Basic ", "Basic !!!!", "Basic YTpi YTpi", "Bearer YTpi", "Basic YQ==", "Basic OmI=",
                                   "Basic YTp=", "Basic " + base64.b64encode(b"a:b\0c").decode(),
                                   "Basic " + base64.b64encode(b"a:" + b"x" * 800).decode()])
def test_malformed_credentials(weir, backend, value):
    b = backend()
    w = guarded(weir, b, a=hashed("b"))
    assert w.get("/x", {"Authorization": value}).status == 401
    assert w.get("/x", [*basic("a", "b").items(), *basic("a", "b").items()]).status == 401
    assert w.get("/x", basic("a", "b")).status == 200
    assert len(b.take()) == 1


def test_what_is_not_checked_passes(weir, backend):
    b = backend()
    w = guarded(weir, b, a=hashed("b"))
    assert w.get("/open", {"Authorization": "Bearer t"}).status == 200
    assert b.take()[0].get("authorization") == "Bearer t"


def test_the_backend_is_told_who_if_the_configuration_says_so(weir, backend):
    b = backend()
    w = weir("""
        basic_auth = { users = "a:@HASH@"; };
        sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@B@"; request_headers = { X-Remote-User = "$remote_user"; };
                    locations = ( { match = "/all"; proxy = "@B@"; request_headers = { Authorization = "$http_authorization"; }; } ); } );
    """, B=b.addr, HASH=hashed("b"))
    assert w.get("/x", {**basic("a", "b"), "X-Remote-User": "root"}).status == 200
    assert w.get("/all", basic("a", "b")).status == 200
    first, second = b.take()
    assert first.all("x-remote-user") == ["a"] and not first.has("authorization")
    assert second.all("authorization") == [basic("a", "b")["Authorization"]]


def test_a_slow_hash_holds_up_nobody_else_and_is_remembered(weir, backend):
    w = guarded(weir, backend(), a=hashed("b", "slow"))
    t = time.monotonic()
    assert w.get("/x", basic("a", "b")).status == 200
    first = time.monotonic() - t
    guessers = [threading.Thread(target=lambda i=i: w.get("/x", basic("a", "guess %d" % i), timeout=30)) for i in range(6)]
    for g in guessers:
        g.start()
    others = []
    while any(g.is_alive() for g in guessers) and len(others) < 50:
        t = time.monotonic()
        assert w.get("/open").status == 200
        assert w.get("/x", basic("a", "b")).status == 200  # known
        others.append(time.monotonic() - t)
    for g in guessers:
        g.join()
    assert min(others) < first / 2


def test_an_unknown_user_takes_as_long(weir, backend):
    w = guarded(weir, backend(), a=hashed("b", "slow"))

    def cost(user):
        t = time.monotonic()
        assert w.get("/x", basic(user, "wrong")).status == 401
        return time.monotonic() - t
    assert min(cost("nobody") for _ in range(3)) > min(cost("a") for _ in range(3)) / 3


@pytest.mark.threads
def test_a_client_that_leaves_while_its_password_is_checked(weir, backend):
    w = guarded(weir, backend(), a=hashed("b", "slow"))
    for _ in range(4):
        c = w.connect()
        c.send(("GET /x HTTP/1.1\r\nHost: h\r\nAuthorization: %s\r\n\r\n" % basic("a", "no")["Authorization"]).encode())
        c.close(reset=True)
    assert w.get("/x", basic("a", "b")).status == 200
    c = w.connect()
    c.send(("GET /x HTTP/1.1\r\nHost: h\r\nAuthorization: %s\r\n\r\n" % basic("a", "no")["Authorization"]).encode())
    w.stop()  # and a server that ends meanwhile


def test_a_reload_takes_a_changed_password(weir, backend):
    w = guarded(weir, backend(), a=hashed("old"))
    assert w.get("/x", basic("a", "old")).status == 200
    w.write("users", "a:%s\n" % hashed("new"))
    w.reload()
    wait_for("the new password", 5, lambda: w.get("/x", basic("a", "new")).status == 200)
    assert w.get("/x", basic("a", "old")).status == 401


def test_weak_hashes_are_refused_at_load(cli, tmp_path):
    rows = [("a:$apr1$abcdefgh$0123456789012345678901", 'line 1: the password of "a" is Apache\'s MD5; expected a hash of crypt(5)'),
            ("\na:$1$abc$0123456789012345678901", 'line 2: the password of "a" is MD5;'),
            ("a:{SHA}abcdef", "is SHA-1;"), ("a:abcdefghijklm", "is DES, or a clear text;"), ("a:secret", "is no hash that is known;"),
            ("nonsense", 'not "user:hash"'), ("a:%s\na:%s" % (hashed("x"), hashed("y")), 'user "a" for the second time')]
    (tmp_path / "p.conf").write_text('sites = ( { listen = "8080"; basic_auth = { file = "users"; }; respond = 200; } );\n')
    for text, message in rows:
        (tmp_path / "users").write_text(text + "\n")
        done = cli("check", "-c", tmp_path / "p.conf")
        assert done.returncode == 1 and message in done.stderr, (text, done.stderr)
    (tmp_path / "users").unlink()
    assert "No such file" in cli("check", "-c", tmp_path / "p.conf").stderr
    (tmp_path / "p.conf").write_text('sites = ( { listen = "8080"; basic_auth = { realm = "x"; }; respond = 200; } );\n')
    assert "nobody could log in" in cli("check", "-c", tmp_path / "p.conf").stderr


def test_a_file_behind_a_password_is_for_no_shared_cache(weir):
    w = weir("""workers = 1; sites = ( { listen = "127.0.0.1:@PORT@"; root = "public"; expires = "1h"; locations = (
        { match = "/in/"; root = "public"; basic_auth = { users = "a:@A@"; }; } ); } );""",
             A=hashed("b"), files={"public/in/x.css": "x", "public/x.css": "x"})
    for headers, status in (({}, 200), ({"Range": "bytes=0-0"}, 206), ({"If-None-Match": "*"}, 304)):
        r = w.get("/in/x.css", {**basic("a", "b"), **headers})
        assert (r.status, r.all("cache-control")) == (status, ["private, max-age=3600"])
    assert w.get("/x.css").get("cache-control") == "public, max-age=3600"
