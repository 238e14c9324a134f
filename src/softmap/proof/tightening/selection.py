"""Which clusters join a tightened model next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from softmap.model.potentials.base import Ints
from softmap.proof.tightening.clusters import PairCosts, cluster_scopes, cycle_gains
from softmap.proof.tightening.cycles import short_cycles
from softmap.proof.tightening.regions import Scope, Tightened
from softmap.relaxation.dual import Floats

__all__ = ["Limits", "select", "unions"]

CYCLES = 300_000  # of each length, looked at in one batch
ENTRIES = 1_000_000_000  # or so many joint states of three variables, if those are fewer
FACES = 2.0  # short cycles (3 or 4) per edge up to which all are taken: planar graphs have fewer


@dataclass(frozen=True)
class Limits:
    """What clusters may cost.

    Attributes
    ----------
    states : joint states of all regions together
    cluster : joint states of one cluster
    whole : cycles of up to so many joint states are not cut into triangles
    labels : variables with more labels take no part
    union : joint states of two clusters made one, when no cycle is left
    """

    states: int = 4_000_000
    cluster: int = 4096
    whole: int = 16
    labels: int = 64
    union: int = 64


def select(
    tight: Tightened, costs: PairCosts, limits: Limits, least: float, batch: int,
    *, deadline: float = math.inf, threads: int = 1,
) -> tuple[Scope, ...]:  # fmt: skip
    """New clusters, at most about `batch` cycles, whose gains are above `least`.

    Cycles are ranked by their gain over the square of the triangles they take. The first batch
    takes all cycles of up to four variables, gain or not, where they are few, as the faces of a
    grid are: one face frees the next. Later ones look for short cycles among edges and chords
    together.
    """
    first = not tight.clusters
    most = min(CYCLES, ENTRIES // costs.tables.shape[1] ** 3)
    found = short_cycles(costs.graph, 6 if first else 4, CYCLES)
    found = [_small(tight, cycles, limits)[:most] for cycles in found]
    faces = sum(len(c) for c in found[:2])
    whole = first and faces <= FACES * max(1, len(costs.graph.code))
    gains = [cycle_gains(costs, c, deadline=deadline, threads=threads) for c in found]
    size = [(c.shape[1] - 2) ** 2 for c in found]
    scores = [np.where(g > least, g, 0.0) / k for g, k in zip(gains, size, strict=True)]
    if whole:
        scores[:2] = [s + np.inf for s in scores[:2]]
    return _affordable(tight, found, scores, limits, max(batch, faces if whole else 0))


def _small(tight: Tightened, cycles: Ints, limits: Limits) -> Ints:
    """Cycles of which no triangle has too many joint states."""
    labels = np.sort(tight.base.num_labels[cycles], axis=1).astype(np.int64)
    largest = labels[:, 0] * labels[:, -1] * labels[:, -2]
    whole = labels.prod(axis=1) <= limits.whole
    return cycles[whole | (largest <= limits.cluster)]


def _affordable(
    tight: Tightened, found: list[Ints], scores: list[Floats], limits: Limits, batch: int
) -> tuple[Scope, ...]:  # fmt: skip
    """The cycles of greatest score, as clusters, within the limits."""
    labels = tight.base.num_labels
    kind = np.repeat(np.arange(len(found)), [len(part) for part in found])
    place = np.concatenate([np.arange(len(part)) for part in found])
    score = np.concatenate(scores)
    fine = np.flatnonzero(score > 0)
    # some will turn out to be there already, so more are ranked than wanted
    ranked = fine[np.argsort(-score[fine], kind="stable")][: 4 * batch]
    left = limits.states - int((tight.model.num_labels[tight.base.n :]).sum())
    have, chosen, cycles = set(tight.clusters), {}, 0
    for r in ranked:
        cycle = tuple(found[kind[r]][place[r]].tolist())
        scopes = list(cluster_scopes(cycle, labels, limits.whole))
        sizes = [int(labels[list(scope)].prod()) for scope in scopes]
        fresh = [s for s in scopes if s not in have and s not in chosen]
        if max(sizes) > limits.cluster or not fresh:
            continue
        left -= sum(sizes)
        if left < 0 or cycles >= batch:
            break
        cycles += 1
        chosen.update(dict.fromkeys(fresh))
    return tuple(chosen)


def unions(tight: Tightened, limits: Limits, most: int) -> tuple[Scope, ...]:
    """Two clusters that share a pair of variables, made one: neighbouring faces of a grid.

    None at all where there would be more than `most`, as a few of them gain little.
    """
    first = tight.first_cluster
    sharing: dict[int, list[Scope]] = {}
    for upper, lower in zip(tight.upper.tolist(), tight.lower.tolist(), strict=True):
        if upper >= first and lower >= tight.first_pair:
            sharing.setdefault(lower, []).append(tight.clusters[upper - first])
    labels, chosen = tight.base.num_labels, {}
    left = limits.states - int((tight.model.num_labels[tight.base.n :]).sum())
    for clusters in sharing.values():
        for a, b in combinations(clusters, 2):
            scope = tuple(sorted({*a, *b}))
            size = int(labels[list(scope)].prod())
            if size <= limits.union and scope not in tight.cluster_number and scope not in chosen:
                chosen[scope] = size
        if len(chosen) > most or sum(chosen.values()) > left:
            return ()
    return tuple(chosen)
