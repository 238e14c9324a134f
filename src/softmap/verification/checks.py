"""Every statement of a result, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, ModelError, OptionError
from softmap.model import Model
from softmap.proof.tightening.regions import build
from softmap.relaxation.gaps import relative_gap
from softmap.solving.archive import checked_path
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.result import Result, load_result, stored_digest
from softmap.solving.trace import PROVED, Status
from softmap.verification.dual import blocks, dual_proves, largest_cost
from softmap.verification.exact import TINIEST
from softmap.verification.proof import Checked, check_proof

__all__ = ["Membership", "Report", "Statement", "Verdict", "energy_terms", "membership", "verify"]


class Verdict(Enum):
    """What became of one statement, or of all together.

    A statement is CHECKED where it was recomputed and is true, FALSE where it is not, and STATED
    where it cannot be recomputed: it is consistent with the rest, and nobody has proved it again.
    """

    CHECKED = "checked"
    STATED = "stated"
    FALSE = "false"

    @classmethod
    def of(cls, holds: bool) -> Verdict:
        """CHECKED or FALSE."""
        return cls.CHECKED if holds else cls.FALSE


_SUMMARY = {
    Verdict.CHECKED: "every statement was recomputed",
    Verdict.STATED: "nothing is false, but not everything was recomputed",
    Verdict.FALSE: "a statement is false",
}


@dataclass(frozen=True)
class Statement:
    """One thing that a result says.

    Attributes
    ----------
    name
        What is checked, in a word: "energy", "bound", ...
    verdict
    numbers
        What was stated and what was found, in words.
    """

    name: str
    verdict: Verdict
    numbers: str


@dataclass(frozen=True)
class Report:
    """All statements of one result; true in a condition where none of them is false.

    True does not mean proved: see `checked`.

    Attributes
    ----------
    statements : tuple of statements, each with a name, a verdict and words; `report[name]` is one
    """

    statements: tuple[Statement, ...]

    @property
    def holds(self) -> bool:
        """Whether no statement is false."""
        return all(one.verdict is not Verdict.FALSE for one in self.statements)

    @property
    def verdict(self) -> Verdict:
        """FALSE where a statement is, else STATED where one could not be recomputed."""
        found = {one.verdict for one in self.statements}
        worst = (Verdict.FALSE, Verdict.STATED)
        return next((verdict for verdict in worst if verdict in found), Verdict.CHECKED)

    @property
    def checked(self) -> bool:
        """Whether every statement was recomputed and is true."""
        return self.verdict is Verdict.CHECKED

    def as_dict(self) -> dict[str, Any]:
        """The verdict and all statements, for JSON."""
        return {
            "verdict": self.verdict.value,
            "statements": [
                {"name": one.name, "verdict": one.verdict.value, "numbers": one.numbers}
                for one in self.statements
            ],
        }

    def __bool__(self) -> bool:
        return self.holds

    def __getitem__(self, name: str) -> Statement:
        for one in self.statements:
            if one.name == name:
                return one
        raise KeyError(name)

    def __str__(self) -> str:
        whole = Statement("result", self.verdict, _SUMMARY[self.verdict])
        every = (*self.statements, whole)
        width = max(len(one.name) for one in every)
        lines = [f"{one.name:{width}}  {one.verdict.value}: {one.numbers}" for one in every]
        return "\n".join(lines)


@dataclass(frozen=True)
class Allowances:
    """By how much a stated number may differ from the one computed here.

    Attributes
    ----------
    feasible : float
        Mass by which a point may miss the polytope.
    least : float
        Costs below are rounded when they are scaled back: gaps say little there.
    rounding : float
        Rounding of a primal cost, as a part of the sizes of its terms.
    large : int
        Edges from which on a bound may have been added up in single precision.
    single : float
        Part of the terms of such a bound that may be lost.
    """

    feasible: float = 1e-9
    least: float = 1e-290
    rounding: float = 2.0**-40
    large: int = 1 << 18
    single: float = 2.0**-22


ALLOWED = Allowances()


Floats = NDArray[np.float64]
EPSILON = 2.0**-52  # between 1 and the next number


def energy_terms(model: Model, labels: NDArray[np.int64]) -> list[float]:
    """The costs that a labelling of the variables pays, one by one."""
    states = np.asarray(labels, dtype=np.int64)
    if len(model.running):
        states = model.running.follow(states)
    if len(model.auxiliaries):
        states = np.concatenate([states, model.auxiliaries.states(states)])
    terms: list[float] = [model.constant, *model.unary[model.node_offset[:-1] + states].tolist()]
    for first, last, potential in model.groups():
        ends = states[model.edges[first:last]]
        terms += np.asarray(potential.value(np.arange(last - first), *ends.T)).tolist()
    return terms


@dataclass(frozen=True)
class Membership:
    """A point: how far it is outside the polytope, its cost, and how exact that is.

    Attributes
    ----------
    outside
        The largest violation of any constraint.
    cost, size
        The sum of costs times masses, and of their sizes.
    grain
        What the cost may change by when masses are rounded to the numbers near 1, and products.
    """

    outside: float
    cost: float
    size: float
    grain: float


def membership(model: Model, nodes: Floats, edges: Floats) -> Membership:
    """Normalisation, marginalisation, signs, forbidden states and pairs; and ⟨C, μ⟩."""
    sums = np.add.reduceat(nodes, model.node_offset[:-1])
    outside = [float(np.abs(sums - 1).max()), float(-nodes.min())]
    terms, grains = [model.constant], [0.0]
    outside.append(_price(model.unary, nodes, terms, grains))
    for block in blocks(model):
        mu = edges[block.entries(model)]
        rows, cols = nodes[block.states(model, 0)], nodes[block.states(model, 1)]
        outside.append(float(np.abs(mu.sum(axis=2) - rows).max()))
        outside.append(float(np.abs(mu.sum(axis=1) - cols).max()))
        outside.append(float(-mu.min()))
        outside.append(_price(block.cost, mu, terms, grains))
        grains += _unplaced(block.cost, rows, cols)
    worst = math.nan if any(map(math.isnan, outside)) else max(outside)
    grain = math.fsum(grains)
    return Membership(worst, math.fsum(terms), math.fsum(map(abs, terms)), grain)


def _unplaced(cost: Floats, rows: Floats, cols: Floats) -> list[float]:
    """What one digit of mass may cost on each edge, at the worst pair that can have it."""
    most = np.minimum(np.minimum(rows[:, :, None], cols[:, None, :]), EPSILON)
    paid = np.where(np.isfinite(cost), np.abs(cost), 0.0) * np.maximum(most, 0.0)
    return paid.max(axis=(1, 2), initial=0.0).tolist()


def _price(cost: Floats, mass: Floats, terms: list[float], grains: list[float]) -> float:
    """Add costs times masses to `terms` and what they are exact to; the largest forbidden mass."""
    barred = np.isposinf(cost)
    used = ~barred & (mass != 0)
    terms += (cost[used] * mass[used]).tolist()
    grains += np.maximum(EPSILON * np.abs(cost[used]), TINIEST).tolist()
    return float(np.abs(mass[barred]).max(initial=0.0))


def verify(
    result: Result | str | Path, model: Model | None = None, *, proof: str | Path | None = None
) -> Report:
    """Check everything that a result says about its model, from the numbers alone.

    The energy, the bound that λ proves, the point of the polytope and its cost, the gaps, status
    and trace are recomputed in plain numpy, with sums that lose nothing, by code that shares
    nothing with the loops that found the result. A bound that an exact search has proved cannot be
    recomputed from the result: that bound, and a status that rests on it, are called stated, not
    checked, unless a proof is given whose every step holds.

    Parameters
    ----------
    result : Result, or the path of a saved one
    model : Model, optional
        The model that the result has to be about; needed where it was saved without one.
    proof : str or Path, optional
        What `solve(..., proof=...)` wrote beside the result.

    Returns
    -------
    Report
        True where nothing is false; `checked` where everything was recomputed, too. Printed, a line
        per statement.

    Examples
    --------
    >>> import softmap
    >>> result = softmap.solve(softmap.generators.random_tree(20, seed=1))
    >>> report = softmap.verify(result)
    >>> bool(report), report.checked
    (True, True)
    """
    first: list[Statement] = []
    if model is not None and not isinstance(model, Model):
        raise OptionError(f"verify: expected a Model, not {type(model).__name__}")
    if isinstance(result, str | Path):
        path = Path(result)
        result = load_result(path, model)
        first.append(_unchanged(path))
    elif not isinstance(result, Result):
        raise OptionError(f"verify: expected a Result or its file, not {type(result).__name__}")
    if model is not None:
        same = model is result.model or model.fingerprint() == result.model.fingerprint()
        first.append(Statement("model", Verdict.of(same), "the result is about this model"))
    found = None
    if proof is not None:
        found, said = _proof(checked_path(proof), result)
        first.append(said)
    rest = (check(result) for check in (_lp_bound, _primal, _order))
    bound = _bound(result, found)
    status = _status(result, stated=bound.verdict is Verdict.STATED)
    return Report((*first, _energy(result), bound, *rest, status, _trace(result)))


def _proof(path: Path, result: Result) -> tuple[Checked | None, Statement]:
    """What a file proves, step by step; and whether all its steps hold."""
    try:
        found = check_proof(path, result.model, result.bound)
    except FormatError as error:
        return None, Statement("proof", Verdict.FALSE, str(error))
    enough = "" if found.proves(result.bound) else ", which is less than was stated"
    said = f"{found.words}: no labelling costs less than {found.rounded!r}{enough}"
    return found, Statement("proof", Verdict.CHECKED, said)


def _unchanged(path: Path) -> Statement:
    stored, found = stored_digest(path)
    return Statement("file", Verdict.of(stored == found), "holds the numbers it was saved with")


def _energy(result: Result) -> Statement:
    model = result.model
    try:
        found = math.fsum(energy_terms(model, _labels(result)))
    except ValueError as error:
        return Statement("energy", Verdict.FALSE, str(error))
    # a sum rounded once, or the number next to it
    near = result.energy == found or abs(result.energy - found) <= _ulp(found)
    said = f"{result.energy!r} stated, {found!r} found"
    return Statement("energy", Verdict.of(near), said)


def _ulp(value: float) -> float:
    """One unit in the last place; 0 for infinities, which are not rounded."""
    return math.ulp(value) if math.isfinite(value) else 0.0


def _labels(result: Result) -> Any:
    model, labels = result.model, np.asarray(result.labels).reshape(-1)
    counts = model.num_labels[: model.num_visible]
    if labels.shape != counts.shape or labels.dtype.kind not in "iu":
        raise ValueError(f"labels are not {len(counts)} whole numbers")
    if ((labels < 0) | (labels >= counts)).any():
        i = int(np.argmax((labels < 0) | (labels >= counts)))
        raise ValueError(f"variable {i} has no label {labels[i]}")
    return labels


# --- the bound, by what proves it -----------------------------------------------------------------


def _bound(result: Result, checked: Checked | None) -> Statement:
    """The bound, by what it rests on: a proof, λ, λ on a tightened model, or a search."""
    proof = result.proof
    if checked is not None and checked.proves(result.bound):
        return Statement("bound", Verdict.CHECKED, f"{result.bound!r} stated, the proof proves it")
    if proof.kind is ProofKind.RELAXATION:
        return _relaxed("bound", result.model, result.lam, result.bound, "λ")
    if proof.kind is ProofKind.TIGHTENED:
        try:
            tightened = _tightened(result.model, proof)
        except (ModelError, ValueError) as error:
            return Statement("bound", Verdict.FALSE, f"the clusters are none ({error})")
        by = f"λ on the relaxation tightened by {len(proof.clusters)} clusters"
        return _relaxed("bound", tightened, proof.lam, result.bound, by)
    said = f"{result.bound!r}, by {proof.kind} of {proof.nodes} nodes, which was not done again"
    return Statement("bound", Verdict.STATED, said)


def _tightened(model: Model, proof: Proof) -> Model:
    """The model that the clusters of a proof make, unless λ cannot be one of it.

    λ has a number for each joint state of a cluster, so no more is allocated than the result holds.
    """
    for i in chain.from_iterable(proof.clusters):
        if not 0 <= i < model.num_variables:
            raise ValueError(f"there is no variable {i}")
    labels = model.num_labels.tolist()
    states = sum(math.prod(labels[i] for i in scope) for scope in set(proof.clusters))
    held = np.size(proof.lam) if proof.lam is not None else 0
    if states > held:
        raise ValueError(f"they have {states:.6g} joint states, λ has {held} numbers")
    return build(model, proof.clusters).model


def _lp_bound(result: Result) -> Statement:
    """The bound on the LP relaxation, which λ proves."""
    return _relaxed("LP bound", result.model, result.lam, result.lp_bound, "λ")


def _relaxed(name: str, model: Model, lam: Any, bound: float, by: str) -> Statement:
    """Whether λ proves the bound, and not much more than that."""
    if bound == -math.inf:
        return Statement(name, Verdict.CHECKED, "none stated")
    flat = np.asarray(lam, dtype=np.float64)
    if flat.shape != (int(model.half_offset[-1]),) or not np.isfinite(flat).all():
        return Statement(name, Verdict.FALSE, "λ is not a finite number for every half-edge")
    dual = dual_proves(model, flat, bound)
    if math.isnan(dual.found):
        return Statement(name, Verdict.FALSE, f"{bound!r} stated, the proof is not finite")
    allowed = ALLOWED.single if model.m > ALLOWED.large else ALLOWED.rounding
    tight = dual.found - bound <= allowed * dual.size + dual.terms * TINIEST
    said = f"{bound!r} stated, {by} proves {dual.found!r}"
    return Statement(name, Verdict.of(dual.proved and tight), said)


def _primal(result: Result) -> Statement:
    if result.primal == math.inf:
        return Statement("primal", Verdict.CHECKED, "none stated")
    model = result.model
    try:
        found = membership(model, result.node_marginals, result.edge_marginals)
    except (OptionError, ValueError, IndexError) as error:
        return Statement("primal", Verdict.FALSE, f"the point cannot be made ({error})")
    slack = ALLOWED.rounding * found.size + found.grain + 2 * model.unary.size * TINIEST
    if result.primal == result.lp_bound > found.cost:  # stated in place of a cost below it
        slack += ALLOWED.feasible * found.size
    near = abs(found.cost - result.primal) <= slack
    inside = found.outside <= ALLOWED.feasible
    said = (
        f"{result.primal!r} stated, the marginals cost {found.cost!r} and miss the polytope "
        f"by {max(found.outside, 0.0):.1g}"
    )
    return Statement("primal", Verdict.of(near and inside), said)


# --- what follows from the numbers ----------------------------------------------------------------


def _order(result: Result) -> Statement:
    """No bound above what was found, but for rounding, and mass that the point may miss."""
    try:
        paid = [abs(term) for term in energy_terms(result.model, _labels(result))]
    except ValueError as error:
        return Statement("gaps", Verdict.FALSE, str(error))
    size = math.fsum(filter(math.isfinite, (*paid, abs(result.bound))))
    slack = ALLOWED.feasible * size + len(paid) * TINIEST
    fine = result.bound <= result.energy + slack and result.lp_bound <= result.primal + slack
    fine = fine and result.lp_bound <= result.bound
    fine = fine and result.primal <= result.energy
    said = f"gap {result.gap:.3g}, LP gap {result.lp_gap:.3g}"
    return Statement("gaps", Verdict.of(fine), said)


def _status(result: Result, *, stated: bool) -> Statement:
    status = result.status
    tolerances = {Status.LP_GAP: result.tolerances[0], Status.GAP: result.tolerances[1]}
    tolerances |= {Status.OPTIMAL: PROVED, Status.NONE_BELOW: result.tolerances[1]}
    if status not in tolerances:
        return Statement("status", Verdict.CHECKED, f"{status.name} claims no gap")
    if abs(result.bound) < ALLOWED.least:
        return Statement("status", Verdict.STATED, f"{status.name}: {status}")
    gap = result.claimed_gap
    # costs near the ends of the range, or beside a large constant, have been rounded on the way out
    rounded = 4 * _ulp(result.bound) + 2 * (result.model.n + result.model.m) * TINIEST
    relative = relative_gap(gap - rounded, result.unit) * (1.0 - ALLOWED.rounding)
    said = f"{status.name}: relative gap {relative:.3g}, tolerance {tolerances[status]:.3g}"
    verdict = Verdict.of(relative <= tolerances[status])
    if stated and status is not Status.LP_GAP and verdict is Verdict.CHECKED:
        return Statement("status", Verdict.STATED, f"{said}; the bound is stated")
    return Statement("status", verdict, said)


def _trace(result: Result) -> Statement:
    trace = result.trace
    if not len(trace):
        return Statement("trace", Verdict.FALSE, "no rows")
    rows = trace.array()
    columns = trace.columns()
    rising = all(np.all(np.diff(columns[name]) >= 0) for name in ("work", "seconds"))
    with np.errstate(invalid="ignore"):
        rising &= not (np.diff(columns["bound"]) < 0).any()
        rising &= not any((np.diff(columns[name]) > 0).any() for name in ("primal", "energy"))
    last = trace[-1]
    same = (
        last.work == result.work and last.energy == result.energy and last.sweeps == result.sweeps
    )
    # a point whose cost was rounded below the bound is stated at the bound, once that is there
    digits = ALLOWED.rounding * (largest_cost(result.model) + abs(result.model.constant))
    near = _close(last.primal, result.primal) or abs(last.primal - result.primal) <= digits
    same = same and _close(last.bound, result.bound) and near
    same = same and last.eta == result.eta and result.seconds >= last.seconds
    said = f"{len(rows)} rows, monotone, the last one is the result"
    return Statement("trace", Verdict.of(bool(rising and same)), said)


def _close(a: float, b: float) -> bool:
    """Equal, but for a bound that was computed once more where numbers are too small to scale."""
    return a == b or (
        math.isfinite(a) and abs(a - b) <= ALLOWED.rounding * (abs(a) + abs(b)) + 1e-290
    )
