"""Two convex losses for linear models: Fenchel-Young (L-BFGS) and hinge (Frank-Wolfe)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import solve_batch
from softmap.errors import ConvergenceWarning
from softmap.extend.smoothing import approached
from softmap.learn.features import Floats, Ints, LinearModel, Sample


@dataclass(frozen=True)
class Inference:
    """One inference of a fit, with its certificate.

    Attributes
    ----------
    sample : int
        Number of the sample.
    value : float
        Value of the answer: energy minus loss for the hinge, the smoothed cost for Fenchel-Young.
    bound : float
        Certified lower bound on the optimal value.
    """

    sample: int
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """The gap `value - bound`, at least 0."""
        return max(0.0, self.value - self.bound)


@dataclass(frozen=True)
class Round:
    """One round of a fit: bounds on the objective, and the inferences.

    Attributes
    ----------
    lower : float
        Lower bound on the minimum of the objective; -inf if the loss has none.
    upper : float
        Certified upper bound on the objective at the weights of this round.
    inferences : tuple of Inference
        The inferences of the round, each with its certified gap.
    """

    lower: float
    upper: float
    inferences: tuple[Inference, ...]


@dataclass(frozen=True)
class Data:
    """The samples, their labels, and the linear model to fit."""

    linear: LinearModel
    samples: list[Sample]
    labels: list[Ints]

    @property
    def variables(self) -> int:
        """The number of variables of all samples; losses are means over them."""
        return sum(len(y) for y in self.labels)

    def truth(self) -> list[Floats]:
        """Return φ of the true labels of each sample."""
        return [
            self.linear.of_labels(sample, y)
            for sample, y in zip(self.samples, self.labels, strict=True)
        ]


@dataclass
class Fit:
    """The options of a fit (see `StructuredClassifier`), and its log."""

    alpha: float
    eta: float
    max_iter: int
    tol: float
    batch_size: int | None
    seed: int
    threads: int | None
    options: dict[str, Any]
    verbose: bool = False
    log: list[Round] = field(default_factory=list)

    def note(self, done: Round) -> None:
        """Add a round to the log, and print it where somebody watches."""
        self.log.append(done)
        if self.verbose:
            gap = max((inference.gap for inference in done.inferences), default=0.0)
            upper = f"{done.upper:.6g}" if np.isfinite(done.upper) else "not known"
            lower = f"  at least {done.lower:.6g}" if np.isfinite(done.lower) else ""
            print(
                f"round {len(self.log)}  objective {upper}{lower}  largest inference gap {gap:.2g}",
                flush=True,
            )


def fit_fenchel_young(data: Data, fit: Fit) -> Floats:
    """Minimise the mean of ⟨w, φ(y)⟩ - min_μ (⟨C(w), μ⟩ - H(μ)/η) + ½ alpha ‖w‖², by L-BFGS.

    The gradient of a sample is φ(y) - φ(μ), with true labels y and the smoothed optimum μ.
    """
    from scipy.optimize import minimize

    truth, scale = data.truth(), 1.0 / data.variables
    starts: list[Floats | None] = [None] * len(truth)

    def objective(weights: Floats) -> tuple[float, Floats]:
        value = 0.5 * fit.alpha * float(weights @ weights)
        gradient, inferences = fit.alpha * weights, []
        for k, sample in enumerate(data.samples):
            model = data.linear.model(sample, weights).network
            soft = approached(model, fit.eta, lam=starts[k], tol=0.01 * fit.tol)
            starts[k] = soft.lam
            phi = data.linear.statistics(sample, soft.nodes, soft.edges)
            value += scale * (float(weights @ truth[k]) - soft.value)
            gradient = gradient + scale * (truth[k] - phi)
            inferences.append(Inference(k, soft.value + soft.gap, soft.value))
        fit.note(Round(-np.inf, value, tuple(inferences)))
        return value, gradient

    options = {"maxiter": fit.max_iter, "gtol": fit.tol, "ftol": 1e-14}
    start = np.zeros(data.linear.size)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    if found.status == 1:  # the limit on rounds
        _warn(fit, f"the largest entry of the gradient is {np.abs(found.jac).max():.2g}")
    return np.asarray(found.x)


def fit_hinge(data: Data, fit: Fit) -> Floats:
    """Minimise the mean structured hinge + ½ alpha ‖w‖² by block-coordinate Frank-Wolfe.

    The hinge of a sample is max_y' (Δ(y, y') - ⟨w, φ(y') - φ(y)⟩), with Δ the number of wrong
    labels. Every labelling y', optimal or not, gives a valid step. The upper bound on the objective
    uses the certified bounds of the inferences, so that it is valid, too.
    """
    solver = _FrankWolfe(data, fit)
    order, rng = np.arange(len(data.samples)), np.random.default_rng(fit.seed)
    size = fit.batch_size or len(order)
    for _ in range(fit.max_iter):
        if size < len(order):
            rng.shuffle(order)
        for at in range(0, len(order), size):
            solver.turn(order[at : at + size])
        if size < len(order):  # evaluate all samples at the same weights
            solver.turn(np.arange(len(order)))
        if solver.upper - solver.lower <= fit.tol * max(abs(solver.upper), 1e-12):
            break
    else:
        _warn(fit, f"its objective is between {solver.lower:.4g} and {solver.upper:.4g}")
    return solver.best


def _warn(fit: Fit, reached: str) -> None:
    warnings.warn(
        f"StructuredClassifier: after max_iter={fit.max_iter} rounds {reached}; tol={fit.tol:g} is "
        "not reached: allow more rounds, a larger tol or a larger alpha",
        ConvergenceWarning,
        stacklevel=4,
    )


class _FrankWolfe:
    """The dual of the hinge loss: the weights are a sum of blocks, one per sample."""

    def __init__(self, data: Data, fit: Fit) -> None:
        self.data, self.fit = data, fit
        self.truth, self.scale = data.truth(), 1.0 / data.variables
        self.blocks = np.zeros((len(data.samples), data.linear.size))
        self.losses = np.zeros(len(data.samples))
        self.weights = np.zeros(data.linear.size)
        self.best, self.upper = self.weights.copy(), np.inf

    @property
    def lower(self) -> float:
        """The dual value, a lower bound on the minimum of the objective."""
        return float(self.losses.sum() - 0.5 * self.fit.alpha * (self.weights @ self.weights))

    def turn(self, chosen: NDArray[np.int64]) -> None:
        """Do loss-augmented inference for some samples at fixed weights, then a step for each."""
        data, weights = self.data, self.weights.copy()
        models = [
            data.linear.model(
                data.samples[k], weights, np.eye(data.linear.labels)[data.labels[k]] - 1.0
            )
            for k in chosen
        ]
        results = solve_batch(models, threads=self.fit.threads, **self.fit.options)
        found = [Inference(int(k), r.energy, r.bound) for k, r in zip(chosen, results, strict=True)]
        whole = len(chosen) == len(data.samples)
        upper = self._objective(weights, found) if whole else np.inf
        if upper < self.upper:
            self.best, self.upper = weights, upper
        for k, result in zip(chosen, results, strict=True):
            self._step(int(k), result.labels)
        self.fit.note(Round(self.lower, upper, tuple(found)))

    def _objective(self, weights: Floats, found: list[Inference]) -> float:
        """Return a certified upper bound on the objective, from the bounds of the inferences."""
        hinge = sum(float(weights @ self.truth[i.sample]) - i.bound for i in found)
        return 0.5 * self.fit.alpha * float(weights @ weights) + self.scale * hinge

    def _step(self, k: int, labels: Ints) -> None:
        """Do a Frank-Wolfe step towards a labelling, with exact line search."""
        data, alpha = self.data, self.fit.alpha
        psi = data.linear.of_labels(data.samples[k], labels) - self.truth[k]
        corner = self.scale / alpha * psi
        loss = self.scale * float((labels != data.labels[k]).sum())
        move = self.blocks[k] - corner
        square = alpha * float(move @ move)
        slope = alpha * float(move @ self.weights) - self.losses[k] + loss
        length = float(np.clip(slope / square, 0.0, 1.0)) if square > 0 else 0.0
        self.weights = self.weights - length * move
        self.blocks[k] -= length * move
        self.losses[k] += length * (loss - self.losses[k])


LOSSES: dict[str, Callable[[Data, Fit], Floats]] = {
    "fenchel-young": fit_fenchel_young,
    "hinge": fit_hinge,
}
