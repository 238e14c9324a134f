"""Variables that factors count with stay hidden: in grids, under names, and in later runs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import softmap
from softmap.model.lowered_nodes import NO_RUNNING

ROWS, COLUMNS, CHOSEN = 3, 4, 5
N = ROWS * COLUMNS


def counted(seed: int, names: bool = False) -> softmap.Model:
    """A path with random costs of which exactly so many variables have label 1."""
    rng = np.random.default_rng(seed)
    factors = [((i,), costs) for i, costs in enumerate(rng.normal(size=(N, 2)))]
    factors += [((i, i + 1), rng.normal(size=(2, 2))) for i in range(N - 1)]
    exact = np.where(np.arange(N + 1) == CHOSEN, 0.0, np.inf)
    factors.append(softmap.Cardinality(range(N), 1, exact))
    counts = {f"v{i}": ["no", "yes"] for i in range(N)} if names else [2] * N
    return softmap.Model.from_factors(counts, factors)


def least(model: softmap.Model) -> float:
    every = (np.arange(2**N)[:, None] >> np.arange(N)) & 1
    return float(model.energy(every[every.sum(axis=1) == CHOSEN]).min())


@pytest.mark.parametrize("seed", range(3))
def test_labels_of_a_grid_have_its_shape_and_are_taken_in_it(seed: int) -> None:
    model = counted(seed).with_shape((ROWS, COLUMNS))
    assert model.network.num_variables > model.network.num_visible == N
    result = softmap.solve(model)
    assert result.labels.shape == (ROWS, COLUMNS)
    assert result.labels.sum() == CHOSEN
    assert result.energy == pytest.approx(least(model), abs=1e-9)
    assert model.energy(result.labels) == model.energy(result.labels.ravel()) == result.energy
    both = np.stack([result.labels, result.labels])
    assert model.energy(both).tolist() == [result.energy] * 2
    assert softmap.verify(result).holds


def test_names_are_those_of_the_visible_variables() -> None:
    model = counted(0, names=True)
    assert model.fingerprint() == counted(0).fingerprint()
    result = softmap.solve(model)
    found = result.as_dict()
    assert len(found) == N
    assert list(found.values()).count("yes") == CHOSEN
    assert model.energy(found) == result.energy
    renamed = counted(0).with_names([f"w{i}" for i in range(N)])
    assert softmap.solve(renamed)["w3"] == int(found["v3"] == "yes")


@pytest.mark.parametrize("grid", [False, True])
def test_a_warm_start_completes_the_labels_of_the_earlier_result(grid: bool) -> None:
    model = counted(1).with_shape((ROWS, COLUMNS)) if grid else counted(1)
    first = softmap.solve(model)
    noise = 0.05 * np.random.default_rng(2).normal(size=model.network.num_visible * 2)
    other = model.replace(unary=model.unary + noise)
    again = softmap.solve(other, warm_start=first)
    assert again.labels.shape == first.labels.shape
    assert again.energy == pytest.approx(least(other), abs=1e-9)
    assert again.bound <= least(other) + 1e-9


def test_ranked_labellings_and_archives_show_the_grid(tmp_path) -> None:
    model = counted(2).with_shape((ROWS, COLUMNS))
    every = (np.arange(2**N)[:, None] >> np.arange(N)) & 1
    energies = np.sort(model.energy(every[every.sum(axis=1) == CHOSEN]))
    ranked = softmap.solve_mbest(model, 3)
    assert [r.labels.shape for r in ranked] == [(ROWS, COLUMNS)] * 3
    assert [r.energy for r in ranked] == pytest.approx(energies[:3].tolist(), abs=1e-9)
    result = softmap.solve(model)
    result.save(tmp_path / "result.npz")
    assert softmap.load_result(tmp_path / "result.npz") == result
    copy = pickle.loads(pickle.dumps(model))
    assert copy.network.num_visible == N
    assert copy.fingerprint() == model.fingerprint()
    assert softmap.load_result(tmp_path / "result.npz", copy).labels.shape == (ROWS, COLUMNS)
    page = result.report(tmp_path / "page.html").read_text()
    assert f"{ROWS} rows by {COLUMNS} columns" in page


def test_running_variables_are_part_of_the_fingerprint() -> None:
    model = counted(0)
    bare = model.network._with(running=NO_RUNNING)
    assert bare.fingerprint() != model.fingerprint()


@pytest.mark.parametrize("seed", range(3))
def test_the_relaxation_of_an_assignment_ends_with_labels(seed):
    rng = np.random.default_rng(seed)
    flow, distance = rng.integers(0, 9, (2, 7, 7))
    lines = [" ".join(map(str, row)) for row in (*flow, *distance)]
    model = softmap.io.parse("\n".join(["7", *lines]).encode(), "qap", one_to_one=True)
    result = softmap.solve(model, goal="lp", threads=1, max_work=600 * model.network.m)
    assert result.found
    assert len(set(result.labels)) == 7
    chosen = distance[np.ix_(result.labels, result.labels)]
    assert result.energy == (flow * chosen).sum() >= result.bound
