"""Trials: one run of one method on one graph.

Trials run in threads (kernels release the GIL); each result is stored at once.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import softmap
from softmap import generators
from softmap.errors import OptionError, SoftmapError
from softmap.io.atomic import write_text
from softmap.labels import LabelSearch
from softmap.machine import usable_cores
from softmap.methods.base import Algorithm, Proposal, make
from softmap.model import Model
from softmap.paper import theory
from softmap.paper.methods import StandardState
from softmap.relaxation import lp
from softmap.solving.judge import Judge

# The two forms of the accelerated algorithms.
FORMS = ("printed", "proved")


@dataclass(frozen=True)
class Method:
    """A method in a figure.

    Attributes
    ----------
    method : str
        Family: emp, smp, bcd; or momentum, anneal (and their star versions).
    form : str
        standard, printed or proved; fixed or annealed for sweep methods.
    """

    method: str
    form: str

    @property
    def label(self) -> str:
        """The name in a legend."""
        if self.form in ("fixed", "annealed"):
            kind = "stars" if self.method.endswith("-star") else "chains"
            return f"{kind}, momentum, {'η annealed' if self.steered else 'η fixed'}"
        name = self.method.upper()
        return name if self.form == "standard" else f"Accel-{name}, as {self.form}"

    @property
    def steered(self) -> bool:
        """Whether the method anneals η by the verdicts of checks."""
        return self.form == "annealed"

    @property
    def sweeping(self) -> bool:
        """Whether a step is a pass over the whole graph."""
        return self.form in ("fixed", "annealed")

    @property
    def stars(self) -> bool:
        """Whether an update changes a whole star."""
        return self.method == "smp"

    def make(self, eta: float) -> Algorithm:
        """Return the algorithm, on one thread; an annealed one chooses its η itself."""
        if self.sweeping:
            name = self.method.replace("momentum", "anneal")
            return make(name, eta=None if self.steered else eta, threads=1)
        names = {"standard": "{}", "proved": "accel-{}", "printed": "accel-{}-printed"}
        if self.form not in names:
            raise OptionError(f"unknown form {self.form!r}")
        return make(names[self.form].format(self.method), eta=eta)


PAPER = tuple(
    Method(method, form) for method in ("emp", "smp", "bcd") for form in ("standard", *FORMS)
)


def solvers() -> tuple[Method, ...]:
    """Return the sweep methods: passes with momentum at fixed η, and annealed."""
    kinds = ("anneal", "anneal-star")
    fixed = [Method(kind.replace("anneal", "momentum"), "fixed") for kind in kinds]
    return (*fixed, *(Method(kind, "annealed") for kind in kinds))


COLUMNS = (
    "n", "m", "labels", "cost", "min_degree", "max_degree", "optimum",
    "cvxpy_optimum", "unary_energy", "uniform_cost", "fingerprint",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """A random model of the paper's distribution, and its LP optimum."""

    model: Model
    optimum: float


def problem(size: int, labels: int, seed: int) -> Problem:
    """Return a model of section "Numerical Experiments" and its LP optimum (HiGHS)."""
    model = generators.erdos_renyi(size, labels, seed=seed)
    # Simplex finds a vertex; the tolerance is well below the gaps that the figures show.
    solution = lp.solve(model, "simplex", tolerance=1e-9, threads=1)
    if not math.isfinite(solution.value):
        raise SoftmapError(f"HiGHS found no optimum: {solution.status}")
    return Problem(model, solution.value)


def reference_row(given: Problem, *, check: bool) -> tuple[Any, ...]:
    """Return the row of a problem in the table of references (`COLUMNS`)."""
    model = given.model
    obvious = np.array([int(model.unary_of(i).argmin()) for i in range(model.n)])
    uniform = sum(float(model.unary_of(i).mean()) for i in range(model.n))
    uniform += sum(float(table.mean()) for table in model.tables())
    other = cvxpy_optimum(model) if check else None
    s = theory.sizes(model)
    return (
        model.n, model.m, s.d, s.cost, s.min_degree, s.max_degree, given.optimum,
        math.nan if other is None else other,
        model.energy(obvious), uniform, model.fingerprint(),
    )  # fmt: skip


