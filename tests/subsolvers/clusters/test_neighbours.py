"""What the rest of the package makes of tightened models."""

import numpy as np
import pytest

import softmap
from softmap import lp
from softmap.labels import icm
from softmap.model.model import raised
from softmap.subsolvers.clusters.regions import build
from support.oracles import brute_force
from support.small_models import random_clusters, random_labels, random_model
from support.strategies import FAMILIES

CASES = [(family, seed) for family in FAMILIES for seed in range(6)]


@pytest.mark.parametrize(("family", "seed"), CASES)
def test_a_tightened_model_can_be_solved_like_any_other(family, seed):
    model = random_model(family, seed)
    tight = raised(build(model.network, random_clusters(model, seed)).model)
    result = softmap.solve(tight, threads=1, max_work=100_000, goal="lp")
    value, optimum = lp.solve(tight).value, brute_force(model)[0]
    assert result.bound <= value + 1e-6
    assert value - 1e-6 <= result.primal
    assert optimum - 1e-9 <= result.energy == tight.energy(result.labels)


@pytest.mark.parametrize(("family", "seed"), CASES)
def test_icm_never_raises_the_energy_of_a_tightened_model(family, seed):
    model = random_model(family, seed)
    tight = build(model.network, random_clusters(model, seed)).model
    labels = random_labels(model, seed)
    found = icm(tight, labels)
    assert tight.energy(found) <= tight.energy(labels) or np.isinf(tight.energy(labels))
