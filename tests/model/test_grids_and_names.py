"""Grids, one number for all edges, names, and arrays of other libraries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import Model, ModelError, OptionError, Potts, TruncatedLinear
from softmap.model.graph import neighbours

RNG = np.random.default_rng(0)


@given(st.tuples(st.integers(1, 5), st.integers(1, 5)), st.sampled_from([4, 8]))
def test_neighbours_are_those_at_distance_one(shape, connectivity):
    edges = neighbours(shape, connectivity)
    places = np.array(list(np.ndindex(*shape)))
    apart = np.abs(places[:, None] - places[None])
    near = (apart.sum(axis=2) if connectivity == 4 else apart.max(axis=2)) == 1
    assert {tuple(e) for e in edges.tolist()} == set(zip(*np.nonzero(np.triu(near)), strict=True))
    assert len(edges) == np.triu(near).sum()


def test_volumes_and_lines_are_grids_too():
    assert Model.grid(RNG.random((2, 3, 4, 2)), Potts(1.0)).m == 12 + 16 + 18
    assert Model.grid(RNG.random((2, 2, 2, 2)), Potts(1.0), connectivity=26).m == 28
    with pytest.raises(ModelError, match="expected 4 or 8 in 2-D"):
        Model.grid(RNG.random((3, 3, 2)), Potts(1.0), connectivity=6)
    with pytest.raises(ModelError, match=r"\(height, width, labels\)"):
        Model.grid(RNG.random(3), Potts(1.0))
    with pytest.raises(ModelError, match=r"one cost per pixel and label, not \(2, 2\)"):
        Model.grid([[0, 1], [1, 0]], 0.5)  # the axis of labels is forgotten: it is no chain


@pytest.mark.parametrize("connectivity", [4, 8])
def test_a_grid_is_the_model_of_its_edges(connectivity):
    unary = RNG.random((4, 5, 3))
    grid = Model.grid(unary, Potts(0.3), connectivity=connectivity)
    edges = softmap.generators.grid_edges(4, 5, connectivity)
    plain = Model(unary.reshape(-1, 3), edges, Potts(np.full(len(edges), 0.3)))
    assert grid.fingerprint() == plain.fingerprint()


def test_labels_of_a_grid_have_its_shape():
    model = Model.grid(RNG.random((4, 5, 3)), Potts(0.3))
    result = softmap.solve(model)
    assert result.labels.shape == (4, 5)
    assert model.energy(result.labels) == model.energy(result.labels.ravel()) == result.energy
    batch = np.stack([result.labels, np.zeros((4, 5), int)])
    np.testing.assert_array_equal(model.energy(batch), model.energy(batch.reshape(2, 20)))
    assert result[2, 3] == result[13] == result.labels[2, 3]
    snapshots = list(softmap.iterate(model))
    assert snapshots[-1].labels.shape == (4, 5)
    assert softmap.solve_mbest(model, 2)[1].labels.shape == (4, 5)


def test_one_number_or_table_stands_for_all_edges():
    unary, edges = RNG.random((3, 2)), [[0, 1], [1, 2], [0, 2]]
    table = [[0.0, 1.0], [1.0, 0.0]]
    every = [Model(unary, edges, p) for p in (Potts(1.0), TruncatedLinear(1.0), table)]
    for model in every:
        assert model.m == 3
        assert model.energy([0, 1, 0]) == pytest.approx(every[0].energy([0, 1, 0]))
    assert Model(unary, [], Potts(1.0)).m == Model(unary).m == Model(unary, None, None).m == 0
    with pytest.raises(ModelError, match="edges need costs"):
        Model(unary, edges)
    with pytest.raises(ModelError, match=r"see Model\.grid"):
        Model(np.zeros((2, 2, 2)), edges, Potts(1.0))


@pytest.mark.parametrize("names", [{"a": ["x", "y"], "b": 3}, ["a", "b"]])
def test_names_are_numbers_in_other_words(names):
    factors = [(("a", "b"), RNG.random((2, 3))), ((0,), [0.3, 0.1])]
    numbered = [((0, 1), factors[0][1]), factors[1]]
    plain = Model.from_factors([2, 3], numbered)
    if isinstance(names, dict):
        named = Model.from_factors(names, factors)
        assert named.energy({"b": 2, "a": "y"}) == plain.energy([1, 2])
        assert softmap.solve(named.condition({"a": "y"}))["a"] == "y"
        assert softmap.solve(named)[0] in ("x", "y")
    else:
        named = Model.from_factors([2, 3], factors, names=names)
        assert softmap.solve(named.condition({"a": 1}))["a"] == 1
    assert named.fingerprint() == plain.fingerprint()
    result = softmap.solve(named)
    assert result.energy == named.energy(result.as_dict()) == plain.energy(result.labels)
    assert "a, b" in named._repr_html_()
    with pytest.raises(ModelError, match="no variable 'c'; there are 'a', 'b'"):
        result["c"]


def test_names_that_do_not_fit_are_refused():
    model = Model([[0, 1], [1, 0]])
    for names, states in (
        (["a"], None),
        (["a", "a"], None),
        ("ab", None),
        (["a", "b"], [["x"]] * 2),
    ):
        with pytest.raises(ModelError):
            model.with_names(names, states)
    named = model.with_names(["a", "b"], ["no", "yes"])
    assert named.energy({"a": "no", "b": "yes"}) == model.energy([0, 1])
    with pytest.raises(ModelError, match="is no state of 'a'"):
        named.energy({"a": "perhaps", "b": "no"})
    with pytest.raises(ModelError, match="names no state of 'b'"):
        named.energy({"a": "no"})
    with pytest.raises(ModelError, match="have no names"):
        model.energy({"a": "no"})


def test_names_survive_files_and_copies(tmp_path):
    named = Model.from_factors({"a": ["x", "y"], "b": 2}, [(("a", "b"), np.eye(2))])
    softmap.solve(named).save(tmp_path / "result.npz")
    assert softmap.load_result(tmp_path / "result.npz").as_dict() == softmap.solve(named).as_dict()
    softmap.write(named, tmp_path / "model.npz")
    assert softmap.read(tmp_path / "model.npz").names == named.names


class Tensor:
    """As PyTorch's: no array until it is detached and on the processor."""

    def __init__(self, values, ready=False):
        self.values, self.ready, self.shape = values, ready, np.shape(values)

    def detach(self):
        return self

    def cpu(self):
        return Tensor(self.values, True)

    def __array__(self, dtype=None, copy=None):
        if not self.ready:
            raise TypeError("can't convert a tensor that requires grad or lies elsewhere")
        return np.asarray(self.values, dtype)


def test_arrays_of_other_libraries():
    unary, edges, table = RNG.random((3, 2)), [[0, 1], [1, 2]], RNG.random((2, 2))
    plain = Model(unary, edges, table).fingerprint()
    assert Model(Tensor(unary), edges, Tensor(table)).fingerprint() == plain
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame
    assert Model(frame(unary), frame(edges), frame(table)).fingerprint() == plain


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        (np.zeros((2, 2)), "got an ndarray; see Model.grid"),
        ("model.uai", "got a str; see softmap.read"),
        (7, "got an int"),
    ],
)
def test_what_is_no_model_is_refused_with_advice(wrong, advice):
    for call in (softmap.solve, softmap.iterate):
        with pytest.raises(OptionError, match=advice):
            call(wrong)


def test_a_number_is_the_weight_of_a_potts_model():
    costs = np.random.default_rng(0).random((3, 4, 2))
    plain, named = Model.grid(costs, 0.5), Model.grid(costs, Potts(0.5))
    labels = np.arange(12).reshape(3, 4) % 2
    assert plain.energy(labels) == named.energy(labels)
    assert Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], 2).energy([0, 1]) == 2.0
