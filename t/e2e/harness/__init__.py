# SPDX-License-Identifier: MIT
"""What the end-to-end tests are built from; conftest.py makes fixtures of it and documents them."""