def cvxpy_optimum(model: Model) -> float | None:
    """Return the LP optimum by an independent formulation in CVXPY; None if not installed.

    All variables must have the same number of labels, as in the paper.
    """
    try:
        cvxpy: Any = import_module("cvxpy")
    except ImportError:
        return None
    n, m, d = model.n, model.m, int(model.num_labels[0])
    nodes = cvxpy.Variable((n, d), nonneg=True)
    pairs = cvxpy.Variable((m, d * d), nonneg=True)  # row-major tables
    tables = np.stack([table.ravel() for table in model.tables()])
    rows, columns = np.kron(np.eye(d), np.ones((d, 1))), np.kron(np.ones((d, 1)), np.eye(d))
    constraints = [
        cvxpy.sum(nodes, axis=1) == 1,
        pairs @ rows == nodes[model.edges[:, 0]],
        pairs @ columns == nodes[model.edges[:, 1]],
    ]
    unary = model.unary.reshape(n, d)
    cost = cvxpy.sum(cvxpy.multiply(unary, nodes)) + cvxpy.sum(cvxpy.multiply(tables, pairs))
    program = cvxpy.Problem(cvxpy.Minimize(cost), constraints)
    return float(program.solve(solver=cvxpy.CLARABEL)) + model.constant


class Point(NamedTuple):
    """The evaluation of a run after some updates (or passes).

    `primal` and `bound` belong to the current iterate. `returned` is the primal value of the
    iterate that the method would return: that of least slack (Algorithm 1), the best so far
    (annealed methods), or the current one (accelerated methods). `seconds` is the time of the
    method on one core.
    """

    updates: int
    work: int
    seconds: float
    primal: float
    returned: float
    bound: float


@dataclass(frozen=True)
class Unit:
    """A trial: its figure, graph, method, and the updates at which it is evaluated."""

    figure: str
    n: int
    labels: int
    seed: int
    method: Method
    eta: float
    trial: int
    checks: tuple[int, ...]

    @property
    def cost(self) -> float:
        """The estimated time in seconds, for progress bars, from measured times per update."""
        if self.method.sweeping:
            return self.checks[-1] * 2.5e-4 + len(self.checks) * 2e-3
        return self.checks[-1] * (6e-6 if self.method.stars else 1.5e-6) + len(self.checks) * 2e-3

    def key(self, code: str) -> str:
        """Return a digest of all that the result depends on, as its file name."""
        facts = json.dumps({**asdict(self), "code": code}, sort_keys=True)
        return hashlib.sha256(facts.encode()).hexdigest()[:24]


def trial_seed(seed: int, trial: int) -> int:
    """Return the seed of a trial; all methods share it, so that trials can be compared in pairs."""
    return int(np.random.SeedSequence([seed, trial]).generate_state(1)[0])


def star_size(degree: Any) -> float:
    """Return the mean number of messages per star update if vertices are drawn by degree."""
    return float((degree**2).sum() / degree.sum())


def passes_until(last: int) -> tuple[int, ...]:
    """Return the passes at which sweep methods are evaluated; η changes only every tenth pass."""
    regular = [*range(10, 101, 10), *range(120, last + 1, 20)]
    return (*(k for k in [1, 2, 3, 5, *regular] if k < last), last)


def follow(unit: Unit, given: Problem) -> list[Point]:
    """Run a trial; evaluations are not timed, unless the method uses them to anneal."""
    algorithm = unit.method.make(unit.eta)
    judge = Judge.of(given.model)
    search = LabelSearch(given.model, algorithm.decode_order(given.model))
    state = algorithm.init(given.model, None, trial_seed(unit.seed, unit.trial))
    done, seconds, points = 0, 0.0, []
    for check in unit.checks:
        began = time.thread_time()
        algorithm.step(state, check - done)
        done = check
        if not unit.method.steered:
            seconds += time.thread_time() - began
        primal, returned, bound = _look(algorithm, state, (judge, search), unit.method, check)
        if unit.method.steered:
            seconds += time.thread_time() - began
        points.append(Point(done, state.work, seconds, primal, returned, bound))
    return points


