"""The texts of linear programs: LP and MPS files as columns and rows.

A text that is not understood raises `FormatError` with its line; nothing is left out silently.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn

from softmap.io.streams import Content

_INFINITE = 1e20  # bounds of this absolute value are infinite, as other solvers read them


@dataclass
class ProgramData:
    """Least (or greatest) `offset + Σ cost · column` within bounds of columns and rows.

    Attributes
    ----------
    names, rows : list of str
        Names of columns and rows.
    maximise : bool
        Whether the greatest value is wanted.
    offset : float
        The constant of the objective.
    costs, low, high : list of float
        Of each column.
    whole : list of bool
        Whether a column takes whole numbers only.
    row_low, row_high : list of float
        Bounds of each row.
    row, column, value : list
        The entries of the matrix; those of the same place are added.
    """

    names: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    maximise: bool = False
    offset: float = 0.0
    costs: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    row_low: list[float] = field(default_factory=list)
    row_high: list[float] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def add_column(self, name: str) -> int:
        """Add a column from 0 to infinity; return its number."""
        self.names.append(name)
        self.costs.append(0.0)
        self.low.append(0.0)
        self.high.append(math.inf)
        self.whole.append(False)
        return len(self.names) - 1

    def add_row(self, name: str, low: float, high: float) -> int:
        """Add a row; return its number."""
        self.rows.append(name)
        self.row_low.append(low)
        self.row_high.append(high)
        return len(self.rows) - 1

    def add_entry(self, row: int, column: int, value: float) -> None:
        """Add a coefficient."""
        self.row.append(row)
        self.column.append(column)
        self.value.append(value)


def _text(content: Content) -> str:
    """Return the text of a file, which has to be UTF-8."""
    try:
        return content.data.decode()
    except UnicodeDecodeError as error:
        raise content.error("text in UTF-8", f"byte {error.object[error.start]:#x}") from None


# --- LP -------------------------------------------------------------------------------------------

_ENDS = r"\s\\:+\-*/^<>=\[\]"  # characters that end a name
_NAME = rf"[^{_ENDS}\d.][^{_ENDS}]*+"
_SECTIONS = {
    "rows": r"subject\s+to|such\s+that|st\.?|s\.t\.?",
    "bounds": r"bounds?",
    "whole": r"general|generals|gen|integers?",
    "binary": r"binary|binaries|bin",
    "end": r"end",
    "unknown": r"semi-continuous|semis?|sos[12]?",
}
_LP_TOKEN = re.compile(
    rf"(?:\s++|\\[^\n]*+)*+(?:(?P<label>{_NAME})\s*:(?!:)"
    + "".join(rf"|(?P<{key}>{words})(?![^{_ENDS}])" for key, words in _SECTIONS.items())
    + rf"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|(?P<name>{_NAME})"
    r"|(?P<relation>[<>]=?|=[<>]?)|(?P<sign>[+-])|(?P<other>\S)|(?P<over>\Z))",
    re.IGNORECASE,
)
_INFINITY = ("inf", "infinity")
_AIMS = {"min": False, "minimise": False, "minimize": False, "minimum": False} | {
    "max": True, "maximise": True, "maximize": True, "maximum": True,
}  # fmt: skip


def lp_program(content: Content) -> ProgramData:
    """Return the program of a text in CPLEX's LP format."""
    return _LpText(content).program


