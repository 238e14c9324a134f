"""The interface to the compiled exact search: models as factor tables, and results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.model import Model
from softmap.model.potentials.base import Costs, Ints
from softmap.relaxation.bounds import lower_tables

__all__ = ["ExactResult", "ExactSearch", "FlatModel", "Log", "flatten", "solve_exact"]

OPEN_NODE_BYTES = 2.0**30
"""Memory for open nodes; beyond it the search goes on depth first."""


@dataclass(frozen=True)
class FlatModel:
    """Variables with unary costs, and factors of two or more variables as row-major tables."""

    num_labels: Ints
    unary: Costs
    scope_start: Ints
    scope: Ints
    tables: Costs
    constant: float


@dataclass(frozen=True)
class Log:
    """The proof records of a search: the first `size` bytes of a file."""

    path: Path
    size: int


@dataclass(frozen=True)
class ExactResult:
    """The best labelling and the lower bound of a search."""

    labels: Ints | None
    energy: float
    lower_bound: float
    slack: float
    complete: bool
    infeasible: bool
    nodes: int
    backtracks: int
    counts: dict[str, Any]

    @property
    def root_bound(self) -> float:
        """The lower bound at the root of the search tree."""
        return float(self.counts["root_bound"])

    @property
    def log(self) -> Log | None:
        """The file that proves the bound, or None if none was requested or writing failed."""
        size = int(self.counts["logged"])
        return Log(Path(self.counts["log"]), size) if size else None

    @property
    def optimal(self) -> bool:
        """Whether the labelling is proved optimal, up to rounding and the requested gap."""
        return self.complete and self.labels is not None


def flatten(model: Model) -> FlatModel:
    """Return the model with each auxiliary node replaced by the factor that it represents.

    Costs that are products are rounded down, so a lower bound of the flat model is a lower bound of
    the model.
    """
    n, aux = model.num_variables, model.auxiliaries
    pairs = np.flatnonzero((model.edges < n).all(axis=1))
    split = int(model.node_offset[n])
    order = [_joint_scope(aux.stride[a:b], aux.member[a:b]) for a, b in _spans(aux.start)]
    arity = np.concatenate([np.full(len(pairs), 2), np.diff(aux.start)]).astype(np.int64)
    scopes = [model.edges[pairs].astype(np.int64).ravel(), *order]
    return FlatModel(
        model.num_labels[:n].astype(np.int64),
        np.ascontiguousarray(model.unary[:split], float),
        np.concatenate([[0], np.cumsum(arity)]).astype(np.int64),
        np.concatenate(scopes).astype(np.int64),
        np.concatenate([lower_tables(model, pairs), model.unary[split:]]),
        float(model.constant),
    )


def _spans(start: Ints) -> list[tuple[int, int]]:
    return list(zip(start[:-1].tolist(), start[1:].tolist(), strict=True))


def _joint_scope(stride: Ints, member: Ints) -> Ints:
    """Members of a factor in the order of the axes of its table, by decreasing stride."""
    if (np.diff(stride) > 0).any():
        raise ValueError("the strides of an auxiliary node must not increase")
    return member


def flat_lam(model: Model, lam: NDArray[np.float64]) -> Costs:
    """Return λ of the half-edges as one block per variable in the scope of each flat factor."""
    n = model.num_variables
    tied = (model.edges >= n).any(axis=1)
    pairs = np.flatnonzero(~tied)
    ties = np.flatnonzero(tied)
    member = 2 * ties + (model.edges[ties, 0] >= n)
    halves = np.concatenate([np.stack([2 * pairs, 2 * pairs + 1], axis=1).ravel(), member])
    sizes = np.diff(model.half_offset)[halves]
    begin = np.cumsum(sizes) - sizes
    return lam[np.repeat(model.half_offset[halves] - begin, sizes) + np.arange(sizes.sum())]


class ExactSearch:
    """A resumable search for an optimal labelling; each call of `go_on` continues it.

    Parameters
    ----------
    model : Model or FlatModel
        The model.
    incumbent : int array, optional
        Labels of a known labelling.
    lam : float array, optional
        Initial reparametrisation λ, as `flat_lam` returns it.
    relative_gap, absolute_gap : float
        The search ignores labellings that improve the incumbent by less than these gaps.
    presolve : bool
        Whether variables and labels are eliminated first; only tests turn it off.
    ascent : bool
        Whether message passing raises the bound of the root.
    dp_limit : int
        Largest number of table entries for dynamic programming.
    open_bytes : int
        Memory for open nodes, in bytes. Beyond it, the search is depth first.
    seconds : float
        Total time over all calls, in seconds; decides whether dynamic programming is started.
    log : str or Path, optional
        Prefix of the names of the files with proofs of the bound (docs/proofs.md).
    threads : int, default 1
        Number of threads of calls without a limit on backtracks; one thread writes a proof. The
        optimum and its proof do not depend on the number or the timing of threads. If several
        labellings are optimal within the gaps, the labels may; a known labelling that is optimal is
        returned unchanged.
    split_work : int, optional
        Table entries read before further threads start; by default 20 to 80 ms.
    """

    def __init__(  # noqa: PLR0913 - what a search may depend on
        self,
        model: Model | FlatModel,
        *,
        incumbent: ArrayLike | None = None,
        lam: Costs | None = None,
        relative_gap: float = 1e-9,
        absolute_gap: float = 0.0,
        presolve: bool = True,
        ascent: bool = True,
        dp_limit: float = 1e9,
        open_bytes: float = OPEN_NODE_BYTES,
        seconds: float = 1e9,
        log: str | Path | None = None,
        threads: int = 1,
        split_work: int = -1,
    ) -> None:
        flat = flatten(model) if isinstance(model, Model) else model
        self._native = core.ExactSearch(
            flat.num_labels, flat.unary, flat.scope_start, flat.scope, flat.tables, flat.constant,
            np.zeros(0) if lam is None else lam, _labels(incumbent), relative_gap, absolute_gap,
            open_bytes, presolve, ascent, dp_limit, seconds, "" if log is None else str(log),
            threads, split_work,
        )  # fmt: skip

    def go_on(
        self,
        *,
        incumbent: ArrayLike | None = None,
        time_limit: float = 1e9,
        end: float = 0.0,
        backtrack_limit: int = -1,
        stop: core.StopFlag | None = None,
    ) -> ExactResult:
        """Continue the search within limits; `lower_bound` is valid whatever ended the search.

        Dynamic programming cannot be resumed, so it may run until `end` seconds from now. `stop` is
        a `StopFlag` of the compiled module, which another thread or a signal handler may set. With
        it, signal handlers are called during the search if this is the main thread.
        """
        r = self._native.go_on(_labels(incumbent), time_limit, end, backtrack_limit, stop)
        labels = np.array(r.pop("labels"), np.int64)
        named = ("energy", "lower_bound", "slack", "complete", "infeasible", "nodes", "backtracks")
        fields = {name: r.pop(name) for name in named}
        return ExactResult(labels if len(labels) else None, **fields, counts=r)


def _labels(given: ArrayLike | None) -> Ints:
    return np.zeros(0, np.int64) if given is None else np.array(given, np.int64).ravel()


def solve_exact(
    model: Model | FlatModel,
    *,
    time_limit: float = 1e9,
    backtrack_limit: int = -1,
    stop: core.StopFlag | None = None,
    **options: Any,
) -> ExactResult:
    """Run an `ExactSearch` with the given options in one call."""
    search = ExactSearch(model, seconds=time_limit, **options)
    return search.go_on(time_limit=time_limit, backtrack_limit=backtrack_limit, stop=stop)
