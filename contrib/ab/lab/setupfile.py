# SPDX-License-Identifier: MIT
"""Reads the subset of libconfig that set-up files use: groups, lists, arrays, strings, numbers, bools, @include.

parse() gives dicts, lists and scalars; every problem is a SetupError that begins with file:line. expand() puts
variables in: ${NAME} and ${NAME:-default}, capitals only, as in proxy.conf. check() compares a group with a table of
names and types and suggests the nearest name for a wrong one.
"""
import difflib
import os
import re

TOKEN = re.compile(
    r"""
    (?P<skip>[ \t\r\n\f]+|\#[^\n]*|//[^\n]*|/\*.*?\*/)
  | (?P<include>@include[ \t]+"(?P<file>[^"\n]*)")
  | (?P<string>"(?:\\.|[^"\\])*")
  | (?P<float>[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?)
  | (?P<int>0[xX][0-9a-fA-F]+L*|[-+]?\d+L*)
  | (?P<name>[A-Za-z*][-A-Za-z0-9_*]*)
  | (?P<mark>[={}()\[\]:;,])
""",
    re.X | re.S,
)
VARIABLE = re.compile(r"\$\$|\$\{([A-Z][A-Z0-9_]*)(?::-([^}]*))?\}")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", '"': '"', "\\": "\\"}


class SetupError(Exception):
    """A sentence for the user that begins with file:line."""


class Group(dict):
    """A group, with where it stood and the lines of its members."""

    def __init__(self, path, line):
        super().__init__()
        self.path, self.line, self.lines = path, line, {}


def tokens(text, path, depth=0):
    """Yields (kind, text, path, line)."""
    pos = line = 0
    line = 1
    while pos < len(text):
        m = TOKEN.match(text, pos)
        if not m:
            raise SetupError("%s:%d: `%s` is not understood" % (path, line, text[pos:].split("\n")[0][:40]))
        kind, word = m.lastgroup, m.group(0)
        if m.group("include") is not None:
            yield from include(m.group("file"), path, line, depth)
        elif kind != "skip":
            yield kind, word, path, line
        line += word.count("\n")
        pos = m.end()


def include(name, path, line, depth):
    if depth > 8:
        raise SetupError("%s:%d: @include within @include, too deep" % (path, line))
    other = os.path.join(os.path.dirname(path), name)
    try:
        with open(other, encoding="utf-8") as f:
            text = f.read()
    except OSError as e:
        raise SetupError("%s:%d: cannot include %s: %s" % (path, line, other, e.strerror)) from None
    yield from tokens(text, other, depth + 1)


class Parser:
    """One pass over the tokens; no look-ahead but one."""

    def __init__(self, text, path):
        self.path = path
        self.all = [*tokens(text, path), ("end", "the end of the file", path, text.count("\n") + 1)]
        self.at = 0

    def peek(self):
        return self.all[self.at]

    def take(self):
        self.at += 1
        return self.all[self.at - 1]

    def fail(self, wanted):
        _, word, path, line = self.peek()
        raise SetupError("%s:%d: expected %s, found `%s`" % (path, line, wanted, word))

    def mark(self, wanted):
        if self.peek()[1] not in wanted or self.peek()[0] != "mark":
            self.fail(" or ".join("`%s`" % w for w in wanted))
        return self.take()

    def optional(self, word):
        if self.peek()[0] == "mark" and self.peek()[1] == word:
            self.take()
            return True
        return False

    def group(self, closing):
        _, _, path, line = self.peek()
        out = Group(path, line)
        while not (self.peek()[0] == "end" if closing is None else self.peek()[1] == closing):
            if self.peek()[0] != "name":
                self.fail("a name" + (" or `%s`" % closing if closing else ""))
            _, name, path, line = self.take()
            if name in out:
                raise SetupError(
                    "%s:%d: `%s` stands here twice; first in line %d" % (path, line, name, out.lines[name])
                )
            self.mark("=:")
            out.lines[name] = line
            out[name] = self.value()
            if not self.optional(";"):
                self.optional(",")
        return out

    def items(self, closing):
        out = []
        while self.peek()[1] != closing or self.peek()[0] != "mark":
            out.append(self.value())
            if not self.optional(","):
                break
        self.mark(closing)
        return out

    def value(self):
        kind, word, _, _ = self.peek()
        if kind == "string":
            parts = []
            while self.peek()[0] == "string":
                parts.append(re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(0)), self.take()[1][1:-1]))
            return "".join(parts)
        if kind == "int":
            return int(self.take()[1].rstrip("L"), 0)
        if kind == "float":
            return float(self.take()[1])
        if kind == "name" and word.lower() in ("true", "false"):
            return self.take()[1].lower() == "true"
        if kind == "mark" and word in "{([":
            self.take()
            if word == "{":
                out = self.group("}")
                self.mark("}")
                return out
            return self.items({"(": ")", "[": "]"}[word])
        return self.fail("a value")


def parse(text, path):
    return Parser(text, path).group(None)


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return parse(f.read(), path)
    except OSError as e:
        raise SetupError("%s: %s" % (path, e.strerror)) from None
    except UnicodeDecodeError:
        raise SetupError("%s: not UTF-8" % path) from None


def expand(value, lookup):
    """In every string below value: ${NAME} becomes lookup(NAME), $$ a dollar; other dollars stay."""
    if isinstance(value, str):

        def put(m):
            if m.group(0) == "$$":
                return "$"
            got = lookup(m.group(1))
            if got is None and m.group(2) is None:
                raise SetupError("${%s} is not set; write ${%s:-default} to do without" % (m.group(1), m.group(1)))
            return m.group(2) if got in (None, "") and m.group(2) is not None else str(got)

        return VARIABLE.sub(put, value)
    if isinstance(value, dict):
        out = Group(getattr(value, "path", ""), getattr(value, "line", 0))
        out.lines = getattr(value, "lines", {})
        for k, v in value.items():
            out[k] = expand(v, lookup)
        return out
    if isinstance(value, list):
        return [expand(v, lookup) for v in value]
    return value


def check(group, table, what):
    """Every name of group must be in table {name: type or tuple of types}; a scalar may stand for a list of one."""
    for name, value in group.items():
        where = "%s:%d" % (group.path, group.lines[name])
        if name not in table:
            near = difflib.get_close_matches(name, table, 1)
            raise SetupError(
                "%s: %s has no setting `%s`%s"
                % (
                    where,
                    what,
                    name,
                    "; did you mean `%s`?" % near[0] if near else "; it has " + ", ".join(sorted(table)),
                )
            )
        if table[name] is list:
            if not isinstance(value, list):
                group[name] = [value]
        elif not isinstance(value, table[name]) or isinstance(value, bool) and table[name] is not bool:
            raise SetupError("%s: `%s` takes %s" % (where, name, TYPES.get(table[name], "another type")))
    return group


TYPES = {str: "a string", int: "a number", (int, float): "a number", bool: "true or false", dict: "a group { }"}


def seconds(text, where="a duration"):
    """ "500ms", "2s", "1m" as seconds."""
    m = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m)", str(text))
    if not m:
        raise SetupError("%s: `%s` is no duration; it has a unit, as in 500ms, 2s, 1m" % (where, text))
    return float(m.group(1)) * {"ms": 0.001, "s": 1, "m": 60}[m.group(2)]
