"""Random models of every family for property tests, small enough for brute force.

`models()` draws the structure (so that failures shrink) and a seed for the costs. Every model with
hard constraints hides a labelling that is never forbidden, so it stays feasible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from softmap.model import Model, checked_network, raised
from softmap.model.potentials import Potential, Potts, Tables
from support.families import FAMILIES as REGISTRY
from support.families import PAIRWISE, Ends, Numbers

FAMILIES = (*PAIRWISE, "mix", "factors")
GRAPHS = ("random", "tree", "single", "parallel", "none")

# For properties that are tried for every family: a third of the usual number of examples for each.
few = settings(max_examples=settings().max_examples // 3)


@dataclass(frozen=True)
class Recipe:
    """Everything a random model is made from."""

    family: str
    counts: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    hard: bool
    whole: bool  # small integer costs, for ties
    seed: int


@st.composite
def recipes(draw, families=FAMILIES, graphs=GRAPHS, hard=None, max_n=5, max_d=4, whole=None):
    family = draw(st.sampled_from(families))
    graph = draw(st.sampled_from(graphs))
    low = 1 if graph == "none" else 2
    n = 2 if graph == "single" else draw(st.integers(low, max_n))
    if draw(st.booleans()):
        counts = (draw(st.integers(2, max_d)),) * n
    else:
        counts = tuple(draw(st.lists(st.integers(1, max_d), min_size=n, max_size=n)))
    return Recipe(
        family=family,
        counts=counts,
        edges=tuple(_edges(draw, graph, n)),
        hard=draw(st.booleans()) if hard is None else hard,
        whole=draw(st.booleans()) if whole is None else whole,
        seed=draw(st.integers(0, 2**32 - 1)),
    )


def _edges(draw, graph, n):
    if graph == "none":
        return []
    if graph == "tree":
        flips = draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))
        pairs = [(draw(st.integers(0, j - 1)), j) for j in range(1, n)]
        return [(j, i) if flip else (i, j) for (i, j), flip in zip(pairs, flips, strict=True)]
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    if graph == "single":
        return [draw(pair)]
    if graph == "parallel":
        return [draw(pair)] * 2 + draw(st.lists(pair, max_size=2))
    return draw(st.lists(pair, min_size=1, max_size=6))


def models(**options):
    """Random models; see `recipes` for the options."""
    return recipes(**options).map(build)


def build(recipe: Recipe) -> Model:
    maker = _Maker(recipe)
    if recipe.family == "factors":
        return maker.factor_model()
    edges = np.array(recipe.edges, dtype=int).reshape(-1, 2)
    if recipe.family == "mix":
        kinds = maker.rng.integers(0, len(PAIRWISE), size=len(edges))
        groups = [
            (edges[kinds == k], maker.potential(PAIRWISE[k], edges[kinds == k]))
            for k in range(len(PAIRWISE))
            if (kinds == k).any()
        ]
    else:
        groups = [(edges, maker.potential(recipe.family, edges))] if len(edges) else []
    constant = float(maker.rng.normal())
    return Model(maker.unary(), None, groups, constant=constant)


class _Maker(Numbers):
    def __init__(self, recipe: Recipe) -> None:
        super().__init__(np.random.default_rng(recipe.seed), recipe.hard, recipe.whole)
        self.recipe = recipe
        self.counts = np.array(recipe.counts)
        self.hidden = self.rng.integers(0, self.counts)

    def unary(self) -> list[np.ndarray]:
        return [
            self.forbid(self.costs(d), (x,), 0.15)
            for d, x in zip(self.counts, self.hidden, strict=True)
        ]

    def potential(self, family: str, edges: np.ndarray) -> Potential:
        keep = [(int(x), int(y)) for x, y in self.hidden[edges]]
        ends = Ends(*self.counts[edges].T.tolist(), keep)
        return REGISTRY[family].make(self, ends)

    def factors(self) -> list[tuple[tuple[int, ...], np.ndarray]]:
        """Factors of arities 0 to 4; variables in any order."""
        n = len(self.counts)
        found = [((), np.array(self.rng.normal()))]
        for arity in self.rng.integers(1, min(n, 4) + 1, size=4):
            scope = tuple(int(i) for i in self.rng.permutation(n)[:arity])
            keep = tuple(self.hidden[list(scope)])
            found.append((scope, self.forbid(self.costs(*self.counts[list(scope)]), keep, 0.15)))
        return found

    def factor_model(self) -> Model:
        pairs = np.array(self.recipe.edges, dtype=int).reshape(-1, 2)[:2]
        groups = [(pairs, Potts(self.costs(len(pairs))))] if len(pairs) else []
        return Model.from_factors(self.counts, self.factors(), groups=groups)


def random_lam(model: Model, seed: int, scale: float = 1.0) -> np.ndarray:
    """A random λ in cost units."""
    return scale * np.random.default_rng(seed).normal(
        size=int(checked_network(model).half_offset[-1])
    )


def dense(model: Model) -> Model:
    """The same model with every edge as a plain table (`as_table`)."""
    unary = [checked_network(model).unary_of(i) for i in range(checked_network(model).n)]
    tables = list(checked_network(model).tables())
    plain = Model(unary, checked_network(model).edges, tables, constant=model.constant)
    return raised(plain.network.with_auxiliaries(checked_network(model).auxiliaries))


def reparametrised(model: Model, lam: np.ndarray) -> Model:
    """Costs C_i - Σ λ and C_e + λ_i + λ_j: another model with the same energies."""
    network, tables = model.network, []
    unary = network.unary.copy()
    for e in range(network.m):
        ends = [lam[network.half_slice(2 * e + side)] for side in (0, 1)]
        for side in (0, 1):
            unary[network.node_slice(int(network.edges[e, side]))] -= ends[side]
        tables.append(network.table(e) + ends[0][:, None] + ends[1][None, :])
    potentials = [Tables(tables)] if tables else []
    return raised(dense(model).network.replace(unary=unary, potentials=potentials))


seeds = st.integers(0, 2**32 - 1)
etas = st.floats(-3, 8).map(lambda power: 10.0**power)
