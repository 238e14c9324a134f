"""What may stand for methods, demos and formats: for help, completion and checks."""

from __future__ import annotations

__all__ = ["complete_demo", "complete_format", "complete_method", "complete_methods"]


def _beginning(names: list[str], start: str) -> list[str]:
    return [name for name in names if name.startswith(start)]


def methods() -> list[str]:
    """Names of methods."""
    from softmap.algorithms.registry import METHODS

    return list(METHODS)


def formats() -> list[str]:
    """Names of file formats."""
    from softmap.io.formats import FORMATS

    return list(FORMATS)


def complete_method(incomplete: str) -> list[str]:
    """Methods that begin with what was typed."""
    return _beginning(methods(), incomplete)


def complete_methods(incomplete: str) -> list[str]:
    """Lists of methods: the last one is completed."""
    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in _beginning([*methods(), "highs"], last)]


def complete_format(incomplete: str) -> list[str]:
    """Formats that begin with what was typed."""
    return _beginning(formats(), incomplete)


def complete_demo(incomplete: str) -> list[str]:
    """Demos that begin with what was typed."""
    from softmap.demos import NAMES

    return _beginning(list(NAMES), incomplete)
