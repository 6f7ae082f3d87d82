# SPDX-License-Identifier: MIT
"""weir ab import."""
