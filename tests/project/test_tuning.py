"""The numbers that steer a run: where they are, what they say, and that `tuning=` reaches them."""

from __future__ import annotations

import ast
import contextlib
import itertools
import re
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from benchmarks.numbers_page import PAGE, constants, fields_of_rooms, page
from benchmarks.tuning import changed_outside, groups

import softmap
from softmap import tuning
from softmap.drive.schedule import ScheduleNumbers
from softmap.labels.penalties import PenaltyNumbers
from softmap.labels.search import SearchEffort
from softmap.methods.policy import AnnealingRule, Checks
from softmap.methods.sweeps.anneal import AnnealNumbers
from softmap.methods.sweeps.chains import ChainNumbers
from softmap.run.options import Options
from softmap.subsolvers.clusters.cluster_numbers import ClusterSizes, TightenNumbers
from softmap.subsolvers.cores.cores import CoreNumbers
from softmap.subsolvers.labels.label_numbers import ExpansionNumbers, ObeyNumbers
from softmap.subsolvers.passes.pass_numbers import InteriorTimes, PassNumbers
from softmap.subsolvers.search.eliminate import EliminationNumbers
from softmap.subsolvers.search.search_numbers import SearchNumbers
from softmap.subsolvers.spins.spin_numbers import SpinNumbers
from softmap.tuning import Numbers, Tuning
from support.permutations import permutation_model

SOURCES = Path(softmap.__file__).parent
ON_A_DEVICE = {("DeviceNumbers", "frugal_states")}


# --- the page -------------------------------------------------------------------------------------


def test_the_page_of_numbers_says_what_the_sources_say():
    assert PAGE.read_text() == page(), "write it: python -m benchmarks.tuning --page"


def test_each_number_has_a_unit_a_meaning_and_an_origin():
    for number in (*fields_of_rooms(), *constants()):
        assert re.fullmatch(r"D\d+(, D\d+)*", number.origin), number
        assert re.search(r"[a-zA-Z]{3}", number.meaning), number
        assert number.value, number


def test_no_number_stands_for_others_that_are_computed_from_it():
    for number in fields_of_rooms():
        computed = r"likewise|half of|a fifth|a tenth|times as many|twice as many|its square"
        assert not re.search(computed, number.meaning), number


def test_the_page_has_all_fields_of_all_groups():
    named = [(each.group, each.name) for each in fields_of_rooms()]
    assert len(set(named)) == len(named)
    for name, kind in groups().items():
        assert [field for group, field in named if group == name] == [f.name for f in fields(kind)]
    assert set(groups().values()) == set(_subclasses(Numbers))


def _subclasses(kind):
    """The subclasses of the package; tests may have others."""
    return [each for each in kind.__subclasses__() if each.__module__.startswith("softmap.")]


def test_a_constant_is_multiplied_and_comes_back():
    for number in constants():
        if number.owner is None:
            continue
        before = getattr(number.owner, number.name)
        with changed_outside(number, 2.0):
            assert getattr(number.owner, number.name) == 2 * before
        assert getattr(number.owner, number.name) == before
    assert sum(number.owner is not None for number in constants()) > 50


# --- groups of changed numbers --------------------------------------------------------------------


def test_changed_groups_are_found_by_their_type():
    changed = SearchNumbers(fresh=0.25)
    numbers = Tuning(changed, PassNumbers())
    assert numbers.of(SearchNumbers) is changed
    assert numbers.of(PassNumbers) == PassNumbers()
    assert numbers.of(AnnealingRule) is Tuning().of(AnnealingRule)
    assert numbers == Tuning(SearchNumbers(fresh=0.25)) != Tuning()
    assert hash(numbers) == hash(Tuning(SearchNumbers(fresh=0.25)))
    assert repr(numbers) == "Tuning(SearchNumbers(fresh=0.25))"
    assert repr(Tuning()) == repr(Tuning(SearchNumbers())) == "Tuning()"
    with pytest.raises(AttributeError):
        numbers.groups = frozenset()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Tuning(0.5), "ScheduleNumbers"),
        (lambda: Tuning(SearchNumbers), "ScheduleNumbers"),
        (lambda: Tuning(Numbers()), "ScheduleNumbers"),
        (lambda: Tuning(SearchNumbers(), SearchNumbers(fresh=1.0)), "at most one SearchNumbers"),
        (lambda: SearchNumbers(fresh="much"), r"SearchNumbers\.fresh='much'"),
        (lambda: SearchNumbers(fresh=float("nan")), r"SearchNumbers\.fresh=nan"),
        (lambda: SearchNumbers(entries=None), r"SearchNumbers\.entries=None"),
        (lambda: Options(tuning=SearchNumbers()), "tuning="),
    ],
)
def test_wrong_numbers_are_named(wrong, said):
    with pytest.raises(softmap.OptionError, match=said):
        wrong()


# --- what a run reads -----------------------------------------------------------------------------


