"""Check every statement of a result."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from softmap.drive.stored import load_result, stored_digest
from softmap.errors import FormatError, OptionError
from softmap.io.store import checked_path
from softmap.model import Model
from softmap.relaxation.gaps import PROVED, relative_gap
from softmap.run.evidence import Relaxation
from softmap.run.result import Result
from softmap.run.trace import Status
from softmap.verification.conclusion import energy_terms
from softmap.verification.dual import largest_cost
from softmap.verification.exact import TINIEST, float_below
from softmap.verification.limit import Refused
from softmap.verification.point import membership
from softmap.verification.proof import Checked, check_proof
from softmap.verification.relaxed import ALLOWED, relaxed_statement
from softmap.verification.report import Report, Statement, Verdict
from softmap.verification.table import evidence_check


def verify(
    result: Result | Model | str | Path,
    model: Model | Result | str | Path | None = None,
    *,
    proof: str | Path | None = None,
    effort: float = 1.0,
) -> Report:
    """Check every statement of a result about its model, from the numbers alone.

    The energy, the bound that λ proves, the point of the local polytope and its cost, the gaps, the
    status and the trace are recomputed in plain numpy with exact sums. The code shares nothing with
    the solvers. A bound proved by an exact search cannot be recomputed from the result. Such a
    bound, and a status that rests on it, are called stated, not checked, unless a proof file is
    given and every step of it holds.

    Parameters
    ----------
    result : Result, Model, str or Path
        A result, or the path of a saved result. A model, together with `proof`, checks what the
        proof file concludes about the model.
    model : Model, optional
        The model that was solved. It is required if the result was saved without its model. Result
        and model may stand in either order.
    proof : str or Path, optional
        The proof file that `solve(..., proof=...)` wrote.
    effort : float, default 1
        Multiplies the limits on the work and the memory of the check of a proof: at 1, a table of
        128 MiB and, for a short file, some ten seconds. A proof that needs more is called stated,
        not false.

    Returns
    -------
    Report
        True in a condition if every statement was recomputed and is true; `holds` is true if no
        statement is false. Printing the report shows one line per statement.

    Examples
    --------
    >>> import softmap
    >>> result = softmap.solve(softmap.generators.random_tree(20, seed=1))
    >>> report = softmap.verify(result)
    >>> bool(report), report.verdict.value
    (True, 'checked')
    """
    first: list[Statement] = []
    if isinstance(result, Model) and model is not None and not isinstance(model, Model):
        result, model = model, result
    if isinstance(result, Model) and model is None and proof is not None:
        return _alone(checked_path(proof), result, effort)
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
        found, said = _proof(checked_path(proof), result, effort)
        first.append(said)
    relaxed = relaxed_statement("LP bound", result.model.network, result.lam, result.lp_bound, "λ")
    bound = _bound(result, found, relaxed)
    rest = relaxed, _primal(result), _order(result)
    status = _status(result, stated=bound.verdict is Verdict.STATED)
    return Report((*first, _energy(result), bound, *rest, status, _trace(result)))


def _alone(path: Path, model: Model, effort: float) -> Report:
    """Check a proof file without a result: its steps, its labelling and its conclusion."""
    try:
        found = check_proof(path, model.network, effort)
    except Refused as error:
        return Report((Statement("proof", Verdict.STATED, str(error)),))
    except FormatError as error:
        return Report((Statement("proof", Verdict.FALSE, str(error)),))
    steps = f"all {found.records} records hold, {found.leaves} leaves of searches among them"
    said, last = [Statement("proof", Verdict.CHECKED, steps)], found.conclusion
    if found.ranks:
        return Report((*said, *_ranked(found)))
    if last is None:
        bound = f"there is none; no labelling costs less than {float_below(found.bound)!r}"
        return Report((*said, Statement("conclusion", Verdict.STATED, bound)))
    if last.energy is not None:
        said.append(Statement("energy", Verdict.CHECKED, f"{float(last.energy)!r} found"))
    return Report((*said, Statement("conclusion", Verdict.CHECKED, str(last))))


def _ranked(found: Checked) -> Iterator[Statement]:
    """The statements of an m-best proof: the cost and the bound of each rank, and of the rest."""
    for k, (_, energy, bound) in enumerate(found.ranks, 1):
        besides = f", apart from the {k - 1} before" if k > 1 else ""
        low = bound if isinstance(bound, float) else float_below(bound)
        said = f"{float(energy)!r} found, no labelling costs less than {low!r}{besides}"
        yield Statement(f"rank {k}", Verdict.CHECKED, said)
    rest = found.others
    some = f"none costs less than {float_below(rest)!r}" if isinstance(rest, Fraction) else ""
    said = "there are none" if rest == math.inf else some or "nothing is stated"
    yield Statement("others", Verdict.CHECKED, said)


def _proof(path: Path, result: Result, effort: float) -> tuple[Checked | None, Statement]:
    """Check a proof file; return what it proves, and the statement that its steps hold."""
    try:
        found = check_proof(path, result.model.network, effort)
    except Refused as error:
        return None, Statement("proof", Verdict.STATED, str(error))
    except FormatError as error:
        return None, Statement("proof", Verdict.FALSE, str(error))
    enough = "" if found.proves(result.bound) else ", which is less than was stated"
    low = float_below(found.bound)
    said = f"all {found.records} records hold, {found.leaves} leaves of searches among them"
    said = f"{said}: no labelling costs less than {low!r}{enough}"
    return found, Statement("proof", Verdict.CHECKED, said)


def _unchanged(path: Path) -> Statement:
    stored, found = stored_digest(path)
    return Statement("file", Verdict.of(stored == found), "holds the numbers it was saved with")


def _energy(result: Result) -> Statement:
    model = result.model
    try:
        found = math.fsum(energy_terms(model.network, _labels(result)))
    except (ValueError, OverflowError) as error:
        return Statement("energy", Verdict.FALSE, str(error))
    # the exact sum rounded once, or one of its two neighbouring floats
    near = result.energy == found or abs(result.energy - found) <= _ulp(found)
    said = f"{result.energy!r} stated, {found!r} found"
    return Statement("energy", Verdict.of(near), said)


def _ulp(value: float) -> float:
    """One unit in the last place of `value`; 0 if it is infinite."""
    return math.ulp(value) if math.isfinite(value) else 0.0


def _labels(result: Result) -> Any:
    model, labels = result.model, np.asarray(result.labels).reshape(-1)
    counts = model.num_labels
    if labels.shape != counts.shape or labels.dtype.kind not in "iu":
        raise ValueError(f"expected {len(counts)} whole numbers as labels")
    if ((labels < 0) | (labels >= counts)).any():
        i = int(np.argmax((labels < 0) | (labels >= counts)))
        raise ValueError(f"variable {i} has no label {labels[i]}")
    return labels


# --- bounds ---------------------------------------------------------------------------------------


def _bound(result: Result, checked: Checked | None, relaxed: Statement) -> Statement:
    """Check the bound by its source: a proof file, λ, λ of a tightened model, or a search.

    `relaxed` is the statement about the LP bound: often λ proves both, and the two are equal.
    """
    proof = result.proof
    if checked is not None and checked.proves(result.bound):
        return Statement("bound", Verdict.CHECKED, f"{result.bound!r} stated, the proof proves it")
    if proof.kind == Relaxation.kind and result.bound == result.lp_bound:
        return replace(relaxed, name="bound")
    check = None if proof.stated else evidence_check(proof.kind)
    if check is not None:
        statement: Statement = check(result, proof)
        return statement
    said = f"{result.bound!r}, by {proof} of {proof.nodes} nodes, which was not done again"
    return Statement("bound", Verdict.STATED, said)


def _primal(result: Result) -> Statement:
    if result.primal == math.inf:
        return Statement("primal", Verdict.CHECKED, "none stated")
    model = result.model.network
    try:
        found = membership(model, result.node_marginals, result.edge_marginals)
    except (OptionError, ValueError, IndexError) as error:
        return Statement("primal", Verdict.FALSE, f"the point cannot be made ({error})")
    slack = ALLOWED.rounding * found.size + found.grain + 2 * model.unary.size * TINIEST
    if result.primal == result.lp_bound > found.cost:  # a cost below the bound is replaced by it
        slack += ALLOWED.feasible * found.size
    near = abs(found.cost - result.primal) <= slack
    inside = found.outside <= ALLOWED.feasible
    said = (
        f"{result.primal!r} stated, the marginals cost {found.cost!r} and miss the polytope "
        f"by {max(found.outside, 0.0):.1g}"
    )
    return Statement("primal", Verdict.of(near and inside), said)


# --- consistency of the numbers -------------------------------------------------------------------


def _order(result: Result) -> Statement:
    """Check bound ≤ primal and bound ≤ energy, up to rounding and the point's infeasibility."""
    try:
        paid = [abs(term) for term in energy_terms(result.model.network, _labels(result))]
        size = math.fsum(filter(math.isfinite, (*paid, abs(result.bound))))
    except (ValueError, OverflowError) as error:
        return Statement("gaps", Verdict.FALSE, str(error))
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
    gap = result.claimed_gap
    # very small or large costs, and costs beside a large constant, were rounded when scaled back
    network = result.model.network
    rounded = 4 * _ulp(result.bound) + 2 * (network.n + network.m) * TINIEST
    if gap > rounded and abs(result.bound) < ALLOWED.least:
        return Statement("status", Verdict.STATED, f"{status.name}: {status}")
    relative = relative_gap(gap - rounded, result.gap_unit) * (1.0 - ALLOWED.rounding)
    said = f"{status.name}: relative gap {relative:.3g}, tolerance {tolerances[status]:.3g}"
    verdict = Verdict.of(relative <= tolerances[status])
    if stated and status is not Status.LP_GAP and verdict is Verdict.CHECKED:
        return Statement("status", Verdict.STATED, f"{said}; the bound is stated")
    return Statement("status", verdict, said)


