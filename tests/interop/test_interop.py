"""Conversions, against the real libraries."""

import io
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings

import softmap
from softmap.interop import (
    from_networkx,
    from_pgmpy,
    from_sparse,
    mpe,
    to_arrays,
    to_networkx,
    to_pgmpy,
    to_pgmpy_bayesian,
    to_sparse,
    trace_frame,
)
from support.files import labellings, same_energies
from support.strategies import models


@pytest.fixture(scope="module")
def pgmpy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("pgmpy.models")
        import pgmpy.factors.discrete as discrete
        import pgmpy.models as kinds
        from pgmpy.inference import VariableElimination
    return SimpleNamespace(models=kinds, factors=discrete, elimination=VariableElimination)


@pytest.fixture
def sprinkler(pgmpy):
    """Rain -> sprinkler, both -> wet, with named states in different orders."""
    cpd = pgmpy.factors.TabularCPD
    states = {"rain": ["no", "yes"], "sprinkler": ["off", "on"], "wet": ["dry", "wet", "soaked"]}
    network = pgmpy.models.DiscreteBayesianNetwork(
        [("rain", "sprinkler"), ("rain", "wet"), ("sprinkler", "wet")]
    )
    wet = [[0.9, 0.2, 0.3, 0.1], [0.1, 0.5, 0.4, 0.2], [0.0, 0.3, 0.3, 0.7]]
    network.add_cpds(
        cpd("rain", 2, [[0.8], [0.2]], state_names={"rain": states["rain"]}),
        cpd("sprinkler", 2, [[0.6, 0.99], [0.4, 0.01]], ["rain"], [2],
            state_names={k: states[k] for k in ("sprinkler", "rain")}),
        cpd("wet", 3, wet, ["rain", "sprinkler"], [2, 2], state_names=states),
    )  # fmt: skip
    network.check_model()
    return network


def test_bayesian_network_has_the_costs_of_its_joint_distribution(sprinkler):
    named = from_pgmpy(sprinkler)
    for x in labellings(named):
        at = named.names.as_dict(x)
        joint = np.prod([c.to_factor().get_value(**{v: at[v] for v in c.variables})
                         for c in sprinkler.get_cpds()])  # fmt: skip
        expected = -np.log(joint) if joint > 0 else np.inf
        assert named.energy(x) == pytest.approx(expected)
        assert named.names.labels(at) == x.tolist()


def test_map_query_agrees(sprinkler, pgmpy):
    named = from_pgmpy(sprinkler)
    model = named.condition({"wet": "soaked"})
    x = labellings(model)
    ours = named.names.as_dict(x[np.argmin(model.energy(x))])
    theirs = pgmpy.elimination(sprinkler).map_query(
        ["rain", "sprinkler"], evidence={"wet": "soaked"}, show_progress=False
    )
    assert {k: ours[k] for k in theirs} == theirs
    found = mpe(sprinkler, {"wet": "soaked"})
    assert found.as_dict() == ours
    assert found.energy == pytest.approx(model.energy(x).min())


def test_a_query_sums_over_the_other_variables(sprinkler, pgmpy):
    evidence = {"wet": "soaked"}
    for query in (["rain"], ["sprinkler"]):
        found = mpe(sprinkler, evidence, query)
        theirs = pgmpy.elimination(sprinkler).map_query(query, evidence, show_progress=False)
        assert found.as_dict() == theirs
        assert found[query[0]] == theirs[query[0]]
        named = from_pgmpy(sprinkler)
        rows = labellings(named)
        kept = [
            all(row[k] == v for k, v in (evidence | theirs).items())
            for row in map(named.names.as_dict, rows)
        ]
        assert found.energy == pytest.approx(-np.log(np.exp(-named.energy(rows[kept])).sum()))
    with pytest.raises(softmap.ModelError, match="'wet' is observed"):
        mpe(sprinkler, evidence, ["wet"])
    with pytest.raises(softmap.ModelError, match="no variable 'snow'"):
        mpe(sprinkler, evidence, ["snow"])
    with pytest.raises(softmap.ModelError, match="'wet' is not among"):
        found["wet"]


