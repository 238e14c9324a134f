"""`solve_mbest`: the m best labellings, or m diverse ones, each with a certified bound."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.arguments import count, not_negative, time_limit_of
from softmap.drive.loop import prove_infeasible
from softmap.drive.prooffile import ProofFile
from softmap.drive.solve import solve
from softmap.errors import InfeasibleModel, OptionError, ProofWarning
from softmap.hints import suggesting
from softmap.machine import available_memory, usable_cores
from softmap.model import Model, Network, checked_model
from softmap.model.potentials.base import Ints
from softmap.relaxation.flat import EliminationOrder, elimination_order, flatten
from softmap.relaxation.gaps import model_unit, relative_gap
from softmap.run.failures import Failures
from softmap.run.interrupts import Interrupts
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.result import Result
from softmap.tasks.diverse import next_diverse
from softmap.tasks.parts import Partition

__all__ = ["RankedLabelling", "solve_mbest"]


@dataclass(frozen=True)
class MbestLimits:
    """How long the best labelling is looked for, and when elimination finds all of them."""

    first_share: float = 0.4  # of the time: for the best labelling; D96
    counting_share: float = 0.4  # of the time: for elimination; D96
    entries: float = 5e8  # most table entries of elimination; D34
    entry_bytes: int = 16  # bytes per table entry that is kept: two doubles; D34
    chosen: int = 20_000_000  # most labels of all labellings of elimination: 160 MB; D128


MBEST = MbestLimits()


@dataclass(frozen=True, eq=False)
class RankedLabelling:
    """One of the labellings of `solve_mbest`.

    Attributes
    ----------
    labels : int64 array
        The labelling.
    energy : float
        `model.energy(labels)`.
    bound : float
        Certified lower bound on the energy of the true entry of this rank.
    proved : bool
        Whether `energy` is within the requested relative gap of `bound`.
    """

    labels: NDArray[np.int64]
    energy: float
    bound: float
    proved: bool


@suggesting
def solve_mbest(
    model: Model,
    m: int,
    *,
    diversity: int | None = None,
    time_limit: float | None = None,
    gap: float = 1e-6,
    threads: int | None = None,
    seed: int = 0,
    proof: str | Path | None = None,
) -> list[RankedLabelling]:
    """Return the m best labellings in order of energy, or m diverse labellings.

    Without `diversity`, entry k is the labelling of k-th lowest energy, and its `bound` is a lower
    bound on the k-th lowest energy. With `diversity=d`, entry k has the lowest energy among the
    labellings that differ from *each* earlier entry in at least d variables, and its `bound` is a
    lower bound on the energy of all of those. Entries are found greedily; they need not be the best
    set of m.

    Parameters
    ----------
    model : Model
    m : int
        Number of labellings.
    diversity : int, optional
        Smallest number of variables in which any two labellings differ.
    time_limit : float, optional
        Time limit in seconds, for all labellings. Without a limit every entry is searched for until
        it is proved; with one, see `proved` of each entry.
    gap : float, default 1e-6
        Relative gap to `bound` at which an entry counts as proved. Labellings whose energies differ
        by less may come in either order.
    threads : int, optional
        Number of threads; all that this process may use by default.
    seed : int, default 0
        Seed of the random numbers.
    proof : str or Path, optional
        File to which a proof of all ranks is written, for `softmap.verify`; without `diversity`.

    Returns
    -------
    list of RankedLabelling
        Fewer than m if no more labellings of finite cost exist, or none was found in time. Ctrl-C
        ends the search as a time limit does.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.generators.potts_grid(4, 4, 3, seed=1)
    >>> ranked = softmap.solve_mbest(model, 3)
    >>> [entry.proved for entry in ranked]
    [True, True, True]
    >>> ranked[0].energy <= ranked[1].energy <= ranked[2].energy
    True
    """
    most, gap = count("m", m, 1), not_negative("gap", gap)
    apart = None if diversity is None else count("diversity", diversity, 1)
    limit = time_limit_of(time_limit)
    cores = usable_cores() if threads is None else count("threads", threads, 1)
    options = Options(proof=proof, time_limit=time_limit, threads=threads, seed=seed, gap=gap)
    if apart is not None and proof is not None:
        raise OptionError("proof: there is none for diverse labellings; leave out `diversity`")
    with Interrupts() as interrupts:
        deadline = interrupts.within(limit)
        if apart is None and proof is None:
            known = _by_elimination(checked_model(model), most, gap, cores, deadline)
            if known is not None:
                return known
        first = _first(model, options)
        if options.proof is None:
            return _others(first, most, apart, deadline)
        return _proved(first, most, deadline, ProofFile(Path(options.proof)))


def _first(model: Model, options: Options) -> Result:
    """Return the run that finds the best labelling; prove it if there is none."""
    share = MBEST.first_share * options.seconds
    try:
        return solve(
            model, goal="optimal", time_limit=share, gap=options.gap, threads=options.threads,
            seed=options.seed,
        )  # fmt: skip
    except InfeasibleModel:
        if options.proof is not None:
            prove_infeasible(ProofFile(Path(options.proof)), model, options, Interrupts())
        raise


def _proved(
    first: Result, most: int, deadline: core.Deadline, proof: ProofFile
) -> list[RankedLabelling]:
    """Return the best labellings, and write the proof; warn if it cannot be written."""
    model, gap = first.model, first.tolerances[1]
    reason = "no labelling was found"
    try:
        if not math.isfinite(first.energy):
            return []
        parts = Partition(first, gap, deadline, most, proof)
        found = _sorted(model, _until_failure(parts, most))
        ranked = [_ranked(model, labels, bound, gap) for labels, bound in found]
        reason = parts.write(proof, [(entry.labels, entry.bound) for entry in ranked])
        return ranked
    finally:
        proof.close()
        if reason:
            said = f"{proof.target}: the proof cannot be written ({reason})"
            warnings.warn(ProofWarning(said, written=False), stacklevel=3)


def _by_elimination(
    model: Model, most: int, gap: float, threads: int, deadline: core.Deadline
) -> list[RankedLabelling] | None:
    """Return the best labellings by dynamic programming; None if the model is too wide for it."""
    problem = Problem.unrounded(model)
    order = elimination_order(problem.model, MBEST.entries)
    room = available_memory()
    short = (
        order.found
        and not problem.given.has_chains  # labellings are counted with those of chain variables
        and most * model.n <= MBEST.chosen
        and (room is None or MBEST.entry_bytes * order.stored <= room)
    )
    if not short:
        return None
    end = deadline.within(MBEST.counting_share * deadline.left)  # `solve` has the rest
    upper = math.inf
    while True:
        labels, bounds, slack = _enumerated(problem, order, most, upper, threads, end)
        if not labels:  # out of time, or infeasible: `solve` says which
            return None
        found = _sorted(model, list(zip(labels, map(problem.bound_back, bounds), strict=True)))
        ranked = [_ranked(model, x, bound, gap) for x, bound in found]
        if math.isfinite(upper) or len(ranked) < most or all(entry.proved for entry in ranked):
            return ranked
        # the energy of the last labelling allows a finer rounding of the costs
        highest = max(float(problem.model.energy(x)) for x in labels)
        upper = highest + 1e-6 * max(abs(highest), slack)


def _enumerated(
    problem: Problem,
    order: EliminationOrder,
    most: int,
    upper: float,
    threads: int,
    deadline: core.Deadline,
) -> tuple[list[Ints] | None, list[float], float]:
    """Return labellings, bounds of their ranks, and the rounding of bounds; None if time ran out.

    `upper` is an upper bound on the energy of the last labelling, in the units of the problem.
    """
    flat = flatten(problem.model)
    found = core.best_labellings(flat.native, order.variables, most, upper, threads, deadline)
    labels = [np.array(x, np.int64) for x in found["labels"]]
    return (labels if found["complete"] else None), found["bounds"], found["slack"]


def _others(
    first: Result, most: int, apart: int | None, deadline: core.Deadline
) -> list[RankedLabelling]:
    """Return the first labelling and the following ones."""
    if not math.isfinite(first.energy):
        return []
    model, gap = first.model, first.tolerances[1]
    if apart is not None:
        found = _until_failure(_apart(first, apart, deadline), most)
    else:
        found = _sorted(model, _until_failure(Partition(first, gap, deadline, most), most))
    return [_ranked(model, labels, bound, gap) for labels, bound in found]


def _until_failure(labellings: Iterable[tuple[Ints, float]], most: int) -> list[tuple[Ints, float]]:
    """Return labellings with their bounds, those before a search that raises an exception, too."""
    failures, steps = Failures(), iter(labellings)
    found: list[tuple[Ints, float]] = []
    while len(found) < most:
        one = failures.attempt_part("labellings", lambda: next(steps, None), None)
        if one is None:
            break
        found.append(one)
    return found


def _sorted(model: Model, found: list[tuple[Ints, float]]) -> list[tuple[Ints, float]]:
    """Sort labellings by energy, and bounds with them: bounds belong to ranks."""
    labels = sorted((labels for labels, _ in found), key=model.energy)
    return list(zip(labels, accumulate((bound for _, bound in found), max), strict=True))


def _ranked(model: Model, labels: Ints, bound: float, gap: float) -> RankedLabelling:
    energy = float(model.energy(labels))
    labels = labels[: model.n]
    bound = min(bound, energy)
    proved = relative_gap(energy - bound, model_unit(model.network, bound)) <= gap
    shaped = labels if model.shape is None else labels.reshape(model.shape)
    return RankedLabelling(shaped, energy, bound, proved)


def _apart(first: Result, distance: int, deadline: core.Deadline) -> Iterator[tuple[Ints, float]]:
    """Yield diverse labellings, each with its bound."""
    problem = Problem.unrounded(first.model)
    flat = flatten(problem.model)
    best = first.labels.reshape(-1)
    earlier, bound = [best], first.bound
    yield best, bound
    while True:
        labels, proved = next_diverse(flat, earlier, distance, deadline)
        simple = (
            None if math.isinf(proved) and proved > 0 else _moved(problem.scaled, earlier, distance)
        )
        options = [x for x in (labels, simple) if x is not None]
        if not options:
            return
        labels = min(options, key=problem.scaled.energy)
        bound = max(bound, problem.bound_back(proved))  # bounds do not decrease with the rank
        earlier.append(problem.scaled.visible(labels))
        yield earlier[-1], bound


def _moved(model: Network, earlier: list[Ints], distance: int) -> Ints | None:
    """Change labels of the last labelling until it differs enough from all, or return None.

    The cost of a change is estimated from pairwise costs, for each change separately.
    """
    last, n = earlier[-1], len(model.visible_counts)
    cost = model.visible_unary.copy()
    for e in model.inner_edges.tolist():
        i, j = model.edges[e].tolist()
        table = model.table(e)
        cost[model.node_slice(i)] += table[:, last[j]]
        cost[model.node_slice(j)] += table[last[i]]
    owner = np.repeat(np.arange(n), model.num_labels[:n])
    cost -= cost[model.node_offset[:n] + last][owner]
    moved = last.copy()
    for k in np.argsort(cost, kind="stable").tolist():
        i = owner[k]
        if moved[i] == last[i]:
            moved[i] = k - model.node_offset[i]
        if min(int((moved != x).sum()) for x in earlier) >= distance:
            return moved if math.isfinite(model.energy(moved)) else None
    return None
