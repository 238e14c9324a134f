"""Marginals of the smoothed relaxation, exact marginals, and bounds on log Z."""

from softmap.methods.marginals.exact import ExactMarginals, exact_marginals
from softmap.methods.marginals.partition import PartitionBounds, log_partition_bounds
from softmap.methods.marginals.smooth import SoftMarginals, adjoint, smoothed_optimum

__all__ = [
    "ExactMarginals",
    "PartitionBounds",
    "SoftMarginals",
    "adjoint",
    "exact_marginals",
    "log_partition_bounds",
    "smoothed_optimum",
]
