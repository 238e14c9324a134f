"""`perturbed_map`: mean labellings under random costs, with gradients from MAP calls alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import Model, Tables, solve_batch
from softmap.arguments import count, positive
from softmap.extend import checked_options
from softmap.learn.layer import Beliefs, LayerProblem, Pull, framework, tables_of, vjp

Floats = NDArray[np.float64]


def perturbed_map(
    unary: Any,
    pairwise: Any,
    edges: Any,
    eta: float,
    *,
    samples: int = 16,
    step: float = 1.0,
    seed: Any = 0,
    **options: Any,
) -> Beliefs:
    """Mean of the optimal labellings of randomly perturbed models (perturb-and-MAP).

    Each sample subtracts independent Gumbel noise, divided by η, from the costs of all labels and
    solves the model by `solve_batch`; the result is the mean of the labellings, as indicators. For
    one variable its expectation is the Gibbs marginal. The gradient is implicit maximum likelihood
    estimation (I-MLE): the labellings of the same samples after a step along the incoming gradient,
    minus those before it, divided by the length of the step. In expectation, and as the step goes
    to 0, it is the gradient of the expected mean.

    Parameters
    ----------
    unary : array (..., n, d)
        Costs of the variables: NumPy, PyTorch or JAX; leading dimensions are a batch.
    pairwise : array (..., m, d, d), Potential or float
        Costs of the edges, as in `soft_map`.
    edges : int array (m, 2) or (..., m, 2)
        The graph, or one graph per member of the batch, as in `soft_map`.
    eta : float
        Inverse temperature: the standard deviation of the noise is 1.28 / η.
    samples : int, default 16
        Number of perturbed models per member of the batch. The variance falls as 1 / samples.
    step : float, default 1.0
        Largest change of η times a cost in the difference that makes the gradient. A smaller step
        has less bias and more variance.
    seed : int, default 0
        Seed of the noise: one seed, one function of the costs. Change it from step to step of a
        training; under `jax.jit` it may be traced.
    **options
        Options of `solve_batch`, such as `threads` and `time_limit`.

    Returns
    -------
    Beliefs
        Frequencies of the labels `nodes` and of the pairs of labels `edges`.

    Examples
    --------
    >>> from softmap.learn import perturbed_map
    >>> nodes, _ = perturbed_map([[0.0, 5.0], [0.0, 0.0]], 9.0, [[0, 1]], 4.0, samples=8)
    >>> nodes.tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    draws = Draws.of(edges, eta, samples, step, options)
    pairwise = tables_of(pairwise, unary, draws.problem.edges)
    module = framework("perturbed_map", unary, pairwise)
    if module is not None:
        answer: Beliefs = module.perturbed_map(unary, pairwise, draws, seed)
        return answer
    return vjp(draws.seeded(seed), unary, pairwise)[0]


def perturbed_map_vjp(
    unary: Any,
    pairwise: Any,
    edges: Any,
    eta: float,
    *,
    samples: int = 16,
    step: float = 1.0,
    seed: Any = 0,
    **options: Any,
) -> tuple[Beliefs, Pull]:
    """Return `perturbed_map` of NumPy arrays, and its vector-Jacobian product.

    Parameters
    ----------
    unary : array (..., n, d)
        See `perturbed_map`.
    pairwise : array (..., m, d, d), or an array that broadcasts to it
        See `perturbed_map`.
    edges : int array (m, 2)
        See `perturbed_map`.
    eta : float
        Inverse temperature.
    samples : int, default 16
        Number of perturbed models.
    step : float, default 1.0
        Largest change of η times a cost.
    seed : int, default 0
        Seed of the noise.
    **options
        Options of `solve_batch`.

    Returns
    -------
    beliefs : Beliefs
        The frequencies.
    pull : function
        Maps gradients by the frequencies (nodes, edges) to estimated gradients by the costs.
    """
    draws = Draws.of(edges, eta, samples, step, options)
    tables = tables_of(pairwise, unary, draws.problem.edges)
    return vjp(draws.seeded(seed), unary, tables)


