"""To and from other libraries: dimod, pgmpy, networkx, numpy, pandas, scipy.sparse.

Each needs its library only when called. Variables and labels that have names come back in a
`Named` model, which translates labellings.
"""

from softmap.io.interop import dimod
from softmap.io.interop.arrays import from_sparse, to_arrays, to_sparse, trace_frame
from softmap.io.interop.graphs import from_networkx, to_networkx
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
