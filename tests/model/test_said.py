"""A model is what was said: its counts, its files, its network that is made once and late."""

from __future__ import annotations

import io
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from softmap import Model
from softmap.io.npz import model_arrays, model_from_arrays
from softmap.model.many import Among, Many
from softmap.model.network import Network

INF = math.inf
KINDS = (
    "at most one", "exactly one", "or", "parity", "max", "linear", "linear by label", "different",
    "among", "cardinality", "convex",
)  # fmt: skip
FEASIBLE = tuple(kind for kind in KINDS if kind != "different")  # whatever the label counts


def _many(kind: str, counts: list[int], rng: np.random.Generator) -> Many:
    n = len(counts)
    k = int(rng.integers(2, n + 1))
    scope = rng.permutation(n)[:k]
    penalty = INF if rng.random() < 0.5 else float(rng.integers(1, 5))
    label = [int(rng.integers(0, counts[i])) for i in scope]
    low, high = int(rng.integers(-2, 2)), int(rng.integers(2, 9))
    rows = [rng.integers(0, 1 << int(rng.integers(2, 24)), counts[i]) for i in scope]
    costs = np.where(rng.random(k + 1) < 0.3, INF, rng.integers(0, 5, k + 1))
    return {
        "at most one": lambda: softmap.AtMostOne(scope, label, penalty),
        "exactly one": lambda: softmap.ExactlyOne(scope, label, penalty),
        "or": lambda: softmap.Or(scope, label, penalty),
        "parity": lambda: softmap.Parity(scope, bool(rng.integers(2)), penalty),
        "max": lambda: softmap.Max(scope, rng.integers(0, 5, max(counts)).astype(float)),
        "linear": lambda: softmap.Linear(
            scope, rng.integers(-3, 5, k), low=low, high=high, penalty=penalty
        ),
        "linear by label": lambda: softmap.Linear(scope, rows, low=3, penalty=penalty),
        "different": lambda: softmap.AllDifferent(scope),
        "among": lambda: Among(scope, [[0, counts[i] - 1] for i in scope], costs),
        "cardinality": lambda: softmap.Cardinality(scope, label, costs),
        "convex": lambda: softmap.Cardinality(scope, 0, np.arange(k + 1.0) ** 2),
    }[kind]()


