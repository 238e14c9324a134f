"""`soft_map` for every kind of array: the same marginals, and gradients of finite differences."""

import re
import warnings

import numpy as np
import pytest

import softmap
from softmap.learn import layer, soft_map_vjp
from softmap.methods.marginals import smoothed_optimum
from support.data import ROOT

EDGES = softmap.generators.grid_edges(2, 3)
RNG = np.random.default_rng(0)
UNARY, TABLES = RNG.normal(size=(2, 6, 3)), RNG.normal(size=(len(EDGES), 3, 3))
G_NODES, G_EDGES = RNG.normal(size=(2, 6, 3)), RNG.normal(size=(2, len(EDGES), 3, 3))


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def jax():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("jax")


def test_a_batch_is_its_members_one_by_one():
    beliefs = softmap.soft_map(UNARY, TABLES, EDGES, 1.5)
    for k in range(2):
        soft = smoothed_optimum(softmap.Model(UNARY[k], EDGES, TABLES), 1.5)
        assert np.allclose(beliefs.nodes[k].ravel(), soft.nodes, atol=1e-9)
        assert np.allclose(beliefs.edges[k].ravel(), soft.edges, atol=1e-9)
    assert np.allclose(beliefs.edges.sum(axis=-1)[:, 0], beliefs.nodes[:, EDGES[0, 0]], atol=1e-9)
    single = softmap.soft_map(UNARY.astype(np.float32), TABLES.astype(np.float32), EDGES, 1.5)
    assert single.nodes.dtype == np.float32
    assert np.allclose(single.nodes, beliefs.nodes, atol=1e-5)


def test_one_table_for_all_edges_gets_the_sum_of_their_gradients():
    table = TABLES[0]
    full = np.broadcast_to(table, (2, len(EDGES), 3, 3)).copy()
    _, pull = soft_map_vjp(UNARY, full, EDGES, 1.0)
    _, pull_shared = soft_map_vjp(UNARY, table, EDGES, 1.0)
    by_unary, by_table = pull(G_NODES, G_EDGES)
    same, summed = pull_shared(G_NODES, G_EDGES)
    assert np.allclose(same, by_unary)
    assert np.allclose(summed, by_table.sum(axis=(0, 1)))
    h, direction = 1e-5, np.random.default_rng(1).normal(size=(3, 3))
    ends = [softmap.soft_map(UNARY, table + s * h * direction, EDGES, 1.0) for s in (1, -1)]
    slope = sum(s * (np.vdot(G_NODES, b.nodes) + np.vdot(G_EDGES, b.edges))
                for s, b in zip((1, -1), ends, strict=True)) / (2 * h)  # fmt: skip
    assert slope == pytest.approx(np.vdot(summed, direction), abs=1e-6)


def test_without_edges_it_is_a_softmax():
    nodes, edges = softmap.soft_map(UNARY, np.zeros((0, 3, 3)), np.zeros((0, 2), int), 2.0)
    weight = np.exp(-2 * UNARY)
    assert np.allclose(nodes, weight / weight.sum(axis=-1, keepdims=True))
    assert edges.shape == (2, 0, 3, 3)


@pytest.mark.parametrize(
    ("unary", "pairwise", "edges", "words"),
    [
        (UNARY, TABLES[:2], EDGES, "does not fit"),
        (UNARY[0, 0], TABLES, EDGES, "expected unary"),
        (UNARY, TABLES, EDGES.astype(float), "edges must be"),
        (UNARY, TABLES, EDGES + 1, "not among the 6"),
        ([["a", "b"]], TABLES, EDGES, "unary must be"),
    ],
)
def test_what_does_not_fit_is_refused(unary, pairwise, edges, words):
    with pytest.raises(softmap.ModelError, match=words):
        softmap.soft_map(unary, pairwise, edges, 1.0)


def test_torch_agrees_with_finite_differences_and_shares_memory(torch):
    from softmap.learn.torch import _array

    unary = torch.tensor(UNARY, requires_grad=True)
    table = torch.tensor(TABLES[:1], requires_grad=True)  # broadcast over edges and batch
    edges = torch.tensor(EDGES)
    assert torch.autograd.gradcheck(
        lambda u, t: softmap.soft_map(u, t, edges, 1.5, tolerance=1e-13),
        (unary, table), atol=1e-6, nondet_tol=1e-9, fast_mode=True,
    )  # fmt: skip
    assert _array(unary).__array_interface__["data"][0] == unary.data_ptr()
    beliefs = softmap.soft_map(unary, table, EDGES, 1.5)
    (beliefs.nodes * torch.tensor(G_NODES)).sum().backward()
    _, pull = soft_map_vjp(UNARY, TABLES[:1], EDGES, 1.5)
    by_unary, by_table = pull(G_NODES, np.zeros_like(G_EDGES))
    assert np.allclose(unary.grad.numpy(), by_unary, atol=1e-9)
    assert np.allclose(table.grad.numpy(), by_table, atol=1e-9)


