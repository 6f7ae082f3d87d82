# SPDX-License-Identifier: MIT
"""Everything that is made of a finished measurement, into its folder."""


def write(result):
    pass
