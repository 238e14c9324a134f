"""Labels of a run: searched for at once, or beside the passes until the next check."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

from softmap.algorithms.base import Floats
from softmap.errors import InfeasibleModel
from softmap.labels import round_nodes
from softmap.labels.feasible import find_feasible
from softmap.labels.search import Readable
from softmap.solving.beside import Beside

if TYPE_CHECKING:
    from softmap.solving.run import Run

__all__ = ["find_labels", "take_labels"]


def find_labels(
    run: Run, lam: Readable, nodes: Floats, primal: float, *, wait: bool = True
) -> None:
    """Search for labels around λ; `primal` tells how much of the gap the LP may still close.

    Where nobody has to wait for them, they are searched for beside the next passes.
    """
    search, bound = run.search, run.judge.bound
    if not run.pace.in_time(run.left, "labels", "end"):
        if not math.isfinite(search.energy):
            run.keep_labels(round_nodes(run.model, nodes))
        return
    # where only the LP is asked for, labels are read off and improved once
    work = 0 if run.options.goal == "lp" else run.state.work
    if not wait:
        look = search.looking(lam, nodes, bound=bound, primal=primal, work=work)
        run.awaited = Beside(look, apart=run.threads > 1)
        return
    with run.pace.timed("labels"):
        search.look(lam, nodes, bound=bound, primal=primal, work=work)
        if not math.isfinite(search.energy):
            _obey(run, nodes)
    run.judge.credit(search.labels, search.energy)


def take_labels(run: Run, *, patient: bool = True) -> bool:
    """Take what was searched for beside the passes; whether that is better than what is known.

    Unless `patient`, and where the time limit comes first, it is left where it is.
    """
    awaited, run.awaited = run.awaited, None
    wait = None if math.isinf(run.left) else max(0.0, run.left)
    found = awaited.found(wait if patient else 0.0) if awaited is not None else None
    if awaited is None or found is None:
        return False
    run.pace.note("labels", awaited.seconds)
    better = found.energy < run.search.energy
    run.search.adopt(found)
    run.judge.credit(run.search.labels, run.search.energy)
    return better


def _obey(run: Run, nodes: Floats) -> None:
    """Look for any labels that obey the hard constraints, for a part of what passes took."""
    with suppress(InfeasibleModel):  # the bound of the relaxation is of use all the same
        found = find_feasible(run.model, nodes, seconds=run.left, work=run.state.work // 2)
        if found is not None:
            run.search.take(found)
            run.search.improve(run.judge.bound, run.state.work)
