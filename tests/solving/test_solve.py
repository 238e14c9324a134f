"""What `solve` promises, for every method, every kind of model and every way to stop."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from methods import PASSES, UPDATES
from oracles import brute_force
from softmap import Status, generators, lp, resume
from softmap.algorithms.registry import METHODS, make
from softmap.errors import CheckpointError, OptionError
from softmap.labels import LabelSearch
from softmap.model import Model
from softmap.model.potentials import Potts, Tables
from softmap.relaxation import polytope
from softmap.relaxation.bounds import dual_bound
from softmap.solving.judge import Judge
from softmap.solving.options import Options
from strategies import models

PROVED = (Status.GAP, Status.OPTIMAL)


def solve(model, **options):
    """The relaxation alone; what follows it is tested in `test_stages`."""
    return softmap.solve(model, **{"goal": "lp"} | options)


def iterate(model, **options):
    return softmap.iterate(model, **{"goal": "lp"} | options)


TINY = 1e-7
UNEQUAL = np.where(np.eye(2) > 0, np.inf, 0.0)


def ternary() -> Model:
    rng = np.random.default_rng(3)
    scopes = [(0, 1, 2), (2, 3), (1, 3, 4), (4,)]
    counts = np.array([2, 3, 2, 3, 2])
    return Model.from_factors(counts, [(s, rng.normal(size=counts[list(s)])) for s in scopes])


def islands() -> Model:
    """Two isolated variables beside a small component."""
    rng = np.random.default_rng(4)
    return Model(rng.normal(size=(5, 3)), [[1, 3], [3, 4]], Tables(rng.normal(size=(2, 3, 3))))


def parallel() -> Model:
    rng = np.random.default_rng(5)
    edges = [[0, 1], [1, 0], [0, 1], [1, 2]]
    return Model(rng.normal(size=(3, 3)), edges, Tables(rng.normal(size=(4, 3, 3))))


def edgeless() -> Model:
    unary = np.random.default_rng(6).normal(size=(4, 3))
    return Model(unary, np.zeros((0, 2), int), [], constant=1.5)


def frustrated() -> Model:
    """A cycle of three that want to differ, with two labels: the LP lies below every labelling."""
    return Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], Potts([-1.0, -1.0, -1.0]))


MODELS = {
    "grid": lambda: generators.potts_grid(2, 3, 3, seed=1),
    "random": lambda: generators.erdos_renyi(7, 3, seed=2),
    "hard": lambda: generators.ragged_constrained(7, max_labels=4, seed=3),
    "ternary": ternary,
    "islands": islands,
    "parallel": parallel,
    "edgeless": edgeless,
    "one": lambda: Model([[0.5, -1.0, 2.0]], np.zeros((0, 2), int), []),
    "one-label": lambda: Model([[1.0], [2.0]], [[0, 1]], Tables(np.full((1, 1, 1), -4.0))),
    "frustrated": frustrated,
}


@functools.cache
def known(name: str) -> tuple[Model, float, float]:
    """A model, its LP optimum and its MAP optimum."""
    model = MODELS[name]()
    return model, lp.solve(model).value, brute_force(model)[0]


def options_of(method: str, **more) -> dict:
    """What a method needs to be told; threads=1 for speed."""
    return {"method": method, "threads": 1, **({"eta": 30.0} if method in UPDATES else {}), **more}


def promised(result, model: Model, relaxed: float | None = None, best: float | None = None):
    """The table of promises; `relaxed` and `best` are the LP and the MAP optimum where known."""
    assert result.energy == model.energy(result.labels)
    assert result.bound == pytest.approx(dual_bound(model, result.lam), rel=1e-12, abs=1e-12)
    assert result.gap == max(0.0, result.energy - result.bound)
    assert result.lp_gap == max(0.0, result.primal - result.bound)
    assert result.bound <= result.primal + TINY
    assert result.primal <= result.energy
    if relaxed is not None:
        assert result.bound <= relaxed + TINY
        assert relaxed <= result.primal + TINY
    if best is not None:
        assert best <= result.energy + TINY
    point = result.node_marginals, result.edge_marginals
    assert polytope.violation(model, *point).max <= 1e-9
    if np.isfinite(result.primal):
        assert polytope.cost(model, *point) == pytest.approx(result.primal, rel=1e-9, abs=1e-9)
    columns = result.trace.columns()
    assert (np.diff(columns["bound"]) >= 0).all()
    for name in ("primal", "energy"):
        assert (columns[name][1:] <= columns[name][:-1]).all()
    for name in ("work", "sweeps", "seconds"):
        assert (np.diff(columns[name]) >= 0).all()
    last = result.trace[-1]
    assert (last.bound, last.primal, last.energy) == (result.bound, result.primal, result.energy)
    return result


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_promises_hold_for_every_method_and_kind_of_model(method, name):
    model, relaxed, best = known(name)
    result = solve(model, **options_of(method, max_work=2 * model.m * 60))
    promised(result, model, relaxed, best)
    assert result.status in (*PROVED, Status.LP_GAP, Status.WORK_LIMIT)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", ["anneal", "anneal-star"])
def test_the_annealed_solvers_close_the_gap(method, name):
    model, relaxed, best = known(name)
    result = promised(solve(model, **options_of(method)), model, relaxed, best)
    assert result.status in (*PROVED, Status.LP_GAP)
    scale = result.unit
    assert result.primal - relaxed <= 1e-4 * scale + TINY
    assert relaxed - result.bound <= 1e-4 * scale + TINY
    if result.status in PROVED:
        assert result.energy - best <= 1e-6 * scale + TINY


@settings(max_examples=40)
@given(model=models(), method=st.sampled_from(list(METHODS)))
def test_promises_hold_for_random_models_of_every_family(model, method):
    relaxed, (best, _) = lp.solve(model).value, brute_force(model)
    result = solve(model, **options_of(method, max_work=2 * model.m * 40))
    promised(result, model, relaxed, best)


def test_the_judge_lives_with_labels_that_break_constraints():
    """Three variables that must all differ cannot with two labels, but the LP has a point."""
    model = Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], Tables([UNEQUAL] * 3))
    algorithm = make("trws", eta=None, threads=1, dtype="float64")
    state = algorithm.init(model, None, 0)
    judge, search = Judge(model, 1), LabelSearch(model)
    for _ in range(2):
        proposal = algorithm.propose(state)
        nodes = judge.look(proposal).nodes[0]
        search.look(proposal.lam, nodes, bound=judge.bound, primal=judge.primal, work=10_000)
        judge.credit(search.labels, search.energy)
    assert (judge.bound, judge.primal, search.energy) == (0.0, 0.0, np.inf)


# --- every way to stop ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problem() -> tuple[Model, float]:
    """A random graph whose gaps no method closes to the last bit."""
    model = generators.erdos_renyi(40, 3, seed=9)
    return model, lp.solve(model).value


NEVER = {"lp_gap": 0.0, "gap": 0.0}


@pytest.mark.parametrize("method", METHODS)
def test_stops_at_a_gap(method, problem):
    model, relaxed = problem
    result = solve(model, **options_of(method, lp_gap=3.0, gap=0.0))
    assert promised(result, model, relaxed).status is Status.LP_GAP
    assert result.relative_gap(result.lp_gap) <= 3.0
    result = solve(model, **options_of(method, lp_gap=0.0, gap=3.0))
    assert promised(result, model, relaxed).status in PROVED
    assert result.relative_gap(result.gap) <= 3.0


@pytest.mark.parametrize("method", METHODS)
def test_stops_after_updates(method, problem):
    model, relaxed = problem
    result = solve(model, **options_of(method, updates=13, **NEVER))
    assert promised(result, model, relaxed).status is Status.UPDATES
    if method in PASSES:
        assert result.sweeps == 13
    assert solve(model, **options_of(method, updates=0, **NEVER)).work == 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seconds", [0, 0.02])
def test_stops_in_time(method, seconds, problem, monkeypatch):
    for name in ("run.PATIENCE", "handover.HAND_OVER"):  # else the fastest would end before
        monkeypatch.setattr(f"softmap.solving.{name}", 10**9)
    model, relaxed = problem
    result = solve(model, **options_of(method, time_limit=seconds, **NEVER))
    assert promised(result, model, relaxed).status is Status.TIME_LIMIT
    assert result.seconds >= 0.5 * seconds
    assert seconds > 0 or result.work == 0


@pytest.mark.parametrize("method", METHODS)
def test_stops_after_work(method, problem):
    model, relaxed = problem
    most = 2 * model.m * 7 + 1
    results = [solve(model, **options_of(method, max_work=most, **NEVER)) for _ in range(2)]
    for result in results:
        assert promised(result, model, relaxed).status is Status.WORK_LIMIT
    step = 2 * model.m if method in PASSES else model.graph.degree.max()
    assert most <= results[0].work < most + step
    same_result(*results)


@pytest.mark.parametrize("method", METHODS)
def test_stops_when_asked_or_interrupted(method, problem):
    model, relaxed = problem
    seen = []

    def stop(snapshot):
        seen.append(snapshot)
        return len(seen) < 3

    def interrupt(snapshot):
        raise KeyboardInterrupt

    result = solve(model, **options_of(method, on_snapshot=stop, **NEVER))
    assert promised(result, model, relaxed).status is Status.CALLBACK
    assert [s.bound for s in seen] == [row.bound for row in result.trace]
    assert len(seen) == 3
    result = solve(model, **options_of(method, on_snapshot=interrupt, **NEVER))
    assert promised(result, model, relaxed).status is Status.INTERRUPTED


@pytest.mark.parametrize("method", ["trws", "mplp"])
def test_stops_when_stalled(method, problem):
    model, relaxed = problem
    result = solve(model, **options_of(method))
    assert promised(result, model, relaxed).status is Status.STALLED
    assert relaxed - result.bound > 1e-3


def test_every_status_has_a_sentence():
    assert all(len(str(status).split()) > 3 for status in Status)
    assert len({str(status) for status in Status}) == len(Status)


def test_iterate_yields_what_solve_sees(problem):
    model, _ = problem
    run = iterate(model, threads=1, max_work=2 * model.m * 30)
    snapshots = list(run)
    result = solve(model, threads=1, max_work=2 * model.m * 30)
    assert [s.bound for s in snapshots] == [row.bound for row in result.trace]
    assert snapshots[-1].gap == result.gap
    assert snapshots[-1].lp_gap == result.lp_gap
    np.testing.assert_array_equal(snapshots[-1].labels, result.labels)


NUMBERS = ("lp_gap", "gap", "time_limit", "max_work", "updates", "threads", "seed", "eta")
NO_NUMBERS = ("2", "x", [1.0], np.array([1.0, 2.0]), True, np.False_, float("nan"), -1, 1j)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_an_option_that_is_no_number_is_named(name, value):
    with pytest.raises(OptionError, match=f"{name}=.*expected a"):
        Options(**{name: value})


def test_the_precision_is_that_of_the_backend_unless_given():
    assert Options().precision == "float64"
    assert Options(backend="cuda").precision == "float32"
    assert Options(backend="cuda", dtype="float64").precision == "float64"


@pytest.mark.parametrize("name", ["lp_gap", "gap", "seed", "method", "backend"])
def test_an_option_that_must_be_given_is_not_none(name):
    with pytest.raises(OptionError, match=f"{name}=None: expected"):
        Options(**{name: None})


def test_numbers_of_any_type_are_taken():
    options = Options(gap=np.float32(0.5), threads=np.int64(2), max_work=1e6, dtype=np.float32)
    assert (options.gap, options.threads, options.max_work) == (0.5, 2, 1_000_000)
    assert (type(options.max_work), options.dtype) == (int, "float32")


def test_solve_and_iterate_take_every_option_with_its_default():
    expected = {f.name: f.default for f in dataclasses.fields(Options)}
    for function in (softmap.solve, softmap.iterate):
        parameters = dict(inspect.signature(function).parameters)
        del parameters["model"]
        assert {name: p.default for name, p in parameters.items()} == expected
        assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())


def test_a_typo_is_named_after_solve():
    with pytest.raises(
        TypeError, match=r"solve\(\) got an unexpected keyword argument 'timelimit'"
    ):
        solve(generators.potts_grid(2, 2, 2), timelimit=1.0)


def test_what_is_no_model_is_refused():
    with pytest.raises(OptionError, match=r"needs a Model, got an ndarray; see Model\.grid"):
        solve(np.zeros((3, 2)))


@pytest.mark.parametrize("name", [".", "missing/run.npz"])
def test_a_checkpoint_that_cannot_be_written_is_refused_at_once(name, tmp_path):
    with pytest.raises(OptionError, match=r"checkpoint=.*folder that exists"):
        Options(checkpoint=tmp_path / name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "magic"},
        {"on_snapshot": 3},
        {"checkpoint": 7},
        {"checkpoint": ""},
        {"lp_gap": -1.0},
        {"gap": float("nan")},
        {"time_limit": -1},
        {"max_work": -5},
        {"updates": -1},
        {"threads": -1},
        {"threads": 0},
        {"dtype": "float16"},
        {"seed": -1},
        {"backend": "abacus"},
        {"eta": 0.0},
        {"eta": -2.0},
        {"eta": float("inf")},
        {"method": "emp"},
        {"warm_start": np.zeros(3)},
        {"warm_start": np.full(54, np.nan)},
    ],
)
def test_wrong_options_are_refused(wrong):
    model = generators.potts_grid(2, 3, 3, seed=1)
    with pytest.raises(OptionError):
        solve(model, **wrong)


# --- stop and go on -------------------------------------------------------------------------------


def same_result(a, b):
    """Equal to the bit, but for the clock."""
    assert (a.bound, a.primal, a.energy, a.eta) == (b.bound, b.primal, b.energy, b.eta)
    assert (a.work, a.sweeps, a.status) == (b.work, b.sweeps, b.status)
    for name in ("labels", "lam", "messages", "node_marginals", "edge_marginals"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    left, right = a.trace.columns(), b.trace.columns()
    for name in left:
        if name != "seconds":
            np.testing.assert_array_equal(left[name], right[name])


@pytest.mark.parametrize("sweeps", [0, 7, 20, 51])
@pytest.mark.parametrize("method", METHODS)
def test_resume_goes_on_as_if_never_stopped(method, sweeps, problem, tmp_path):
    model, relaxed = problem
    path, half = tmp_path / "run.npz", 2 * model.m
    whole = solve(model, **options_of(method, max_work=90 * half, **NEVER))
    part = solve(model, **options_of(method, max_work=sweeps * half, checkpoint=path, **NEVER))
    promised(part, model, relaxed)
    assert part.work < whole.work
    again = resume(path, model, threads=1, max_work=90 * half)
    same_result(again, whole)
    promised(again, model, relaxed)


def test_resume_after_other_stops(problem, tmp_path):
    model, _ = problem
    path, most = tmp_path / "run.npz", 2 * model.m * 60
    whole = solve(model, threads=1, max_work=most, **NEVER)

    def interrupt(snapshot):
        if snapshot.sweeps > 25:
            raise KeyboardInterrupt

    solve(model, threads=1, checkpoint=path, on_snapshot=interrupt, **NEVER)
    same_result(resume(path, model, threads=1, max_work=most), whole)
    solve(model, threads=1, checkpoint=path, on_snapshot=lambda s: s.sweeps < 25, **NEVER)
    same_result(resume(path, model, threads=1, max_work=most), whole)
    solve(model, threads=1, checkpoint=path, time_limit=0, **NEVER)
    same_result(resume(path, model, threads=1, max_work=most), whole)


def test_resume_of_a_finished_run_is_the_same_result(tmp_path):
    model, path = generators.potts_grid(6, 6, 3, seed=1), tmp_path / "run.npz"
    first = solve(model, checkpoint=path, threads=1)
    assert first.status in (*PROVED, Status.LP_GAP)
    again = resume(path, model, threads=1)
    same_result(again, first)


def test_a_checkpoint_that_does_not_fit_is_refused(problem, tmp_path):
    model, path = problem[0], tmp_path / "run.npz"
    solve(model, checkpoint=path, max_work=1000, threads=1)
    other = model.replace(unary=model.unary + 1e-12)
    with pytest.raises(CheckpointError, match="another model"):
        resume(path, other)
    with pytest.raises(TypeError, match="method"):
        resume(path, model, method="trws")
    with np.load(path) as file:
        arrays = dict(file)
    old = json.loads(arrays["header"].tobytes()) | {"version": 1}
    arrays["header"] = np.frombuffer(json.dumps(old).encode(), np.uint8)
    np.savez(tmp_path / "old.npz", **arrays)
    with pytest.raises(CheckpointError, match="a checkpoint of format 1, but this version"):
        resume(tmp_path / "old.npz", model)
    with pytest.raises(CheckpointError, match="no such"):
        resume(tmp_path / "missing.npz", model)
    whole = path.read_bytes()
    for damaged in (b"", b"nonsense", whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="not a softmap checkpoint"):
            resume(path, model)


RUN = """
import sys, softmap
sys.modules["softmap.solving.solve"].EVERY = 0.0
model = softmap.generators.erdos_renyi(40, 3, seed=9)
show = lambda s: print(s.row.sweeps, flush=True)
result = softmap.solve(model, goal="lp", lp_gap=0.0, gap=0.0, checkpoint=sys.argv[1],
                       on_snapshot=show, method=sys.argv[2], threads=2, max_work=10**9)
