"""OPB: pseudo-Boolean problems, products of literals and soft constraints (WBO) included."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from softmap.errors import FormatError, ModelError
from softmap.io.assembly import Costs, Ints
from softmap.io.atomic import write_text
from softmap.io.factors import factors_of
from softmap.io.literals import LARGEST_TABLE, Conjunctions
from softmap.io.streams import Content, Source, load, open_content
from softmap.io.tokens import LARGEST, quote
from softmap.model import Model, checked_model
from softmap.model.many import Linear
from softmap.model.potentials.base import scale_factor

__all__ = ["format_opb", "parse_opb", "read_opb", "write_opb"]

_COMMENT = re.compile(rb"(?m)^[ \t]*\*[^\n]*")
_TOKEN = re.compile(
    rb"[ \t\r\n]*+(?:([-+]?[ \t]*\d{1,300}(?:\.\d{1,300})?)(?![^\s;~])"
    rb"|(~?)[ \t]*x(\d{1,9})(?!\d)|(>=|<=|=|>|<)|\[[ \t]*(\d{1,300})[ \t]*\])"
)
MOST_JOINT = 20  # variables of a constraint that has to be a table
Term = tuple[float, list[int]]


def parse_opb(data: bytes | Content) -> Model:
    """Model from the text of an OPB file: one variable with two labels for each x1, x2, ...

    `min:` is the sum of the energy (`max:` its negative); constraints must hold, those after
    `[weight]` cost their weight where they do not. Sums of more than six literals become chains,
    whose running variables come after the file's.
    """
    content = open_content(data)
    text = _COMMENT.sub(b"", content.data) if b"*" in content.data else content.data
    return _Reader(content, text).model()


def read_opb(source: Source) -> Model:
    """Model from an OPB file."""
    return parse_opb(load(source))


class _Reader:
    """Walks over the statements, each ended by a semicolon."""

    def __init__(self, content: Content, text: bytes) -> None:
        self.content, self.text = content, text
        self.at = self.end = 0
        self.most = 0
        self.objective: list[Term] = []
        self.constraints: list[tuple[list[Term], bytes, float, float]] = []

    def error(self, expected: str, at: int | None = None) -> FormatError:
        at = self.at if at is None else at
        found = self.text[at : max(self.end, at)].strip()
        shown = quote(found) if found else "the end of the statement"
        line = self.text.count(b"\n", 0, at) + 1
        message = f"expected {expected}, found {shown}"
        return FormatError(message, self.content.name, line, expected=expected)

    def model(self) -> Model:
        while (end := self.text.find(b";", self.at)) >= 0:
            self.end = end
            self._statement()
            self.at = end + 1
        self.end = len(self.text)
        if self.text[self.at :].strip():
            raise self.error("';' at the end of a statement")
        if not self.most:
            raise FormatError("expected at least one variable", self.content.name)
        found = Conjunctions(self.most, self.content)
        by_size: dict[int, list[Term]] = {}
        for term in self.objective:
            by_size.setdefault(len(term[1]), []).append(term)
        for k, part in by_size.items():
            literals = np.array([row for _, row in part], dtype=np.int64).reshape(len(part), k)
            found.add(literals, np.array([cost for cost, _ in part]))
        for constraint in self.constraints:
            self._constrain(found, *constraint)
        self.content.release()
        return found.model()

    def _statement(self) -> None:
        head = self.text[self.at : self.end].lstrip()[:5]
        if head[:4] in (b"min:", b"max:"):
            sign = 1.0 if head[:4] == b"min:" else -1.0
            self.at = self.text.index(b":", self.at) + 1
            terms, rest = self._terms()
            if rest is not None or self.objective:
                raise self.error("one sum to minimise")
            self.objective = [(sign * cost, literals) for cost, literals in terms]
            return
        if head == b"soft:":
            return  # the top cost of WBO: what is above it need not be told apart
        weight = np.inf
        match = _TOKEN.match(self.text, self.at, self.end)
        if match and match[5] is not None:
            weight, self.at = float(match[5]), match.end()
        terms, relation = self._terms()
        if relation is None:
            raise self.error("'>=', '<=' or '='")
        bound = _TOKEN.match(self.text, self.at, self.end)
        if bound is None or bound[1] is None or self.text[bound.end() : self.end].strip():
            raise self.error("one number after the relation")
        self.constraints.append((terms, relation, _number(bound[1]), weight))

    def _terms(self) -> tuple[list[Term], bytes | None]:
        """Terms up to a relation, which is stepped over, or to the end."""
        terms: list[Term] = []
        while match := _TOKEN.match(self.text, self.at, self.end):
            self.at = match.end()
            if match[4] is not None:
                return terms, match[4]
            if match[1] is not None:
                terms.append((_number(match[1]), []))
            elif match[3] is not None and int(match[3]) > 0:
                v = int(match[3])
                self.most = max(self.most, v)
                if not terms:
                    terms.append((1.0, []))
                terms[-1][1].append(-v if match[2] else v)
            else:
                raise self.error("a variable x1, x2, ... or a number", match.start())
        if self.text[self.at : self.end].strip():
            raise self.error("a number, a literal such as x1 or ~x2, or a relation")
        return terms, None

    def _constrain(
        self, found: Conjunctions, terms: list[Term], relation: bytes, bound: float, weight: float
    ) -> None:
        """A table over all variables of a constraint; what never fails leaves none."""
        variables = sorted({abs(v) for _, literals in terms for v in literals})
        k = len(variables)
        if k > LARGEST_TABLE and (many := _linear(terms, relation, bound, weight)) is not None:
            found.add_many(many)
            return
        if k > MOST_JOINT:
            raise FormatError(
                f"a constraint with products or fractions over {k} variables would need a table "
                f"of 2^{k} entries; expected at most {MOST_JOINT} variables",
                self.content.name,
                expected=f"at most {MOST_JOINT} variables",
            )
        found.reserve(2**k)
        axis = {v: a for a, v in enumerate(variables)}
        total: Costs = np.zeros([2] * k)
        for coefficient, literals in terms:
            holds = np.ones([1] * k, dtype=bool)
            for v in literals:
                shape = [1] * k
                shape[axis[abs(v)]] = 2
                holds = holds & (np.arange(2) == (v > 0)).reshape(shape)
            total += coefficient * holds
        fails = {
            b">=": total < bound, b"<=": total > bound, b"=": total != bound,
            b">": total <= bound, b"<": total >= bound,
        }[relation]  # fmt: skip
        if fails.any():
            places: Ints = np.array(variables, dtype=np.int64) - 1
            if not k:
                raise FormatError("a constraint without variables never holds", self.content.name)
            found.add_table(places, np.where(fails, weight, 0.0))


def _linear(terms: list[Term], relation: bytes, bound: float, weight: float) -> Linear | None:
    """A sum of single literals with whole numbers, as a factor over many variables."""
    rows: dict[int, list[int]] = {}
    for coefficient, literals in terms:
        if len(literals) != 1 or coefficient != round(coefficient) or abs(coefficient) > 2**40:
            return None
        row = rows.setdefault(abs(literals[0]) - 1, [0, 0])
        row[literals[0] > 0] += int(coefficient)
    least = math.floor(bound) + 1 if relation == b">" else math.ceil(bound)
    most = math.ceil(bound) - 1 if relation == b"<" else math.floor(bound)
    low = None if relation in (b"<", b"<=") else least
    high = None if relation in (b">", b">=") else most
    return Linear(list(rows), list(rows.values()), low=low, high=high, penalty=weight)


def _number(text: bytes) -> float:
    return float(text.replace(b" ", b"").replace(b"\t", b""))


def write_opb(model: Model, target: Source, *, scale: float = 1.0) -> None:
    """Write an OPB file; costs times `scale` must be whole numbers."""
    write_text(target, format_opb(model, scale=scale))


def format_opb(model: Model, *, scale: float = 1.0) -> Iterator[str]:
    """Text of an OPB file, in pieces: products of literals, and a clause for what is forbidden.

    Variables must have two labels each. A constant becomes a sum of x1 and ~x1.
    """
    scale = scale_factor(scale)
    factors = factors_of(checked_model(model), zeros=False)
    n = model.num_variables
    if (model.num_labels[:n] != 2).any():
        raise ModelError("OPB holds variables with two labels only")
    terms, clauses = [], []
    for scope, table in zip(factors.scopes, factors.tables, strict=True):
        for place in np.argwhere(table != 0).tolist():
            cost = float(table[tuple(place)]) * scale
            marks = [("", "~") if x else ("~", "") for x in place]
            if cost == np.inf:
                words = [f"+1 {no}x{i + 1}" for i, (_, no) in zip(scope, marks, strict=True)]
                clauses.append(" ".join(words) + " >= 1 ;\n")
            else:
                words = [f"{yes}x{i + 1}" for i, (yes, _) in zip(scope, marks, strict=True)]
                terms.append(f"{_whole(cost)} {' '.join(words)}")
    rest = factors.constant * scale
    if rest:
        terms += [f"{_whole(rest)} x1", f"{_whole(rest)} ~x1"]
    terms += [] if n == 1 and terms else [f"+0 x{n}"]  # says how many variables there are
    yield f"* #variable= {n} #constraint= {len(clauses)}\n"
    yield f"min: {' '.join(terms)} ;\n"
    yield from clauses


def _whole(cost: float) -> str:
    if cost != round(cost) or abs(cost) > LARGEST:
        raise ModelError(
            f"OPB holds whole numbers up to 2^53, not {cost:g}: give a scale that makes them "
            "whole, or choose .cfn or .uai.LG"
        )
    return f"{int(cost):+d}"
