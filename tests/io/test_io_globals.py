"""Global cost functions of WCSP and CFN files: what they cost, and what toulbar2 makes of them."""

from __future__ import annotations

import contextlib
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings

import softmap
from softmap.io.formats import FORMATS
from support.files import damaged

parse_cfn, parse_wcsp = FORMATS["cfn"].parse, FORMATS["wcsp"].parse

INF = math.inf
N, D, TOP = 5, 3, 1000


def _counts(x):
    return [sum(y == v for y in x) for v in range(D)]


def _changes(x):
    return sum(max(0, c - 1) for c in _counts(x))


def _outside(c, low, high):
    return max(0, low - c, c - high)


def _hard(broken):
    return INF if broken else 0


WEIGHTS = [1, 2, 3, 1, 2]
PAIRS = [[0, 3, 1], [2, 0, 0], [0, 0, 4], [1, 0, 2], [0, 5, 0]]


def _triples(form):
    rows = enumerate(PAIRS)
    return " ".join(form.format(i, x, w) for i, row in rows for x, w in enumerate(row) if w)


# a name: the words in WCSP, the parameters in CFN, the cost in plain words
CASES = {
    "salldiff": ("salldiff var 7", "salldiff {metric: var cost: 7}", lambda x: 7 * _changes(x)),
    "alldiff by pairs": (
        "salldiff dec 7",
        'salldiff {"metric": "dec", "cost": 7}',
        lambda x: 7 * sum(a == b for a, b in itertools.combinations(x, 2)),
    ),
    "walldiff": ("walldiff lin 3", "walldiff {metric: lin cost: 3}", lambda x: 3 * _changes(x)),
    "sgcc": (
        "sgcc dec 6 2 0 1 2 2 0 1",
        "sgcc {metric: dec cost: 6 bounds: [[0 1 2] [2 0 1]]}",
        lambda x: 6 * (_outside(_counts(x)[0], 1, 2) + _outside(_counts(x)[2], 0, 1)),
    ),
    "sgcc with weights": (
        "sgcc wdec 1 1 1 2 2 4 9",
        "sgcc {metric: wdec cost: 1 bounds: [[1 2 2 4 9]]}",
        lambda x: 4 * max(0, 2 - _counts(x)[1]) + 9 * max(0, _counts(x)[1] - 2),
    ),
    "hard sgcc": (
        f"sgcc var {TOP} 2 0 1 2 1 1 5",
        f"sgcc {{metric: var cost: {TOP} bounds: [[0 1 2] [1 1 5]]}}",
        lambda x: _hard(_outside(_counts(x)[0], 1, 2) + _outside(_counts(x)[1], 1, 5)),
    ),
    "samong": (
        "samong var 5 1 2 2 0 2",
        "samong {metric: var cost: 5 min: 1 max: 2 values: [0 2]}",
        lambda x: 5 * _outside(sum(y in (0, 2) for y in x), 1, 2),
    ),
    "wamong": (
        "wamong quad 2 1 0 1 1",
        "wamong {metric: quad cost: 2 values: [0] min: 1 max: 1}",
        lambda x: 2 * _outside(_counts(x)[0], 1, 1) ** 2,
    ),
    "knapsack": (
        "knapsack 6 " + " ".join(map(str, WEIGHTS)),
        "knapsack {capacity: 6 weights: [" + " ".join(map(str, WEIGHTS)) + "]}",
        lambda x: _hard(np.dot(WEIGHTS, [y == 1 for y in x]) < 6),
    ),
    "knapsackp": (
        "knapsackp 7 "
        + " ".join(
            f"{sum(w > 0 for w in row)} " + " ".join(f"{v} {w}" for v, w in enumerate(row) if w)
            for row in PAIRS
        ),
        "knapsackv {capacity: 7 weightedvalues: [" + _triples("[v{} {} {}]") + "]}",
        lambda x: _hard(sum(row[y] for row, y in zip(PAIRS, x, strict=True)) < 7),
    ),
    "knapsackv": (
        "knapsackv 7 7 " + _triples("{} {} {}"),
        "knapsackv {capacity: 7 weightedvalues: [" + _triples("[v{} {} {}]") + "]}",
        lambda x: _hard(sum(row[y] for row, y in zip(PAIRS, x, strict=True)) < 7),
    ),
    "sregular": (
        f"sregular var {TOP} 2 1 0 2 0 1 4 0 0 0 0 1 1 1 1 1 1 2 1",
        f"sregular {{metric: var cost: {TOP} nb_states: 2 starts: [0] ends: [0 1] "
        "transitions: [[0 0 0] [0 1 1] [1 1 1] [1 2 1]]}",
        lambda x: _hard(not _accepted(x)),
    ),
}


