"""The model: what it accepts and refuses, its energies, and the models derived from it."""

from __future__ import annotations

import copy
import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given

from softmap import core
from softmap.errors import ModelError, SoftmapError
from softmap.generators import grid_edges
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials import Potts, Projection, SharedTables, Tables, TruncatedLinear
from support.oracles import energy_by_hand
from support.strategies import build, dense, models, recipes

NAN, INF = np.nan, np.inf
UNARY = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.5], [1.0, 3.0, 0.0]])
EDGES = np.array([[0, 1], [1, 2]])
TABLES = np.arange(18.0).reshape(2, 3, 3)


def all_labellings(model: Model) -> np.ndarray:
    ranges = [range(int(d)) for d in model.network.num_labels[: model.network.num_variables]]
    return np.array(list(itertools.product(*ranges)))


def potts() -> Model:
    return Model(UNARY, EDGES, Potts([1.0, 2.0]))


# --- building -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unary", "edges", "pairwise"),
    [
        (UNARY.tolist(), EDGES.tolist(), TABLES.tolist()),
        (list(UNARY), list(map(tuple, EDGES)), list(TABLES)),
        (UNARY.astype(np.float32), EDGES.astype(np.uint8), Tables(TABLES)),
        (np.asfortranarray(UNARY), np.asfortranarray(EDGES), np.asfortranarray(TABLES)),
        (UNARY.astype(object), EDGES, tuple(TABLES)),
        (UNARY, None, [(EDGES, Tables(TABLES))]),
    ],
)
def test_the_same_model_in_many_forms(unary, edges, pairwise):
    model = Model(unary, edges, pairwise)
    assert model.fingerprint() == Model(UNARY, EDGES, TABLES).fingerprint()


def test_integers_are_costs_too():
    model = Model([[1, 2], [3, 4]], [[0, 1]], [[[5, 6], [7, 8]]], constant=9)
    assert model.energy([1, 0]) == 2 + 3 + 7 + 9


def test_a_model_mixes_families_and_forgets_empty_groups():
    mix = [([[0, 1]], Potts([1.0])), ([], Potts([])), ([[2, 1]], TruncatedLinear([3.0], 1.0))]
    model = Model(UNARY, None, mix)
    assert model.network.group_start.tolist() == [0, 1, 2]
    assert [(a, b, p.family) for a, b, p in model.network.groups()] == [
        (0, 1, "potts"),
        (1, 2, "truncated-linear"),
    ]
    assert model.edges.tolist() == [[0, 1], [2, 1]]
    assert model.energy([0, 1, 2]) == 0.0 + 0.0 + 0.0 + 1.0 + 3.0


def test_ragged_parallel_and_isolated():
    unary = [[1.0, 2.0], [3.0], [0.0, 10.0, 20.0], [7.0, 6.0]]
    tables = [[[1.0], [2.0]], [[10.0, 20.0]], [[0.5, 0.25]]]
    model = Model(unary, [[0, 1], [1, 0], [1, 0]], tables)
    assert (model.n, model.m, model.network.num_variables) == (4, 3, 4)
    assert model.num_labels.tolist() == [2, 1, 3, 2]
    assert model.network.graph.degree.tolist() == [3, 3, 0, 0]
    assert model.energy([1, 0, 2, 1]) == 2 + 3 + 20 + 6 + 2 + 20 + 0.25


def test_variables_without_edges():
    for edges, pairwise in (
        ([], []),
        (None, []),
        (np.zeros((0, 2)), Potts([])),
        ([], np.ones((0, 3, 3))),
    ):
        model = Model(UNARY, edges, pairwise, constant=1.0)
        assert (model.m, model.potentials, model.edges.shape) == (0, (), (0, 2))
        assert model.energy([0, 1, 0]) == 2.0
        assert len(list(model.network.tables())) == 0
        assert "no edges" in repr(model)
    assert Model([[5.0]], None, []).energy([0]) == 5.0


