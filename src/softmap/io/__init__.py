"""Files of models, labellings and evidence.

`read` and `write` choose the format by file name and content, or by the option `format`; `FORMATS`
lists all formats. `parse` takes the bytes of a file. A file in memory (`io.BytesIO`) can be read
and written, too.
"""

from typing import TYPE_CHECKING

from softmap.io.formats import FORMATS, format_of, parse, read, write
from softmap.io.results import (
    read_evidence,
    read_labellings,
    read_labels,
    read_query,
    read_sln,
    write_labellings,
    write_labels,
)

if TYPE_CHECKING:
    from softmap.io.dem import Detectors, read_detectors

__all__ = [
    "FORMATS",
    "Detectors",
    "format_of",
    "parse",
    "read",
    "read_detectors",
    "read_evidence",
    "read_labellings",
    "read_labels",
    "read_query",
    "read_sln",
    "write",
    "write_labellings",
    "write_labels",
]


def __getattr__(name: str) -> object:
    if name in ("Detectors", "read_detectors"):  # imported on first use
        from softmap.io import dem

        return getattr(dem, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
