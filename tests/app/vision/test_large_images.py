"""Images that are large beside the time limit: blocks of rows, lower resolutions, memory."""

from __future__ import annotations

import time
import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy.ndimage import uniform_filter

import softmap
from softmap import core
from softmap.app.vision import blocks, picture, preparing, regions
from softmap.app.vision.blocks import edge_values, row_blocks, rows_around, window_sums
from softmap.app.vision.landscape import landscape
from softmap.app.vision.noise import within
from softmap.app.vision.preparing import Prepared, enlarged, finest, smoothed_labels
from softmap.app.vision.source import Source
from softmap.model.graph import neighbours

PHOTO = np.round(landscape(45, 64) + np.random.default_rng(0).normal(0, 9, (45, 64, 3)))
PHOTO = PHOTO.clip(0, 255).astype(np.uint8)


def over() -> core.Deadline:
    """A deadline that has passed."""
    return core.Deadline(0.0)


@pytest.fixture(params=[1, 7, 64 * 5, 1 << 20])
def block(request, monkeypatch):
    """Blocks of one row, a few rows, and the whole image."""
    monkeypatch.setattr(blocks, "BLOCK", request.param)
    monkeypatch.setattr(regions, "BLOCK", request.param)
    return request.param


# --- costs in blocks -----------------------------------------------------------------------------


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("image", [PHOTO, PHOTO[..., 0], PHOTO[:1], PHOTO[:, :1]])
def test_values_of_edges_do_not_depend_on_blocks(block, image, connectivity):
    source = Source.of(image)
    grey = source.grey.reshape(image.shape[0] * image.shape[1], -1)
    first, second = grey[neighbours(image.shape[:2], connectivity)].transpose(1, 2, 0)
    values = edge_values(source, connectivity, regions._squared, core.Deadline())
    np.testing.assert_array_equal(values, ((first - second) ** 2).sum(axis=0))


@pytest.mark.parametrize("seeded", [False, True])
def test_costs_of_colours_are_those_of_all_pixels_at_once(block, seeded):
    source, known = Source.of(PHOTO), None
    if seeded:
        known = np.full(PHOTO.shape[:2], -1)
        known[4, 3:20], known[40, 30:50] = 2, 0
    colours = regions.Colours.of(source, 4, known, 0)
    flat = source.grey.reshape(-1, 3)
    squares = ((flat[:, None] - colours.centres) ** 2).sum(axis=2)
    for label, seeds in colours.marked.items():
        squares[:, label] = ((flat[:, None] - seeds) ** 2).sum(axis=2).min(axis=1)
    expected = regions.colour_costs(squares, 3)
    if seeded:
        assert sorted(colours.marked) == [0, 2]
        fixed = known.reshape(-1) >= 0
        kept = np.arange(4) == known.reshape(-1)[fixed][:, None]
        expected[fixed] = np.where(kept, 0.0, np.inf)
    costs = colours.costs(source, known, core.Deadline())
    np.testing.assert_allclose(costs, expected, rtol=1e-9, atol=1e-9)


def test_sums_over_windows_are_those_of_a_uniform_filter():
    costs = np.random.default_rng(1).normal(size=(13, 9, 3))
    sums = window_sums(costs[rows_around(0, 13, 2, 13)], 5)
    means = uniform_filter(costs, (5, 5, 1), mode="nearest")
    np.testing.assert_allclose(sums / 25, means, atol=1e-12)
    part = window_sums(costs[rows_around(4, 7, 2, 13)], 5)
    np.testing.assert_allclose(part, sums[4:7], atol=1e-12)


def test_labels_of_smoothed_costs_keep_to_what_is_allowed(block):
    costs = np.random.default_rng(2).random((12, 10, 3))
    plain = uniform_filter(costs, (5, 5, 1), mode="nearest").argmin(axis=2)
    np.testing.assert_array_equal(smoothed_labels(costs, core.Deadline()), plain)
    costs[3:9, 2:8, 1] = np.inf
    labels = smoothed_labels(costs, core.Deadline())
    assert np.isfinite(np.take_along_axis(costs, labels[..., None], 2)).all()


# --- the deadline --------------------------------------------------------------------------------


