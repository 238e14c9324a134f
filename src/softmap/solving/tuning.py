"""The numbers that steer a run, on one page: each with its unit and its origin.

A run takes them from `Options.tuning`, so that tests and benchmarks hand another page to a run:
`softmap.solve(model, tuning=Tuning(first_slice=0.1))`. "D12" is decision 12 in docs/decisions;
"sweep" is `python -m benchmarks.tuning`, which halves and doubles each number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from softmap.labels.search import SearchEffort
from softmap.methods.policy import Checks
from softmap.proof.spins.steps import SpinSteps

__all__ = ["TUNING", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """The numbers that steer a run; the comment of each says its unit and origin."""

    # --- which stage is next, with a time limit ---------------------------------------------------
    first_slice: float = 0.05  # s, shortest slice; D35
    growth: float = 0.25  # slice per time of the stage; set-up of a new one per time so far; D35
    hope: float = 0.2  # gap expected to be closed in as long as nothing was; D35, D58
    share: float = 0.15  # least fraction of the time of each stage; D35, D58
    falling: float = 2.0  # factor of that share while labels improve; D79
    least_gain: float = 0.002  # fraction of the gap that counts as progress; D35
    # --- and without one --------------------------------------------------------------------------
    first_work: int = 200_000  # message entries of the first slice; they double; D35
    rounds: int = 4  # rounds of slices of a run without limits; D35
    label_rounds: int = 3  # rounds of labels if nothing proves any more; D35
    # --- closing a run ----------------------------------------------------------------------------
    closing_passes: float = 2.0  # passes: the bound takes one, the result about one; D67
    infeasible_seconds: float = 60.0  # s, most time of a search that proves infeasibility; D59
    # --- memory -----------------------------------------------------------------------------------
    memory_share: float = 0.4  # of the memory beside the relaxation, per stage; two keep theirs
    lazy_entries: int = 1 << 19  # λ with more entries is made when asked for; D43
    # --- passes -----------------------------------------------------------------------------------
    checks: Checks = field(default_factory=Checks)
    coarse_passes: int = 8  # least number of passes for coarse-to-fine to pay; D26
    proving: int = 50  # passes to prove labels that solve the LP, beside as many as solved it; D22
    interior_after: int = 5_000  # passes before an interior-point method; D11
    interior_size: int = 50_000  # most node states and pairs of such an LP; D11
    # --- first labels -----------------------------------------------------------------------------
    expanded_from: int = 2_000  # least number of variables for expansion moves; D31
    expanded_submodular: float = 0.9  # least fraction of submodular terms; D48
    expanded_rounds: int = 2  # rounds of expansions before the relaxation; D31
    expanded_share: float = 0.5  # of the time left, for expansions before the relaxation; D31
    obeyed_nodes: int = 20_000  # most nodes for a search for feasible labels; D33
    obeyed_share: float = 0.4  # of the time limit, for that search before the relaxation; D33
    obeyed_work: int = 10_000_000  # units of work of that search, without a time limit; D33
    constraint_bytes: int = 100  # B per table entry of the search for feasible labels; D33
    # --- elimination ------------------------------------------------------------------------------
    eliminated_variables: int = 3_000  # most variables of a model whose width is computed; D34
    eliminated_entries: float = 5e8  # most table entries of dynamic programming; D34
    eliminated_states: int = 20_000  # least node states to eliminate before passes; D34
    eliminated_per_state: float = 300.0  # most table entries per node state, likewise; D34
    # --- exact search -----------------------------------------------------------------------------
    searched_entries: int = 60_000_000  # most table entries of a searched model; D51
    searched_early: int = 6_000_000  # most table entries for a search before the LP is solved; D44
    searched_early_edges: int = 40_000  # most nodes and edges, likewise: 15 µs each at most; D51
    searched_passes: int = 20  # passes before the first search and other stages; D53
    searched_gap: float = 3e-3  # gap up to which larger models are searched without a limit; D35
    fresh: float = 0.02  # improvement of λ, in gaps, for which a search restarts; D35
    backtracks: int = 50  # least number of backtracks in a slice; D15
    backtrack_entries: int = 150  # table entries read per backtrack and unit of work; D44
    entry_bytes: int = 64  # B of a search per table entry; D51
    edge_bytes: int = 2_000  # B of a search per node and edge; D51
    copy_bytes: int = 400  # B of each further thread per node and edge; D51
    dp_entries: int = 20  # table entries of dynamic programming per unit of work; D34
    dp_bytes: int = 16  # B per table entry of dynamic programming; derived: two doubles
    # --- set-up of a search or of clusters, to compare stages before they have run ---------------
    setup: float = 60.0  # evaluations of the bound: 1e-7 s per table entry; D51
    # --- semidefinite bounds ----------------------------------------------------------------------
    spins_degree: float = 6.0  # mean degree above which it is computed; D69
    spins_most: int = 3_000  # most variables: a Cholesky factor of 72 MB; D69
    spins_import: float = 2.0  # s, least limit to import scipy for it, 0.2 to 0.6 s; D69
    spins_triangles: int = 600  # most variables with triangles; D69
    spin_sweeps: int = 200  # sweeps between two bounds without triangles; D69
    spin_steps: SpinSteps = field(default_factory=SpinSteps)
    spin_bytes: int = 120  # B per pair of spins or labels; derived: 15 matrices of doubles
    squares_most: int = 900  # most labels but one per variable: 0.3 s for their eigenvalues; D92
    square_steps: int = 10  # steps between two bounds of many labels; D92
    # --- permutations -----------------------------------------------------------------------------
    permuted_entries: float = 1e8  # most pairs of labels of two variables, each twice; D68
    permuted_bytes: int = 40  # B per such pair: costs as floats, as integers, and compiled; D68
    permuted_share: float = 0.8  # of the time, once the dual ascent has stalled; D68
    permuted_swaps: float = 0.5  # part of a slice for swaps while they improve labels; D68
    permuted_least: float = 0.1  # part of a slice for swaps at first and later; D68
    permuted_variables: int = 16  # most variables of a search in any case; D68
    permuted_gap: float = 0.05  # relative gap up to which larger ones are searched; D68
    permuted_work: float = 2_000.0  # passes over all pairs, of each search without a limit; D68
    permuted_logged: int = 16_000_000  # integers of 8 B of the proof of a search; D78
    # --- core-guided search -----------------------------------------------------------------------
    cores_entries: int = 4_000_000  # most table entries of a model for core-guided search; D70
    cores_bytes: int = 500  # B of a core-guided search per table entry; D70
    cores_logged: int = 32_000_000  # integers of 4 B of a proof by cores; D78
    conflict_entries: int = 1_000  # unit of work per conflict; D33
    first_labels: float = 0.4  # of the time, kept for the relaxation if there are no labels; D33
    # --- better labels ----------------------------------------------------------------------------
    annealed_entries: int = 30_000_000  # most table entries of an annealed model; D42
    moved_variables: int = 5_000  # most variables for exact search over small parts; D42
    least_part: float = 0.1  # least part of each label search in a slice; D42
    keep: float = 0.7  # weight of earlier successes of a label search; D42
    label_search: SearchEffort = field(default_factory=SearchEffort)
    label_heat: float = 3.0  # temperature, in √(cost scale × gap per variable); D10
    # --- tightening -------------------------------------------------------------------------------
    tightened_states: int = 5_000_000  # most node states of a tightened model; D47
    tightened_memory: float = 5.0  # memory before the first cluster, in that of the relaxation; D47
    cluster_bytes: int = 1_000  # B per joint state of a cluster; D47
    tighten_eta: float = 200.0  # η that selects clusters, in 1 / cost scale; D14
    tighten_passes: int = 10  # passes between two checks, and half of those at that η; D14
    tighten_growth: float = 2.0  # factor by which η rises; D14, D58
    tighten_settled: float = 0.1  # gain, in its smoothing, for η to rise; D14, D58
    tighten_coarse: float = 4.0  # gaps lost to smoothing while η rises twice as fast; D47, D58
    tighten_gain: float = 1e-4  # least gain of a cycle, in cost scales; D14
    tighten_smoothing: float = 0.2  # gaps lost to smoothing when clusters are added; D14
    tighten_unions: int = 4  # most unions per cluster; D47
    tighten_stalled: int = 8  # checks without progress when no cluster is left; D47
    tighten_forests: int = 4  # tree moves for new labels, and per pass for the best; D14


TUNING = Tuning()
"""The page that runs use by default."""
