"""Labellings: decoded from a relaxation, improved by local search, found by backtracking."""

from softmap.labels.decoding import cheapest, decide, decode, first_labels, round_nodes
from softmap.labels.improving import best_labelling, forests, icm, neighbourhoods
from softmap.labels.search import LabelSearch

__all__ = [
    "LabelSearch",
    "best_labelling",
    "cheapest",
    "decide",
    "decode",
    "first_labels",
    "forests",
    "icm",
    "neighbourhoods",
    "round_nodes",
]
