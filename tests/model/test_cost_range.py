"""Costs that float64 cannot add up are refused by name; the smallest ones are not."""

import decimal
from fractions import Fraction

import numpy as np
import pytest

import softmap
from softmap import Model, ModelError, Potts, SharedTables, Tables, TruncatedLinear
from softmap import TruncatedQuadratic as Quadratic
from softmap.relaxation.gaps import scaled
from softmap.run.best import _least_sum
from support.small_models import random_model
from support.strategies import FAMILIES

ZERO = np.zeros((2, 2))
EDGE = [[0, 1]]
LARGE = np.array([[[0.0, 1.0], [-1e301, 0.0]]])

REFUSED = {
    "unary cost of variable 1, label 0, is 1e+308": lambda: Model([[0, 0], [1e308, 0]], [], []),
    "table 0 has -1e+301 at (1, 0)": lambda: Tables(LARGE),
    "Potts weights[1] is 1e+301": lambda: Potts([0, 1e301]),
    "SharedTables: edge 0 has weight 10000000000.0": lambda: Model(
        ZERO, EDGE, SharedTables([[[0, 1e299], [0, 0]]], [0], [1e10])
    ),
    "TruncatedLinear: edge 1 has a cost of size 4e+300": lambda: Model(
        np.zeros((2, 5)), [[0, 1], [1, 0]], TruncatedLinear([1.0, 1e300])
    ),
    "TruncatedQuadratic: edge 0 has a cost of size 1.6e+301": lambda: Model(
        np.zeros((2, 5)), EDGE, Quadratic([1e300])
    ),
    "constant must be within": lambda: Model(ZERO, [], [], constant=-1e301),
    "factor 0 over (1, 0) has 1e+308 at (0, 1)": lambda: Model.from_factors(
        [2, 2], [((1, 0), [[0, 1e308], [0, 0]])]
    ),
    "unary cost of variable 0, label 1, is": lambda: Model.from_factors(
        [2], [((0,), [0.0, 1e300]), ((0,), [0.0, 1e300])]
    ),
    "can add up to": lambda: Model(np.full((2_000_000, 1), 1e300), [], []),
    "unary[0] holds a number beyond": lambda: Model([[decimal.Decimal("1e400")]], [], []),
    "unary[0] must be real numbers": lambda: Model([[10**400, 0]], [], []),
}


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.filterwarnings("error")
def test_costs_beyond_the_range_are_named(text):
    with pytest.raises(ModelError) as caught:
        REFUSED[text]()
    assert text in str(caught.value)


def test_wider_floats_do_not_turn_into_forbidden_ones():
    wide = np.array([["1e4000", "0"]]).astype(np.longdouble)
    if not np.isfinite(wide).all():
        pytest.skip("float64 is the widest float here")
    with pytest.raises(ModelError, match="unary holds a number beyond"):
        Model(wide, [], [])


def test_replacing_costs_is_checked_too():
    model = Model(ZERO, EDGE, Potts([1.0]))
    with pytest.raises(ModelError, match="label 1, is 1e"):
        model.replace(unary=np.array([0.0, 1e301, 0.0, 0.0]))
    with pytest.raises(ModelError, match="constant"):
        model.replace(constant=1e301)
    with pytest.raises(ModelError, match="a cost of"):
        model.potentials[0].scaled(1e300).scaled(1e300)


def test_a_product_within_the_range_is_fine():
    """The largest weight and the largest entry may belong to different edges."""
    tables = [[[0, 1e290], [0, 0]], [[0, 1.0], [0, 0]]]
    model = Model(ZERO, [[0, 1], [1, 0]], SharedTables(tables, [0, 1], [1.0, 1e200]))
    assert model.energy([0, 1]) == 1e290
    cut = TruncatedLinear([1e300, 1.0], [1.0, np.inf])
    assert Model(np.zeros((2, 50)), [[0, 1], [1, 0]], cut).energy([0, 49]) == 1e300


def test_the_ends_of_the_range_are_legal():
    model = Model([[1e300, np.inf], [5e-324, -1e300]], EDGE, Tables([[[-1e300, 0], [np.inf, 0.0]]]))
    assert model.energy([0, 0]) == 5e-324
    assert model.energy([0, 1]) == 0.0
    assert softmap.Model([[5e-324, 0.0]], [], []).energy([0]) == 5e-324


def test_ranges_of_nodes_and_edges_are_added_up():
    rng = np.random.default_rng(0)
    edges = softmap.generators.grid_edges(5, 6)
    unary = rng.normal(size=(30, 3))
    for weights in (0.7, rng.random(len(edges))):
        sizes = softmap.Model(unary, edges, softmap.Potts(weights)).network.cost_sizes
        nodes = np.ptp(unary, axis=1).sum()
        both = nodes + np.broadcast_to(weights, len(edges)).sum()
        unit = 2.0**sizes.exponent
        assert sizes.width * unit == pytest.approx(both, rel=1e-14)
        assert sizes.scale * unit == pytest.approx(both / (30 + len(edges)), rel=1e-14)


# --- scaling -------------------------------------------------------------------------------------


def _split_costs(rng, unit):
    """A model of costs near `unit`, whose weights and tables (or truncations) need not be."""
    split, weights = 10.0 ** rng.uniform(-300, 300), np.abs(rng.normal(size=2)) * unit
    hard = rng.random() < 0.3
    with np.errstate(all="ignore"):
        if (kind := rng.integers(4)) == 0:
            tables = rng.normal(size=(2, 3, 3))
            tables = np.where(hard & (rng.random((2, 3, 3)) < 0.2), np.inf, tables / split)
            pairs = SharedTables(tables, rng.integers(0, 2, 2), weights * split)
        elif kind == 1:
            pairs = TruncatedLinear(weights, rng.uniform(0, 2, 2))
        elif kind == 2:
            pairs = Quadratic(weights, rng.uniform(0, 5, 2))
        else:
            pairs = TruncatedLinear(weights * split, rng.uniform(0, 1, 2) / split)
    return Model(rng.normal(size=(3, 3)) * unit, [[0, 1], [1, 2]], pairs)


