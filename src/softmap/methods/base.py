"""What every algorithm offers: begin, go on in place, and propose what the judge should look at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap.later import later
from softmap.methods.policy import Ask
from softmap.model import Model
from softmap.relaxation.point import Coupled

__all__ = ["Algorithm", "Floats", "Proposal", "State", "Verdict"]

Floats = NDArray[np.float64]


@dataclass
class State:
    """What an algorithm carries on: numpy arrays and plain numbers, so that it can be stored.

    Subclasses add their arrays as fields.

    Attributes
    ----------
    work : int, half-edge messages so far
    """

    work: int = 0


@later("lam", "coupling")
@dataclass(frozen=True)
class Proposal:
    """What the judge looks at. Any λ gives a bound; the rest are suggestions it makes feasible.

    Attributes
    ----------
    lam
        λ to take the bound of, or a function that makes it when it is asked for.
    eta
        Inverse temperature of the marginals.
    coupling
        κ of the edge marginals `exp(-η (C_e + κ_i + κ_j))`, or a function that makes it; λ itself
        if None.
    nodes
        Node marginals to try, the current ones first; those of λ if empty.
    smoothed
        Value of the regularised dual, where the method knows it.
    bound
        A bound that λ certainly proves, where the method has one for less than the judge.
    points
        The points over `nodes`, where the method prices them for less than the judge.
    labels
        Reads labels off, where that takes no λ; to be called before the next step.
    """

    lam: Floats
    eta: float
    coupling: Floats | None = None
    nodes: tuple[Floats, ...] = ()
    smoothed: float | None = None
    bound: float | None = None
    points: tuple[Coupled, ...] = ()
    labels: Callable[[], NDArray[np.int64]] | None = None


@dataclass(frozen=True)
class Verdict:
    """What the judge found at one proposal (not the best so far).

    Attributes
    ----------
    bound
        Lower bound that λ proves.
    primals
        Cost of the point of the local polytope made from each of the proposed node marginals.
    edge_entropy, slack
        Entropy of the edge marginals before they are made feasible; Σ ‖ν_{e,i}‖₁.
    nodes
        The node marginals of those points.
    """

    bound: float
    primals: tuple[float, ...]
    edge_entropy: float
    slack: float
    nodes: tuple[Floats, ...] = ()


class Algorithm(ABC):
    """One method, configured; the state is kept apart so that runs can be stored and resumed.

    A subclass has a name, the three abstract verbs, and what else it can do: the class attributes
    and the other verbs say so, with defaults that suit a plain randomised method.

    Attributes
    ----------
    name : str
        By which `softmap.solve` knows it.
    sweeping : bool
        One step is one pass over the whole graph; else it is one update of a random block.
    fixed_eta : bool
        Works at one η, which has to be given.
    exact_finish : bool
        Whether a small LP that is still open after very many passes goes to an exact solver.
    frugal : bool
        Whether arrays are far away: labels are not looked for where only the LP is asked for.
    """

    name: ClassVar[str]
    sweeping: ClassVar[bool] = False
    fixed_eta: ClassVar[bool] = False
    exact_finish: ClassVar[bool] = False
    frugal: ClassVar[bool] = False

    @classmethod
    def configured(cls, eta: float | None, threads: int, dtype: DTypeLike) -> Self:
        """The method with those options of a run that concern it: η only, unless overridden."""
        return cls(eta=eta)  # type: ignore[call-arg]

    @abstractmethod
    def init(self, model: Model, lam: Floats | None, seed: int) -> Any:
        """Begin at λ (0 if None) on a model without unsupported states (see `tighten`)."""

    @abstractmethod
    def step(self, state: Any, count: int) -> None:
        """Go on by `count` updates (randomised methods) or passes (sweep methods), in place."""

    @abstractmethod
    def propose(self, state: Any) -> Proposal:
        """Where it stands."""

    def answer(self, state: Any, ask: Ask) -> Proposal:
        """As much of `propose` as a check asks for, where less costs less."""
        return self.propose(state)

    def start_coarse(self, state: Any, stop: Callable[[], bool]) -> None:  # noqa: B027
        """Warm-start from a coarsened model, where there is one; before the first step.

        Parameters
        ----------
        state : as of `init`
        stop : function
            Whether there is no time left for that.
        """

    def observe(self, state: Any, verdict: Verdict) -> None:  # noqa: B027
        """Learn what the judge found, before the next step: an annealed method may raise η."""

    def lower_eta(self, state: Any, factor: float) -> None:  # noqa: B027
        """Divide η by a factor, where the method may choose it."""

    def restart_point(self, state: Any) -> Floats:
        """λ from which another run goes on best."""
        return self.propose(state).lam

    def judge_by(self, host: Any) -> Any:
        """The judge of a run: the host's, unless the method has a better one."""
        return host

    def rounded(self, state: Any) -> NDArray[np.int64] | None:
        """Labels that the last proposal came with, where there are any."""
        return None

    def decode_order(self, model: Model) -> NDArray[np.int64]:
        """The order in which variables are decided when labels are read off a proposed λ."""
        return np.arange(model.num_variables)[::-1]