@dataclass(frozen=True, eq=False)
class Draws:
    """The graphs, noise and options of `perturbed_map`; its methods take costs as NumPy arrays.

    Attributes
    ----------
    problem : LayerProblem
        The graphs and η.
    samples : int
        Number of perturbed models.
    step : float
        Largest change of η times a cost in the difference that makes the gradient.
    seed : int
        Seed of the noise.
    options : dict
        Options of `solve_batch`.
    """

    problem: LayerProblem
    samples: int
    step: float
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(edges: Any, eta: float, samples: int, step: float, options: dict[str, Any]) -> Draws:
        """Return checked draws."""
        own = {name: value for name, value in options.items() if name not in ("threads",)}
        checked_options("perturbed_map", own)
        problem = LayerProblem.of(edges, eta)
        return Draws(problem, count("samples", samples, 1), positive("step", step), 0, options)

    def seeded(self, seed: Any) -> Draws:
        """Return these draws with a seed; a NumPy array of equal seeds counts as its entry."""
        whole = count("seed", int(np.ravel(seed)[0]) if isinstance(seed, np.ndarray) else seed)
        return Draws(self.problem, self.samples, self.step, whole, self.options)

    def shapes(self, unary: Any, pairwise: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return shapes (*batch, n, d) and (*batch, m, d, d), or raise `ModelError`."""
        return self.problem.shapes(unary, pairwise)

    def forward(self, unary: Floats, pairwise: Floats) -> Drawn:
        """Return the mean labellings for costs (..., n, d) and (..., m, d, d)."""
        return Drawn(self, (unary, pairwise), *self.mean(unary, pairwise))

    def mean(self, unary: Floats, pairwise: Floats) -> tuple[Floats, Floats]:
        """Return the frequencies of labels and of pairs of labels."""
        self.problem.check(unary.shape)
        graphs = self.problem.graphs(unary.shape[:-2])
        (n, d), batch = unary.shape[-2:], len(graphs)
        noise = np.random.default_rng(self.seed).gumbel(size=(self.samples, batch, n, d))
        costs = unary.reshape(batch, n, d) - noise / self.problem.eta
        tables, used = pairwise.reshape(batch, -1, d, d), graphs[:, :, 0] >= 0
        models = [
            Model(costs[s, k], graphs[k][used[k]], Tables(tables[k][used[k]]))
            for s in range(self.samples)
            for k in range(batch)
        ]
        found = [result.labels for result in solve_batch(models, **self.options)]
        hot = np.eye(d)[np.reshape(found, (self.samples, batch, n))]
        pairs = np.zeros(tables.shape)
        for k in range(batch):
            i, j = graphs[k][used[k]].T
            pairs[k, used[k]] = np.einsum("sex,sey->exy", hot[:, k, i], hot[:, k, j])
        return hot.mean(axis=0).reshape(unary.shape), pairs.reshape(pairwise.shape) / self.samples

    def pulled(self, costs: Any, mean: Any, given: Any) -> tuple[Floats, Floats]:
        """Return (mean after the step - mean) / length of the step.

        Parameters
        ----------
        costs, mean, given : pair of arrays
            Costs, the frequencies there, and gradients by them, of variables and edges.
        """
        largest = max(float(np.abs(g).max(initial=0.0)) for g in given)
        if largest == 0.0:
            return np.zeros(mean[0].shape), np.zeros(mean[1].shape)
        length = self.step / (self.problem.eta * largest)
        moved = self.mean(*(c + length * g for c, g in zip(costs, given, strict=True)))
        return (moved[0] - mean[0]) / length, (moved[1] - mean[1]) / length


@dataclass(frozen=True, eq=False)
class Drawn:
    """Frequencies of labels `nodes` and of pairs `pairs`, and the costs that they belong to."""

    draws: Draws
    costs: tuple[Floats, Floats]
    nodes: Floats
    pairs: Floats

    def pulled(self, nodes: Any, pairs: Any) -> tuple[Floats, Floats]:
        """Return estimated gradients by the costs, given gradients by the frequencies."""
        return self.draws.pulled(self.costs, (self.nodes, self.pairs), (nodes, pairs))