def test_offsets_and_slices_tell_where_things_live():
    unary = [[1.0, 2.0], [3.0], [0.0, 10.0, 20.0]]
    model = Model(unary, [[0, 2], [1, 2]], [np.zeros((2, 3)), np.zeros((1, 3))])
    assert model.network.node_offset.tolist() == [0, 2, 3, 6]
    assert model.network.half_offset.tolist() == [0, 2, 5, 6, 9]
    assert model.network.edge_offset.tolist() == [0, 6, 9]
    assert model.network.node_slice(2) == slice(3, 6)
    assert model.network.half_slice(3) == slice(6, 9)
    assert [model.network.unary_of(i).tolist() for i in range(3)] == unary
    assert [t.shape for t in model.network.tables()] == [(2, 3), (1, 3)]
    rows, cols = model.network.end_labels(0, 2)
    assert (rows.tolist(), cols.tolist()) == ([2, 1], [3, 3])
    with pytest.raises(ModelError, match=r"edge 2 is outside 0\.\.1"):
        model.network.table(2)


def test_arrays_of_the_right_type_are_shared_and_stay_writable_for_their_owner():
    unary, edges, weights = UNARY.copy(), EDGES.astype(np.int32), np.array([1.0, 2.0])
    model = Model(unary, edges, Potts(weights))
    assert np.shares_memory(model.unary, unary)
    assert np.shares_memory(model.edges, edges)
    assert np.shares_memory(model.potentials[0].weights, weights)
    assert unary.flags.writeable
    assert edges.flags.writeable
    assert np.shares_memory(Model(unary, edges, TABLES).potentials[0].tables, TABLES)
    assert model.network.nbytes == unary.nbytes + edges.nbytes + weights.nbytes


def test_equal_weights_truncations_and_label_counts_are_stored_once():
    weights = np.full(2, 0.5)
    model = Model(np.zeros((3, 2)), EDGES, TruncatedLinear(weights, 1.0))
    weights[0] = 7.0  # the model has a number of its own
    arrays = model.potentials[0].arrays()
    for array, expected in ((arrays["weights"], [0.5] * 2), (arrays["truncation"], [1.0] * 2)):
        assert array.tolist() == expected
        assert array.strides == (0,)
    assert model.num_labels.strides == (0,)
    assert model.num_labels.tolist() == [2] * 3
    assert model.network.nbytes == model.unary.nbytes + model.edges.nbytes + 16
    again = pickle.loads(pickle.dumps(model))
    assert again.fingerprint() == model.fingerprint()
    for array in (*arrays.values(), model.num_labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("d", [2, 8])
def test_building_takes_less_memory_than_the_model(d):
    edges = grid_edges(200, 200)
    unary, weights = np.zeros((40_000, d)), np.ones(len(edges))
    Model(UNARY, EDGES, Potts([1.0, 1.0]))  # imports are not counted
    tracemalloc.start()
    model = Model(unary, edges, Potts(weights))
    extra = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert extra < model.network.nbytes


def test_a_model_is_immutable():
    model = potts()
    with pytest.raises(AttributeError, match="immutable"):
        model.constant = 1.0
    arrays = [model.unary, model.num_labels, model.edges, model.network.group_start]
    arrays += [model.network.node_offset, model.network.half_offset, model.network.edge_offset]
    arrays += [a for p in model.potentials for a in p.arrays().values()]
    assert not any(a.flags.writeable for a in arrays)


@pytest.mark.parametrize(
    "twin", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy]
)
def test_a_model_can_be_copied_and_sent(twin):
    model = Model.from_factors([2, 2, 2], [((0, 1, 2), np.arange(8.0).reshape(2, 2, 2))])
    assert twin(model).fingerprint() == model.fingerprint()
    assert twin(model).energy([1, 1, 0]) == 6.0


def test_repr_says_what_it_is():
    assert repr(potts()) == "Model(3 variables, 3 labels, 2 edges, potts)"
    model = Model.from_factors([2] * 3, [((0, 1, 2), np.zeros((2, 2, 2)))])
    assert repr(model) == "Model(3 variables, 2 labels, 0 edges, no edges, 1 factor)"
    ragged = Model.from_factors([2, 3, 5], [])
    assert repr(ragged) == "Model(3 variables, 2 to 5 labels, 0 edges, no edges)"
    grid = Model.grid(np.zeros((4, 6, 3)), 1.0)
    assert repr(grid) == "Model(4 × 6 variables, 3 labels, 38 edges, potts)"


# --- bad input ----------------------------------------------------------------------------------

