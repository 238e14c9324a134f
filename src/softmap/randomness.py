"""Seeds of the compiled random generator (xoshiro256++ in `src/core/base/random.hpp`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["seeded"]


def seeded(seed: int) -> NDArray[np.uint64]:
    """The four words of the generator, from any non-negative integer."""
    words: NDArray[np.uint64] = np.random.SeedSequence(seed).generate_state(4, np.uint64)  # type: ignore[assignment]
    return words
