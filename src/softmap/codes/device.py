"""Belief propagation and proofs of many shots at a time on a GPU; nothing of it is trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from softmap.extend import core, frozen
from softmap.extend.device import find_device

Ints = NDArray[np.int32]

AT_ONCE = 1024  # shots per launch: a few for each multiprocessor; the CPU works on earlier ones
ARRAYS = ("start", "member", "first", "edge", "order", "level")
# `CodeArrays` of ``src/core/cuda/decoding.hpp``
CODE = np.dtype(
    [*((name, np.uint64) for name in ARRAYS)]
    + [(name, np.int32) for name in ("bits", "checks", "levels")],
    align=True,
)


class CheckArrays(NamedTuple):
    """The checks as arrays for the compiled core.

    Attributes
    ----------
    start : int64[checks + 1]
        First entry of each check in `member`.
    member : int32[entries]
        The bits of check 0, of check 1, ...
    degree : int64[bits]
        Number of checks that contain the bit.
    """

    start: NDArray[np.int64]
    member: NDArray[np.int32]
    degree: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], num_bits: int) -> Self:
        """Return the arrays of checks given by their bits."""
        member = np.array([bit for row in rows for bit in row], dtype=np.int32)
        return cls(
            frozen(np.cumsum([0, *map(len, rows)]), np.int64),
            frozen(member, np.int32),
            frozen(np.bincount(member, minlength=num_bits), np.int64),
        )

    def native(self) -> core.ParityCode:
        """Return the checks as the compiled core reads them."""
        return core.ParityCode(start=self.start, member=self.member, degree=self.degree)


class Proposals(NamedTuple):
    """Words and proofs that the CPU has to check.

    Attributes
    ----------
    words : uint8[shots, bits]
    lam : float64[shots, entries]
        λ with the sign flipped at each bit that is 1; undefined where `iterations` is 0.
    iterations : int32[shots]
        Number of iterations; 0 for a shot without a proof.
    """

    words: NDArray[np.uint8]
    lam: NDArray[np.float64]
    iterations: Ints

    @classmethod
    def none(cls, entries: int) -> Proposals:
        """Return no proposals."""
        return cls(np.empty((0, 0), np.uint8), np.empty((0, entries)), np.empty(0, np.int32))


class DeviceDecoder:
    """The decoder of one code on the GPU, one thread block per shot.

    Parameters
    ----------
    arrays : CheckArrays
        The checks.
    """

    def __init__(self, arrays: CheckArrays) -> None:
        start, member, degree = arrays
        self._device = find_device()
        self._device.prepare(["decode_shots"])
        self._bits, self._checks, self._entries = len(degree), len(start) - 1, len(member)
        level = levels_of(start, member, self._bits)
        values = (
            start, member, np.cumsum([0, *degree]), np.argsort(member, kind="stable"),
            np.argsort(level, kind="stable"), np.cumsum([0, *np.bincount(level)]),
        )  # fmt: skip
        self._arrays = [self._device.upload(array.astype(np.int32)) for array in values]
        self._record = np.zeros((), CODE)
        for name, array in zip(ARRAYS, self._arrays, strict=True):
            self._record[name] = self._device.address(array)
        self._record["bits"], self._record["checks"] = self._bits, self._checks
        self._record["levels"] = len(np.bincount(level))

    def proposals(
        self, costs: NDArray[np.float64], parities: NDArray[np.uint8], rounds: int, steps: int
    ) -> Iterator[tuple[slice, Proposals]]:
        """Yield parts of the shots and their proposals; the device works on the next part.

        Parameters
        ----------
        costs : float64[shots, bits] or float64[1, bits]
        parities : uint8[shots, checks]
        rounds, steps : int
            Largest numbers of iterations of belief propagation and of a proof.
        """
        shots, size = len(parities), self._at_once(len(parities))
        parts = [slice(k, min(k + size, shots)) for k in range(0, shots, size)]
        launched = None
        for own in [*parts, None]:
            done = launched and (launched[0], self._fetched(*launched))
            if own is not None:
                rows = costs if len(costs) == 1 else costs[own]
                launched = own, self._launched(rows, parities[own], rounds, steps)
            if done:
                yield done

    def _at_once(self, shots: int) -> int:
        """Return the number of shots per launch, which use at most half of the free memory."""
        room = self._device.room()
        each = 2 * 8 * (2 * self._entries + 2 * self._bits) + self._checks
        most = AT_ONCE if room is None else min(AT_ONCE, room // 2 // each)
        return max(1, min(most, shots))

    def _launched(
        self, costs: NDArray[np.float64], parities: NDArray[np.uint8], rounds: int, steps: int
    ) -> tuple[Any, Any, Any]:
        """Launch the kernel; return the arrays of words, λ and iterations."""
        device, shots, each = self._device, len(parities), len(costs) > 1
        with device.working():
            numbers = [device.zeros(shots * n, np.float64) for n in (self._bits, self._entries)]
            lam = device.zeros(shots * self._entries, np.float64)
            words = device.zeros(shots * self._bits, np.uint8)
            shared, found = device.zeros(shots, np.float64), device.zeros(shots, np.int32)
            given = [device.upload(a) for a in (costs, np.abs(costs).mean(axis=1), parities)]
            device.launch_blocks(
                "decode_shots", shots,
                [self._record, given[0], self._bits if each else 0, given[1], given[2], rounds,
                 steps, *numbers, lam, words, shared, found],
            )  # fmt: skip
        return words, lam, found

    def _fetched(self, own: slice, launched: tuple[Any, Any, Any]) -> Proposals:
        """Return the results on the host, with λ of the shots that may be proved only."""
        device, shots = self._device, own.stop - own.start
        words, lam, found = launched
        iterations = device.fetch(found)
        rows = np.flatnonzero(iterations)
        whole = np.empty((shots, self._entries))
        with device.working():
            table = lam[: shots * self._entries].reshape(shots, self._entries)
            whole[rows] = device.fetch(table[device.upload(rows)])
        return Proposals(device.fetch(words).reshape(shots, self._bits), whole, iterations)


def levels_of(start: NDArray[np.int64], member: Ints, bits: int) -> NDArray[np.int64]:
    """Return the level of each check: above that of every earlier check with a common bit."""
    after, level = np.zeros(bits, np.int64), np.zeros(len(start) - 1, np.int64)
    for c in range(len(level)):
        own = member[start[c] : start[c + 1]]
        level[c] = after[own].max(initial=0)
        after[own] = level[c] + 1
    return level
