"""Runs of the paper's algorithms in numpy: `iterate` for any rule, order and scheme.

With the same seed, a run updates the same blocks as the compiled method of the same name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from softmap.arguments import seeded
from softmap.errors import OptionError
from softmap.model import Network
from softmap.paper.algorithms import (
    PRINTED,
    PROVED,
    STANDARD,
    Floats,
    Point,
    Rule,
    Scheme,
    accelerated,
    bcd,
    emp,
    returned,
    smp,
    standard,
)
from softmap.paper.blocks import Block, Order, distribution, edges, entries, sample, stars
from softmap.relaxation.dual import check_eta, check_lam

# The algorithm of each compiled method: rule, order and scheme.
ALGORITHMS: dict[str, tuple[Rule, Order, Scheme]] = {
    "emp": (emp, edges, STANDARD),
    "smp": (smp, stars, STANDARD),
    "bcd": (bcd, edges, STANDARD),
    "accel-emp": (emp, edges, PROVED),
    "accel-smp": (smp, stars, PROVED),
    "accel-bcd": (bcd, edges, PROVED),
    "accel-emp-printed": (emp, edges, PRINTED),
    "accel-smp-printed": (smp, stars, PRINTED),
    "accel-bcd-printed": (bcd, edges, PRINTED),
}


def iterate(
    model: Network,
    rule: Rule,
    order: Order,
    scheme: Scheme,
    eta: float,
    *,
    P: ArrayLike | None = None,
    lam: ArrayLike | None = None,
    seed: int = 0,
) -> Iterator[Floats]:
    """Return the iterates λ^(0), λ^(1), … of an algorithm, without end.

    Parameters
    ----------
    model : Network
        A model with at least one edge. Labels that hard constraints rule out must cost +inf: see
        `softmap.arc_consistency`.
    rule : function
        The update: `rule(model, lam, eta, block)` returns the new λ_b as a flat array. `emp`,
        `smp`, `bcd`, or your own.
    order : function
        The blocks: `order(model)` returns lists of half-edges. `edges`, `stars`, or your own.
    scheme : Scheme
        `STANDARD` (Algorithm 1), `PRINTED`, `PROVED` or `LEMMA` (Algorithms 2 and 3).
    eta : float
        Inverse temperature η, in units of 1 / cost.
    P : array, optional
        Probability of each block of `order(model)`; by default in proportion to its size. `PRINTED`
        and `LEMMA` are derived for the default only.
    lam : array, optional
        λ^(0); 0 by default.
    seed : int, default 0
        Seed of the random blocks.

    Examples
    --------
    >>> import softmap
    >>> from softmap import paper
    >>> model = softmap.Model([[0, 1], [1, 0]], [[0, 1]], softmap.Potts(0.4))
    >>> iterates = paper.iterate(model.network, paper.smp, paper.stars, paper.PROVED, eta=10.0)
    >>> [round(paper.reg_d(model.network, lam, 10.0), 4) for lam, _ in zip(iterates, range(4))]
    [0.0711, 0.0032, 0.0032, -0.297]
    """
    first = np.zeros(model.half_size) if lam is None else check_lam(model, lam).copy()
    blocks = order(model)
    draws = sample(blocks, seeded(seed), P)
    step = gains(model, order, blocks, scheme, check_eta(eta), P)
    rest = points(model, rule, scheme, eta, blocks, draws, step, Point(first, first, 1.0))
    return itertools.chain([first], (at.lam for at in rest))


def gains(
    model: Network,
    order: Order,
    blocks: Sequence[Block],
    scheme: Scheme,
    eta: float,
    P: ArrayLike | None = None,
) -> Floats:
    """Return the step of v, times θ_k, of each block; 0 in Algorithm 1.

    Parameters
    ----------
    blocks : list of blocks
        `order(model)`.
    model, order, scheme, eta, P
        As for `iterate`.
    """
    size = np.array([len(block) for block in blocks])
    if not size.any():
        raise OptionError("the order has no blocks: expected a model with at least one edge")
    p = size / size.sum() if P is None else distribution(P, size)
    out = np.zeros(len(size))
    if scheme.gain is not None:
        out[p > 0] = scheme.gain(model, order, eta, size[p > 0] * 1.0, p[p > 0])
    return out


def points(
    model: Network,
    rule: Rule,
    scheme: Scheme,
    eta: float,
    blocks: Sequence[Block],
    draws: Iterable[int],
    gain: Floats,
    at: Point,
) -> Iterator[Point]:
    """Return the points that follow a point, one per drawn block.

    Parameters
    ----------
    model, rule, scheme, eta
        As for `iterate`.
    blocks : list of blocks
        The blocks of an order.
    draws : iterable of int
        Indices of the drawn blocks.
    gain : float64 array
        What `gains` returns.
    at : Point
        λ^(k), v^(k) and θ_{k-1}.
    """
    update = _checked(rule)
    if scheme.gain is None:
        return standard(model, update, eta, blocks, draws, at)
    return accelerated(model, update, eta, blocks, draws, at, gain, printed=scheme.printed)


def _checked(rule: Rule) -> Rule:
    """Return the rule, which raises `OptionError` unless it returns finite numbers for λ_b."""

    def update(model: Network, lam: Floats, eta: float, block: Block) -> Floats:
        new, count = np.asarray(rule(model, lam, eta, block)), len(entries(model, block))
        if new.shape != (count,) or not np.isfinite(new).all():
            name, what = getattr(rule, "__name__", "the rule"), f"an array of shape {new.shape}"
            if new.shape == (count,):
                what = f"{new[~np.isfinite(new)][0]}"
            raise OptionError(
                f"{name} returned {what} for the block {list(block)}: expected a flat array of "
                f"{count} finite numbers"
            )
        return new

    return update


def standard_mp(
    model: Network,
    rule: Rule,
    order: Order,
    eta: float,
    K: int,
    P: ArrayLike | None = None,
    *,
    seed: int = 0,
) -> Floats:
    """Return Standard-MP(Update, η, P, K), Algorithm 1; parameters as for `iterate`."""
    iterates = iterate(model, rule, order, STANDARD, eta, P=P, seed=seed)
    return returned(model, eta, itertools.islice(iterates, K + 1))


def accel_emp(
    model: Network, eta: float, K: int, *, scheme: Scheme = PRINTED, seed: int = 0
) -> Floats:
    """Return λ^(K) of Accel-EMP(G, C, η, K), Algorithm 2; its proof covers `scheme=PROVED`."""
    return _last(iterate(model, emp, edges, scheme, eta, seed=seed), K)


def accel_smp(
    model: Network, eta: float, K: int, *, scheme: Scheme = PRINTED, seed: int = 0
) -> Floats:
    """Return λ^(K) of Accel-SMP(G, C, η, K), Algorithm 3; its proof covers `scheme=PROVED`."""
    return _last(iterate(model, smp, stars, scheme, eta, seed=seed), K)


def accel_bcd(
    model: Network, eta: float, K: int, *, scheme: Scheme = PRINTED, seed: int = 0
) -> Floats:
    """Return λ^(K) of accelerated block-coordinate descent in the scheme of Algorithm 2."""
    return _last(iterate(model, bcd, edges, scheme, eta, seed=seed), K)


def _last(iterates: Iterator[Floats], K: int) -> Floats:
    return next(itertools.islice(iterates, K, None))
