"""The reference pages: attribute lists name every field, and docstrings become the lists meant."""

import dataclasses
import inspect
import pkgutil
import re
import sys

import pytest

import softmap
from support.data import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import docstrings

PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
CLASSES = [name for p in PAGES for name in re.findall(r"autoclass:: (\S+)", p.read_text("utf-8"))]


def class_of(name):
    """The class of a public name; packages are attributes of `softmap`, wherever they lie."""
    return pkgutil.resolve_name(name)


def listed(cls) -> list[str]:
    """The names that the attribute list of a class shows."""
    lines = docstrings.sections(inspect.getdoc(cls).splitlines())
    part = "\n".join(lines).partition(".. rubric:: Attributes")[2].partition(".. rubric::")[0]
    items = re.findall(r"^((?:``\w+``(?:, )?)+)(?: : .*)?$", part, re.M)
    return [name for item in items for name in re.findall(r"\w+", item)]


@pytest.mark.parametrize("name", CLASSES)
def test_attribute_lists_are_complete(name):
    cls = class_of(name)
    if dataclasses.is_dataclass(cls):
        fields = {f.name for f in dataclasses.fields(cls) if not f.name.startswith("_")}
        assert fields <= set(listed(cls))
    assert len(listed(cls)) == len(set(listed(cls)))


def test_the_model_lists_what_it_has():
    model = softmap.generators.potts_grid(2, 2, 2)
    attributes = {name for name in dir(model) if not name.startswith("_")}
    values = {name for name in attributes if not callable(getattr(model, name))}
    assert set(listed(class_of("softmap.Model"))) == values


def test_signatures_have_short_array_types():
    array = "~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.float64]]"
    like = (
        "~numpy._typing._array_like._Buffer | ~numpy._typing._nested_sequence._NestedSequence["
        "~numpy._typing._array_like._SupportsArray[~numpy.dtype[~typing.Any]]] | complex | "
        "~numpy._typing._nested_sequence._NestedSequence[complex | bytes | str]"
    )
    given = f"(a: {array}, b: {like} | None, c: ~collections.abc.Sequence[{like}])"
    expected = (
        "(a: NDArray[~numpy.float64], b: ArrayLike | None, c: ~collections.abc.Sequence[ArrayLike])"
    )
    assert docstrings.short_types("app", given, None) == (expected, None)


def test_sections_become_lists():
    text = [
        "What it does.",
        "",
        "Parameters",
        "----------",
        "a, b : two numbers",
        "    The first is smaller.",
        "c",
        "    Something else, `d` for",
        "    one.",
        "",
        "Costs are finite. This belongs to no entry.",
        "",
        "Examples",
        "--------",
        ">>> 1 + 1",
        "2",
    ]
    assert [line for line in docstrings.sections(text) if line] == [
        "What it does.",
        ".. rubric:: Parameters",
        "``a``, ``b`` : two numbers",
        "    The first is smaller.",
        "``c``",
        "    Something else, `d` for",
        "    one.",
        "Costs are finite. This belongs to no entry.",
        ".. rubric:: Examples",
        ">>> 1 + 1",
        "2",
    ]
