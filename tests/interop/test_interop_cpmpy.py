"""CPMpy's models, solved by softmap, against enumeration with CPMpy's own values."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest

import softmap

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ours = pytest.importorskip(
        "softmap.interop.cpmpy", reason="CPMpy cannot be imported here", exc_type=ImportError
    )
    import cpmpy as cp
    from cpmpy.exceptions import NotSupportedError
    from cpmpy.expressions.utils import argval

from softmap.interop import cpmpy_factors

TINY = replace(cpmpy_factors.LIMITS, small_table=1, table_states=1)  # all factors, no tables


def parts(rng, x, b):
    """Random constraints of all the forms that have a factor, and some that have none."""
    w = [int(k) for k in rng.integers(-3, 4, len(x))]
    target = int(rng.integers(-2, 9))
    sums = cp.sum(weight * v for weight, v in zip(w, x, strict=True))
    rows = [[int(k) for k in rng.integers(0, 4, 3)] for _ in range(9)]
    i = [int(k) for k in rng.permutation(len(x))]
    return [
        cp.AllDifferent(x[i[0]], x[i[1]] + 1, x[i[2]] - 1),
        cp.AllDifferent(x[:3]),
        cp.AllDifferent(x[0], 2, x[1], x[0] + x[2]),
        cp.Table([x[0], 1, x[2], x[2]], [[*row, row[2]] for row in rows]),
        cp.Table([x[i[0]], x[i[1]], x[i[2]]], rows),
        sums <= target,
        sums != target,
        b[0].implies(sums >= 2),
        (x[i[0]] + x[i[1]] == x[i[2]]) == b[1],
        b[0] | ~b[1] | (x[i[0]] > 1),
        cp.Element([3, 1, 0, 2], x[i[0]]) <= x[i[1]] + x[i[3]],
        cp.Element(list(x[:3]), x[i[3]]) != 1,
        cp.max(x) - x[0] >= cp.min(x[1:]),
        (x[0] // x[1]) + abs(x[2] - x[3]) >= 1,
        cp.Count(x, 2) <= 2,
        cp.Xor([b[0], b[1], x[0] == 1]),
    ]


def best_value(model, names):
    """The best value of the objective over all values, None without a feasible one."""
    values = []
    for chosen in itertools.product(*(range(int(v.lb), int(v.ub) + 1) for v in names)):
        for v, value in zip(names, chosen, strict=True):
            v._value = bool(value) if v.is_bool() else value
        if all(argval(c) for c in model.constraints):
            values.append(model.objective_.value())
    pick = min if model.objective_is_min else max
    return pick(values) if values else None


@pytest.mark.parametrize("limits", [cpmpy_factors.LIMITS, TINY], ids=["tables", "factors"])
@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_enumeration(seed, limits, monkeypatch):
    for module in (cpmpy_factors, ours):
        monkeypatch.setattr(module, "LIMITS", limits)
    rng = np.random.default_rng(seed)
    x = cp.intvar(0, 3, shape=4, name=f"x{seed}{limits is TINY}")
    b = cp.boolvar(shape=2, name=f"b{seed}{limits is TINY}")
    every = parts(rng, x, b)
    chosen = [every[k] for k in rng.choice(len(every), 5, replace=False)]
    objective = 2 * cp.sum(x) - 3 * (x[0] != x[1]) + x[1] * x[2] - 4 * b[0] + abs(x[3] - 1)
    for sense in ("minimize", "maximize"):
        model = cp.Model(chosen, **{sense: objective})
        expected = best_value(model, [*x, *b])
        solver = ours.CPM_softmap(model)
        assert solver.solve() == (expected is not None)
        if expected is None:
            assert solver.status().exitstatus.name == "UNSATISFIABLE"
            continue
        assert all(argval(c) for c in chosen)
        assert solver.objective_value() == expected
        assert solver.status().exitstatus.name == "OPTIMAL"
        beyond = solver.objective_bound() - expected
        assert beyond <= 1e-6 if sense == "minimize" else beyond >= -1e-6


def test_queens_have_no_auxiliary_variables_and_are_listed():
    q = cp.intvar(0, 5, shape=6, name="queen")
    rules = [cp.AllDifferent(q), cp.AllDifferent(q + range(6)), cp.AllDifferent(q - range(6))]
    ours.register()
    ours.register()  # once is enough
    seen = []
    assert cp.Model(rules).solveAll(solver="softmap", display=lambda: seen.append(q.value())) == 4
    assert len({tuple(row) for row in seen}) == 4
    assert ours.CPM_softmap(cp.Model(rules)).native_model.num_visible == 6


def test_a_larger_sum_is_one_factor():
    x = cp.intvar(1, 9, shape=12, name="large")
    model = cp.Model(cp.sum(x) == 50, x[0] != x[11], maximize=cp.sum(range(12) * x))
    solver = ours.CPM_softmap(model)
    assert solver.solve()
    assert solver.objective_value() == best_of_sum()
    assert solver.status().exitstatus.name == "OPTIMAL"


def best_of_sum():
    """All ones, then the largest weights first, up to nine each."""
    left, values = 50 - 12, [1] * 12
    for k in reversed(range(12)):
        values[k] += min(8, left)
        left -= values[k] - 1
    return sum(k * v for k, v in enumerate(values))


def test_what_does_not_fit_is_refused():
    huge = cp.intvar(0, 10**7, name="huge")
    with pytest.raises(NotSupportedError, match="huge has 10000001 values"):
        ours.CPM_softmap(cp.Model(huge > 3))
    u, v = cp.intvar(0, 20, shape=2, name="wide")
    with pytest.raises(ValueError, match="time_limit"):
        ours.CPM_softmap(cp.Model(u < v)).solve(time_limit=0)


def test_contradictions_are_seen_when_solving():
    x = cp.intvar(0, 3, name="small")
    for rule in (cp.BoolVal(False), cp.Table([x], [[7]]), [x < 1, x > 2]):
        solver = ours.CPM_softmap(cp.Model(rule))
        assert not solver.solve()
        assert solver.status().exitstatus.name == "UNSATISFIABLE"
        assert solver.objective_bound() is None
    assert softmap.__version__ == ours.CPM_softmap.version()