@pytest.mark.filterwarnings("error")
def test_no_cost_becomes_infinite_by_scaling_and_no_bound_false():
    """Weights of 1e-310 beside tables near 1 were scaled to forbidden costs."""
    units = [5e-324 * 2.0**10, 1e-310, 1e-300, 1e-150, 1e-12, 1e13, 1e280]
    made = 0
    for seed in range(140):
        rng = np.random.default_rng(seed)
        try:
            model = _split_costs(rng, units[seed % len(units)])
        except ModelError:
            continue
        made += 1
        inner = scaled(model.network)
        for mine, theirs in zip(model.network.tables(), inner.model.network.tables(), strict=True):
            assert np.array_equal(np.isinf(mine), np.isinf(theirs))
            large = np.isfinite(mine) & (np.abs(mine) >= 2.0**-1022)
            with np.errstate(under="ignore"):
                expected = np.ldexp(np.ldexp(mine, inner.exponent // 2), -(-inner.exponent // 2))
            large &= np.abs(expected) >= 2.0**-1022
            assert np.array_equal(theirs[large], expected[large])
        labels = np.indices((3, 3, 3)).reshape(3, -1).T
        every = model.network.cost_terms(labels)
        allowed = every[np.isfinite(every).all(axis=1)].tolist()
        costs = [sum(map(Fraction, terms)) for terms in allowed]
        if not costs:
            continue
        result = softmap.solve(model, threads=1, max_work=3_000)
        assert Fraction(result.bound) <= min(costs)
        assert result.energy == model.energy(result.labels)
    assert made > 90


@pytest.mark.parametrize("exponent", [1000, 40, 10, -10, -40, -1000])
def test_forbidden_entries_of_tables_stay_forbidden_however_they_are_scaled(exponent):
    tables = [np.array([[0.0, np.inf], [1e-200, -1e-250]]), np.array([[1e-9, 2e-9], [0.0, 0.0]])]
    pairs = SharedTables(tables, [0, 0, 1, 1], [1e-120, 1.0, 1e-300, 1e3])
    found = pairs.scaled(2.0 ** (exponent // 2)).scaled(2.0 ** (exponent - exponent // 2))
    for k in range(4):
        mine, theirs = pairs.as_table(k, 2, 2), found.as_table(k, 2, 2)
        assert np.array_equal(np.isinf(mine), np.isinf(theirs))
        large = np.isfinite(mine) & (np.abs(mine) >= 2.0**-1022)
        large &= np.abs(mine) * 2.0**exponent >= 2.0**-1022
        assert np.allclose(theirs[large], mine[large] * 2.0**exponent, rtol=1e-15, atol=0)


def test_products_beyond_the_range_are_refused_by_name():
    pairs = SharedTables([[[1e-5, 2.0]]], [0], [1e-10])
    with pytest.raises(ModelError, match=r"times 1e\+308 is beyond"):
        pairs.scaled(1e308).scaled(1e308)
    with pytest.raises(ModelError, match="is beyond the range"):
        TruncatedLinear([1e200], [0.5]).scaled(1e200)


# --- sizes in pieces ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
@pytest.mark.parametrize("family", [*FAMILIES])
def test_sizes_and_least_costs_do_not_depend_on_pieces(monkeypatch, family, size):
    """Arrays over all edges took 6 s of 12 Mpx, and as much memory as the model."""
    for seed in range(3):
        model = random_model(family, seed).network
        low, high = model.extremes()
        with monkeypatch.context() as patched:
            patched.setattr("softmap.model.structure.PIECE", size)
            patched.setattr("softmap.model.potentials.distance.PIECE", size)
            nodes, edges = ([*pieces] for pieces in (model.node_extremes(), model.edge_extremes()))
            sizes = model.cost_sizes
            bound = _least_sum(model)
        assert all(len(a) == len(b) <= size for a, b in (*nodes, *edges))
        for at, (first, last) in ((0, (low[: model.n], high[: model.n])), (1, (low, high))):
            every = [np.concatenate([p[k] for p in nodes + edges * at]) for k in range(2)]
            np.testing.assert_array_equal(every, [first, last])
        widths = high - low
        unit = 2.0**sizes.exponent
        assert sizes.largest * unit == max(-low.min(), high.max(), 0.0)
        assert sizes.width * unit == pytest.approx(widths.sum(), rel=1e-12)
        assert sizes.node_width * unit == pytest.approx(widths[: model.n].sum(), rel=1e-12)
        total = np.maximum(np.abs(low), np.abs(high)).sum()
        assert sizes.total * unit == pytest.approx(total, rel=1e-12)
        mean = widths.sum() / max(1, np.count_nonzero(widths))
        assert sizes.scale * unit == pytest.approx(mean, rel=1e-12)
        exact = sum(map(Fraction, low.tolist()), Fraction(model.constant))
        assert Fraction(bound) <= exact
        assert bound == pytest.approx(float(exact), rel=1e-9, abs=1e-9)


def test_edges_that_fit_no_double_are_named_whatever_their_piece(monkeypatch):
    monkeypatch.setattr("softmap.model.potentials.distance.PIECE", 2)
    weights = np.array([1.0, 1.0, 1.0, 1e300, 1.0])
    edges = [[k, k + 1] for k in range(5)]
    with pytest.raises(ModelError, match="edge 3"):
        Model(np.zeros((6, 1000)), edges, softmap.TruncatedQuadratic(weights))
