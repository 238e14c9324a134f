"""Optional packages that an option needs, looked for before the work begins."""

from __future__ import annotations

from importlib.util import find_spec

from softmap.errors import MissingExtra

__all__ = ["check_extras"]

PACKAGES = {"plot": ("matplotlib", "PIL")}
FEATURES = {"plot": "A picture"}


def check_extras(**wanted: object) -> None:
    """Refuse now what would fail when the work is done: `plot=`."""
    for extra, asked in wanted.items():
        if asked and not all(find_spec(package) for package in PACKAGES[extra]):
            raise MissingExtra(FEATURES[extra], extra)
