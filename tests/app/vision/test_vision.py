"""One call each: segments, less noise, depth."""

import functools
from dataclasses import replace

import numpy as np
import pytest

import softmap
from softmap.app.vision import picture
from softmap.app.vision.demos import regions, stereo_pair
from softmap.app.vision.source import Source
from softmap.views.plotting import load_image

RNG = np.random.default_rng(3)
TRUTH = regions(RNG, 24, 4, 2)


def halves(noise):
    drawn = np.random.default_rng(noise).normal(0, noise, TRUTH.shape)
    return np.where(TRUTH == 0, 60.0, 190.0) + drawn


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
    assert found.image.dtype == image.dtype
    assert found.energy == found.result.model.energy(found.labels)
    assert 0 <= found.relative_gap <= 1e-3
    assert found.gap == found.result.gap


def test_seeds_are_kept():
    seeds = np.full(TRUTH.shape, -1)
    seeds[3, 4], seeds[20, 20] = 1, 0
    found = softmap.segment(halves(30), 3, markers=seeds, smoothness=0.5)
    assert (found.labels[3, 4], found.labels[20, 20]) == (1, 0)
    with pytest.raises(softmap.ModelError, match=r"outside 0\.\.1"):
        softmap.segment(halves(30), 2, markers=np.full(TRUTH.shape, 2))


def test_scribbles_over_several_colours_mark_one_region():
    """An object of two colours: its mean colour is that of the background."""
    image = np.full((20, 30, 3), 120.0)
    image[4:16, 5:15], image[4:16, 15:25] = (30.0, 40, 120), (210.0, 200, 120)
    truth = np.zeros((20, 30), dtype=int)
    truth[4:16, 5:25] = 1
    seeds = np.full(truth.shape, -1)
    seeds[10, 8:22], seeds[1, 3:27] = 1, 0
    noisy = image + np.random.default_rng(0).normal(0, 10, image.shape)
    found = softmap.segment(noisy, 2, markers=seeds)
    assert (found.labels == truth).mean() > 0.97


def test_contrast_weights_are_small_across_edges_of_the_image():
    image = np.where(TRUTH == 0, 60.0, 190.0)
    model = softmap.Model.grid(np.zeros((*TRUTH.shape, 2)), softmap.Potts(1.0), connectivity=8)
    weights = softmap.contrast_weights(image, connectivity=8)
    i, j = model.edges.T
    across = TRUTH.ravel()[i] != TRUTH.ravel()[j]
    assert len(weights) == model.m
    assert (weights[~across] == 1.0).all()
    assert (weights[across] < 0.2).all()
    colour = np.stack([image, 255 - image, image], axis=2)
    np.testing.assert_allclose(softmap.contrast_weights(colour, connectivity=8), weights)


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


def test_colours_tell_depths_apart_that_grey_does_not():
    """Red and green stripes of equal grey: only the colours show the shift."""
    rng = np.random.default_rng(1)
    red = rng.uniform(0, 255, (16, 40))
    right = np.stack([red, 255 - red, np.full_like(red, 128)], axis=2)
    left = np.roll(right, 3, axis=1)
    assert (softmap.stereo(left, right, 6).labels[:, 6:] == 3).mean() > 0.99


def test_the_report_of_a_colour_image_shows_the_answer(tmp_path):
    photo = np.random.default_rng(0).uniform(0, 255, (6, 8, 3))
    page = softmap.denoise(photo, time_limit=1).report(tmp_path / "page.html")
    text = page.read_text("utf-8")
    assert text.count('<img alt=""') == 2
    assert "The image that the labels represent" in text


def test_pictures_report_themselves(tmp_path):
    path = softmap.segment(halves(30), 2).report(tmp_path / "page.html", title="Two halves")
    page = path.read_text("utf-8")
    assert "Two halves" in page
    assert page.count("<img") >= 2


