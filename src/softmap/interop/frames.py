"""pandas: the trace of a run as a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from softmap.errors import MissingExtra

__all__ = ["trace_frame"]


def trace_frame(result: Any) -> Any:
    """The trace of a result (or a trace itself) as a `pandas.DataFrame`, one row per check."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtra("the conversion to pandas", "interop") from error
    trace = getattr(result, "trace", result)
    for name in ("as_dict", "columns", "to_dict"):
        columns = getattr(trace, name, None)
        if callable(columns):
            return pandas.DataFrame(columns())
    if isinstance(trace, Mapping):
        return pandas.DataFrame(dict(trace))
    rows = [asdict(row) if is_dataclass(row) else dict(row._asdict()) for row in trace]  # type: ignore[arg-type]
    return pandas.DataFrame(rows)
