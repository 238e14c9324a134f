"""The paper's algorithms to the letter, in plain numpy: whole vectors, dense tables, no caches.

*The paper* is Lee, Pacchiano, Bartlett and Jordan, "Accelerated Message Passing for
Entropy-Regularized MAP Inference", ICML 2020. `softmap.paper.methods` is the same, compiled.

Parameters have one meaning in all functions:

- `model`: C. Edge e = (i, j) has the half-edges h = 2e, which is (e, i), and 2e + 1, (e, j).
- `lam`: λ, flat: `lam[model.half_slice(h)]` is λ_{e,i}. λ is in units of cost: where the paper
  prints exp(Σ λ) in L, this is exp(η Σ λ), as in its proofs. ν and S are arranged like λ.
- `eta`: η, in units of 1 / cost.
- `block`: b, half-edges at one vertex i: one of them for EMP, all of N_i for SMP.
- `mu`: μ, two flat arrays: node marginals, and edge marginals by rows.

A label of cost +inf is forbidden: μ = S = ν = λ = 0. Each function says how long it takes for d
labels; compiled methods take the time of the update alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmap.model import Network
from softmap.paper.blocks import Block, N, Order, edges, entries, vertex
from softmap.relaxation import polytope

Floats = NDArray[np.float64]
Mu = tuple[Floats, Floats]
Rule = Callable[[Network, Floats, float, Block], Floats]


def log_sum(a: Floats, axis: int | None = None) -> Floats:
    """log Σ exp(a), -inf where all a are."""
    most = a.max(axis=axis, keepdims=True)
    most[most == -np.inf] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(a - most).sum(axis=axis)) + most.squeeze(axis))


def _node(model: Network, lam: Floats, eta: float, i: int) -> Floats:
    """-η C_i(x) + η Σ_{e∈N_i} λ_{e,i}(x)."""
    total = sum((lam[model.half_slice(h)] for h in N(model, i)), np.zeros(1))
    return np.asarray(-eta * (model.unary_of(i) - total))


def _edge(model: Network, lam: Floats, eta: float, e: int) -> Floats:
    """-η C_e(x_e) - η Σ_{i∈e} λ_{e,i}(x_i), a table; -inf at forbidden labels."""
    rows, columns = (
        np.where(np.isposinf(model.unary_of(i)), np.inf, lam[model.half_slice(2 * e + side)])
        for side, i in enumerate(model.edges[e])
    )
    return np.asarray(-eta * (model.table(e) + rows[:, None] + columns[None, :]))


def log_mu(model: Network, lam: Floats, eta: float, i: int) -> Floats:
    """log μ_i^λ, Proposition "dual-obj". O(|N_i| d)."""
    exponent = _node(model, lam, eta, i)
    return exponent - log_sum(exponent)


def log_mu_e(model: Network, lam: Floats, eta: float, e: int) -> Floats:
    """log μ_e^λ, Proposition "dual-obj", a table. O(d²)."""
    exponent = _edge(model, lam, eta, e)
    return exponent - log_sum(exponent)


def log_S(model: Network, lam: Floats, eta: float, h: int) -> Floats:
    """log S_{e,i}^λ, S_{e,i}(x_i) = Σ_{x_j} μ_e(x_i, x_j), below (derivative). O(d²)."""
    return log_sum(log_mu_e(model, lam, eta, h // 2), axis=1 - h % 2)


def nu(model: Network, lam: Floats, eta: float, block: Block) -> Floats:
    """ν_b^λ = S_{e,i} - μ_i, Definition "slack"; -∂L/∂λ_b (derivative). O(|b| d² + |N_i| d)."""
    mu = {i: np.exp(log_mu(model, lam, eta, i)) for i in {vertex(model, h) for h in block}}
    return np.concatenate([np.exp(log_S(model, lam, eta, h)) - mu[vertex(model, h)] for h in block])


def slack(model: Network, lam: Floats, eta: float) -> float:
    """Σ_{e,i} ‖ν_{e,i}^λ‖₁², of which Algorithm 1 returns the least. O(m d²)."""
    halves = range(2 * model.m)
    return sum(float(np.abs(nu(model, lam, eta, [h])).sum()) ** 2 for h in halves)


def primal(model: Network, lam: Floats, eta: float) -> Mu:
    """μ^λ, Proposition "dual-obj". O(n d + m d²)."""
    nodes = [log_mu(model, lam, eta, i) for i in range(model.n)]
    pairs = [log_mu_e(model, lam, eta, e).ravel() for e in range(model.m)]
    return np.exp(np.concatenate(nodes)), np.exp(np.concatenate([*pairs, np.empty(0)]))


def H(mu: Mu) -> float:
    """H(μ) = -Σ μ (log μ - 1), section "Notation". O(n d + m d²)."""
    p = np.concatenate(mu)
    return float(p.sum() - (p * np.log(np.where(p > 0, p, 1.0))).sum())


def reg_p(model: Network, mu: Mu, eta: float) -> float:
    """⟨C, μ⟩ - H(μ) / η, the objective of (Reg-P). O(n d + m d²)."""
    return polytope.cost(model, *mu) - H(mu) / eta


def reg_d(model: Network, lam: Floats, eta: float) -> float:
    """L(λ), the objective of (Reg-D). O(n d + m d²).

    The least value of (Reg-P) is -L(λ*) - (n + m) / η: each distribution has Σ μ = 1 in H.
    """
    nodes = [float(log_sum(_node(model, lam, eta, i))) for i in range(model.n)]
    pairs = [float(log_sum(_edge(model, lam, eta, e))) for e in range(model.m)]
    return sum(nodes + pairs) / eta - model.constant


def proj(model: Network, mu: Mu, nu: Floats | None = None) -> Mu:
    """Proj(μ, ν), Algorithm 4, which is for finite costs; ν = 0 if None. O(m d²)."""
    nodes, pairs = mu[0], mu[1].copy()
    nu = np.zeros(model.half_size) if nu is None else nu
    for e, (i, j) in enumerate(model.edges):
        p = nodes[model.node_slice(i)] + nu[model.half_slice(2 * e)]
        q = nodes[model.node_slice(j)] + nu[model.half_slice(2 * e + 1)]
        at = slice(int(model.edge_offset[e]), int(model.edge_offset[e + 1]))
        pairs[at] = rounded(pairs[at].reshape(len(p), len(q)), p, q).ravel()
    return nodes, pairs


def rounded(F: Floats, r: Floats, c: Floats) -> Floats:
    """F moved to U(r, c), the couplings of r and c: Algorithm 2 of Altschuler et al. O(d²)."""
    rows = F.sum(axis=1)
    F = F * np.divide(r, rows, out=np.ones_like(r), where=rows > r)[:, None]
    columns = F.sum(axis=0)
    F = F * np.divide(c, columns, out=np.ones_like(c), where=columns > c)
    err_r, err_c = r - F.sum(axis=1), c - F.sum(axis=0)
    mass = np.abs(err_r).sum()
    return F + np.outer(err_r, err_c) / (mass or 1.0)


# --- updates of a block: new values of λ_b ----------------------------------------------------


def _logs(model: Network, lam: Floats, eta: float, block: Block) -> tuple[Floats, Floats]:
    """log μ_i, and log S_b with a row per half-edge; 0 at forbidden labels."""
    i = vertex(model, block[0])
    rows = np.stack([log_mu(model, lam, eta, i), *(log_S(model, lam, eta, h) for h in block)])
    rows[:, np.isposinf(model.unary_of(i))] = 0.0
    return rows[0], rows[1:]


def emp(model: Network, lam: Floats, eta: float, block: Block) -> Floats:
    """EMP_{e,i}^η(λ), Proposition "emp-update". O(d² + |N_i| d)."""
    mu, S = _logs(model, lam, eta, block[:1])
    return lam[entries(model, block)] + (S[0] - mu) / (2 * eta)


def smp(model: Network, lam: Floats, eta: float, block: Block) -> Floats:
    """SMP_i^η(λ), Proposition "smp-update". O(|N_i| d²)."""
    mu, S = _logs(model, lam, eta, block)
    product = mu + S.sum(axis=0)
    return lam[entries(model, block)] + (S / eta - product / (eta * (len(block) + 1))).ravel()


def bcd(model: Network, lam: Floats, eta: float, block: Block) -> Floats:
    """A gradient step of length 1 / η, the baseline of section "Numerical Experiments". As EMP."""
    return lam[entries(model, block)] + nu(model, lam, eta, block) / eta


# --- the schemes: Algorithms 1 to 3 -----------------------------------------------------------


class Point(NamedTuple):
    """The iterates λ^(k) and v^(k), and θ_{k-1}; λ is v and θ is 1 in Algorithm 1."""

    lam: Floats
    v: Floats
    theta: float


def standard(
    model: Network, rule: Rule, eta: float, blocks: Sequence[Block], draws: Iterable[int], at: Point
) -> Iterator[Point]:
    """Lines 2 to 6 of Algorithm 1 for the b_k in `draws`. O(m d) and an update for each."""
    lam = at.lam
    for b_k in draws:
        lam = lam.copy()
        lam[entries(model, blocks[b_k])] = rule(model, lam, eta, blocks[b_k])
        yield Point(lam, lam, 1.0)


def returned(model: Network, eta: float, iterates: Iterable[Floats]) -> Floats:
    """Line 7 of Algorithm 1: argmin Σ ‖ν_{e,i}^λ‖₁² of the iterates. O(m d²) for each."""
    return min(iterates, key=lambda lam: slack(model, lam, eta))


def accelerated(
    model: Network, rule: Rule, eta: float, blocks: Sequence[Block], draws: Iterable[int],
    at: Point, gain: Floats, *, printed: bool,
) -> Iterator[Point]:  # fmt: skip
    """Lines 2 to 10 of Algorithm 2, 2 to 12 of Algorithm 3. O(m d), an update and ν_b for each.

    The step of v is gain[b] / θ_k. Off the block, λ^(k+1) is λ^(k) if `printed`; else it is y^(k),
    which the proof of Lemma "acc-dual-conv" needs.
    """
    lam, v, theta = at
    for b_k in draws:
        theta = (-(theta**2) + np.sqrt(theta**4 + 4 * theta**2)) / 2
        y = theta * v + (1 - theta) * lam
        lam = lam.copy() if printed else y.copy()
        b = entries(model, blocks[b_k])
        lam[b] = rule(model, y, eta, blocks[b_k])
        v = v.copy()
        v[b] += gain[b_k] / theta * nu(model, y, eta, blocks[b_k])
        yield Point(lam, v, theta)


# Steps of v, times θ_k, for blocks of `size` half-edges (at least one) and probabilities p.
Gain = Callable[[Network, Order, float, Floats, Floats], Floats]


def printed_gain(model: Network, order: Order, eta: float, size: Floats, p: Floats) -> Floats:
    """Algorithm 2: 1 / (2mη). Algorithm 3: min_j |N_j| / (2 p_i η N), N times what is proved."""
    q = 2 * model.m
    return np.full(len(p), 1 / (q * eta)) if order is edges else size.min() / (2 * p * eta * q)


def lemma_gain(model: Network, order: Order, eta: float, size: Floats, p: Floats) -> Floats:
    """Lemmas "est-seq", 1 / (4mη), and "est-seq-smp", min_j |N_j| / (4 p_i η N²)."""
    q = 2 * model.m
    return np.full(len(p), 0.5 / (q * eta)) if order is edges else size.min() / (4 * p * eta * q**2)


def proved_gain(model: Network, order: Order, eta: float, size: Floats, p: Floats) -> Floats:
    """p_b / L_b, L_b = η (|b| + 1) / 2: the largest step for which the proof holds, for any P."""
    return p / (eta * (size + 1) / 2)


class Scheme(NamedTuple):
    """What surrounds an update: Algorithm 1 if `gain` is None, else Algorithm 2 or 3.

    `gain` is a function for the step of v, such as `printed_gain`; `printed` says whether λ^(k+1)
    is λ^(k) off the block, as printed, or y^(k), as proved.
    """

    gain: Gain | None = None
    printed: bool = False


STANDARD = Scheme()
PRINTED = Scheme(printed_gain, printed=True)
PROVED, LEMMA = Scheme(proved_gain), Scheme(lemma_gain)
