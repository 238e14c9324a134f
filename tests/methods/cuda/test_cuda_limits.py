"""Limits on a device: neither its start, nor the compiler, nor slow launches hold a run up."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future

import numpy as np
import pytest

import softmap
from softmap import core, tuning
from softmap.errors import CheckpointWarning
from softmap.methods.cuda import HostDevice
from softmap.methods.cuda.anneal import CudaAnneal, DeviceNumbers
from softmap.methods.cuda.arena import Arena
from softmap.methods.cuda.cupy_device import Compiler, Kernels, Store
from softmap.methods.cuda.waiting import Aside, waited
from softmap.relaxation.bounds import dual_bound
from softmap.run.best import Best
from softmap.run.judge import Judge
from softmap.run.memory import MemoryEstimate
from softmap.run.problem import Problem
from softmap.run.trace import Status
from softmap.tasks import batch, device_batch
from softmap.tasks.device_batch import BatchPasses
from softmap.transport import arrays
from softmap.transport.problem import TransportProblem
from softmap.transport.results import LADDER
from softmap.transport.run import TransportRun
from softmap.tuning import Tuning
from support.deadlines import stopping


class Gate:
    """Stands for a compiler that does not answer before `open` is called."""

    def __init__(self, holds=lambda name: True, before=lambda: None):
        self.names, self.held, self._holds, self._before = [], [], holds, before
        self._event = threading.Event()

    def __call__(self, text, name, options):
        self.names.append(name)
        if self._holds(name):
            self.held.append(name)
            self._before()
            self._event.wait()
        return name, b""

    def open(self):
        self._event.set()


class CompiledHost(HostDevice):
    """The host, but kernels have to be compiled before they are launched."""

    def __init__(self, compiler):
        super().__init__()
        self.compiler = compiler

    def prepare(self, names):
        super().prepare(names)
        self.compiler.begin(names)

    def require(self, names, deadline=None):
        for name in names:
            self.compiler.kernel(name, deadline)

    def launch(self, kernel, threads, arguments):
        self.compiler.kernel(kernel)
        super().launch(kernel, threads, arguments)


@pytest.fixture
def compiled(host, monkeypatch):
    """A function that lets runs use a device whose kernels a gate compiles; all end with it."""
    gates = []

    def use(gate):
        gates.append(gate)
        compiler = Compiler(gate, [], Store(None))
        for home in ("anneal", "cupy_device"):
            monkeypatch.setattr(
                f"softmap.methods.cuda.{home}.find_device", lambda *_: CompiledHost(compiler)
            )
        monkeypatch.setenv("SOFTMAP_CUDA", "host")
        return gate

    yield use
    for gate in gates:
        gate.open()


def potts():
    return softmap.generators.potts_grid(9, 10, 3, seed=1)


def truncated():
    """A model whose messages have another formula at large η."""
    edges = softmap.generators.grid_edges(64, 16)
    costs = softmap.TruncatedLinear(np.full(len(edges), 0.5), 2.0)
    return softmap.Model(np.random.default_rng(0).random((1024, 5)), edges, costs)


@pytest.mark.parametrize("goal", ["map", "lp", "labels"])
def test_a_run_ends_at_its_limit_while_kernels_are_compiled(goal, compiled, caplog):
    gate, model = compiled(Gate()), potts()
    result = softmap.solve(model, backend="cuda", goal=goal, time_limit=0.2)
    assert result.status is Status.TIME_LIMIT
    assert result.sweeps == 0
    assert result.bound >= dual_bound(model, np.zeros(model.network.half_size))
    assert result.energy == model.energy(result.labels)
    assert softmap.verify(result).holds
    assert "not ready in time" in caplog.text
    gate.open()
    later = softmap.solve(model, backend="cuda", goal="lp", lp_gap=1e-3)
    assert later.sweeps > 0
    assert later.bound > result.bound
    assert len(gate.names) == len(set(gate.names))  # those of the first run count


def test_a_run_without_a_limit_waits_for_its_kernels(compiled):
    gate = compiled(Gate())
    threading.Timer(0.1, gate.open).start()
    assert softmap.solve(potts(), backend="cuda", goal="lp", lp_gap=1e-3).sweeps > 0


@pytest.mark.parametrize("limit", [None, 60.0])
def test_errors_of_the_compiler_end_the_relaxation_alone(limit, compiled):
    def broken(text, name, options):
        raise RuntimeError(f"{name}: expected a ;")

    broken.open = lambda: None
    compiled(broken)
    with pytest.warns(softmap.StageWarning, match="expected a ;"):
        result = softmap.solve(potts(), backend="cuda", time_limit=limit)
    assert [failure.stage for failure in result.failures] == ["relaxation"]
    assert result.bound <= result.energy == result.model.energy(result.labels)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="Ctrl-C needs a main thread"
)
def test_ctrl_c_ends_a_run_that_waits_for_its_kernels(compiled, monkeypatch):
    pressed = []

    def press():
        pressed.append(1)
        if len(pressed) == 1:  # several kernels are compiled at once
            os.kill(os.getpid(), signal.SIGINT)

    compiled(Gate(before=press))
    monkeypatch.setattr("softmap.run.interrupts.Interrupts.last", -np.inf)
    result = softmap.solve(potts(), backend="cuda", goal="lp", threads=1)
    assert result.status is Status.INTERRUPTED
    assert softmap.verify(result).holds


def test_two_runs_at_once_share_what_is_compiled(compiled):
    gate, results = compiled(Gate()), []
    runs = [
        threading.Thread(
            target=lambda: results.append(
                softmap.solve(potts(), backend="cuda", goal="lp", lp_gap=1e-3)
            )
        )
        for _ in range(2)
    ]
    for run in runs:
        run.start()
    gate.open()
    for run in runs:
        run.join()
    assert results[0].bound == results[1].bound
    assert len(gate.names) == len(set(gate.names))


def test_passes_end_at_a_deadline_while_their_kernels_are_compiled(compiled):
    gate = compiled(Gate(holds=lambda name: "true, 2, true" in name))
    method, model = CudaAnneal(), truncated()
    state = method.init(model.network, None, 0)
    method.step(state, 5)
    state.eta *= 1e9  # where messages have the formula that is still compiled
    method.step(state, 5, stopping(3))
    assert state.passes == 5
    assert gate.held
    gate.open()
    method.step(state, 5)
    assert state.passes == 10
    assert method.propose(state).lam.shape == (model.network.half_size,)


def test_a_run_that_had_no_device_in_time_is_not_stored(compiled, tmp_path):
    compiled(Gate())
    with pytest.warns(CheckpointWarning, match="not ready within the time limit"):
        result = softmap.solve(
            potts(), backend="cuda", time_limit=0.1, checkpoint=tmp_path / "run.npz"
        )
    assert result.status is Status.TIME_LIMIT
    assert not list(tmp_path.iterdir())


def test_set_up_that_nobody_waits_for_ends_at_its_next_step(host, monkeypatch):
    begun = []
    plain = Arena._uploaded
    monkeypatch.setattr(Arena, "_uploaded", lambda *given: begun.append(1) or plain(*given))
    with pytest.raises(core.OutOfTime):
        Arena(potts().network, host, "float32", deadline=stopping(2))  # after the tiles
    assert not begun


# --- the end of a run -----------------------------------------------------------------------------


def test_the_last_check_of_a_large_model_leaves_its_arrays_on_the_device(place, monkeypatch):
    """Copying λ and computing its bound on the CPU takes longer than hundreds of passes."""
    monkeypatch.setitem(tuning._DEFAULTS, DeviceNumbers, DeviceNumbers(frugal_states=0))
    times, fetched, bounds = iter(range(10**6)), [], []
    monkeypatch.setattr("softmap.run.budget.time.perf_counter", lambda: float(next(times)))
    whole = Arena.lam
    monkeypatch.setattr(Arena, "lam", lambda *given: fetched.append(1) or whole(*given))
    plain = softmap.run.best.Best.offer_lam
    monkeypatch.setattr(
        "softmap.run.best.Best.offer_lam",
        lambda *given: bounds.append(1) or plain(*given),
    )
    result = softmap.solve(
        softmap.generators.erdos_renyi(40, 3, seed=2), backend="cuda", goal="lp", lp_gap=0.0,
        gap=0.0, time_limit=200.0, tuning=Tuning(MemoryEstimate(lazy_entries=0)),
    )  # fmt: skip
    assert result.status is Status.TIME_LIMIT
    assert result.sweeps > 0
    assert not fetched
    assert not bounds
    assert softmap.verify(result).holds  # copies λ
    assert fetched


def test_a_point_that_was_handed_out_stays_what_it_was(place):
    """Its κ is copied from the device when it is read, or before a better point replaces it."""
    model = softmap.generators.random_grid(7, 8, 3, seed=1)
    best = Best(Problem.plain(model.network))
    method = CudaAnneal()
    state = method.init(model.network, None, 0)
    judge = method.judge_by(Judge(best))
    for count in (5, 50):
        method.step(state, count)
        judge.look(method.propose(state))
        point, cost = best.point, best.point_cost
        if count == 5:
            first, then = point, cost
    assert cost < then
    assert first.make().cost == pytest.approx(then, rel=1e-9)
    assert point.make().cost == pytest.approx(cost, rel=1e-9)


def test_the_device_proves_as_much_at_the_limit_as_its_last_check(place):
    model = potts()
    result = softmap.solve(model, backend="cuda", goal="lp", lp_gap=0.0, gap=0.0, time_limit=0.5)
    assert result.bound <= dual_bound(model, result.lam) + 1e-9 * abs(result.bound)
    assert result.bound == max(row.bound for row in result.trace)


# --- batches --------------------------------------------------------------------------------------


def test_a_batch_whose_kernels_are_late_has_first_answers(compiled):
    gate = compiled(Gate())
    models = [softmap.generators.erdos_renyi(12, 3, seed=seed) for seed in range(3)]
    results = softmap.solve_batch(models, backend="cuda", time_limit=0.1)
    for model, result in zip(models, results, strict=True):
        assert result.status is Status.TIME_LIMIT
        assert result.model is model
        assert softmap.verify(result).holds
    gate.open()
    again = softmap.solve_batch(models, backend="cuda", goal="lp", lp_gap=1e-3)
    assert all(result.sweeps > 0 for result in again)


@pytest.mark.parametrize("limit", [None, 1000.0])
def test_what_follows_a_batch_has_the_time_that_is_left(limit, host, monkeypatch):
    given = []
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    monkeypatch.setattr(batch, "_solved", lambda models, each, *_: given.extend(each) or models)
    models = [softmap.generators.random_grid(6, 6, 4, seed=seed) for seed in range(3)]
    softmap.solve_batch(models, backend="cuda", goal="optimal", time_limit=limit, gap=0.0)
    assert given
    for options in given:
        assert options["backend"] == "cpu"
        left = options["time_limit"]
        assert left == math.inf if limit is None else left < limit


class SlowBatch:
    """A batch whose passes take a second of a clock."""

    def __init__(self, ready=True):
        self.now, self.launches, self._ready = 0.0, [], ready

    def ready(self, deadline):
        if not self._ready:
            raise core.OutOfTime

    def step(self, active, count):
        self.launches.append(count)
        self.now += count

    def wait(self):
        pass


@pytest.mark.parametrize(
    ("end", "launches"), [(3.5, [1, 1, 1, 1]), (-1.0, [1]), (100.0, [1] * 10), (np.inf, [10])]
)
def test_launches_of_a_batch_end_at_a_time_limit(end, launches, monkeypatch):
    slow = SlowBatch()
    monkeypatch.setattr(device_batch.time, "perf_counter", lambda: slow.now)
    made = BatchPasses(slow, None).make([0], 10, end)
    assert slow.launches == launches
    assert made == sum(launches)


def test_a_batch_makes_no_passes_before_their_kernel_is_compiled():
    slow = SlowBatch(ready=False)
    assert BatchPasses(slow, None).make([0], 10, np.inf) == 0
    assert not slow.launches


# --- transport ------------------------------------------------------------------------------------


@pytest.fixture
def stuck(monkeypatch):
    """The arrays of a device that does not start before the test has ended."""
    gate = threading.Event()
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    monkeypatch.setattr(arrays, "find_arrays", lambda *_: (gate.wait(), None))
    yield
    gate.set()


@pytest.mark.usefixtures("stuck")
def test_transport_without_a_device_in_time_has_a_plan():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 20))
    given = a / a.sum(), b / b.sum(), rng.random((20, 20))
    found = softmap.transport.sinkhorn(*given, gap=1e-6, time_limit=0.1, backend="cuda")
    best = softmap.transport.sinkhorn(*given, gap=1e-6)
    assert found.bound <= best.cost
    assert best.bound <= found.cost
    assert found.plan().sum(axis=1) == pytest.approx(given[0])
    assert found.plan().sum(axis=0) == pytest.approx(given[1])


def test_transport_keeps_back_the_time_of_its_last_answer():
    problem = TransportProblem.pairs(
        [([0.5, 0.5], [0.25, 0.75], np.array([[0.0, 1.0], [1.0, 0.0]]))]
    )
    limit = core.Deadline(1000.0)
    run = TransportRun(problem, LADDER, 1e-3, limit)
    run.start()
    assert limit.end - 500.0 < run.limit.end < limit.end


class NoPlans:
    """Messages of the CPU, from which no plan is made in time."""

    def __init__(self, problem):
        self._compiled = problem.compiled()

    def __getattr__(self, name):
        return getattr(self._compiled, name)

    def coupled(self, *given):
        raise core.OutOfTime


def test_transport_without_time_for_a_plan_keeps_the_first_one():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 20))
    problem = TransportProblem.pairs([(a / a.sum(), b / b.sum(), rng.random((20, 20)))])
    run = TransportRun(problem, LADDER, 1e-3, core.Deadline())
    run.network = NoPlans(problem)
    run.start()
    first = run.best[0].cost
    run.climb()
    (found,) = run.results()
    assert found.cost == first
    assert found.trace[0].bound < found.bound <= found.cost


# --- waiting --------------------------------------------------------------------------------------


def test_a_wait_ends_at_its_deadline_or_with_the_result():
    never, known, broken = Future(), Future(), Future()
    known.set_result(3)
    broken.set_exception(TimeoutError("its own"))
    with pytest.raises(core.OutOfTime):
        waited(never, stopping(3))
    for deadline in (None, core.Deadline(60.0)):
        assert waited(known, deadline) == 3
        with pytest.raises(TimeoutError, match="its own"):
            waited(broken, deadline)


def test_work_aside_runs_in_one_other_thread_if_there_is_a_deadline():
    aside, here = Aside(), threading.get_ident()
    assert aside(threading.get_ident) == here
    others = {aside(threading.get_ident, core.Deadline(60.0)) for _ in range(3)}
    assert len(others) == 1
    assert here not in others
    with pytest.raises(ZeroDivisionError):
        aside(lambda: 1 / 0, core.Deadline(60.0))


EXIT = """
import sys, time
from pathlib import Path
from softmap.methods.cuda.cupy_device import Compiler, Store

def compile_one(text, name, options):
    while not compiler._ending():
        time.sleep(0.001)
    return name, b"x"

compiler = Compiler(compile_one, [], Store(Path(sys.argv[1])))
compiler.begin([f"kernel{k}" for k in range(1000)])
while compiler.running() < 2:
    time.sleep(0.001)
"""


def test_a_program_that_ends_completes_only_what_is_being_compiled(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", EXIT, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert 2 <= len(list(tmp_path.iterdir())) <= max(2, os.cpu_count())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_no_kernels_of_its_parent(monkeypatch):
    monkeypatch.setattr(Kernels, "known", {0: object()})
    child = os.fork()
    if not child:
        os._exit(len(Kernels.known))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(Kernels.known) == 1
