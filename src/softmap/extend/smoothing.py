"""The smoothed optimum, its marginals and their derivatives, for any network and for batches."""

from softmap.methods.marginals.curvature import SMOOTHING
from softmap.methods.marginals.smooth import SoftMarginals, adjoint, approached, smoothed_optimum
from softmap.methods.marginals.uniform import UniformFrame

__all__ = [
    "SMOOTHING",
    "SoftMarginals",
    "UniformFrame",
    "adjoint",
    "approached",
    "smoothed_optimum",
]
