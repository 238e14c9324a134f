"""Global cost functions of WCSP and CFN files: what they cost, and what toulbar2 makes of them.

Each function is written down with random parameters and compared, on all labellings, with its
definition in plain Python.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given, settings

import softmap
from softmap.io.formats import FORMATS
from support.files import damaged

parse_cfn, parse_wcsp = FORMATS["cfn"].parse, FORMATS["wcsp"].parse

INF = math.inf
N, D, TOP = 4, 3, 1000
EVERY = np.array(list(itertools.product(range(D), repeat=N)))


@dataclass
class Case:
    """A function in the words of WCSP, its name and parameters in CFN, and its cost."""

    words: str
    cost: object
    name: str = ""
    params: dict[str, object] = field(default_factory=dict)

    def cfn(self) -> str:
        """The function as CFN writes it."""
        return f"type: {self.name or self.words.split()[0]} params: {_brackets(self.params)}"


def _brackets(value):
    if isinstance(value, dict):
        return "{" + " ".join(f"{k}: {_brackets(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + " ".join(_brackets(v) for v in value) + "]"
    return str(value)


def _flat(rows):
    return f"{len(rows)} " + " ".join(" ".join(map(str, np.ravel(row).tolist())) for row in rows)


def _away(count, low, high):
    return max(0, low - count, count - high)


def _measured(metric, cost, away):
    return 0 if not away else cost * {"hard": 1, "quad": away**2}.get(metric, away)


def _pick(rng, *words):
    return str(rng.choice(words))


def _metric(rng, *words):
    metric, cost = _pick(rng, *words), int(rng.integers(1, 9))
    return metric, TOP if metric == "hard" and rng.integers(2) else cost


def _range(rng, most=N):
    return sorted(rng.integers(0, most + 1, 2).tolist())


def _values(rng):
    return rng.permutation(D)[: rng.integers(1, D)].tolist()


def _alldiff(name, *metrics):
    def case(rng):
        metric, cost = _metric(rng, *metrics)

        def price(x):
            if metric.startswith("dec"):
                return cost * sum(a == b for a, b in itertools.combinations(x, 2))
            return sum(_measured(metric, cost, max(0, x.count(v) - 1)) for v in range(D))

        return Case(f"{name} {metric} {cost}", price, "", {"metric": metric, "cost": cost})

    return case


def _gcc(name, *metrics):
    def case(rng):
        metric, cost = _metric(rng, *metrics)
        rows = [[v, *_range(rng)] for v in sorted(_values(rng))]
        if metric == "wdec":
            rows = [[*row, *rng.integers(0, 9, 2).tolist()] for row in rows]

        def price(x):
            if metric == "wdec":
                parts = [(x.count(v), *row) for v, *row in rows]
                return sum(a * max(0, m - c) + b * max(0, c - h) for c, m, h, a, b in parts)
            if name == "sgcc" and metric == "var":
                short = sum(max(0, low - x.count(v)) for v, low, _ in rows)
                return cost * max(short, sum(max(0, x.count(v) - high) for v, _, high in rows))
            return sum(_measured(metric, cost, _away(x.count(v), m, h)) for v, m, h in rows)

        if name == "sgcc" and metric == "var":  # some labelling must satisfy all bounds
            while sum(row[1] for row in rows) > N:
                rows = [[v, low // 2, high] for v, low, high in rows]
        params = {"metric": metric, "cost": cost, "bounds": rows}
        return Case(f"{name} {metric} {cost} {_flat(rows)}", price, "", params)

    return case


def _among(name):
    def case(rng):
        metric, cost = _metric(rng, *(("var",) if name[0] == "s" else ("lin", "quad", "hard")))
        values, (low, high) = _values(rng), _range(rng)
        ends, inside = f"{low} {high}", _flat(values)
        words = f"{ends} {inside}" if name[0] == "s" else f"{inside} {ends}"
        params = {"metric": metric, "cost": cost, "min": low, "max": high, "values": values}
        if name[0] == "w":
            params = {k: params[k] for k in ("metric", "cost", "values", "min", "max")}
        return Case(
            f"{name} {metric} {cost} {words}",
            lambda x: _measured(metric, cost, _away(sum(y in values for y in x), low, high)),
            "",
            params,
        )

    return case


def _count_in_last(rng):
    values = _values(rng)
    return Case(
        f"wvaramong hard {TOP} {_flat(values)}",
        lambda x: 0 if sum(y in values for y in x[:-1]) == x[-1] else INF,
        "",
        {"metric": "hard", "cost": TOP, "values": values},
    )


def _same(name):
    def case(rng):
        metric, cost = _metric(rng, "lin", "quad", "hard") if name == "wsame" else ("lin", 4)
        half = 0.5 if name == "ssame" else 1
        bounds = [[v, *_range(rng, 2)] for v in _values(rng)]

        def price(x):
            one, other = x[: N // 2], x[N // 2 :]
            gaps = [abs(one.count(v) - other.count(v)) for v in range(D)]
            if name == "wsamegcc":
                gaps += [_away(p.count(v), low, h) for p in (one, other) for v, low, h in bounds]
            return half * sum(_measured(metric, cost, gap) for gap in gaps)

        if name == "ssame":
            lists = {"cost": cost, "vars1": ["v0", "v1"], "vars2": ["v2", "v3"]}
            return Case(f"ssame {cost} 2 2 0 1 2 3", price, "", lists)
        more = {"bounds": bounds} if name == "wsamegcc" else {}
        words = f"{name} {metric} {cost}" + (f" {_flat(bounds)}" if more else "")
        return Case(words, price, "", {"metric": metric, "cost": cost, **more})

    return case


def _knapsack(name):
    def case(rng):
        weights = rng.integers(-3, 7, (N, D)) * (rng.random((N, D)) < 0.6)
        if name == "knapsack":
            weights = np.outer(rng.integers(-3, 7, N), [0, 1, 0])
        rows = [[t, x, int(w)] for (t, x), w in np.ndenumerate(weights) if w]
        capacity = int(weights.max(axis=1).sum()) // 2
        own = [[row[1:] for row in rows if row[0] == t] for t in range(N)]
        words = {
            "knapsack": " ".join(map(str, weights[:, 1])),
            "knapsackp": " ".join(map(_flat, own)),
            "knapsackv": _flat(rows),
        }[name]
        params = {"capacity": capacity}
        if name == "knapsack":
            params["weights"] = weights[:, 1].tolist()
        else:
            params["weightedvalues"] = [[f"v{t}", x, w] for t, x, w in rows]
        return Case(
            f"{name} {capacity} {words}",
            lambda x: 0 if sum(weights[t, y] for t, y in enumerate(x)) >= capacity else INF,
            name.replace("knapsackp", "knapsackv"),
            params,
        )

    return case


def _automaton(rng, states):
    count = int(rng.integers(4, 9))
    rows = np.column_stack([rng.integers(0, n, count) for n in (states, D, states)])
    return np.unique(rows, axis=0).tolist()


def _regular(rng):
    """The least cost over all runs, of one wrong label or forbidden."""
    states, cost = 3, _pick(rng, 5, TOP)
    arcs, ends = _automaton(rng, 3), [0, 2]

    def price(x):
        best = {0: 0}
        for y in x:
            after = {}
            for s, v, e in arcs:
                if s in best:
                    total = best[s] + (int(cost) if v != y else 0)
                    after[e] = min(after.get(e, INF), total)
            best = after
        return min((c for s, c in best.items() if s in ends), default=INF)

    params = {"metric": "var", "cost": cost, "nb_states": states, "starts": [0], "ends": ends}
    words = f"sregular var {cost} {states} 1 0 {_flat(ends)} {_flat(arcs)}"
    return Case(words, price, "", params | {"transitions": arcs})


def _weighted_regular(rng):
    arcs = [[*row, int(rng.integers(0, 9))] for row in _automaton(rng, 3)]
    starts, ends = [[0, 1], [1, 0]], [[0, 0], [1, 2], [2, 3]]

    def price(x):
        best = dict(starts)
        for y in x:
            moves = [(e, best[s] + c) for s, v, e, c in arcs if v == y and s in best]
            best = {e: min(c for f, c in moves if f == e) for e, _ in moves}
        return min((c + dict(ends)[s] for s, c in best.items()), default=INF)

    params = {"nb_states": 3, "starts": starts, "ends": ends, "transitions": arcs}
    return Case(f"wregular 3 {_flat(starts)} {_flat(ends)} {_flat(arcs)}", price, "", params)


def _grammar(rng):
    """Pairs of brackets 0 and 1; other labels cost, and rules if they have weights."""
    weight = bool(rng.integers(2))
    ends, pairs = [[1, 0], [3, 1]], [[0, 0, 0], [0, 1, 2], [0, 1, 3], [2, 0, 3]]
    if weight:
        ends, pairs = ([[*row, int(rng.integers(0, 5))] for row in rows] for rows in (ends, pairs))

    def parse(symbol, x):
        wrong = INF if weight else 6
        if len(x) == 1:
            own = [(r[1] != x[0] and wrong) + sum(r[2:]) for r in ends if r[0] == symbol]
            return min(own, default=INF)
        cuts = itertools.product([r for r in pairs if r[0] == symbol], range(1, len(x)))
        return min(
            (parse(r[1], x[:c]) + parse(r[2], x[c:]) + sum(r[3:]) for r, c in cuts), default=INF
        )

    metric = "weight" if weight else "var"
    words = [*((2 * weight, *r) for r in ends), *((2 * weight + 1, *r) for r in pairs)]
    head = {"metric": metric, "cost": 6, "nb_symbols": 4, "nb_values": 2, "start": 0}
    params = head | {"terminals": ends, "non_terminals": pairs}
    rules = " ".join(" ".join(map(str, row)) for row in words)
    return Case(
        f"sgrammardp {metric} 6 4 2 0 {len(words)} {rules}", lambda x: parse(0, x), "", params
    )


def _max(rng):
    rows = [[t, int(rng.integers(D)), int(rng.integers(0, 9))] for t in range(N)]
    known = {(t, v): c for t, v, c in rows}
    return Case(
        f"smaxdp 3 {_flat(rows)}",
        lambda x: max(known.get(pair, 3) for pair in enumerate(x)),
        "",
        {"defaultcost": 3, "tuples": rows},
    )


def _gap(total, comparator, to):
    return {
        "==": abs(total - to), "!=": int(total == to), "<": max(0, total - to + 1),
        "<=": max(0, total - to), ">": max(0, to - total + 1), ">=": max(0, to - total),
    }[comparator]  # fmt: skip


def _compared(name, least, total):
    def case(rng):
        metric, cost = _metric(rng, "hard", "lin", "quad")
        comparator, to = _pick(rng, "==", "!=", "<", "<=", ">", ">="), int(rng.integers(1, 4))
        if name == "wvarsum":
            metric, cost, to = "hard", TOP, 0
        words = f"{name} {metric} {cost} {comparator}" + (f" {to}" * (name != "wvarsum"))
        params = {"metric": metric, "cost": cost, "comparator": f'"{comparator}"', "to": to}
        if name == "wvarsum":
            del params["to"]
        return Case(
            words, lambda x: _measured(metric, cost, _gap(total(x), comparator, to)), "", params
        )

    return case


def _diverse(name):
    def case(rng):
        values, distance = rng.integers(0, D, N).tolist(), int(rng.integers(1, N + 1))
        return Case(
            f"{name} {distance} " + " ".join(map(str, values)),
            lambda x: 0 if sum(a != b for a, b in zip(x, values, strict=True)) >= distance else INF,
            "",
            {"distance": distance, "values": values},
        )

    return case


def _embedded(rng):
    """The energy of a network of its own lies in a range."""
    table, own = rng.integers(0, 5, (D, D)), rng.integers(0, 5, (N, D))
    low, high = int(rng.integers(2, 6)), int(rng.integers(7, 12))

    def price(x):
        energy = table[x[0], x[2]] + sum(row[y] for row, y in zip(own, x, strict=True))
        return 0 if low <= energy < high else INF

    rows = [f"1 {t} 0 {D} " + " ".join(f"{v} {c}" for v, c in enumerate(own[t])) for t in range(N)]
    pairs = " ".join(f"{a} {b} {c}" for (a, b), c in np.ndenumerate(table))
    inner = f"inner-1 {N} {D} {N + 1} {TOP} {' '.join([str(D)] * N)} {' '.join(rows)}"
    functions = {f"u{t}": {"scope": [f"v{t}"], "costs": own[t].tolist()} for t in range(N)}
    functions["p"] = {"scope": ["v0", "v2"], "costs": table.ravel().tolist()}
    problem = {"name": "inner", "mustbe": f'"<{TOP}"'}
    network = {"problem": problem, "variables": {f"v{t}": D for t in range(N)}}
    ends = {"lb": low, "ub": high, "duplicatehard": 0, "strongduality": 0}
    params = {"cfn": network | {"functions": functions}, **ends}
    words = f"wcsp {low} {high} 0 0 {inner} 2 0 2 0 {D * D} {pairs}"
    return Case(words, price, "cfnconstraint", params)


def _hard_gcc(rng):
    rows = [[v, *_range(rng)] for v in sorted(_values(rng))]
    while sum(row[1] for row in rows) > N:
        rows = [[v, low // 2, high] for v, low, high in rows]

    def price(x):
        return INF if any(_away(x.count(v), low, high) for v, low, high in rows) else 0

    end = _pick(rng, "", " 0")
    return Case(f"gcc {_flat(rows)}{end}", price, "", {"bounds": rows, "deltacosts": []})


def _hard_alldiff(rng):
    free = _values(rng)
    return Case(
        f"alldiff {_flat(free)}" + _pick(rng, "", " 0"),
        lambda x: INF if any(x.count(v) > 1 for v in range(D) if v not in free) else 0,
        "",
        {"exceptedvalues": free, "deltacosts": []},
    )


def _clique(rng):
    own = [_values(rng) for _ in range(N)]
    return Case(
        "clique 1 " + " ".join(map(_flat, own)),
        lambda x: INF if sum(y in row for y, row in zip(x, own, strict=True)) > 1 else 0,
        "",
        {"rhs": 1, "values": own},
    )


CASES = {
    **{name: _alldiff(name, "var") for name in ("salldiffdp",)},
    "salldiff": _alldiff("salldiff", "var", "dec", "decbi"),
    "walldiff": _alldiff("walldiff", "lin", "quad", "hard"),
    "sgcc": _gcc("sgcc", "var", "dec", "wdec"), "sgccdp": _gcc("sgccdp", "var"),
    "wgcc": _gcc("wgcc", "lin", "quad", "hard"),
    **{name: _among(name) for name in ("samong", "samongdp", "wamong")},
    "wvaramong": _count_in_last, "gcc": _hard_gcc, "alldiff": _hard_alldiff, "clique": _clique,
    **{name: _same(name) for name in ("ssame", "wsame", "wsamegcc")},
    **{name: _knapsack(name) for name in ("knapsack", "knapsackp", "knapsackv")},
    "sregular": _regular, "wregular": _weighted_regular, "sgrammardp": _grammar, "smaxdp": _max,
    "wsum": _compared("wsum", 0, sum),
    "wvarsum": _compared("wvarsum", 0, lambda x: sum(x[:-1]) - x[-1]),
    "woverlap": _compared("woverlap", 0, lambda x: sum(0 < x[t] == x[t + 2] for t in (0, 1))),
    **{name: _diverse(name) for name in ("wdiverse", "whdiverse", "wtdiverse")},
    "wcsp": _embedded,
}  # fmt: skip


def _instance(name, seed):
    rng = np.random.default_rng([seed, sum(name.encode())])
    case, unary = CASES[name](rng), rng.integers(0, 12, (N, D)).tolist()
    if name == "knapsack":  # which is for two labels
        unary = [[*row[:2], TOP] for row in unary]
    return case, unary, (_wcsp(case, unary), _cfn(case, unary))


def _wcsp(case, unary):
    rows = [
        f"1 {i} 0 {D}\n" + "".join(f"{x} {c}\n" for x, c in enumerate(row))
        for i, row in enumerate(unary)
    ]
    scope = f"{N} " + " ".join(map(str, range(N)))
    head = f"toy {N} {D} {N + 1} {TOP}\n" + " ".join([str(D)] * N) + "\n"
    return (head + f"{scope} -1 {case.words}\n" + "".join(rows)).encode()


def _cfn(case, unary):
    variables = ", ".join(f"v{i}: {D}" for i in range(N))
    rows = ", ".join(f"u{i}: {{scope: [v{i}], costs: {row}}}" for i, row in enumerate(unary))
    scope = " ".join(f"v{i}" for i in range(N))
    return (
        f'{{problem: {{name: toy, mustbe: "<{TOP}"}},\nvariables: {{{variables}}},\n'
        f"functions: {{{rows}, g: {{scope: [{scope}] {case.cfn()}}}}}}}"
    ).encode()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_they_cost_what_they_mean(name, seed):
    case, unary, (wcsp, cfn) = _instance(name, seed)
    expected = []
    for x in EVERY.tolist():
        parts = [*(row[y] for row, y in zip(unary, x, strict=True)), case.cost(x)]
        expected.append(INF if max(parts) >= TOP else sum(parts))
    for model in (parse_wcsp(wcsp), parse_cfn(cfn)):
        assert model.network.num_visible == N
        assert model.energy(EVERY).tolist() == pytest.approx(expected)


COMPARED = {
    ">= 1 2": lambda x, y: _soft(y + 1 - x, 2),
    "> 0 1": lambda x, y: _soft(y + 1 - x, 1),
    "<= -1 3": lambda x, y: _soft(x + 1 - y, 3),
    "< 2 0": lambda x, y: _soft(x - 1 - y, 0),
    "= 1 1": lambda x, y: _soft(abs(y + 1 - x), 1),
    "disj 2 1 7": lambda x, y: 0 if x >= y + 1 or y >= x + 2 else 7,
    "sdisj 2 1 3 2 5 6": lambda x, y: (
        5 * (x == 3) + 6 * (y == 2) if x == 3 or y == 2 or x >= y + 1 or y >= x + 2 else INF
    ),
}


def _soft(violation, most):
    return INF if violation > most else max(violation, 0)


@pytest.mark.parametrize("words", COMPARED)
def test_arithmetic_between_two_variables(words):
    name, _, rest = words.partition(" ")
    cfn = f"functions: {{f: {{scope: [0 1] type: {name} params: [{rest}]}}}}}}"
    models = (
        parse_wcsp(f"toy 2 4 1 100\n-4 -3\n2 0 1 -1 {words}\n".encode()),  # intervals
        parse_cfn(f'{{problem: {{name: toy mustbe: "<100"}} variables: [4 3] {cfn}'.encode()),
    )
    for x, y in itertools.product(range(4), range(3)):
        assert [model.energy([x, y]) for model in models] == [COMPARED[words](x, y)] * 2
    with pytest.raises(softmap.FormatError, match="line 3: expected two variables"):
        parse_wcsp(f"toy 3 4 1 100\n4 3 2\n3 0 1 2 -1 {words}\n".encode())


ORACLE = """
import os, signal, sys, pytoulbar2
for path in sys.argv[1:]:
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    signal.alarm(10)
    theirs = pytoulbar2.CFN(1000)
    theirs.Read(path)
    found = theirs.Solve()
    print("OPTIMUM", path, found[1] if found else "inf", flush=True)
    os._exit(0)
