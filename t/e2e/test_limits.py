# SPDX-License-Identifier: MIT
"""limits.*: what is too large is told so, readably, even to a client that is still sending; and how many may
come at once."""
import threading
import time

import pytest
import wire
from harness import raw, util
from harness.raw import chunked, get, post

CONF = """
limits = { header_size = "4k"; uri_size = "1k"; header_count = 20; body_size = "100k"; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@";
            locations = ( { match = "/tiny/"; proxy = "@ORIGIN@"; limits = { body_size = "10b"; }; },
                          { match = "/any/"; proxy = "@ORIGIN@"; limits = { body_size = 0; }; },
                          { match = "/f/"; root = "public"; limits = { body_size = 0; }; },
                          { match = "/no/"; respond = 403; limits = { body_size = 0; }; },
                          { match = "/go/"; redirect = "/f/"; limits = { body_size = 0; }; } ); } );
"""


@pytest.fixture(scope="module")
def front():
    f = raw.Front(CONF, {"public/f/a.txt": "hello\n"})
    yield f
    f.close()


def test_c022_uri_size(front):
    for n, status in ((900, 200), (1100, 414), (5000, 414), (100000, 414)):
        t = front.ask(get(b"/p?" + b"a" * n), eof=1 if status == 414 else 0.01)
        assert (t.statuses, t.closed, len(t.requests)) == ([status], status == 414, int(status == 200)), n
    front.refused({"in pieces": get(b"/p?" + b"a" * 2000)}, (414,))


def test_c022_header_size(front):
    t = front.ask(get(b"/p", b"X: " + b"a" * 3500))
    assert t.statuses == [200]
    front.refused({"one": get(b"/p", b"X: " + b"a" * 4200), "several": get(b"/p", *[b"X: " + b"a" * 900] * 6),
                   "unfinished": get(b"/p", b"X: " + b"a" * 900)[:-2] + b"Y: " + b"b" * 5000}, (431,))


def test_c022_header_count(front):
    assert front.ask(get(b"/p", *[b"X: y"] * 19)).statuses == [200]
    front.refused({"21": get(b"/p", *[b"X: y"] * 20), "100": get(b"/p", *[b"X: y"] * 100)}, (431,))


def test_c022_a_limit_is_met_however_the_bytes_come(front):
    for data, status in ((get(b"/p?" + b"a" * 1500), 414), (get(b"/p", *[b"X: y"] * 30), 431),
                         (get(b"/p", b"X: " + b"a" * 5000), 431)):
        conn = front.connect()
        raw.feed_slowly(conn, data, 200, pause=0.001)
        assert conn.response().status == status and conn.at_eof(5)
        conn.close()


@pytest.mark.parametrize("path, limit", [(b"/tiny/", 10), (b"/p", 102400)])
def test_body_size_is_the_largest_that_passes(front, path, limit):
    for n, status in ((limit, 200), (limit + 1, 413), (limit * 20, 413)):
        body = b"x" * n
        t = front.ask(post(path, b"Content-Length: %d" % n, body=body), "POST", eof=1 if status == 413 else 0.01)
        assert (t.statuses, t.closed) == ([status], status == 413)
        assert [len(q.body) for q in t.requests] == ([n] if status == 200 else [])
        t = front.ask(chunked(raw.chunks(body, 1000), path), "POST", eof=1 if status == 413 else 0.01)
        assert (t.statuses, t.closed) == ([status], status == 413)
        assert [len(q.body) for q in t.requests if q.complete] == ([n] if status == 200 else [])


def test_a_nearer_body_size_wins_and_0_is_none(front):
    t = front.ask(post(b"/any/", b"Content-Length: 200000", body=b"x" * 200000), "POST")
    assert t.statuses == [200] and len(t.requests[0].body) == 200000


def upload(conn, size, is_chunked, result):
    """Sends as fast as it can until all is sent or the connection breaks, without reading."""
    piece, sent = b"x" * 65536, 0
    conn.s.settimeout(20)
    try:
        while sent < size:
            conn.s.sendall(b"10000\r\n" + piece + b"\r\n" if is_chunked else piece)
            sent += len(piece)
        if is_chunked:
            conn.s.sendall(b"0\r\n\r\n")
    except OSError as e:
        result.append(e)
    result.append(sent)