def _accepted(x):
    state = 0
    for y in x:
        state = {(0, 0): 0, (0, 1): 1, (1, 1): 1, (1, 2): 1}.get((state, y))
        if state is None:
            return False
    return True


def _wcsp(words, unary):
    rows = [
        f"1 {i} 0 {D}\n" + "".join(f"{x} {c}\n" for x, c in enumerate(row))
        for i, row in enumerate(unary)
    ]
    scope = f"{N} " + " ".join(map(str, range(N)))
    head = f"toy {N} {D} {N + 1} {TOP}\n" + " ".join([str(D)] * N) + "\n"
    return (head + "".join(rows) + f"{scope} -1 {words}\n").encode()


def _cfn(words, unary):
    name, _, params = words.partition(" ")
    variables = ", ".join(f"v{i}: {D}" for i in range(N))
    rows = ", ".join(f"u{i}: {{scope: [v{i}], costs: {row}}}" for i, row in enumerate(unary))
    scope = " ".join(f"v{i}" for i in range(N))
    function = f"g: {{scope: [{scope}] type: {name} params: {params}}}"
    return (
        f'{{problem: {{name: toy, mustbe: "<{TOP}"}},\nvariables: {{{variables}}},\n'
        f"functions: {{{rows}, {function}}}}}"
    ).encode()


def _unary(name):
    rng = np.random.default_rng(sum(name.encode()))
    return rng.integers(0, 12, (N, D)).tolist()


EVERY = np.array(list(itertools.product(range(D), repeat=N)))


@pytest.mark.parametrize("name", CASES)
def test_they_cost_what_they_mean(name):
    words, params, cost = CASES[name]
    unary = _unary(name)
    models = parse_wcsp(_wcsp(words, unary)), parse_cfn(_cfn(params, unary))
    expected = [sum(unary[i][y] for i, y in enumerate(x)) + cost(x.tolist()) for x in EVERY]
    for model in models:
        assert model.num_visible == N
        assert model.energy(EVERY).tolist() == pytest.approx(expected)


WCSP_ONLY = {
    "gcc 2 0 1 2 2 0 1": lambda x: _hard(
        _outside(_counts(x)[0], 1, 2) + _outside(_counts(x)[2], 0, 1)
    ),
    "clique 1 1 0 1 1 0 2 0 2 1 2": lambda x: _hard(
        sum(y in own for y, own in zip(x, [[0], [1], [], [0, 2], [2]], strict=True)) > 1
    ),
}


@pytest.mark.parametrize("words", WCSP_ONLY)
def test_words_of_wcsp_files_cost_what_they_mean(words):
    unary = _unary(words)
    model = parse_wcsp(_wcsp(words, unary))
    expected = [
        sum(unary[i][y] for i, y in enumerate(x)) + WCSP_ONLY[words](x.tolist()) for x in EVERY
    ]
    assert model.energy(EVERY).tolist() == pytest.approx(expected)


def _soft(violation, most):
    return INF if violation > most else max(violation, 0)


COMPARED = {
    ">= 1 2": lambda x, y: _soft(y + 1 - x, 2),
    "> 0 1": lambda x, y: _soft(y + 1 - x, 1),
    "<= -1 3": lambda x, y: _soft(x + 1 - y, 3),
    "< 2 0": lambda x, y: _soft(x - 1 - y, 0),
    "= 1 1": lambda x, y: _soft(abs(y + 1 - x), 1),
    "disj 2 1 7": lambda x, y: 0 if x >= y + 1 or y >= x + 2 else 7,
}


