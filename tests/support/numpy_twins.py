"""Plain twins of compiled loops: the generator in Python integers, messages, parity, word search.

The twin of the paper's methods is `softmap.paper`.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import chdtrc

from softmap.arguments import seeded
from softmap.methods.base import make
from softmap.model import Model, checked_network
from softmap.model.potentials.base import softmin
from softmap.relaxation.dual import SmoothedDual

MASK = (1 << 64) - 1


class Xoshiro:
    """xoshiro256++ in Python integers."""

    @classmethod
    def seeded(cls, seed: int) -> Xoshiro:
        return cls(seeded(seed))

    def __init__(self, words):
        self.s = [int(w) for w in words]

    def word(self) -> int:
        s = self.s
        result = (_rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = _rotate(s[3], 45)
        return result

    def below(self, bound: int) -> int:
        mask = (1 << (bound - 1).bit_length()) - 1
        while (word := self.word() & mask) >= bound:
            pass
        return word

    def half_edge(self, model: Model) -> int:
        """A half-edge, numbered by drawing among all of them sorted by vertex."""
        return int(np.argsort(model.edges.reshape(-1), kind="stable")[self.below(2 * model.m)])


def _rotate(x: int, k: int) -> int:
    return ((x << k) | (x >> (64 - k))) & MASK


def chance_of(observed: np.ndarray, expected: np.ndarray) -> float:
    """The p-value of Pearson's chi-squared test."""
    return float(chdtrc(observed.size - 1, ((observed - expected) ** 2 / expected).sum()))


def least_dual(model: Model, eta: float) -> tuple[float, np.ndarray]:
    """L* and a minimiser, to about 1e-12, by L-BFGS and then Newton's method on small models."""
    dual = SmoothedDual(model, eta)
    start = np.zeros(int(checked_network(model).half_offset[-1]))
    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-12}
    found = minimize(dual.value, start, jac=dual.gradient, method="L-BFGS-B", options=options)
    return float(found.fun), found.x


def long_run(model: Model, eta: float, updates: int = 30_000) -> tuple[float, np.ndarray]:
    """L* and a minimiser to some digits, much faster: very many random star updates."""
    method = make("smp", eta=eta)
    state = method.init(checked_network(model), None, 1)
    method.step(state, updates)
    lam = state.current()
    return SmoothedDual(model, eta).value(lam), lam


def parity_hull(v, odd):
    """The nearest point of the hull of all words of one parity, by sorting."""
    u = np.clip(v, 0.0, 1.0)
    corner = u > 0.5
    if corner.sum() % 2 == odd:
        corner[np.argmin(np.abs(u - 0.5))] ^= True
    if np.where(corner, 1 - u, u).sum() >= 1:
        return u
    q = np.where(corner, 1 - v, v)
    down = np.sort(q)[::-1]
    shifts = (1 - np.cumsum(down)) / np.arange(1, len(q) + 1)
    shift = shifts[np.flatnonzero(down + shifts > 0)[-1]]
    q = np.maximum(q + shift, 0.0)
    return np.where(corner, 1 - q, q)


def parity_cone(v):
    """The nearest costs of which no two add up to less than 0, by sorting."""
    order = np.argsort(v, kind="stable")
    low, rest = order[0], v[order[1:]]
    if v[low] + rest[0] >= 0:
        return v
    size = -v[low]
    for count in range(len(rest) + 1):
        size = (-v[low] + rest[:count].sum()) / (count + 1)
        if count == len(rest) or rest[count] >= size:
            break
    out = np.maximum(v, max(size, 0.0))
    out[low] = -max(size, 0.0)
    return out


def soft_message(potential, k, side, a, eta, d_out):
    """The soft minimum over the sender of edge k, `-(1/η) log Σ_x exp(-η (a(x) + C(x, ·)))`."""
    return softmin(_incoming(potential, k, side, a, d_out), eta)


def hard_message(potential, k, side, a, d_out):
    """The minimum over the sender of edge k, `min_x a(x) + C(x, ·)`; endpoint `side` receives."""
    return _incoming(potential, k, side, a, d_out).min(axis=1)


def _incoming(potential, k, side, a, d_out):
    rows, cols = (d_out, len(a)) if side == 0 else (len(a), d_out)
    table = potential.as_table(k, rows, cols)
    return (table if side == 0 else table.T) + a


def ordered_statistics(matrix, costs, syndrome, keys, depth):
    """The word of ordered statistics, by elimination of a dense matrix; None if there is none."""
    m, n = matrix.shape
    order = np.argsort(keys, kind="stable")
    table, pivots = np.concatenate([matrix, np.eye(m, dtype=int)], axis=1), {}
    for i in order:
        free = [r for r in range(m) if table[r, i] and r not in pivots]
        if free:
            pivots[free[0]] = i
            for r in np.flatnonzero(table[:, i]):
                if r != free[0]:
                    table[r] ^= table[free[0]]
    word = (costs < 0).astype(int)
    rows = list(pivots)
    rest = table[:, n:] @ (syndrome + matrix @ word) % 2
    if rest[[r for r in range(m) if r not in pivots]].any():
        return None
    word[[pivots[r] for r in rows]] ^= rest[rows]
    others = [i for i in order if i not in pivots.values()]
    pairs = [(k, j) for k in range(min(depth, len(others))) for j in range(k)]
    moves = []
    for chosen in [(k,) for k in range(len(others))] + pairs:
        move = np.zeros(n, int)
        for k in chosen:
            move[others[k]] ^= 1
            move[[pivots[r] for r in rows]] ^= table[rows, others[k]]
        moves.append(move)
    while moves:
        changes = np.array(moves) @ np.where(word, -costs, costs)
        if changes.min() >= -1e-9 * np.abs(costs).sum():
            break
        word = word ^ moves[int(changes.argmin())]
    return word
