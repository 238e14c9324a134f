"""Optimal transport along the edges of a graph, with a certified bound and a feasible plan.

`sinkhorn` couples two distributions; `multimarginal` couples the nodes of a graph, some of which
have given marginals and some of which are free.
"""

from __future__ import annotations

from softmap.methods.transport.calls import multimarginal, sinkhorn
from softmap.methods.transport.results import Ladder, Moment, Transport

__all__ = ["Ladder", "Moment", "Transport", "multimarginal", "sinkhorn"]
