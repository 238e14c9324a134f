"""WCSP: non-negative integer costs, default cost plus tuples, shared tables, an upper bound.

A global cost function is a word among the numbers, followed by its parameters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from softmap.errors import FormatError, ModelError
from softmap.io.factors import factors_of
from softmap.io.global_costs import GLOBALS, METRICS, Global, factors_of_global, global_size
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.io.tokens import LARGEST, Numbers, quote
from softmap.model import Model
from softmap.model.factors import Assembly
from softmap.model.many import Many
from softmap.model.potentials.base import Costs, Ints, scale_factor

_NAME = re.compile(rb"\s*(\S+)")


def parse_wcsp(content: Content) -> Model:
    """Return the model of a WCSP file; costs of at least the upper bound are forbidden."""
    name = _NAME.match(content.data)
    if name is None:
        raise content.error("'name variables labels functions upper-bound'", "nothing", 1)
    return _WcspReader(Numbers(_words_as_numbers(content, name.end()), name.end())).model()


class _WcspReader:
    """Reader of the functions of a file."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        n = numbers.whole("the number of variables", 1, 2**31 - 1)
        most = numbers.whole("the largest number of labels", 1)
        self.functions = numbers.whole("the number of functions")
        self.top = numbers.whole("the upper bound", 0, 2**200)
        if numbers.left and numbers.values[numbers.at] < 0:
            raise numbers.fail(numbers.at, "a domain size (interval variables are not supported)")
        self.num_labels = numbers.wholes(n, "domain sizes", 1, most)
        self.entries = 0
        self._reserve(int(self.num_labels.sum()))
        self.assembly = Assembly(self.num_labels)
        self.declared: list[Costs] = []

    def _reserve(self, entries: int) -> None:
        self.entries += entries
        self.numbers.content.reserve(self.entries)

    def model(self) -> Model:
        if self.functions > self.numbers.left:
            raise self.numbers.fail(len(self.numbers), f"{self.functions} functions")
        for _ in range(self.functions):
            self._function()
        self.numbers.finish("the last function")
        self.numbers.content.release()
        return Model.from_pieces(self.assembly.pieces())

    def _function(self) -> None:
        numbers = self.numbers
        n = len(self.num_labels)
        arity = numbers.whole("the arity of a function", -n, n)
        scope = numbers.wholes(abs(arity), "variables of a scope", 0, n - 1)
        if len(set(scope.tolist())) < len(scope):
            raise numbers.fail(numbers.at - 1, "a scope that names no variable twice")
        default = numbers.whole("a default cost, or -1 before a global cost function", -1, 2**200)
        if default == -1:
            self._global(scope.tolist())
            return
        count = numbers.whole("the number of tuples", -len(self.declared))
        if count < 0:
            table = self._known(scope, -count)
            self.assembly.add_shared(scope.tolist(), table)
            return
        table = self._table(scope, float(default), count)
        if arity < 0:
            self.declared.append(table)
            self.assembly.add_shared(scope.tolist(), table)
        else:
            self.assembly.add_factor(scope.tolist(), table)

    def _global(self, scope: list[int]) -> None:
        numbers = self.numbers
        if not scope:
            raise numbers.fail(numbers.at, "variables of a global cost function")
        sizes = self.num_labels[scope].tolist()
        if (word := _peek(numbers)) in COMPARISONS:
            self.assembly.add_factor(scope, self._comparison(word, sizes))
            return
        found, factors = _read_global(numbers, scope, sizes, float(self.top))
        self._reserve(global_size(found))
        for factor in factors:
            self.assembly.add_many(factor)

    def _comparison(self, word: str, sizes: list[int]) -> Costs:
        """Return the table of an arithmetic constraint between two variables."""
        numbers, (count, costs) = self.numbers, COMPARISONS[word]
        if len(sizes) != 2:
            raise numbers.fail(numbers.at, f"two variables before {word!r}")
        numbers.at += 1
        given = [numbers.whole(f"a number of {word!r}", -(2**53), 2**53) for _ in range(count)]
        self._reserve(math.prod(sizes))
        x, y = np.indices(sizes)
        table = np.asarray(costs(x, y, *given), dtype=np.float64)
        table[table >= self.top] = np.inf
        return table

    def _known(self, scope: Ints, number: int) -> Costs:
        table = self.declared[number - 1]
        if table.shape != tuple(self.num_labels[scope].tolist()):
            expected = f"a table of shape {tuple(self.num_labels[scope].tolist())}"
            raise self.numbers.fail(self.numbers.at - 1, f"{expected}, which table {number} is not")
        return table

    def _table(self, scope: Ints, default: float, count: int) -> Costs:
        numbers = self.numbers
        if len(scope) > LIMITS.axes:
            numbers.content.check_arity(len(scope), numbers.line(numbers.at - 1))
        shape = tuple(self.num_labels[scope].tolist())
        self._reserve(math.prod(shape))
        width = len(shape) + 1
        if count * width > numbers.left:
            raise numbers.fail(len(numbers), f"{count} tuples of {width} numbers")
        begin = numbers.at
        block = numbers.values[begin : begin + count * width].reshape(count, width)
        good = (block >= 0) & (np.floor(block) == block)
        good &= block < np.array([*shape, np.inf])
        if not good.all():
            raise numbers.fail(begin + int(np.argmin(good)), "a label of the scope or a whole cost")
        numbers.at += count * width
        table = np.full(shape, default)
        if shape:
            table[tuple(block[:, :-1].astype(np.int64).T)] = block[:, -1]
        elif count:
            table[...] = block[-1, 0]
        table[table >= self.top] = np.inf
        return table