def _trace(result: Result) -> Statement:
    trace = result.trace
    if not len(trace):
        return Statement("trace", Verdict.FALSE, "no rows")
    columns = trace.columns()
    rising = all(np.all(np.diff(columns[name]) >= 0) for name in ("work", "seconds"))
    with np.errstate(invalid="ignore"):
        rising &= not (np.diff(columns["bound"]) < 0).any()
        rising &= not any((np.diff(columns[name]) > 0).any() for name in ("primal", "energy"))
    last = trace[-1]
    same = (
        last.work == result.work and last.energy == result.energy and last.sweeps == result.sweeps
    )
    # from the row that reaches the bound on, a cost rounded below the bound is stated as the bound
    digits = ALLOWED.rounding * (largest_cost(result.model.network) + abs(result.model.constant))
    near = _close(last.primal, result.primal) or abs(last.primal - result.primal) <= digits
    same = same and _close(last.bound, result.bound) and near
    same = same and last.eta == result.eta and result.seconds >= last.seconds
    said = f"{len(trace)} rows, monotone, the last one is the result"
    return Statement("trace", Verdict.of(bool(rising and same)), said)


def _close(a: float, b: float) -> bool:
    """Whether two numbers are equal up to the rounding of costs too small to scale."""
    return a == b or (
        math.isfinite(a) and abs(a - b) <= ALLOWED.rounding * (abs(a) + abs(b)) + 1e-290
    )
