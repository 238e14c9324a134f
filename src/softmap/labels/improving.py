"""Local search for better labellings: ICM, tree moves, and large-neighbourhood search."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.arguments import seeded
from softmap.labels.energies import Labelled, energy_of, whole_labels
from softmap.model import Network
from softmap.model.layout import layout
from softmap.relaxation.gaps import cost_scale

__all__ = [
    "Neighbourhoods", "best_labelling", "forests", "icm", "improved_by_forests", "neighbourhoods",
    "strides", "with_chain_variables",
]  # fmt: skip

Labels = NDArray[np.int64]
HEAT = 3.0  # largest random cost of `neighbourhoods`, in √(cost scale · gap per variable)


def icm(model: Network, labels: ArrayLike, max_sweeps: int = 100) -> Labels:
    """Improve a labelling by iterated conditional modes: change one label at a time.

    The energy never rises. For labels that violate hard constraints, the number of violations never
    rises.
    """
    given = model.complete(labels)[: model.num_variables]
    return _icm(model, (given, energy_of(model, given)), 1, max_sweeps)[0]


def _icm(
    model: Network,
    known: Labelled,
    threads: int,
    max_sweeps: int = 100,
    deadline: core.Deadline | None = None,
) -> Labelled:
    moved = whole_labels(model, known[0]).copy()
    if model.n < core.WORTHWHILE or model.has_factors:
        core.iterated_modes(
            layout(model), moved, strides(model), model.num_variables, max_sweeps, deadline
        )
    else:
        core.independent_modes(layout(model), moved, max_sweeps, threads, deadline)
    return _better(model, known, moved, threads)


def forests(
    model: Network, labels: ArrayLike, rounds: int, heat: float = 0.0, seed: int = 0
) -> Labels:
    """Improve a labelling by tree moves (block ICM on random induced forests).

    In each round, dynamic programming finds the best labels of the variables of a random induced
    forest; all other labels are fixed. With random costs this is simulated annealing. The energy
    never rises. The labels are returned unchanged if they violate hard constraints, or if the model
    has factors of more than two variables.

    Parameters
    ----------
    model : Network
    labels : int array
        The labelling to improve.
    rounds : int
        Number of forests. Each takes about half the time of a pass of a solver.
    heat : float, default 0
        Largest random cost of a label in the first round; it falls to 0 in the last. At 0 no round
        raises the energy; otherwise the better of the first and last labelling is returned.
    seed : int, default 0
        Seed of the forests and of the random costs.

    Examples
    --------
    >>> import numpy as np
    >>> import softmap
    >>> from softmap.labels import forests
    >>> tree = softmap.generators.random_tree(50, 3, seed=1)
    >>> labels = forests(tree.network, np.zeros(50, int), rounds=1)
    >>> bool(np.isclose(tree.energy(labels), softmap.solve(tree).bound))
    True
    """
    given = model.complete(labels)[: model.num_variables]
    return improved_by_forests(model, (given, energy_of(model, given)), rounds, heat, seed)[0]


def improved_by_forests(
    model: Network,
    known: Labelled,
    rounds: int,
    heat: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    deadline: core.Deadline | None = None,
) -> Labelled:
    """`forests` for labels whose energy is known; return the labels and their energy.

    No further forest is solved after the deadline.
    """
    labels, energy = known
    if model.has_factors or not np.isfinite(energy):
        return known
    moved = whole_labels(model, labels).copy()
    core.forest_rounds(layout(model), moved, seeded(seed), rounds, heat, threads, deadline)
    return _better(model, known, moved, threads)


def best_labelling(
    model: Network,
    candidates: list[Labels],
    energies: list[float] | None = None,
    threads: int = 1,
    deadline: core.Deadline | None = None,
) -> Labelled:
    """Improve each labelling with `icm` until a deadline; return the best one and its energy."""
    if energies is None:
        energies = [energy_of(model, labels, threads) for labels in candidates]
    polished = [
        _icm(model, known, threads, deadline=deadline)
        for known in zip(candidates, energies, strict=True)
    ]
    return with_chain_variables(model, min(polished, key=lambda found: found[1]))


def with_chain_variables(model: Network, known: Labelled) -> Labelled:
    """Recompute the labels of chain variables if the labels violate a constraint.

    In labels of finite energy they are consistent already.
    """
    labels, energy = known
    if not model.has_chains or np.isfinite(energy):
        return known
    followed = model.consistent(labels)
    return followed, energy_of(model, followed)


def neighbourhoods(
    model: Network,
    labels: ArrayLike,
    *,
    seconds: float = np.inf,
    work: int = 10_000_000,
    heat: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
) -> Labels:
    """Improve a labelling by large-neighbourhood search.

    A neighbourhood is a random connected subgraph of small treewidth: strips and patches of a grid,
    larger parts of sparse graphs. Dynamic programming finds its best labels; all other labels are
    fixed. Factors of more than two variables are supported. The energy never rises.

    Parameters
    ----------
    model : Network
    labels : int array
        The labelling to improve.
    seconds : float, default +inf
        Time limit. With a finite limit the result depends on the speed of the machine.
    work : int, default 10 million
        Limit on the number of elementary steps.
    heat : float, optional
        Largest random cost of a label; by default from `gap` and the scale of the costs.
    gap : float, default 0
        Difference between the energy of `labels` and the best known bound.
    seed : int, default 0
        Seed of the random numbers.
    """
    given = model.complete(labels)
    before = np.asarray(given[: model.num_variables])
    energy = energy_of(model, before)
    if not model.m or not np.isfinite(energy):
        return before
    if heat is None:
        each = max(0.0, gap) / model.num_variables if np.isfinite(gap) else 0.0
        heat = HEAT * float(np.sqrt(cost_scale(model) * each))
    search = Neighbourhoods(model, heat=heat, seed=seed)
    return search.improve(before, deadline=core.Deadline(seconds), work=work)


class Neighbourhoods:
    """The search of `neighbourhoods`, resumable: each call of `improve` continues it.

    Parameters
    ----------
    model : Network
    heat : float, default 1
        Factor of the random costs, which are quantiles of the cost of changing a label.
    seed : int, default 0
        Seed of the random numbers.
    threads : int, default 1
        Number of threads. With a limit on work alone, labels do not depend on it.
    """

    def __init__(
        self, model: Network, *, heat: float = 1.0, seed: int = 0, threads: int = 1
    ) -> None:
        self._model, self._threads = model, threads
        self._native = core.Neighbourhoods(
            layout(model), strides(model), model.num_variables, seeded(seed), heat
        )

    def improve(
        self,
        labels: Labels,
        *,
        deadline: core.Deadline | None = None,
        work: int = 10_000_000,
    ) -> Labels:
        """Return labels that cost no more than the given ones.

        Parameters
        ----------
        labels : int64 array
            Labels of all variables, of finite cost.
        deadline : core.Deadline, optional
            When to stop.
        work : int, default 10 million
            Limit on the number of elementary steps.
        """
        moved = self._model.complete(labels).copy()
        threads = self._threads
        self._native.improve(moved, min(work, 1 << 62), threads, deadline)
        known = labels, energy_of(self._model, labels, threads)
        return _better(self._model, known, moved, threads)[0]


def _better(model: Network, known: Labelled, moved: Labels, threads: int = 1) -> Labelled:
    """Return the better labelling by its exact energy (a search rounds its sums differently)."""
    labels = moved[: model.num_variables]
    energy = energy_of(model, labels, threads)
    return (labels, energy) if energy <= known[1] else known


def strides(model: Network) -> Labels:
    """Return the stride of each half-edge whose other endpoint is an auxiliary node; else 0.

    The joint state of that auxiliary node changes by the stride if the label changes by one. Edges
    between two auxiliary nodes (regions) have stride 0. `icm` moves nothing there; such labels are
    improved on the model without regions.
    """
    out = np.zeros(2 * model.m, dtype=np.int64)
    if not model.has_factors:
        return out
    held = model.memberships
    place = held.node * np.int64(model.n) + held.variable
    order = np.argsort(place)
    first, second = model.edges.T
    ties = np.flatnonzero((first >= model.num_variables) & (second < model.num_variables))
    wanted = model.edges[ties, 0] * np.int64(model.n) + model.edges[ties, 1]
    out[2 * ties + 1] = held.stride[order[np.searchsorted(place[order], wanted)]]
    return out
