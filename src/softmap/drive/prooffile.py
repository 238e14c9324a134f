"""Writer of proof files (docs/proofs.md), which let other programs check the bound of a run."""

from __future__ import annotations

import json
import math
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softmap import core
from softmap.errors import InfeasibleModel, WriteError
from softmap.io.atomic import replacing
from softmap.labels.exact import Log
from softmap.model import Model
from softmap.model.potentials.base import Ints
from softmap.relaxation.consistency import tighten
from softmap.relaxation.flat import FlatModel, flatten
from softmap.run.records import Recorded, bits, copied, dual_record, record
from softmap.run.trace import Status
from softmap.subsolvers.registry import kinds

if TYPE_CHECKING:
    from softmap.run.problem import Problem
    from softmap.run.result import Result

__all__ = ["ProofFile", "Searched", "write_dual"]

FORMAT, VERSION = "softmap proof", 3
LOAD, LABELS, CONCLUDE, HARD = 1, 19, 20, 21  # kinds of records
EXCEPT, PART, RANKS = 30, 31, 32  # kinds of records of m-best proofs
BOUND, WITHIN, INFEASIBLE, NONE_BELOW = range(4)  # conclusions


class Searched(NamedTuple):
    """The records of the search of a part of all labellings.

    Attributes
    ----------
    start : int64 array
        A labelling.
    depth : int
        The labellings of the part agree with `start` in the first `depth` variables of an order.
    excluded : frozenset of int
        They have none of these labels at the next variable.
    log : Log
        The records.
    hard : bool
        Whether these prove that the hard constraints leave no labelling, instead of a bound.
    """

    start: Ints
    depth: int
    excluded: frozenset[int]
    log: Log
    hard: bool


