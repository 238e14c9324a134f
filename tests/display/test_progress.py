"""The displays: live on a terminal, lines elsewhere, silence on demand."""

import io

import numpy as np
from rich.console import Console

from softmap.display.console import number, ratio
from softmap.display.progress import LiveDisplay, PlainLines, Silent, display
from softmap.generators import random_tree
from softmap.solving.trace import Row, Snapshot, StageName


def snapshot(seconds, **changes):
    values = {"work": 0, "sweeps": 0.0, "seconds": seconds, "eta": 100.0, "smoothed": 0.0}
    values |= {"bound": 10.0, "primal": 11.0, "energy": np.inf, "slack": 0.0}
    return Snapshot(random_tree(2), Row(**(values | changes)), np.zeros(2, int))


def test_plain_lines_are_not_too_many():
    stream = io.StringIO()
    show = PlainLines(Console(file=stream, width=200), every=2.0)
    with show:
        for second in np.arange(0.0, 10.0, 0.1):
            show(snapshot(second))
    lines = stream.getvalue().splitlines()
    assert 4 <= len(lines) <= 6
    assert "bound 10.0000" in lines[0]
    assert "lp gap 0.1" in lines[0]


def test_the_live_display_shows_what_remains():
    stream = io.StringIO()
    console = Console(file=stream, width=120, force_terminal=True, color_system=None)
    with LiveDisplay(console, time_limit=30.0) as show:
        show(snapshot(10.0, energy=12.5))
    shown = stream.getvalue()
    for text in ("bound", "10.0000", "12.5000", "remaining", "20 s"):
        assert text in shown


def test_displays_name_the_stage():
    stream = io.StringIO()
    show = PlainLines(Console(file=stream, width=200), every=2.0)
    for stage in StageName:
        show(snapshot(10.0 * stage, stage=int(stage)))
    words = [line.split("stage ")[1].split()[0] for line in stream.getvalue().splitlines()]
    assert words == ["relaxation", "search", "tightening", "labels"]


def test_silence(capsys):
    show = display(enabled=False)
    assert type(show) is Silent
    with show:
        show(snapshot(1.0))
    assert capsys.readouterr() == ("", "")


def test_no_terminal_means_lines():
    assert isinstance(display(enabled=True), PlainLines)


def test_numbers_are_readable():
    assert number(-31801.05) == "-31,801.0500"
    assert number(np.inf) == "∞"
    assert number(-np.inf) == "-∞"
    assert number(np.nan) == "none yet"
    assert ratio(0.000123) == "0.00012"
