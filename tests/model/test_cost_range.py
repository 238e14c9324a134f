"""Costs that float64 cannot add up are refused by name; the smallest ones are not."""

import decimal

import numpy as np
import pytest

import softmap
from softmap import Model, ModelError, Potts, SharedTables, Tables, TruncatedLinear
from softmap import TruncatedQuadratic as Quadratic

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
        sizes = softmap.Model(unary, edges, softmap.Potts(weights)).cost_sizes
        nodes = np.ptp(unary, axis=1).sum()
        both = nodes + np.broadcast_to(weights, len(edges)).sum()
        unit = 2.0**sizes.exponent
        assert sizes.width * unit == pytest.approx(both, rel=1e-14)
        assert sizes.scale * unit == pytest.approx(both / (30 + len(edges)), rel=1e-14)
