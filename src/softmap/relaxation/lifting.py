"""Marginals of auxiliary variables (factors of three and more) that agree with their members."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import OptionError
from softmap.model import Model

__all__ = ["SPECK", "lift"]

Floats = NDArray[np.float64]

SPECK = 1e-15  # mass on a forbidden state or pair that is rounding, not intent


def lift(model: Model, node_mu: ArrayLike) -> Floats:
    """Node marginals in which every auxiliary variable agrees with its members.

    The tie of an auxiliary variable leaves one coupling only, so its marginal has to have those of
    its members. This is Algorithm 2 of Altschuler et al. with one axis per member instead of two:
    scale down along each, then add the product of what is missing.
    """
    nodes = np.array(node_mu, dtype=np.float64)
    if nodes.shape != model.unary.shape:
        raise OptionError(f"node marginals must be {model.unary.size} numbers, not {nodes.shape}")
    ties = _ties(model)
    joint, rest = nodes.copy(), np.ones_like(nodes)
    for tie in ties:
        have = tie.marginals(joint)
        want = nodes[tie.members]
        scale = np.divide(want, have, out=np.ones_like(have), where=have > want)
        joint[tie.states] *= scale[tie.key]
    for tie in ties:
        missing = np.maximum(nodes[tie.members] - tie.marginals(joint), 0.0)
        total = np.add.reduceat(missing, tie.start)
        share = missing / np.repeat(np.where(total > 0, total, 1.0), tie.counts)
        # the missing mass comes from the first member, its distribution also from the others
        rest[tie.states] *= (missing if tie.first else share)[tie.key]
    if ties:
        begin = int(model.node_offset[model.num_variables])
        nodes[begin:] = joint[begin:] + rest[begin:]
        nodes[np.isposinf(model.unary) & (nodes <= SPECK)] = 0.0
    return nodes


@dataclass(frozen=True)
class _Tie:
    """The t-th member of every auxiliary variable that has one, as flat index arrays."""

    first: bool
    states: NDArray[np.int64]  # node states of the auxiliaries
    key: NDArray[np.int64]  # the entry of the member's marginal that each of them belongs to
    members: NDArray[np.int64]  # node states of the members, concatenated
    start: NDArray[np.int64]
    counts: NDArray[np.int64]

    def marginals(self, joint: Floats) -> Floats:
        sums = np.bincount(self.key, weights=joint[self.states], minlength=len(self.members))
        return sums.astype(np.float64, copy=False)


def _ties(model: Model) -> list[_Tie]:
    aux = model.auxiliaries
    arity = np.diff(aux.start)
    return [_tie(model, t, np.flatnonzero(arity > t)) for t in range(arity.max(initial=0))]


def _tie(model: Model, t: int, which: NDArray[np.int64]) -> _Tie:
    aux = model.auxiliaries
    node = model.num_variables + which
    member, stride = aux.member[aux.start[which] + t], aux.stride[aux.start[which] + t]
    sizes, counts = model.num_labels[node], model.num_labels[member]
    start = np.cumsum(counts) - counts
    local = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    label = local // np.repeat(stride, sizes) % np.repeat(counts, sizes)
    own = np.arange(counts.sum()) - np.repeat(start, counts)
    return _Tie(
        first=t == 0,
        states=np.repeat(model.node_offset[node], sizes) + local,
        key=np.repeat(start, sizes) + label,
        members=np.repeat(model.node_offset[member], counts) + own,
        start=start,
        counts=counts,
    )
