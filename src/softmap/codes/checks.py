"""The distinct parity checks of a code, and the decoder that uses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.codes.device import CheckArrays, DeviceDecoder, Proposals
from softmap.extend import Costs, core, frozen

__all__ = ["Bytes", "DistinctChecks"]

Bytes = NDArray[np.uint8]

AT_ONCE = 64  # words per thread between two checks for Ctrl-C


class DistinctChecks:
    """The checks of a code without those that have the same bits as an earlier one, or none.

    Parameters
    ----------
    rows : list of tuples of int
        The bits of all checks.
    num_bits : int
        Number of bits.
    """

    def __init__(self, rows: Sequence[tuple[int, ...]], num_bits: int) -> None:
        self._rows, self._bits = rows, num_bits
        first: dict[tuple[int, ...], int] = {(): -1}
        equal = [first.setdefault(tuple(sorted(row)), c) for c, row in enumerate(rows)]
        #: For each check, the first check with the same bits; -1 for a check without bits.
        self._first = frozen(np.array(equal, dtype=np.int64), np.int64)
        self._kept = np.flatnonzero(self._first == np.arange(len(rows)))
        self._arrays = CheckArrays.of([rows[c] for c in self._kept.tolist()], num_bits)
        self._native = self._arrays.native()

    def decode_rows(
        self,
        costs: Costs,
        parities: Bytes,
        limits: core.DecodingLimits,
        workers: int,
        *,
        keep: bool = True,
        device: bool = False,
    ) -> tuple[Costs, Bytes, Costs | None]:
        """Decode checked rows by the compiled core.

        Parameters
        ----------
        costs : float64[words, bits] or float64[1, bits]
        parities : uint8[words, checks]
        limits : core.DecodingLimits
        workers : int
            Number of threads.
        keep : bool, default True
            Whether λ is returned.
        device : bool, default False
            Whether a GPU proves what it can first; not if λ is returned.

        Returns
        -------
        tuple
            float64[words, 4] with cost, bound, whether proved and iterations; words; λ or None.
        """
        shots = len(parities)
        words = np.empty((shots, self._bits), np.uint8)
        lam = np.empty((shots if keep else 0, len(self._arrays.member)))
        found = np.empty((shots, 4))
        own_parities = np.ascontiguousarray(parities[:, self._kept])
        proposals: Iterable[tuple[slice, Proposals]]
        proposals = [(slice(0, shots), Proposals.none(len(self._arrays.member)))]
        if device:
            own_decoder = DeviceDecoder(self._arrays)
            proposals = own_decoder.proposals(costs, own_parities, limits.rounds, limits.steps)
        for part, given in proposals:
            if device:
                words[part] = given.words
            for inner in _slices(part.stop - part.start, workers):
                own = slice(part.start + inner.start, min(part.start + inner.stop, part.stop))
                core.decode(
                    self._native, costs if len(costs) == 1 else costs[own], own_parities[own],
                    limits, words[own], lam[own] if keep else lam, found[own],
                    core.Proposals(given.lam[inner], given.iterations[inner]), workers,
                )  # fmt: skip
        found[self.contradicts(parities), :3] = np.inf, np.inf, 0.0
        return found, words, self._whole_lam(lam) if keep else None

    def contradicts(self, parities: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether checks with the same bits, or without bits, differ in their parity.

        No word has such a syndrome. Shape (checks,) or (words, checks), without the last axis.
        """
        empty = self._first < 0
        wrong = parities != np.where(empty, 0, parities[..., self._first])
        return wrong.any(axis=-1)

    def _whole_lam(self, lam: Costs) -> Costs:
        """Return λ of all checks, given λ of the distinct ones: a repeated check gets zeros."""
        if len(self._kept) == len(self._rows):
            return lam
        kept = np.isin(np.arange(len(self._rows)), self._kept)
        sizes = [len(row) for row in self._rows]
        out = np.zeros((*lam.shape[:-1], sum(sizes)))
        out[..., np.repeat(kept, sizes)] = lam
        return out

    def by_bits(self, lam: Costs) -> Iterator[tuple[tuple[int, ...], list[float]]]:
        """Yield the bits and λ of each distinct check; a model merges checks of equal bits."""
        total = [dict.fromkeys(self._rows[c], 0.0) for c in self._kept.tolist()]
        place = {int(c): k for k, c in enumerate(self._kept)}
        entries = iter(lam.tolist())
        for c, row in enumerate(self._rows):
            for bit in row:
                total[place[int(self._first[c])]][bit] += next(entries)
        for own in total:
            yield tuple(own), list(own.values())


def _slices(words: int, workers: int) -> Iterator[slice]:
    """Yield parts of the words; Ctrl-C is checked between two of them."""
    size = AT_ONCE * workers
    return (slice(first, first + size) for first in range(0, words, size))
