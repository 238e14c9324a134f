"""Global cost functions in WCSP files: words among the numbers, and the numbers after them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from softmap.errors import FormatError, ModelError
from softmap.io.global_costs import GLOBALS, METRICS, Global, factors_of_global
from softmap.io.streams import Content
from softmap.io.tokens import Numbers, quote
from softmap.model.many import Many

__all__ = ["read_global", "words_as_numbers"]

_WORD = re.compile(rb"(?<![^\s])[A-Za-z][A-Za-z_]*+(?![^\s])")
_FIRST = 1 << 20  # the first word is minus this number, the next ones follow
_WORDS = (*GLOBALS, *METRICS)
_CODES = {word.encode(): b"%d" % -(_FIRST + k) for k, word in enumerate(_WORDS)}
_MOST = 2**200
_HEAVIEST = 2**40


def words_as_numbers(content: Content, start: int) -> Content:
    """The same text with a number for each word that is known; others are refused."""
    if _WORD.search(content.data, start) is None:
        return content

    def coded(match: re.Match[bytes]) -> bytes:
        if match.group() in (b"inf", b"nan", b"infinity"):
            return match.group()
        if match.group() not in _CODES:
            known = ", ".join(GLOBALS)
            message = f"expected a number or one of {known}, found {quote(match.group())}"
            line = content.data.count(b"\n", 0, start + match.start()) + 1
            raise FormatError(message, content.name, line, expected=known)
        return _CODES[match.group()]

    inner = Content(content.data[:start] + _WORD.sub(coded, content.data[start:]), content.name)
    inner.size = content.size
    return inner


def read_global(
    numbers: Numbers, scope: Sequence[int], sizes: Sequence[int], top: float
) -> tuple[Global, list[Many]]:
    """The cost function that follows `-1`, and its factors."""
    at = numbers.at
    found = Global(_word(numbers, tuple(GLOBALS), "a global cost function"), scope, sizes)
    if found.name.startswith("knapsack"):
        _knapsack(numbers, found)
    else:
        if found.name != "ssame":
            found.metric = _word(numbers, METRICS, f"how {found.name} is measured")
        found.cost = float(numbers.whole("a cost", 0, _MOST))
        _parameters(numbers, found)
    try:
        return found, factors_of_global(found, top)
    except ModelError as error:
        raise FormatError(str(error), numbers.content.name, numbers.line(at)) from error


def _word(numbers: Numbers, words: tuple[str, ...], what: str) -> str:
    code = -float(numbers.values[numbers.at]) - _FIRST if numbers.left else -1.0
    known = 0 <= code < len(_WORDS) and _WORDS[int(code)] in words  # code may be infinite
    if not known:
        raise numbers.fail(numbers.at, f"{what} ({', '.join(words)})")
    numbers.at += 1
    return _WORDS[int(code)]


def _knapsack(numbers: Numbers, found: Global) -> None:
    """A weight of label 1 of each variable; or of labels of each in turn; or of any of them."""
    found.capacity = numbers.whole("a capacity", -_MOST, _MOST)
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
            row[1:2] = [numbers.whole("a weight", -_HEAVIEST, _HEAVIEST)][: len(row) - 1]
            continue
        for _ in range(numbers.whole("the number of weights of a variable", 0, len(row))):
            _weigh(numbers, row)


def _weigh(numbers: Numbers, row: list[int]) -> None:
    value = numbers.whole("a value", 0, len(row) - 1)
    row[value] = numbers.whole("a weight", -_HEAVIEST, _HEAVIEST)


def _parameters(numbers: Numbers, found: Global) -> None:
    k, d = len(found.scope), max(found.sizes)
    if found.name in ("sgcc", "sgccdp", "wgcc"):
        for _ in range(numbers.whole("the number of values", 0, d)):
            row = [numbers.whole("a value", 0, d - 1)]
            row += [numbers.whole("a bound of a count") for _ in range(2)]
            if found.metric == "wdec":
                row += [numbers.whole("a cost", 0, _MOST) for _ in range(2)]
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
