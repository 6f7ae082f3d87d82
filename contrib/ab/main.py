#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The laboratory: what `weir ab` runs. Lives in contrib/ab of the source tree or in $(libexecdir)/weir/ab."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

try:
    import numpy  # noqa: F401
    import scipy.special  # noqa: F401
except ImportError as e:
    sys.exit("weir ab: %s; it needs SciPy (Debian: apt-get install python3-scipy)" % e)

from lab import cli  # noqa: E402

if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:]))