# --- global cost functions ----------------------------------------------------------------------


_FIRST = 1 << 20  # word k is coded as the number -(_FIRST + k)
_WORD = re.compile(rb"(?<![^\s])(?:[A-Za-z][A-Za-z_]*+|[<>]=?|=)(?![^\s])")


def _excess(amount: Ints, most: int) -> Costs:
    """Return how far a constraint is violated; violations by more than `most` are forbidden."""
    return np.where(amount > most, np.inf, np.maximum(amount, 0))


# A word, the number of its parameters, and its cost for labels x and y.
COMPARISONS: dict[str, tuple[int, Callable[..., Costs]]] = {
    ">=": (2, lambda x, y, c, most: _excess(y + c - x, most)),
    ">": (2, lambda x, y, c, most: _excess(y + c + 1 - x, most)),
    "<=": (2, lambda x, y, c, most: _excess(x - c - y, most)),
    "<": (2, lambda x, y, c, most: _excess(x - c + 1 - y, most)),
    "=": (2, lambda x, y, c, most: _excess(np.abs(y + c - x), most)),
    "disj": (3, lambda x, y, a, b, cost: np.where((x >= y + b) | (y >= x + a), 0, cost)),
}
_WORDS = (*GLOBALS, *METRICS, *COMPARISONS)
_CODES = {word.encode(): b"%d" % -(_FIRST + k) for k, word in enumerate(_WORDS)}


def _words_as_numbers(content: Content, start: int) -> Content:
    """Replace each known word by a number; raise `FormatError` for other words."""
    if _WORD.search(content.data, start) is None:
        return content

    def coded(match: re.Match[bytes]) -> bytes:
        if match.group() in (b"inf", b"nan", b"infinity"):
            return match.group()
        if match.group() not in _CODES:
            known = ", ".join((*GLOBALS, *COMPARISONS))
            message = f"expected a number or one of {known}, found {quote(match.group())}"
            line = content.data.count(b"\n", 0, start + match.start()) + 1
            raise FormatError(message, content.name, line, expected=known)
        return _CODES[match.group()]

    return content.replaced(content.data[:start] + _WORD.sub(coded, content.data[start:]))


