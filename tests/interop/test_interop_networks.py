"""Networks of pyAgrum and toulbar2, regions and graphs, against the real libraries."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import softmap
from softmap.interop import (
    from_edge_index,
    from_pyagrum,
    from_regions,
    from_toulbar2,
    mpe,
    to_toulbar2,
)
from support.files import labellings
from support.strategies import models


@pytest.fixture(scope="module")
def gum():
    with warnings.catch_warnings():  # of its bindings; as errors they end the process
        warnings.simplefilter("ignore")
        module = pytest.importorskip("pyagrum", reason="pyAgrum is not installed")
        module.fastMRF("a--b")
    return module


def test_networks_of_pyagrum_have_the_costs_of_their_joint_distribution(gum):
    gum.initRandom(3)
    network = gum.fastBN("a{yes|no}->b[3]<-c[2]->d{x|y|z}<-a")
    field = gum.MarkovRandomField.fromBN(network)
    joint = gum.Tensor(network.cpt("a"))
    for name in "bcd":
        joint = joint * network.cpt(name)
    for convert in (from_pyagrum(network), from_pyagrum(field)):
        for x in labellings(convert):
            at = convert.names.as_dict(x)
            place = gum.Instantiation(joint)
            for name, label in at.items():
                place.chgVal(name, label)
            assert convert.energy(x) == pytest.approx(-np.log(joint.get(place)))


def test_the_explanation_keeps_evidence_and_names(gum):
    gum.initRandom(5)
    network = gum.fastBN("a{yes|no}->b[3]<-c[2]->d{x|y|z}<-a")
    model = from_pyagrum(network)
    for evidence in ({}, {"d": "y"}, {"d": 1, "a": "no"}):
        found = mpe(network, evidence, gap=0.0)
        explained = found.as_dict()
        expected = {"d": "y", "a": "no"}
        assert all(explained[name] == expected[name] for name in evidence)
        x = labellings(model)
        agree = [all(model.names.as_dict(r)[v] == expected[v] for v in evidence) for r in x]
        assert found.energy == pytest.approx(model.energy(x[agree]).min())
        assert found.bound <= found.energy
    with pytest.raises(softmap.ModelError, match="no state of 'd'"):
        mpe(network, {"d": "w"})
    with pytest.raises(softmap.ModelError, match="pyAgrum"):
        from_pyagrum(3)


@settings(max_examples=8, deadline=None)
@given(models(max_n=4, max_d=3))
def test_toulbar2_gives_the_second_opinion(model):
    pytest.importorskip("pytoulbar2", reason="pytoulbar2 is not installed")
    x = labellings(model)
    energies = model.energy(x)
    if not np.isfinite(energies).any():
        assert to_toulbar2(model).Solve() is None
        return
    rounding = 1e-6 * (model.n + model.m + 1)  # toulbar2 rounds each cost to six decimals
    found = to_toulbar2(model).Solve()
    assert found[1] == pytest.approx(energies.min(), abs=rounding)
    back = from_toulbar2(to_toulbar2(model))
    np.testing.assert_allclose(back.energy(x), energies, atol=rounding)


def test_toulbar2_keeps_names():
    pytest.importorskip("pytoulbar2", reason="pytoulbar2 is not installed")
    model = softmap.Model([[0, 1.5], [1, 0.25]], [[0, 1]], softmap.Potts(0.4))
    named = model.with_names(("a", "b"), (("x", "y"), ("u", "v")))
    assert from_toulbar2(to_toulbar2(named)).names == named.names
    with pytest.raises(softmap.ModelError, match="CFN"):
        from_toulbar2(3)


def border(regions, labels):
    """The number of neighbouring pixels of different labels."""
    image = labels[regions]
    return (image[1:] != image[:-1]).sum() + (image[:, 1:] != image[:, :-1]).sum()


def test_regions_of_an_image():
    regions = np.random.default_rng(1).integers(0, 5, (6, 7))
    costs = np.random.default_rng(2).normal(size=(5, 2))
    model = from_regions(regions + 3, costs, 0.25)  # the numbers need not start at 0
    for x in labellings(model):
        expected = costs[np.arange(5), x].sum() + 0.25 * border(regions, x)
        assert model.energy(x) == pytest.approx(expected)
    with pytest.raises(softmap.ModelError, match="costs for 4 variables"):
        from_regions(regions, costs[:4])


def test_superpixels_of_scikit_image_and_opencv():
    image = np.zeros((24, 24, 3))
    image[:, 12:] = 1.0
    grey = image[..., 0]
    segmentation = pytest.importorskip("skimage.segmentation", reason="no scikit-image")
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed")
    superpixels = segmentation.slic(image, n_segments=9, start_label=1) - 1
    parts = cv2.connectedComponents((grey < 0.5).astype(np.uint8))[1]
    for regions in (superpixels, parts):
        mean = np.array([grey[regions == k].mean() for k in range(regions.max() + 1)])
        model = from_regions(regions, np.stack([mean, 1 - mean], axis=1), 1e-4)
        np.testing.assert_array_equal(softmap.solve(model).labels[regions], grey)


def test_graphs_of_pytorch_geometric():
    edges = np.array([[0, 1, 1, 2, 2, 2], [1, 0, 2, 1, 2, 2]])  # with a loop
    weights = np.array([2.0, 2.0, 3.0, 3.0, 9.0, 9.0])
    unary = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    assert from_edge_index(edges, unary, weights).energy([0, 1, 0]) == 1 + 2 + 3
    assert from_edge_index(edges[:, :1], unary).energy([0, 1, 0]) == 2
    with pytest.raises(softmap.ModelError, match="two rows"):
        from_edge_index(edges.T, unary)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    data = pytest.importorskip("torch_geometric.data", reason="no PyTorch Geometric")
    graph = data.Data(edge_index=torch.as_tensor(edges), edge_attr=torch.as_tensor(weights))
    assert from_edge_index(graph.edge_index, unary, graph.edge_attr).energy([0, 1, 1]) == 2 + 2
