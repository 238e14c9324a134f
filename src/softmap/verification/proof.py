"""The checker of proof files: the lower bound that a file proves for a model."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from softmap.errors import FormatError
from softmap.model import Model, Network
from softmap.verification.conclusion import Conclusion, What, exact_energy
from softmap.verification.integers import Given
from softmap.verification.limit import Limits
from softmap.verification.ranks import Bound, Rank, RankedProof
from softmap.verification.records import Records, Rejected, mapped, read_header, unpacked
from softmap.verification.table import part_of


class Checked(NamedTuple):
    """The bound that a proof file proves; every step of the file holds.

    Attributes
    ----------
    bound : Fraction
        A lower bound on the energy of all labellings; of the hard constraints alone, if the
        conclusion is that there is no labelling.
    leaves : int
        Number of search nodes that were closed.
    records : int
        Number of records in the file.
    conclusion : Conclusion or None
        What the file concludes; it holds.
    ranks : tuple of Rank
        The best labellings in their order, of an m-best proof.
    others : Fraction or infinite
        No labelling but these costs less; +inf if there is none. None without ranks.
    """

    bound: Fraction
    leaves: int
    records: int
    conclusion: Conclusion | None = None
    ranks: tuple[Rank, ...] = ()
    others: Bound | None = None

    def proves(self, bound: float) -> bool:
        """Whether the proof implies that no labelling costs less than `bound`."""
        if self.conclusion is not None and self.conclusion.what is What.INFEASIBLE:
            return True
        return bound == -math.inf or (math.isfinite(bound) and self.bound >= bound)


def check_proof(path: str | Path, model: Model | Network, effort: float = 1.0) -> Checked:
    """Repeat every step of a proof file, and return the bound that it proves.

    Parameters
    ----------
    path : str or Path
        The proof file.
    model : Model or Network
        The model that the proof refers to.
    effort : float, default 1
        Multiplies the limits of the check: on tables, work and memory (docs/proofs.md).

    Raises
    ------
    Refused
        The check would exceed its effort.
    FormatError
        The file is damaged, belongs to another model, or contains an invalid step. The message
        names the record.
    """
    network = model.network
    path = Path(path)
    with mapped(path) as data:
        header, begin = read_header(data, path)
        if header.get("model") != network.fingerprint():
            raise FormatError("this proof is about another model", path)
        limits = Limits(effort, len(data), network.unary.size + int(network.edge_offset[-1]))
        data, begin = unpacked(data, begin, header, path, limits)
        exponent = header.get("exponent")
        if not isinstance(exponent, int) or abs(exponent) > 5000:
            raise FormatError("the exponent of the costs is outside -5000..5000", path)
        checker = Checker(network, exponent, limits)
        records = Records(data, begin, limits)
        try:
            for name, arrays in records:
                checker.step(name, arrays)
            proved = checker.result()
        except (Rejected, ArithmeticError, LookupError, TypeError, ValueError) as error:
            said = f"record {records.count}, at byte {records.place}, is not accepted: {error}"
            raise FormatError(said, path) from error
    bound, conclusion = proved
    return Checked(bound, records.leaves, records.count, conclusion, *checker.ranked())


class Part(Protocol):
    """What checks the records of one kind of proof; it is made of `Given`."""

    def step(self, name: str, arrays: list[Any]) -> None:
        """Check one record; raise `Rejected` if it is not valid, or out of its place."""

    def bound(self) -> Fraction:
        """The lower bound that all records prove."""


class Checker:
    """Checks a whole proof: what every proof may have, and the records of one part.

    Parameters
    ----------
    model : Model or Network
        The model that the proof refers to.
    exponent : int
        The solver multiplied all costs by 2**exponent.
    effort : Limits
        Limits the sizes of tables.
    """

    def __init__(self, model: Network, exponent: int, effort: Limits) -> None:
        self._model, self._exponent, self._effort = model, exponent, effort
        self._part: Part | None = None
        self._hard = False
        self._energy: Fraction | None = None
        self._conclusion: Conclusion | None = None
        self._ranked: RankedProof | None = None

    def step(self, name: str, arrays: list[Any]) -> None:
        """Check one record."""
        if self._ranked is not None:
            self._ranked.step(name, arrays)
            return
        if self._conclusion is not None or (self._energy is not None and name != "conclude"):
            raise Rejected(f"{name} after the conclusion")
        if name == "hard" and self._part is None and not self._hard:
            self._hard = True
        elif name == "except" and self._part is None and not self._hard:
            self._ranked = RankedProof(self._model, self._exponent, self._effort, *arrays)
        elif name == "labels":
            self._energy = exact_energy(self._model, arrays[0])
        elif name == "conclude":
            self._conclusion = Conclusion.of((arrays[0], arrays[1]), self._energy, self._hard)
        else:
            if self._part is None:
                self._part = self._new(name)
            self._part.step(name, arrays)

    def _new(self, name: str) -> Part:
        """Return what checks the records that begin with one of this name."""
        kind = part_of(name)
        if kind is None:
            raise Rejected(f"{name} out of its place")
        part: Part = kind(Given(self._model, self._exponent, self._effort, self._hard))
        return part

    def result(self) -> tuple[Fraction, Conclusion | None]:
        """The lower bound proved by all records, and the conclusion, which must hold."""
        if self._ranked is not None:
            return self._ranked.bound, None
        if self._part is None:
            raise Rejected("there are no records")
        found, last = self._part.bound(), self._conclusion
        if last is None:
            if self._hard:  # the bound of another model
                raise Rejected("the file has hard constraints only, and no conclusion from them")
            return found, None
        if not last.holds(found):
            raise Rejected(f"the conclusion does not follow: {last}")
        return found, last

    def ranked(self) -> tuple[tuple[Rank, ...], Bound | None]:
        """The ranks of an m-best proof, and the bound on all other labellings."""
        return ((), None) if self._ranked is None else self._ranked.ranks
