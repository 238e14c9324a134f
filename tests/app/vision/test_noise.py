"""The parts of denoising: the noise, pixels that look alike, values between the levels."""

import numpy as np
import pytest

import softmap
from softmap.app.vision import patches
from softmap.app.vision.landscape import damaged, landscape
from softmap.app.vision.sublevels import _best, refined

CLEAN = landscape(60, 90)[..., 1]


def rms(difference):
    return float(np.sqrt((difference**2).mean()))


@pytest.mark.parametrize("noise", [5.0, 25.0])
def test_the_noise_of_an_image_is_estimated(noise):
    noisy = CLEAN + np.random.default_rng(1).normal(0, noise, CLEAN.shape)
    hidden = np.zeros(CLEAN.shape, dtype=bool)
    hidden[20:30] = True
    assert patches.noise_of(noisy) == pytest.approx(noise, rel=0.15)
    assert patches.noise_of(np.where(hidden, 255.0, noisy), hidden) == pytest.approx(noise, rel=0.2)
    assert patches.noise_of(np.full((9, 9), 70.0)) == patches.RULE.least
    assert patches.noise_of(np.full((1, 9), 70.0)) == patches.RULE.least


def test_measurements_are_sums_over_pixels_that_look_alike():
    """Against a plain loop over all pairs of pixels."""
    rng = np.random.default_rng(2)
    image, hidden = rng.uniform(0, 60, (7, 9)), rng.random((7, 9)) < 0.15
    found = patches.measured(image, 20.0, hidden)
    total, count = np.zeros(image.shape), np.zeros(image.shape)
    for i in np.ndindex(image.shape):
        for j in np.ndindex(image.shape):
            if not hidden[j] and max(abs(i[0] - j[0]), abs(i[1] - j[1])) <= patches.RULE.reach:
                weight = 1.0 if i == j else likeness(image, hidden, i, j, 20.0)
                total[i] += weight * image[j]
                count[i] += weight
    np.testing.assert_allclose(found.count, count)
    np.testing.assert_allclose((found.mean[..., 0] * found.count), total)


def likeness(image, hidden, i, j, noise):
    """The weight of two pixels: patches are compared in the part that both images cover."""
    down, right = j[0] - i[0], j[1] - i[1]
    rows, columns = image.shape
    half = patches.RULE.side // 2
    top, bottom = max(0, -down), rows - 1 - max(0, down)
    left, end = max(0, -right), columns - 1 - max(0, right)
    around = np.arange(-half, half + 1)
    y = np.clip(i[0] + around, top, bottom)[:, None]
    x = np.clip(i[1] + around, left, end)
    seen = ~hidden[y, x] & ~hidden[y + down, x + right]
    if not seen.any():
        return 0.0
    squares = (image[y, x] - image[y + down, x + right])[seen] ** 2
    excess = max(squares.mean() - 2 * noise**2, 0.0)
    return np.exp(-excess / (patches.RULE.spread * noise) ** 2)


def test_the_best_value_of_a_pixel_is_the_minimum_over_a_fine_scale():
    rng = np.random.default_rng(3)
    x, mean = rng.uniform(0, 50, (2, 6, 7))
    pull = rng.uniform(0.5, 20, x.shape)
    found = _best(x, mean, pull, 25.0)
    scale = np.linspace(-50, 100, 15001)
    for i, j in np.ndindex(x.shape):
        around = [x[a, b] for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1))
                  if 0 <= a < 6 and 0 <= b < 7 and abs(x[a, b] - x[i, j]) <= 25.0]  # fmt: skip
        cost = (scale - mean[i, j]) ** 2 / 2
        cost += pull[i, j] * sum((np.abs(scale - value) for value in around), np.zeros_like(scale))
        assert found[i, j] == pytest.approx(scale[cost.argmin()], abs=0.011)


def energy(x, mean, precision, weight):
    steps = np.abs(np.diff(x, axis=0)).sum() + np.abs(np.diff(x, axis=1)).sum()
    return (precision * (x - mean) ** 2).sum() / 2 + weight * steps


def test_values_between_the_levels_cost_less_and_stay_near_their_label():
    rng = np.random.default_rng(4)
    mean = rng.uniform(0, 60, (12, 13))
    precision = rng.uniform(0.0, 0.1, mean.shape)
    levels = np.round(mean / 8) * 8
    x = refined(levels, 8.0, mean, precision, 0.3, np.inf)
    assert energy(x, mean, precision, 0.3) < energy(levels, mean, precision, 0.3)
    assert np.abs(x - levels).max() <= 4.0


def test_denoising_needs_no_tuning_for_the_noise():
    for noise in (10.0, 25.0, 40.0):
        noisy = CLEAN + np.random.default_rng(5).normal(0, noise, CLEAN.shape)
        found = softmap.denoise(noisy, time_limit=3)
        assert rms(found.image - CLEAN) < 0.55 * noise
        levels = np.linspace(0, 255, 32)[found.labels]
        assert rms(found.image - CLEAN) < rms(levels - CLEAN)
        assert np.abs(found.image - levels).max() <= 255 / 62 + 0.5
        assert found.bound <= found.energy == found.result.model.energy(found.labels)


def test_the_photograph_of_the_demo_is_restored():
    clean = landscape(40, 60)
    noisy, scratched = damaged(clean)
    assert scratched.mean() > 0.05
    found = softmap.denoise(noisy, mask=scratched, time_limit=3)
    assert rms(found.image - clean) < 0.25 * rms(noisy - clean)
    assert rms((found.image - clean)[scratched]) < 25.0


@pytest.mark.parametrize("noise", [0.0, -1.0, np.nan])
def test_a_noise_that_is_no_deviation_is_refused(noise):
    with pytest.raises(softmap.OptionError, match="noise"):
        softmap.denoise(CLEAN, noise=noise)
