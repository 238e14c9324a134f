"""LP decoding of parity-check codes, without a `Model`: one object decodes many words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import Model, Parity, io
from softmap.arguments import count
from softmap.codes.checks import Bytes, DistinctChecks
from softmap.codes.device import CheckArrays
from softmap.errors import ModelError, OptionError
from softmap.extend import Costs, Network, core, integers, machine, numbers, plain
from softmap.extend.store import Source

__all__ = ["Decoded", "ParityCode"]


@dataclass(frozen=True)
class CodeLimits:
    """Limits of arguments.

    Attributes
    ----------
    ratio : float
        Largest absolute value of a log-likelihood ratio.
    iterations : int
        Largest value of `rounds`, `steps` and `sweeps`.
    """

    ratio: float = 1e100
    iterations: int = 1 << 40


LIMITS = CodeLimits()


@dataclass(frozen=True, eq=False)
class Decoded:
    """The decoded words, one row per received word (without the first axis for a single word).

    Attributes
    ----------
    words : uint8[words, bits]
        The best codewords found; bits that violate a check if none was found.
    costs : float64[words]
        Costs of the codewords, rounded to nearest; +inf if none was found.
    bounds : float64[words]
        Lower bounds on the cost of any codeword, rounded down; +inf if there is none.
    proved : bool[words]
        Whether λ proves, without a tolerance, that no codeword is more likely.
    lam : float64[words, entries]
        λ: one number per bit of each check, in the order of the checks. None if it was not kept.
    iterations : int64[words]
        Number of iterations of all kinds.
    observables : uint8[words, observables]
        The observables that the word flips; a `ParityCode` has none.
    """

    words: Bytes
    costs: Costs
    bounds: Costs
    proved: NDArray[np.bool_]
    lam: Costs | None
    iterations: NDArray[np.int64]
    observables: Bytes

    def __repr__(self) -> str:
        """The number of words, of those found and of those proved; no arrays."""
        found, proved = int(np.sum(self.found)), int(np.sum(self.proved))
        return f"Decoded({np.size(self.costs)} words, {found} found, {proved} proved most likely)"

    @property
    def found(self) -> NDArray[np.bool_]:
        """Whether a codeword was found, proved optimal or not."""
        return np.isfinite(self.costs)

    def first(self) -> Decoded:
        """Return the first word, without the first axis of each array."""
        parts: list[Any] = [None if part is None else part[0] for part in vars(self).values()]
        return Decoded(*parts)

    @property
    def gaps(self) -> Costs:
        """How much more likely another word may be, as a difference of costs; 0 if proved."""
        shown = np.asarray(self.found & ~self.proved)
        return np.subtract(self.costs, self.bounds, out=np.zeros(shown.shape), where=shown)


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
        rows = [_bits_of(row) for row in _listed(checks)]
        most = max((max(row, default=-1) for row in rows), default=-1) + 1
        if min((min(row, default=0) for row in rows), default=0) < 0:
            raise ModelError("a check has a negative bit; bits are numbered from 0")
        self.num_bits = (
            max(most, 1) if num_bits is None else count("num_bits", num_bits, 1, 1 << 31)
        )
        if most > self.num_bits:
            raise ModelError(f"bit {most - 1} is outside 0..{self.num_bits - 1}")
        self.checks = rows
        self._arrays = CheckArrays.of(rows, self.num_bits)
        self.distinct = DistinctChecks(rows, self.num_bits)

    @classmethod
    def from_matrix(cls, matrix: Any) -> ParityCode:
        """Return the code of a parity-check matrix of 0 and 1, dense or of scipy.sparse."""
        return cls(*_rows_of(matrix, None))

    @classmethod
    def from_alist(cls, source: Source) -> ParityCode:
        """Return the code of an alist file: a path, "-" or a binary file."""
        return cls(*io.read_checks(source))

    def __repr__(self) -> str:
        return f"ParityCode({self.num_bits} bits, {len(self.checks)} checks)"

    def decode(
        self,
        ratios: ArrayLike,
        syndrome: ArrayLike | None = None,
        *,
        rounds: int = 50,
        steps: int = 300,
        sweeps: int = 300,
        threads: int | None = 1,
    ) -> Decoded:
        """Decode received words; an answer is proved optimal if the LP relaxation is tight.

        Belief propagation proposes a codeword. λ is then improved to prove it optimal. If there is
        no codeword or no proof, the linear program is solved. `Decoder` always returns a codeword,
        and is faster.

        Parameters
        ----------
        ratios : float array (bits,) or (words, bits)
            Log-likelihood ratios log p(0) / p(1): the cost of a 1 at each bit.
        syndrome : int array (checks,) or (words, checks), optional
            1 for each check whose parity must be odd; all even by default.
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
        costs = self.checked_ratios(ratios)
        table = np.atleast_2d(costs)
        parities = self._parities(syndrome, len(table))
        limits = core.DecodingLimits(
            rounds=count("rounds", rounds, 0, LIMITS.iterations),
            steps=count("steps", steps, 0, LIMITS.iterations),
            sweeps=count("sweeps", sweeps, 0, LIMITS.iterations),
        )
        workers = machine.usable_cores() if threads is None else count("threads", threads, 1, 4096)
        parities = np.broadcast_to(parities, (len(table), len(self.checks)))
        found, words, lam = self.distinct.decode_rows(table, parities, limits, workers)
        proved, iterations = found[:, 2] > 0, found[:, 3].astype(np.int64)
        none = np.zeros((len(table), 0), np.uint8)
        whole = Decoded(words, found[:, 0], found[:, 1], proved, lam, iterations, none)
        return whole.first() if costs.ndim == 1 else whole

    def contradicts(self, syndrome: ArrayLike) -> NDArray[np.bool_]:
        """Return whether checks with the same bits, or without bits, differ in their parity.

        No word has such a syndrome. Shape (checks,) or (words, checks), without the last axis.
        """
        return self.distinct.contradicts(np.asarray(syndrome))

    def bound(
        self,
        ratios: ArrayLike,
        lam: ArrayLike,
        syndrome: ArrayLike | None = None,
    ) -> float:
        """Return the lower bound on the cost of any codeword that λ proves, rounded down.

        Parameters
        ----------
        ratios : float array (bits,)
            The cost of a 1 at each bit.
        lam : float array
            λ as `decode` returns it.
        syndrome : int array (checks,), optional
            1 for each check whose parity must be odd; all even by default.
        """
        costs, given = self.checked_ratios(ratios), numbers(lam, "lam")
        entries = self._arrays.member.shape
        if costs.ndim != 1 or given.shape != entries or not np.isfinite(given).all():
            raise OptionError("expected the ratios of one word, and λ as `decode` returns it")
        parities = np.ascontiguousarray(self._parities(syndrome, 1)[0])
        return core.code_bound(self._arrays.native(), costs, parities, np.ascontiguousarray(given))

    def write_proof(
        self,
        path: str | Path,
        ratios: ArrayLike,
        lam: ArrayLike,
        syndrome: ArrayLike | None = None,
    ) -> None:
        """Write λ of one word as a proof of its bound (docs/proofs.md).

        `softmap.verification.check_proof(path, code.model(ratios, syndrome))` checks it.

        Parameters
        ----------
        path : str or Path
        ratios : float array (bits,)
            The cost of a 1 at each bit.
        lam : float array
            λ as `decode` returns it.
        syndrome : int array (checks,), optional
            1 for each check whose parity must be odd; all even by default.
        """
        from softmap.extend import write_dual

        given, model = numbers(lam, "lam"), self.model(ratios, syndrome)
        if given.shape != self._arrays.member.shape or model.network.has_chains:
            raise OptionError(
                "expected λ as `decode` returns it, and checks without chain variables"
            )
        own = _half_lam(model.network, self.distinct.by_bits(given))
        write_dual(path, model, own)

    def model(
        self,
        ratios: ArrayLike | None = None,
        syndrome: ArrayLike | None = None,
    ) -> Model:
        """Return the decoding problem as a `Model`, for `softmap.solve`.

        `softmap.solve` can prove optimality also if the relaxation is not tight.

        Parameters
        ----------
        ratios : float array (bits,), optional
            The cost of a 1 at each bit; 0 by default.
        syndrome : int array (checks,), optional
            1 for each check whose parity must be odd; all even by default.
        """
        parities = self._parities(syndrome, 1)[0]
        if any(p for row, p in zip(self.checks, parities, strict=True) if not row):
            raise ModelError("a check without bits must have odd parity: there is no such word")
        factors: list[Any] = [
            Parity(row, bool(p)) for row, p in zip(self.checks, parities, strict=True) if row
        ]
        model = Model.from_factors([2] * self.num_bits, factors)
        if ratios is None:
            return model
        costs = self.checked_ratios(ratios)
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
        sums = np.zeros((*given.shape[:-1], len(self._arrays.member) + 1), np.int64)
        np.cumsum(given[..., self._arrays.member], axis=-1, out=sums[..., 1:])
        start = self._arrays.start
        return ((sums[..., start[1:]] - sums[..., start[:-1]]) % 2).astype(np.uint8)

    def checked_ratios(self, ratios: ArrayLike) -> Costs:
        """Return costs of shape (bits,) or (words, bits), checked and contiguous."""
        costs = numbers(ratios, "ratios")
        if costs.ndim not in (1, 2) or costs.shape[-1] != self.num_bits:
            raise OptionError(f"expected ratios of {self.num_bits} bits, not {costs.shape}")
        if not (np.abs(costs) <= LIMITS.ratio).all():
            raise OptionError(f"expected ratios within ±{LIMITS.ratio:g}")
        return np.ascontiguousarray(costs)

    def _parities(self, syndrome: ArrayLike | None, words: int) -> Bytes:
        """Return the checked syndromes, with shape (1, checks) or (words, checks)."""
        checks = len(self.checks)
        if syndrome is None:
            return np.zeros((1, checks), np.uint8)
        return np.atleast_2d(checked_syndrome(syndrome, ((checks,), (1, checks), (words, checks))))