class ProofFile:
    """The proof file of a run, and temporary files for the proofs of its searches.

    Parameters
    ----------
    target : Path
        The proof file.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        try:
            self._folder = tempfile.TemporaryDirectory(
                prefix=".softmap-proof-", dir=target.parent, ignore_cleanup_errors=True
            )
        except OSError as error:
            raise WriteError(target, error) from error
        self._count = 0

    def fresh(self) -> Path:
        """Return a new file name for the proof of a search."""
        self._count += 1
        return Path(self._folder.name) / str(self._count)

    def write(self, problem: Problem, result: Result, log: Recorded | None) -> bool:
        """Write the proof; return False if it proves less than the bound of the result.

        Parameters
        ----------
        problem : Problem
            The model, and its units.
        result : Result
            The result of the run.
        log : Recorded or None
            What was kept of the search that the bound rests on, if it rests on one.
        """
        proof = result.proof
        whole = log is not None or not proof.stated
        less = result.lp_bound if proof.recorded is None else proof.recorded
        last = list(_conclusion(result, result.bound if whole else less))

        def parts() -> Iterator[bytes]:
            if log is None:
                yield from proof.records(result.lam)
            else:
                yield from log.records(problem, self.fresh)
            yield from last

        _write(self.target, problem.posed, problem.exponent, parts)
        return whole

    def write_infeasible(self, model: Model, deadline: core.Deadline | None = None) -> bool:
        """Write a proof that no labelling has finite cost; return False if none is found.

        Arc consistency may suffice. Otherwise a search over the hard constraints is logged.

        Parameters
        ----------
        model : Model
            The model.
        deadline : Deadline, optional
            The end of the search.
        """
        records: Log | None = None
        with suppress(InfeasibleModel):
            records = self.refutation(flatten(tighten(model.network)), deadline)
            if records is None:
                return False

        def parts() -> Iterator[bytes]:
            yield from record(HARD)
            if records is None:
                yield from record(LOAD, [1, 0, 0])
            else:
                yield from copied(records.path, records.size)
            yield from record(CONCLUDE, [INFEASIBLE], [])

        _write(self.target, model, 0, parts)
        return True

    def refutation(self, flat: FlatModel, deadline: core.Deadline | None = None) -> Log | None:
        """Return the records of a search that finds no labelling of finite cost; None without one.

        Parameters
        ----------
        flat : FlatModel
            The model; only its hard constraints are searched.
        deadline : Deadline, optional
            The end of the search.
        """
        hard = _hard_constraints(flat)
        logs = (kind.refute(hard, self, deadline) for kind in kinds())
        return next((log for log in logs if log is not None), None)

    def write_ranks(
        self,
        problem: Problem,
        dual: tuple[Ints, Any],
        ranked: tuple[Ints, list[float]],
        searched: list[Searched],
    ) -> None:
        """Write the proof of the best labellings.

        Parameters
        ----------
        problem : Problem
            The model, and its units.
        dual : tuple of (int array, float array)
            The order of the variables in the tree of labellings, and λ.
        ranked : tuple of (int array, list of float)
            The labellings in their order, and the bounds of their ranks and of all others.
        searched : list of Searched
            The parts of the other labellings that were searched.
        """
        (order, lam), (rows, stated) = dual, ranked
        place = {row.tobytes(): k for k, row in enumerate(rows)}
        least, bounds = math.inf, stated[-1:]
        for row, bound in zip(rows[::-1], stated[-2::-1], strict=True):
            energy = _exact_sum(problem.given.cost_terms(row).tolist())
            least = min(least, -_rounded_up(-energy))
            bounds.append(min(bound, least))

        def parts() -> Iterator[bytes]:
            yield from record(EXCEPT, order, rows.ravel())
            yield from dual_record((), problem.lam_back(lam))
            for part in searched:
                # all labellings are a part of which nothing is fixed, whatever it starts from
                fixed = part.depth > 0 or part.excluded
                row = place[part.start[: len(order)].tobytes()] if fixed else 0
                yield from record(PART, [row, part.depth], sorted(part.excluded))
                yield from record(HARD) if part.hard else ()
                yield from copied(part.log.path, part.log.size)
            yield from record(RANKS, bits(bounds[::-1]))

        _write(self.target, problem.posed, problem.exponent, parts)

    def close(self) -> None:
        """Remove the temporary files."""
        self._folder.cleanup()


def write_dual(
    target: str | Path, model: Model, lam: Any, bound: float = math.nan, labels: Any = None
) -> None:
    """Write λ as a proof of its dual bound.

    Parameters
    ----------
    target : str or Path
        The proof file.
    model : Model
        The model.
    lam : array
        λ.
    bound : float, optional
        A bound that λ proves; the file concludes it.
    labels : int array, optional
        A labelling of finite cost; the file concludes how far it is from the optimum at most.
    """
    last = [] if math.isnan(bound) else list(_concluded(model, labels, bound))
    _write(Path(target), model, 0, lambda: chain(dual_record((), lam), last))


def _write(target: Path, model: Model, exponent: int, parts: Callable[[], Iterator[bytes]]) -> None:
    """Write the header and the records; they are generated twice, first for the checksum."""
    size, total = 0, 0
    for part in parts():
        size, total = size + len(part), zlib.crc32(part, total)
    header = {"format": FORMAT, "version": VERSION, "model": model.network.fingerprint()}
    header |= {"exponent": exponent, "bytes": size, "crc32": total, "packed": True}
    stream = zlib.compressobj(1)  # decision 82
    with replacing(target) as out:
        out.write(json.dumps(header).encode() + b"\n")
        out.writelines(map(stream.compress, parts()))
        out.write(stream.flush())


def _conclusion(result: Result, bound: float) -> Iterator[bytes]:
    """Yield the labelling and what follows from the bound that the file proves."""
    if result.status is Status.NONE_BELOW:
        gap = max(0.0, _rounded_up(Fraction(result.upper_bound) - Fraction(bound)))
        yield from record(CONCLUDE, [NONE_BELOW], bits([result.upper_bound, gap]))
    elif math.isfinite(bound):
        yield from _concluded(result.model, result.labels if result.found else None, bound)


def _concluded(model: Model, labels: Any, bound: float) -> Iterator[bytes]:
    """Yield the labelling, if there is one, and its distance from the bound; else the bound."""
    what, numbers = BOUND, [bound]
    if labels is not None:
        yield from record(LABELS, np.asarray(labels).reshape(-1))
        energy = _exact_sum(model.network.cost_terms(labels).tolist())
        what, numbers = WITHIN, [max(0.0, _rounded_up(energy - Fraction(bound)))]
    yield from record(CONCLUDE, [what], bits(numbers))


def _exact_sum(terms: list[float]) -> Fraction:
    total = Fraction(0)
    while part := math.fsum(terms):  # the remainder shrinks with each step
        total += Fraction(part)
        terms.append(-part)
    return total


def _rounded_up(value: Fraction) -> float:
    """The smallest float64 that is at least `value`."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


def _hard_constraints(flat: FlatModel) -> FlatModel:
    """Return the model of the hard constraints alone: finite costs become 0."""
    unary, tables = (
        np.where(np.isfinite(costs), 0.0, np.inf) for costs in (flat.unary, flat.tables)
    )
    return replace(flat, unary=unary, tables=tables, constant=0.0)
