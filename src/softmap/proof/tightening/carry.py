"""λ of a tightened model from that of another one over the same base; what clusters hold."""

from __future__ import annotations

import numpy as np

from softmap.model import Model
from softmap.model.potentials.base import Ints
from softmap.proof.tightening.regions import Tightened, blocks, build, pair_codes
from softmap.relaxation.dual import Floats, check_lam, reduced_unary

__all__ = ["base_lam", "carry", "cluster_gains", "drop_idle"]


def carry(old: Tightened, lam: Floats, new: Tightened) -> Floats:
    """λ for `new` whose bound is not lower than that of `lam` for `old`.

    That holds where `new` has all clusters of `old`. Dropping a cluster costs the bound at most
    what `cluster_gains` says.
    """
    flat = check_lam(old.model, lam)
    out = np.zeros(int(new.model.half_offset[-1]))
    _copy_ties(old, flat, new, out)
    by_edge = _edge_lam(old, flat, new)
    for side in (0, 1):
        _to_edges(new, by_edge, side, out)
        _to_pairs(old, new, by_edge, side, out)
    return out


def base_lam(tight: Tightened, lam: Floats) -> Floats:
    """λ on the edges of the base: what the pair regions hold goes back to their edges."""
    return carry(tight, lam, build(tight.base, []))


def _copy_ties(old: Tightened, lam: Floats, new: Tightened, out: Floats) -> None:
    """Ties that both have keep their λ."""
    node = _node_map(old, new)
    upper, lower = node[old.upper], node[old.lower]
    wanted = new.upper * np.int64(new.model.n) + new.lower
    order = np.argsort(wanted, kind="stable")
    code = upper * np.int64(new.model.n) + lower
    at = np.minimum(np.searchsorted(wanted[order], code), max(len(wanted) - 1, 0))
    same = (upper >= 0) & (lower >= 0) & (len(wanted) > 0)
    same &= wanted[order[at]] == code if len(wanted) else False
    source = len(old.kept) + np.flatnonzero(same)
    target = len(new.kept) + order[at[same]] if len(wanted) else source
    for side in (0, 1):
        _move(old.model, lam, 2 * source + side, new.model, out, 2 * target + side)


def _move(a: Model, lam: Floats, h: Ints, b: Model, out: Floats, g: Ints) -> None:
    """`out` at half-edges `g` of b gets `lam` at half-edges `h` of a."""
    size = a.half_offset[h + 1] - a.half_offset[h]
    for d in np.unique(size).tolist():
        some = size == d
        out[blocks(b.half_offset, g[some], d)] = lam[blocks(a.half_offset, h[some], d)]


def _node_map(old: Tightened, new: Tightened) -> Ints:
    """The node of `new` that is each node of `old`; -1 where there is none."""
    n = old.base.num_variables
    have, code = pair_codes(new.pairs, n), pair_codes(old.pairs, n)
    at = np.minimum(np.searchsorted(have, code), max(len(have) - 1, 0))
    found = have[at] == code if len(have) else np.zeros(len(code), dtype=bool)
    pairs = np.where(found, new.first_pair + at, -1)
    number = new.cluster_number
    clusters = [number.get(scope, -1 - new.first_cluster) for scope in old.clusters]
    shifted = new.first_cluster + np.array(clusters, dtype=np.int64)
    return np.concatenate([np.arange(old.base.n), pairs, shifted])


def _edge_lam(old: Tightened, lam: Floats, new: Tightened) -> Floats:
    """λ on the edges of the base, 0 for those of pairs that are regions in both.

    The ties of a pair region hold what its edge would: C_e + λ_i + λ_j is the sum of the region's
    costs and of those of its two ties.
    """
    base = old.base
    out = np.zeros(int(base.half_offset[-1]))
    kept = np.arange(len(old.kept))
    for side in (0, 1):
        _move(old.model, lam, 2 * kept + side, base, out, 2 * old.kept + side)
    alone = np.isin(pair_codes(old.pairs, base.num_variables),
                    pair_codes(new.pairs, base.num_variables), invert=True)  # fmt: skip
    first = np.unique(old.region, return_index=True)[1]  # one of parallel edges takes all
    first = first[alone[old.region[first]]]
    for side in (0, 1):
        axis = np.where(old.flipped[first], 1 - side, side)
        tie = len(old.kept) + 2 * old.region[first] + axis
        _move(old.model, lam, 2 * tie + 1, base, out, 2 * old.absorbed[first] + side)
    return out