def test_bayesian_round_trip(sprinkler):
    named = from_pgmpy(sprinkler)
    again = to_pgmpy_bayesian(named)
    assert again.check_model()
    assert from_pgmpy(to_pgmpy(named)).names.place.keys() == set(sprinkler.nodes())
    assert again.get_cpds("wet").state_names["wet"] == sprinkler.get_cpds("wet").state_names["wet"]
    assert set(again.edges()) == set(sprinkler.edges())
    back = from_pgmpy(again)
    order = [back.names.place[v] for v in named.names.variables]
    x = labellings(named)
    y = np.empty_like(x)
    y[:, order] = x
    assert np.allclose(back.energy(y), named.energy(x))


def test_networks_in_files_are_read_as_pgmpy_reads_them(sprinkler):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.readwrite import BIFReader, BIFWriter, XMLBIFReader, XMLBIFWriter
    theirs = from_pgmpy(sprinkler)
    for form, writer in {"bif": BIFWriter, "xmlbif": XMLBIFWriter}.items():
        ours = softmap.read(io.BytesIO(str(writer(sprinkler)).encode()), format=form)
        file = io.BytesIO()
        softmap.write(theirs, file, format=form)
        reader = {"bif": BIFReader, "xmlbif": XMLBIFReader}[form]
        back = from_pgmpy(reader(string=file.getvalue().decode()).get_model())
        for x in labellings(theirs):
            named = theirs.names.as_dict(x)
            for other in (ours, back):
                assert same_cost(other, named) == pytest.approx(theirs.energy(x), rel=1e-6)


def same_cost(other, named):
    """The energy in another model of the same names."""
    return other.energy({str(v): s for v, s in named.items()})


def test_what_is_no_bayesian_network_is_refused(pgmpy):
    with pytest.raises(softmap.ModelError, match="not a Bayesian network"):
        to_pgmpy_bayesian(softmap.Model(np.eye(2), [[0, 1]], softmap.Potts([1.0])))
    with pytest.raises(softmap.ModelError, match="constant"):
        to_pgmpy_bayesian(softmap.Model(np.eye(2), None, [], constant=1.0))
    with pytest.raises(softmap.ModelError, match="names"):
        to_pgmpy(softmap.Model(np.eye(2), None, []), ["a", "a"])


