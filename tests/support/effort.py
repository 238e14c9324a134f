"""Limits on the work of the checker that leave room for so many entries and no more."""

from __future__ import annotations

from softmap.verification.limit import ENTRIES, LARGEST, TableLimit


def with_room(entries: int, largest: int) -> TableLimit:
    """Return a limit that leaves so many entries in all, and tables of the largest size."""
    effort = TableLimit(largest / LARGEST)
    effort.spend([1], ENTRIES * largest // LARGEST - entries)
    return effort
