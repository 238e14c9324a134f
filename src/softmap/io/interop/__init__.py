"""Conversions from and to other libraries: dimod, pgmpy, networkx, numpy, pandas, scipy.sparse.

Each library is imported when a conversion is called. If variables and labels have names, the model
keeps them (`Model.names`).
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

__all__ = [
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
