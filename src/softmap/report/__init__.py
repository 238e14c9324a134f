"""One self-contained HTML page per run."""

from softmap.report.page import write

__all__ = ["write"]