@pytest.mark.parametrize("words", COMPARED)
def test_arithmetic_between_two_variables(words):
    model = parse_wcsp(f"toy 2 4 1 100\n4 3\n2 0 1 -1 {words}\n".encode())
    for x, y in itertools.product(range(4), range(3)):
        assert model.energy([x, y]) == COMPARED[words](x, y)
    with pytest.raises(softmap.FormatError, match="line 3: expected two variables"):
        parse_wcsp(f"toy 3 4 1 100\n4 3 2\n3 0 1 2 -1 {words}\n".encode())


ORACLE = """
import sys, pytoulbar2
for path in sys.argv[1:]:
    theirs = pytoulbar2.CFN(1000)
    theirs.Read(path)
    found = theirs.Solve()
    print("OPTIMUM", found[1] if found else "inf")
"""


@pytest.mark.parametrize("suffix", ["wcsp", "cfn"])
def test_toulbar2_finds_the_same_optima(suffix, tmp_path):
    """In a process of its own, which reads one format only: it keeps what it has read before."""
    pytest.importorskip("pytoulbar2")
    expected, paths = [], []
    for number, (name, (words, params, _)) in enumerate(CASES.items()):
        unary = _unary(name)
        data = _wcsp(words, unary)
        expected.append(parse_wcsp(data).energy(EVERY).min())
        paths.append(tmp_path / f"{number}.{suffix}")
        paths[-1].write_bytes(data if suffix == "wcsp" else _cfn(params, unary))
    command = [sys.executable, "-c", ORACLE, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    found = [float(line.split()[1]) for line in done.stdout.splitlines() if "OPTIMUM" in line]
    assert found == pytest.approx(expected), done.stderr


def test_two_lists_are_a_permutation_of_each_other():
    head = b"toy 4 3 2 50\n3 3 3 3\n1 0 0 1\n2 5\n4 0 1 2 3 -1 ssame 4 2 2 0 1 2 3\n"
    model = parse_wcsp(head)
    for x in itertools.product(range(3), repeat=4):
        away = sum(abs(x[:2].count(v) - x[2:].count(v)) for v in range(3)) / 2
        assert model.energy(x) == 4 * away + 5 * (x[0] == 2)


def test_one_whose_last_variables_have_a_single_label():
    """What remains at the end of its chain is a cost of a running variable alone."""
    head = b"toy 10 2 1 9\n2 2 2 2 2 2 2 2 1 1\n10 0 1 2 3 4 5 6 7 8 9 -1 "
    model = parse_wcsp(head + b"samong var 9 3 3 1 1\n")
    assert model.energy([1, 1, 1, 0, 0, 0, 0, 0, 0, 0]) == 0
    assert model.energy([1, 1, 0, 0, 0, 0, 0, 0, 0, 0]) == INF


def test_a_large_one_has_no_table():
    n = 30
    scope = " ".join(map(str, range(n)))
    head = f"toy {n} {n} 1 9\n" + " ".join([str(n)] * n)
    model = parse_wcsp(f"{head}\n{n} {scope} -1 salldiff var 9\n".encode())
    assert model.num_visible == n
    assert len(model.unary) < 40 * n * n
    assert model.energy(range(n)) == 0
    assert model.energy([0, *range(n - 1)]) == INF


@given(damaged([_wcsp(words, _unary(name)) for name, (words, _, _) in CASES.items()]))
@example(b"toy 2 2 1 9\n2 2\n2 0 1 -1 1e999 var 7\n")  # no name of a function, and infinite
@settings(max_examples=150)
def test_damaged_wcsp(text):
    with contextlib.suppress(softmap.SoftmapError):
        assert parse_wcsp(text).num_visible > 0


@given(damaged([_cfn(params, _unary(name)) for name, (_, params, _) in CASES.items()]))
@settings(max_examples=150)
def test_damaged_cfn(text):
    with contextlib.suppress(softmap.SoftmapError):
        assert parse_cfn(text).num_visible > 0
