"""What several searches may use together."""

from __future__ import annotations

import time

__all__ = ["Budget"]

FIRST_TIME = 0.1  # seconds for a piece in the first round; more once nothing else can be done
FIRST_BACKTRACKS = 100  # the same, where backtracks are limited


class Budget:
    """Time and backtracks that all searches have together, and the share of one of them."""

    def __init__(self, deadline: float, backtracks: int) -> None:
        self.deadline, self.backtracks = deadline, backtracks
        self.share = 1.0

    @property
    def seconds(self) -> float:
        """Time left for all."""
        return max(0.0, self.deadline - time.perf_counter())

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.seconds <= 0.0 or self.backtracks == 0

    @property
    def piece_seconds(self) -> float:
        """Time for one piece, in this round; where only backtracks are limited, all there is."""
        return self.seconds if self.backtracks >= 0 else min(self.seconds, FIRST_TIME * self.share)

    @property
    def piece_backtracks(self) -> int:
        """Backtracks for one piece, in this round."""
        return min(self.backtracks, int(FIRST_BACKTRACKS * self.share))

    def spend(self, backtracks: int) -> None:
        """Take off what a search has used."""
        if self.backtracks >= 0:
            self.backtracks = max(0, self.backtracks - max(1, backtracks))