def _half_lam(model: Network, checks: Iterable[tuple[tuple[int, ...], list[float]]]) -> Costs:
    """Convert λ of the bits of distinct checks to λ of the half-edges of the model."""
    out, held, nodes = np.zeros(model.half_size), model.memberships, model.num_variables
    edges: dict[tuple[int, int], list[int]] = {}
    for e, (i, j) in enumerate(model.edges.tolist()):
        edges.setdefault((i, j), []).append(2 * e)
        edges.setdefault((j, i), []).append(2 * e + 1)
    for row, own in checks:
        if len(row) < 2:  # a check of one bit fixes the bit and has no edge
            continue
        if len(row) == 2:
            for k, bit in enumerate(row):
                half = edges[bit, row[1 - k]].pop(0)
                out[model.half_offset[half] + 1] = own[k]
            continue
        strides = held.stride[held.start[nodes - model.num_variables] :].tolist()
        for k, bit in enumerate(row):
            half = edges[bit, nodes].pop(0)
            out[model.half_offset[half] + 1] = own[k]
            states = np.arange(model.num_labels[nodes])
            out[model.half_slice(half ^ 1)] = -own[k] * (states // strides[k] % 2)
        nodes += 1
    return out


def checked_syndrome(syndrome: ArrayLike, shapes: Sequence[tuple[int, ...]]) -> Bytes:
    """Return a syndrome of one of these shapes as bytes of 0 and 1."""
    if isinstance(syndrome, np.ndarray) and syndrome.dtype == bool:
        syndrome = syndrome.view(np.uint8)
    given = integers(syndrome, "syndrome")
    if given.shape not in shapes:
        one = given[0] if given.ndim > 1 and len(given) == 1 else given  # `decode` adds an axis
        several = "; decode_batch takes several" if one.ndim == 2 else ""
        raise OptionError(
            f"syndrome: expected 0 or 1 for each of {shapes[0][-1]} checks, found an array of "
            f"shape {one.shape}{several}"
        )
    if ((given != 0) & (given != 1)).any():
        raise OptionError(
            f"syndrome: expected 0 or 1 for each of {shapes[0][-1]} checks, found {given.max()}"
        )
    return given.astype(np.uint8)


def _bits_of(row: Any) -> tuple[int, ...]:
    """Return the bits of a check; a check may be empty."""
    if isinstance(row, Sized) and not isinstance(row, str | bytes) and not len(row):
        return ()
    return Parity(integers(row, "checks")).variables


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
        table = np.asarray(plain(checks))
    except ModelError:
        raise
    except Exception:  # rows of several lengths, or objects with their own conversion
        return False
    if table.ndim != 2 or table.dtype.kind not in "biuf" or not table.shape[1]:
        return False
    binary = bool(((table == 0) | (table == 1)).all())
    few = table.dtype.kind in "iu" and binary and table.shape[1] <= 2 and table.size
    if few and isinstance(checks, np.ndarray):
        raise ModelError(
            "an array of 0 and 1 with one or two columns may be a matrix, or the bits of each "
            "check: use ParityCode.from_matrix, or lists of bits"
        )
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
