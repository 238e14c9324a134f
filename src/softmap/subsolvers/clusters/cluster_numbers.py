"""The numbers of the relaxation tightened by clusters."""

from __future__ import annotations

from dataclasses import dataclass

from softmap.tuning import Numbers

__all__ = ["ClusterSizes", "TightenNumbers"]


@dataclass(frozen=True)
class ClusterSizes(Numbers):
    """Which clusters are looked for and added."""

    states: int = 4_000_000  # most joint states of all regions; D47
    labels: int = 64  # most labels of a variable in a cluster; D47
    triangle: int = 4_096  # most joint states of three variables of a cluster; D47
    union: int = 64  # most joint states of a union of two clusters; D47
    whole: int = 16  # most joint states of a cycle that is not split into triangles; D47
    messages: int = 200_000  # least message entries that a round may add; D47
    cycles: int = 100_000  # most cycles of a length that are scored at a time; D47
    faces: int = 100_000  # most cycles of which all are added first; D47
    scored: int = 1_000_000_000  # most joint states of three variables of scored cycles; D47
    paths: int = 5_000  # most paths of three edges per variable; D47
    pairs: int = 1_000  # most pairs of paths per variable that are examined; D47


@dataclass(frozen=True)
class TightenNumbers(Numbers):
    """Annealed passes over clusters, and when clusters are added."""

    node_states: int = 4_000_000  # most node states of a model; D47
    setup: float = 60.0  # evaluations of the bound: set-up of clusters; D51
    passes: int = 10  # passes between two checks; D14
    first_passes: int = 40  # passes before the first clusters are chosen; D14
    later_passes: int = 20  # passes at the first η before further clusters are chosen; D14
    eta: float = 200.0  # first η, in 1 / cost scale; D14
    growth: float = 2.0  # factor by which η rises; D14, D58
    fast_growth: float = 4.0  # that factor while much of the gap is lost to smoothing; D47, D58
    coarse: float = 4.0  # gaps lost to smoothing for this faster growth; D47, D58
    settled: float = 0.1  # gain between checks, in smoothing, for η to rise; D14
    rising: float = 0.002  # gain between checks, in gaps, of a bound that still rises; D35
    progress: float = 0.002  # gain of the best bound, in gaps, that counts as progress; D35
    gain: float = 1e-4  # least gain of a cycle, in cost scales; D14
    smoothing: float = 0.2  # gaps lost to smoothing when clusters are added; D14
    stalled: int = 8  # checks without progress when no cluster is left; D47
    base: float = 5.0  # memory before the first cluster, in that of the relaxation; D47
    state_bytes: int = 1_000  # bytes per joint state of a cluster; D47