class _LpText:
    """One pass over the words of an LP text; `kind` and `word` are the next one."""

    def __init__(self, content: Content) -> None:
        self._content, self._text = content, _text(content)
        self._match = _LP_TOKEN.match
        self._end = self._begin = 0
        self.kind = self.word = ""
        self.program = ProgramData()
        self._columns: dict[str, int] = {}
        self._binary: set[int] = set()
        self._next()
        if self.word.lower() not in _AIMS:
            self._expected("minimize or maximize")
        self.program.maximise = _AIMS[self.word.lower()]
        self._next()
        self._objective()
        sections = {
            "rows": self._row, "bounds": self._bound, "whole": self._whole, "binary": self._bit,
        }  # fmt: skip
        while self.kind != "end":
            if (statement := sections.get(self.kind)) is None:
                self._expected("a section of rows, bounds, general or binary columns, or end")
            self._next()
            while self.kind not in _SECTIONS:
                statement()
        self._next()
        if self.kind != "over":
            self._expected("nothing after end")

    def _next(self) -> None:
        """Go to the next word."""
        found = self._match(self._text, self._end)
        assert found is not None  # `other` and `over` match anything
        self.kind = str(found.lastgroup)
        self._begin, self._end, self.word = found.start(self.kind), found.end(), found[self.kind]

    def _expected(self, what: str) -> NoReturn:
        found = repr(self.word[:40]) if self.word else "the end of the text"
        self._refuse(what, found)

    def _refuse(self, expected: str, found: str) -> NoReturn:
        line = self._text.count("\n", 0, self._begin) + 1
        raise self._content.error(expected, found, line)

    def _label(self) -> str:
        """Return the name before a colon, or an empty one."""
        name = ""
        if self.kind == "label":
            name = self.word
            self._next()
        return name

    def _place(self) -> int:
        """Return the number of the column named by the next word."""
        if self.kind != "name" or self.word.lower() in _INFINITY:
            self._expected("the name of a column")
        if (place := self._columns.get(self.word)) is None:
            place = self._columns[self.word] = self.program.add_column(self.word)
        self._next()
        return place

    def _signs(self) -> tuple[float, bool]:
        """Return the product of the signs that follow, and whether there is one."""
        sign, some = 1.0, False
        while self.kind == "sign":
            sign, some = -sign if self.word == "-" else sign, True
            self._next()
        return sign, some

    def _constant(self) -> float:
        """Return a number with signs; those of a large absolute value are infinite."""
        sign, _ = self._signs()
        infinite = self.kind == "name" and self.word.lower() in _INFINITY
        if self.kind != "number" and not infinite:
            self._expected("a number")
        value = math.inf if infinite else float(self.word)
        self._next()
        return sign * (value if value < _INFINITE else math.inf)

    def _sum(self) -> tuple[list[tuple[int, float]], list[float]]:
        """Return columns with coefficients, and the constants, of a sum."""
        terms, constants, first = list[tuple[int, float]](), list[float](), True
        while True:
            value, signed = self._signs()
            infinite = self.kind == "name" and self.word.lower() in _INFINITY
            if self.kind not in ("number", "name") or infinite or not (first or signed):
                if self.word == "[":
                    self._refuse("a linear sum", "a quadratic one")
                if signed:
                    self._expected("a term after the sign")
                return terms, constants
            first, number = False, self.kind == "number"
            if number:
                value *= float(self.word)
                if math.isinf(value):
                    self._expected("a finite number")
                self._next()
                if self.word == "*":
                    self._next()
                    number = False
            if self.kind == "name" or not number:
                terms.append((self._place(), value))
            else:
                constants.append(value)

    def _objective(self) -> None:
        self._label()
        terms, constants = self._sum()
        self.program.offset = _plus(0.0, constants)
        for column, value in _merged(terms):
            self.program.costs[column] = value
        if self.kind not in _SECTIONS:
            self._expected("a linear objective, then the rows")

    def _relation(self) -> str:
        if self.kind != "relation":
            self._expected("<=, >= or =")
        kind = next(one for one in "<>=" if one in self.word)
        self._next()
        return kind

    def _row(self) -> None:
        name = self._label()
        left, turned = self._between()
        terms, constants = self._sum()
        if not terms:
            self._expected("a sum with a column")
        low, high = _limits(turned, left)
        if not turned or self.kind == "relation":
            low, high = _meet((low, high), _limits(self._relation(), self._constant()))
        number = len(self.program.rows)
        low, high = (_plus(bound, constants, -1) for bound in (low, high))
        self.program.add_row(name or f"row {number + 1}", low, high)
        for column, value in _merged(terms):
            self.program.add_entry(number, column, value)

    def _between(self) -> tuple[float, str]:
        """Return a number before a relation, and the relation as seen from the other side."""
        before = self.kind, self.word, self._begin, self._end
        self._signs()
        number = self.kind == "number" or self.word.lower() in _INFINITY
        if number:
            self._next()
        if not number or self.kind != "relation":
            self.kind, self.word, self._begin, self._end = before
            return 0.0, ""
        self.kind, self.word, self._begin, self._end = before
        value = self._constant()
        return value, {"<": ">", ">": "<", "=": "="}[self._relation()]

    def _bound(self) -> None:
        left, turned = self._between()
        column = self._place()
        if turned:
            self._restrict(column, turned, left)
        elif self.kind == "name" and self.word.lower() == "free":
            self._next()
            self.program.low[column], self.program.high[column] = -math.inf, math.inf
            return
        if not turned or self.kind == "relation":
            self._restrict(column, self._relation(), self._constant())

    def _restrict(self, column: int, relation: str, value: float) -> None:
        low, high = _limits(relation, value)
        if relation != "<":
            self.program.low[column] = low
        if relation != ">":
            self.program.high[column] = high

    def _whole(self) -> None:
        self.program.whole[self._place()] = True

    def _bit(self) -> None:
        column = self._place()
        self.program.whole[column] = True
        if self.program.high[column] == math.inf:
            self.program.high[column] = 1.0


