"""The paper's methods to the letter, in plain numpy: dense tables, whole vectors, no caches.

Everything is written from the statements (Propositions "emp-update" and "smp-update", Algorithms
1 to 3); only the sequence of random words is shared with the compiled methods, through a twin of
the generator in Python integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import chdtrc

from softmap.arguments import seeded
from softmap.methods.base import make
from softmap.model import Model
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


# --- marginals in the log domain ----------------------------------------------------------------


def halves_of(model: Model, i: int) -> list[int]:
    return np.flatnonzero(model.edges.reshape(-1) == i).tolist()


def log_sum(exponent: np.ndarray, axis: int | None = None) -> np.ndarray:
    """log Σ exp(exponent), -inf where all of them are; scipy's takes ten times as long."""
    most = exponent.max(axis=axis, keepdims=True)
    most[most == -np.inf] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.exp(exponent - most).sum(axis=axis)) + most.squeeze(axis)


def log_mu(model: Model, lam: np.ndarray, eta: float, i: int) -> np.ndarray:
    """log μ_i, -inf on forbidden states."""
    exponent = -eta * (
        model.unary_of(i) - sum((lam[model.half_slice(h)] for h in halves_of(model, i)), 0.0)
    )
    return exponent - log_sum(exponent)


def log_S(model: Model, lam: np.ndarray, eta: float, h: int) -> np.ndarray:
    """log S_{e,i} of half-edge h, from the dense table; -inf on forbidden states."""
    e, side = divmod(h, 2)
    shifts = [
        np.where(model.unary_of(i) == np.inf, np.inf, lam[model.half_slice(2 * e + s)])
        for s, i in enumerate(model.edges[e])
    ]
    exponent = -eta * (model.table(e) + shifts[0][:, None] + shifts[1][None, :])
    sums = log_sum(exponent, 1 - side)
    return sums - log_sum(sums)


def nu(model: Model, lam: np.ndarray, eta: float, h: int) -> np.ndarray:
    i = int(model.edges.reshape(-1)[h])
    return np.exp(log_S(model, lam, eta, h)) - np.exp(log_mu(model, lam, eta, i))


def slack_total(model: Model, lam: np.ndarray, eta: float) -> float:
    """Σ ‖ν_{e,i}‖₁², what Algorithm 1 returns the least of."""
    return sum(float(np.abs(nu(model, lam, eta, h)).sum() ** 2) for h in range(2 * model.m))


# --- updates of one block -----------------------------------------------------------------------


def emp(model: Model, lam: np.ndarray, eta: float, h: int) -> dict[int, np.ndarray]:
    """Proposition "emp-update"."""
    i = int(model.edges.reshape(-1)[h])
    allowed = np.isfinite(model.unary_of(i))
    new = lam[model.half_slice(h)].copy()
    ratio = log_S(model, lam, eta, h)[allowed] - log_mu(model, lam, eta, i)[allowed]
    new[allowed] += ratio / (2 * eta)
    return {h: new}


def smp(model: Model, lam: np.ndarray, eta: float, h: int) -> dict[int, np.ndarray]:
    """Proposition "smp-update" at the vertex of h."""
    i = int(model.edges.reshape(-1)[h])
    allowed = np.isfinite(model.unary_of(i))
    star = halves_of(model, i)
    logs = {g: log_S(model, lam, eta, g)[allowed] for g in star}
    product = log_mu(model, lam, eta, i)[allowed] + sum(logs.values())
    out = {}
    for g in star:
        out[g] = lam[model.half_slice(g)].copy()
        out[g][allowed] += logs[g] / eta - product / (eta * (len(star) + 1))
    return out


def bcd(model: Model, lam: np.ndarray, eta: float, h: int) -> dict[int, np.ndarray]:
    """Gradient step of 1/η on one half-edge."""
    return {h: lam[model.half_slice(h)] + nu(model, lam, eta, h) / eta}


# --- methods ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Twin:
    """A method: its update, and for accelerated ones the step of v and what λ does off the block.

    `step(model, eta, i)` is the factor of ν / θ_k.
    """

    update: object
    step: object = None
    printed: bool = False


def chance_of(observed: np.ndarray, expected: np.ndarray) -> float:
    """The p-value of Pearson's chi-squared test."""
    return float(chdtrc(observed.size - 1, ((observed - expected) ** 2 / expected).sum()))


def degrees(model: Model) -> np.ndarray:
    return np.bincount(model.edges.reshape(-1), minlength=model.n)


def _edge_step(model, eta, i):
    return 1 / (2 * model.m * eta)


def _star_step_proved(model, eta, i):
    size, total = degrees(model)[i], 2 * model.m
    return 2 * size / ((size + 1) * total * eta)


def _star_step_printed(model, eta, i):
    size, total = degrees(model), 2 * model.m
    return size[size > 0].min() / (2 * (size[i] / total) * eta * total)


TWINS = {
    "emp": Twin(emp),
    "smp": Twin(smp),
    "bcd": Twin(bcd),
    "accel-emp": Twin(emp, _edge_step),
    "accel-smp": Twin(smp, _star_step_proved),
    "accel-bcd": Twin(bcd, _edge_step),
    "accel-emp-printed": Twin(emp, _edge_step, printed=True),
    "accel-smp-printed": Twin(smp, _star_step_printed, printed=True),
}


def standard(model, twin, eta, lam, generator) -> Iterator[np.ndarray]:
    """λ^(1), λ^(2), … of Algorithm 1."""
    lam = lam.copy()
    while True:
        for h, new in twin.update(model, lam, eta, generator.half_edge(model)).items():
            lam[model.half_slice(h)] = new
        yield lam.copy()


def accelerated(model, twin, eta, lam, generator) -> Iterator[np.ndarray]:
    """λ^(1), λ^(2), … of Algorithms 2 and 3."""
    lam, v, theta = lam.copy(), lam.copy(), 1.0
    while True:
        theta = (-(theta**2) + np.sqrt(theta**4 + 4 * theta**2)) / 2
        y = theta * v + (1 - theta) * lam
        lam = lam.copy() if twin.printed else y.copy()
        for h, new in twin.update(model, y, eta, generator.half_edge(model)).items():
            lam[model.half_slice(h)] = new
            i = int(model.edges.reshape(-1)[h])
            step = twin.step(model, eta, i) / theta
            v[model.half_slice(h)] += step * nu(model, y, eta, h)
        yield lam.copy()


def iterates(name, model, eta, lam, generator) -> Iterator[np.ndarray]:
    twin = TWINS[name]
    return (accelerated if twin.step else standard)(model, twin, eta, lam, generator)


def least_dual(model: Model, eta: float) -> tuple[float, np.ndarray]:
    """L* and a minimiser, to about 1e-12, by L-BFGS and then Newton's method on small models."""
    dual = SmoothedDual(model, eta)
    start = np.zeros(int(model.half_offset[-1]))
    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-12}
    found = minimize(dual.value, start, jac=dual.gradient, method="L-BFGS-B", options=options)
    return float(found.fun), found.x


def long_run(model: Model, eta: float, updates: int = 30_000) -> tuple[float, np.ndarray]:
    """L* and a minimiser to some digits, much faster: very many random star updates."""
    method = make("smp", eta=eta)
    state = method.init(model, None, 1)
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