def _look(
    algorithm: Algorithm,
    state: Any,
    lookers: tuple[Judge, LabelSearch],
    method: Method,
    check: int,
) -> tuple[float, float, float]:
    """Return the primal of the current and of the returned iterate, and the current bound."""
    judge, search = lookers
    proposal = algorithm.propose(state)
    if isinstance(state, StandardState):
        # λ^(k), where `propose` gives the iterate of least slack
        now = judge.look(Proposal(state.current(), proposal.eta))
        return now.primals[0], judge.look(proposal).primals[0], now.bound
    verdict = judge.look(proposal)
    primal = min(verdict.primals)
    if method.steered and check % 10 == 0:
        algorithm.observe(state, verdict)
    if not method.sweeping:
        return primal, primal, verdict.bound
    best = judge.best
    known = best.labels, best.energy
    best.offer_labels(
        *search.look(known, proposal.lam, verdict.nodes[0], best.lp_bound, best.point_cost, 0)
    )
    return primal, best.point_cost, verdict.bound


def code_digest() -> str:
    """Return a digest of the sources that affect numbers; results of other code are not reused."""
    root = Path(softmap.__file__).parent
    skipped = {"app", "interop", "io", "views"}
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for source in sorted(root.rglob("*.py")):
        place = source.relative_to(root)
        if place.parts[0] not in skipped:
            digest.update(place.as_posix().encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()


class Store:
    """A folder with one small file per finished trial."""

    def __init__(self, folder: Path, code: str | None = None) -> None:
        self.folder = folder
        self.code = code_digest() if code is None else code
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, unit: Unit) -> Path:
        """Return the path of the result of a trial."""
        return self.folder / f"{unit.key(self.code)}.json"

    def load(self, unit: Unit) -> list[Point] | None:
        """Return the stored result, or None if it is missing or unreadable."""
        try:
            rows = json.loads(self.path(unit).read_text(encoding="utf-8"))
            points = [Point(*row) for row in rows]
        except (OSError, ValueError, TypeError):
            return None
        return points if [p.updates for p in points] == list(unit.checks) else None

    def save(self, unit: Unit, points: list[Point]) -> None:
        """Store a result atomically."""
        write_text(self.path(unit), [json.dumps(points)])


Results = dict[Unit, list[Point]]
OnDone = Callable[[Unit], None]


def run_units(
    units: Iterable[Unit],
    problems: Mapping[int, Problem],
    store: Store,
    *,
    workers: int | None = None,
    on_done: OnDone = lambda unit: None,
) -> Results:
    """Return the results of all trials; stored ones are not run again.

    Parameters
    ----------
    units : iterable of Unit
        The trials.
    problems : mapping from int to Problem
        The problem of each number of variables.
    store : Store
        Stored results.
    workers : int, optional
        Number of threads; all cores by default. Results do not depend on it.
    on_done : callable
        Callback, called with each finished trial in the calling thread.
    """
    found: Results = {}
    missing = []
    for unit in units:
        stored = store.load(unit)
        if stored is None:
            missing.append(unit)
        else:
            found[unit] = stored
            on_done(unit)
    _compile({unit.method for unit in missing}, problems)
    missing.sort(key=lambda unit: -unit.cost)  # longest first, so that threads end together
    pool = ThreadPoolExecutor(workers or usable_cores())
    try:
        _collect(pool, missing, problems, store, found, on_done)
    finally:
        # After an interrupt, running trials finish (a second or two); the others are dropped.
        pool.shutdown(cancel_futures=True)
    return found


def _collect(
    pool: ThreadPoolExecutor,
    missing: list[Unit],
    problems: Mapping[int, Problem],
    store: Store,
    found: Results,
    on_done: OnDone,
) -> None:
    def run(unit: Unit) -> list[Point]:
        points = follow(unit, problems[unit.n])
        store.save(unit, points)
        return points

    waiting: dict[Future[list[Point]], Unit] = {pool.submit(run, unit): unit for unit in missing}
    while waiting:
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            unit = waiting.pop(future)
            found[unit] = future.result()
            on_done(unit)


def _compile(methods: set[Method], problems: Mapping[int, Problem]) -> None:
    """Do one update of each method, so that timings exclude compilation."""
    n = min(problems)
    for method in sorted(methods, key=lambda method: method.label):
        follow(Unit("", n, 0, 0, method, 100.0, 0, (5,)), problems[n])
