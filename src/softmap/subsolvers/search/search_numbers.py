"""The numbers of exact search."""

from __future__ import annotations

from dataclasses import dataclass

from softmap.tuning import Numbers

__all__ = ["SearchNumbers"]


@dataclass(frozen=True)
class SearchNumbers(Numbers):
    """Which models are searched, when, and for how much work and memory."""

    entries: int = 60_000_000  # most table entries of a searched model; D51
    early_entries: int = 6_000_000  # most table entries for slices before the LP is solved; D51
    early_edges: int = 40_000  # most nodes and edges together for such slices; D51
    gap: float = 3e-3  # relative gap up to which larger models are searched without a limit; D35
    first_timed: int = 5  # passes before the first slice, with a time limit; D51
    first_counted: int = 20  # passes before the first slice, without one; D51
    narrow_until: int = 20  # passes up to which a narrow model has a slice at any time; D51
    fresh: float = 0.5  # improvement of λ, in gaps left, for which a search restarts; D120
    backtracks: int = 50  # least number of backtracks in a slice; D15
    backtrack_entries: int = 150  # table entries of the model per backtrack and unit of work; D44
    setup: float = 60.0  # evaluations of the bound: set-up of a search; D51
    eliminated_variables: int = 3_000  # most variables for an elimination order; D34
    eliminated_entries: float = 5e8  # most table entries of dynamic programming; D34
    eliminated_work: int = 20  # table entries of dynamic programming per unit of work; D34
    entry_bytes: int = 64  # bytes per table entry; D51
    edge_bytes: int = 2_000  # bytes per node and edge; D51
    eliminated_bytes: int = 16  # bytes per entry of dynamic programming: two doubles; D34
    thread_state_bytes: int = 64  # bytes per half-edge state and further thread; D51
    thread_edge_bytes: int = 400  # bytes per node, edge and further thread; D51
    thread_share: float = 0.4  # fraction of the memory left for all further threads; D51
