"""The demos: models that mean something, pictures that show it."""

import numpy as np
import pytest

import softmap
from softmap.app.cli.app import main
from softmap.app.vision import demos
from softmap.app.vision.depth import matching_cost
from softmap.app.vision.regions import cluster
from softmap.app.vision.source import Source
from support.data import shared_data

image_module = pytest.importorskip("PIL.Image")

SMALL = {
    "photo": demos.DemoOptions(size=24, labels=8),
    "potts": demos.DemoOptions(size=24, labels=4),
    "stereo": demos.DemoOptions(size=24, labels=6),
    "denoise": demos.DemoOptions(size=24, labels=12),
    "segment": demos.DemoOptions(size=24, labels=3),
    "matching": demos.DemoOptions(size=7),
}


def share(score: str) -> float:
    """The number in a score."""
    return float(score.split(" %")[0])


@pytest.mark.parametrize("name", demos.NAMES)
def test_every_demo_runs_from_the_command_line(name, tmp_path, capsys):
    size = str(SMALL[name].size)
    words = ["demo", name, "--size", size, "--labels", "4", "--out", str(tmp_path / "pictures")]
    assert main([*words, "--time-limit", "5", "--no-progress"]) == 0
    shown = capsys.readouterr().out
    for text in ("energy", "bound", "gap", "Compared with the truth", "No labelling costs less"):
        assert text in shown
    for kind in ("input", "labelling", "pair", "convergence"):
        with image_module.open(tmp_path / "pictures" / f"{name}-{kind}.png") as picture:
            assert min(picture.size) > 50


@pytest.mark.parametrize("name", demos.NAMES)
def test_a_demo_is_the_same_every_time(name):
    first, second = demos.build(name, SMALL[name]), demos.build(name, SMALL[name])
    assert first.model.fingerprint() == second.model.fingerprint()


def test_solving_finds_more_of_the_truth_than_looking_at_each_pixel():
    demo = demos.build("potts", demos.DemoOptions(size=32, labels=4))
    alone = demo.model.unary.reshape(demo.model.n, -1).argmin(axis=1)
    together = softmap.solve(demo.model, lp_gap=1e-2, time_limit=5).labels.ravel()
    assert share(demo.score(together)) > share(demo.score(alone)) + 20


def test_matching_gives_everyone_a_partner_of_their_own():
    demo = demos.build("matching", demos.DemoOptions(size=8))
    result = softmap.solve(demo.model, time_limit=5)
    assert np.isfinite(result.energy)
    assert len(set(result.labels.tolist())) == len(result.labels)


def test_matching_cost_is_least_at_the_shift():
    rng = np.random.default_rng(0)
    right = rng.uniform(0, 255, (10, 40))
    left = np.roll(right, 3, axis=1)
    pair = Source(left, 255.0), Source(right, 255.0)
    cost = matching_cost(*pair, 6, softmap.core.Deadline())
    assert cost.shape == (10, 40, 6)
    assert (cost[:, 6:, 3] == 0.0).all()
    assert cost.min() >= 0.0
    assert cost[:, 6:].mean(axis=(0, 1)).argmin() == 3
    assert (cost[:, :1, 1:] == 20.0).all(), "nothing to compare with beyond the border"


def test_clusters_of_colours_are_found():
    centres = np.array([[0.0, 0, 0], [200, 0, 0], [0, 200, 100]])
    pixels = centres.repeat(50, axis=0) + np.random.default_rng(1).normal(0, 3, (150, 3))
    found = cluster(pixels, 3, seed=0)
    distance = np.linalg.norm(found[:, None] - centres[None, :], axis=2)
    assert (distance.min(axis=0) < 3).all()


@pytest.mark.parametrize("name", ["denoise", "segment"])
def test_own_pictures_are_taken_and_made_smaller(name, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)
    image_module.fromarray(pixels).save(tmp_path / "own.png")
    options = demos.DemoOptions(image=tmp_path / "own.png", size=30, labels=3)
    demo = demos.build(name, options)
    channels = 3 if name == "denoise" else 1
    assert demo.model.network.num_variables == 20 * 30 * channels
    assert "made smaller, from 40 × 60: --size 60 keeps" in demo.story
    assert demo.paint(np.zeros(demo.model.network.num_variables, int)).shape == (20, 30, 3)


def test_stereo_wants_two_pictures_of_one_size(tmp_path):
    for name, size in (("left", (8, 9)), ("right", (8, 7))):
        image_module.fromarray(np.zeros(size, np.uint8)).save(tmp_path / f"{name}.png")
    left, right = tmp_path / "left.png", tmp_path / "right.png"
    with pytest.raises(softmap.OptionError, match="both"):
        demos.build("stereo", demos.DemoOptions(left=left))
    with pytest.raises(softmap.OptionError, match="differ in size"):
        demos.build("stereo", demos.DemoOptions(left=left, right=right))


def test_what_is_not_a_picture_is_refused(tmp_path):
    (tmp_path / "junk.png").write_bytes(b"not a picture")
    with pytest.raises(softmap.FormatError, match=r"junk\.png"):
        demos.build("denoise", demos.DemoOptions(image=tmp_path / "junk.png"))


def test_middlebury_truth_is_found_beside_the_picture():
    folder = shared_data()
    if folder is None:
        pytest.skip("no folder of shared instances")
    pair = folder / "images-stereo" / "tsukuba"
    demo = demos.build(
        "stereo", demos.DemoOptions(left=pair / "im2.png", right=pair / "im6.png", labels=16)
    )
    assert demo.model.shape == (288, 384)
    assert demo.score is not None
    assert share(demo.score(np.zeros(288 * 384, dtype=np.int64))) > 90
