"""Penalties that exceed all other costs: the law that they obey, and runs on such models."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given

import softmap
from softmap.labels.penalties import dominating_penalty
from softmap.model import Model
from support.oracles import brute_force
from support.strategies import models, seeds


def _terms(model, labels):
    """What each table costs above its least entry, by hand."""
    x = model.network.complete(np.array(labels))
    blocks = [model.unary[model.network.node_slice(i)] for i in range(model.n)]
    terms = [block[x[i]] - np.min(block) for i, block in enumerate(blocks)]
    for e, (i, j) in enumerate(model.edges.tolist()):
        if max(i, j) < model.network.num_variables:
            table = model.network.table(e)
            terms.append(table[x[i], x[j]] - np.min(table))
    return terms


@given(models(hard=False, max_n=4))
def test_labels_without_penalties_cost_less_than_all_others(model):
    cost = dominating_penalty(model.network)
    if cost is None:
        return
    counts = model.num_labels[: model.network.num_variables].tolist()
    light, heavy = [], []
    for labels in itertools.product(*map(range, counts)):
        pays = max(_terms(model, labels)) >= cost * (1 - 1e-12)
        (heavy if pays else light).append(model.energy(np.array(labels)))
    if light and heavy:
        assert max(light) < min(heavy) + 1e-9


def _colouring(seed, count, colours, penalty):
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations(range(count), 2))
    pairs = [pair for pair in pairs if rng.random() < 0.8] or pairs[:1]
    table = np.where(np.eye(colours) > 0, penalty, 0.0)
    return Model(rng.random((count, colours)), pairs, [table] * len(pairs))


@given(seeds)
def test_runs_on_penalties_keep_the_optimum_and_say_what_they_know(seed):
    model = _colouring(seed, 5, 3, 100.0)
    assert dominating_penalty(model.network) == 100.0
    least, _ = brute_force(model)
    result = softmap.solve(model)
    assert result.energy == pytest.approx(least, abs=1e-9)
    assert result.bound <= least + 1e-9
    assert result.penalty.cost == 100.0
    assert result.penalty.verdict == ("avoided" if least < 100.0 else "needed")


def test_the_certificate_says_so():
    from softmap.views.words import certificate_sentences

    said = " ".join(certificate_sentences(softmap.solve(_colouring(0, 4, 4, 100.0))))
    assert "Costs of 100 and more exceed all others together" in said
    assert "the labelling satisfies them" in said
    said = " ".join(certificate_sentences(softmap.solve(_colouring(0, 6, 2, 100.0))))
    assert "no labelling satisfies them all" in said


def test_units_change_nothing():
    model = _colouring(1, 5, 3, 100.0)
    scaled = model.replace(
        unary=model.unary * 2.0**-40, potentials=[p.scaled(2.0**-40) for p in model.potentials]
    )
    assert softmap.solve(scaled).penalty.cost == 100.0 * 2.0**-40


def test_ordinary_models_have_no_penalties():
    assert dominating_penalty(softmap.generators.potts_grid(12, 12, 4, seed=1).network) is None
    assert dominating_penalty(softmap.generators.random_grid(6, 6, 3, seed=1).network) is None
    assert softmap.solve(softmap.generators.random_tree(20, seed=1)).penalty is None