def test_torch_keeps_precision(torch):
    unary = torch.tensor(UNARY, dtype=torch.float32, requires_grad=True)
    beliefs = softmap.soft_map(unary, TABLES, EDGES, 1.0)
    assert beliefs.nodes.dtype == torch.float32
    (grad,) = torch.autograd.grad((beliefs.nodes**2).sum(), unary)
    assert grad.dtype == torch.float32


def test_torch_has_second_derivatives_and_no_third(torch):
    unary = torch.tensor(UNARY[:1], requires_grad=True)
    table = torch.tensor(TABLES[:1], requires_grad=True)

    def loss(u, t):
        nodes, edges = softmap.soft_map(u, t, EDGES, 1.2, tolerance=1e-13)
        return (nodes * torch.tensor(G_NODES[:1])).sum() + (edges**2).sum()

    assert torch.autograd.gradgradcheck(
        loss, (unary, table), atol=1e-5, rtol=1e-4, nondet_tol=1e-6, fast_mode=True
    )
    (first,) = torch.autograd.grad(loss(unary, table), unary, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiated twice, not three times"):
        torch.autograd.grad((first**2).sum(), unary, create_graph=True)
    (flat,) = torch.autograd.grad(loss(unary, table), unary, create_graph=True)
    (none,) = torch.autograd.grad(flat.sum(), unary)  # beliefs do not change with a constant
    assert torch.allclose(none, torch.zeros_like(none), atol=1e-5)


def test_torch_maps_over_batches(torch):
    unary, table = torch.tensor(UNARY), torch.tensor(TABLES)

    def loss(u, t):
        return (softmap.soft_map(u, t, EDGES, 1.5).nodes ** 2).sum()

    mapped = torch.func.vmap(loss, in_dims=(0, None))(unary, table)
    assert torch.allclose(mapped, torch.stack([loss(u, table) for u in unary]))
    grads = torch.func.vmap(torch.func.grad(loss), in_dims=(0, None))(unary, table)
    single = unary.clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss(single, table), single)
    assert torch.allclose(grads, expected, atol=1e-9)
    other = torch.func.vmap(loss, in_dims=(1, None))(unary.movedim(0, 1), table)
    assert torch.allclose(other, mapped)


@pytest.mark.filterwarnings("ignore")  # PyTorch's own, while it compiles
def test_torch_compiles_around_it(torch):
    @torch.compile(backend="eager")
    def step(u, t):
        return (softmap.soft_map(2 * u, t, EDGES, 1.0).nodes ** 2).sum() + 1

    unary = torch.tensor(UNARY, requires_grad=True)
    compiled = step(unary, torch.tensor(TABLES))
    plain = (softmap.soft_map(2 * unary, TABLES, EDGES, 1.0).nodes ** 2).sum() + 1
    assert torch.allclose(compiled, plain)
    (grad,) = torch.autograd.grad(compiled, unary)
    (expected,) = torch.autograd.grad(plain, unary)
    assert torch.allclose(grad, expected)


def test_members_of_a_batch_may_have_graphs_of_their_own():
    graphs = [EDGES, [[0, 5], [5, 3], [1, 2]]]
    edges = np.full((2, len(EDGES), 2), -1)
    edges[0], edges[1, :3] = EDGES, graphs[1]
    beliefs, pull = soft_map_vjp(UNARY, TABLES, edges, 1.5)
    by_unary, by_table = pull(G_NODES, G_EDGES)
    total = np.zeros_like(TABLES)
    for k, graph in enumerate(graphs):
        m = len(graph)
        single, pull_one = soft_map_vjp(UNARY[k], TABLES[:m], graph, 1.5)
        assert np.allclose(beliefs.nodes[k], single.nodes, atol=1e-8)
        assert np.allclose(beliefs.edges[k, :m], single.edges, atol=1e-8)
        assert (beliefs.edges[k, m:] == 0).all()
        g, h = pull_one(G_NODES[k], G_EDGES[k, :m])
        assert np.allclose(by_unary[k], g, atol=1e-7)
        total[:m] += h
    assert np.allclose(by_table, total, atol=1e-7)
    with pytest.raises(softmap.ModelError, match="edges of shape"):
        softmap.soft_map(UNARY, TABLES, edges[:, :2], 1.0)


