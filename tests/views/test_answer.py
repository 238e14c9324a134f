"""What `softmap solve` prints of the labelling: labels of small models, thumbnails on terminals."""

import io

import numpy as np
import pytest
from rich.console import Console

import softmap
from softmap.app.cli.app import main
from softmap.views.answer import half_blocks, labels_in_words, print_answer


def printed(result, **options) -> str:
    stream = io.StringIO()
    print_answer(Console(file=stream, width=40, **options), result)
    return stream.getvalue()


@pytest.fixture(scope="module")
def image():
    return softmap.solve(softmap.generators.potts_grid(9, 30, 3, seed=1))


def test_labels_of_a_small_model_are_printed():
    model = softmap.Model(np.array([[0, 1], [1, 0], [0, 1]]), [[0, 1]], softmap.Potts(0.1))
    assert printed(softmap.solve(model)) == "labels  0 1 0\n"


def test_names_are_printed_where_there_are_any():
    named = softmap.Model.from_factors({"Rain": ["no", "yes"]}, [((0,), [1.0, 0.0])])
    assert printed(softmap.solve(named)) == "labels  Rain = yes\n"


def test_rows_of_a_grid_stand_below_each_other():
    model = softmap.generators.potts_grid(2, 3, 12, seed=1)
    words = labels_in_words(model, np.array([0, 11, 2, 3, 4, 5]))
    assert words == "labels   0 11  2\n         3  4  5"


def test_a_terminal_with_colours_shows_a_thumbnail(image):
    shown = printed(image, force_terminal=True, color_system="truecolor")
    lines = shown.splitlines()
    assert len(lines) == 5, "nine rows of pixels, two to a line"
    assert all(line.count("▀") == 30 for line in lines)
    assert "38;2;" in shown


@pytest.mark.parametrize(
    "options",
    [{}, {"color_system": "256"}, {"no_color": True}],
    ids=["a pipe", "256 colours", "NO_COLOR"],
)
def test_nothing_is_drawn_elsewhere(image, options):
    shown = printed(image, force_terminal=bool(options), **options)
    assert "▀" not in shown
    assert "\x1b" not in shown


def test_labels_that_break_a_constraint_are_not_printed(image):
    from dataclasses import replace

    assert printed(replace(image, energy=np.inf), force_terminal=True) == ""


def test_a_large_image_is_reduced_to_the_width_of_the_terminal():
    colours = np.zeros((300, 500, 3), dtype=np.uint8)
    colours[:, 250:] = 255
    lines = half_blocks(colours, 40)
    assert len(lines) <= 24
    assert {len(line) for line in lines} == {40}
    assert lines[0][0] == ((0, 0, 0), (0, 0, 0))
    assert lines[0][-1] == ((255, 255, 255), (255, 255, 255))


def test_solve_prints_the_labels_into_a_pipe_without_colours(tmp_path, capsys):
    path = tmp_path / "small.npz"
    model = softmap.Model(np.array([[0.0, 1], [1, 0]]), [[0, 1]], softmap.Potts(0.1))
    softmap.write(model, path)
    assert main(["solve", str(path), "--no-progress"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("labels  0 1\n")
    assert "\x1b" not in shown