def _read_global(
    numbers: Numbers, scope: Sequence[int], sizes: Sequence[int], top: float
) -> tuple[Global, list[Many]]:
    """Read the global cost function after `-1`; return it and its factors."""
    at = numbers.at
    found = Global(_word(numbers, tuple(GLOBALS), "a global cost function"), scope, sizes)
    if found.name.startswith("knapsack"):
        _knapsack(numbers, found)
    elif found.name in ("clique", "gcc"):
        found.metric = "hard"
        _hard_counts(numbers, found)
    else:
        if found.name != "ssame":
            found.metric = _word(numbers, METRICS, f"how {found.name} is measured")
        found.cost = float(numbers.whole("a cost", 0, 2**200))
        _parameters(numbers, found)
    try:
        return found, factors_of_global(found, top)
    except ModelError as error:
        raise FormatError(str(error), numbers.content.name, numbers.line(at)) from error


def _peek(numbers: Numbers) -> str:
    """Return the next word; nothing if the next token is a number."""
    code = -float(numbers.values[numbers.at]) - _FIRST if numbers.left else -1.0
    return _WORDS[int(code)] if 0 <= code < len(_WORDS) else ""  # code may be infinite


def _word(numbers: Numbers, words: tuple[str, ...], what: str) -> str:
    if (found := _peek(numbers)) not in words:
        raise numbers.fail(numbers.at, f"{what} ({', '.join(words)})")
    numbers.at += 1
    return found


def _knapsack(numbers: Numbers, found: Global) -> None:
    """Read weights: of label 1 per variable, of listed labels per variable, or as triples."""
    found.capacity = numbers.whole("a capacity", -(2**200), 2**200)
    found.weights = [[0] * d for d in found.sizes]
    if found.name == "knapsackv":
        place = {v: t for t, v in enumerate(found.scope)}
        for _ in range(numbers.whole("the number of weights")):
            t = place.get(numbers.whole("a variable of the scope"))
            if t is None:
                raise numbers.fail(numbers.at - 1, "a variable of the scope")
            _weigh(numbers, found.weights[t])
        return
    for row in found.weights:
        if found.name == "knapsack":
            row[1:2] = [numbers.whole("a weight", -(2**40), 2**40)][: len(row) - 1]
            continue
        for _ in range(numbers.whole("the number of weights of a variable", 0, len(row))):
            _weigh(numbers, row)


def _hard_counts(numbers: Numbers, found: Global) -> None:
    """Read the ranges of counts of `gcc`; or of `clique` a limit and values of each variable."""
    if found.name == "gcc":
        _parameters(numbers, found)
        return
    found.capacity = numbers.whole("how many variables may have their values")
    for d in found.sizes:
        count = numbers.whole("the number of values of a variable", 0, d)
        found.weights.append(numbers.wholes(count, "values", 0, d - 1).tolist())


def _weigh(numbers: Numbers, row: list[int]) -> None:
    value = numbers.whole("a value", 0, len(row) - 1)
    row[value] = numbers.whole("a weight", -(2**40), 2**40)


def _parameters(numbers: Numbers, found: Global) -> None:
    k, d = len(found.scope), max(found.sizes)
    if found.name in ("gcc", "sgcc", "sgccdp", "wgcc"):
        for _ in range(numbers.whole("the number of values", 0, d)):
            row = [numbers.whole("a value", 0, d - 1)]
            row += [numbers.whole("a bound of a count") for _ in range(2)]
            if found.metric == "wdec":
                row += [numbers.whole("a cost", 0, 2**200) for _ in range(2)]
            found.bounds.append([float(x) for x in row])
    elif "among" in found.name:
        bounds = [] if found.name == "wamong" else _bounds(numbers)
        count = numbers.whole("the number of values", 0, d)
        found.values = numbers.wholes(count, "values", 0, d - 1).tolist()
        found.bounds = [bounds or _bounds(numbers)]
    elif found.name == "ssame":
        counts = [numbers.whole("the length of a list", 1, k) for _ in range(2)]
        found.parts = _lists(numbers, found, counts)
    elif "regular" in found.name:
        _automaton(numbers, found)