def test_graphs_of_their_own_in_torch(torch):
    edges = np.stack([EDGES, EDGES[::-1]])
    unary = torch.tensor(UNARY, requires_grad=True)
    found = softmap.soft_map(unary, 0.4, torch.tensor(edges), 1.0)
    (grad,) = torch.autograd.grad((found.nodes**2).sum(), unary)
    same = softmap.soft_map(UNARY, 0.4, EDGES, 1.0)
    assert np.allclose(found.nodes.detach().numpy(), same.nodes, atol=1e-9)
    assert grad.shape == unary.shape


def test_jax_agrees_under_jit_and_vmap(jax):
    def loss(unary, tables):
        beliefs = softmap.soft_map(unary, tables, EDGES, 1.5)
        return (beliefs.nodes * G_NODES).sum() + (beliefs.edges * G_EDGES).sum()

    _, pull = soft_map_vjp(UNARY, TABLES, EDGES, 1.5)
    expected = pull(G_NODES, G_EDGES)
    found = jax.jit(jax.grad(loss, argnums=(0, 1)))(jax.numpy.array(UNARY), jax.numpy.array(TABLES))
    for a, b in zip(found, expected, strict=True):
        assert np.allclose(np.asarray(a), b, atol=1e-5)
    each = jax.vmap(lambda u: softmap.soft_map(u, TABLES, EDGES, 1.5).nodes)(jax.numpy.array(UNARY))
    together = softmap.soft_map(UNARY, TABLES, EDGES, 1.5).nodes
    assert np.allclose(np.asarray(each), together, atol=1e-5)


@pytest.mark.parametrize("given", [softmap.Potts(0.5), softmap.Potts([0.5] * 3), 0.5])
def test_a_potential_stands_for_its_tables(given):
    unary = np.random.default_rng(1).normal(size=(4, 3))
    edges = [[0, 1], [1, 2], [2, 3]]
    expected = softmap.soft_map(unary, 0.5 * (1 - np.eye(3)), edges, eta=2.0)
    found = softmap.soft_map(unary, given, edges, eta=2.0)
    assert np.allclose(found.nodes, expected.nodes)
    assert np.allclose(found.edges, expected.edges)
    with pytest.raises(softmap.ModelError, match="3 edges"):
        softmap.soft_map(unary, softmap.Potts([0.5, 1.0]), edges, eta=2.0)


def test_the_module_of_the_guide_has_gradients(torch):
    guide = (ROOT / "docs" / "guides" / "learning.md").read_text("utf-8")
    (code,) = re.findall(r"```text\n(class Smoothing.*?)```", guide, flags=re.DOTALL)
    names = {
        "torch": torch,
        "softmap": softmap,
        "edges": EDGES,
        "features": torch.randn(4, 6, 5),
        "labels": torch.randint(0, 3, (4, 6)),
    }
    exec(code, names)
    assert names["network"][1].table.grad.abs().sum() > 0


@pytest.mark.parametrize("edges", [EDGES, np.zeros((0, 2), dtype=np.int64)])
def test_what_a_device_computes_is_what_the_processor_does(edges):
    """The arrays of a device are those of numpy here: the same operations, member by member."""
    rng, m = np.random.default_rng(3), len(edges)
    unary, tables = rng.normal(size=(4, 6, 3)), rng.normal(size=(4, m, 3, 3))
    given = rng.normal(size=unary.shape), rng.normal(size=tables.shape)
    beliefs, pull = soft_map_vjp(unary, tables, edges, 3.0)
    problem = layer.LayerProblem(np.asarray(edges), 3.0)
    nodes, pairs, lam = layer.device_forward(problem, unary, tables, np)
    np.testing.assert_allclose(nodes, beliefs.nodes, atol=1e-9)
    np.testing.assert_allclose(pairs, beliefs.edges, atol=1e-9)
    found = layer.device_backward(problem, (unary, tables), lam, given, np)
    for one, other in zip(found, pull(*given), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7)


RAMP = RNG.uniform(0.3, 1.0, size=len(EDGES))
FAMILIES = {
    "Potts": (softmap.Potts, RAMP),
    "one Potts weight": (softmap.Potts, np.array(0.5)),
    "linear": (lambda w: softmap.TruncatedLinear(w, truncation=1.5), RAMP),
    "linear cut": (lambda w: softmap.TruncatedLinear(RAMP, w), RAMP + 1.0),
    "one quadratic": (softmap.TruncatedQuadratic, np.array(0.3)),
    "quadratic": (lambda w: softmap.TruncatedQuadratic(w, 2.5), -RAMP),
    "shared": (lambda w: softmap.SharedTables(TABLES[:2], np.arange(len(EDGES)) % 2, w), RAMP),
    "shared tables": (lambda t: softmap.SharedTables(t, 0), TABLES[:1]),
    "tables": (softmap.Tables, TABLES),
}