BAD = {
    "a model needs at least one variable": lambda: Model([], [], []),
    "at least one variable": lambda: Model(np.zeros((0, 3)), [], []),
    "variable 1 has no labels": lambda: Model([[0.0], []], [], []),
    "variable 0 has no labels": lambda: Model(np.zeros((2, 0)), [], []),
    "unary must have shape (variables, labels), not (3,)": lambda: Model(np.zeros(3), [], []),
    "not (2, 2, 2)": lambda: Model(np.zeros((2, 2, 2)), [], []),
    "unary[0] must be a list of costs, one per label": lambda: Model([1.0, 2.0], [], []),
    "unary[1] must be a list of costs": lambda: Model([[1.0], [[1.0]]], [], []),
    "unary must be an array or a list of arrays, not None": lambda: Model(None, [], []),
    "unary[0] must be real numbers": lambda: Model([["a", "b"]], [], []),
    "unary must be real numbers, not complex128": lambda: Model(np.ones((1, 2)) * 1j, [], []),
    "unary cost of variable 2, label 1, is nan": lambda: Model([[0], [0, 0], [0, NAN]], [], []),
    "unary cost of variable 1, label 0, is -inf; expected a number or +inf": lambda: Model(
        np.array([[0, 1], [-INF, 0]]), [], []
    ),
    "constant must be finite, not nan": lambda: Model(UNARY, [], [], constant=NAN),
    "constant must be a number, not 'x'": lambda: Model(UNARY, [], [], constant="x"),
    "edges must have shape (edges, 2), not (2, 3)": lambda: Model(
        UNARY, [[0, 1, 2], [0, 1, 2]], TABLES
    ),
    "edges must have shape (edges, 2), not (2,)": lambda: Model(UNARY, [0, 1], TABLES),
    "edges must be an array with rows of one length": lambda: Model(UNARY, [[0, 1], [1]], TABLES),
    "edges must be integers, not float64": lambda: Model(UNARY, EDGES * 1.0, TABLES),
    "edge 1 is (1, 3); variables are 0..2": lambda: Model(UNARY, [[0, 1], [1, 3]], TABLES),
    "edge 0 is (-1, 1)": lambda: Model(UNARY, [[-1, 1], [1, 2]], TABLES),
    "edge 1 joins variable 2 to itself; add its diagonal costs to the unary costs": lambda: Model(
        UNARY, [[0, 1], [2, 2]], TABLES
    ),
    "2 edges were given for Potts(1 edge)": lambda: Model(UNARY, EDGES, Potts([1.0])),
    "1 edges were given for Tables(2 edges)": lambda: Model(UNARY, EDGES[:1], TABLES),
    "0 edges were given for Potts(1 edge)": lambda: Model(UNARY, None, Potts([1.0])),
    "the table of edge 0 has shape (3, 3), but its endpoints have 2 and 2 labels": lambda: Model(
        UNARY[:, :2], EDGES, TABLES
    ),
    "SharedTables: the table of edge 1 has shape (1, 3)": lambda: Model(
        UNARY, EDGES, SharedTables([np.zeros((3, 3)), np.zeros((1, 3))], [0, 1])
    ),
    "table 1 has nan at (0, 2)": lambda: Model(UNARY, EDGES, np.where(TABLES == 11, NAN, TABLES)),
    "tables must have shape": lambda: Model(UNARY, EDGES, np.zeros((2, 3, 3, 3))),
    "table 0 must be real numbers": lambda: Model(UNARY, EDGES, [Potts([1.0]), Potts([1.0])]),
    "pass edges=None": lambda: Model(UNARY, EDGES, [(EDGES, Potts([1.0, 1.0]))]),
    "pairwise must be a list of (edges, potential) pairs": lambda: Model(UNARY, None, TABLES),
    "must be a list of (edges, potential) pairs": lambda: Model(UNARY, None, [(EDGES, 3)]),
    "label 3 of variable 1 is outside 0..2": lambda: potts().energy([0, 3, 0]),
    "label -1 of variable 2 is outside 0..2": lambda: potts().energy([[0, 0, 0], [0, 0, -1]]),
    "labels must have shape (3,) or (batch, 3), not (2,)": lambda: potts().energy([0, 1]),
    "not (1, 1, 3)": lambda: potts().energy([[[0, 1, 1]]]),
    "not ()": lambda: potts().energy(0),
    "labels must be integers, not float64": lambda: potts().energy([0.0, 1.0, 0.5]),
    "labels must be an array": lambda: potts().energy([[0, 1, 1], [0, 1]]),
    "evidence: variable 3 is outside 0..2": lambda: potts().condition({3: 0}),
    "evidence: variable -1 is outside": lambda: potts().condition({-1: 0}),
    "evidence: label 3 of variable 0 is outside 0..2": lambda: potts().condition({0: 3}),
    "evidence: 0.5 -> 1 must be a variable number": lambda: potts().condition({0.5: 1}),
    "evidence: 0 -> 'a' must be": lambda: potts().condition({0: "a"}),
    "shape (2, 2) does not fit the 3 variables of the model": lambda: potts().with_shape((2, 2)),
    "shape (-1, -3) does not fit": lambda: potts().with_shape((-1, -3)),
    "unary must hold 9 costs, not 8": lambda: potts().replace(unary=np.zeros(8)),
    "must have the label counts": lambda: potts().replace(unary=np.zeros((3, 2))),
    "variable 0, label 1, is nan": lambda: potts().replace(unary=[[0, NAN, 0]] * 3),
    "2 potentials for 1 groups": lambda: potts().replace(potentials=[Potts([1.0])] * 2),
    "holds 1 edges, but 2 were given": lambda: potts().replace(potentials=[Potts([1.0])]),
    "constant must be finite, not inf": lambda: potts().replace(constant=INF),
}