def test_no_module_makes_a_group_or_reads_a_default():
    """Beside the defaults of parameters: a run would not notice that its own numbers differ."""
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text())
        defaults = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.Lambda)
            for default in (*function.args.defaults, *function.args.kw_defaults)
            if default is not None
            for node in ast.walk(default)
        }
        for node in ast.walk(tree):
            made = isinstance(node, ast.Call) and _is_group(node.func)
            read = isinstance(node, ast.Attribute) and _is_group(node.value)
            assert not (made or read) or id(node) in defaults, f"{path}:{node.lineno}"


def _is_group(node):
    return isinstance(node, ast.Name) and node.id in groups()


class Read:
    """Which numbers runs read, and which of them came from the defaults.

    Attributes
    ----------
    numbers : set of (str, str)
        Groups and fields that were read from what the runs were given.
    defaults : list of str
        Groups of defaults that were asked for while a run was going on.
    """

    def __init__(self, monkeypatch):
        self.numbers, self.defaults = set(), []
        self._names = {name: {f.name for f in fields(kind)} for name, kind in groups().items()}
        self._patch = monkeypatch

    def during(self, model, changed=(), solve=softmap.solve, **options):
        """Solve a model with a group of each type of its own."""
        kinds = {type(group): group for group in changed}
        every = frozenset(kinds.get(kind) or kind() for kind in groups().values())
        whole = Tuning()
        object.__setattr__(whole, "groups", every)
        plain = tuning._default

        def default(kind):
            self.defaults.append(kind.__name__)
            return plain(kind)

        def read(group, name):
            known = self._names.get(type(group).__name__, ())
            # a changed copy of a group reads all of it
            if name in known and sys._getframe(1).f_globals["__name__"] != "dataclasses":
                self.numbers.add((type(group).__name__, name))
            return object.__getattribute__(group, name)

        with self._patch.context() as patched:
            patched.setattr(tuning, "_default", default)
            patched.setattr(Numbers, "__getattribute__", read, raising=False)
            return solve(model, tuning=whole, **options)


def _dense(labels, variables, seed=7):
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(variables), 2)))
    shape = (len(pairs), labels, labels)
    unary = rng.normal(size=(variables, labels))
    return softmap.Model(unary, pairs, softmap.Tables(rng.normal(size=shape)))


def _clauses(variables, clauses, hard=False):
    rng, factors = np.random.default_rng(5), []
    for _ in range(clauses):
        table = np.zeros((2, 2, 2))
        table[tuple(rng.integers(0, 2, 3))] = np.inf if hard else rng.integers(1, 9)
        factors.append((rng.choice(variables, 3, replace=False).tolist(), table))
    return softmap.Model.from_factors([2] * variables, factors)


def _quadratic(n, labels=None, shared=None):
    rng, d = np.random.default_rng(3), labels or n
    pairs = itertools.combinations(range(n), 2)
    tables = [(pair, 1.0 * rng.integers(0, 9, (d, d))) for pair in pairs]
    return permutation_model(n, d, tables, shared=shared)


def _pigeons(n):
    pairs = list(itertools.combinations(range(n), 2))
    apart = np.where(np.eye(n - 1), np.inf, 0.0)
    return softmap.Model(np.zeros((n, n - 1)), pairs, softmap.Tables([apart] * len(pairs)))


def _runs(tmp_path):
    """Models, changed groups and options that together read each number of a run on the CPU."""
    yield from _of_passes()
    yield from _of_searches(tmp_path)
    yield from _of_permutations(tmp_path)
    yield from _of_unsolved()


def _of_passes():
    small, lp = {"threads": 1}, {"threads": 1, "goal": "lp", "lp_gap": 1e-6}
    grid = softmap.generators.random_grid(6, 6, 3, seed=1)
    yield grid, (), small
    yield grid, (ChainNumbers(spare=0),), {**lp, "memory_limit": 10**9}
    yield softmap.generators.potts_grid(12, 12, 4, seed=1), (ExpansionNumbers(variables=2),), small
    image = softmap.Model.grid(np.random.default_rng(0).random((14, 11, 4)), softmap.Potts(5.0))
    yield image, (AnnealNumbers(coarse_pixels=6),), small
    for times in (InteriorTimes(steps=0, pair=0.0), InteriorTimes(pair=1e300)):
        yield _dense(3, 7), (PassNumbers(vertex_after=2), times), lp
    unsolved = {**small, "max_work": 10**5}
    tight = {"lp_gap": 0.1, "gap": 0.0}
    tree = softmap.generators.random_tree(60, 4, seed=1)
    yield tree, (SearchNumbers(entries=0),), unsolved | tight
    searched_by_none = (ObeyNumbers(nodes=0), CoreNumbers(entries=0), SearchNumbers(entries=0))
    yield _clauses(40, 170, hard=True), searched_by_none, unsolved


