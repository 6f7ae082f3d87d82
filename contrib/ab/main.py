#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The laboratory: what `weir ab` runs. Lives in contrib/ab of the source tree or in $(libexecdir)/weir/ab."""
import importlib.util
import os
import sys

# Compiled once, but not into the source tree.
sys.dont_write_bytecode = False
sys.pycache_prefix = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "weir-ab", "python")
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

for name in ("numpy", "scipy"):
    if not importlib.util.find_spec(name):
        sys.exit("weir ab: there is no Python module %s; it needs SciPy (Debian: apt-get install python3-scipy)" % name)

from lab import cli  # noqa: E402

if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:]))
