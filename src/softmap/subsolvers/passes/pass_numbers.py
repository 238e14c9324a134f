"""The numbers of the relaxation: passes, the labels decoded from them, and solvers of small LPs."""

from __future__ import annotations

from dataclasses import dataclass

from softmap.tuning import Numbers

__all__ = ["InteriorTimes", "PassNumbers"]


@dataclass(frozen=True)
class PassNumbers(Numbers):
    """When passes come first, what their checks do, and which LPs go to a solver."""

    urgent: int = 20  # passes that come before slices of others; D53
    quick: int = 20  # passes before a check of a run for the LP computes a point; D53
    proving: int = 50  # passes to prove labels that solve the LP, beside as many as solved it; D22
    coarse: int = 8  # least number of passes of a run for coarse-to-fine initialisation; D26
    smoothed_entries: int = 1 << 19  # most entries of λ for a smoothed dual in all checks; D43
    decoded: float = 4.0  # gap, in tolerances, up to which labels are decoded more often; D22
    decisive: float = 4.0  # LP gap, in tolerances, up to which passes wait for labels; D22
    conflict_work: int = 2_000  # updates of half-edges per conflict for feasible labels; D33
    interior_entries: int = 50_000  # most node states and pairs of labels for `Interior`; D101
    vertex_entries: int = 50_000  # most node states and pairs of labels for `Vertex`; D11
    vertex_after: int = 5_000  # passes before `Vertex`; D11


@dataclass(frozen=True)
class InteriorTimes(Numbers):
    """What interior points and passes take, in times of a pass per label of a half-edge."""

    steps: int = 22  # steps from the start to a gap of 1e-6, on er1000; D101
    product: float = 0.07  # one multiplication of a step's factorisation; D101
    pair: float = 60.0  # the other work of a step per pair of labels of an edge; D101
    entry: float = 1.6  # of a pass over tables, per pair of labels and direction; D101
