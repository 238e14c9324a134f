"""One call each: segments, less noise, depth."""

import numpy as np
import pytest

import softmap
from softmap.app.vision.scenes import regions, stereo_pair

RNG = np.random.default_rng(3)
TRUTH = regions(RNG, 24, 4, 2)


def halves(noise):
    return np.where(TRUTH == 0, 60.0, 190.0) + RNG.normal(0, noise, TRUTH.shape)


def share(labels):
    right = float((labels == TRUTH).mean())
    return max(right, 1 - right)


@pytest.mark.parametrize("kind", ["grey", "colour", "bytes", "parts of one"])
def test_segments_are_found_in_any_kind_of_picture(kind):
    grey = np.clip(halves(40), 0, 255)
    colour = np.stack([grey, 255 - grey, grey], axis=2)
    image = {"grey": grey, "colour": colour, "bytes": colour.astype(np.uint8)}.get(kind, grey / 255)
    found = softmap.segment(image, 2)
    assert share(found.labels) > 0.97 > share(grey > 125)
    assert found.image.shape == image.shape
    assert found.image.dtype == np.uint8
    assert found.energy == found.result.model.energy(found.labels)
    assert 0 <= found.gap <= 1e-3


def test_seeds_are_kept():
    seeds = np.full(TRUTH.shape, -1)
    seeds[3, 4], seeds[20, 20] = 1, 0
    found = softmap.segment(halves(30), 3, seeds=seeds, smoothness=0.5)
    assert (found.labels[3, 4], found.labels[20, 20]) == (1, 0)
    with pytest.raises(softmap.ModelError, match=r"outside 0\.\.1"):
        softmap.segment(halves(30), 2, seeds=np.full(TRUTH.shape, 2))


def test_noise_is_taken_off_and_holes_are_filled():
    clean = np.where(TRUTH == 0, 60.0, 190.0)
    hidden = RNG.random(clean.shape) < 0.1
    noisy = np.where(hidden, 255.0, np.clip(halves(25), 0, 255))
    found = softmap.denoise(noisy, mask=hidden, levels=16)
    assert np.abs(found.image - clean).mean() < 0.5 * np.abs(noisy - clean).mean()
    assert np.abs(found.image - clean)[hidden].mean() < 30


def test_depth_is_found():
    left, right, truth = stereo_pair(RNG, 32, 8)
    found = softmap.stereo(left, right, 8, time_limit=5)
    assert (np.abs(found.image - truth) > 1).mean() < 0.2
    with pytest.raises(softmap.ModelError, match="differ in shape"):
        softmap.stereo(left, right[:, 1:], 8)


def test_pictures_report_themselves(tmp_path):
    path = softmap.segment(halves(30), 2).report(tmp_path / "page.html", title="Two halves")
    page = path.read_text("utf-8")
    assert "Two halves" in page
    assert page.count("<img") >= 2
