"""Which linear solver for the adjoint of `soft_map`: `python -m benchmarks.adjoint`."""

from __future__ import annotations

import time

import numpy as np
from scipy.sparse.linalg import LinearOperator, minres

import softmap
from softmap.methods.marginals import smoothed_optimum
from softmap.methods.marginals.curvature import conjugate_gradients

MODELS = {
    "grid 16 x 16, 4 labels": softmap.generators.random_grid(16, 16, 4, seed=1),
    "tree of 200, 5 labels": softmap.generators.random_tree(200, 5, seed=1),
    "random graph of 100, 3 labels": softmap.generators.erdos_renyi(100, 3),
}
LIMIT = 5000


def measure(model, eta):
    """One line per solver: products with the Hessian, milliseconds, relative residual."""
    point = smoothed_optimum(model, eta, tol=1e-12).curvature
    frame = point.frame
    g = np.random.default_rng(0).normal(size=point.nodes.size)
    rhs = point.node_covariance(g)[frame.states]
    mu, S = point.nodes[frame.states], point.sums
    diagonal = eta * (mu * (1 - mu) + S * (1 - S))
    calls = [0]

    def product(v):
        calls[0] += 1
        return point.hessian(v)

    def with_cg(precondition):
        return conjugate_gradients(product, precondition, rhs, frame, tol=1e-9, limit=LIMIT).x

    operator = LinearOperator((rhs.size, rhs.size), product, dtype=float)
    solvers = {
        "plain": lambda: with_cg(lambda r: r),
        "diagonal": lambda: with_cg(lambda r: r / diagonal),
        "stars": lambda: with_cg(point.precondition),
        "MINRES": lambda: minres(operator, rhs, rtol=1e-11, maxiter=LIMIT)[0],
    }
    for name, solve in solvers.items():
        calls[0], start = 0, time.process_time()
        x = solve()
        spent = time.process_time() - start
        off = np.abs(point.hessian(x) - rhs).max() / np.abs(rhs).max()
        print(f"  {name:10} {calls[0]:5} products {1e3 * spent:7.0f} ms  residual {off:.0e}")


if __name__ == "__main__":
    for name, model in MODELS.items():
        for eta in (1.0, 3.0, 10.0):
            print(f"{name}, eta {eta:g}")
            measure(model, eta)
