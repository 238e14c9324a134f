"""The semidefinite bound of spins: loops against numpy twins, bounds against enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import softmap
from softmap import core
from softmap.subsolvers.search.search_numbers import SearchNumbers
from softmap.subsolvers.spins.bound import (
    SIGNS,
    SpinBound,
    _least_eigenvalue,
    _shift,
    triangle_matrix,
)  # fmt: skip
from softmap.subsolvers.spins.form import SpinForm
from softmap.subsolvers.spins.rounding import flip, rounded_spins
from softmap.subsolvers.spins.spin_numbers import SpinSteps
from softmap.subsolvers.spins.tree import SpinTree
from softmap.tuning import Tuning
from softmap.verification.integers import flat_model
from softmap.verification.limit import Limits
from softmap.verification.records import Rejected
from softmap.verification.spins import SpinLeaves, _below_zero
from support.exact_sums import all_costs

FOREVER = core.Deadline(math.inf)


def random_model(seed: int, most: int = 9) -> softmap.Model:
    """A model of two labels: integers, halves, floats or huge numbers; some without a field."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most + 1))
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    pairs = pairs[rng.random(len(pairs)) < rng.choice([0.4, 0.8, 1.0])]
    pairs = pairs if len(pairs) else np.array([[0, 1]])
    draw = [
        lambda size: rng.integers(-9, 10, size).astype(float),
        lambda size: rng.integers(-9, 10, size) / 2,
        lambda size: rng.standard_normal(size),
        lambda size: rng.standard_normal(size) * 10.0 ** rng.integers(-12, 13),
        lambda size: rng.standard_normal(size) * 10.0 ** rng.integers(-3, 4, size),
    ][seed % 5]
    tables, unary = draw((len(pairs), 2, 2)), draw((n, 2))
    if rng.random() < 0.3:  # a cut: costs of equal labels only
        tables = draw((len(pairs), 1, 1)) * np.eye(2)
        unary = np.zeros((n, 2))
    return softmap.Model(unary, pairs, softmap.Tables(tables), constant=float(draw(1)[0]))


def optimum(model: softmap.Model) -> Fraction:
    """The least cost of all labellings, in exact arithmetic."""
    n = model.network.num_variables
    parts = [((i,), own) for i, own in enumerate(model.unary.reshape(n, 2))]
    return all_costs([2] * n, [*parts, *flat_model(model.network).factors], model.constant).least


def checked(model: softmap.Model, tree: SpinTree) -> Fraction:
    """The bound that the checker finds from the leaves of a tree."""
    leaves = SpinLeaves(flat_model(model.network), Limits())
    for leaf in tree.leaves:
        found = leaf.multipliers
        path = [part for i, s in zip(leaf.spins, leaf.signs, strict=True) for part in (i, s < 0)]
        leaves.add(
            np.array(path, np.int64), found.diagonal.view(np.int64),
            found.triangles.ravel().astype(np.int64), found.weights.view(np.int64),
        )  # fmt: skip
    return leaves.bound()


def try_one(seed: int) -> None:
    """Every bound of a run is below the optimum, and the checker proves at least as much."""
    model = random_model(seed)
    form, least = SpinForm.of(model.network), optimum(model)
    steps = SpinSteps(first_rounds=4, rounds=1, steps=5, halved=50, average=25, sweeps=5)
    tree = SpinTree(form, seed, steps, logged=True)
    tree.relax(3, FOREVER, FOREVER)
    rest = 40
    while not tree.done and rest:
        assert Fraction(tree.bound) <= least
        cost = Fraction(model.energy(tree.labels(model.network.num_variables)))
        tree.run(float(cost) - 1e-9 * abs(float(cost)), FOREVER, FOREVER)
        rest -= 1
    assert Fraction(tree.bound) <= least
    proved = checked(model, tree)
    assert Fraction(tree.bound) <= proved <= least
    if tree.done:
        scale = float(np.abs(model.unary).sum()) + abs(float(least))
        scale += sum(float(np.abs(table).sum()) for _, table in flat_model(model.network).factors)
        assert float(proved) >= float(least) - 1e-6 * scale


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_bounds_and_their_checks_against_enumeration(first: int) -> None:
    for seed in range(first, first + 20):
        try_one(seed)


def test_the_form_costs_what_the_model_costs() -> None:
    for seed in range(60):
        model = random_model(seed, 6)
        form, n = SpinForm.of(model.network), model.network.num_variables
        for labels in itertools.product((0, 1), repeat=n):
            spins = np.append(1.0 - 2.0 * np.array(labels), 1.0)[: len(form.matrix)]
            own = form.labels(spins, n)  # reversed if the last one is the reference
            cost = model.energy(own)
            found = form.constant + float(spins @ form.matrix @ spins)
            size = 1 + np.abs(model.unary).sum() + abs(cost)
            assert abs(found - cost) <= form.lost + 1e-12 * size
            if form.step:
                assert (Fraction(cost) - form.base) % form.step == 0
                assert form.rounded(cost) == cost


