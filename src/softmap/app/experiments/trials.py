"""One trial of one method on one graph: the smallest piece of a reproduction."""

from __future__ import annotations

import hashlib
import json
import math
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from softmap import generators
from softmap.errors import OptionError, SoftmapError
from softmap.labels import LabelSearch
from softmap.methods.base import Algorithm, Proposal
from softmap.methods.paper import methods as paper
from softmap.methods.paper.methods import StandardState
from softmap.methods.registry import make
from softmap.model import Model
from softmap.relaxation import lp, theory
from softmap.solving.judge import Judge

__all__ = [
    "COLUMNS",
    "FORMS",
    "PAPER",
    "AccelBCDPrinted",
    "Method",
    "Point",
    "Problem",
    "Unit",
    "cvxpy_optimum",
    "follow",
    "passes_until",
    "problem",
    "reference_row",
    "solvers",
    "star_size",
    "trial_seed",
]

# The two readings of the accelerated algorithms.
FORMS = ("printed", "proved")


class AccelBCDPrinted(paper.AccelBCD):
    """Accelerated block-coordinate descent in the scheme that Algorithm 2 prints."""

    name = "accel-bcd-printed"
    printed = True


@dataclass(frozen=True)
class Method:
    """One line of a figure.

    Attributes
    ----------
    method : str
        Family: emp, smp, bcd; or momentum, anneal (and their star versions).
    form : str
        standard, printed or proved; fixed or annealed for methods that pass over the whole graph.
    """

    method: str
    form: str

    @property
    def label(self) -> str:
        """As a legend has it."""
        if self.form in ("fixed", "annealed"):
            kind = "stars" if self.method.endswith("-star") else "chains"
            return f"{kind}, momentum, {'η annealed' if self.steered else 'η fixed'}"
        name = self.method.upper()
        return name if self.form == "standard" else f"Accel-{name}, as {self.form}"

    @property
    def steered(self) -> bool:
        """Whether it changes η by what the judge finds."""
        return self.form == "annealed"

    @property
    def sweeping(self) -> bool:
        """Whether a step is a pass over the whole graph."""
        return self.form in ("fixed", "annealed")

    @property
    def stars(self) -> bool:
        """Whether an update takes a whole star."""
        return self.method == "smp"

    def make(self, eta: float) -> Algorithm:
        """The algorithm, on one thread; an annealed one chooses its η itself."""
        if self.sweeping:
            name = self.method.replace("momentum", "anneal")
            return make(name, eta=None if self.steered else eta, threads=1)
        if (self.method, self.form) == ("bcd", "printed"):
            printed: Algorithm = AccelBCDPrinted(eta)
            return printed
        names = {"standard": "{}", "proved": "accel-{}", "printed": "accel-{}-printed"}
        if self.form not in names:
            raise OptionError(f"unknown form {self.form!r}")
        return make(names[self.form].format(self.method), eta=eta)


PAPER = tuple(
    Method(method, form) for method in ("emp", "smp", "bcd") for form in ("standard", *FORMS)
)


def solvers() -> tuple[Method, ...]:
    """Momentum over passes at a fixed η, and annealed, for every kind of pass there is."""
    kinds = ("anneal", "anneal-star")
    fixed = [Method(kind.replace("anneal", "momentum"), "fixed") for kind in kinds]
    return (*fixed, *(Method(kind, "annealed") for kind in kinds))


COLUMNS = (
    "n", "m", "labels", "cost", "min_degree", "max_degree", "optimum",
    "cvxpy_optimum", "unary_energy", "uniform_cost", "fingerprint",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """A model of the paper's law and the value of its LP."""

    model: Model
    optimum: float


def problem(size: int, labels: int, seed: int) -> Problem:
    """The random graph of section "Numerical Experiments" and its optimum, by HiGHS."""
    model = generators.erdos_renyi(size, labels, seed=seed)
    # a vertex solution; tolerances well below the gaps that the figures show
    solution = lp.solve(model, "simplex", tolerance=1e-9, threads=1)
    if not math.isfinite(solution.value):
        raise SoftmapError(f"HiGHS found no optimum: {solution.status}")
    return Problem(model, solution.value)


def reference_row(given: Problem, *, check: bool) -> tuple[Any, ...]:
    """Facts about a problem that claims are decided by (`COLUMNS`)."""
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
    """The LP once more, written down independently in CVXPY; None where that is not installed.

    For models with one label count, as the paper's are.
    """
    try:
        cvxpy: Any = import_module("cvxpy")
    except ImportError:
        return None
    n, m, d = model.n, model.m, int(model.num_labels[0])
    nodes = cvxpy.Variable((n, d), nonneg=True)
    pairs = cvxpy.Variable((m, d * d), nonneg=True)  # tables row by row
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
    """What is seen of a run after some updates (or passes).

    `primal` and `bound` belong to the current iterate; `returned` is the primal value of what the
    method would give back: the iterate of least slack (Algorithm 1), the best so far (our solvers),
    the current one (the accelerated methods). `seconds` are those of the method on one core.
    """

    updates: int
    work: int
    seconds: float
    primal: float
    returned: float
    bound: float


@dataclass(frozen=True)
class Unit:
    """A trial: which figure it is for, on which graph, by which method, looked at when."""

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
        """A guess of its seconds, for progress bars: nanoseconds per update that were measured."""
        if self.method.sweeping:
            return self.checks[-1] * 2.5e-4 + len(self.checks) * 2e-3
        return self.checks[-1] * (6e-6 if self.method.stars else 1.5e-6) + len(self.checks) * 2e-3

    def key(self, code: str) -> str:
        """A name for its result that depends on everything the result depends on."""
        facts = json.dumps({**asdict(self), "code": code}, sort_keys=True)
        return hashlib.sha256(facts.encode()).hexdigest()[:24]


def trial_seed(seed: int, trial: int) -> int:
    """Seed of a trial; all methods share it, so that trials are compared in pairs."""
    return int(np.random.SeedSequence([seed, trial]).generate_state(1)[0])


def star_size(degree: Any) -> float:
    """Messages per star update on average, when vertices are drawn by degree."""
    return float((degree**2).sum() / degree.sum())


def passes_until(last: int) -> tuple[int, ...]:
    """When methods that pass over the whole graph are looked at; η moves only every tenth pass."""
    regular = [*range(10, 101, 10), *range(120, last + 1, 20)]
    return (*(k for k in [1, 2, 3, 5, *regular] if k < last), last)


def follow(unit: Unit, given: Problem) -> list[Point]:
    """Run a trial; the clock stands still while it is judged, unless the method heeds the judge."""
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
    """Primal of the current iterate and of the one returned, bound of the current one."""
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
