"""Block-coordinates of λ: what they are, and the distribution that they are drawn from.

A block is a list of half-edges at one vertex. Edge e = (i, j) has the half-edges 2e, which is
(e, i), and 2e + 1, which is (e, j).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.errors import OptionError
from softmap.model import Network

Block = Sequence[int]
Order = Callable[[Network], list[list[int]]]


def N(model: Network, i: int) -> list[int]:
    """N_i, the half-edges (e, i) of vertex i. O(|N_i|)."""
    start = model.graph.start
    return [int(h) for h in model.graph.half[start[i] : start[i + 1]]]


def vertex(model: Network, h: int) -> int:
    """The vertex i of half-edge h = (e, i)."""
    return int(model.graph.node[h])


def entries(model: Network, block: Block) -> NDArray[np.int64]:
    """The indices of λ_b in λ. O(|b| d)."""
    offset = model.half_offset
    return np.concatenate([np.arange(offset[h], offset[h + 1]) for h in block])


def edges(model: Network) -> list[list[int]]:
    """The blocks of EMP: every half-edge, sorted by vertex. O(m)."""
    return [[int(h)] for h in model.graph.half]


def stars(model: Network) -> list[list[int]]:
    """The blocks of SMP: N_i at index i, empty for a vertex without edges. O(n + m)."""
    return [N(model, i) for i in range(model.n)]


def sample(
    blocks: Sequence[Block], words: NDArray[np.uint64], P: ArrayLike | None = None
) -> Iterator[int]:
    """Return indices b_0, b_1, … ~ P of blocks. O(log of their number) each.

    Compiled methods draw the same blocks from the same state of the generator.

    Parameters
    ----------
    blocks : list of blocks
        What an order, such as `edges`, returns.
    words : uint64[4]
        State of the generator, changed in place; at first `softmap.arguments.seeded(seed)`.
    P : array, optional
        Probability of each block; by default in proportion to its size, which is equation
        (uniform) of the paper for edges and (non-uniform) for stars.
    """
    size = np.array([len(block) for block in blocks])
    if P is None:
        owner = np.repeat(np.arange(len(size)), size)
        while True:
            yield int(owner[core.random_below(words, len(owner))])
    sums = np.cumsum(distribution(P, size))
    while True:
        uniform = (core.random_word(words) >> 11) * 2.0**-53
        yield int(np.searchsorted(sums, uniform * sums[-1], side="right"))


def distribution(P: ArrayLike, size: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return P as an array; raise `OptionError` unless it is a distribution over the blocks.

    Parameters
    ----------
    P : array
        Probability of each block.
    size : int64 array
        Number of half-edges of each block; an empty block must have probability 0.
    """
    p = np.asarray(P, dtype=np.float64)
    if p.shape != size.shape:
        raise OptionError(f"P must be {len(size)} numbers, one per block, not of shape {p.shape}")
    if not (p >= 0).all() or not abs(p.sum() - 1) <= 1e-9:
        raise OptionError(f"P must be non-negative numbers that sum to 1, not to {p.sum()}")
    if (p[size == 0] > 0).any():
        b = int(np.argmax((size == 0) & (p > 0)))
        raise OptionError(f"P[{b}] is {p[b]}, but that vertex has no edges; expected 0")
    return p
