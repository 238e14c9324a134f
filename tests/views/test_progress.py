"""The displays: live on a terminal, lines elsewhere, silence on demand."""

import io
import logging
import sys
import threading
import time
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import softmap
from softmap import Model
from softmap.generators import random_tree
from softmap.run.trace import Row, Snapshot
from softmap.subsolvers.registry import kinds
from softmap.views.console import number, ratio
from softmap.views.progress import RunDisplay, ShareDisplay, Silent, Watching, display


def snapshot(seconds, **changes):
    values = {"work": 0, "sweeps": 0.0, "seconds": seconds, "eta": 100.0, "smoothed": 0.0}
    values |= {"bound": 10.0, "primal": 11.0, "energy": np.inf, "slack": 0.0}
    return Snapshot(random_tree(2), Row(**(values | changes)), np.zeros(2, int))


def test_plain_lines_are_not_too_many():
    stream = io.StringIO()
    show = RunDisplay(stream, every=2.0)
    with show:
        for second in np.arange(0.0, 10.0, 0.1):
            show(snapshot(second))
    lines = stream.getvalue().splitlines()
    assert 4 <= len(lines) <= 6
    assert "bound 10.0000" in lines[0]
    assert "lp gap 0.1" in lines[0]


def test_a_long_set_up_is_not_silent():
    stream = io.StringIO()
    with RunDisplay(stream, first=0.01):
        for _ in range(500):
            if stream.getvalue():
                break
            time.sleep(0.01)
    assert stream.getvalue() == "setting up\n"


def test_the_live_display_shows_what_remains():
    stream = io.StringIO()
    console = Console(file=stream, width=120, force_terminal=True, color_system=None)
    with RunDisplay(console, time_limit=30.0) as show:
        show(snapshot(10.0, energy=12.5))
    shown = stream.getvalue()
    for text in ("bound", "10.0000", "12.5000", "remaining", "30 s"):
        assert text in shown


def share(terminal: bool) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=120, force_terminal=terminal, color_system=None)
    with ShareDisplay(console, total=8.0) as show:
        show.advance(2.0, "figure1 EMP")
        show.advance(4.0, "figure1 SMP")
    return stream.getvalue()


def test_a_share_of_work_is_shown_with_the_time_left():
    assert "75 % [" in share(terminal=True)
    assert "figure1 SMP" in share(terminal=True)
    (line,) = share(terminal=False).splitlines()  # the second line comes too soon
    assert line.startswith(" 25 % [======>")
    assert line.endswith("0 s left  figure1 EMP")


def test_displays_name_the_stage():
    stream = io.StringIO()
    show = RunDisplay(stream, every=2.0)
    names = list(dict.fromkeys(kind.name for kind in kinds()))
    for k, name in enumerate(names):
        show(snapshot(10.0 * k, stage=name))
    words = [line.split("stage ")[1].split()[0] for line in stream.getvalue().splitlines()]
    assert words == [name.split()[0] for name in names]
    assert len(names) == 9


def test_silence(capsys):
    show = display(enabled=False)
    assert type(show) is Silent
    with show:
        show(snapshot(1.0))
    assert capsys.readouterr() == ("", "")


def test_no_terminal_means_lines():
    assert isinstance(display(enabled=True), RunDisplay)


def test_numbers_are_readable():
    assert number(-31801.05) == "-31,801.0500"
    assert number(np.inf) == "∞"
    assert number(-np.inf) == "-∞"
    assert number(np.nan) == "none yet"
    assert ratio(0.000123) == "0.00012"


def test_verbose_and_progress_show_a_run(capsys):
    model = random_tree(30, seed=1)
    quiet = softmap.solve(model)
    assert capsys.readouterr() == ("", "")
    shown = softmap.solve(model, verbose=True, progress=True)
    out, err = capsys.readouterr()
    assert shown.energy == quiet.energy
    assert "bound" in out
    assert "that is proved by" in out
    assert "[====" in err
    assert str(shown.status) in err


def test_libraries_listen_to_the_logger(caplog):
    with caplog.at_level(logging.DEBUG, logger="softmap"):
        result = softmap.solve(random_tree(30, seed=1), max_work=10**6, goal="lp")
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0].startswith("solving Model(30 variables")
    assert str(result.status) in messages[-1]
    assert any("bound=" in message for message in messages[1:-1])


def test_notebooks_show_models_and_results():
    result = softmap.solve(random_tree(30, seed=1))
    assert "<td" in result.model._repr_html_()
    assert str(result.status) in result._repr_html_()
    assert "bound" in dir(next(softmap.iterate(result.model)))


def test_the_lp_gap_is_drawn_from_the_lp_bound():
    """A search raises the bound above the LP optimum; the LP gap stays what it is."""
    pytest.importorskip("matplotlib")
    edges = [[0, 1], [1, 2], [0, 2]]
    loose = softmap.Model(np.ones((3, 2)), edges, np.stack([np.eye(2)] * 3))
    result = softmap.solve(loose)
    assert result.bound > result.lp_bound + 0.5
    gaps = result.plot().axes[-1]
    drawn = {line.get_label(): line.get_ydata() for line in gaps.lines}
    expected = max(1e-12, (result.primal - result.lp_bound) / abs(result.bound))
    assert drawn["LP gap"][-1] == pytest.approx(expected)


def test_a_result_draws_itself(tmp_path):
    pytest.importorskip("matplotlib")
    result = softmap.solve(softmap.generators.potts_grid(5, 5, 3, seed=1))
    figure = result.plot(tmp_path / "run.png")
    assert figure._repr_png_()[:4] == (tmp_path / "run.png").read_bytes()[:4] == b"\x89PNG"
    assert len(figure.axes) >= 3


def test_the_bar_is_there_before_the_first_check(capsys):
    watching = Watching(verbose=False, progress=True, limits={"time_limit": 10.0})
    assert "setting up" in capsys.readouterr().err
    watching(snapshot(1.0, energy=12.5))
    assert "relaxation  energy 12.5000" in capsys.readouterr().err
    watching.close()
    watching.close()
    assert capsys.readouterr().err == "\n"


def test_a_run_that_fails_leaves_no_bar(capsys):
    model = Model([[0.0, 1.0], [0.0, 1.0]], [[0, 1]], np.full((2, 2), np.inf))
    with pytest.raises(softmap.InfeasibleModel):
        softmap.solve(model, progress=True)
    assert "softmap-progress" not in [t.name for t in _after_a_moment()]


def _after_a_moment():
    for _ in range(100):
        if all(t.name != "softmap-progress" for t in threading.enumerate()):
            break
        time.sleep(0.05)
    return threading.enumerate()


def test_a_notebook_shows_the_bar_as_a_widget(monkeypatch, capsys):
    class ZMQInteractiveShell:
        """The class of a notebook's shell, by its name."""

    shown = []
    widgets = ModuleType("ipywidgets")
    widgets.FloatProgress = widgets.Label = lambda **options: SimpleNamespace(**options)
    widgets.HBox = tuple
    ipython = ModuleType("IPython")
    ipython.get_ipython, ipython.display = (
        ZMQInteractiveShell,
        SimpleNamespace(display=shown.append),
    )
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "ipywidgets", widgets)
    result = softmap.solve(random_tree(10), progress=True)
    ((bar, words),) = shown
    assert bar.value == 1.0
    assert words.value.endswith(str(result.status))
    assert capsys.readouterr().err == ""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)  # not installed
    softmap.solve(random_tree(10), progress=True)
    assert str(result.status) in capsys.readouterr().err