@pytest.mark.parametrize(("family", "weights"), FAMILIES.values(), ids=FAMILIES)
def test_torch_differentiates_by_the_weights_of_every_family(torch, family, weights):
    unary, given = torch.tensor(UNARY[0]), torch.tensor(weights, requires_grad=True)
    plain = softmap.soft_map(UNARY[0], family(weights), EDGES, 1.5)
    found = softmap.soft_map(unary, family(given), EDGES, 1.5)
    np.testing.assert_allclose(found.nodes.detach(), plain.nodes, atol=1e-9)
    np.testing.assert_allclose(found.edges.detach(), plain.edges, atol=1e-9)
    assert torch.autograd.gradcheck(
        lambda w: softmap.soft_map(unary, family(w), EDGES, 1.5, tolerance=1e-13),
        (given,), atol=1e-6, nondet_tol=1e-9, fast_mode=True,
    )  # fmt: skip


@pytest.mark.parametrize(("family", "weights"), FAMILIES.values(), ids=FAMILIES)
def test_jax_differentiates_by_the_weights_of_every_family(jax, family, weights):
    def total(w):
        nodes, edges = softmap.soft_map(UNARY[0], family(w), EDGES, 1.5, tolerance=1e-13)
        return (nodes * G_NODES[0]).sum() + (edges * G_EDGES[0]).sum()

    step = 1e-5 * RNG.normal(size=weights.shape)
    slope = (total(weights + step) - total(weights - step)) / 2  # NumPy
    found = jax.grad(total)(jax.numpy.asarray(weights))
    assert float((np.asarray(found) * step).sum()) == pytest.approx(slope, rel=1e-3, abs=1e-10)


def test_perturbed_map_differentiates_by_weights(torch):
    weight = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    given = {"edges": EDGES, "eta": 1.0, "samples": 2, "threads": 1}
    found = softmap.learn.perturbed_map(UNARY[0], softmap.Potts(weight), **given)
    plain = softmap.learn.perturbed_map(UNARY[0], softmap.Potts(0.5), **given)
    assert np.array_equal(found.nodes.detach(), plain.nodes)
    assert torch.isfinite(torch.autograd.grad(found.edges[:, 0, 0].sum(), weight)[0])


def test_no_gradient_is_lost_silently(torch):
    weights = torch.full((len(EDGES),), 0.5, requires_grad=True)
    for given in (softmap.Potts(weights), softmap.Potts([weights[0]] * len(EDGES))):
        assert isinstance(given, softmap.model.potentials.Potential)
        with pytest.raises(softmap.ModelError, match="Potts require a gradient"):
            softmap.Model(UNARY[0], EDGES, given)
        softmap.soft_map(UNARY[0], given, EDGES, 1.0).nodes.sum().backward()
    softmap.Model(UNARY[0], EDGES, softmap.Potts(weights.detach()))
    with pytest.raises(softmap.ModelError, match="edges were given for Potts with a gradient"):
        softmap.soft_map(UNARY[0], softmap.Potts(weights[:2]), EDGES, 1.0)
    with pytest.raises(softmap.ModelError, match="one number per edge"):
        softmap.soft_map(UNARY[0], softmap.Potts(weights[None]), EDGES, 1.0)
    with pytest.raises(softmap.OptionError, match="eta requires a gradient"):
        softmap.soft_map(UNARY[0], 0.5, EDGES, torch.tensor(1.0, requires_grad=True))
    with pytest.raises(softmap.ModelError, match="list of tensors: stack them"):
        softmap.soft_map(list(torch.tensor(UNARY)), 0.5, EDGES, 1.0)


def test_a_family_of_ones_own_says_that_it_has_no_gradient(torch):
    class Ordered(softmap.Potts):
        family = "ordered"

    weight = torch.tensor(0.5, requires_grad=True)
    with pytest.raises(softmap.ModelError, match="no gradient by a Ordered"):
        softmap.soft_map(UNARY[0], Ordered(weight), EDGES, 1.0)


