"""Conversions from and to other libraries: dimod, pgmpy, networkx, numpy, pandas, scipy.sparse.

Each library is imported when a conversion is called. If variables and labels have names, the result
is a `Named` model, which translates labellings.
"""

from softmap.io.interop import dimod
from softmap.io.interop.graphs import (
    from_networkx,
    from_sparse,
    to_arrays,
    to_networkx,
    to_sparse,
    trace_frame,
)
from softmap.io.interop.pgm import from_pgmpy, to_pgmpy, to_pgmpy_bayesian
from softmap.io.named import Named

__all__ = [
    "Named",
    "dimod",
    "from_networkx",
    "from_pgmpy",
    "from_sparse",
    "to_arrays",
    "to_networkx",
    "to_pgmpy",
    "to_pgmpy_bayesian",
    "to_sparse",
    "trace_frame",
]
