"""The numbers that steer a run, on one page: each with its unit and its origin.

A run takes them from `Options.tuning`, so that tests and benchmarks hand another page to a run:
`softmap.solve(model, tuning=Tuning(first_slice=0.1))`. "D12" is decision 12 in docs/decisions;
"sweep" is `python -m benchmarks.tuning`, which halves and doubles each number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from softmap.methods.policy import Annealing, Checks

__all__ = ["TUNING", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """The numbers that steer a run; the comment of each says its unit and origin."""

    # --- which stage is next, with a time limit ---------------------------------------------------
    first_slice: float = 0.05  # s, shortest slice; D35
    growth: float = 0.25  # slice per time of the stage; set-up of a new one per time so far; D35
    proofs_hope: float = 0.2  # gap expected to be closed in as long as nothing was; D35
    others_hope: float = 0.05  # the same, of passes and labels; D35
    proofs_share: float = 0.15  # least fraction of the time of a stage that proves; D35
    labels_share: float = 0.3  # least fraction of the time of labels; D35
    least_gain: float = 0.002  # fraction of the gap that counts as progress; D35
    least_fall: float = 1e-4  # relative fall of the energy that counts as progress of labels; D35
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
    proving: int = 2  # passes to prove labels that solve the LP, per pass that solved it; D22
    proving_least: int = 100  # least number of passes in that case; D22
    interior_after: int = 5_000  # passes before an interior-point method; D11
    interior_size: int = 50_000  # most node states and pairs of such an LP; D11
    # --- first labels -----------------------------------------------------------------------------
    expanded_from: int = 2_000  # least number of variables for expansion moves; D31
    expanded_labels: int = 256  # most labels of which each is expanded; D31
    expanded_submodular: float = 0.9  # least fraction of submodular terms; D48
    expanded_rounds: int = 2  # rounds of expansions before the relaxation; D31
    expanded_share: float = 0.5  # of the time left, for expansions before the relaxation; D31
    expanded_messages: float = 0.4  # of that, for the messages of first labels; D31
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
    cooled: int = 200  # work of annealing before a search, per table entry; D44
    cooled_most: int = 800_000  # most such work, 4 ms; D44
    entry_bytes: int = 64  # B of a search per table entry; D51
    edge_bytes: int = 2_000  # B of a search per node and edge; D51
    copy_bytes: int = 400  # B of each further thread per node and edge; D51
    copy_share: float = 0.25  # of the memory left, for further threads; D51
    dp_entries: int = 20  # table entries of dynamic programming per unit of work; D34
    dp_bytes: int = 16  # B per table entry of dynamic programming; derived: two doubles
    loose_from: int = 300  # least number of variables for a search of the loose part; D15
    loose_part: float = 0.3  # largest loose part, of the variables; D15
    # --- core-guided search -----------------------------------------------------------------------
    cores_entries: int = 4_000_000  # most table entries of a model for core-guided search; D70
    cores_bytes: int = 500  # B of a core-guided search per table entry; D70
    conflict_entries: int = 1_000  # unit of work per conflict; D33
    # --- set-up, to compare stages before they have run -------------------------------------------
    setup_search: float = 60.0  # evaluations of the bound: 1e-7 s per table entry; D51
    first_labels: float = 0.4  # of the time, kept for the relaxation if there are no labels; D33
    setup_cores: float = 10.0  # evaluations of the bound; D70
    setup_partial: float = 10.0  # evaluations of the bound; sweep
    setup_tighten: float = 200.0  # evaluations of the bound; sweep
    # --- better labels ----------------------------------------------------------------------------
    annealed_entries: int = 4_000_000  # most table entries of an annealed model; D42
    moved_entries: int = 30_000_000  # most table entries for exact search over small parts; D42
    moved_variables: int = 5_000  # most variables, likewise; D42
    least_part: float = 0.1  # least part of each label search in a slice; D42
    keep: float = 0.7  # weight of earlier successes of a label search; D42
    label_heat: float = 3.0  # temperature, in √(cost scale × gap per variable); D10
    # --- tightening -------------------------------------------------------------------------------
    tightened_states: int = 5_000_000  # most node states of a tightened model; D47
    tightened_memory: float = 5.0  # memory before the first cluster, in that of the relaxation; D47
    cluster_bytes: int = 1_000  # B per joint state of a cluster; D47
    tighten_annealing: Annealing = field(
        default_factory=lambda: Annealing(first=30.0, growth=2.0, settled=0.1)  # D14
    )
    tighten_eta: float = 200.0  # η that selects clusters, in 1 / cost scale; D14
    tighten_warm: int = 20  # passes at that η; D14
    tighten_passes: int = 10  # passes between two checks; D14
    tighten_gain: float = 1e-4  # least gain of a cycle, in cost scales; D14
    tighten_gain_eta: float = 0.05  # or in 1 / η, if that is less; D14
    tighten_smoothing: float = 0.2  # gaps lost to smoothing when clusters are added; D14
    tighten_smoothing_unions: float = 0.02  # the same for unions of clusters; D47
    tighten_unions: int = 4  # most unions per cluster; D47
    tighten_coarse: float = 4.0  # gaps lost to smoothing while η rises twice as fast; D47
    tighten_progress: float = 1e-3  # gaps that count as progress of a check; D47
    tighten_stalled: int = 8  # checks without progress when no cluster is left; D47
    tighten_last: int = 100  # checks without progress in any case; D47
    tighten_forests: int = 4  # tree moves for new labels, and per pass for the best; D14
    tighten_rarely: int = 10  # most checks without labels between two with labels; D47


TUNING = Tuning()
"""The page that runs use by default."""