def test_a_picture_is_worked_on_as_long_as_a_person_waits(monkeypatch):
    seen = []

    @functools.wraps(softmap.solve)  # its keywords are those that are taken
    def stopped(model, **options):
        seen.append(options)
        raise Stopped

    monkeypatch.setattr(picture, "solve", stopped)
    for given in ({}, {"max_work": 5}, {"time_limit": None}, {"goal": "optimal"}):
        with pytest.raises(Stopped):
            softmap.segment(halves(30), 2, **given)
    first, *others = [options.get("time_limit") for options in seen]
    assert 0 < first < 8  # the model was made in this time, too
    assert others == [None, None, None]
    assert all(options["gap"] == 1e-3 and options["progress"] is False for options in seen)


class Stopped(Exception):
    pass


def test_a_stopped_picture_says_how_to_go_on():
    first = softmap.denoise(halves(40), max_work=1)
    assert "improve(60) continues" in repr(first)
    assert first.relative_gap > 1e-3
    second = first.improve(30)
    assert second.relative_gap <= 1e-3 < first.relative_gap
    assert second.advice == ""
    assert second.image.shape == first.image.shape
    assert second.energy <= first.energy


def test_pictures_are_saved_and_shown(tmp_path):
    found = softmap.segment(halves(30), 2)
    path = found.save(tmp_path / "x.png")
    assert path.read_bytes()[:4] == b"\x89PNG"
    html = found._repr_html_()
    assert html.count("data:image/png;base64,") == 2
    assert "relative" in html
    pytest.importorskip("matplotlib")
    assert np.abs(load_image(path) - found.image[..., None]).max() <= 0.5
    assert len(found.show().axes) == 2
    found.save(tmp_path / "x.jpg")
    assert (tmp_path / "x.jpg").read_bytes()[:2] == b"\xff\xd8"
    with pytest.raises(softmap.OptionError, match="suffix of a picture"):
        found.save(tmp_path / "x.what")


def test_colours_are_denoised_channel_by_channel():
    noisy = np.stack([halves(25), 250 - halves(26), np.full(TRUTH.shape, 90.0)], axis=2)
    clean = np.stack([np.where(TRUTH == 0, 60.0, 190.0), np.where(TRUTH == 0, 190.0, 60.0)], axis=2)
    found = softmap.denoise(noisy, levels=16)
    assert found.image.shape == found.labels.shape == noisy.shape
    before = np.abs(noisy[..., :2] - clean).mean()
    assert np.abs(found.image[..., :2] - clean).mean() < 0.7 * before
    assert found.energy == found.result.model.energy(found.result.labels)
    assert softmap.verify(found.result).holds
    grey = softmap.denoise(noisy, levels=16, colour=False)
    assert grey.image.shape == TRUTH.shape
    assert softmap.denoise(np.repeat(noisy[..., :1], 3, axis=2), levels=8).image.ndim == 2


def test_disparities_at_the_end_of_the_range_are_reported():
    right = np.random.default_rng(0).uniform(0, 255, (16, 40))
    left = np.roll(right, 7, axis=1)
    with pytest.warns(UserWarning, match="largest disparity, 3: give more"):
        softmap.stereo(left, right, 4, smoothness=0.1)
    assert np.median(softmap.stereo(left, right, 12).image) == 7


def test_a_large_picture_begins_with_labels_of_smoothed_costs(monkeypatch):
    """Whatever stops the run, there is a labelling that is worth looking at."""
    monkeypatch.setattr(picture, "EFFORT", replace(picture.EFFORT, large=1))
    noisy = halves(60)
    found = softmap.segment(noisy, 2, time_limit=0)
    model = found.result.model
    alone = model.unary.reshape(model.n, -1).argmin(axis=1)
    assert found.energy < 0.8 * model.energy(alone)
    assert found.bound <= found.energy
    clean = np.where(TRUTH == 0, 60.0, 190.0)
    begun = softmap.denoise(noisy, time_limit=0)
    assert np.abs(begun.image - clean).mean() < 0.5 * np.abs(noisy - clean).mean()
    assert begun.bound <= begun.energy


