#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes the files that the set-ups serve: files.py DIR makes DIR/static and DIR/origin."""
import os
import sys

FILES = {
    "static": {"page.html": 687, "style.css": 21000, "image.jpg": 100018},
    "origin": {"hello": 13, "100k.jpg": 100018},
}
for folder, files in FILES.items():
    os.makedirs(os.path.join(sys.argv[1], folder), exist_ok=True)
    for name, size in files.items():
        path = os.path.join(sys.argv[1], folder, name)
        with open(path, "wb") as f:
            f.write(b"Hello, world!" if size == 13 else (b"0123456789abcdef" * (size // 16 + 1))[:size])
        os.utime(path, (1700000000, 1700000000))
