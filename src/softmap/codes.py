"""LP decoding of parity-check codes, without a `Model`: one object decodes many words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.arguments import count
from softmap.errors import ModelError, OptionError
from softmap.machine import usable_cores
from softmap.model import Model, Parity
from softmap.model.potentials.base import Costs, frozen, integers, numbers, plain
from softmap.solving.archive import checked_path

__all__ = ["Decoded", "ParityCode"]


@dataclass(frozen=True)
class CodeLimits:
    """Limits of arguments and of the work between two checks for Ctrl-C.

    Attributes
    ----------
    ratio : float
        Largest absolute value of a log-likelihood ratio.
    at_once : int
        Number of words per thread between two checks for Ctrl-C.
    iterations : int
        Largest value of `rounds`, `steps` and `sweeps`.
    """

    ratio: float = 1e100
    at_once: int = 64
    iterations: int = 1 << 40


LIMITS = CodeLimits()


Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Decoded:
    """The decoded words, one row per received word (without the first axis for a single word).

    Attributes
    ----------
    words : uint8[words, bits]
        The best codewords found; bits that violate a check if none was found.
    costs : float64[words]
        Costs of the codewords; +inf if none was found.
    bounds : float64[words]
        Lower bounds on the cost of any codeword.
    proved : bool[words]
        Whether λ proves, without a tolerance, that no codeword is more likely.
    lam : float64[words, entries]
        λ: one number per bit of each check, in the order of the checks.
    iterations : int64[words]
        Number of iterations of all kinds.
    """

    words: Bytes
    costs: Costs
    bounds: Costs
    proved: NDArray[np.bool_]
    lam: Costs
    iterations: NDArray[np.int64]

    @property
    def found(self) -> NDArray[np.bool_]:
        """Whether a codeword was found, proved optimal or not."""
        return np.isfinite(self.costs)


class ParityCode:
    """A binary linear code, given by its parity checks, such as an LDPC code.

    Parameters
    ----------
    checks : list of lists of int, or array
        The bits of each check; or a parity-check matrix of 0 and 1, dense or of scipy.sparse, with
        one row per check and one column per bit.
    num_bits : int, optional
        Number of bits; by default one more than the largest bit of a check.

    Examples
    --------
    >>> import softmap
    >>> code = softmap.codes.ParityCode([[0, 1, 2], [2, 3, 4]])
    >>> found = code.decode([-1.0, 2.0, 0.5, 3.0, 4.0])
    >>> found.words, bool(found.proved)
    (array([0, 0, 0, 0, 0], dtype=uint8), True)
    """

    def __init__(self, checks: Iterable[Any], num_bits: int | None = None) -> None:
        if _is_matrix(checks):
            checks, num_bits = _rows_of(checks, num_bits)
        rows = [Parity(integers(row, "checks")).variables for row in _listed(checks)]
        most = max((max(row) for row in rows), default=-1) + 1
        if min((min(row) for row in rows), default=0) < 0:
            raise ModelError("a check has a negative bit; bits are numbered from 0")
        self.num_bits = (
            max(most, 1) if num_bits is None else count("num_bits", num_bits, 1, 1 << 31)
        )
        if most > self.num_bits:
            raise ModelError(f"bit {most - 1} is outside 0..{self.num_bits - 1}")
        self.checks = rows
        member = [bit for row in rows for bit in row]
        self._member = frozen(np.array(member, dtype=np.int32), np.int32)
        self._start = frozen(np.cumsum([0, *map(len, rows)]), np.int64)
        self._degree = frozen(np.bincount(self._member, minlength=self.num_bits), np.int64)

    @classmethod
    def from_matrix(cls, matrix: Any) -> ParityCode:
        """Return the code of a parity-check matrix of 0 and 1, dense or of scipy.sparse."""
        return cls(*_rows_of(matrix, None))

    def __repr__(self) -> str:
        return f"ParityCode({self.num_bits} bits, {len(self.checks)} checks)"

    def decode(
        self,
        ratios: ArrayLike,
        odd: ArrayLike | None = None,
        *,
        rounds: int = 50,
        steps: int = 300,
        sweeps: int = 300,
        threads: int | None = 1,
    ) -> Decoded:
        """Decode received words; an answer is proved optimal if the LP relaxation is tight.

        Belief propagation proposes a codeword. λ is then improved to prove it optimal. If there is
        no codeword or no proof, the linear program is solved.

        Parameters
        ----------
        ratios : float array (bits,) or (words, bits)
            Log-likelihood ratios log p(0) / p(1): the cost of a 1 at each bit.
        odd : int array (checks,) or (words, checks), optional
            1 for each check whose parity must be odd (a syndrome); all even by default.
        rounds : int, default 50
            Largest number of iterations of belief propagation.
        steps : int, default 300
            Largest number of iterations towards a proof of its codeword.
        sweeps : int, default 300
            Largest number of iterations of the linear program.
        threads : int or None, default 1
            Number of words decoded in parallel; None uses all cores.

        Returns
        -------
        Decoded
        """
        costs = self._ratios(ratios)
        table = np.atleast_2d(costs)
        parities = np.broadcast_to(self._odd(odd, len(table)), (len(table), len(self.checks)))
        rounds, steps = (
            count("rounds", rounds, 0, LIMITS.iterations),
            count("steps", steps, 0, LIMITS.iterations),
        )
        sweeps = count("sweeps", sweeps, 0, LIMITS.iterations)
        workers = usable_cores() if threads is None else count("threads", threads, 1, 4096)
        words = np.empty((len(table), self.num_bits), np.uint8)
        lam = np.empty((len(table), len(self._member)))
        found = np.empty((len(table), 4))
        for first in range(0, len(table), LIMITS.at_once * workers):
            own = slice(first, first + LIMITS.at_once * workers)
            core.decode(
                self._start, self._member, self._degree, table[own],
                np.ascontiguousarray(parities[own]), rounds, steps, sweeps, words[own], lam[own],
                found[own], workers,
            )  # fmt: skip
        proved, iterations = found[:, 2] > 0, found[:, 3].astype(np.int64)
        parts: list[Any] = [words, found[:, 0], found[:, 1], proved, lam, iterations]
        return Decoded(*(part[0] if costs.ndim == 1 else part for part in parts))

    def bound(self, ratios: ArrayLike, lam: ArrayLike, odd: ArrayLike | None = None) -> float:
        """Return the lower bound on the cost of any codeword that λ proves, rounded down."""
        costs, given = self._ratios(ratios), numbers(lam, "lam")
        if costs.ndim != 1 or given.shape != self._member.shape or not np.isfinite(given).all():
            raise OptionError("expected the ratios of one word, and λ as `decode` returns it")
        flat, parities = np.ascontiguousarray(given), self._odd(odd, 1)[0]
        return core.code_bound(self._start, self._member, self._degree, costs, parities, flat)

    def write_proof(
        self,
        path: str | Path,
        ratios: ArrayLike,
        lam: ArrayLike,
        odd: ArrayLike | None = None,
    ) -> None:
        """Write λ of one word as a proof of its bound (docs/proofs.md).

        `softmap.verification.check_proof(path, code.model(ratios, odd), bound)` checks it.
        """
        from softmap.solving.prooffile import write_dual  # imported late

        given, model = numbers(lam, "lam"), self.model(ratios, odd)
        if given.shape != self._member.shape or len(model.running):
            raise OptionError("expected λ as `decode` gives it, and checks with tables of words")
        write_dual(checked_path(path), model, self._half_lam(model, given))

    def _half_lam(self, model: Model, lam: Costs) -> Costs:
        """Convert λ of the checks to λ of the half-edges of the model."""
        out, aux, nodes = np.zeros(model.half_size), model.auxiliaries, model.num_variables
        edges: dict[tuple[int, int], list[int]] = {}
        for e, (i, j) in enumerate(model.edges.tolist()):
            edges.setdefault((i, j), []).append(2 * e)
            edges.setdefault((j, i), []).append(2 * e + 1)
        for row, begin in zip(self.checks, self._start.tolist(), strict=False):
            if len(row) < 2:  # a check of one bit fixes the bit and has no edge
                continue
            if len(row) == 2:
                for k, bit in enumerate(row):
                    half = edges[bit, row[1 - k]].pop(0)
                    out[model.half_offset[half] + 1] = lam[begin + k]
                continue
            strides = aux.stride[aux.start[nodes - model.num_variables] :].tolist()
            for k, bit in enumerate(row):
                half = edges[bit, nodes].pop(0)
                out[model.half_offset[half] + 1] = lam[begin + k]
                states = np.arange(model.num_labels[nodes])
                out[model.half_slice(half ^ 1)] = -lam[begin + k] * (states // strides[k] % 2)
            nodes += 1
        return out

    def model(self, ratios: ArrayLike | None = None, odd: ArrayLike | None = None) -> Model:
        """Return the decoding problem as a `Model`, for `softmap.solve`.

        `softmap.solve` can prove optimality also if the relaxation is not tight.
        """
        parities = self._odd(odd, 1)[0]
        factors: list[Any] = [
            Parity(row, bool(p)) for row, p in zip(self.checks, parities, strict=True)
        ]
        model = Model.from_factors([2] * self.num_bits, factors)
        if ratios is None:
            return model
        costs = self._ratios(ratios)
        if costs.ndim != 1:
            raise OptionError("expected the ratios of one word")
        unary = model.unary.copy()
        unary[1 : 2 * self.num_bits : 2] += costs
        return model.replace(unary=unary)

    def syndrome(self, words: ArrayLike) -> Bytes:
        """Return the parity of each check, with shape (..., checks)."""
        given = integers(words, "words")
        if given.shape[-1:] != (self.num_bits,):
            raise OptionError(f"expected words of {self.num_bits} bits, not {given.shape}")
        if not self.checks:
            return np.zeros((*given.shape[:-1], 0), np.uint8)
        sums = np.add.reduceat(given[..., self._member], self._start[:-1], axis=-1)
        return (sums % 2).astype(np.uint8)

    def _ratios(self, ratios: ArrayLike) -> Costs:
        costs = numbers(ratios, "ratios")
        if costs.ndim not in (1, 2) or costs.shape[-1] != self.num_bits:
            raise OptionError(f"expected ratios of {self.num_bits} bits, not {costs.shape}")
        if not (np.abs(costs) <= LIMITS.ratio).all():
            raise OptionError(f"expected ratios within ±{LIMITS.ratio:g}")
        return np.ascontiguousarray(costs)

    def _odd(self, odd: ArrayLike | None, words: int) -> Bytes:
        if odd is None:
            return np.zeros((1, len(self.checks)), np.uint8)
        truths = isinstance(odd, np.ndarray) and odd.dtype == bool
        given = integers(np.asarray(odd, np.int64) if truths else odd, "odd")
        shapes = (len(self.checks),), (1, len(self.checks)), (words, len(self.checks))
        if given.shape not in shapes or ((given != 0) & (given != 1)).any():
            raise OptionError(f"odd: expected 0 or 1 for each of {len(self.checks)} checks")
        return np.atleast_2d(given).astype(np.uint8)


def _listed(checks: Any) -> list[Any]:
    if isinstance(checks, str | bytes) or not np.iterable(checks):
        raise ModelError("checks must be a list with the bits of each check")
    return list(checks)


def _is_matrix(checks: Any) -> bool:
    """Whether `checks` is a matrix of 0 and 1: as a list of bits, it would repeat bits."""
    if hasattr(checks, "toarray"):
        return True
    if isinstance(checks, str | bytes | dict) or not np.iterable(checks):
        return False
    try:
        table = np.asarray(checks)
    except Exception:  # rows of several lengths, or objects with their own conversion
        return False
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        return False
    binary = bool(((table == 0) | (table == 1)).all())
    return table.dtype.kind in "bf" or (binary and table.shape[1] > 2)


def _rows_of(matrix: Any, num_bits: int | None) -> tuple[list[Any], int]:
    """Return the bits of each check of a parity-check matrix, and the number of bits."""
    table = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else plain(matrix))
    sound = table.ndim == 2 and table.dtype.kind in "biuf" and table.shape[1] > 0
    if not sound or ((table != 0) & (table != 1)).any():
        raise ModelError("expected a matrix of 0 and 1 with a column for each bit")
    if num_bits is not None and num_bits != table.shape[1]:
        raise ModelError(f"a matrix of {table.shape[1]} columns has as many bits, not {num_bits}")
    return [np.flatnonzero(row) for row in table], table.shape[1]
