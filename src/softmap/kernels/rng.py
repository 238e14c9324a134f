"""One seeded generator for compiled loops: xoshiro256++, its four words in an array of the caller.

numba's own generator is global per thread; this one travels with the state of a run, so that runs
can be stored, resumed and put on any thread without changing a bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["below", "next_word", "seeded"]

_17, _19, _23, _41, _45 = (np.uint64(k) for k in (17, 19, 23, 41, 45))
_ONE = np.uint64(1)


def seeded(seed: int) -> np.ndarray:
    """The four words of the generator, from any non-negative integer."""
    return np.random.SeedSequence(seed).generate_state(4, np.uint64)


@njit(cache=True, nogil=True)
def next_word(s):
    """The next 64 random bits."""
    total = s[0] + s[3]
    result = ((total << _23) | (total >> _41)) + s[0]
    t = s[1] << _17
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = (s[3] << _45) | (s[3] >> _19)
    return result


@njit(cache=True, nogil=True)
def below(s, bound):
    """An integer of 0..bound-1, exactly uniform: masked bits, drawn again when too large."""
    limit = np.uint64(bound)
    mask = limit - _ONE
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    word = next_word(s) & mask
    while word >= limit:
        word = next_word(s) & mask
    return np.int64(word)