def _plus(number: float, others: list[float], sign: int = 1) -> float:
    """Return a number plus or minus others, added as the decimals that they stand for."""
    if not others or math.isinf(number):
        return number
    if math.inf in others:
        return sign * math.inf
    decimals = map(Fraction, map(repr, others))
    total = Fraction(repr(number)) + sign * sum(decimals, Fraction(0))
    if abs(total) > sys.float_info.max:
        return math.inf if total > 0 else -math.inf
    return float(total)


def _merged(terms: list[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    """Yield the columns of a sum, each once, with their coefficients."""
    given: dict[int, list[float]] = {}
    for column, value in terms:
        given.setdefault(column, []).append(value)
    for column, (first, *others) in given.items():
        yield column, _plus(first, others)


def _limits(relation: str, value: float) -> tuple[float, float]:
    """Return the bounds of a relation: [value, ∞), (-∞, value], the value, or none."""
    low = -math.inf if relation in ("", "<") else value
    return low, math.inf if relation in ("", ">") else value


def _meet(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return max(one[0], other[0]), min(one[1], other[1])


# --- MPS ------------------------------------------------------------------------------------------

_OBJECTIVE, _FREE = -1, -2  # numbers of rows that are not constraints
_BOUNDS_WITHOUT_NUMBER = {"FR", "MI", "PL", "BV"}


def mps_program(content: Content) -> ProgramData:
    """Return the program of a text in free MPS format (names without blanks)."""
    return _MpsText(content).program


class _MpsText:
    """The sections of an MPS text, line by line."""

    def __init__(self, content: Content) -> None:
        self._content, self.program = content, ProgramData()
        self._rows: dict[str, int] = {}
        self._kinds: list[str] = []
        self._columns: dict[str, int] = {}
        self._marked, self._line = False, 0
        self._unbounded: set[int] = set()  # columns of whole numbers without bounds so far
        self._seen: set[tuple[str, str, int]] = set()
        self._last: tuple[str, set[int]] = ("", set())  # the column at hand, and its rows
        self._ranges: list[tuple[int, float]] = []
        sections = {
            "ROWS": self._row, "COLUMNS": self._column, "RHS": self._side, "RANGES": self._range,
            "BOUNDS": self._bound, "OBJSENSE": self._aim,
        }  # fmt: skip
        section = ""
        for number, words, indented in self._words():
            self._line = number
            if indented and section in sections:
                sections[section](words)
                continue
            section = words[0].upper()
            if section == "ENDATA":
                break
            if section == "OBJSENSE" and len(words) > 1:
                self._aim(words[1:])
            elif section not in sections and section != "NAME":
                self._expected(f"a section: {', '.join(sections)} or ENDATA", words[0])
        else:
            self._expected("ENDATA at the end", "")
        for row, width in self._ranges:
            self._widen(row, width)
        for column in self._unbounded:
            self.program.high[column] = 1.0

    def _words(self) -> Iterator[tuple[int, list[str], bool]]:
        """Yield number and words of each line, and whether it is indented."""
        for number, line in enumerate(_text(self._content).splitlines(), start=1):
            words = line.split()
            if words and line[0] != "*":
                yield number, words, line[0].isspace()

    def _expected(self, what: str, found: str) -> NoReturn:
        raise self._content.error(what, repr(found[:40]) if found else "nothing", self._line)

    def _number(self, word: str) -> float:
        try:
            value = math.nan if "_" in word else float(word)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            self._expected("a number", word)
        return value

    def _aim(self, words: list[str]) -> None:
        if (name := words[0].lower()) not in _AIMS:
            self._expected("MIN or MAX", words[0])
        self.program.maximise = _AIMS[name]

    def _row(self, words: list[str]) -> None:
        if len(words) != 2 or words[0].upper() not in ("N", "L", "G", "E"):
            self._expected("N, L, G or E and the name of a row", " ".join(words))
        kind, name = words[0].upper(), words[1]
        if name in self._rows:
            self._expected("names of rows that differ", name)
        if kind == "N":
            first = _OBJECTIVE not in self._rows.values()
            self._rows[name] = _OBJECTIVE if first else _FREE
            return
        low, high = _limits({"L": "<", "G": ">", "E": "="}[kind], 0.0)
        self._rows[name] = self.program.add_row(name, low, high)
        self._kinds.append(kind)

    def _pairs(self, words: list[str]) -> Iterator[tuple[int, float]]:
        """Yield rows and numbers of a line."""
        if not words or len(words) % 2:
            self._expected("pairs of a row and a number", " ".join(words))
        for name, number in zip(words[::2], words[1::2], strict=True):
            if name not in self._rows:
                self._expected("the name of a row", name)
            yield self._rows[name], self._number(number)

    def _column(self, words: list[str]) -> None:
        if len(words) > 2 and words[1].strip("'\"").upper() == "MARKER":
            kind = words[2].strip("'\"").upper()
            if kind not in ("INTORG", "INTEND"):
                self._expected("INTORG or INTEND", words[2])
            self._marked = kind == "INTORG"
            return
        name = words[0]
        if name != self._last[0]:
            if name in self._columns:
                self._expected("the lines of a column together", name)
            self._last, column = (name, set()), self.program.add_column(name)
            self._columns[name], self.program.whole[column] = column, self._marked
            if self._marked:
                self._unbounded.add(column)
        column = self._columns[name]
        for row, value in self._pairs(words[1:]):
            if row in self._last[1] and row != _FREE:
                self._expected("one number per row and column", f"another in column {name}")
            self._last[1].add(row)
            if row == _OBJECTIVE:
                self.program.costs[column] = value
            elif row >= 0:
                if not math.isfinite(value):
                    self._expected("finite coefficients", f"{value:g}")
                self.program.add_entry(row, column, value)

    def _once(self, section: str, kind: str, number: int) -> None:
        """Reject a second number of the same meaning, as other sets of right sides have it."""
        if (section, kind, number) in self._seen:
            self._expected(f"one number per name in {section}", "a second one")
        self._seen.add((section, kind, number))

    def _side(self, words: list[str]) -> None:
        for row, value in self._pairs(words[len(words) % 2 :]):
            if row != _FREE:
                self._once("RHS", "", row)
            if row == _OBJECTIVE:
                self.program.offset = -value
            elif row >= 0:
                value = value if abs(value) < _INFINITE else math.copysign(math.inf, value)
                relation = {"L": "<", "G": ">", "E": "="}[self._kinds[row]]
                self.program.row_low[row], self.program.row_high[row] = _limits(relation, value)

    def _range(self, words: list[str]) -> None:
        for row, value in self._pairs(words[len(words) % 2 :]):
            if row >= 0:
                self._once("RANGES", "", row)
                self._ranges.append((row, value))

    def _widen(self, row: int, width: float) -> None:
        """Set the second bound of a row.

        An L row gets a lower bound, a G row an upper one. An E row gets a lower bound if the width
        is negative, else an upper one.
        """
        low, high, kind = self.program.row_low, self.program.row_high, self._kinds[row]
        if kind == "L" or (kind == "E" and width < 0):
            low[row] = _plus(high[row], [abs(width)], -1)
        else:
            high[row] = _plus(low[row], [abs(width)])

    def _bound(self, words: list[str]) -> None:
        kind, rest = words[0].upper(), words[1:]
        bare = kind in _BOUNDS_WITHOUT_NUMBER
        if kind not in {"UP", "LO", "FX", "UI", "LI"} and not bare:
            self._expected("a bound UP, LO, FX, UI, LI, FR, MI, PL or BV", words[0])
        if bare and len(rest) == 3:  # some writers add a number
            rest = rest[:2]
        rest = rest[len(rest) - (1 if bare else 2) :] if len(rest) <= (2 if bare else 3) else []
        if len(rest) != (1 if bare else 2):
            self._expected("a bound, its set, a column and a number", " ".join(words))
        if rest[0] not in self._columns:
            self._expected("the name of a column", rest[0])
        value = 0.0 if bare else self._number(rest[1])
        value = value if abs(value) < _INFINITE else math.copysign(math.inf, value)
        self._set_bound(kind, self._columns[rest[0]], value)

    def _set_bound(self, kind: str, column: int, value: float) -> None:
        low, high, whole = self.program.low, self.program.high, self.program.whole
        self._unbounded.discard(column)
        if kind in ("LO", "LI", "FX", "MI", "FR", "BV"):
            self._once("BOUNDS", "lower", column)
            low[column] = -math.inf if kind in ("MI", "FR") else value
        if kind in ("UP", "UI", "FX", "PL", "FR", "BV"):
            self._once("BOUNDS", "upper", column)
            high[column] = {"PL": math.inf, "FR": math.inf, "BV": 1.0}.get(kind, value)
        whole[column] = whole[column] or kind in ("UI", "LI", "BV")
