"""Tables of a large model are computed in blocks, and stop at a deadline."""

from __future__ import annotations

import numpy as np
import pytest

from softmap import core, generators
from softmap.relaxation import flat
from softmap.run.budget import Budget
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Share
from softmap.subsolvers.search.search import Search
from support.stage_runs import begun


@pytest.mark.parametrize("block", [1, 40])
def test_blocks_change_no_bit(monkeypatch, block):
    model = generators.erdos_renyi(20, 4, seed=3)
    whole = flat.flatten(model.network).tables
    monkeypatch.setattr(flat, "BLOCK", block)
    assert flat.flatten(model.network).tables.tobytes() == whole.tobytes()


def test_tables_stop_at_a_deadline():
    model = generators.erdos_renyi(20, 4, seed=3)
    with pytest.raises(core.OutOfTime):
        flat.flatten(model.network, core.Deadline(0.0))
    assert flat.flatten(model.network, core.Deadline(60.0)).tables.size == model.network.edge_size


def test_a_search_without_time_for_its_tables_does_nothing():
    model = generators.erdos_renyi(20, 4, seed=3)
    best = begun(model, np.zeros(model.network.half_size), np.zeros(model.n, int))
    before = best.values
    search = Search(Problem.plain(model.network), Options(time_limit=10.0))
    outcome = search(best, Share(Budget(time_limit=0.0)))
    assert not outcome.active
    assert not outcome.ran
    assert best.values == before
