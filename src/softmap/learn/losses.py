"""Two convex losses of linear models, fitted to labelled samples, with a log of all inferences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.learn.features import Floats, Ints, LinearModel, Sample
from softmap.methods.marginals.smooth import approached
from softmap.solving.batch import solve_batch

__all__ = ["LOSSES", "Data", "Fit", "Inference", "Round", "fit_fenchel_young", "fit_hinge"]


@dataclass(frozen=True)
class Inference:
    """One inference of a fit: the best value found is at most `gap` above the least one.

    Attributes
    ----------
    sample : int
    value, bound
        What the answer costs, and a certified lower bound: energies less the loss for the hinge,
        the smoothed relaxation for the Fenchel-Young loss.
    """

    sample: int
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """`value - bound`, at least 0."""
        return max(0.0, self.value - self.bound)


@dataclass(frozen=True)
class Round:
    """One round of a fit: bounds on the least objective, and the inferences it took.

    Attributes
    ----------
    lower
        A bound on the least objective, from below; -inf where a loss has no such bound.
    upper
        A certified upper bound on the objective at the weights of this round.
    inferences
        What was solved, each with its certified gap.
    """

    lower: float
    upper: float
    inferences: tuple[Inference, ...]


@dataclass(frozen=True)
class Data:
    """Samples, their labels, and the linear model that is fitted to them."""

    linear: LinearModel
    samples: list[Sample]
    labels: list[Ints]

    @property
    def variables(self) -> int:
        """Variables of all samples: losses are means over them."""
        return sum(len(y) for y in self.labels)

    def truth(self) -> list[Floats]:
        """φ of the true labels."""
        return [
            self.linear.of_labels(sample, y)
            for sample, y in zip(self.samples, self.labels, strict=True)
        ]


@dataclass
class Fit:
    """How to fit: strength of ½ alpha ‖w‖², limits, and options of the inferences."""

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

    The gradient of a sample is φ(truth) - φ(μ): the statistics of the truth less those of the
    smoothed optimum.
    """
    from scipy.optimize import minimize

    truth, scale = data.truth(), 1.0 / data.variables
    starts: list[Floats | None] = [None] * len(truth)

    def objective(weights: Floats) -> tuple[float, Floats]:
        value = 0.5 * fit.alpha * float(weights @ weights)
        gradient, inferences = fit.alpha * weights, []
        for k, sample in enumerate(data.samples):
            model = data.linear.model(sample, weights)
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
    return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x)


def fit_hinge(data: Data, fit: Fit) -> Floats:
    """Minimise the mean structured hinge + ½ alpha ‖w‖² by block-coordinate Frank-Wolfe.

    The hinge of a sample is max_y' (Δ(y, y') - ⟨w, φ(y') - φ(y)⟩) with Δ the number of wrong
    labels. Any labelling gives a valid step, found ones as good as exact ones; the certified bound
    of every inference makes the objective's upper bound true all the same.
    """
    solver = _FrankWolfe(data, fit)
    order, rng = np.arange(len(data.samples)), np.random.default_rng(fit.seed)
    size = fit.batch_size or len(order)
    for _ in range(fit.max_iter):
        if size < len(order):
            rng.shuffle(order)
        for at in range(0, len(order), size):
            solver.turn(order[at : at + size])
        if size < len(order):  # one look at all samples with the same weights
            solver.turn(np.arange(len(order)))
        last = fit.log[-1]
        if last.upper - last.lower <= fit.tol * max(abs(last.upper), 1e-12):
            break
    return solver.best


class _FrankWolfe:
    """The dual of the hinge: weights are a sum of blocks, one per sample."""

    def __init__(self, data: Data, fit: Fit) -> None:
        self.data, self.fit = data, fit
        self.truth, self.scale = data.truth(), 1.0 / data.variables
        self.blocks = np.zeros((len(data.samples), data.linear.size))
        self.losses = np.zeros(len(data.samples))
        self.weights = np.zeros(data.linear.size)
        self.best, self.upper = self.weights.copy(), np.inf

    @property
    def lower(self) -> float:
        """The value of the dual: a lower bound on the least objective."""
        return float(self.losses.sum() - 0.5 * self.fit.alpha * (self.weights @ self.weights))

    def turn(self, chosen: NDArray[np.int64]) -> None:
        """Loss-augmented inferences for some samples at the same weights, then a step for each."""
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
        """A certified upper bound on the objective: bounds in place of the inferences' values."""
        hinge = sum(float(weights @ self.truth[i.sample]) - i.bound for i in found)
        return 0.5 * self.fit.alpha * float(weights @ weights) + self.scale * hinge

    def _step(self, k: int, labels: Ints) -> None:
        """Towards a labelling, as far as is best for the dual."""
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
