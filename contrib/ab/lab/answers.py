# SPDX-License-Identifier: MIT
"""One request at a time: is it ready, and do all arms give the same answer?"""
import hashlib
import http.client
import socket
import time
import urllib.parse

FIELDS = ("status", "length", "hash", "encoding")


def _connection(url, timeout):
    u = urllib.parse.urlsplit(url)
    return http.client.HTTPConnection(u.hostname, u.port or 80, timeout=timeout), (u.path or "/") + (
        "?" + u.query if u.query else ""
    )


def ready(url):
    """Does anybody answer there with HTTP at all? 502 and its like do not count: a server behind is not up yet. For
    tcp://host:port it is enough that somebody listens."""
    if url.startswith("tcp://"):
        u = urllib.parse.urlsplit(url)
        try:
            socket.create_connection((u.hostname, u.port), 2).close()
            return True
        except OSError:
            return False
    c, path = _connection(url, 2)
    try:
        c.request("GET", path, headers={"Connection": "close"})
        r = c.getresponse()
        r.read()
        return r.status not in (502, 503, 504)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        c.close()


def headers_of(load_words):
    """The -H options of a load command, as the answer check must send them too."""
    out = {}
    for option, value in zip(load_words, load_words[1:]):
        if option in ("-H", "--header") and ":" in value:
            name, _, text = value.partition(":")
            out[name.strip()] = text.strip()
    return out


def ask(connection, path, headers):
    """{status, length, hash, encoding, chunked, wire}: wire is the size with the head, without the frames of chunks."""
    names = {k.lower() for k in headers}
    connection.putrequest("GET", path, skip_host="host" in names, skip_accept_encoding=True)
    for name, value in {"User-Agent": "weir-ab", "Accept": "*/*", **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()
    r = connection.getresponse()
    body = r.read()
    head = 13 + len(r.reason) + 4 + sum(len(k) + len(v) + 4 for k, v in r.getheaders())
    return {
        "status": r.status,
        "length": len(body),
        "hash": hashlib.sha256(body).hexdigest(),
        "encoding": r.getheader("Content-Encoding") or "",
        "chunked": "Transfer-Encoding" in r.headers,
        "wire": head + len(body),
    }


def sample(base, path, headers, n, keep, seconds=2):
    """n answers in a row, or as many as there is time for: (the first, [sentences on those that differ or failed])."""
    c, full = _connection(base + path, 10)
    first, odd, end = None, [], time.monotonic() + seconds
    for i in range(n):
        if i > 2 and time.monotonic() > end:
            break
        try:
            got = ask(c, full, headers)
        except (OSError, http.client.HTTPException) as e:
            odd.append("request %d failed: %s" % (i + 1, e or type(e).__name__))
            c.close()
            continue
        if first is None:
            first = got
        elif any(got[f] != first[f] for f in FIELDS):
            odd.append("request %d: %s" % (i + 1, difference(first, got)))
        if not keep:
            c.close()
    c.close()
    return first, odd


def difference(a, b):
    """A sentence about what is not the same, or None."""
    words = ("status %s", "%s bytes", "other bytes (SHA-256 %.12s…)", "Content-Encoding `%s`")
    for field, word in zip(FIELDS, words):
        if a[field] != b[field]:
            return "%s instead of %s" % (word % b[field], word.replace("other bytes ", "") % a[field])
    return None
