"""`transport_cost`: the cost of optimal transport as a differentiable function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import transport
from softmap.errors import ModelError
from softmap.extend import Potential
from softmap.learn.layer import framework

Floats = NDArray[np.float64]


def transport_cost(a: Any, b: Any, costs: Any, *, gap: float = 1e-3) -> Any:
    """Cost of moving masses `a` to masses `b`, with gradients by all three arguments.

    The arrays may be NumPy, PyTorch or JAX arrays; leading dimensions are a batch, and the result
    has one cost per member. The gradient by the costs is the plan. The gradients by the masses are
    the dual potentials, shifted to the mean 0: masses have the sum 1, so that a constant has no
    meaning. Where the optimum has several plans or potentials, these are one subgradient.

    Parameters
    ----------
    a : array (n,) or (batch, n)
        Masses, with sum 1.
    b : array (m,) or (batch, m)
        Masses, with sum 1.
    costs : array (n, m) or (batch, n, m)
        Cost of a unit of mass.
    gap : float, default 1e-3
        Relative gap, up to which the cost may exceed the optimum.

    Returns
    -------
    array () or (batch,)
        The cost of a feasible plan: at most the optimum and `gap` of it.

    Examples
    --------
    >>> from softmap.learn import transport_cost
    >>> float(transport_cost([0.5, 0.5], [0.25, 0.75], [[0.0, 1.0], [1.0, 0.0]]).round(6))
    0.25
    """
    if isinstance(costs, Potential):
        raise ModelError("transport_cost takes costs as an array; transport.sinkhorn, families")
    module = framework("transport_cost", a, b, costs)
    if module is not None:
        return module.transport_cost(a, b, costs, gap)
    return Moved.of(a, b, costs, gap).cost


@dataclass(frozen=True, eq=False)
class Moved:
    """Costs of transport, and their gradients by masses and costs.

    Attributes
    ----------
    cost : float64 array () or (batch,)
        Cost of a plan, of each member of the batch.
    gradients : tuple of float64 arrays
        Gradients of each member's cost by its masses and its costs.
    """

    cost: Floats
    gradients: tuple[Floats, Floats, Floats]

    @staticmethod
    def of(a: Any, b: Any, costs: Any, gap: float) -> Moved:
        """Solve the transport of every member."""
        found = transport.sinkhorn(a, b, costs, gap=gap)
        if isinstance(found, list):
            members = [_gradients(one) for one in found]
            parts = tuple(np.stack(part) for part in zip(*members, strict=True))
            return Moved(np.array([one.cost for one in found]), parts)  # type: ignore[arg-type]
        return Moved(np.array(found.cost), _gradients(found))

    def pulled(self, given: Any, shapes: Any) -> list[Floats]:
        """Return gradients by arguments of these shapes, given those by the costs of the members.

        An argument that all members of a batch share has the sum of their gradients.
        """
        made = []
        for gradient, shape in zip(self.gradients, shapes, strict=True):
            weights = np.reshape(given, np.shape(given) + (1,) * (gradient.ndim - self.cost.ndim))
            weighted = weights * gradient
            made.append(weighted if weighted.ndim == len(shape) else weighted.sum(axis=0))
        return made


def _gradients(found: Any) -> tuple[Floats, Floats, Floats]:
    first, second = (part - part.mean() for part in found.potentials)
    return first, second, found.plan()
