"""pandas: the trace of a run as a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softmap.errors import MissingExtra, OptionError, shown

if TYPE_CHECKING:
    from softmap.solving.result import Result
    from softmap.solving.trace import Trace

__all__ = ["trace_frame"]


def trace_frame(run: Result | Trace) -> Any:
    """The trace of a result (or a trace itself) as a `pandas.DataFrame`, one row per check."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtra("the conversion to pandas", "interop") from error
    trace: Any = getattr(run, "trace", run)
    if not callable(getattr(trace, "columns", None)):
        raise OptionError(f"expected a result or a trace, not {shown(run)}")
    return pandas.DataFrame(trace.columns())