@pytest.mark.parametrize("kind", ["sized", "chunked", "declared as 30 MB, sent slowly"])
@pytest.mark.parametrize("path, status", [(b"/p", 413), (b"/no/", 403), (b"/go/", 308), (b"/f/a.txt", 405)])
def test_c091_the_answer_is_readable_while_30_mb_are_still_coming(front, path, status, kind):
    """Closing with bytes unread would make the kernel send a reset, which destroys the answer on its way."""
    size = 30 << 20
    conn = front.connect(timeout=20)
    conn.send(post(path, b"Transfer-Encoding: chunked" if kind == "chunked" else b"Content-Length: %d" % size))
    result = []
    sender = threading.Thread(target=upload, args=(conn, 2 << 20 if "slowly" in kind else size, kind == "chunked",
                                                   result))
    sender.start()
    try:
        time.sleep(0.2)  # an ordinary client that reads late: the sender is in the middle of it
        r = conn.response("POST")
    except (wire.Closed, wire.Timeout) as e:
        pytest.fail("the answer was lost: %s" % e)
    finally:
        if "slowly" in kind:
            conn.half_close()
        sender.join()
        conn.close(reset=True)
    assert r.status == status and r.complete
    assert r.wants_close()
    assert not any(q.complete for q in front.settle())


@pytest.mark.long
def test_c091_lingering_is_bounded(front):
    """A client is not read for ever after its answer, whether it goes on sending or goes quiet."""
    conns = [front.connect(timeout=40) for _ in range(2)]
    for conn in conns:
        conn.send(post(b"/p", b"Content-Length: 1000000000000"))
        assert conn.response().status == 413 and conn.at_eof(5)

    def is_cut(conn):
        try:
            conn.s.settimeout(1)
            conn.s.send(b"x")
            return False
        except OSError:
            return True
    util.wait_for("the client that goes on sending is cut", 30, lambda: is_cut(conns[0]), every=0.05)
    util.wait_for("the quiet one is cut", 5, lambda: is_cut(conns[1]), every=1)
    for conn in conns:
        conn.close()


# --- how many clients -----------------------------------------------------------------------------------------------

FEW = """
limits = { clients = 10; };
sites = ( { listen = "127.0.0.1:@PORT@"; proxy = "@ORIGIN@"; locations = ( { match = "/f/"; root = "public"; } ); } );
"""


@pytest.fixture
def few():
    release = threading.Event()

    def handler(conn, q):
        if q.target.startswith("/slow"):
            release.wait(20)
    f = raw.Front(FEW, {"public/f/a.txt": "hello\n"}, handler=handler)
    f.release = release
    yield f
    release.set()
    f.close()


def test_c134_the_oldest_idle_connections_make_room(few):
    def keep():
        conn = few.connect()
        conn.send(get(b"/f/a.txt"))
        assert conn.response().body == b"hello\n"
        return conn
    old = [keep() for _ in range(10)]
    new = [keep() for _ in range(5)]
    assert [c.at_eof(1) for c in old[:5]] == [True] * 5
    for c in old[5:] + new:
        c.send(get(b"/f/a.txt"))
        assert c.response().body == b"hello\n"
    for c in old + new:
        c.close()


def test_c134_beyond_that_a_client_waits_or_is_told(few):
    """Ten requests in progress: an eleventh is answered 503, or served as soon as there is room; the ten stay."""
    busy = [few.connect(timeout=20) for _ in range(10)]
    for i, c in enumerate(busy):
        c.send(get(b"/slow/%d" % i))
    util.wait_for("ten requests at the backend", 5, lambda: len(few.origin.requests) == 10)
    more = few.connect(timeout=20)
    more.send(get(b"/f/a.txt"))
    try:
        early = more.response(timeout=0.5)
        assert early.status == 503 and early.wants_close()
    except wire.Timeout:
        early = None
    few.release.set()
    for i, c in enumerate(busy):
        assert c.response().body == b"GET /slow/%d 0" % i
    if early is None:
        assert more.response().body == b"hello\n"
    more.close()
    for c in busy:
        c.close()
    assert few.w.get("/f/a.txt").body == b"hello\n"


def test_c134_a_storm_of_clients_is_survived(few):
    conns = [few.connect(timeout=20) for _ in range(60)]
    for c in conns:
        c.send(get(b"/f/a.txt", b"Connection: close"))
    served = 0
    for c in conns:
        try:
            r = c.response()
            assert r.status in (200, 503)
            served += r.status == 200
        except wire.Closed:
            pass
        c.close()
    assert served >= 10
    assert few.w.get("/f/a.txt").body == b"hello\n"
