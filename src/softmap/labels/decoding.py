"""Labellings decoded from λ or from marginals: vertex rounding, and two sequential decoders."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.errors import OptionError
from softmap.model import Network
from softmap.model.layout import cost_layout, layout
from softmap.relaxation.bounds import reduced_nodes
from softmap.relaxation.dual import Floats, check_lam

__all__ = ["cheapest", "decide", "decode", "first_labels", "round_nodes"]


TIE = 1e-9  # relative difference, a rounding error, under which labels count as equally good


Labels = NDArray[np.int64]


def round_nodes(model: Network, node_mu: ArrayLike, threads: int = 1) -> Labels:
    """Return `round(μ)_i = arg max_x μ_i(x)` for the model's variables, ties to the smallest label.

    Only node marginals are used, so that hard constraints may be violated (energy +inf). Labels of
    chain variables follow from the other labels.
    """
    mu = np.asarray(node_mu)
    mu = mu if mu.dtype == np.float32 else mu.astype(np.float64, copy=False)
    if mu.shape != model.unary.shape:
        raise OptionError(f"node marginals must be {model.unary.size} numbers, not {mu.shape}")
    labels = np.empty(model.num_variables, dtype=np.int64)
    core.most_likely(layout(model), np.ascontiguousarray(mu), TIE, labels, threads)
    return _followed(model, labels)


def cheapest(model: Network, theta: Floats) -> Labels:
    """Return the label of least cost `theta` of each variable, ties to the smallest label.

    Labels of chain variables follow from the other labels.
    """
    labels = np.empty(model.num_variables, dtype=np.int64)
    core.cheapest(cost_layout(model), theta, labels)
    return _followed(model, labels)


def _followed(model: Network, labels: Labels) -> Labels:
    """Return the labels with those of chain variables recomputed from the others."""
    return model.consistent(labels) if model.has_chains else labels


def decode(
    model: Network,
    lam: ArrayLike,
    order: ArrayLike | None = None,
    deadline: core.Deadline | None = None,
) -> Labels:
    """Decode a labelling from λ sequentially: each variable is fixed given the earlier ones.

    Variable i takes the label that minimises the sum of its cost, the cost of its edges to fixed
    neighbours, and `min_y C_e(x, y) + λ_{e,j}(y)` for each other neighbour j, over the labels y
    that the fixed labels allow. The labelling satisfies the hard constraints if looking one edge
    ahead suffices. (It does on an arc-consistent tree in an order from the root outwards.)

    Parameters
    ----------
    model : Network
    lam : float64 array
        λ, flat over half-edges.
    order : int array, optional
        Permutation of the variables: the order in which they are fixed. 0, 1, 2, … by default.
    deadline : core.Deadline, optional
        Variables that are left then take the label of least cost given the earlier ones.
    """
    flat = check_lam(model, lam)
    visible = np.arange(model.num_variables) if order is None else np.asarray(order, np.int64)
    if not np.array_equal(np.sort(visible), np.arange(model.num_variables)):
        raise OptionError(f"order must be a permutation of 0..{model.num_variables - 1}")
    sequence = np.concatenate([visible, np.arange(model.num_variables, model.n)])
    reduced = reduced_nodes(model, flat)
    labels = np.empty(model.n, dtype=np.int64)
    core.sequential(layout(model), flat, reduced, sequence, model.num_variables, labels, deadline)
    return labels[: model.num_variables]


def first_labels(
    model: Network, *, deadline: core.Deadline | None = None, threads: int = 1
) -> Labels:
    """Return labels by one backward pass of messages over all nodes, and sequential decoding.

    On a tree that is numbered from its root, this is dynamic programming. On images, the labels
    are within some percent of the optimum, after the time of one pass.

    Parameters
    ----------
    model : Network
        A model without factors of more than two variables.
    deadline : core.Deadline, optional
        Variables that are left then take their cheapest label.
    threads : int, default 1
        Number of threads; without a deadline, labels do not depend on it.

    Returns
    -------
    int array
        One label per variable.

    Examples
    --------
    >>> import softmap
    >>> from softmap.labels import first_labels
    >>> model = softmap.Model([[0, 1], [1, 0]], [[0, 1]], softmap.Potts(2.0))
    >>> first_labels(model.network)
    array([0, 0])
    """
    labels = np.zeros(model.n, dtype=np.int64)
    core.first_labels(layout(model), labels, threads, deadline)
    return labels


def decide(model: Network, node_mu: ArrayLike, deadline: core.Deadline | None = None) -> Labels:
    """Decode a labelling from node marginals sequentially, maintaining arc consistency.

    Variables are fixed in the order of decreasing certainty. A label that leaves another variable
    without a state is removed, and the next label is tried. There is no backtracking over more than
    one variable, so that hard constraints may still be violated. Variables that are left without a
    label, or at the deadline, take label 0.
    """
    mu = np.asarray(node_mu, dtype=np.float64)
    sure = np.maximum.reduceat(mu, model.node_offset[:-1])
    order = np.argsort(-sure[: model.num_variables], kind="stable")
    allowed = np.isfinite(model.unary)
    labels = np.empty(model.n, dtype=np.int64)
    core.decide(layout(model), mu, allowed, order, labels, deadline)
    return np.asarray(labels[: model.num_variables])
