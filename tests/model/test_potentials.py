"""Every verb of every family against its dense table, and a family made of five verbs only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import logsumexp

import softmap
from softmap import core, lp
from softmap import labels as rounding
from softmap.errors import ModelError
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials import FAMILIES as KNOWN
from softmap.model.potentials import (
    Potential,
    Potts,
    Projection,
    SharedTables,
    Tables,
    TruncatedLinear,
    TruncatedQuadratic,
)
from softmap.relaxation.consistency import arc_consistency
from support.families import FAMILIES, Ends, Numbers, single
from support.numpy_twins import hard_message, soft_message
from support.oracles import brute_force
from support.strategies import seeds

# Three edges with parameters of their own each; all ends have 3 and 4 labels.
GROUPS: dict[str, Potential] = {
    name: family.make(Numbers(np.random.default_rng(7)), Ends([3] * 3, [4] * 3))
    for name, family in FAMILIES.items()
}
SHAPED = [name for name, group in GROUPS.items() if "flat" in group.arrays()]


def edge(name: str, seed: int) -> tuple[Potential, int, int]:
    """A group of one edge from the registry, and its label counts."""
    rng = np.random.default_rng(seed)
    rows, cols = (int(d) for d in rng.integers(1, 6, 2))
    return single(name, rng, rows, cols, bool(rng.random() < 0.5)), rows, cols


def tables_of(group: Potential, rows: int = 3, cols: int = 4) -> np.ndarray:
    return np.array([group.as_table(k, rows, cols) for k in range(len(group))])


def test_the_registry_holds_every_family():
    assert {name: type(p) for name, p in GROUPS.items()} == KNOWN


# --- examples of the costs themselves -----------------------------------------------------------


def test_potts_charges_differing_labels():
    assert Potts([2.0]).as_table(0, 2, 3).tolist() == [[0, 2, 2], [2, 0, 2]]


def test_truncated_linear_charges_the_distance_up_to_a_cut():
    table = TruncatedLinear([2.0], 1.5).as_table(0, 3, 3)
    assert table.tolist() == [[0, 2, 3], [2, 0, 2], [3, 2, 0]]


def test_truncated_quadratic_charges_the_square_up_to_a_cut():
    table = TruncatedQuadratic([2.0], [3.0]).as_table(0, 3, 3)
    assert table.tolist() == [[0, 2, 6], [2, 0, 2], [6, 2, 0]]
    assert TruncatedQuadratic([1.0]).as_table(0, 1, 4).tolist() == [[0, 1, 4, 9]]


def test_shared_tables_are_weighted():
    shared = SharedTables([[[1.0, 2.0]], [[3.0, np.inf]]], [1, 0], [2.0, 3.0])
    assert shared.as_table(0, 1, 2).tolist() == [[6.0, np.inf]]
    assert shared.as_table(1, 1, 2).tolist() == [[3.0, 6.0]]
    assert SharedTables([[[1.0]]], [0, 0]).weights.tolist() == [1.0, 1.0]


def test_projection_ties_a_joint_state_to_its_member():
    table = Projection([[0, 0, 1]], [2]).as_table(0, 3, 2)
    inf = np.inf
    assert table.tolist() == [[0, inf], [0, inf], [inf, 0]]


# --- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GROUPS)
def test_value_broadcasts_and_equals_the_tables(name):
    group = GROUPS[name]
    tables = tables_of(group)
    assert tables.shape == (3, 3, 4)
    k, x, y = np.ogrid[:3, :3, :4]
    np.testing.assert_array_equal(group.value(k, x, y), tables)
    batch = group.value(np.arange(3), np.array([[0, 1, 2], [2, 2, 0]]), np.array([3, 2, 0]))
    assert batch.tolist() == [
        [tables[0, 0, 3], tables[1, 1, 2], tables[2, 2, 0]],
        [tables[0, 2, 3], tables[1, 2, 2], tables[2, 0, 0]],
    ]
    np.testing.assert_array_equal(group.stack([2, 0], 3, 4), tables[[2, 0]])


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=seeds)
def test_costs_are_those_of_exact_arithmetic(name, seed):
    potential, rows, cols = edge(name, seed)
    for (x, y), cost in np.ndenumerate(potential.as_table(0, rows, cols)):
        exact = FAMILIES[name].exact(potential, 0, x, y)
        assert cost == np.inf if exact is None else float(exact) == cost


@pytest.mark.parametrize("name", GROUPS)
def test_take_and_scaled_act_on_the_tables(name):
    group, tables = GROUPS[name], tables_of(GROUPS[name])
    for index in ([2, 0, 2, 1], [1], np.array([True, False, True])):
        taken = group.take(index)
        assert type(taken) is type(group)
        np.testing.assert_array_equal(tables_of(taken), tables[index])
    assert len(group.take([])) == 0
    np.testing.assert_allclose(tables_of(group.scaled(2.5)), 2.5 * tables)


@pytest.mark.parametrize("name", GROUPS)
def test_arrays_are_read_only_and_define_the_group(name):
    group = GROUPS[name]
    assert len(group) == 3
    assert "3 edges" in repr(group)
    arrays = group.arrays()
    for array in arrays.values():
        assert isinstance(array, np.ndarray)
        assert not array.flags.writeable
    edges = [[0, 1]] * 3

    def fingerprint(group: Potential) -> str:
        return Model([np.zeros(3), np.zeros(4)], edges, group).fingerprint()

    assert fingerprint(group) == fingerprint(group.take([0, 1, 2]))
    assert fingerprint(group) != fingerprint(group.take([1, 2, 0]))


@pytest.mark.parametrize("name", GROUPS)
def test_check_wants_one_entry_per_edge(name):
    four = np.array([3, 3, 3, 3]), np.array([4, 4, 4, 4])
    GROUPS[name].check(four[0][:3], four[1][:3])
    with pytest.raises(ModelError, match="holds 3 edges, but 4 were given"):
        GROUPS[name].check(*four)


@pytest.mark.parametrize("name", SHAPED)
def test_check_wants_the_shapes_of_the_ends(name):
    with pytest.raises(ModelError, match=r"edge 1 .*3.*4.* but its endpoints have 3 and 5"):
        GROUPS[name].check(np.array([3, 3, 3]), np.array([4, 5, 4]))


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=seeds, side=st.integers(0, 1), power=st.floats(-3, 6))
def test_messages_are_soft_and_hard_minima_over_the_table(name, seed, side, power):
    potential, rows, cols = edge(name, seed)
    table, eta = potential.as_table(0, rows, cols), 10.0**power
    incoming = table if side == 0 else table.T
    rng = np.random.default_rng(seed)
    a = rng.normal(size=incoming.shape[1])
    a[rng.random(len(a)) < 0.2] = np.inf
    total = incoming + a
    hard = hard_message(potential, 0, side, a, len(total))
    soft = soft_message(potential, 0, side, a, eta, len(total))
    np.testing.assert_array_equal(hard, total.min(axis=1))
    expected = -logsumexp(-eta * total, axis=1) / eta
    np.testing.assert_allclose(soft, expected, rtol=1e-12, atol=1e-12 * (1 + 1 / eta))
    finite = np.isfinite(hard)
    np.testing.assert_array_equal(finite, np.isfinite(soft))
    below = hard[finite] - soft[finite]
    assert (below >= -1e-9).all()
    assert (below <= np.log(len(a)) / eta + 1e-9).all()


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=seeds)
def test_extremes_are_those_of_the_finite_entries(name, seed):
    potential, rows, cols = edge(name, seed)
    table = potential.as_table(0, rows, cols)
    finite = table[np.isfinite(table)] if np.isfinite(table).any() else np.zeros(1)
    low, high = potential.extremes(np.array([rows]), np.array([cols]))
    np.testing.assert_allclose([low[0], high[0]], [finite.min(), finite.max()])
    default = Potential.extremes(potential, np.array([rows]), np.array([cols]))
    np.testing.assert_allclose(default, (low, high))


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=seeds)
def test_has_forbidden_says_whether_constraints_can_bite(name, seed):
    potential, rows, cols = edge(name, seed)
    assume(rows > 1 and cols > 1)
    excluded = np.isposinf(potential.as_table(0, rows, cols))
    if isinstance(potential, Projection):  # its own ties are structure
        assert potential.has_forbidden() == excluded.all(axis=0).any()
    else:
        assert potential.has_forbidden() == excluded.any()


def test_kernels_read_a_mix_of_all_families():
    ends = [np.zeros(3), np.zeros(4)]
    ragged = [np.arange(12.0).reshape(4, 3), np.arange(16.0).reshape(4, 4), np.ones((3, 4))]
    more = [([[1, 0], [1, 2], [0, 2]], Tables(ragged)), ([[0, 2]], GROUPS["potts"].take([0]))]
    model = Model([*ends, np.zeros(4)], None, [([[0, 1]] * 3, p) for p in GROUPS.values()] + more)
    lay = layout(model.network)
    assert lay is layout(model.network)
    for e, table in enumerate(model.network.tables()):
        for x in range(table.shape[0]):
            a = np.where(np.arange(table.shape[0]) == x, 0.0, np.inf)
            out = np.empty(table.shape[1])
            core.message(lay, 2 * e + 1, a, out, np.inf)
            np.testing.assert_array_equal(out, table[x])


# --- what is refused ----------------------------------------------------------------------------

NAN, INF = np.nan, np.inf
BAD = {
    "Potts weights[1] is nan": lambda: Potts([0.0, NAN]),
    "Potts weights[0] is -inf": lambda: Potts([-INF]),
    "Potts weights must be one number per edge": lambda: Potts([[1.0]]),
    "Potts weights must be real numbers": lambda: Potts(["a"]),
    "must be finite; use Tables": lambda: TruncatedLinear([INF], 1.0),
    "truncation must not be negative, found -1.0": lambda: TruncatedLinear([1.0], -1.0),
    "TruncatedQuadratic: 2 truncations for 3 edges": lambda: TruncatedQuadratic([1] * 3, [1, 2]),
    "TruncatedLinear truncation[0] is nan": lambda: TruncatedLinear([1.0], NAN),
    "table 1 has nan at (0, 1)": lambda: Tables([[[0.0]], [[0.0, NAN]]]),
    "table 2 has -inf at (1, 0)": lambda: Tables(
        np.where(np.arange(12).reshape(3, 2, 2) == 10, -INF, 0.0)
    ),
    "table 0 must be two-dimensional": lambda: Tables([[1.0, 2.0]]),
    "tables must have shape (edges, d, d'), not (2, 2)": lambda: Tables(np.zeros((2, 2))),
    "table 0 must be an array with rows of one length": lambda: Tables([[[0, 1], [0]]]),
    "tables must be an array or a list of them, not 'abc'": lambda: Tables("abc"),
    "tables must be an array or a list of them, not 3": lambda: Tables(3),
    "tables must be real numbers, not complex128": lambda: Tables(np.zeros((1, 2, 2), complex)),
    "SharedTables: index must lie in 0..0": lambda: SharedTables([[[0.0]]], [1]),
    "SharedTables: index must be integers, not float64": lambda: SharedTables([[[0.0]]], [0.5]),
    "index must be a list, not of shape (1, 1)": lambda: SharedTables([[[0.0]]], [[0]]),
    "SharedTables: 1 weights for 2 edges": lambda: SharedTables([[[0.0]]], [0, 0], 1.0),
    "weights must be finite and not negative": lambda: SharedTables([[[0.0]]], [0], [-1.0]),
    "edge 1 has weight 0 but a table with": lambda: SharedTables([[[INF]]], [0, 0], [1.0, 0.0]),
    "map 0 must be a non-empty list of labels": lambda: Projection([[]], [2]),
    "map 1 must be a non-empty list of labels": lambda: Projection([[0], [-1]], [2, 2]),
    "Projection: map 0 must be integers": lambda: Projection([[0.5]], [2]),
    "edge 0 maps to label 2, but its member has 2": lambda: Projection([[0, 2]], [2]),
    "Projection: 2 label counts for 1 edges": lambda: Projection([[0]], [1, 1]),
    "Projection: index must lie in 0..0": lambda: Projection([[0]], [1], [1]),
}


@pytest.mark.parametrize("text", BAD)
def test_bad_parameters_are_named(text):
    with pytest.raises(ModelError) as caught:
        BAD[text]()
    assert text in str(caught.value)


def test_a_weight_of_zero_needs_a_finite_table_only_where_it_is_used():
    shared = SharedTables([[[INF, 0.0]], [[1.0, 2.0]]], [0, 1], [1.0, 0.0])
    assert shared.as_table(1, 1, 2).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("empty", [Tables([]), Tables(np.zeros((0, 2, 2))), Potts([])])
def test_a_group_may_be_empty(empty):
    assert len(empty) == 0
    assert len(empty.take([])) == 0
    low, high = empty.extremes(np.zeros(0, int), np.zeros(0, int))
    assert low.size == high.size == 0
    assert not empty.has_forbidden()


def test_tables_come_back_as_they_were_given():
    array = np.arange(8.0).reshape(2, 2, 2)
    tables = Tables(array).tables
    assert np.shares_memory(tables, array)
    np.testing.assert_array_equal(tables, array)
    ragged = [np.ones((1, 2)), np.zeros((2, 1))]
    for given_table, kept in zip(ragged, Tables(ragged).tables, strict=True):
        np.testing.assert_array_equal(given_table, kept)


# --- a new family is one class with five verbs --------------------------------------------------


class Ordered(Potential):
    """`weights[k]` where the first label is greater than the second, 0 elsewhere."""

    family = "ordered"

    def __init__(self, weights):
        self.weights = np.asarray(weights, dtype=float)

    def __len__(self):
        return len(self.weights)

    def value(self, k, x, y):
        return np.where(np.greater(x, y), self.weights[k], 0.0)

    def take(self, index):
        return Ordered(self.weights[index])

    def scaled(self, factor):
        return Ordered(self.weights * factor)

    def arrays(self):
        return {"weights": self.weights}


@pytest.fixture
def ordered() -> Model:
    rng = np.random.default_rng(3)
    unary = [rng.normal(size=d) for d in (2, 3, 4, 3)]
    chain = ([[0, 1], [1, 2]], Ordered([1.5, np.inf]))
    return Model(unary, None, [chain, ([[2, 3]], Potts([0.7]))])


def test_extremes_of_many_small_tables():
    tables = np.random.default_rng(1).normal(size=(9000, 2, 3))
    low, high = Tables(tables).extremes(np.full(9000, 2), np.full(9000, 3))
    assert (low == tables.min(axis=(1, 2))).all()
    assert (high == tables.max(axis=(1, 2))).all()


def test_a_new_family_has_tables_energies_and_extremes(ordered):
    assert ordered.network.table(0).tolist() == [[0, 0, 0], [1.5, 0, 0]]
    expected = (
        ordered.network.unary_of(0)[1]
        + ordered.network.unary_of(1)[0]
        + ordered.network.unary_of(2)[3]
    )
    expected += ordered.network.unary_of(3)[0] + 1.5 + 0.7
    assert ordered.energy([1, 0, 3, 0]) == pytest.approx(expected)
    assert ordered.energy([1, 2, 1, 0]) == np.inf
    assert ordered.network.has_forbidden
    low, high = ordered.potentials[0].extremes(np.array([2, 3]), np.array([3, 4]))
    assert (low.tolist(), high.tolist()) == ([0.0, 0.0], [1.5, 0.0])
    assert (
        ordered.fingerprint()
        != ordered.replace(potentials=[Ordered([1.5, 2.0]), ordered.potentials[1]]).fingerprint()
    )


@pytest.mark.parametrize("h", range(4))
def test_a_new_family_sends_compiled_messages(ordered, h):
    lay, potential = layout(ordered.network), ordered.potentials[0]
    a = np.linspace(-1.0, 1.0, ordered.num_labels[ordered.network.graph.node[h ^ 1]])
    out = np.empty(ordered.num_labels[ordered.network.graph.node[h]])
    core.message(lay, h, a, out, 10.0)
    expected = soft_message(potential, h >> 1, h & 1, a, 10.0, len(out))
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    core.message(lay, h, a, out, np.inf)
    np.testing.assert_allclose(out, hard_message(potential, h >> 1, h & 1, a, len(out)))


def test_a_new_family_is_constrained_rounded_and_an_lp(ordered):
    allowed = arc_consistency(ordered.condition({2: 1}))
    assert allowed[ordered.network.node_slice(1)].tolist() == [True, True, False]
    best, labels = brute_force(ordered)
    assert lp.solve(ordered).value == pytest.approx(best)  # a chain: the LP is tight
    assert rounding.icm(ordered.network, labels).tolist() == labels.tolist()


def test_a_new_family_is_solved(ordered):
    best, _ = brute_force(ordered)
    result = softmap.solve(ordered)
    assert result.energy == pytest.approx(best)
    assert best - 1e-3 <= result.bound <= best + 1e-9