@pytest.mark.parametrize("looks", [1, 2, 3])
def test_every_loop_over_an_image_looks_at_the_deadline(monkeypatch, looks):
    """Each loop, as many looks later; without blocks it would not stop before the end."""
    monkeypatch.setattr(blocks, "BLOCK", 64 * 4)
    monkeypatch.setattr(regions, "BLOCK", 64 * 4)
    monkeypatch.setattr("softmap.model.graph.PIECE", 64 * 4)
    source = Source.of(PHOTO)
    colours = regions.Colours.of(source, 3, None, 0)

    def late() -> core.Deadline:
        deadline = core.Deadline()
        deadline.stop_after(looks)
        return deadline

    loops = [
        lambda: list(row_blocks((45, 64), 1, late())),
        lambda: neighbours((45, 64), 8, late()),
        lambda: colours.costs(source, None, late()),
        lambda: regions.contrast(source, 8, late()),
    ]
    for loop in loops:
        with pytest.raises(core.OutOfTime):
            loop()
    assert smoothed_labels(np.zeros((45, 64, 3)), late()) is None


@pytest.mark.parametrize("last", [1, 2, 4, 8])
def test_the_finest_resolution_for_which_there_is_time(monkeypatch, last):
    monkeypatch.setattr(preparing, "LEAST", 100)
    limit, tried = core.Deadline(1000.0), []

    def build(side: int, deadline: core.Deadline) -> Prepared:
        tried.append((side, deadline.left))
        if side < last:
            raise core.OutOfTime
        return Prepared(softmap.generators.potts_grid(2, 2, 2), lambda labels: labels)

    prepared, side = finest(build, 6400, limit)
    assert prepared is not None
    assert side == last
    assert [one for one, _ in tried] == [2**k for k in range(len(tried))]
    assert all(left <= 500.0 for one, left in tried if one < 8)
    assert tried[-1][1] == np.inf or last < 8  # of 100 pixels: whether or not there is time


def test_a_resolution_that_is_known_is_not_made_again(monkeypatch):
    monkeypatch.setattr(preparing, "LEAST", 1)

    def build(side: int, deadline: core.Deadline) -> Prepared:
        raise core.OutOfTime

    assert finest(build, 6400, core.Deadline(1.0), coarsest=4) == (None, 4)


def test_images_are_enlarged_by_blocks():
    small = np.arange(6).reshape(2, 3)
    assert enlarged(small, 1, (2, 3)) is small
    np.testing.assert_array_equal(
        enlarged(small, 2, (3, 5)), [[0, 0, 1, 1, 2]] * 2 + [[3, 3, 4, 4, 5]]
    )


