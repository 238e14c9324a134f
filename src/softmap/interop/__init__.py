"""Conversions from and to other libraries, and solvers with their interfaces.

dimod, pgmpy, pyAgrum, toulbar2, networkx, PyTorch Geometric, numpy, pandas, scipy.sparse, and the
regions of scikit-image and OpenCV; `softmap.interop.cpmpy` is a solver for CPMpy. Each library is
imported when a conversion is called. If variables and labels have names, the model keeps them
(`Model.names`).
"""

from softmap.interop import dimod
from softmap.interop.dimod import from_dimod
from softmap.interop.graphs import (
    from_edge_index,
    from_networkx,
    from_regions,
    from_sparse,
    to_arrays,
    to_networkx,
    to_sparse,
    trace_frame,
)
from softmap.interop.pgm import from_pgmpy, from_pyagrum, mpe, to_pgmpy, to_pgmpy_bayesian
from softmap.interop.toulbar2 import from_toulbar2, to_toulbar2

__all__ = [
    "dimod",
    "from_dimod",
    "from_edge_index",
    "from_networkx",
    "from_pgmpy",
    "from_pyagrum",
    "from_regions",
    "from_sparse",
    "from_toulbar2",
    "mpe",
    "to_arrays",
    "to_networkx",
    "to_pgmpy",
    "to_pgmpy_bayesian",
    "to_sparse",
    "to_toulbar2",
    "trace_frame",
]
