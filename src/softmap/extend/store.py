"""Files that replace others atomically, and archives of arrays with a header."""

from softmap.io.atomic import replacing, write_text
from softmap.io.store import digest, mapped, read_archive, write_archive, write_arrays
from softmap.io.streams import Source, uncompressed

__all__ = [
    "Source",
    "digest",
    "mapped",
    "read_archive",
    "replacing",
    "uncompressed",
    "write_archive",
    "write_arrays",
    "write_text",
]
