# SPDX-License-Identifier: MIT
"""Plots as SVG text: axes, lines, steps, points, bars. Colours are classes c0 to c7; the page styles them."""
import html
import math


def esc(text):
    return html.escape(str(text), quote=True)


def nice_steps(lo, hi, about=5):
    """Round numbers between lo and hi."""
    if not hi > lo:
        return [lo]
    raw = (hi - lo) / about
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw)
    first = math.ceil(lo / step - 1e-9)
    return [k * step for k in range(first, math.floor(hi / step + 1e-9) + 1)]


def log_steps(lo, hi):
    """1, 2, 5 of each decade; few of them where there are many decades."""
    decades = math.log10(hi / lo)
    digits = (1, 2, 5) if decades < 2.5 else (1,)
    out = [d * 10.0**e for e in range(math.floor(math.log10(lo)), math.ceil(math.log10(hi)) + 1) for d in digits]
    return [v for v in out if lo * 0.999 <= v <= hi * 1.001] or [lo, hi]


def label(v):
    if v == 0:
        return "0"
    if abs(v) >= 1e6:
        return "%gM" % (v / 1e6)
    if abs(v) >= 1e4:
        return "%gk" % (v / 1e3)
    return "%g" % float("%.6g" % v)


class Plot:
    """One pair of axes. add_* in data coordinates; str() gives the <svg>."""

    LEFT, RIGHT, TOP, BOTTOM = 64, 16, 30, 44

    def __init__(self, title, xlabel, ylabel, x, y, *, width=640, height=300, xlog=False, ylog=False, left=None):
        self.title, self.xlabel, self.ylabel = title, xlabel, ylabel
        self.x, self.y, self.xlog, self.ylog = x, y, xlog, ylog
        self.width, self.height = width, height
        self.left = left or self.LEFT
        self.parts = []

    @staticmethod
    def _share(v, span, log):
        lo, hi = span
        if log:
            return (math.log(v) - math.log(lo)) / (math.log(hi) - math.log(lo))
        return (v - lo) / (hi - lo) if hi > lo else 0.5

    def px(self, v):
        return self.left + self._share(v, self.x, self.xlog) * (self.width - self.left - self.RIGHT)

    def py(self, v):
        return self.height - self.BOTTOM - self._share(v, self.y, self.ylog) * (self.height - self.TOP - self.BOTTOM)

    def line(self, points, cls, step=False, width=1.8, title=""):
        if not points:
            return
        d, last = [], None
        for x, y in points:
            px, py = self.px(x), self.py(y)
            if last is None:
                d.append("M%.1f %.1f" % (px, py))
            else:
                d.append(("H%.1fV%.1f" if step else "L%.1f %.1f") % (px, py))
            last = py
        self.parts.append(
            '<path class="line %s" d="%s" stroke-width="%g"><title>%s</title></path>'
            % (cls, "".join(d), width, esc(title))
        )

    def point(self, x, y, cls, r=3, title=""):
        self.parts.append(
            '<circle class="dot %s" cx="%.1f" cy="%.1f" r="%g"><title>%s</title></circle>'
            % (cls, self.px(x), self.py(y), r, esc(title))
        )

    def dots(self, points, cls, size=2):
        """Many small points as one path."""
        d = "".join("M%.1f %.1fh.01" % (self.px(x), self.py(y)) for x, y in points)
        self.parts.append('<path class="cloud %s" d="%s" stroke-width="%g"/>' % (cls, d, size))

    def bar(self, x0, x1, y0, y1, cls, title=""):
        left, top = self.px(x0), self.py(y1)
        self.parts.append(
            '<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>'
            % (cls, left, top, max(0.5, self.px(x1) - left), max(0.5, self.py(y0) - top), esc(title))
        )

    def rule(self, x0, y0, x1, y1, cls="rule"):
        self.parts.append(
            '<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>'
            % (cls, self.px(x0), self.py(y0), self.px(x1), self.py(y1))
        )

    def text(self, x, y, words, anchor="start", dx=0, dy=4):
        self.parts.append(
            '<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>'
            % (self.px(x) + dx, self.py(y) + dy, anchor, esc(words))
        )

    def axes(self, xticks=None, yticks=None):
        """Ticks: None for numbers, or [(value, text)]."""
        out = []
        for ticks, log, span, across in ((xticks, self.xlog, self.x, True), (yticks, self.ylog, self.y, False)):
            if ticks is None:
                ticks = [(v, label(v)) for v in (log_steps(*span) if log else nice_steps(*span))]
            for v, words in ticks:
                if across:
                    x, y = self.px(v), self.height - self.BOTTOM
                    out.append('<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%.1f"/>' % (x, self.TOP, x, y))
                    out.append('<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>' % (x, y + 16, esc(words)))
                else:
                    y = self.py(v)
                    out.append(
                        '<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>'
                        % (self.left, y, self.width - self.RIGHT, y)
                    )
                    out.append(
                        '<text x="%d" y="%.1f" text-anchor="end">%s</text>' % (self.left - 6, y + 4, esc(words))
                    )
        self.parts = out + self.parts
        return self

    def __str__(self):
        middle = (self.left + self.width - self.RIGHT) / 2
        out = [
            '<svg viewBox="0 0 %d %d" role="img" aria-label="%s">' % (self.width, self.height, esc(self.title)),
            '<text class="title" x="8" y="18">%s</text>' % esc(self.title),
            *self.parts,
        ]
        if self.xlabel:
            out.append(
                '<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (middle, self.height - 8, esc(self.xlabel))
            )
        if self.ylabel:
            out.append(
                '<text transform="translate(14 %.1f) rotate(-90)" text-anchor="middle">%s</text>'
                % ((self.TOP + self.height - self.BOTTOM) / 2, esc(self.ylabel))
            )
        return "\n".join(out) + "\n</svg>"


def span(values, log=False, pad=0.05, zero=False):
    """An axis that holds the values with some room."""
    values = [v for v in values if v == v and (v > 0 or not log)]
    if not values:
        return (0.1, 10.0) if log else (0.0, 1.0)
    lo, hi = min(values), max(values)
    if log:
        return (lo / 1.2, hi * 1.2)
    if zero:
        return (0.0, hi * (1 + pad) or 1.0)
    room = (hi - lo) * pad or abs(hi) * pad or 1.0
    return (lo - room, hi + room)