def _of_searches(tmp_path):
    optimal = {"threads": 1, "goal": "optimal", "max_work": 10**5}
    yield softmap.generators.erdos_renyi(40, 4, c=2.0, seed=2), (), optimal
    unsearched = SearchNumbers(entries=0)
    yield _dense(2, 20), (unsearched, TightenNumbers(node_states=0)), {**optimal, "max_work": 10**6}
    yield _dense(2, 305), (unsearched,), {**optimal, "max_work": 10**6}
    yield _dense(3, 8), (unsearched,), optimal
    yield _dense(3, 9), (unsearched, SpinNumbers(variables=0)), {**optimal, "max_work": 10**6}
    yield _dense(4, 20), (PenaltyNumbers(sampled_nodes=2, sampled_edges=2, drawn=2),), optimal
    yield _clauses(20, 90), (), {**optimal, "max_work": 10**6}
    proof = {"proof": tmp_path / "proof"}
    for options in (optimal, {"threads": 1, "goal": "optimal", "time_limit": 1.0}):
        yield _clauses(30, 150), (unsearched, TightenNumbers(node_states=0)), {**options, **proof}
    yield _clauses(12, 40), (EliminationNumbers(states=1),), optimal
    yield _pigeons(5), (), {"threads": 1, **proof}


def _of_permutations(tmp_path):
    small = {"threads": 1, "proof": tmp_path / "proof"}
    costs = [((i,), row) for i, row in enumerate(np.random.default_rng(0).random((4, 4)))]
    yield softmap.Model.from_factors([4] * 4, [*costs, softmap.AllDifferent(range(4))]), (), small
    yield _quadratic(6), (), small
    yield _quadratic(12), (), {"threads": 1, "goal": "optimal", "time_limit": 2.0}
    shared = _quadratic(6, labels=4, shared=3)
    timed = {"threads": 1, "goal": "optimal", "gap": 0.0, "time_limit": 1.0}
    yield shared, (SearchNumbers(entries=0),), timed


def _of_unsolved():
    """Runs that end at their limits: a model that is not solved in this time."""
    hard, unsearched = _dense(4, 24), SearchNumbers(entries=0)
    slices = ScheduleNumbers(first_work=1_000)
    changed = (unsearched, slices, SearchEffort(fused=2), SpinNumbers(variables=0))
    yield hard, changed, {"threads": 1}
    yield hard, changed, {"threads": 1, "goal": "labels"}
    few = ClusterSizes(states=2_000, union=0)
    stalled = {"threads": 1, "goal": "optimal", "max_work": 10**6}
    yield hard, (unsearched, SpinNumbers(variables=0), few), stalled
    yield hard, changed, {"threads": 2, "time_limit": 1.0, "goal": "optimal"}
    earlier = softmap.paper.solve(hard, goal="lp", updates=3)
    other = hard.replace(unary=hard.unary + 0.1)
    yield other, changed, {"threads": 1, "warm_start": earlier, "max_work": 10**5}


def test_a_run_reads_each_number_from_its_options_alone(tmp_path, monkeypatch):
    read = Read(monkeypatch)
    monkeypatch.delitem(sys.modules, "scipy.linalg", raising=False)  # its import takes time
    missing = {(each.group, each.name) for each in fields_of_rooms()} - ON_A_DEVICE
    for factor in (1, 4, 16):  # runs with a time limit do less on a busy machine
        for model, changed, options in _runs(tmp_path):
            if "time_limit" in options:
                options = {**options, "time_limit": factor * options["time_limit"]}
            elif factor > 1:
                continue
            with contextlib.suppress(softmap.InfeasibleModel):
                read.during(model, changed, **options)
            assert not read.defaults, options
        missing -= read.numbers
        if not missing:
            return
    assert not missing


@pytest.mark.skipif(not find_spec("softmap.core._device"), reason="no kernels for the host")
def test_a_run_on_a_device_reads_its_numbers_from_its_options(monkeypatch):
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    read, grid = Read(monkeypatch), softmap.generators.potts_grid(5, 6, 3, seed=1)
    read.during(grid, (), backend="cuda", goal="lp", lp_gap=1e-3)
    assert not read.defaults
    assert read.numbers >= ON_A_DEVICE | {("AnnealNumbers", "recent"), ("AnnealingRule", "first")}
    read.numbers.clear()
    read.during([grid, grid], (), backend="cuda", solve=softmap.solve_batch, goal="lp")
    assert not read.defaults
    assert read.numbers >= {("AnnealNumbers", "recent"), ("AnnealingRule", "growth")}


def test_changed_numbers_change_a_run():
    grid = softmap.generators.random_grid(6, 6, 3, seed=2)
    changed = Tuning(Checks(first=7, second=14), AnnealingRule(first=50.0, growth=2.0))
    options = {"threads": 1, "goal": "lp", "lp_gap": 0.0, "gap": 0.0, "max_work": 60 * grid.m}
    late, usual = (
        [(row.sweeps, row.eta) for row in softmap.solve(grid, tuning=numbers, **options).trace.rows]
        for numbers in (changed, Tuning())
    )
    assert [sweeps for sweeps, _ in late] == [7, 14, 20, 30]
    assert [sweeps for sweeps, _ in usual] == [5, 10, 20, 30]
    assert late[0][1] / usual[0][1] == pytest.approx(0.5)
    assert late[-1][1] / late[0][1] == pytest.approx(2.0)
