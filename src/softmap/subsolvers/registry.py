"""The order of the stages of a run."""

from __future__ import annotations

from softmap.run.subsolver import Subsolver
from softmap.subsolvers.clusters.tighten import Tighten
from softmap.subsolvers.cores.cores import Cores
from softmap.subsolvers.cuts.cut import Cut
from softmap.subsolvers.elimination.eliminate import Eliminate
from softmap.subsolvers.labels.expand import Expand
from softmap.subsolvers.labels.improve import Improve
from softmap.subsolvers.labels.obey import Obey
from softmap.subsolvers.permutations.assign import Assign
from softmap.subsolvers.permutations.permute import Permute
from softmap.subsolvers.search.search import Search
from softmap.subsolvers.spins.semidefinite import Semidefinite

__all__ = ["AFTER", "BEFORE", "LABELS"]

BEFORE: tuple[type[Subsolver], ...] = (Eliminate, Cut, Assign, Permute, Obey, Expand)
"""The stages before the relaxation, in order."""

AFTER: tuple[type[Subsolver], ...] = (Cores, Search, Semidefinite, Tighten, Improve)
"""The stages beside the relaxation, in the order of their turns."""

LABELS: tuple[type[Subsolver], ...] = (Improve, Tighten)
"""The same if no effort is made for proofs."""
