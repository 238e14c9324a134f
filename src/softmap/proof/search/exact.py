"""Models as flat factor tables for the native exact solver, and its answer."""

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
    """The records of a search: the first `size` bytes of a file."""

    path: Path
    size: int


@dataclass(frozen=True)
class ExactResult:
    """What the search found and proved."""

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
        """What was proved before the first decision."""
        return float(self.counts["root_bound"])

    @property
    def log(self) -> Log | None:
        """The file that proves the bound, where one was asked for and could be written."""
        size = int(self.counts["logged"])
        return Log(Path(self.counts["log"]), size) if size else None

    @property
    def optimal(self) -> bool:
        """Whether the labelling is proved optimal, up to the rounding slack and the gap asked."""
        return self.complete and self.labels is not None


def flatten(model: Model) -> FlatModel:
    """The model with each auxiliary node replaced by the factor it stands for.

    Costs that were rounded as products are rounded down: a bound for this is one for the model.
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
    """Members in the order of the joint states' axes: the largest stride is the first axis."""
    if (np.diff(stride) > 0).any():
        raise ValueError("the strides of an auxiliary node must not increase")
    return member


def flat_lam(model: Model, lam: NDArray[np.float64]) -> Costs:
    """λ of softmap's half-edges as one block per scope entry of the flat factors."""
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
    """A search for an optimal labelling that goes on with every call.

    Parameters
    ----------
    model : Model or FlatModel
    incumbent : labels to start from, if any are known
    lam : λ by which costs are moved first: one block per scope entry, see `flat_lam`
    relative_gap, absolute_gap : how much better a labelling must be to be looked for
    presolve : whether variables and labels are taken out first; only tests leave it away
    ascent : whether the bound of the root is raised by message passing
    dp_limit : table entries of dynamic programming, at most
    open_bytes : memory for open nodes; beyond it the search goes on depth first
    seconds : what there is over all calls, by which dynamic programming is planned
    log : where the names of files with proofs of the bound begin (docs/proofs.md)
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
    ) -> None:
        flat = flatten(model) if isinstance(model, Model) else model
        self._native = core.ExactSearch(
            flat.num_labels, flat.unary, flat.scope_start, flat.scope, flat.tables, flat.constant,
            np.zeros(0) if lam is None else lam, _labels(incumbent), relative_gap, absolute_gap,
            open_bytes, presolve, ascent, dp_limit, seconds, "" if log is None else str(log),
        )  # fmt: skip

    def go_on(
        self,
        *,
        incumbent: ArrayLike | None = None,
        time_limit: float = 1e9,
        end: float = 0.0,
        backtrack_limit: int = -1,
        stop: Any = None,
    ) -> ExactResult:
        """Search on within limits; `lower_bound` is a true bound whatever ended the search.

        Dynamic programming, which cannot be interrupted and gone on with, may take until `end`
        seconds from now. `stop` is a `StopFlag` of the native module: another thread may set it.
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
    stop: Any = None,
    **options: Any,
) -> ExactResult:
    """Search for an optimal labelling and prove it, in one call; options are `ExactSearch`'s."""
    search = ExactSearch(model, seconds=time_limit, **options)
    return search.go_on(time_limit=time_limit, backtrack_limit=backtrack_limit, stop=stop)