def test_jax_has_second_derivatives_by_reverse_mode(jax):
    differ = 1 - np.eye(3)

    def loss(unary, w):
        return (softmap.soft_map(unary, softmap.Potts(w), EDGES, 1.2).nodes ** 2).sum()

    def slope(unary, w):
        by_unary, by_weight = jax.grad(loss, argnums=(0, 1))(unary, w)
        return (by_unary * jax.numpy.asarray(G_NODES[0])).sum() + 5 * by_weight

    def plain(unary, w):  # the slope, by NumPy
        beliefs, pull = soft_map_vjp(unary, w * differ, EDGES, 1.2, tolerance=1e-13)
        by_unary, by_table = pull(2 * beliefs.nodes, np.zeros_like(beliefs.edges))
        return np.vdot(by_unary, G_NODES[0]) + 5 * np.vdot(by_table, differ)

    found = jax.jit(jax.grad(slope, argnums=(0, 1)))(jax.numpy.asarray(UNARY[0]), 0.5)
    step, h = 1e-4 * G_NODES[1], 1e-4
    by_unary = (plain(UNARY[0] + step, 0.5) - plain(UNARY[0] - step, 0.5)) / 2
    by_weight = (plain(UNARY[0], 0.5 + h) - plain(UNARY[0], 0.5 - h)) / (2 * h)
    assert np.vdot(found[0], step) == pytest.approx(by_unary, rel=1e-3)
    assert float(found[1]) == pytest.approx(by_weight, rel=1e-3)


def test_an_edge_index_is_transposed():
    expected = softmap.soft_map(UNARY, 0.5, EDGES, 1.0)
    assert np.array_equal(softmap.soft_map(UNARY, 0.5, EDGES.T, 1.0).nodes, expected.nodes)
    both = softmap.soft_map(UNARY, 0.5, np.stack([EDGES.T, EDGES.T]), 1.0)
    np.testing.assert_allclose(both.nodes, expected.nodes, atol=1e-9)
    with pytest.raises(softmap.ModelError, match=r"not \(2, 7\): transpose it"):
        softmap.Model(UNARY[0], EDGES.T, 0.5)
    assert np.array_equal(softmap.learn.Sample(UNARY[0], EDGES.T).edges, EDGES)


@pytest.mark.parametrize(
    ("unary", "pairwise", "words"),
    [
        ([UNARY[0], UNARY[1, :4]], 0.5, r"shapes \(4, 3\) and \(6, 3\): pad the members"),
        (UNARY, [TABLES[0], TABLES[0, :2]], "pairwise is a list of arrays of shapes"),
        ({"x": UNARY, "y": 0}, 0.5, "not a dict with the keys x, y"),
        (UNARY[0, 0], 0.5, r"expected unary \(..., n, d\)"),
    ],
)
def test_ragged_batches_and_dicts_are_named(unary, pairwise, words):
    with pytest.raises(softmap.ModelError, match=words):
        softmap.soft_map(unary, pairwise, EDGES, 1.0)


def test_graphs_of_pytorch_geometric_as_in_the_guide(torch):
    """The graph lists each undirected edge in both directions; the guide keeps one of them."""
    guide = (ROOT / "docs" / "guides" / "learning.md").read_text("utf-8")
    (code,) = re.findall(r"```text\n(once = .*?)```", guide, flags=re.DOTALL)
    both = torch.tensor(np.concatenate([EDGES, EDGES[:, ::-1]]).T)
    given = {"x": torch.tensor(-UNARY[0]), "edge_index": both, "y": torch.arange(6) % 3}
    try:
        from torch_geometric.data import Data
    except ImportError:  # an object with the same attributes
        from types import SimpleNamespace as Data
    names = {"torch": torch, "softmap": softmap, "data": Data(**given), "network": lambda x, _: x}
    exec(code, names)
    expected = softmap.soft_map(UNARY[0], 0.5, EDGES, 1.0).nodes
    assert np.allclose(names["beliefs"].detach(), expected)
    assert names["weight"].grad != 0


def test_jax_cotangents_may_be_numpy_arrays(jax):
    from jax.test_util import check_grads

    rng = np.random.default_rng(0)
    unary = jax.numpy.asarray(rng.normal(size=(3, 2)), jax.numpy.float32)
    tables = jax.numpy.asarray(rng.normal(size=(2, 2, 2)), jax.numpy.float32)

    def nodes(unary):
        return softmap.soft_map(unary, tables, [[0, 1], [1, 2]], 2.0).nodes

    values, pull = jax.vjp(nodes, unary)
    given = rng.normal(size=values.shape).astype(np.float32)
    expected = pull(jax.numpy.asarray(given))[0]
    np.testing.assert_allclose(pull(given)[0], expected, rtol=1e-6)
    check_grads(nodes, (unary,), order=1, modes=["rev"], atol=2e-2, rtol=2e-2)
