"""Passes as a wavefront of bands: every band waits for what it reads, and threads change no bit."""

import numpy as np
import pytest

from softmap import core, generators
from softmap.methods.sweeps.chains import Chains
from softmap.methods.sweeps.planning import Schedule, aligned
from softmap.relaxation.consistency import tighten

MODELS = {
    "potts": lambda: generators.potts_grid(60, 90, 4),
    "tables": lambda: generators.random_grid(70, 70, 3),
    "linear": lambda: generators.stereo_grid(48, 160, 5),
    "random graph": lambda: generators.erdos_renyi(3000, 3),
    "uneven": lambda: generators.ragged_constrained(3000),
}


def bands_of_nodes(plan: Schedule, levels: int) -> np.ndarray:
    """The unit (level · bands + band) of each node, by the rows of the plan."""
    unit = np.empty(len(plan.nodes), dtype=int)
    for level in range(levels):
        rows = plan.rows[plan.row_start[level] : plan.row_start[level + 1]]
        for band in range(plan.bands):
            cuts = [len(rows) * b // plan.bands for b in (band, band + 1)]
            for row in rows[cuts[0] : cuts[1]]:
                first, count = row["first"], row["nodes"]
                unit[plan.nodes[first : first + count]] = level * plan.bands + band
    return unit


def units_of_blocks(start: np.ndarray, listed: np.ndarray) -> np.ndarray:
    unit = np.empty(len(listed), dtype=int)
    unit[listed] = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return unit


def greedy_times(after: np.ndarray, levels: list[int], bands: int, order: list[int]) -> np.ndarray:
    """When each unit does its two steps if the first band of `order` that may advance does so."""
    sets = after.reshape(-1, bands, 2)
    times, done, now = np.full(sets.shape, -1), [0] * bands, 0
    while min(done) < 2 * len(levels):
        for band in order:
            step = done[band]
            if step == 2 * len(levels):
                continue
            needed = int(sets[levels[step // 2], band, step % 2])
            if all(done[b] >= step for b in range(bands) if needed >> b & 1):
                times[levels[step // 2], band, step % 2] = now
                done[band], now = step + 1, now + 1
                break
        else:
            raise AssertionError("no band may advance")
    return times.reshape(-1, 2)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("forward", [True, False])
def test_no_order_that_the_sets_allow_reads_a_message_too_early(name, forward):
    model = tighten(MODELS[name]())
    plan = Chains(model, 1).plan
    levels = len(plan.row_start) - 1
    assert plan.bands > 1
    start, listed, after = (
        (plan.forward_start, plan.forward, plan.forward_after)
        if forward
        else (plan.backward_start, plan.backward, plan.backward_after)
    )
    node, block = bands_of_nodes(plan, levels), units_of_blocks(start, listed)
    sequence = list(range(levels)) if forward else list(range(levels))[::-1]
    bands = list(range(plan.bands))
    for order in (bands, bands[::-1], bands[1::2] + bands[::2]):
        times = greedy_times(after, sequence, plan.bands, order)
        for b, row in enumerate(plan.blocks):
            lanes = slice(row["lane"], row["lane"] + max(1, row["count"]))
            side = int(row["orientation"]) ^ (not forward)
            for e in plan.edge[lanes]:
                sender, receiver = model.edges[e, side], model.edges[e, 1 - side]
                assert times[node[sender], 0] < times[block[b], 1] < times[node[receiver], 0]


@pytest.mark.threads
@pytest.mark.parametrize("name", MODELS)
def test_any_number_of_threads_gives_the_same_bits(name):
    model = tighten(MODELS[name]())
    chains, found = Chains(model, 1), set()
    plan, loops = chains.plan, chains.loops
    for threads in (1, 2, 3, 8, 16):
        state, theta = chains.start(None), aligned(plan.cost_size)
        dot = np.zeros(len(plan.blocks))
        given = core.ChainArrays(state.msg, state.drift, theta, state.shift, dot, state.clock)
        core.passes(loops.layout, plan.native, given, 6, 20.0, True, threads)
        core.lowered_half(loops.layout, plan.native, given, threads)
        bound = core.chain_bound(plan.native, theta, state.shift, 0.5, threads)
        arrays = (state.msg, state.drift, state.clock, theta, state.shift)
        found.add((bound, *(array.tobytes() for array in arrays)))
    assert len(found) == 1