def _factors(seed: int, kinds: list[str]) -> tuple[list[int], list, list]:
    """Label counts, factors of all arities in any order, and a group of Potts edges."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 20)), int(rng.integers(2, 6))
    counts = [d] * n if rng.random() < 0.5 else rng.integers(1, d + 1, n).tolist()
    factors: list = [((i,), rng.random(counts[i])) for i in range(n)]
    for _ in range(int(rng.integers(0, 10))):
        scope = rng.permutation(n)[: int(rng.integers(2, 4))].tolist()
        factors.append((tuple(scope), rng.random([counts[i] for i in scope])))
    factors += [_many(kind, counts, rng) for kind in kinds]
    order = rng.permutation(len(factors))
    edges = np.array([[i, i + 1] for i in range(n - 1)])
    groups = [(edges, softmap.Potts(rng.random(n - 1)))] if rng.random() < 0.3 else []
    return counts, [factors[i] for i in order], groups


def _read(model: Model) -> Model:
    buffer = io.BytesIO()
    softmap.write(model, buffer, format="npz")
    buffer.seek(0)
    return softmap.read(buffer)


def _same(one: Many, other: Many) -> bool:
    """Whether two factors say the same: family, variables, integers and costs."""
    return (
        type(one) is type(other)
        and one.variables == other.variables
        and all(map(np.array_equal, one.stored(), other.stored()))
    )


@settings(max_examples=500)
@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from(KINDS), max_size=3))
def test_an_archive_holds_what_was_said(seed: int, kinds: list[str]) -> None:
    counts, factors, groups = _factors(seed, kinds)
    try:
        model = Model.from_factors(counts, factors, groups=groups, constant=seed % 3)
    except softmap.InfeasibleModel:
        return
    twin = _read(model)
    assert twin.fingerprint() == model.fingerprint()
    assert len(twin.constraints) == len(model.constraints)
    assert all(map(_same, twin.constraints, model.constraints))
    assert (twin.n, twin.m, len(twin.factors)) == (model.n, model.m, len(model.factors))
    assert "network" not in vars(twin) or not twin.constraints
    labels = np.random.default_rng(seed).integers(0, counts, (20, len(counts)))
    assert twin.energy(labels).tolist() == model.energy(labels).tolist()
    assert twin.network.fingerprint() == model.network.fingerprint()  # λ of one is λ of the other


def test_one_count_of_variables() -> None:
    factors = [((0, 1, 2), np.arange(8.0).reshape(2, 2, 2)), softmap.Parity(range(3, 11))]
    model = Model.from_factors([2] * 11, [*factors, ((0, 1), np.eye(2))])
    assert (model.n, len(model.num_labels), len(model.unary)) == (11, 11, 22)
    assert (model.m, model.edges.tolist()) == (1, [[0, 1]])
    (scope, costs), (parity,) = model.factors[0], model.constraints
    assert (scope, costs.tolist()) == ((0, 1, 2), np.arange(8.0).reshape(2, 2, 2).tolist())
    assert isinstance(parity, softmap.Parity)
    assert parity.variables == tuple(range(3, 11))
    assert model.network.n > model.network.num_variables > model.n
    assert repr(model) == "Model(11 variables, 2 labels, 1 edge, tables, 1 factor, 1 constraint)"


def test_a_model_has_few_attributes_and_none_of_its_network() -> None:
    model = Model([[0, 1], [1, 0]], [[0, 1]], softmap.Potts(0.4))
    assert len([name for name in dir(model) if not name.startswith("_")]) <= 22
    for name in ("half_offset", "num_visible", "num_variables", "auxiliaries", "table", "nbytes"):
        assert hasattr(model.network, name)
        with pytest.raises(AttributeError, match=f"model.network.{name} is about nodes and edges"):
            getattr(model, name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_constraint_is_lowered_once_and_late(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, factors, groups = _factors(5, [kind, "parity"])
    model = Model.from_factors(counts, factors, groups=groups)
    if not model.constraints:
        return
    assert "network" not in vars(model)
    assert (len(model.fingerprint()), len(model.unary)) == (64, sum(counts))
    assert (len(model.edges), len(model.factors) >= 0, bool(repr(model))) == (model.m, True, True)
    assert "network" not in vars(model.with_names([f"v{i}" for i in range(model.n)]))
    assert "network" not in vars(pickle.loads(pickle.dumps(model)))
    assert isinstance(model.network, Network)
    monkeypatch.setattr("softmap.model.model.lowered", None)
    assert model.network is model.network


@pytest.mark.parametrize("seed", range(20))
def test_a_changed_model_is_that_of_changed_factors(seed: int) -> None:
    """Whether the network of the first model was made does not matter."""
    rng = np.random.default_rng(seed)
    counts, factors, groups = _factors(
        seed, ["linear", "at most one", FEASIBLE[seed % len(FEASIBLE)]]
    )
    first, second = (Model.from_factors(counts, factors, groups=groups) for _ in range(2))
    assert second.network.n >= second.n
    unary = rng.random(sum(counts))
    one, other = (model.replace(unary=unary, constant=2.0) for model in (first, second))
    labels = rng.integers(0, counts, (20, len(counts)))
    assert one.fingerprint() == other.fingerprint() != first.fingerprint()
    assert one.network.fingerprint() == other.network.fingerprint()
    start = np.cumsum([0, *counts[:-1]])
    chosen = unary[start + labels].sum(axis=1) - first.unary[start + labels].sum(axis=1) + 2.0
    assert one.energy(labels) == pytest.approx(first.energy(labels) + chosen)
    halved = first.replace(potentials=[p.scaled(0.5) for p in first.potentials])
    assert _read(halved).network.fingerprint() == halved.network.fingerprint()
    fixed = first.condition({0: 0})
    assert np.isfinite(fixed.unary[: counts[0]]).tolist() == [True, *[False] * (counts[0] - 1)]


def _assignment(n: int) -> tuple[Model, np.ndarray]:
    costs = np.random.default_rng(n).random((n, n))
    factors = [((i,), row) for i, row in enumerate(costs)]
    return Model.from_factors([n] * n, [*factors, softmap.AllDifferent(range(n))]), costs


@pytest.mark.parametrize("way", ["factors", "archive", "replaced", "conditioned"])
def test_a_linear_assignment_is_solved_without_its_network(way: str) -> None:
    from scipy.optimize import linear_sum_assignment

    model, costs = _assignment(40)
    if way == "archive":
        model = _read(model)
    elif way == "replaced":
        costs = costs[::-1] + 1.0
        model = model.replace(unary=costs.ravel())
    elif way == "conditioned":
        model = model.condition({3: 7})
        costs[3, np.arange(40) != 7] = 1e6
    result = softmap.solve(model)
    assert "network" not in vars(model)
    expected = costs[linear_sum_assignment(costs)].sum()
    assert result.energy == pytest.approx(expected)
    assert result.bound == pytest.approx(expected)
    assert softmap.verify(result).holds
    assert result.energy == model.energy(result.labels)


def test_files_of_earlier_versions_are_read() -> None:
    """They hold the network; a result of that time has its fingerprint."""
    counts, factors, groups = _factors(3, ["linear", "among", "parity"])
    model = Model.from_factors(counts, factors, groups=groups)
    old = model_from_arrays(model_arrays(model.network), "old.npz")
    assert old.network.fingerprint() == model.network.fingerprint() == old.fingerprint()
    labels = np.random.default_rng(0).integers(0, counts, (9, len(counts)))
    assert old.energy(labels).tolist() == model.energy(labels).tolist()
    assert softmap.model.has_fingerprint(model, old.fingerprint())
    assert not softmap.model.has_fingerprint(model, "")
    assert (old.n, old.num_labels.tolist()) == (model.n, model.num_labels.tolist())


DAMAGED = {
    "many.kind": lambda a: a["many.kind"].astype("U9")[::-1],
    "many.sizes": lambda a: a["many.sizes"] + 1,
    "many.before": lambda a: a["many.before"] - 5,
    "many.variables": lambda a: a["many.variables"] + 1,
    "many.integers": lambda a: a["many.integers"][:-1],
    "many.costs": lambda a: np.full_like(a["many.costs"], np.nan),
    "group_kind": lambda a: a["group_kind"] + 9,
    "edges": lambda a: a["edges"] * 0,
    "larger.variables": lambda a: a["larger.variables"] * 0,
    "larger.costs": lambda a: a["larger.costs"][1:],
    "unary": lambda a: np.full_like(a["unary"], np.nan),
    "num_labels": lambda a: a["num_labels"] + 1,
}


def _archived() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    factors = [
        ((0, 1), rng.random((3, 3))), ((2, 4, 5), rng.random((3, 3, 3))),
        softmap.Linear(range(8), np.arange(8), high=20), softmap.Max(range(8), [0.0, 1.0, 3.0]),
    ]  # fmt: skip
    return {k: np.array(v) for k, v in model_arrays(Model.from_factors([3] * 8, factors)).items()}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_archives_are_refused(name: str) -> None:
    arrays = _archived()
    assert len(model_from_arrays(arrays, "m.npz").constraints) == 2
    with pytest.raises(softmap.FormatError):
        model_from_arrays(arrays | {name: DAMAGED[name](arrays)}, "m.npz")
    del arrays[name]
    with pytest.raises(softmap.FormatError):
        model_from_arrays(arrays, "m.npz")
