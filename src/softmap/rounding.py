"""Labellings: the paper's vertex rounding, a sequential decoder, and searches around them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import OptionError
from softmap.kernels import consistency
from softmap.kernels.decode import TIE, iterated_modes, sequential
from softmap.kernels.forest import forest_rounds
from softmap.kernels.rng import seeded
from softmap.layout import layout
from softmap.model import Model
from softmap.objective import check_lam, reduced_unary

__all__ = ["best_labelling", "decide", "decode", "forests", "icm", "round_nodes"]

Labels = NDArray[np.int64]


def round_nodes(model: Model, node_mu: ArrayLike) -> Labels:
    """`round(μ)_i = arg max_x μ_i(x)`, ties to the smallest label, for the model's variables.

    Looks at nothing but the node marginals, so hard constraints may be broken (energy +inf).
    """
    mu = np.asarray(node_mu, dtype=np.float64)
    if mu.shape != (int(model.node_offset[-1]),):
        raise OptionError(f"node marginals must be {model.node_offset[-1]} numbers, not {mu.shape}")
    starts, counts = model.node_offset[:-1], model.num_labels
    label = np.arange(len(mu)) - np.repeat(starts, counts)
    best = mu >= (1 - TIE) * np.repeat(np.maximum.reduceat(mu, starts), counts)
    first = np.minimum.reduceat(np.where(best, label, len(mu)), starts)
    return np.asarray(first[: model.num_variables])


def decode(model: Model, lam: ArrayLike, order: ArrayLike | None = None) -> Labels:
    """Decide the variables one by one, each given those decided before it.

    Variable i takes the label that minimises its cost, plus the exact cost of its edges to decided
    neighbours, plus `min_y C_e(x, y) + λ_{e,j}(y)` for the others, over labels y of theirs that the
    decisions so far allow. The labelling obeys the hard constraints wherever looking one edge ahead
    is enough to do so (after arc consistency, on a tree decided from a root outwards, it is).

    Parameters
    ----------
    order : permutation of the variables, optional
        In which to decide; 0, 1, 2, … if left out.
    """
    flat = check_lam(model, lam)
    visible = np.arange(model.num_variables) if order is None else np.asarray(order, np.int64)
    if not np.array_equal(np.sort(visible), np.arange(model.num_variables)):
        raise OptionError(f"order must be a permutation of 0..{model.num_variables - 1}")
    sequence = np.concatenate([visible, np.arange(model.num_variables, model.n)])
    reduced = reduced_unary(model, flat)
    labels: Labels = sequential(layout(model), flat, reduced, sequence, model.num_variables)
    return labels[: model.num_variables]


def decide(model: Model, node_mu: ArrayLike) -> Labels:
    """Decide the variables one by one, surest first, keeping arc consistency after each.

    For models with hard constraints: a label that leaves another variable without a state is
    crossed out and the next one tried. Labels may still break constraints where no step back by one
    variable would have been enough.
    """
    mu = np.asarray(node_mu, dtype=np.float64)
    sure = np.maximum.reduceat(mu, model.node_offset[:-1])
    order = np.argsort(-sure[: model.num_variables], kind="stable")
    allowed = np.isfinite(model.unary)
    _, labels = consistency.decide(layout(model), mu, allowed, order)
    return np.asarray(labels[: model.num_variables])


def icm(model: Model, labels: ArrayLike, max_sweeps: int = 100) -> Labels:
    """Iterated conditional modes: change one label at a time while that lowers the energy.

    Never raises the energy. A labelling that breaks hard constraints is led to break fewer.
    """
    given = model.complete(labels)
    moved = given.copy()
    iterated_modes(layout(model), moved, _strides(model), model.num_variables, max_sweeps)
    return _better(model, given, moved)


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
    >>> from softmap.rounding import forests
    >>> tree = softmap.generators.random_tree(50, 3, seed=1)
    >>> labels = forests(tree, np.zeros(50, int), rounds=1)
    >>> bool(np.isclose(tree.energy(labels), softmap.solve(tree).bound))
    True
    """
    given = model.complete(labels)
    moved = given.copy()
    if model.m and not len(model.auxiliaries) and np.isfinite(model.energy(given)):
        forest_rounds(layout(model), moved, seeded(seed), rounds, heat)
    return _better(model, given, moved)


def _better(model: Model, given: Labels, moved: Labels) -> Labels:
    """The sums of a search and of `energy` round differently: compare by the latter."""
    before, after = given[: model.num_variables], moved[: model.num_variables]
    return after if model.energy(after) <= model.energy(before) else before


def best_labelling(model: Model, candidates: list[Labels]) -> tuple[Labels, float]:
    """Polish each labelling with `icm`; the best one and its energy."""
    polished = [icm(model, labels) for labels in candidates]
    energies = [float(model.energy(labels)) for labels in polished]
    best = int(np.argmin(energies))
    return polished[best], energies[best]


def _strides(model: Model) -> Labels:
    """For each half-edge, how far the auxiliary node across it moves per label; else 0."""
    out = np.zeros(2 * model.m, dtype=np.int64)
    aux = model.auxiliaries
    if not len(aux):
        return out
    owner = np.repeat(np.arange(model.num_variables, model.n), np.diff(aux.start))
    place = owner * np.int64(model.n) + aux.member
    order = np.argsort(place)
    ties = np.flatnonzero(model.edges[:, 0] >= model.num_variables)
    wanted = model.edges[ties, 0] * np.int64(model.n) + model.edges[ties, 1]
    out[2 * ties + 1] = aux.stride[order[np.searchsorted(place[order], wanted)]]
    return out