def test_no_form_of_hard_constraints() -> None:
    tables = np.array([[[0.0, np.inf], [1.0, 2.0]]])
    model = softmap.Model(np.zeros((2, 2)), [[0, 1]], softmap.Tables(tables))
    assert SpinForm.of(model.network) is None
    with pytest.raises(Rejected):
        SpinLeaves(flat_model(model.network), Limits())


def some_matrix(n: int, seed: int = 0) -> np.ndarray:
    matrix = np.random.default_rng(seed).standard_normal((n, n))
    matrix += matrix.T
    np.fill_diagonal(matrix, 0.0)
    return matrix


def mixed(matrix: np.ndarray, vectors: np.ndarray) -> None:
    """The numpy twin of one sweep."""
    for i in range(len(matrix)):
        force = matrix[i] @ vectors
        vectors[i] = -force / np.linalg.norm(force)


def suggested(vectors: np.ndarray, triangles: np.ndarray, weights: np.ndarray, penalty: float):
    i, j, k, kind = triangles.T
    products = [(vectors[a] * vectors[b]).sum(axis=1) for a, b in ((i, j), (i, k), (j, k))]
    slack = 1 + (SIGNS[kind] * np.stack(products, axis=1)).sum(axis=1)
    return np.maximum(0.0, weights - penalty * slack)


@pytest.mark.parametrize("n", [2, 9, 40])
def test_sweeps_are_those_of_the_twin(n: int) -> None:
    matrix, vectors = some_matrix(n), SpinBound.start(n, 1)
    expected = vectors.copy()
    column, start = np.tile(np.arange(n), n), np.arange(n + 1) * n
    assert core.mix(start, column, matrix.ravel(), vectors, 3) == 3
    for _ in range(3):
        mixed(matrix, expected)
    np.testing.assert_allclose(vectors, expected, atol=1e-10)


def test_steps_with_triangles_are_those_of_the_twin() -> None:
    n, keep, penalty = 12, 0.9, 0.3
    matrix, vectors = some_matrix(n), SpinBound.start(n, 1)
    rng = np.random.default_rng(3)
    corners = np.array(list(itertools.combinations(range(n), 3)))[::7]
    triangles = np.column_stack([corners, rng.integers(0, 4, len(corners))])
    weights = rng.random(len(triangles)) * rng.integers(0, 2, len(triangles))
    averages = weights.copy()
    v, w, a = vectors.copy(), weights.copy(), averages.copy()
    assert core.mix_triangles(matrix, vectors, triangles, weights, averages, penalty, keep, 4) == 4
    for _ in range(4):
        mixed(matrix - triangle_matrix(n, triangles, suggested(v, triangles, w, penalty)), v)
        w = suggested(v, triangles, w, penalty)
        a = keep * a + (1 - keep) * w
    np.testing.assert_allclose(vectors, v, atol=1e-9)
    np.testing.assert_allclose(weights, w, atol=1e-9)
    np.testing.assert_allclose(averages, a, atol=1e-9)


def test_violated_triangles_are_the_worst() -> None:
    n = 19
    vectors = SpinBound.start(n, 2)[:, :3].copy()
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    gram = vectors @ vectors.T
    every = [
        (-(1 + SIGNS[kind] @ [gram[i, j], gram[i, k], gram[j, k]]), (i, j, k, kind))
        for i, j, k in itertools.combinations(range(n), 3)
        for kind in range(4)
    ]
    worst = sorted(((v, t) for v, t in every if v > 0.05), reverse=True)
    assert len(worst) > 30
    found = core.violated_triangles(gram, 0.05, 30).reshape(-1, 4)
    assert {tuple(t) for t in found.tolist()} == {t for _, t in worst[:30]}


@pytest.mark.parametrize("n", [1, 7, 64, 65, 150])
def test_cholesky_is_numpys(n: int) -> None:
    factor = np.random.default_rng(n).standard_normal((n, n))
    matrix = factor @ factor.T + np.eye(n)
    own = matrix.copy()
    assert core.cholesky(own)
    np.testing.assert_allclose(np.tril(own), np.linalg.cholesky(matrix), atol=1e-9)
    matrix[n - 1, n - 1] = -1.0
    assert not core.cholesky(matrix)