CALLS = {
    "segment": partial(softmap.segment, PHOTO, 3),
    "segment, seeds": partial(
        softmap.segment, PHOTO, 3, markers=np.where(np.arange(64) % 9 == 0, 1, np.full((45, 1), -1))
    ),
    "denoise": partial(softmap.denoise, PHOTO, levels=8),
    "denoise, grey": partial(softmap.denoise, PHOTO[..., 0], levels=8, mask=PHOTO[..., 1] > 250),
    "stereo": partial(softmap.stereo, PHOTO, np.roll(PHOTO, -4, axis=1), 9),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_no_time_leaves_is_an_honest_answer_at_a_lower_resolution(monkeypatch, name):
    """The model of the whole image was made whatever the limit."""
    monkeypatch.setattr(preparing, "LEAST", 300)
    monkeypatch.setattr(picture, "LEAST", 300)
    found = CALLS[name](time_limit=0)
    model = found.result.model
    assert found.side == 4
    assert "one label for 4 x 4 pixels" in repr(found)
    assert found.labels.shape[:2] == found.image.shape[:2] == PHOTO.shape[:2]
    small = found.labels[::4, ::4] // found.prepared.unit
    np.testing.assert_array_equal(found.labels, enlarged(found.labels[::4, ::4], 4, (45, 64)))
    flat = small if small.ndim == 2 else small.transpose(2, 0, 1)
    assert model.energy(flat.reshape(-1)) == found.energy == found.result.energy
    assert found.bound <= found.energy
    assert softmap.verify(found.result).holds
    assert model.n == 12 * 16 * (3 if small.ndim == 3 else 1)

    same = found.improve(0.0)
    assert same.side == 4
    assert same.energy <= found.energy
    finer = found.improve(30.0)
    assert finer.side == 1
    assert finer.labels.shape == found.labels.shape
    assert "pixels" not in repr(finer)


def test_disparities_of_a_lower_resolution_are_in_pixels(monkeypatch):
    monkeypatch.setattr(preparing, "LEAST", 300)
    right = np.kron(np.random.default_rng(0).uniform(0, 255, (12, 16)), np.ones((4, 4)))
    found = softmap.stereo(np.roll(right, 8, axis=1), right, 12, time_limit=0)
    assert found.side == 4
    assert np.median(found.labels[:, 8:]) == np.median(found.image[:, 8:]) == 8
    assert set(np.unique(found.labels)) <= {0, 4, 8}


def test_a_denoised_image_without_time_has_fewer_measurements(monkeypatch):
    """Those of the nearest pixels come first; a pixel itself always counts."""
    from softmap.app.vision import patches

    image = PHOTO[..., 0].astype(float)
    alone = patches.measured(image, 9.0, None, over())
    np.testing.assert_array_equal(alone.count, 1.0)
    np.testing.assert_array_equal(alone.mean[..., 0], image)
    monkeypatch.setattr(blocks, "BLOCK", 1 << 20)
    deadline = core.Deadline()
    deadline.stop_after(3)
    few = patches.measured(image, 9.0, None, deadline)
    every = patches.measured(image, 9.0)
    assert (few.count <= every.count + 1e-12).all()
    assert alone.count.sum() < few.count.sum() < every.count.sum()


@pytest.mark.parametrize("colour", [False, True])
def test_a_denoised_image_of_a_lower_resolution_keeps_its_edges(monkeypatch, colour):
    """The labels are those of blocks of 4 x 4 pixels; the image is no mosaic of them."""
    monkeypatch.setattr(preparing, "LEAST", 1000)
    clean = landscape(90, 128) if colour else landscape(90, 128)[..., 1]
    rng = np.random.default_rng(0)
    noisy, mask = clean + rng.normal(0, 20, clean.shape), rng.random((90, 128)) < 0.05
    found = softmap.denoise(
        np.where(mask.reshape(90, 128, *[1] * colour), 0.0, noisy), mask=mask, time_limit=0
    )
    assert found.side == 4
    mosaic = np.linspace(0, 255, 32)[found.labels]
    error = [
        float(np.sqrt(((image - clean) ** 2).mean())) for image in (found.image, mosaic, noisy)
    ]
    assert error[0] < 0.9 * min(error[1:])
    values = found.prepared.paint(found.labels[::4, ::4])
    np.testing.assert_array_equal(values, found.image)


def test_values_stay_within_those_of_the_blocks_around():
    rng = np.random.default_rng(1)
    small, whole = rng.uniform(0, 255, (4, 5)), rng.uniform(-50, 300, (11, 14))
    hidden = rng.random(whole.shape) < 0.2
    found = within(small, whole, hidden, 3)
    for i, j in np.ndindex(whole.shape):
        y, x = i // 3, j // 3
        around = small[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2]
        expected = small[y, x] if hidden[i, j] else np.clip(whole[i, j], around.min(), around.max())
        assert found[i, j] == expected


# --- time and memory -----------------------------------------------------------------------------


def test_a_large_image_takes_memory_in_proportion_to_its_model():
    """Peak of all arrays before the run; 12 Mpx took 3.3 GB beside a model of 1.2."""
    image = np.kron(PHOTO, np.ones((10, 10, 1), np.uint8))
    source = Source.of(image)
    tracemalloc.start()
    try:
        colours = regions.Colours.of(source, 4, None, 0)
        costs = colours.costs(source, None, core.Deadline())
        model = regions.region_model(source, costs)
        size = model.unary.nbytes + model.edges.nbytes + model.potentials[0].weights.nbytes
        smoothed_labels(model.unary.reshape(*source.shape, 4), core.Deadline())
        assert model.network.cost_sizes.largest > 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.35 * size


@pytest.mark.parametrize("limit", [0.0, 0.2])
def test_a_large_image_keeps_its_limit_in_cpu_time(limit):
    """CPU time of this thread; 1.44 Mpx at 1 s took 3.3 CPU s."""
    image = np.kron(PHOTO, np.ones((20, 20, 1), np.uint8))  # 1.15 million pixels
    softmap.segment(PHOTO, 3, time_limit=0)  # imports
    began = time.thread_time()
    found = softmap.segment(image, 4, time_limit=limit)
    assert time.thread_time() - began < limit + 0.25
    assert found.side > 1 or limit > 0
