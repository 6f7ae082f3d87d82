# SPDX-License-Identifier: MIT
"""Everything that is made of a finished measurement, into its folder."""
from lab import plots, report_html, report_md


def write(a):
    for name, text in (("summary.md", report_md.text(a)), ("report.html", report_html.text(a))):
        with open(a.store.file(name), "w", encoding="utf-8") as f:
            f.write(text)
    return plots.write_gnuplot(a)
