"""The numbers that steer a run, on one page: each with its unit and its origin.

A run takes them from `Options.tuning`, so that tests and benchmarks hand another page to a run:
`softmap.solve(model, tuning=Tuning(first_slice=0.1))`. "D12" is decision 12 in docs/decisions.
`python -m benchmarks.tuning` halves and doubles each number. Bytes per entry, which keep the
promise of a memory limit, are in `run/memory.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "TUNING", "AnnealingRule", "Checks", "ClusterSizes", "InteriorTimes", "SearchEffort",
    "SpinSteps", "Tuning",
]  # fmt: skip


@dataclass(frozen=True)
class AnnealingRule:
    """When the relaxation raises η, and the limit of its momentum."""

    first: float = 100.0  # first η, in 1 / cost scale; D7
    growth: float = 3.0  # factor by which η rises; D7
    ready: float = 0.65  # gap of the regularised problem, in LP gaps, for η to rise; D7
    settled: float = 0.2  # gain between checks, in smoothing, for η to rise without a point; D7
    momentum: float = 2.0  # most t of Nesterov's momentum, in √(η · cost scale); D7
    calmer: float = 16.0  # divisor of that after the smoothed dual fell; D20


@dataclass(frozen=True)
class Checks:
    """When a run checks its bound, what a check computes, and when the run has stalled."""

    early: int = 20  # passes of the third check; a quarter and half of it before; D53
    near: float = 4.0  # gap, in tolerances, up to which checks compute all and are frequent; D22
    patience: int = 400  # passes without progress, and half of the run, to stall; D22
    progress: float = 0.99  # a gap of at most this fraction of the best one is progress; D22

    @property
    def first(self) -> int:
        """Passes before the first check; those between two samples of the averaged marginals."""
        return max(1, self.early // 4)


@dataclass(frozen=True)
class SearchEffort:
    """The effort for labels that are decoded at a check."""

    more: float = 1 / 32  # tree moves per pass so far; up to twice as many of a solved LP; D10
    annealed_from: int = 8  # least number of tree moves to anneal them; D10
    warm: int = 48  # annealed tree moves for labels of an earlier model, or a search; D10
    heat: float = 3.0  # temperature, in √(cost scale · gap per variable); D10
    fused: int = 2_000  # least number of variables for fusion and expansion moves; D31
    cut: int = 200  # most visited arcs of a fusion move per edge and variable; D31


@dataclass(frozen=True)
class InteriorTimes:
    """What interior points and passes take, in times of a pass per label of a half-edge; D101."""

    steps: int = 22  # steps from the start to a gap of 1e-6, on er1000; fewer on smaller models
    product: float = 0.07  # one multiplication of a step's factorisation
    pair: float = 60.0  # the other work of a step per pair of labels of an edge
    entry: float = 1.6  # of a pass over tables, per pair of labels and direction


@dataclass(frozen=True)
class SpinSteps:
    """The semidefinite bound with triangles; D69."""

    penalty: float = 0.2  # first penalty of a violated triangle, in mean entries of the matrix
    steps: int = 20  # steps between two separations
    added: int = 10  # most new triangles per spin and separation
    violated: float = 0.02  # least violation of a new triangle
    sweeps: int = 30  # sweeps for the diagonal of a bound
    rounds: int = 4  # separations between two bounds; four times as many before the first one
    least: int = 2  # bounds of a node before a branching; four times as many until it is closed


@dataclass(frozen=True)
class ClusterSizes:
    """The sizes of clusters; D47."""

    states: int = 4_000_000  # most joint states of all regions, and node states of the model
    labels: int = 64  # most labels of a variable in a cluster; its square, joint states of one
    whole: int = 16  # most joint states of a cycle that is not split into triangles
    messages: int = 200_000  # message entries that may be added in any round; else as many as are
    cycles: int = 100_000  # most cycles of a length that are scored at a time
    scored: int = 1_000_000_000  # most joint states of three variables, likewise
    paths: int = 5_000  # most paths of three edges per variable; a fifth, pairs that are examined


@dataclass(frozen=True)
class Tuning:
    """The numbers that steer a run; the comment of each says its unit and origin."""

    # --- which stage is next, with a time limit ---------------------------------------------------
    first_slice: float = 0.05  # s, shortest slice; D35
    growth: float = 0.25  # slice per time of the stage; set-up of a new one per time so far; D35
    untried: float = 0.2  # gap expected to be closed in as long as nothing was; D35, D58
    share: float = 0.15  # least fraction of the time of each stage; D35, D58
    falling: float = 2.0  # factor of that share while labels improve; D79
    least_gain: float = 0.002  # fraction of the gap that counts as progress; D35
    # --- and without one --------------------------------------------------------------------------
    first_work: int = 200_000  # message entries of the first slice; they double; D35
    rounds: int = 4  # of slices without limits; one less of labels alone, half of expansions; D35
    # --- passes -----------------------------------------------------------------------------------
    annealing: AnnealingRule = field(default_factory=AnnealingRule)
    checks: Checks = field(default_factory=Checks)
    recent: float = 8.0  # sample k of averaged marginals has the weight k^8; D7
    coarse_pixels: int = 1 << 14  # least number of pixels for coarse-to-fine; D26
    coarse_tied: float = 2.5  # least range of edge costs, in that of unary costs, likewise; D26
    coarse_passes: int = 8  # passes over the coarse model, and least number of a run; D26
    proving: int = 50  # passes to prove labels that solve the LP, beside as many as solved it; D22
    interior_after: int = 5_000  # passes before the interior-point method of HiGHS; D11
    interior: InteriorTimes = field(default_factory=InteriorTimes)
    interior_size: int = 50_000  # most node states and pairs of an LP for either one; D11, D101
    lazy_entries: int = 1 << 19  # λ with more entries is made when asked for; D43
    # --- labels that are found before the passes --------------------------------------------------
    first_share: float = 0.4  # of the time, before the relaxation, or the best of m labels; D96
    large: int = 20_000  # nodes: at most for feasible labels, states: at least to eliminate; D33
    obeyed_work: int = 10_000_000  # units of work for feasible labels, without a limit; D33
    conflict_entries: int = 1_000  # units of work per conflict; D33
    core_seconds: float = 2.0  # s, to name fewer constraints of an infeasible model; D59
    infeasible_seconds: float = 60.0  # s, most time of a search that proves infeasibility; D59
    penalty_sample: int = 80  # nodes, and edges, that are looked at first for penalties; D55
    penalty_drawn: int = 12  # entries of each of them; D55
    penalty_caution: float = 0.25  # factor of estimates from that sample; D55
    expanded_submodular: float = 0.9  # least fraction of submodular terms for expansions; D48
    # --- elimination ------------------------------------------------------------------------------
    dense_variables: int = 3_000  # most for an elimination order or a dense factor; D34, D69
    eliminated_entries: float = 5e8  # most table entries of dynamic programming; D34
    eliminated_per_state: float = 300.0  # most table entries per node state before passes; D34
    dp_entries: int = 20  # table entries of dynamic programming per unit of work; D34
    # --- exact search -----------------------------------------------------------------------------
    searched_entries: int = 60_000_000  # most table entries of a searched model; D51
    searched_early_edges: int = 40_000  # most nodes and edges for a search before the LP; D51
    searched_gap: float = 3e-3  # gap up to which larger models are searched without a limit; D35
    fresh: float = 0.5  # improvement of λ, in gaps left, for which a search restarts; D120
    backtracks: int = 50  # least number of backtracks in a slice; D15
    backtrack_entries: int = 150  # table entries read per backtrack and unit of work; D44
    setup: float = 60.0  # evaluations of the bound: set-up of a search or clusters; D51
    # --- semidefinite bounds ----------------------------------------------------------------------
    spins_degree: float = 6.0  # mean degree above which it is computed; D69
    spins_import: float = 0.4  # s, import of scipy for it, a fifth of the least limit; D69
    spins_triangles: int = 600  # most variables with triangles; D69
    spin_steps: SpinSteps = field(default_factory=SpinSteps)
    # --- permutations -----------------------------------------------------------------------------
    permuted_entries: float = 1e8  # most pairs of labels of two variables, each twice; D68
    permuted_share: float = 0.8  # of the time, once the dual ascent has stalled; D68
    permuted_variables: int = 16  # most variables of a search in any case; D68
    permuted_gap: float = 0.05  # relative gap up to which larger ones are searched; D68
    permuted_work: float = 2_000.0  # passes over all pairs, of each search without a limit; D68
    # --- core-guided search -----------------------------------------------------------------------
    cores_entries: int = 4_000_000  # most table entries for cores, and for penalties; D55, D70
    # --- better labels ----------------------------------------------------------------------------
    label_search: SearchEffort = field(default_factory=SearchEffort)
    moved_variables: int = 5_000  # most variables for exact search over small parts; D42
    move_work: int = 20_000  # message entries that one of these searches counts as; D42
    least_part: float = 0.1  # least part of each label search in a slice; D42, D68
    # --- tightening -------------------------------------------------------------------------------
    clusters: ClusterSizes = field(default_factory=ClusterSizes)
    tighten_passes: int = 10  # passes between two checks, and half of those at the first η; D14
    tighten_growth: float = 2.0  # factor by which η rises from twice its first value; D14, D58
    tighten_coarse: float = 4.0  # gaps lost to smoothing while η rises twice as fast; D47, D58
    tighten_gain: float = 1e-4  # least gain of a cycle, in cost scales; D14
    tighten_smoothing: float = 0.2  # gaps lost to smoothing when clusters are added; D14
    tighten_stalled: int = 8  # checks without progress when no cluster is left; D47
    projected_rounds: int = 30  # corrections of a point of the tightened polytope; D14


TUNING = Tuning()
"""The page that runs use by default."""