@settings(max_examples=10)
@given(model=models(max_n=4, max_d=3))
def test_markov_round_trip(pgmpy, model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        named = from_pgmpy(to_pgmpy(model))
    x = labellings(model)
    difference = np.nan_to_num(model.energy(x), posinf=-1.0)
    other = np.nan_to_num(named.energy(x), posinf=-1.0)
    finite = np.isfinite(model.energy(x))
    assert (finite == np.isfinite(named.energy(x))).all()
    shift = (difference - other)[finite]
    assert np.allclose(shift, shift[:1])


def test_states_in_another_order_are_put_right(pgmpy):
    factor = pgmpy.factors.DiscreteFactor
    network = pgmpy.models.DiscreteMarkovNetwork([("a", "b")])
    network.add_factors(
        factor(["a"], [2], [1, 2], state_names={"a": ["x", "y"]}),
        factor(["a", "b"], [2, 2], [1, 2, 3, 4], state_names={"a": ["y", "x"], "b": [0, 1]}),
    )
    named = from_pgmpy(network)
    assert named.energy({"a": "x", "b": 1}) == pytest.approx(-np.log(1 * 4))


def test_named_models_say_what_is_missing(sprinkler):
    named = from_pgmpy(sprinkler)
    with pytest.raises(softmap.ModelError, match="names no state of 'rain'"):
        named.energy({})
    with pytest.raises(softmap.ModelError, match="no state of 'rain'"):
        named.condition({"rain": "maybe"})
    with pytest.raises(softmap.ModelError, match="no variable 'snow'"):
        named.condition({"snow": "yes"})


@given(models(families=("tables", "potts", "shared", "truncated-linear", "mix")))
def test_networkx_round_trip(model):
    pytest.importorskip("networkx")
    graph = to_networkx(model)
    assert graph.number_of_nodes() == model.n
    assert graph.number_of_edges() == model.m
    assert same_energies(from_networkx(graph), model)


def test_names_survive_a_conversion():
    pytest.importorskip("networkx")
    pytest.importorskip("dimod")
    named = softmap.Model.from_ising({"a": 0.5, "b": 0.25}, {("a", "b"): -1.0})
    assert set(to_networkx(named).nodes) == {"a", "b"}
    assert set(softmap.interop.dimod.to_bqm(named).variables) == {"a", "b"}
    assert list(softmap.interop.dimod.to_dqm(named).variables) == ["a", "b"]
    assert from_networkx(to_networkx(named)).names.variables == ("a", "b")


def test_networkx_graphs_with_names_and_directions():
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    graph.add_node("b", costs=[0.0, 1.0])
    graph.add_node("a", costs=[0.0, 2.0, 4.0])
    graph.add_edge("a", "b", costs=np.arange(6).reshape(3, 2) * 10)
    named = from_networkx(graph)
    assert named.names.variables == ("b", "a")
    assert named.energy([1, 2]) == 1 + 4 + 50
    plain = networkx.grid_2d_graph(2, 2)
    networkx.set_node_attributes(plain, {v: [0.0, 1.0] for v in plain}, "costs")
    networkx.set_edge_attributes(plain, 2.0, "weight")
    assert from_networkx(plain).energy([0, 1, 1, 1]) == 3 + 2 * 2
    plain.add_edge((0, 0), (1, 1))
    with pytest.raises(softmap.ModelError, match="neither"):
        from_networkx(plain)
    plain.add_node("new")
    with pytest.raises(softmap.ModelError, match="'new'"):
        from_networkx(plain)


@given(models(families=("tables", "potts", "mix")))
def test_plain_arrays_round_trip(model):
    assert same_energies(softmap.Model(**to_arrays(model)), model)


def test_larger_factors_are_not_plain_arrays():
    model = softmap.Model.from_factors([2, 2, 2], [((0, 1, 2), np.zeros((2, 2, 2)))])
    for convert in (to_arrays, to_networkx):
        with pytest.raises(softmap.ModelError, match="pgmpy"):
            convert(model)


@pytest.mark.parametrize(
    "kind", ["csr_matrix", "coo_matrix", "csr_array", "coo_array", "lil_array"]
)
def test_sparse_weights(kind):
    sparse = pytest.importorskip("scipy.sparse")
    weights = np.array([[0, 2, 0], [0, 0, 3.5], [0, 0, 0]])
    unary = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    for matrix in (weights, weights.T, weights + weights.T):
        model = from_sparse(getattr(sparse, kind)(matrix), unary)
        assert model.m == 2
        assert model.energy([0, 1, 0]) == 1 + 2 + 3.5
        assert np.array_equal(to_sparse(model).toarray(), weights + weights.T)


def test_sparse_matrices_that_are_no_weights():
    sparse = pytest.importorskip("scipy.sparse")
    unary = np.zeros((2, 2))
    with pytest.raises(softmap.ModelError, match="diagonal"):
        from_sparse(sparse.eye_array(2), unary)
    with pytest.raises(softmap.ModelError, match="symmetric"):
        from_sparse(sparse.csr_array([[0, 1.0], [2.0, 0]]), unary)
    with pytest.raises(softmap.ModelError, match="square"):
        from_sparse(sparse.csr_array(np.ones((2, 3))), unary)
    with pytest.raises(softmap.ModelError, match="Potts"):
        to_sparse(softmap.Model(unary, [[0, 1]], np.ones((1, 2, 2))))


def test_traces_become_frames():
    pandas = pytest.importorskip("pandas")
    result = softmap.solve(softmap.generators.potts_grid(4, 4, 3, seed=1))
    frame = trace_frame(result)
    assert isinstance(frame, pandas.DataFrame)
    assert frame["bound"].iloc[-1] == result.trace[len(result.trace) - 1].bound
    assert list(frame.columns)[:3] == ["work", "sweeps", "seconds"]
    assert trace_frame(result.trace).equals(frame)


def test_only_the_users_variables_need_names(pgmpy):
    model = softmap.Model.from_factors([2] * 8, [softmap.Parity(range(8))])
    assert model.network.num_visible < model.network.num_variables
    network = to_pgmpy(model, list("abcdefgh"))
    assert set("abcdefgh") < set(network.nodes())
    assert len(network.nodes()) == model.network.num_variables
    with pytest.raises(softmap.ModelError, match="8 different names"):
        to_pgmpy(model, list("abc"))
