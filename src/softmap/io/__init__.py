"""Files of models, labellings and evidence.

`read` and `write` choose the format by file name and content, or by the option `format`; `FORMATS`
lists all formats. `parse` takes the bytes of a file. A file in memory (`io.BytesIO`) can be read
and written, too. Modules are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softmap.io.alist import read_checks
    from softmap.io.dem import Detectors, read_detectors
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

__all__ = [
    "FORMATS",
    "Detectors",
    "format_of",
    "parse",
    "read",
    "read_checks",
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

# Module here -> its public names, separated by blanks.
_NAMES = {
    "alist": "read_checks",
    "dem": "Detectors read_detectors",
    "formats": "FORMATS format_of parse read write",
    "results": "read_evidence read_labellings read_labels read_query read_sln write_labellings "
    "write_labels",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name == "interop":  # its home is `softmap.interop`
        value: object = import_module("softmap.interop")
    elif name in _HOME:
        value = getattr(import_module(f"softmap.io.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