print(result.status.name, result.energy == model.energy(result.labels), result.bound)
"""


@pytest.mark.parametrize(
    ("number", "method"), [(signal.SIGINT, "anneal"), (signal.SIGKILL, "mplp")]
)
def test_a_signal_loses_nothing(number, method, problem, tmp_path):
    model, relaxed = problem
    path = tmp_path / "run.npz"
    command = [sys.executable, "-c", "import softmap.solving.solve\n" + RUN, str(path), method]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        while float(child.stdout.readline()) < 41:  # the check before this one is stored
            pass
        time.sleep(0.01)
        child.send_signal(number)
        rest = child.stdout.read().split("\n")
    if number == signal.SIGINT:
        name, same, bound = rest[-2].split()
        assert (name, same) == ("INTERRUPTED", "True")
        assert float(bound) <= relaxed + TINY
        assert child.returncode == 0
    stored = resume(path, model, threads=2, max_work=0)
    assert stored.sweeps >= 40
    promised(stored, model, relaxed)
    goal = int(stored.work) + 2 * model.m * 30
    again = resume(path, model, threads=2, max_work=goal)
    whole = solve(model, method=method, threads=2, max_work=goal, **NEVER)
    same_result(again, whole)
    assert not list(tmp_path.glob("*.tmp")) or number == signal.SIGKILL


# --- what must not matter -------------------------------------------------------------------------


def scaled(model: Model, factor: float) -> Model:
    return model.replace(
        unary=model.unary * factor,
        potentials=[p.scaled(factor) for p in model.potentials],
        constant=model.constant * factor,
    )


SCALED = {
    "random": lambda: generators.erdos_renyi(40, 3, seed=9),
    "potts": lambda: generators.potts_grid(8, 8, 3, seed=2),
    "hard": lambda: generators.ragged_constrained(20, seed=5),
}


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("method", PASSES)
def test_the_unit_of_the_costs_does_not_matter(method, name):
    model = SCALED[name]()
    options = {"method": method, "threads": 1, "max_work": 2 * model.m * 150, "lp_gap": 1e-3}
    first = solve(model, **options)
    for factor in (1e6, 1e-6, 1e-200, 1e200):
        run = solve(scaled(model, factor), **options)
        np.testing.assert_array_equal(run.labels, first.labels)
        assert (run.sweeps, run.status) == (first.sweeps, first.status)
        assert run.bound == pytest.approx(factor * first.bound, rel=1e-6)


@pytest.mark.parametrize("method", PASSES)
def test_constants_in_tables_do_not_matter(method):
    """Constants that cancel: the same problem, written differently."""
    model = generators.erdos_renyi(40, 3, seed=9)
    rng = np.random.default_rng(0)
    nodes, edges = 100 * rng.normal(size=model.n), 100 * rng.normal(size=model.m)
    shifted = model.replace(
        unary=model.unary + np.repeat(nodes, model.num_labels),
        potentials=[Tables([t + c for t, c in zip(model.tables(), edges, strict=True)])],
        constant=-nodes.sum() - edges.sum(),
    )
    runs = [
        solve(m, method=method, threads=1, lp_gap=1e-3, max_work=2 * model.m * 150)
        for m in (model, shifted)
    ]
    if method in ("anneal", "anneal-star", "nesterov"):
        # hard-min methods stall at ties, where the last bit chooses between labels
        np.testing.assert_array_equal(runs[0].labels, runs[1].labels)
    assert (runs[0].sweeps, runs[0].status) == (runs[1].sweeps, runs[1].status)
    assert runs[0].bound == pytest.approx(runs[1].bound, abs=1e-6)


@pytest.mark.parametrize("method", PASSES)
def test_threads_do_not_matter(method):
    model = generators.random_grid(20, 20, 4, seed=3)
    work = 2 * model.m * 40
    one, two, again, three = (
        solve(model, method=method, threads=t, max_work=work) for t in (1, 2, 2, 3)
    )
    same_result(two, again)
    for other in (one, three):
        np.testing.assert_array_equal(two.labels, other.labels)
        assert two.bound == pytest.approx(other.bound, rel=1e-12)
        assert two.primal == pytest.approx(other.primal, rel=1e-9)


def test_the_seed_matters_only_to_methods_that_draw(problem):
    model, _ = problem
    for method, differs in (("anneal", False), ("emp", True)):
        runs = [solve(model, **options_of(method, max_work=2000, seed=s)) for s in (0, 0, 1)]
        same_result(*runs[:2])
        assert (runs[0].bound != runs[2].bound) is differs


# --- warm starts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_warm_starts_begin_where_the_other_run_ended(method, problem):
    model, relaxed = problem
    first = solve(model, **options_of(method, max_work=2 * model.m * 60, **NEVER))
    for start in (first, first.messages):
        again = solve(model, **options_of(method, warm_start=start, max_work=0, **NEVER))
        promised(again, model, relaxed)
        assert again.bound >= first.trace[-2].bound - 0.05 * abs(relaxed)
    from_bound = solve(model, **options_of("mplp", warm_start=first.lam, max_work=0, **NEVER))
    assert from_bound.bound == pytest.approx(first.bound, abs=1e-9)


def test_a_warm_start_serves_a_model_that_changed_a_little():
    model = generators.potts_grid(16, 16, 4, seed=4)
    rng = np.random.default_rng(1)
    changed = model.replace(unary=model.unary + 1e-3 * rng.normal(size=model.unary.size))
    first = solve(model, threads=1)
    cold, warm = (
        solve(changed, threads=1),
        solve(changed, threads=1, warm_start=first, eta=first.eta),
    )
    assert warm.sweeps < cold.sweeps
    promised(warm, changed, lp.solve(changed).value)


def test_softmap_names_its_methods():
    assert set(softmap.METHODS) == set(METHODS)
    assert {"anneal", "anneal-star", "trws", "mplp", "diffusion", "nesterov"} == set(PASSES)


# --- small LPs that passes are slow on ----------------------------------------------------------


def _soon(monkeypatch):
    monkeypatch.setattr("softmap.solving.handover.HAND_OVER", 20)


def test_a_small_lp_that_stays_open_is_solved_exactly(monkeypatch):
    _soon(monkeypatch)
    model = softmap.generators.erdos_renyi(60, 3, seed=2)
    result = solve(model, lp_gap=1e-9, gap=0.0, threads=1)
    assert result.status is Status.LP_GAP
    assert result.sweeps == 20
    assert result.bound == pytest.approx(softmap.lp.solve(model).value, rel=1e-8)
    edges = result.edge_marginals
    assert polytope.cost(model, result.node_marginals, edges) == pytest.approx(
        result.primal, rel=1e-12
    )
    assert polytope.violation(model, result.node_marginals, edges).max < 1e-9


def test_a_large_lp_is_not_handed_over(monkeypatch):
    _soon(monkeypatch)
    monkeypatch.setattr("softmap.solving.handover.SMALL", 100)
    model = softmap.generators.erdos_renyi(60, 3, seed=2)
    result = softmap.solve(model, lp_gap=1e-9, gap=0.0, threads=1, max_work=2 * model.m * 40)
    assert result.status is Status.WORK_LIMIT
    assert result.lp_gap > 1e-6


def test_hard_constraints_survive_the_hand_over(monkeypatch):
    _soon(monkeypatch)
    model = softmap.generators.ragged_constrained(40, seed=3)
    result = softmap.solve(model, lp_gap=0.0, gap=0.0, threads=1, max_work=2 * model.m * 60)
    value = softmap.lp.solve(model).value
    assert result.bound <= value + 1e-6 * abs(value)
    assert result.primal >= value - 1e-6 * abs(value)


def test_a_run_resumed_across_the_hand_over_is_the_same(monkeypatch, tmp_path):
    _soon(monkeypatch)
    model = softmap.generators.erdos_renyi(60, 3, seed=2)
    straight = softmap.solve(model, lp_gap=1e-9, gap=0.0, threads=1)
    path = tmp_path / "run.ckpt"
    softmap.solve(
        model, lp_gap=1e-9, gap=0.0, threads=1, max_work=2 * model.m * 12, checkpoint=path
    )
    whole = softmap.resume(path, model, lp_gap=1e-9, gap=0.0)
    assert (whole.bound, whole.primal) == (straight.bound, straight.primal)
    np.testing.assert_array_equal(whole.node_marginals, straight.node_marginals)