def test_eigenvalues_below_zero_are_never_missed() -> None:
    """The checker's bound on the least eigenvalue, against an exact factorisation."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        vectors = rng.integers(-3, 4, (4, 3)).astype(float)
        matrix = vectors @ vectors.T  # of rank 3: the least eigenvalue is 0
        below = _below_zero(matrix)
        assert 0 <= below < 1e-12 * (1 + np.abs(matrix).max())
        matrix[0, 0] -= 1e-3
        with pytest.raises(Rejected):
            _below_zero(matrix - 1e-3 * np.eye(4))


def test_stops_at_any_look_leave_a_bound() -> None:
    model = random_model(5, 9)
    form, least = SpinForm.of(model.network), optimum(model)
    for looks in (1, 2, 5, 20, 60):
        end = core.Deadline(math.inf)
        end.stop_after(looks)
        tree = SpinTree(form, 0, SpinSteps(), logged=True)
        try:
            tree.relax(3, end, FOREVER)
            while not tree.done and not end.passed:
                tree.run(float(least), end, FOREVER)
        except core.OutOfTime:
            pass
        assert Fraction(tree.bound) <= least
        assert Fraction(tree.bound) <= checked(model, tree) <= least


def test_flips_end_where_no_flip_gains() -> None:
    matrix, spins = some_matrix(30), np.ones(30)
    flip(matrix, spins, forces := matrix @ spins)
    assert np.allclose(forces, matrix @ spins)
    assert (spins * forces <= 1e-9).all()


def test_rounded_spins_are_no_worse_than_a_plane_and_stop_in_time() -> None:
    matrix, vectors = some_matrix(40), SpinBound.start(40, 3)
    mixed(matrix, vectors)
    spins = rounded_spins(matrix, vectors, np.random.default_rng(0), FOREVER, SpinSteps())
    planes = vectors @ np.random.default_rng(0).standard_normal((vectors.shape[1], 32))
    signs = np.where(planes >= 0, 1.0, -1.0)
    assert spins @ matrix @ spins <= np.einsum("ik,ij,jk->k", signs, matrix, signs).min() + 1e-9
    with pytest.raises(core.OutOfTime):
        rounded_spins(matrix, vectors, np.random.default_rng(0), core.Deadline(0.0), SpinSteps())


@pytest.mark.parametrize("n", [310, 400])
def test_the_least_eigenvalue_is_found_without_a_library(n: int) -> None:
    matrix = some_matrix(n, n)
    least = np.linalg.eigvalsh(matrix)[0]
    assert least - 1e-9 <= _least_eigenvalue(matrix, SpinSteps(), None) <= 0.99 * least
    shift = _shift(matrix, SpinSteps(), None)
    assert -least <= shift <= -1.3 * least
    with pytest.raises(core.OutOfTime):
        _shift(matrix, SpinSteps(), core.Deadline(0.0))


def test_no_node_is_lost_if_time_ends_while_it_is_rounded(monkeypatch) -> None:
    tree = SpinTree(
        SpinForm.of(dense_model(12).network), 0, SpinSteps(least=0, hopeful=0), logged=False
    )
    tree.relax(3, FOREVER, FOREVER)

    def late(*_args: object) -> None:
        raise core.OutOfTime

    monkeypatch.setattr(tree, "_round", late)
    tree.run(math.inf, FOREVER, FOREVER)
    assert tree.nodes == 1
    assert not tree.done
    assert len(tree._open) == 2


def dense_model(n: int = 20, seed: int = 1) -> softmap.Model:
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    weights = rng.integers(-50, 51, len(pairs)).astype(float)
    return softmap.Model(np.zeros((n, 2)), pairs, softmap.Potts(weights))


def test_a_dense_model_is_proved_by_it_and_the_proof_file_is_checked(tmp_path) -> None:
    model, file = dense_model(), tmp_path / "run.proof"
    alone = Tuning(SearchNumbers(entries=0))  # no other search
    result = softmap.solve(model, proof=file, goal="optimal", tuning=alone)
    assert result.status is softmap.Status.OPTIMAL
    assert result.proof.kind == "semidefinite"
    assert result.proof.stated
    assert bool(softmap.verify(result, proof=file))
    assert bool(softmap.verify(model, proof=file))


def test_sparse_models_are_left_to_clusters() -> None:
    model = softmap.generators.random_grid(6, 6, 2, seed=1)
    result = softmap.solve(model, goal="optimal", max_work=10**6)
    assert not any(row.stage == "semidefinite bound" for row in result.trace)


def test_altered_leaves_prove_nothing_above_the_optimum() -> None:
    model = dense_model(8)
    form, least = SpinForm.of(model.network), optimum(model)
    tree = SpinTree(form, 0, SpinSteps(), logged=True)
    tree.relax(20, FOREVER, FOREVER)
    tree.run(math.inf, FOREVER, FOREVER)
    (leaf,) = tree.leaves
    found = leaf.multipliers
    rng = np.random.default_rng(0)

    def bound(y: np.ndarray, triangles: np.ndarray, g: np.ndarray, path=()) -> Fraction | None:
        leaves = SpinLeaves(flat_model(model.network), Limits())
        try:
            leaves.add(np.array(path, np.int64), y.view(np.int64), triangles, g.view(np.int64))
            return leaves.bound()
        except Rejected:
            return None

    y, g, triangles = found.diagonal, found.weights, found.triangles.ravel().astype(np.int64)
    assert bound(y, triangles, g) is not None
    assert bound(y, triangles, g, (0, 1)) is None  # half of the spins only
    assert bound(y, triangles, -g - 1.0) is None
    assert bound(y[1:].copy(), triangles, g) is None
    assert bound(y + 1.0, triangles, g) is None
    for _ in range(60):
        other = y + rng.normal(0, 5, len(y)), triangles, np.abs(g + rng.normal(0, 5, len(g)))
        proved = bound(*other)
        assert proved is None or proved <= least
