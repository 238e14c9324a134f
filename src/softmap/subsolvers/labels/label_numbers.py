"""The numbers of the searches for labels beside the relaxation."""

from __future__ import annotations

from dataclasses import dataclass

from softmap.tuning import Numbers

__all__ = ["ExpansionNumbers", "ImproveNumbers", "ObeyNumbers"]


@dataclass(frozen=True)
class ObeyNumbers(Numbers):
    """First labels that obey hard constraints."""

    nodes: int = 20_000  # most nodes of a model; D33
    share: float = 0.4  # of the time: most for labels that obey the constraints; D33, D96
    work: int = 10_000_000  # least units of work for these labels; D33
    conflict_work: int = 1_000  # units of work per conflict, in all slices; D33
    avoiding_share: float = 0.4  # of the time: most for labels that avoid penalties; D55, D96
    avoiding_conflicts: int = 10_000  # most conflicts of the search for them; D55
    entry_bytes: int = 100  # bytes per table entry; D33


@dataclass(frozen=True)
class ExpansionNumbers(Numbers):
    """First labels of large models by expansion moves."""

    variables: int = 2_000  # least number of variables; D31
    submodular: float = 0.9  # least fraction of submodular terms; D48
    share: float = 0.4  # of the time: most for the first labels and the moves; D48, D96
    first_share: float = 0.16  # of the time: most for labels before the first move; D48, D96
    rounds: int = 2  # rounds of moves over all labels; D48


@dataclass(frozen=True)
class ImproveNumbers(Numbers):
    """Searches for better labels that share slices."""

    annealed_entries: int = 30_000_000  # most table entries of an annealed model; D42, D51
    moved_entries: int = 30_000_000  # most table entries for exact search over small parts; D42
    moved_variables: int = 5_000  # most variables for exact search over small parts; D42
    move_work: int = 20_000  # message entries that one of these searches counts as; D42
    moved_entry_bytes: int = 64  # bytes per table entry of these searches; D51
    moved_edge_bytes: int = 2_000  # bytes per node and edge of these searches; D51
    least_part: float = 0.1  # least part of a slice of each search; D42
    edge_bytes: float = 200.0  # bytes per edge of dynamic programming over narrow parts; D51
    state_bytes: int = 8  # bytes per node state of it; D51
