"""`soft_map`: the marginals of the smoothed optimum as a differentiable function."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmap import Model, Potts, SoftMarginals, Tables
from softmap.arguments import positive
from softmap.errors import ModelError, OptionError, needs_extra
from softmap.extend import Differentiable, Potential, numbers, plain, requires_gradient
from softmap.extend.smoothing import SMOOTHING, UniformFrame, adjoint, smoothed_optimum
from softmap.hints import suggesting
from softmap.learn.features import read_edges
from softmap.learn.weights import differentiable_tables

FRAMEWORKS = {"torch": "torch", "jax": "jax", "jaxlib": "jax"}  # package of an array -> module here

Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats]
Pull = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class SecondDerivatives:
    """The central difference that approximates second derivatives."""

    step: float = 1e-3
    """Largest change of η times a cost."""
    finer: float = 1e-2
    """Tolerance of the marginals, relative to the default tolerance."""


SECOND = SecondDerivatives()


class Beliefs(NamedTuple):
    """Marginals of variables and edges, as `soft_map` returns them.

    Attributes
    ----------
    nodes : array (..., n, d)
        Marginals of the variables.
    edges : array (..., m, d, d)
        Marginals of the edges.
    """

    nodes: Any
    edges: Any


@suggesting
def soft_map(
    unary: Any, pairwise: Any, edges: Any, eta: float, *, tolerance: float = SMOOTHING.tol
) -> Beliefs:
    """Marginals of the smoothed optimum: the paper's μ at inverse temperature η.

    The arrays may be NumPy, PyTorch or JAX arrays, and the result has the same type. PyTorch and
    JAX differentiate through it by one linear solve (the adjoint system), not by unrolling the
    iterations. A float64 tensor is read in place, on a GPU by CuPy. JAX under `jit`, and costs with
    hard constraints, are computed on the CPU.

    Parameters
    ----------
    unary : array (..., n, d)
        Costs of the variables; leading dimensions are a batch.
    pairwise : array (..., m, d, d), Potential or float
        Costs of the edges, or an array that broadcasts to this shape: (d, d) is one table for all
        edges. A number is the Potts weight of all edges. PyTorch and JAX differentiate by tables,
        by a number, and by the arguments of a potential, such as `Potts(w)` and
        `TruncatedLinear(w, truncation)`.
    edges : int array (m, 2), (2, m) or (..., m, 2)
        One graph for all members of the batch, or one graph per member. A row of -1 is not an edge,
        so that members may have different numbers of edges; its costs are ignored, and its
        marginals are 0. An array (2, m), the `edge_index` of graph libraries, is transposed; one of
        (2, 2) is two rows.
    eta : float
        Inverse temperature. Marginals approach labels as η grows; μ depends only on η times the
        costs.
    tolerance : float
        Largest difference between the marginals of a variable and those of its edges.

    Returns
    -------
    Beliefs
        The marginals `nodes` and `edges`.

    Examples
    --------
    >>> import softmap
    >>> unary, table = [[0.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]
    >>> nodes, edges = softmap.soft_map(unary, table, [[0, 1]], eta=2.0)
    >>> nodes.round(3).tolist()
    [[0.699, 0.301], [0.604, 0.396]]
    """
    problem = LayerProblem.of(edges, eta, tolerance)
    pairwise = tables_of(pairwise, unary, problem.edges)
    module = framework("soft_map", unary, pairwise)
    if module is not None:
        answer: Beliefs = module.soft_map(unary, pairwise, problem)
        return answer
    return vjp(problem, unary, pairwise)[0]


def soft_map_vjp(
    unary: Any, pairwise: Any, edges: Any, eta: float, *, tolerance: float = SMOOTHING.tol
) -> tuple[Beliefs, Pull]:
    """Return `soft_map` of NumPy arrays, and its vector-Jacobian product.

    Parameters
    ----------
    unary : array (..., n, d)
        See `soft_map`.
    pairwise : array (..., m, d, d), or an array that broadcasts to it
        See `soft_map`.
    edges : int array (m, 2)
        See `soft_map`.
    eta : float
        Inverse temperature.
    tolerance : float, default 1e-10
        Largest difference between a variable's marginal and that of its edges.

    Returns
    -------
    beliefs : Beliefs
        The marginals.
    pull : function
        Maps gradients by the marginals (nodes, edges) to gradients by the costs (unary, pairwise).

    Examples
    --------
    >>> import numpy as np
    >>> from softmap.learn import soft_map_vjp
    >>> beliefs, pull = soft_map_vjp(np.zeros((2, 2)), np.eye(2), [[0, 1]], 1.0)
    >>> by_unary, by_table = pull([[1.0, 0.0], [0.0, 0.0]], np.zeros((1, 2, 2)))
    >>> by_unary.shape, by_table.shape
    ((2, 2), (2, 2))
    """
    problem = LayerProblem.of(edges, eta, tolerance)
    return vjp(problem, unary, tables_of(pairwise, unary, problem.edges))


def vjp(problem: Any, unary: Any, pairwise: Any) -> tuple[Beliefs, Pull]:
    """Return what a problem finds for arrays of costs, and its vector-Jacobian product."""
    first, second = _floats(unary, "unary"), _floats(pairwise, "pairwise")
    full, tables = problem.shapes(first.shape, second.shape)
    dtype = np.result_type(first, second)
    soft = problem.forward(np.broadcast_to(first, full), np.broadcast_to(second, tables))

    def pull(nodes: Any, pairs: Any) -> tuple[Any, Any]:
        g, h = (np.asarray(a, dtype=np.float64) for a in (nodes, pairs))
        by_unary, by_table = soft.pulled(np.broadcast_to(g, full), np.broadcast_to(h, tables))
        return (
            _summed(by_unary, first.shape).astype(first.dtype, copy=False),
            _summed(by_table, second.shape).astype(second.dtype, copy=False),
        )

    nodes, pairs = soft.nodes, soft.pairs
    return Beliefs(nodes.astype(dtype, copy=False), pairs.astype(dtype, copy=False)), pull


@dataclass(frozen=True, eq=False)
class LayerProblem:
    """The graphs, η and the tolerance of `soft_map`; its methods take costs as NumPy arrays.

    Attributes
    ----------
    edges : int array (m, 2) or (..., m, 2)
        One graph for all members of the batch, or one graph per member, padded with rows of -1.
    eta : float
        Inverse temperature.
    tolerance : float
        Largest difference between the marginals of a variable and those of its edges.
    """

    edges: NDArray[np.int64]
    eta: float
    tolerance: float = SMOOTHING.tol

    @staticmethod
    def of(edges: Any, eta: Any, tolerance: float = SMOOTHING.tol) -> LayerProblem:
        """Return a problem of checked arguments."""
        return LayerProblem(read_edges(edges), checked_eta(eta), tolerance)

    def shapes(
        self, unary: tuple[int, ...], pairwise: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return shapes (*batch, n, d) and (*batch, m, d, d), or raise `ModelError`."""
        graphs = self.edges.shape[:-2]
        return shapes(unary, pairwise, self.edges.shape[-2], graphs)

    def model(self, unary: Floats, pairwise: Floats) -> Model:
        """Return one model for all members of a batch, without edges between them."""
        self.check(unary.shape)
        n, d = unary.shape[-2:]
        flat = np.ascontiguousarray(unary, dtype=np.float64).reshape(-1, d)
        shift = n * np.arange(len(flat) // n)[:, None, None]
        edges, used = self._listed(unary.shape[:-2])
        tables = np.ascontiguousarray(pairwise, dtype=np.float64).reshape(edges.size // 2, d, d)
        return Model(flat, (edges + shift).reshape(-1, 2)[used], Tables(tables[used]))

    def graphs(self, batch: tuple[int, ...]) -> NDArray[np.int64]:
        """Return the edges (members, m, 2) of all members of a batch; rows of -1 are no edges."""
        m = self.edges.shape[-2]
        return np.broadcast_to(self.edges, (*batch, m, 2)).reshape(math.prod(batch), m, 2)

    def _listed(self, batch: tuple[int, ...]) -> tuple[NDArray[np.int64], Any]:
        """Return the edges of all members, and a mask of the rows that are edges."""
        edges = self.graphs(batch)
        return edges, slice(None) if self.edges.ndim == 2 else (edges[..., 0] >= 0).reshape(-1)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise `ModelError` if the shape of the unary costs does not fit the edges."""
        n, d = shape[-2:]
        if n * d == 0:
            raise ModelError(f"unary of shape {tuple(shape)} has no variables or no labels")
        known = self.edges[self.edges[..., 0] >= 0] if self.edges.ndim > 2 else self.edges
        if known.size and not 0 <= known.min() <= known.max() < n:
            raise ModelError(f"edges lead to variables that are not among the {n} of unary")

    def forward(self, unary: Floats, pairwise: Floats) -> Soft:
        """Return the smoothed optimum for costs (..., n, d) and (..., m, d, d)."""
        found = smoothed_optimum(self.model(unary, pairwise).network, self.eta, tol=self.tolerance)
        return Soft(self, found, unary.shape)

    def at(self, unary: Floats, pairwise: Floats, lam: Floats) -> Soft:
        """Return the smoothed optimum, given λ of `device_forward`."""
        _, used = self._listed(unary.shape[:-2])
        count = math.prod(unary.shape[:-2]) * self.edges.shape[-2]
        halves = np.asarray(lam, dtype=np.float64).reshape(count, 2, unary.shape[-1])[used]
        flat = np.ascontiguousarray(halves).reshape(-1)
        network = self.model(unary, pairwise).network
        return Soft(self, SoftMarginals.at(network, self.eta, flat), unary.shape)

    def bent(self, costs: Pair, given: Pair, along: Pair) -> Pair:
        """Return the derivative, along a change of the costs, of the gradients for `given`.

        It consists of third derivatives of the smoothed optimum, computed by a central difference
        with about six accurate digits.
        """
        largest = max(float(np.abs(a).max(initial=0.0)) for a in along)
        if largest == 0.0:
            return np.zeros(costs[0].shape), np.zeros(costs[1].shape)
        step = SECOND.step / (self.eta * largest)
        exact = replace(self, tolerance=min(self.tolerance, SMOOTHING.tol * SECOND.finer))
        high, low = (
            exact.forward(*(c + move * a for c, a in zip(costs, along, strict=True))).pulled(*given)
            for move in (step, -step)
        )
        return (high[0] - low[0]) / (2 * step), (high[1] - low[1]) / (2 * step)


@dataclass(frozen=True, eq=False)
class Soft:
    """The smoothed optimum of a batch, in the shapes of its costs; 0 at rows without an edge."""

    problem: LayerProblem
    found: SoftMarginals
    shape: tuple[int, ...]

    @property
    def nodes(self) -> Floats:
        """Marginals of variables, (..., n, d)."""
        return self.found.nodes.reshape(self.shape)

    @property
    def pairs(self) -> Floats:
        """Marginals of edges, (..., m, d, d)."""
        return self._spread(self.found.edges, (self.shape[-1],) * 2)

    @property
    def lam(self) -> Floats:
        """λ, (..., 2 m, d)."""
        d, m = self.shape[-1], self.problem.edges.shape[-2]
        return self._spread(self.found.lam, (2, d)).reshape(*self.shape[:-2], 2 * m, d)

    def pulled(self, nodes: Any, pairs: Any) -> tuple[Floats, Floats]:
        """Return gradients by the costs, given gradients by the marginals."""
        d = self.shape[-1]
        by_node = np.ascontiguousarray(nodes, dtype=np.float64).reshape(-1)
        edges, used = self.problem._listed(self.shape[:-2])
        each = np.ascontiguousarray(pairs, dtype=np.float64).reshape(edges.size // 2, d * d)
        by_pair = each[used]
        unary, tables = adjoint(self.found, by_node, np.ascontiguousarray(by_pair).reshape(-1))
        return unary.reshape(self.shape), self._spread(tables, (d, d))

    def _spread(self, flat: Floats, each: tuple[int, ...]) -> Floats:
        """Scatter values of the existing edges into an array over all rows of `edges`."""
        batch, m = self.shape[:-2], self.problem.edges.shape[-2]
        _, used = self.problem._listed(batch)
        if isinstance(used, slice):
            return flat.reshape(*batch, m, *each)
        whole = np.zeros((len(used), *each))
        whole[used] = flat.reshape(int(used.sum()), *each)
        return whole.reshape(*batch, m, *each)


def shapes(
    unary: tuple[int, ...], pairwise: tuple[int, ...], m: int, graphs: tuple[int, ...] = ()
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shapes (*batch, n, d) and (*batch, m, d, d), or raise `ModelError`."""
    if len(unary) < 2 or len(pairwise) < 2:
        raise ModelError(
            f"expected unary (..., n, d) and pairwise (..., m, d, d), not {unary} and {pairwise}"
        )
    n, d = unary[-2:]
    try:
        batch = np.broadcast_shapes(unary[:-2], pairwise[:-3], graphs)
        np.broadcast_shapes(pairwise[-3:], (m, d, d))
        if pairwise[-2:] != (d, d) or (len(pairwise) > 2 and pairwise[-3] not in (1, m)):
            raise ValueError
    except ValueError:
        raise ModelError(
            f"pairwise of shape {pairwise} does not fit unary of shape {unary} and edges of shape "
            f"{(*graphs, m, 2)}: expected (..., {m}, {d}, {d})"
        ) from None
    return (*batch, n, d), (*batch, m, d, d)


def tables_of(pairwise: Any, unary: Any, edges: NDArray[np.int64]) -> Any:
    """Return the tables of a potential or of a Potts weight; other costs unchanged."""
    for name, values in (("unary", unary), ("pairwise", pairwise)):
        _reject_list(values, name)
    if isinstance(pairwise, Potential) or _is_number(pairwise):
        if len(np.shape(unary)) < 2:
            raise ModelError(f"expected unary (..., n, d), not of shape {np.shape(unary)}")
        labels, count = int(np.shape(unary)[-1]), edges.shape[-2]
    if _is_number(pairwise):
        module = framework("a Potts weight", pairwise)
        given = {"weights": pairwise}
        pairwise = Potts(pairwise) if module is None else Differentiable(Potts, given)
    if isinstance(pairwise, Differentiable):
        like = next(v for v in _leaves(pairwise.given.values()) if framework("soft_map", v))
        tensors = framework("soft_map", like).tensors(like)
        return differentiable_tables(pairwise, labels, count, tensors)
    if not isinstance(pairwise, Potential):
        return pairwise
    spread = pairwise.spread(count) if pairwise.alike and len(pairwise) != count else pairwise
    if len(spread) != count:
        raise ModelError(f"{count} edges were given for {pairwise!r}")
    return spread.stack(np.arange(count), labels, labels)


def _is_number(values: Any) -> bool:
    """Whether the value is a single number, not an array."""
    return isinstance(values, int | float | np.number) or getattr(values, "shape", None) == ()


def _leaves(values: Any) -> Iterator[Any]:
    """Yield the values, and the entries of lists among them."""
    for value in values:
        yield from _leaves(value) if isinstance(value, list | tuple) else (value,)


def _reject_list(values: Any, name: str) -> None:
    """Raise `ModelError` for a dictionary, a list of tensors, and a list of unequal arrays."""
    if isinstance(values, Mapping):
        raise ModelError(f"{name} must be an array, not a dict with the keys {', '.join(values)}")
    if not isinstance(values, list | tuple):
        return
    shapes = sorted({tuple(v.shape) for v in values if hasattr(v, "shape")})
    if len(shapes) > 1:
        raise ModelError(
            f"{name} is a list of arrays of shapes {shapes[0]} and {shapes[-1]}: pad the members "
            "of a batch to one shape (variables without edges, edges of -1), or give each alone"
        )
    if any(framework("soft_map", value) for value in _leaves(values)):
        raise ModelError(f"{name} is a list of tensors: stack them (torch.stack, jax.numpy.stack)")


def checked_eta(eta: Any) -> float:
    """Return η, or raise an error; it has no gradient."""
    if requires_gradient(eta):
        raise OptionError(
            "eta requires a gradient, which soft_map does not compute. Beliefs depend on eta times "
            "the costs only: write soft_map(eta * unary, eta * pairwise, edges, 1.0)"
        )
    return positive("eta", plain(eta))


def framework(caller: str, *arrays: Any) -> Any:
    """Return the module here for the framework of the arrays; None for NumPy."""
    for array in arrays:
        name = FRAMEWORKS.get(type(array).__module__.partition(".")[0])
        if name is not None:
            with needs_extra(f"{caller} with {name} arrays", name):
                return import_module(f"softmap.learn.{name}")
    return None


def _floats(values: Any, name: str) -> NDArray[Any]:
    """Return a float array; float32 stays float32."""
    array = numbers(values, name)
    return array.astype(np.float32) if getattr(values, "dtype", None) == np.float32 else array


def _summed(gradient: Floats, shape: tuple[int, ...]) -> Floats:
    """Sum a gradient over the axes that were broadcast from `shape`."""
    extra = gradient.ndim - len(shape)
    summed = gradient.sum(axis=tuple(range(extra))) if extra else gradient
    spread = tuple(k for k, size in enumerate(shape) if size == 1 and summed.shape[k] != 1)
    result: Floats = summed.sum(axis=spread, keepdims=True) if spread else summed
    return result


def _frame(problem: LayerProblem, unary: Any, pairwise: Any, xp: Any) -> UniformFrame:
    problem.check(unary.shape)
    n, d = unary.shape[-2:]
    flat = xp.ascontiguousarray(unary, dtype=np.float64).reshape(-1, d)
    tables = xp.ascontiguousarray(pairwise, dtype=np.float64).reshape(-1, d, d)
    return UniformFrame(flat, tables, problem.edges, len(flat) // n, xp)


def device_forward(
    problem: LayerProblem, unary: Any, pairwise: Any, xp: Any
) -> tuple[Any, Any, Any] | None:
    """Marginals of nodes and edges, and λ; None for hard constraints and for several graphs."""
    if problem.edges.ndim > 2:
        return None
    frame = _frame(problem, unary, pairwise, xp)
    if not all(bool(xp.isfinite(a).all()) for a in (frame.unary, frame.tables)):
        return None
    point = frame.optimum(problem.eta, problem.tolerance)
    tables = point.tables[0] if point.tables else frame.tables
    return point.nodes.reshape(unary.shape), tables.reshape(pairwise.shape), point.lam


def device_backward(
    problem: LayerProblem, costs: tuple[Any, Any], lam: Any, given: tuple[Any, Any], xp: Any
) -> tuple[Any, Any]:
    """Return gradients by the costs, given λ of `device_forward` and gradients by the marginals."""
    frame = _frame(problem, *costs, xp)
    nodes, tables, lam = (xp.ascontiguousarray(a, dtype=np.float64) for a in (*given, lam))
    point = frame.at(lam.reshape(-1), problem.eta)
    pairs = [tables.reshape(frame.tables.shape)] if point.tables else []
    by_node, by_table = point.pulled_back(nodes.reshape(-1), pairs)
    by_pair = by_table[0] if by_table else xp.zeros_like(frame.tables)
    return by_node.reshape(costs[0].shape), by_pair.reshape(costs[1].shape)