RAMP = np.linspace(0, 255, 16).reshape(4, 4)
WIDE = np.round(RAMP * 257).astype(np.uint16)
ALPHA = np.full((4, 4), 255)
ARRAYS = {
    "bytes": (RAMP.astype(np.uint8), RAMP.astype(np.uint8)),
    "16 bits": (WIDE, WIDE / 257.0),
    "truth values": (RAMP > 100, np.where(RAMP > 100, 255.0, 0.0)),
    "integers in 0..255": (RAMP.astype(np.int64), RAMP.astype(np.int64)),
    "10 bits": (np.round(RAMP / 255 * 1023).astype(np.int16), RAMP),
    "12 bits": (np.round(RAMP / 255 * 4095).astype(np.uint16), RAMP),
    "14 bits": (np.round(RAMP / 255 * 16383).astype(np.uint16), RAMP),
    "16 bits in 32": (RAMP.astype(np.int32) * 257, RAMP.astype(np.int32)),
    "integers beyond": (RAMP.astype(np.int64) << 26, "int64 must be in 0..2.32 - 1, not in 0"),
    "negative integers": (RAMP.astype(np.int16) - 9, "must be in 0..2.32 - 1, not in -9..246"),
    "floats in 0..1": (RAMP / 255, RAMP),
    "floats in 0..1 with noise": (RAMP / 255 * 1.2 - 0.1, RAMP * 1.2 - 25.5),
    "floats in 0..255": (RAMP, RAMP),
    "floats in 0..255 with noise": (RAMP * 1.2 - 25.5, RAMP * 1.2 - 25.5),
    "floats beyond": (RAMP * 257, "must be in 0..1 or 0..255"),
    "single precision": ((RAMP / 255).astype(np.float32), RAMP),
    "not a number": (np.where(RAMP > 200, np.nan, RAMP), "finite"),
    "opaque": (np.stack([RAMP, ALPHA], 2).astype(np.uint8), RAMP.astype(np.uint8)[..., None]),
    "transparent": (np.stack([RAMP] * 4, 2).astype(np.uint8), "transparent"),
    "five channels": (np.zeros((4, 4, 5)), "shape"),
}


@pytest.mark.parametrize(("given", "expected"), ARRAYS.values(), ids=ARRAYS)
def test_arrays_are_scaled_by_their_type_or_rejected(given, expected):
    if isinstance(expected, str):
        with pytest.raises(softmap.ModelError, match=expected):
            Source.of(given)
    else:
        assert np.allclose(Source.of(given).grey, expected, atol=0.2)


@pytest.mark.parametrize(
    ("dtype", "white"),
    [
        (np.bool_, 1), (np.uint8, 255), (np.int64, 255), (np.int16, 1023), (np.uint16, 4095),
        (np.uint16, 16383), (np.uint16, 65535), (np.float32, 1.0), (np.float64, 1.0),
        (np.float32, 255.0), (np.float64, 255.0),
    ],
)  # fmt: skip
def test_the_type_and_the_range_of_the_input_are_those_of_the_output(dtype, white):
    truth = np.where(TRUTH == 0, 0.1, 0.9) * white
    noise = np.random.default_rng(0).normal(0, 0.05 * white, TRUTH.shape)
    given = np.clip(truth + noise, 0, white).astype(float)
    given = (given > 0.5 if dtype == np.bool_ else given).astype(dtype)
    if dtype != np.bool_:
        given[0, 0] = white  # so that all bits are in use
    for function in (softmap.denoise, softmap.segment):
        restored = function(given)
        assert restored.image.dtype == given.dtype
        assert restored.given.dtype == given.dtype
        assert np.array_equal(restored.given, given)
        error = np.abs(restored.image.astype(float) - truth)
        assert np.median(error) <= 0.05 * white + (dtype == np.bool_)
        assert restored.image.max() <= white
        assert restored._shown().max() > 200  # shown in grey levels, whatever the type
    disparities = softmap.stereo(given, given, 3)
    assert disparities.image.dtype == np.int64


