"""The interface of every algorithm: `init` a state, `step` in place, `propose` λ and marginals.

`METHODS` lists the methods by name, for `softmap.solve` and the command line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import OptionError
from softmap.hints import instead
from softmap.later import later
from softmap.machine import usable_cores
from softmap.methods.policy import Ask
from softmap.model import Network
from softmap.relaxation.dual import check_eta
from softmap.relaxation.polytope import Coupled
from softmap.tuning import TUNING, Tuning

Floats = NDArray[np.float64]


@dataclass
class State:
    """The state of an algorithm: numpy arrays and plain numbers, so that it can be stored.

    Subclasses add their arrays as fields.

    Attributes
    ----------
    work : int
        Number of half-edge messages computed so far.
    """

    work: int = 0


@later("lam", "coupling")
@dataclass(frozen=True)
class Proposal:
    """A proposal of an algorithm, which the judge turns into a bound and feasible points.

    Any λ proves a bound. The judge makes the marginals feasible.

    Attributes
    ----------
    lam : float64 array or function
        λ whose bound is computed, or a function that returns it (lazily computed).
    eta : float
        Inverse temperature η of the marginals.
    coupling : float64 array, function or None
        κ of the edge marginals `exp(-η (C_e + κ_i + κ_j))`, or a function that returns it. None
        means λ.
    nodes : tuple of float64 arrays
        Candidate node marginals, the current ones first. Empty means those of λ.
    smoothed : float or None
        Value of the regularised dual, if the method knows it.
    bound : float or None
        A bound that λ proves, if the method computes it faster than the judge.
    points : tuple or None
        The points over `nodes` with their costs, if the method computes them faster than the judge.
    labels : function or None
        Returns decoded labels without λ. It must be called before the next step.
    abandoned : bool
        Whether a deadline passed before points were computed: only the bound is of use.
    """

    lam: Floats
    eta: float
    coupling: Floats | None = None
    nodes: tuple[Floats, ...] = ()
    smoothed: float | None = None
    bound: float | None = None
    points: tuple[Coupled, ...] = ()
    labels: Callable[[], NDArray[np.int64]] | None = None
    abandoned: bool = False


@dataclass(frozen=True)
class Assessment:
    """The values that the judge computed for one proposal (not the best so far).

    Attributes
    ----------
    bound : float
        Lower bound that λ proves.
    primals : tuple of float
        Cost of the feasible point made from each of the proposed node marginals.
    edge_entropy : float
        Entropy of the edge marginals before the projection to the local polytope.
    slack : float
        Σ ‖ν_{e,i}‖₁ before the projection.
    nodes : tuple of float64 arrays
        The node marginals of the points.
    kept : tuple of bool
        Which of the points were better than all before, so that their marginals are still in use.
    labelled : bool
        Whether labels are better than all points, so that no marginals are in use.
    """

    bound: float
    primals: tuple[float, ...]
    edge_entropy: float
    slack: float
    nodes: tuple[Floats, ...] = ()
    kept: tuple[bool, ...] = ()
    labelled: bool = False


class Algorithm(ABC):
    """A configured method. Its state is a separate object, so that runs can be stored and resumed.

    A subclass defines `name` and the three abstract methods. The class attributes and the other
    methods have defaults that suit a randomised method.

    Attributes
    ----------
    name : str
        The name of the method in `softmap.solve`.
    sweeping : bool
        Whether one step is a pass over the whole graph; otherwise it updates one random block.
    fixed_eta : bool
        Whether the method runs at a fixed η, which the caller must give.
    exact_finish : bool
        Whether a small LP that is still open after very many passes is solved by an exact solver.
    frugal : bool
        Whether copying arrays from the method is expensive (GPU): no labels are decoded if only the
        LP is requested.
    compared : int
        Number of blocks whose messages one update of a randomised method computes.
    leaves_cores : bool
        Whether passes leave the cores free (GPU), so that labels are searched for meanwhile.
    tuning : Tuning
        The numbers of the run; see `with_tuning`.
    """

    name: ClassVar[str]
    sweeping: ClassVar[bool] = False
    fixed_eta: ClassVar[bool] = False
    exact_finish: ClassVar[bool] = False
    frugal: ClassVar[bool] = False
    compared: int = 1
    leaves_cores: ClassVar[bool] = False
    tuning: Tuning = TUNING

    @classmethod
    def configured(cls, eta: float | None, threads: int) -> Self:
        """Return the method with the options of a run that it uses (by default η only)."""
        return cls(eta=eta)  # type: ignore[call-arg]

    def with_tuning(self, tuning: Tuning) -> Self:
        """Read changed numbers from now on, and return the method."""
        self.tuning = tuning
        return self

    @abstractmethod
    def init(
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> Any:
        """Return the initial state at λ (0 if None) for an arc-consistent model (see `tighten`).

        Raises `OutOfTime` if the deadline passes first, as far as the method looks at it.
        """

    @abstractmethod
    def step(self, state: Any, count: int, deadline: core.Deadline | None = None) -> None:
        """Do `count` updates (randomised methods) or passes (sweep methods), in place.

        Fewer if the deadline passes first. The state can be used whatever ended the call; a pass
        that was not completed does not count.
        """

    @abstractmethod
    def propose(self, state: Any) -> Proposal:
        """Return λ and marginals of the current state."""

    def answer(self, state: Any, ask: Ask, deadline: core.Deadline | None = None) -> Proposal:
        """Return the part of `propose` that a check asks for, if that is faster than all of it.

        If the deadline passes first, the proposal may be `abandoned`.
        """
        return self.propose(state)

    def last_bound(self, state: Any, limit: core.Deadline) -> Proposal:
        """Propose λ once the time is up, also after a step that was stopped.

        Raises `core.OutOfTime` if the limit passes first, as far as the method looks at it.

        Parameters
        ----------
        state : State
            The state that `init` returned.
        limit : core.Deadline
            The end of the time limit; steps end earlier, so that a bound can be proposed.
        """
        return self.answer(state, Ask.BOUND, limit)

    def start_coarse(self, state: Any, deadline: core.Deadline | None = None) -> None:  # noqa: B027
        """Initialise coarse-to-fine, if the model can be coarsened; called before the first step.

        Parameters
        ----------
        state : State
            The state that `init` returned; it is changed in place.
        deadline : core.Deadline, optional
            The state is left as it is if this passes first.
        """

    def observe(self, state: Any, verdict: Assessment) -> None:  # noqa: B027
        """Receive the verdict of a check, before the next step; an annealed method may raise η."""

    def undo_proposal(self, state: Any) -> None:  # noqa: B027
        """Undo what `propose` has changed in the state, which can be stored then."""

    def restart_point(self, state: Any) -> Floats:
        """Return the λ that is the best warm start for another run."""
        return self.propose(state).lam

    def judge_by(self, host: Any) -> Any:
        """Return the judge of a run: `host`, unless the method has its own."""
        return host

    def rounded(self, state: Any) -> NDArray[np.int64] | None:
        """Return the labels of the last proposal, or None if it has none."""
        return None

    def decode_order(self, model: Network) -> NDArray[np.int64]:
        """Return the order in which `decode` fixes the variables."""
        return np.arange(model.num_variables)[::-1]


class SweepMethod(Algorithm):
    """Base class of methods whose steps are passes over the whole graph, on several threads.

    Parameters
    ----------
    eta : float, optional
        Inverse temperature η; by default from the scale of the costs.
    threads : int, default 1
    """

    sweeping = True

    def __init__(self, *, eta: float | None = None, threads: int = 1) -> None:
        self.given_eta, self.threads = eta, threads

    @classmethod
    def configured(cls, eta: float | None, threads: int) -> Self:
        return cls(eta=eta, threads=threads)


MethodName = Literal[
    "anneal", "trws", "emp", "smp", "bcd", "accel-emp", "accel-smp", "accel-bcd",
    "accel-emp-printed", "accel-smp-printed", "accel-bcd-printed", "greedy-emp", "greedy-smp",
    "sampled-emp", "sampled-smp", "accel-greedy-smp", "accel-sweeps", "anneal-safe", "anneal-star",
    "mplp", "diffusion", "nesterov",
]  # fmt: skip
"""The names of the methods, for type checkers and editors; a method of yours is `METHODS[name]`."""


class Methods(UserDict[str, Any]):
    """The method classes by name; an entry "module:class" is imported on first use."""

    def __getitem__(self, name: str) -> type[Algorithm]:
        found = self.data[name]
        if isinstance(found, str):
            module, _, kind = found.partition(":")
            found = self.data[name] = getattr(import_module(f"softmap.{module}"), kind)
        method: type[Algorithm] = found
        return method


# Methods to solve with.
SOLVERS = {"anneal": "methods.sweeps.anneal:Anneal", "trws": "methods.sweeps.trws:TRWS"}

# Methods of the paper, and known ones to compare with.
COMPARED = {
    "emp": "paper.methods:EMP",
    "smp": "paper.methods:SMP",
    "bcd": "paper.methods:BCD",
    "accel-emp": "paper.methods:AccelEMP",
    "accel-smp": "paper.methods:AccelSMP",
    "accel-bcd": "paper.methods:AccelBCD",
    "accel-emp-printed": "paper.methods:AccelEMPPrinted",
    "accel-smp-printed": "paper.methods:AccelSMPPrinted",
    "accel-bcd-printed": "paper.methods:AccelBCDPrinted",
    "greedy-emp": "paper.greedy:GreedyEMP",
    "greedy-smp": "paper.greedy:GreedySMP",
    "sampled-emp": "paper.greedy:SampledEMP",
    "sampled-smp": "paper.greedy:SampledSMP",
    "accel-greedy-smp": "paper.greedy:AccelGreedySMP",
    "accel-sweeps": "paper.accel_sweeps:AccelSweeps",
    "anneal-safe": "paper.anneal_safe:AnnealSafe",
    "anneal-star": "paper.baselines:AnnealStar",
    "mplp": "paper.baselines:MPLP",
    "diffusion": "paper.baselines:Diffusion",
    "nesterov": "paper.baselines:Nesterov",
}

METHODS = Methods(SOLVERS | COMPARED)


def find(method: str) -> type[Algorithm]:
    """Return the class of a method, or raise `OptionError` for an unknown name."""
    if method not in METHODS:
        hint = instead(method, METHODS) if isinstance(method, str) else ""
        others = [name for name in METHODS if name not in SOLVERS]
        every = f"; choose {' or '.join(SOLVERS)}, or to compare with: {', '.join(others)}"
        raise OptionError(f"unknown method {method!r}{hint or every}")
    return METHODS[method]


def make(method: str, *, eta: float | None = None, threads: int | None = None) -> Algorithm:
    """Return a configured method.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    eta : float, optional
        Inverse temperature η. The paper's methods need it; other methods anneal η themselves by
        default.
    threads : int, optional
        Number of threads of sweep methods.
    """
    if eta is not None:
        check_eta(eta)
    found = find(method)
    if found.fixed_eta and eta is None:
        raise OptionError(f"method {method!r} works at a fixed η: give eta=..., for example 1000.0")
    return found.configured(eta, threads or usable_cores())
