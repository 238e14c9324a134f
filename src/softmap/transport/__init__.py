"""Optimal transport along the edges of a graph, with a certified bound and a feasible plan.

`sinkhorn` couples two distributions; `multimarginal` couples the nodes of a graph, some of which
have given marginals and some of which are free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmap.hints import missing
from softmap.transport.calls import multimarginal, sinkhorn
from softmap.transport.results import Ladder, Moment, Transport, TransportStatus

__all__ = ["Ladder", "Moment", "Transport", "TransportStatus", "multimarginal", "sinkhorn"]

if not TYPE_CHECKING:  # type checkers know the names

    def __getattr__(name: str) -> object:
        barycentre = "multimarginal([a, b, d], [[0, 2], [1, 2]], costs): node 2 is free"
        instead = {
            barycentre: "barycenter barycentre free_support_barycenter",
            "sinkhorn(a, b, costs)": "emd emd2 sinkhorn2 wasserstein wasserstein_distance solve",
        }
        raise AttributeError(missing("module 'softmap.transport'", name, instead))
