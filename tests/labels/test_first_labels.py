"""First labels: one backward pass of messages, then sequential decoding."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.labels import cheapest, first_labels


def random_model(seed, *, hard=0.0):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    sizes = rng.integers(1, 5, size=n)
    pairs = [p for p in itertools.combinations(range(n), 2) if rng.random() < 0.5] or [(0, 1)]
    pairs = [p if rng.random() < 0.5 else p[::-1] for p in pairs]
    tables = [rng.normal(size=(sizes[i], sizes[j])) for i, j in pairs]
    for table in tables:
        table[rng.random(table.shape) < hard] = np.inf
    return softmap.Model([rng.normal(size=d) for d in sizes], pairs, tables)


def twin(model):
    """The labels of `first_labels`, in numpy and single precision for messages."""
    n = model.n
    tables = {}
    for first, last, potential in model.network.groups():
        for e in range(first, last):
            i, j = (int(v) for v in model.edges[e])
            x, y = np.indices((model.num_labels[i], model.num_labels[j]))
            tables[e] = (i, j, potential.value(np.full(x.shape, e - first), x, y))
    toward = {i: [] for i in range(n)}  # messages from later nodes
    before = {i: [] for i in range(n)}  # (earlier node, costs by its label and the own label)
    for i, j, table in tables.values():
        before[max(i, j)].append((min(i, j), table if i < j else table.T))
    for i in reversed(range(n)):
        belief = model.network.unary_of(i) + sum((m.astype(float) for m in toward[i]), np.zeros(1))
        for j, table in before[i]:
            rest = (belief - belief.min()) / len(before[i])
            toward[j].append((table + rest).min(axis=1).astype(np.float32))
    labels = np.zeros(n, dtype=np.int64)
    for i in range(n):
        belief = model.network.unary_of(i) + sum((m.astype(float) for m in toward[i]), np.zeros(1))
        labels[i] = np.argmin(belief + sum((t[labels[j]] for j, t in before[i]), np.zeros(1)))
    return labels


@given(st.integers(0, 10**6))
def test_labels_are_those_of_a_plain_implementation(seed):
    model = random_model(seed)
    assert first_labels(model.network).tolist() == twin(model).tolist()


@given(st.integers(0, 10**6))
def test_trees_numbered_from_their_root_are_solved(seed):
    rng = np.random.default_rng(seed)
    edges = [(int(rng.integers(0, i)), i) for i in range(1, 6)]
    model = softmap.Model(rng.normal(size=(6, 3)), edges, rng.normal(size=(5, 3, 3)))
    best = min(model.energy(np.array(list(itertools.product(range(3), repeat=6)))))
    assert model.energy(first_labels(model.network)) == pytest.approx(best, abs=1e-5)


@given(st.integers(0, 10**6))
def test_hard_constraints_give_labels_too(seed):
    model = random_model(seed, hard=0.4)
    labels = first_labels(model.network)
    assert ((labels >= 0) & (labels < model.num_labels)).all()


def test_without_time_labels_are_the_cheapest_ones():
    model = softmap.generators.stereo_grid(60, 60, 8, seed=1)
    hasty = first_labels(model.network, deadline=core.Deadline(0.0))
    np.testing.assert_array_equal(hasty, cheapest(model.network, model.unary))
    assert model.energy(first_labels(model.network)) < model.energy(hasty)


def test_once_the_time_is_up_labels_are_the_cheapest_ones():
    model = softmap.generators.potts_grid(30, 40, 4, seed=3)
    ended = core.Deadline()
    ended.stop()
    labels = first_labels(model.network, deadline=ended)
    np.testing.assert_array_equal(labels, cheapest(model.network, model.unary))
