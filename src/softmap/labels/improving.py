"""Labellings made better: one variable at a time, or a random forest of variables at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.arguments import seeded
from softmap.model import Model
from softmap.model.layout import layout
from softmap.relaxation.dual import cost_scale

__all__ = [
    "best_labelling", "forests", "icm", "improved_by_forests", "neighbourhoods", "strides",
    "with_followers",
]  # fmt: skip

HEAT = 3.0  # of neighbourhoods, in units of √(cost scale × gap per variable)

Labels = NDArray[np.int64]
Priced = tuple[Labels, float]  # labels and their energy, which takes a fifth of a pass to add up


def icm(model: Model, labels: ArrayLike, max_sweeps: int = 100) -> Labels:
    """Iterated conditional modes: change one label at a time while that lowers the energy.

    Never raises the energy. A labelling that breaks hard constraints is led to break fewer.
    """
    given = model.complete(labels)[: model.num_variables]
    return _icm(model, given, float(model.energy(given)), max_sweeps)[0]


def _icm(model: Model, labels: Labels, energy: float, max_sweeps: int = 100) -> Priced:
    moved = model.complete(labels).copy()
    core.iterated_modes(layout(model), moved, strides(model), model.num_variables, max_sweeps)
    return _better(model, (labels, energy), moved)


def forests(
    model: Model, labels: ArrayLike, rounds: int, heat: float = 0.0, seed: int = 0
) -> Labels:
    """Solve random forests of variables exactly, one after the other, all others held fixed.

    The variables of a forest have only its edges between them, so dynamic programming finds their
    best labels given the rest. Random costs make it simulated annealing. Never raises the energy;
    labels that break hard constraints come back as they are, and so do those of models with factors
    of more than two variables.

    Parameters
    ----------
    rounds : int
        Forests to solve; each costs about as much as half a pass of a solver.
    heat : float
        Greatest random cost of a label in the first round, falling to 0 in the last. Without any,
        every round keeps or lowers the energy; with it, the better of start and end is returned.
    seed : int
        Of the forests and the random costs.

    Examples
    --------
    >>> import numpy as np
    >>> import softmap
    >>> from softmap.labels import forests
    >>> tree = softmap.generators.random_tree(50, 3, seed=1)
    >>> labels = forests(tree, np.zeros(50, int), rounds=1)
    >>> bool(np.isclose(tree.energy(labels), softmap.solve(tree).bound))
    True
    """
    given = model.complete(labels)[: model.num_variables]
    return improved_by_forests(model, (given, float(model.energy(given))), rounds, heat, seed)[0]


def improved_by_forests(
    model: Model, known: Priced, rounds: int, heat: float = 0.0, seed: int = 0
) -> Priced:
    """As `forests`, for labels whose energy is known."""
    labels, energy = known
    if not model.m or len(model.auxiliaries) or not np.isfinite(energy):
        return known
    moved = model.complete(labels).copy()
    core.forest_rounds(layout(model), moved, seeded(seed), rounds, heat)
    return _better(model, known, moved)


def best_labelling(
    model: Model, candidates: list[Labels], energies: list[float] | None = None
) -> Priced:
    """Polish each labelling with `icm`; the best one and its energy."""
    if energies is None:
        energies = [float(model.energy(labels)) for labels in candidates]
    polished = [_icm(model, *known) for known in zip(candidates, energies, strict=True)]
    return with_followers(model, min(polished, key=lambda found: found[1]))


def with_followers(model: Model, known: Priced) -> Priced:
    """Labels that break a constraint, with running variables as they follow from the others.

    Labels of finite cost have them so already.
    """
    labels, energy = known
    if not len(model.running) or np.isfinite(energy):
        return known
    followed = model.with_running(labels[: model.num_visible])
    return followed, float(model.energy(followed))


def neighbourhoods(
    model: Model,
    labels: ArrayLike,
    *,
    seconds: float = np.inf,
    work: int = 10_000_000,
    heat: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
) -> Labels:
    """Solve large neighbourhoods of a labelling exactly, one after the other.

    A neighbourhood is a random connected part of the graph whose best labels, all others held
    fixed, dynamic programming finds within small tables: strips and patches of a grid, larger parts
    of sparse graphs. Factors of more than two variables take part. Never raises the energy.

    Parameters
    ----------
    seconds, work : when to stop; without seconds the result repeats
    heat : greatest random cost of a label; from `gap` and the scale of the costs if left out
    gap : what the energy is above the best bound known
    """
    given = model.complete(labels)
    before = np.asarray(given[: model.num_variables])
    energy = float(model.energy(before))
    if not model.m or not np.isfinite(energy):
        return before
    if heat is None:
        each = max(0.0, gap) / model.num_variables if np.isfinite(gap) else 0.0
        heat = HEAT * float(np.sqrt(cost_scale(model) * each))
    moved = given.copy()
    core.improve(
        layout(model), moved, strides(model), model.num_variables, seeded(seed),
        min(work, 1 << 62), min(float(seconds), 1e9), heat,
    )  # fmt: skip
    return _better(model, (before, energy), moved)[0]


def _better(model: Model, known: Priced, moved: Labels) -> Priced:
    """The sums of a search and of `energy` round differently: compare by the latter."""
    labels = moved[: model.num_variables]
    energy = float(model.energy(labels))
    return (labels, energy) if energy <= known[1] else known


def strides(model: Model) -> Labels:
    """For each half-edge, how far the auxiliary node across it moves per label; else 0.

    Ties between auxiliary nodes (regions) have none: there `icm` moves nothing, as no single label
    can change without a cluster two ties away. Labels of such models are improved on their base.
    """
    out = np.zeros(2 * model.m, dtype=np.int64)
    aux = model.auxiliaries
    if not len(aux):
        return out
    owner = np.repeat(np.arange(model.num_variables, model.n), np.diff(aux.start))
    place = owner * np.int64(model.n) + aux.member
    order = np.argsort(place)
    first, second = model.edges.T
    ties = np.flatnonzero((first >= model.num_variables) & (second < model.num_variables))
    wanted = model.edges[ties, 0] * np.int64(model.n) + model.edges[ties, 1]
    out[2 * ties + 1] = aux.stride[order[np.searchsorted(place[order], wanted)]]
    return out