def test_an_image_of_twelve_bits_keeps_its_grey_values():
    steps = np.linspace(100, 4000, 40).astype(np.uint16)
    image = np.repeat(steps[None, :], 30, axis=0)
    restored = softmap.denoise(image, noise=2.0, levels=128).image
    assert len(np.unique(restored)) >= 30
    assert np.abs(restored.astype(float) - image).mean() < 40


def test_a_stereo_pair_has_one_value_for_white():
    right = np.random.default_rng(0).integers(0, 4096, (12, 24)).astype(np.uint16)
    left = np.roll(right, 3, axis=1)
    left[0, 0], right[0, 0] = 200, 4095
    dark = np.minimum(left, 1000)  # of ten bits alone, twelve beside the other one
    first, second = Source.of(dark, "left").beside(Source.of(right, "right"))
    assert first.white == second.white == 4095
    assert (softmap.stereo(left, right, 6).image[2:, 6:] == 3).mean() > 0.95


def files():
    """Images of every mode; the values that they show, or why they are rejected."""
    pillow = pytest.importorskip("PIL.Image")
    grey = pillow.fromarray(RAMP.astype(np.uint8))
    colour = pillow.merge("RGB", [grey, grey.rotate(90), grey.rotate(180)])
    see_through = colour.convert("RGBA")
    see_through.putalpha(grey)
    hole = grey.convert("P")
    hole.info["transparency"] = 0
    return {
        "L.png": (grey, RAMP.astype(np.uint8)),
        "1.png": (grey.point(lambda v: 255 * (v > 100)).convert("1"), 255 * (RAMP > 100)),
        "I;16.png": (pillow.fromarray(WIDE), np.round(WIDE / 257)),
        "I;16.tif": (pillow.fromarray(WIDE), np.round(WIDE / 257)),
        "I.tif": (pillow.fromarray(RAMP.astype(np.int32) << 20), "more than 16 bits"),
        "F.tif": (pillow.fromarray(RAMP.astype(np.float32)), "floating-point"),
        "P.png": (colour.quantize(64), np.asarray(colour.quantize(64).convert("RGB"))),
        "P transparent.png": (hole, "transparent"),
        "RGB.png": (colour, np.asarray(colour)),
        "RGBA.png": (colour.convert("RGBA"), np.asarray(colour)),
        "RGBA transparent.png": (see_through, "transparent"),
        "LA.png": (grey.convert("LA"), RAMP.astype(np.uint8)),
        "CMYK.tif": (colour.convert("CMYK"), np.asarray(colour)),
    }


@pytest.mark.parametrize("name", files())
def test_image_files_of_every_mode_are_read_or_rejected(name, tmp_path):
    image, expected = files()[name]
    image.save(tmp_path / name, **image.info)
    if isinstance(expected, str):
        with pytest.raises(softmap.FormatError, match=expected):
            Source.of(tmp_path / name)
    else:
        found = Source.of(tmp_path / name).grey
        expected = expected[..., None] if np.ndim(expected) == 2 else expected
        assert np.abs(found - expected).max() <= 1


def test_16_bits_are_not_taken_for_white(tmp_path):
    wide = np.where(TRUTH == 0, 60 * 257, 190 * 257).astype(np.uint16)
    pytest.importorskip("PIL.Image").fromarray(wide).save(tmp_path / "g16.png")
    for given in (wide, tmp_path / "g16.png"):
        restored = softmap.denoise(given, levels=16)
        assert np.abs(restored.image * restored.scale - wide / 257.0).mean() < 12
        assert share(softmap.segment(given, 2).labels) > 0.97