def _to_edges(new: Tightened, by_edge: Floats, side: int, out: Floats) -> None:
    kept = np.arange(len(new.kept))
    _move(new.base, by_edge, 2 * new.kept + side, new.model, out, 2 * kept + side)


def _to_pairs(old: Tightened, new: Tightened, by_edge: Floats, side: int, out: Floats) -> None:
    """Edges that became regions: λ_i at the variable, -λ_i at the states of the region."""
    fresh = np.isin(new.absorbed, old.kept)
    edge, region = new.absorbed[fresh], new.region[fresh]
    axis = np.where(new.flipped[fresh], 1 - side, side)
    tie = len(new.kept) + 2 * region + axis
    ends = new.base.num_labels[new.pairs[region]]
    shapes, which = np.unique(
        np.column_stack([ends, axis]).reshape(-1, 3), axis=0, return_inverse=True
    )
    for s, (d_i, d_j, a) in enumerate(shapes.tolist()):
        some = which.reshape(-1) == s
        d = d_j if a else d_i
        label = np.arange(d_i * d_j) % d_j if a else np.arange(d_i * d_j) // d_j
        value = by_edge[blocks(new.base.half_offset, 2 * edge[some] + side, d)]
        low = blocks(new.model.half_offset, 2 * tie[some] + 1, d)
        high = blocks(new.model.half_offset, 2 * tie[some], d_i * d_j)
        np.add.at(out, low, value)
        np.add.at(out, high, -value[:, label])


def cluster_gains(tight: Tightened, lam: Floats) -> Floats:
    """By how much the bound may fall at most when a cluster is dropped; additive over clusters.

    Without the cluster, each pair region p in it gets back the costs λ_p it had handed over. As
    min(θ_p + λ_p) >= min θ_p + min λ_p, no more is lost than what the cluster and its ties hold
    beyond Σ min λ_p.
    """
    model, first = tight.model, tight.first_cluster
    reduced = reduced_unary(model, lam)
    held = np.minimum.reduceat(reduced, model.node_offset[:-1])[first:].copy()
    ties = np.flatnonzero(tight.upper >= first)
    edge = len(tight.kept) + ties
    owner = tight.upper[ties] - first
    potential = model.potentials[-1] if len(ties) else None
    start = int(model.group_start[-2]) if len(ties) else 0
    sizes = model.num_labels[model.edges[edge]].reshape(-1, 2)
    for rows, cols in np.unique(sizes, axis=0).tolist():
        some = np.flatnonzero((sizes == (rows, cols)).all(axis=1))
        top = lam[blocks(model.half_offset, 2 * edge[some], rows)]
        low = lam[blocks(model.half_offset, 2 * edge[some] + 1, cols)]
        assert potential is not None
        index = potential.index[edge[some] - start]  # type: ignore[attr-defined]
        for t in np.unique(index).tolist():
            mine = index == t
            state = potential.maps[t]  # type: ignore[attr-defined]
            least = (top[mine] + low[mine][:, state]).min(axis=1) - low[mine].min(axis=1)
            np.add.at(held, owner[some[mine]], least)
    return np.asarray(held)


def drop_idle(tight: Tightened, lam: Floats, tolerance: float) -> tuple[Tightened, Floats]:
    """Without the clusters whose gain is under `tolerance`, and λ for what is left."""
    gains = cluster_gains(tight, lam)
    kept = [scope for scope, gain in zip(tight.clusters, gains, strict=True) if gain > tolerance]
    if len(kept) == len(tight.clusters):
        return tight, lam
    new = build(tight.base, kept)
    return new, carry(tight, lam, new)
