#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A server for the laboratory's tests: stand_in.py PORT. Its faults come from the environment:

    BODY=text        what it answers (default: Hello, world!, eight times)
    BAD_EVERY=N      each Nth answer is a 500
    SHORT_EVERY=N    each Nth answer has half the body
    AFTER=N          the faults begin with the Nth request
    DIE_AT=N         it kills itself with the Nth request
    STALL=SECONDS    each 40th answer comes so much later, and nobody else is answered meanwhile
    CHILD=1          it has a child that ignores TERM
"""
import os
import selectors
import signal
import socket
import sys
import time

BODY = os.environ.get("BODY", "Hello, world!" * 8).encode()
FAULTS = {k: int(os.environ.get(k, "0")) for k in ("BAD_EVERY", "SHORT_EVERY", "AFTER", "DIE_AT")}
STALL = float(os.environ.get("STALL", "0"))
count = 0


def answer(head):
    global count
    if b" /ready " in head:
        return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    count += 1
    if FAULTS["DIE_AT"] and count >= FAULTS["DIE_AT"]:
        os.kill(os.getpid(), signal.SIGKILL)
    if STALL and count % 40 == 0:
        time.sleep(STALL)
    status, body, on = b"200 OK", BODY, count >= FAULTS["AFTER"]
    if on and FAULTS["BAD_EVERY"] and count % FAULTS["BAD_EVERY"] == 0:
        status = b"500 Bad"
    if on and FAULTS["SHORT_EVERY"] and count % FAULTS["SHORT_EVERY"] == 0:
        body = body[: len(body) // 2]
    kept = b"Connection: keep-alive\r\n" if b"keep-alive" in head.lower() else b""
    return b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\n%sContent-Length: %d\r\n\r\n%s" % (
        status,
        kept,
        len(body),
        body,
    )


def serve(client, buffers):
    """What a client sent, and its answers; False when the connection is over."""
    try:
        data = client.recv(65536)
        *heads, buffers[client] = (buffers[client] + data).split(b"\r\n\r\n")
        for head in heads:
            client.sendall(answer(head))
            if b"HTTP/1.0" in head and b"keep-alive" not in head.lower() or b"connection: close" in head.lower():
                return False
    except OSError:
        return False
    return bool(data)


def main():
    if os.environ.get("CHILD") and os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=1024)
    watched, buffers = selectors.DefaultSelector(), {}
    watched.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in watched.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                buffers[client] = b""
                watched.register(client, selectors.EVENT_READ)
            elif not serve(key.fileobj, buffers):
                watched.unregister(key.fileobj)
                del buffers[key.fileobj]
                key.fileobj.close()


main()
