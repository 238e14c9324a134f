"""Boolean problems: weighted clauses (WCNF) and pseudo-Boolean sums (OPB)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from softmap.errors import FormatError, ModelError
from softmap.io.factors import factors_of, require_binary
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.io.tokens import Numbers, quote, whole_cost
from softmap.model import Model, Network
from softmap.model.factors import Assembly
from softmap.model.many import Cardinality, Linear, Many, Or
from softmap.model.model import assembled
from softmap.model.potentials.base import Costs, Ints, scale_factor


class Conjunctions:
    """Collects costs of conjunctions: the cost of a row is paid if all its literals are true.

    A literal is +v or -v for variables v = 1, 2, …; label 1 of variable v - 1 makes +v true.
    """

    def __init__(self, n: int, content: Content) -> None:
        content.take(2 * n)
        self.content = content
        self.n = n
        self.assembly = Assembly(np.full(n, 2))
        self._rows: dict[int, list[tuple[Ints, Costs]]] = {}

    def add(self, literals: Ints, costs: Costs) -> None:
        """Add rows of k literals each with their costs; a variable may occur twice in a row."""
        if not len(literals):
            return
        keys = np.sort(2 * np.abs(literals) + (literals > 0), axis=1)  # literals by variable
        variable = keys >> 1
        ordered = np.where(keys & 1, variable, -variable)
        again = variable[:, 1:] == variable[:, :-1]
        if again.any():
            odd = again.any(axis=1)
            self._add_odd(ordered[odd], costs[odd])
            ordered, costs = ordered[~odd], costs[~odd]
        if len(ordered):
            self._rows.setdefault(literals.shape[1], []).append((ordered, costs))

    def _add_odd(self, ordered: Ints, costs: Costs) -> None:
        """Add rows with repeated variables: a repeated literal counts once; x and ~x never hold."""
        by_size: dict[int, list[tuple[list[int], float]]] = {}
        for row, cost in zip(ordered.tolist(), costs.tolist(), strict=True):
            kept = list(dict.fromkeys(row))
            if len({abs(v) for v in kept}) == len(kept):
                by_size.setdefault(len(kept), []).append((kept, cost))
        for part in by_size.values():
            self.add(np.array([r for r, _ in part]), np.array([c for _, c in part]))

    def add_table(self, variables: Ints, table: Costs) -> None:
        """Add a table of costs over a few variables (numbered from 0)."""
        self.content.take(table.size + LIMITS.joint_state)
        self.assembly.add_factor(variables.tolist(), table)

    def add_many(self, factor: Many) -> None:
        """Add a factor over many variables (numbered from 0), as a chain."""
        self.content.take(LIMITS.running_variable * len(factor.variables))
        self.assembly.add_many(factor)

    def model(self) -> Model:
        """Return the model."""
        for k in sorted(self._rows):
            parts = self._rows.pop(k)
            literals = np.concatenate([rows for rows, _ in parts])
            costs = np.concatenate([costs for _, costs in parts])
            self.content.check(np.abs(costs))
            self._join(k, literals, costs)
        return assembled(self.assembly.pieces())

    def _join(self, k: int, literals: Ints, costs: Costs) -> None:
        if k == 0:
            self.assembly.add_constant(float(costs.sum()))
            return
        place = np.zeros(len(literals), dtype=np.int64)
        for axis in range(k):
            place = 2 * place + (literals[:, axis] > 0)
        scopes = np.abs(literals) - 1
        if k == 1:
            flat = np.bincount(2 * scopes[:, 0] + place, costs, 2 * self.n)
            self.assembly.add_flat_unary(flat.astype(np.float64, copy=False))
            return
        if k > LIMITS.clause_variables:
            self._join_long(literals, costs)
            return
        number, first = _numbered(scopes, self.n)
        self.content.take(len(first) * (2**k + LIMITS.joint_state if k > 2 else LIMITS.clause_edge))
        flat = np.bincount(number * 2**k + place, costs, len(first) * 2**k)
        tables: Costs = flat.astype(np.float64, copy=False).reshape(len(first), *[2] * k)
        if k == 2:
            self.assembly.add_tables(scopes[first], tables)
        else:
            self.assembly.add_alike(scopes[first], tables)

    def _join_long(self, literals: Ints, costs: Costs) -> None:
        """Add conjunctions as chains; those with as many negations and the same cost together."""
        self.content.take(LIMITS.running_variable * literals.size)
        rows = np.take_along_axis(literals, np.argsort(literals > 0, axis=1, kind="stable"), 1)
        negated = (rows < 0).sum(axis=1)
        kinds, kind = np.unique(np.column_stack([negated, costs]), axis=0, return_inverse=True)
        for c, (first, cost) in enumerate(kinds.tolist()):
            # The conjunction is false if at least one literal is false.
            label = (np.arange(rows.shape[1]) < first).astype(np.int64)
            chosen = np.abs(rows[kind.reshape(-1) == c]) - 1
            self.assembly.add_copies(Or(np.arange(rows.shape[1]), label, cost), chosen)


def _numbered(scopes: Ints, n: int) -> tuple[Ints, Ints]:
    """Return a number for each distinct row, and the index of its first occurrence."""
    k = scopes.shape[1]
    if float(n) ** k < 2**62:
        key = scopes[:, 0].copy()
        for axis in range(1, k):
            key *= n
            key += scopes[:, axis]
        ordered = np.sort(key)
        if (ordered[1:] != ordered[:-1]).all():  # no repeats: keep the order of the file
            each = np.arange(len(key))
            return each, each
        order = np.argsort(key)
        fresh = np.append(True, ordered[1:] != ordered[:-1])
    else:
        order = np.lexsort(scopes.T[::-1])
        fresh = np.append(True, (scopes[order[1:]] != scopes[order[:-1]]).any(axis=1))
    number = np.empty(len(scopes), np.int64)
    number[order] = np.cumsum(fresh) - 1
    return number, order[fresh]


# --- WCNF, of both dialects (`p wcnf` with a top, and `h` for hard clauses) ----------------------


_CLAUSE_COMMENT = re.compile(rb"(?m)^[ \t]*c[^\n]*$")  # no clause begins with this letter
_HEAD = re.compile(rb"(?m)^[ \t]*p[ \t]+(\S+)([^\n]*)$")
_OPENING = re.compile(rb"(?:c[^\n]*+\n)*+")
_HARD = b"-1"  # replaces "h" in the place of a weight


def parse_wcnf(content: Content) -> Model:
    """Return the model of a WCNF file: one variable with two labels per Boolean variable.

    Label 1 is true. A violated soft clause costs its weight; hard clauses must hold. Clauses of
    more than six literals become chains, whose chain variables come after those of the file.
    """
    text = content.data
    opening = _OPENING.match(text)
    if opening is not None and opening.end():
        text = b"\n" * text.count(b"\n", 0, opening.end()) + text[opening.end() :]
    if b"\nc" in text or b"\n " in text or b"\n\t" in text:
        text = _CLAUSE_COMMENT.sub(b"", text)
    n, top, start = _header(content, text)
    hard = 0
    if top is None:
        hard = text.count(b"h", start)
        text = text[:start] + text[start:].replace(b"h", _HARD)
    inner = content.replaced(text)
    numbers = Numbers(inner, start)
    del text
    first, last, weight = _clauses(numbers, top, hard)
    return _clause_model(numbers, first, last, weight, n, inner)


def _header(content: Content, text: bytes) -> tuple[int | None, float | None, int]:
    """Return the number of variables, the weight of hard clauses, and the start of the clauses.

    The weight is None if hard clauses are marked with `h`.
    """
    head = _HEAD.search(text[: 1 << 20])
    if head is None:
        return None, None, 0
    line = text.count(b"\n", 0, head.start()) + 1
    words = head[2].split()
    sound = all(re.fullmatch(rb"\d{1,30}", w) for w in words) and 2 <= len(words) <= 3
    if head[1] != b"wcnf" or not sound:
        raise content.error("'p wcnf variables clauses top'", quote(head.group().strip()), line)
    top = float(int(words[2])) if len(words) == 3 else np.inf
    return int(words[0]), top, head.end()


def _ends(values: Costs) -> Ints:
    """Return the places of the zeros that end clauses; a zero at the start of one is its weight."""
    zeros = np.flatnonzero(values == 0)
    starts = np.append(True, np.diff(zeros) > 1)[: len(zeros)]
    place = zeros - np.maximum.accumulate(np.where(starts, zeros, 0))  # within a run of zeros
    after = np.maximum.accumulate(np.where(starts, zeros, 0)) > 0  # the run follows a clause
    return zeros[(place % 2 == 0) == after]


def _clauses(numbers: Numbers, top: float | None, hard: int) -> tuple[Ints, Ints, Costs]:
    """Return start and end of the literals of each clause, and its weight."""
    values = numbers.values
    last = _ends(values)
    if len(values) and (not len(last) or last[-1] != len(values) - 1):
        raise numbers.fail(len(values), "0 at the end of a clause")
    begin = np.append(0, last[:-1] + 1) if len(last) else last
    weight = values[begin]
    if top is None:
        marked = weight == -1.0
        if np.count_nonzero(marked) != hard:
            raise numbers.fail(int(begin[np.argmax(weight <= 0)]), "weights, or h, before clauses")
        weight[marked] = np.inf
    else:
        weight[weight >= top] = np.inf
    if (bad := ~(weight >= 0)).any():
        raise numbers.fail(int(begin[np.argmax(bad)]), "the weight of a clause (at least 0)")
    return begin + 1, last, weight


def _clause_model(
    numbers: Numbers, first: Ints, last: Ints, weight: Costs, n: int | None, content: Content
) -> Model:
    values, most = numbers.values, 2**31 - 1 if n is None else n
    values[first - 1] = 0.0  # clear the weights, so that only literals remain
    sound = max(values.max(initial=0.0), -values.min(initial=0.0)) <= most
    whole: Ints = values.astype(np.int64) if sound else np.zeros(0, np.int64)
    good = whole == values if sound else np.abs(values) <= most
    if not good.all():
        limit = "" if n is None else f" (at most {n})"
        raise numbers.fail(int(np.argmin(good)), f"the number of a variable{limit}")
    if n is None:
        n = int(max(whole.max(initial=0), -whole.min(initial=0)))
    if n < 1:
        raise content.error("at least one variable")
    content.release()
    found = Conjunctions(n, content)
    size = last - first
    for k in np.unique(size).tolist():
        which = np.flatnonzero(size == k)
        literals = whole[first[which][:, None] + np.arange(k)]
        found.add(-literals, weight[which])  # a clause is violated if all its literals are false
    return found.model()


def format_wcnf(model: Network, *, scale: float = 1.0) -> Iterator[str]:
    """Yield the text of a WCNF file (with `h`), in pieces: one clause per entry of each table.

    Variables must have two labels each. Tables are shifted to a minimum of zero. The sum of the
    shifts must not be negative; it becomes two clauses, one of which is always violated.
    """
    scale = scale_factor(scale)
    factors = factors_of(model, zeros=False)
    require_binary(model, "WCNF")
    rest = factors.constant * scale
    lines = []
    for scope, table in zip(factors.scopes, factors.tables, strict=True):
        costs = table * scale
        least = min(0.0, float(costs.min()))
        rest += least
        for place in np.argwhere(costs != least).tolist():
            cost = float(costs[tuple(place)]) - least
            literals = [-(i + 1) if x else i + 1 for i, x in zip(scope, place, strict=True)]
            lines.append(_clause(cost, literals))
    if rest < 0:
        raise ModelError(f"WCNF holds no negative costs, but the least possible sum is {rest:g}")
    yield f"c softmap: {model.num_variables} variables\n"
    lines += [_clause(rest, [1]), _clause(rest, [-1])] if rest else []
    n = model.num_variables
    yield f"h {n} -{n} 0\n"  # a tautology that declares the number of variables
    yield from lines


def _clause(cost: float, literals: list[int]) -> str:
    weight = "h" if cost == np.inf else whole_cost(cost, "WCNF")
    return f"{weight} {' '.join(map(str, literals))} 0\n"


# --- OPB, products of literals and soft constraints (WBO) included --------------------------------


_COMMENT = re.compile(rb"(?m)^[ \t]*\*[^\n]*")
_TOKEN = re.compile(
    rb"[ \t\r\n]*+(?:([-+]?[ \t]*\d{1,300}(?:\.\d{1,300})?)(?![^\s;~])"
    rb"|(~?)[ \t]*([A-Za-z_][A-Za-z0-9_.\[\]{}^]{0,200})(?![^\s;<>=~])|(>=|<=|=|>|<)"
    rb"|\[[ \t]*(\d{1,300})[ \t]*\])"
)
_PLAIN = re.compile(rb"(?:\s*+[-+]?\d{1,15}\s++~?x\d{1,9}(?=[\s;<>=])(?=\s*+[-+\d<>=;]))++")
_NUMBERED = re.compile(rb"x([1-9]\d{0,8})")
Term = tuple[float, list[int]]


def parse_opb(content: Content) -> Model:
    """Return the model of an OPB file: one variable with two labels for each x1, x2, ...

    Other names are allowed: variables are then in the order of their first occurrence, and the
    model keeps the names. `min:` is the energy (`max:` its negative). Constraints are hard; a
    constraint after `[weight]` costs its weight if it is violated. Sums of more than six literals
    become chains, whose chain variables come after those of the file. In constraints over more than
    20 variables, each product of literals becomes a variable, after those of the file.
    """
    text = _COMMENT.sub(b"", content.data) if b"*" in content.data else content.data
    return _ClauseReader(content, text).model()


class _ClauseReader:
    """Reader of the statements, each of which ends with a semicolon."""

    def __init__(self, content: Content, text: bytes) -> None:
        self.content, self.text = content, text
        self.at = self.end = 0
        self.names: dict[bytes, int] = {}
        self.objective: list[Term] = []
        self.constraints: list[tuple[list[Term], bytes, float, float]] = []
        self.places: list[int] = []  # where each constraint begins

    def error(self, expected: str, at: int | None = None) -> FormatError:
        at = self.at if at is None else at
        found = self.text[at : max(self.end, at)].strip()
        shown = quote(found) if found else "the end of the statement"
        line = self.text.count(b"\n", 0, at) + 1
        return self.content.error(expected, shown, line)

    def _line(self) -> int:
        return self.text.count(b"\n", 0, self.at) + 1

    def model(self) -> Model:
        while (end := self.text.find(b";", self.at)) >= 0:
            self.end = end
            self._statement()
            self.at = end + 1
        self.end = len(self.text)
        if self.text[self.at :].strip():
            raise self.error("';' at the end of a statement")
        if not self.names:
            raise self.content.error("at least one variable")
        numbers, names = self._numbers()
        terms = [self.objective, *(constraint[0] for constraint in self.constraints)]
        for _, own in (term for part in terms for term in part):
            own[:] = [numbers[v] if v > 0 else -numbers[-v] for v in own]
        products = _Products(max(numbers))
        for constraint in self.constraints:
            products.replace(constraint[0])
        found = Conjunctions(products.last, self.content)
        for row, number in products.numbers.items():
            self._define(found, row, number)
        if names is not None:
            names += products.names(names)
        by_size: dict[int, list[Term]] = {}
        for term in self.objective:
            by_size.setdefault(len(term[1]), []).append(term)
        for k, part in by_size.items():
            literals = np.array([row for _, row in part], dtype=np.int64).reshape(len(part), k)
            found.add(literals, np.array([cost for cost, _ in part]))
        for at, constraint in zip(self.places, self.constraints, strict=True):
            self.at = at
            self._constrain(found, *constraint)
        self.content.release()
        return found.model() if names is None else found.model().with_names(names)

    def _numbers(self) -> tuple[list[int], list[str] | None]:
        """Return the number of each variable, and the names unless all are x1, x2, ..."""
        numbered = [_NUMBERED.fullmatch(name) for name in self.names]
        if all(numbered):
            return [0, *(int(match[1]) for match in numbered if match)], None
        return list(range(len(self.names) + 1)), [name.decode() for name in self.names]

    def _statement(self) -> None:
        head = self.text[self.at : self.end].lstrip()[:5]
        if head[:4] in (b"min:", b"max:"):
            sign = 1.0 if head[:4] == b"min:" else -1.0
            self.at = self.text.index(b":", self.at) + 1
            terms, rest = self._terms()
            if rest is not None:
                raise self.error("';' after the objective, before the first constraint")
            if self.objective:
                raise self.error("one sum to minimise")
            self.objective = [(sign * cost, literals) for cost, literals in terms]
            return
        if head == b"soft:":
            return  # the top cost of WBO is not needed
        weight = np.inf
        own = self.text[self.at : self.end]
        self.places.append(self.at + len(own) - len(own.lstrip()))
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
        """Return the terms up to a relation, which is skipped, or to the end."""
        terms = self._plain_terms()
        while match := _TOKEN.match(self.text, self.at, self.end):
            self.at = match.end()
            if match[4] is not None:
                return terms, match[4]
            if match[1] is not None:
                terms.append((_number(match[1]), []))
            elif match[3] is not None:
                v = self.names.setdefault(match[3], len(self.names) + 1)
                if not terms:
                    terms.append((1.0, []))
                terms[-1][1].append(-v if match[2] else v)
            else:
                raise self.error("a variable or a number", match.start())
        if self.text[self.at : self.end].strip():
            raise self.error("a number, a literal such as x1 or ~x2, or a relation")
        return terms, None

    def _plain_terms(self) -> list[Term]:
        """Return the first terms, as far as each is a whole number and one literal."""
        plain = _PLAIN.match(self.text, self.at, self.end)
        if plain is None:
            return []
        self.at = plain.end()
        words, names, terms = plain.group().split(), self.names, []
        for number, name in zip(words[::2], words[1::2], strict=True):
            positive = name[:1] != b"~"
            v = names.setdefault(name if positive else name[1:], len(names) + 1)
            terms.append((float(number), [v if positive else -v]))
        return terms

    @staticmethod
    def _define(found: Conjunctions, row: tuple[int, ...], number: int) -> None:
        """Add the constraint that a variable is the product of some literals."""
        table = np.zeros([2] * (len(row) + 1))
        table[..., 1] = np.inf
        table[tuple(int(v > 0) for v in row)] = [np.inf, 0.0]
        found.add_table(np.abs([*row, number]) - 1, table)

    def _constrain(
        self, found: Conjunctions, terms: list[Term], relation: bytes, bound: float, weight: float
    ) -> None:
        """Add a constraint as a table over its variables; one that always holds adds nothing."""
        variables = sorted({abs(v) for _, literals in terms for v in literals})
        k = len(variables)
        many = _linear(terms, relation, bound, weight) if k > LIMITS.clause_variables else None
        if many is not None:
            found.add_many(many)
            return
        if k > LIMITS.joint_variables:
            raise FormatError(
                f"a constraint with fractions over {k} variables would need a table "
                f"of 2^{k} entries; expected at most {LIMITS.joint_variables} variables",
                self.content.name,
                self._line(),
                expected=f"at most {LIMITS.joint_variables} variables",
            )
        self.content.take(2**k)
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
                message = "a constraint without variables never holds"
                raise FormatError(message, self.content.name, self._line())
            found.add_table(places, np.where(fails, weight, 0.0))


class _Products:
    """Variables that stand for products of literals, after those of the file.

    Parameters
    ----------
    last : int
        The number of variables of the file.

    Attributes
    ----------
    last : int
        The number of variables so far.
    numbers : dict
        The number of the variable of each product.
    """

    def __init__(self, last: int) -> None:
        self.last = last
        self.numbers: dict[tuple[int, ...], int] = {}

    def replace(self, terms: list[Term]) -> None:
        """Replace the products of a long constraint with whole coefficients by variables."""
        variables = {abs(v) for _, literals in terms for v in literals}
        few = len(variables) <= LIMITS.joint_variables
        if few or not all(_whole_coefficient(coefficient) for coefficient, _ in terms):
            return
        for k, (coefficient, literals) in enumerate(terms):
            row = tuple(sorted(set(literals), key=abs))
            if len({abs(v) for v in row}) < len(row):  # x and ~x: the product is 0
                terms[k] = (0.0, [abs(row[0])])
            elif len(row) > 1:
                terms[k] = (coefficient, [self._number(row)])

    def names(self, known: list[str]) -> list[str]:
        """Names of the new variables: their literals, separated by blanks."""
        found = list(known)
        for row in self.numbers:
            found.append(" ".join(("~" if v < 0 else "") + found[abs(v) - 1] for v in row))
        return found[len(known) :]

    def _number(self, row: tuple[int, ...]) -> int:
        most = LIMITS.clause_variables - 1
        while len(row) > most:
            row = (*row[most:], self._number(row[:most]))
        if row not in self.numbers:
            self.last += 1
            self.numbers[row] = self.last
        return self.numbers[row]


def _whole_coefficient(value: float) -> bool:
    return value == round(value) and abs(value) <= 2**40


def _linear(terms: list[Term], relation: bytes, bound: float, weight: float) -> Many | None:
    """Return a sum of single literals with integer coefficients as a factor: a count if it can."""
    if any(len(literals) != 1 for _, literals in terms):
        return None
    given = np.array([coefficient for coefficient, _ in terms])
    if not all(map(_whole_coefficient, given.tolist())):
        return None
    literals = np.array([own[0] for _, own in terms], dtype=np.int64)
    number = {v: k for k, v in enumerate(dict.fromkeys(np.abs(literals).tolist()))}
    variables = np.array(list(number), dtype=np.int64)
    place = np.array([number[v] for v in np.abs(literals).tolist()])
    rows = np.zeros((len(variables), 2), dtype=np.int64)
    np.add.at(rows.reshape(-1), 2 * place + (literals > 0), given.astype(np.int64))
    least = math.floor(bound) + 1 if relation == b">" else math.ceil(bound)
    most = math.ceil(bound) - 1 if relation == b"<" else math.floor(bound)
    low = -math.inf if relation in (b"<", b"<=") else least
    high = math.inf if relation in (b">", b">=") else most
    step = np.abs(rows[:, 1] - rows[:, 0])
    if step.min() == step.max() > 0:
        sums = int(rows.min(axis=1).sum()) + int(step[0]) * np.arange(len(rows) + 1)
        costs = np.where((sums < low) | (sums > high), weight, 0.0)
        heavy = rows.argmax(axis=1)
        counts = Cardinality(variables - 1, heavy, costs)
        others = Cardinality(variables - 1, 1 - heavy, costs[::-1])
        return min(counts, others, key=lambda factor: factor.states)
    return Linear(variables - 1, rows, low=low, high=high, penalty=weight)


def _number(text: bytes) -> float:
    return float(text.replace(b" ", b"").replace(b"\t", b""))


def format_opb(model: Network, *, scale: float = 1.0) -> Iterator[str]:
    """Yield the text of an OPB file, in pieces: products of literals, and clauses.

    Variables must have two labels each. A clause forbids each infinite cost. A constant becomes a
    sum of x1 and ~x1.
    """
    scale = scale_factor(scale)
    factors = factors_of(model, zeros=False)
    n = model.num_variables
    require_binary(model, "OPB")
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
    terms += [] if n == 1 and terms else [f"+0 x{n}"]  # declares the number of variables
    yield f"* #variable= {n} #constraint= {len(clauses)}\n"
    yield f"min: {' '.join(terms)} ;\n"
    yield from clauses


def _whole(cost: float) -> str:
    return f"{whole_cost(cost, 'OPB'):+d}"
