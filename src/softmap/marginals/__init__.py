"""Soft beliefs: marginals of the smoothed relaxation, exact ones, and bounds on log Z."""

from softmap.marginals.smooth import SoftMarginals, adjoint, smoothed_optimum

__all__ = ["SoftMarginals", "adjoint", "smoothed_optimum"]