def _bounds(numbers: Numbers) -> list[float]:
    return [float(numbers.whole("a bound of a count")) for _ in range(2)]


def _lists(numbers: Numbers, found: Global, counts: list[int]) -> tuple[list[int], list[int]]:
    lists = [numbers.wholes(c, "variables", 0, 2**31 - 1).tolist() for c in counts]
    if counts[0] != counts[1] or sorted(lists[0] + lists[1]) != sorted(found.scope):
        raise numbers.fail(numbers.at - 1, "two lists of the same length, of all variables")
    return lists[0], lists[1]


def _automaton(numbers: Numbers, found: Global) -> None:
    found.states = numbers.whole("the number of states", 1, 2**15)
    last = found.states - 1
    count = numbers.whole("the number of initial states", 0, found.states)
    found.starts = numbers.wholes(count, "initial states", 0, last).tolist()
    count = numbers.whole("the number of final states", 0, found.states)
    found.ends = numbers.wholes(count, "final states", 0, last).tolist()
    count = numbers.whole("the number of transitions")
    for _ in range(count):
        state, value, after = numbers.wholes(3, "numbers of a transition").tolist()
        if max(state, after) > last:
            raise numbers.fail(numbers.at - 1, f"states below {found.states}")
        found.transitions.append([state, value, after])


# --- writing ------------------------------------------------------------------------------------


def format_wcsp(model: Model, *, scale: float = 1.0) -> Iterator[str]:
    """Yield the text of a WCSP file, in pieces.

    The format has only non-negative integers. Tables are shifted to a minimum of zero; the sum of
    the shifts becomes a function without variables, which must not be negative.
    """
    scale = scale_factor(scale)
    factors = factors_of(model, zeros=False)
    tables: list[Costs] = []
    rest = factors.constant * scale
    top = 1.0
    for table in factors.tables:
        costs = table * scale
        finite = costs[np.isfinite(costs)]
        least = float(finite.min()) if finite.size else 0.0
        if least < 0:
            costs, rest = costs - least, rest + least
            finite = finite - least
        top += float(finite.max()) if finite.size else 0.0
        tables.append(costs)
    _require_whole([np.array([rest]), *tables], top + rest)
    top += rest
    count = len(tables) + 1
    counts = model.num_labels[: model.num_variables].tolist()
    yield f"softmap {len(counts)} {max(counts)} {count} {int(top)}\n"
    yield " ".join(map(str, counts)) + f"\n0 {int(rest)} 0\n"
    for scope, costs in zip(factors.scopes, tables, strict=True):
        yield _function_text(scope, costs, top)


def _require_whole(tables: list[Costs], top: float) -> None:
    for costs in tables:
        finite = costs[np.isfinite(costs)]
        if (np.round(finite) != finite).any():
            raise ModelError(
                "WCSP holds whole costs only: give a scale that makes them whole, "
                "or write .cfn or .uai.LG instead"
            )
    if tables[0][0] < 0:
        raise ModelError(
            f"WCSP holds no negative costs, but the least possible sum is {tables[0][0]:g}: "
            "write .cfn or .uai.LG instead"
        )
    if top > LARGEST:
        raise ModelError("the costs are too large for the whole numbers of WCSP")


def _function_text(scope: tuple[int, ...], costs: Costs, top: float) -> str:
    """Return the text of a function: the most frequent cost as default, the others as tuples."""
    whole = np.where(np.isfinite(costs), costs, top).astype(np.int64)
    values, counts = np.unique(whole, return_counts=True)
    default = int(values[np.argmax(counts)])
    where = np.argwhere(whole != default)
    rows = np.column_stack([where, whole[tuple(where.T)]]).tolist()
    head = " ".join(map(str, (len(scope), *scope, default, len(rows))))
    return head + "\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows)
