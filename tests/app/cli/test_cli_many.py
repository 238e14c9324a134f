"""What is shown while many models are solved."""

import io

from rich.console import Console

from softmap.app.cli.many import ManyDisplay, remaining

ROWS = {
    "a": {"state": "solved", "status": "optimal", "relative_gap": 0.0},
    "b": {"state": "solved", "status": "time_limit", "relative_gap": 0.25},
    "c": {"state": "failed", "error": "x"},
    "d": {"state": "unchanged", "status": "gap", "relative_gap": 1e-7},
}


def shown(terminal: bool, rows: dict, total: int = 8) -> str:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100, highlight=False)
    with ManyDisplay(console, total, rows, enabled=True) as display:
        display()
    return text.getvalue()


def test_the_worst_gaps_come_first_on_a_terminal():
    text = shown(True, ROWS)
    assert "worst gaps" in text
    assert text.index("0.25") < text.index("1e-07")
    assert "4 of 8 models: 2 solved, 1 unchanged, 1 failed; 2 proved optimal" in text


def test_lines_where_there_is_none():
    text = shown(False, ROWS)
    assert "4 of 8 done, 1 failed, about" in text
    assert "no estimate yet" in shown(False, {})


def test_what_is_left_is_like_what_is_done():
    assert remaining(2, 6, 10.0) == 20.0
    assert remaining(0, 6, 10.0) == float("inf")
    assert remaining(6, 6, 10.0) == 0.0
