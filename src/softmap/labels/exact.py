"""The interface to the compiled exact search: models as factor tables, and results."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softmap import core
from softmap.model import Network
from softmap.model.potentials.base import Costs, Ints
from softmap.relaxation.flat import FlatModel, flatten

OPEN_NODE_BYTES = 2.0**30
"""Memory for open nodes; beyond it the search goes on depth first."""


@dataclass(frozen=True)
class Log:
    """The proof records of a search: the first `size` bytes of a file."""

    path: Path
    size: int


@dataclass(frozen=True)
class ExactResult:
    """The best labelling and the lower bound of a search.

    `root_bound` is the bound at the root of the search tree; `log` proves `lower_bound`, and is
    None if no file was requested or writing it failed.
    """

    labels: Ints | None
    energy: float
    lower_bound: float
    root_bound: float
    slack: float
    complete: bool
    infeasible: bool
    nodes: int
    backtracks: int
    log: Log | None
    counts: dict[str, Any]


class ExactSearch:
    """A resumable search for an optimal labelling; each call of `run` continues it.

    Parameters
    ----------
    model : Network or FlatModel
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
    search_first : float
        Work of a search before dynamic programming, relative to its table entries; only tests
        change it.
    threads : int, default 1
        Number of threads of dynamic programming, and of searches without a limit on backtracks and
        without a log. The optimum and its proof do not depend on the number or the timing of
        threads. If several labellings are optimal within the gaps, the labels may; a known
        labelling that is optimal is returned unchanged.
    split_work : int, optional
        Table entries read before further threads start; by default 20 to 80 ms.
    log : str or Path, optional
        Prefix of the names of the files with proofs of the bound (docs/proofs.md).
    """

    def __init__(  # noqa: PLR0913 - what a search may depend on
        self,
        model: Network | FlatModel,
        *,
        incumbent: ArrayLike | None = None,
        lam: Costs | None = None,
        relative_gap: float = 1e-9,
        absolute_gap: float = 0.0,
        presolve: bool = True,
        ascent: bool = True,
        dp_limit: float = 1e9,
        open_bytes: float = OPEN_NODE_BYTES,
        search_first: float | None = None,
        threads: int = 1,
        split_work: int | None = None,
        log: str | Path | None = None,
    ) -> None:
        flat = model if isinstance(model, FlatModel) else flatten(model)
        options = core.ExactOptions()
        options.relative_gap, options.absolute_gap = relative_gap, absolute_gap
        options.presolve, options.ascent = presolve, ascent
        options.threads, options.open_bytes = max(1, threads), open_bytes
        options.log = "" if log is None else str(log)
        effort = options.effort
        effort.max_stored = min(effort.max_stored, dp_limit)
        if search_first is not None:
            effort.search_first = search_first
        if split_work is not None:
            effort.split_work = split_work
        start = np.zeros(0) if lam is None else lam
        self._native = core.ExactSearch(flat.native, options, start, _labels(incumbent))

    def run(
        self,
        *,
        incumbent: ArrayLike | None = None,
        deadline: core.Deadline | None = None,
        end: core.Deadline | None = None,
        backtrack_limit: int = -1,
    ) -> ExactResult:
        """Continue the search within limits; `lower_bound` is valid whatever ended the search.

        Parameters
        ----------
        incumbent : int array, optional
            Labels found elsewhere.
        deadline : core.Deadline, optional
            When to stop.
        end : core.Deadline, optional
            When to stop what later calls could not resume, such as dynamic programming; by default
            `deadline`.
        backtrack_limit : int
            Largest number of backtracks of this call; -1: no limit.
        """
        r = self._native.run(_labels(incumbent), deadline, end, backtrack_limit)
        labels = np.array(r.pop("labels"), np.int64)
        path, size = Path(r.pop("log")), r.pop("logged")
        log = Log(path, size) if size else None
        named = {f.name for f in fields(ExactResult)} & r.keys()
        plain = {name: r.pop(name) for name in named}
        return ExactResult(labels=labels if len(labels) else None, log=log, **plain, counts=r)


def _labels(given: ArrayLike | None) -> Ints:
    return np.zeros(0, np.int64) if given is None else np.array(given, np.int64).ravel()


def solve_exact(
    model: Network | FlatModel,
    *,
    deadline: core.Deadline | None = None,
    backtrack_limit: int = -1,
    **options: Any,
) -> ExactResult:
    """Run an `ExactSearch` with the given options in one call."""
    search = ExactSearch(model, **options)
    return search.run(deadline=deadline, backtrack_limit=backtrack_limit)
