"""One name per idea: the table of names, the public functions and the command line agree."""

import inspect
import re
from pathlib import Path

import pytest
from typer.main import get_command

import softmap
from softmap.app.cli.app import COMMANDS, app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "names.md"
ROWS = [
    (row[1], row[2])
    for row in re.findall(
        r"^\| ([^|]+) \| `(\w+)` \| (?:`(--[\w-]+)` )?\|$", PAGE.read_text(), re.M
    )
]
# What these ideas were called elsewhere before.
OLD = {"on_check", "on_moment", "on_step", "tol", "seeds", "init", "initial_labels", "timeout"}
PACKAGES = (
    "codes",
    "distributed",
    "generators",
    "interop",
    "io",
    "learn",
    "lp",
    "paper",
    "transport",
)


def functions():
    """The public functions and classes, by name."""
    for owner in (softmap, *(getattr(softmap, name) for name in PACKAGES)):
        for name in getattr(owner, "__all__", dir(owner)):
            value = getattr(owner, name, None)
            if callable(value) and getattr(value, "__module__", "").startswith("softmap"):
                yield f"{owner.__name__}.{name}", value


def parameters(function):
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


SURFACE = {name: parameters(function) for name, function in functions()}


def test_the_table_has_rows():
    assert len(ROWS) > 15


@pytest.mark.parametrize("name", [python for python, _ in ROWS])
def test_a_name_of_the_table_is_that_of_an_argument(name):
    assert any(name in taken for taken in SURFACE.values())


@pytest.mark.parametrize("option", [option for _, option in ROWS if option])
def test_an_option_of_the_table_exists(option):
    group = get_command(app)
    every = {
        text
        for command in COMMANDS
        for parameter in group.get_command(None, command).params
        for text in parameter.opts
    }
    assert option in every


def test_options_are_the_arguments_with_hyphens():
    for python, option in ROWS:
        assert option in ("", "--labels", f"--{python.replace('_', '-')}")


def test_no_public_function_has_an_old_name():
    kept = {"softmap.learn.StructuredClassifier": {"tol"}}
    wrong = {
        name: names
        for name, taken in SURFACE.items()
        if (names := (taken & OLD) - kept.get(name, set()))
    }
    assert not wrong