"""


RECENT = ("gcc", "knapsackv", "wcsp")  # which the command of Debian 12 does not know


def _by_command(path):
    """The optimum of the command `toulbar2`; None if it does not know the function."""
    done = subprocess.run(["toulbar2", path], capture_output=True, text=True, check=False)
    found = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("Optimum:")]
    return float(found[0]) if found else INF if "No solution" in done.stdout else None


def _by_package(paths):
    """The optima of pytoulbar2, one process for each file: some of its wheels crash on some."""
    command = [sys.executable, "-c", ORACLE, *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("OPTIMUM")]
    return {path: float(value) for _, path, value in lines}


@pytest.mark.parametrize("oracle", ["toulbar2", "pytoulbar2"])
def test_toulbar2_finds_the_same_optima(oracle, tmp_path):
    if oracle == "pytoulbar2":
        pytest.importorskip("pytoulbar2")
    elif shutil.which("toulbar2") is None:
        pytest.skip("toulbar2 is not installed")
    expected = {}
    for name in CASES if oracle == "toulbar2" else RECENT:
        files = _instance(name, 5)[2]
        for suffix, text in zip(("wcsp", "cfn"), files, strict=True):
            path = tmp_path / f"{name}.{suffix}"
            path.write_bytes(text)
            if oracle == "toulbar2" or suffix == "wcsp":
                expected[str(path)] = parse_wcsp(files[0]).energy(EVERY).min()
    if oracle == "pytoulbar2":
        found = _by_package(expected)
    else:
        found = {path: _by_command(path) for path in expected}
        found = {path: value for path, value in found.items() if value is not None}
    assert found == pytest.approx({path: expected[path] for path in found})
    assert found


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
    assert model.network.num_visible == n
    assert len(model.network.unary) < 40 * n * n
    assert model.energy(range(n)) == 0
    assert model.energy([0, *range(n - 1)]) == INF


REFUSED = {
    "4 0 1 2 3 -1 MST": "line 3: expected a number or one of .*'MST'",
    "4 0 1 2 3 -1 sregular edit 5 1 1 0 1 0 1 0 0 0": "line 3: sregular with 'edit'",
    "4 0 1 2 3 -1 wregular 1 1 0 0 1 0 0 1 0 0 7 0": "line 3: expected states below 1",
    "4 0 1 2 3 -1 alldiff 1 0 1 2 5": "line 3: alldiff with delta costs",
    "4 0 1 2 3 -1 sgcc var 5 2 0 3 3 1 3 3": "line 3: sgcc over 4 variables: no counts",
    "4 0 1 2 3 -1 wcsp 0 9 0 1 a 4 3 0 9 3 3 3 3": "line 3: wcsp with .*strong duality",
    "4 0 1 2 3 -1 wcsp 0 9 0 0 a 3 3 0 9 3 3 3": "line 3: expected a network over the variables",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused_is_named(words):
    with pytest.raises(softmap.FormatError, match=REFUSED[words]):
        parse_wcsp(f"toy 4 3 1 {TOP}\n3 3 3 3\n{words}\n".encode())


FILES = [_instance(name, 0)[2] for name in CASES]


@given(damaged([wcsp for wcsp, _ in FILES]))
@example(b"toy 2 2 1 9\n2 2\n2 0 1 -1 1e999 var 7\n")  # no name of a function, and infinite
@settings(max_examples=100)
def test_damaged_wcsp(text):
    with contextlib.suppress(softmap.SoftmapError):
        assert parse_wcsp(text).network.num_visible > 0


@given(damaged([cfn for _, cfn in FILES]))
@settings(max_examples=100)
def test_damaged_cfn(text):
    with contextlib.suppress(softmap.SoftmapError):
        assert parse_cfn(text).network.num_visible > 0
