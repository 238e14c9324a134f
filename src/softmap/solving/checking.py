"""What a check asks: the bound, a point of the polytope and labels are questions of their own.

Each costs as much as one to ten passes, so it is asked where the answer may change something. What
is asked depends on passes and gaps only, never on a clock, unless a time limit is near.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from softmap.algorithms.base import Floats, Proposal, Verdict
from softmap.algorithms.policy import Checks
from softmap.labels import cheapest, round_nodes
from softmap.labels.search import Readable
from softmap.relaxation.bounds import reduced_nodes
from softmap.solving.handover import is_slow, solve_exactly
from softmap.solving.labelling import find_labels, take_labels
from softmap.solving.trace import Snapshot, StageName

if TYPE_CHECKING:
    from softmap.solving.run import Run

__all__ = ["check", "passes_to_next"]

RULE = Checks()
EARLY, HASTY, HOPE, RIVALS = RULE.early, RULE.hasty, RULE.hope, RULE.rivals
passes_to_next = RULE.passes_to_next


def check(run: Run, *, last: bool = False, least: bool = False) -> Snapshot:
    """Judge where the algorithm stands, and let it heed the verdict.

    Where time runs out, only the bound is looked at, and labels are found quickly or not at all;
    `least` is for a run that was broken off, and asks the method for nothing but λ.
    """
    take_labels(run)
    kind = "least" if least else run.pace.kind_of_check(run.left)
    same = len(run.trace) and run.checked_at == run.done
    if same and (kind != "check" or run.decoded_at == run.done):
        return run.note(StageName.RELAX)  # nothing has changed
    run.checked_at = run.done
    if kind == "check" and not last and _hasty(run):
        kind = "hasty"
    if kind != "check":
        with run.pace.timed(kind):
            snapshot = _least(run) if kind == "least" or not run.done else _brief(run, kind)
        run.next_check = run.done + run.interval()
        return snapshot
    proposal, verdict = _whole(run, last=last)
    if not last and is_slow(run):
        solve_exactly(run)
    snapshot = run.note(StageName.RELAX, proposal.smoothed, verdict.slack)
    run.algorithm.heed(run.state, verdict)
    run.next_check = run.done + run.interval()
    return snapshot


def _whole(run: Run, *, last: bool) -> tuple[Proposal, Verdict]:
    """A bound, a point, and labels where they are due."""
    before = run.judge.primal
    with run.pace.timed("check"):
        proposal = _proposal(run, last=last)
        run.eta = proposal.eta
        verdict = run.judge.look(proposal)
    _ask_for_labels(run, proposal, verdict, before, last=last)
    return proposal, verdict


def _hasty(run: Run) -> bool:
    """Whether a point is not worth its price yet: labels give an upper value, too."""
    early = run.algorithm.sweeping and run.done <= HASTY and run.warm is None
    return early and run.options.goal == "lp" and not run.algorithm.frugal


def _proposal(run: Run, *, last: bool) -> Proposal:
    """All there is to look at where that may end the run, now and then, and at the end."""
    near = run.gaps()[0] <= HOPE * run.options.lp_gap
    tight = run.search.energy <= run.judge.primal < math.inf
    if not (last or near or tight or run.done >= 2 * run.refined_at):
        return _sound(run, run.algorithm.sketch(run.state))
    run.refined_at = run.done
    return _sound(run, run.algorithm.propose(run.state))


def _sound(run: Run, seen: Proposal) -> Proposal:
    """The proposal, or the best λ so far where a method that may diverge has left the numbers."""
    if run.algorithm.sweeping or np.isfinite(seen.lam).all():
        return seen
    return Proposal(run.judge.lam, seen.eta)


def _ask_for_labels(
    run: Run, seen: Proposal, verdict: Verdict, before: float, *, last: bool
) -> None:
    """Search for labels at growing intervals, at the end, and until some obey hard constraints.

    Intervals grow more slowly where labels are all that is missing for the gap that was asked for,
    and not at all while passes are made to prove them.

    `before` is the cost of the best point before this check. λ is asked for only where it is
    needed: it may have to come from a device.
    """
    alone = run.options.goal == "lp"
    if alone and run.algorithm.frugal:
        return
    often = 2 if run.gaps()[0] <= HOPE * run.options.gap else 4
    due = last or (run.done >= often * run.decoded_at and (not alone or _rivals(run)))
    if due or not math.isfinite(run.search.energy):
        find_labels(run, _readable(seen), verdict.nodes[0], before, wait=last or _decisive(run))
    if due:
        run.decoded_at = run.done
    elif run.proving() or (run.closed() and not (alone and run.gaps()[1] <= run.options.lp_gap)):
        find_labels(run, _readable(seen), verdict.nodes[0], run.judge.primal)


def _readable(seen: Proposal) -> Readable:
    """What labels are read off: λ, unless the method needs none."""
    return seen.labels or seen.lam


def _decisive(run: Run) -> bool:
    """Whether labels are the first ones, or may end the run: then passes wait for them.

    A run for the LP alone looks for labels only where they may be the best point.
    """
    options, known = run.options, math.isfinite(run.search.energy)
    if not known or not run.algorithm.sweeping or options.goal == "lp":
        return True
    return run.gaps()[0] <= HOPE * max(options.lp_gap, options.gap)


def _rivals(run: Run) -> bool:
    """Whether labels are, or may become, a better point than the best; if never tried, they may."""
    gap = run.judge.primal - run.judge.bound
    return not run.decoded_at or not run.search.energy - run.judge.bound > RIVALS * gap


def _brief(run: Run, kind: str) -> Snapshot:
    """A check without a point of the polytope: the bound, and labels as they are read off."""
    proposal = _sound(run, run.algorithm.glimpse(run.state))
    run.eta = proposal.eta
    run.judge.notice(proposal)
    if proposal.nodes:
        run.keep_labels(round_nodes(run.model, proposal.nodes[0]))
    quickly = proposal.labels is not None and run.pace.in_time(run.left, "step", "end")
    if (kind == "hasty" or quickly) and not run.closed():
        run.keep_labels(run.search.read(_readable(proposal)))
    if not math.isfinite(run.search.energy):
        _read_labels(run, proposal.lam)
    return run.note(StageName.RELAX)


def _least(run: Run) -> Snapshot:
    """The bound of λ as it stands, and labels where there are none yet."""
    lam = run.restart_point() if run.done else run.judge.lam
    if run.done or not math.isfinite(run.judge.bound):
        run.judge.glance(lam)
    if not math.isfinite(run.search.energy):
        _read_labels(run, lam)
    return run.note(StageName.RELAX)


def _read_labels(run: Run, lam: Floats) -> None:
    """Labels of least cost under λ, each variable by itself."""
    theta = reduced_nodes(run.model, lam, run.threads) if run.done else run.model.unary
    run.keep_labels(cheapest(run.model, theta))