@pytest.mark.parametrize("text", BAD)
def test_bad_input_is_named_in_a_sentence(text):
    with pytest.raises(ModelError) as caught:
        BAD[text]()
    assert text in str(caught.value)
    assert isinstance(caught.value, SoftmapError)
    assert isinstance(caught.value, ValueError)


# --- energies -----------------------------------------------------------------------------------


@given(models())
def test_energy_is_the_sum_of_the_entries_for_one_and_for_a_batch(model):
    labellings = all_labellings(model)[:40]
    expected = [energy_by_hand(model, model.network.complete(x)) for x in labellings]
    np.testing.assert_allclose(model.energy(labellings), expected, rtol=1e-12, atol=1e-12)
    assert model.energy(labellings).shape == (len(labellings),)
    one = model.energy(labellings[-1].tolist())
    assert isinstance(one, float)
    np.testing.assert_allclose(one, expected[-1])
    assert model.energy(labellings[:0]).shape == (0,)


@given(models())
def test_every_family_equals_its_tables(model):
    twin = dense(model)
    labellings = all_labellings(model)
    np.testing.assert_allclose(twin.energy(labellings), model.energy(labellings))
    for ours, theirs in zip(model.network.tables(), twin.network.tables(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@given(models())
def test_has_forbidden_is_true_exactly_when_a_cost_is_infinite(model):
    entries = np.isposinf(model.unary).any()
    for first, last, potential in model.network.groups():
        if potential.family != "projection":
            tables = [model.network.table(e) for e in range(first, last)]
            entries |= any(np.isposinf(t).any() for t in tables)
            # an infinite Potts weight between single labels is never paid, yet counts
            entries |= potential.family == "potts" and np.isposinf(potential.weights).any()
    assert model.network.has_forbidden == entries
    if np.isposinf(model.energy(all_labellings(model))).any():
        assert model.network.has_forbidden


def test_a_projection_between_variables_is_a_hard_constraint():
    swapped = Projection([[1, 0]], [2])
    assert Model([[0.0, 0.0]] * 2, [[0, 1]], swapped).network.has_forbidden
    assert not Model([[0.0, 0.0], [0.0]], [[0, 1]], Projection([[0, 0]], [1])).network.has_forbidden
    factor = Model.from_factors([2] * 3, [((0, 1, 2), np.zeros((2, 2, 2)))])
    assert len(factor.network.auxiliaries) == 1
    assert not factor.network.has_forbidden  # its ties are structure


# --- derived models -----------------------------------------------------------------------------


@given(recipes())
def test_evidence_forbids_every_other_label(recipe):
    model = build(recipe)
    rng = np.random.default_rng(recipe.seed)
    fixed = {
        int(i): int(rng.integers(model.network.num_labels[i]))
        for i in rng.permutation(len(recipe.counts))[:2]
    }
    labellings = all_labellings(model)
    agree = np.all([labellings[:, i] == x for i, x in fixed.items()], axis=0)
    expected = np.where(agree, model.energy(labellings), np.inf)
    conditioned = model.condition(fixed)
    np.testing.assert_allclose(conditioned.energy(labellings), expected)
    assert conditioned.network.num_variables == model.network.num_variables
    assert model.condition({}).fingerprint() == model.fingerprint()


def test_evidence_may_be_numpy_integers_and_leaves_the_model_alone():
    model = potts()
    fixed = model.condition({np.int64(1): np.int32(2)})
    assert np.isposinf(fixed.network.unary_of(1)).tolist() == [True, True, False]
    assert not model.network.has_forbidden
    assert fixed.network.has_forbidden


def test_replacing_costs_leaves_no_stale_cache():
    model = potts().with_shape((1, 3))
    assert not model.network.has_forbidden
    lay, offset = layout(model.network), model.network.node_offset
    hard = model.replace(unary=[[INF, 0, 0]] * 3)
    assert hard.network.has_forbidden
    assert layout(hard.network) is not lay
    assert not hard.replace(unary=UNARY.ravel()).network.has_forbidden
    weighted = model.replace(potentials=[Potts([INF, 0.0])])
    assert weighted.network.has_forbidden
    out = np.empty(3)
    core.message(layout(weighted.network), 1, np.zeros(3), out, np.inf)
    assert out.tolist() == [0.0, 0.0, 0.0]
    core.message(layout(weighted.network), 1, np.array([0.0, INF, INF]), out, np.inf)
    assert out.tolist() == [0.0, INF, INF]
    assert layout(model.network) is lay
    for new in (hard, weighted):
        assert new.shape == (1, 3)
        assert new.edges is model.edges
        assert new.network.graph is model.network.graph
        assert new.network.node_offset is offset


def test_replacing_shares_the_rest_and_changes_energies():
    model = potts()
    shifted = model.replace(constant=5.0)
    assert shifted.unary is model.unary
    assert shifted.energy([0, 1, 2]) == model.energy([0, 1, 2]) + 5.0
    free = model.replace(potentials=[TruncatedLinear([0.0, 0.0], 1.0)])
    assert free.energy([0, 1, 2]) == 0.0
    doubled = model.replace(unary=2 * UNARY, potentials=[p.scaled(2.0) for p in model.potentials])
    assert doubled.energy([2, 1, 0]) == 2 * model.energy([2, 1, 0])


def test_a_shape_is_for_grids():
    model = Model(np.zeros((6, 2)), [], []).with_shape((2, 3))
    assert model.shape == (2, 3)
    assert model.fingerprint() == Model(np.zeros((6, 2)), [], []).fingerprint()


# --- fingerprints -------------------------------------------------------------------------------


def test_the_fingerprint_changes_with_everything():
    factors = [((0, 1, 2), np.arange(8.0).reshape(2, 2, 2)), ((2, 1), np.eye(2))]
    variants = [
        potts(),
        Model(UNARY + np.eye(3) * 1e-12, EDGES, Potts([1.0, 2.0])),
        Model(UNARY.reshape(1, 9), [], []),
        Model(UNARY, [], []),
        Model(UNARY, EDGES[:, ::-1], Potts([1.0, 2.0])),
        Model(UNARY, EDGES, Potts([1.0, 2.5])),
        Model(UNARY, EDGES, Potts([1.0, 2.0]), constant=1.0),
        Model(UNARY, EDGES, TruncatedLinear([1.0, 2.0], 1.0)),
        Model(UNARY, EDGES, TruncatedLinear([1.0, 2.0], [1.0, 2.0])),
        Model(UNARY, EDGES, TABLES),
        Model(UNARY, EDGES, TABLES.transpose(0, 2, 1)),
        Model(UNARY, EDGES, SharedTables(TABLES, [0, 1])),
        Model(UNARY, EDGES, SharedTables(TABLES, [1, 0])),
        Model(UNARY, EDGES, SharedTables(TABLES, [0, 1], [1.0, 2.0])),
        Model(UNARY, None, [(EDGES[:1], Potts([1.0])), (EDGES[1:], Potts([2.0]))]),
        Model.from_factors([2, 2, 2], factors),
        Model.from_factors([2, 2, 2], [((1, 0, 2), factors[0][1]), factors[1]]),
    ]
    assert len({m.fingerprint() for m in variants}) == len(variants)
    assert potts().fingerprint() == potts().fingerprint()
