"""Models, labellings and evidence from and to files.

`read` and `write` choose the format by the name and the content, or as `format` says; `FORMATS`
lists all formats. `parse` takes the bytes of a file. A file in memory (`io.BytesIO`) can be read
and written like any other.
"""

from typing import TYPE_CHECKING

from softmap.io.formats import FORMATS, format_of, parse, read, read_named, write
from softmap.io.named import Named
from softmap.io.results import (
    read_evidence,
    read_labellings,
    read_labels,
    read_sln,
    write_labellings,
    write_labels,
)

if TYPE_CHECKING:
    from softmap.io.dem import Detectors, read_detectors

__all__ = [
    "FORMATS",
    "Detectors",
    "Named",
    "format_of",
    "parse",
    "read",
    "read_detectors",
    "read_evidence",
    "read_labellings",
    "read_labels",
    "read_named",
    "read_sln",
    "write",
    "write_labellings",
    "write_labels",
]


def __getattr__(name: str) -> object:
    if name in ("Detectors", "read_detectors"):  # a reader: imported when it is needed
        from softmap.io import dem

        return getattr(dem, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
