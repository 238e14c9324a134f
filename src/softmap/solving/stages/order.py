"""The order of the stages of a run."""

from __future__ import annotations

from softmap.solving.stages.assign import Assign
from softmap.solving.stages.cores import Cores
from softmap.solving.stages.cut import Cut
from softmap.solving.stages.eliminate import Eliminate
from softmap.solving.stages.expand import Expand
from softmap.solving.stages.improve import Improve
from softmap.solving.stages.obey import Obey
from softmap.solving.stages.permute import Permute
from softmap.solving.stages.search import Search
from softmap.solving.stages.semidefinite import Semidefinite
from softmap.solving.stages.tighten import Tighten
from softmap.solving.subsolver import Subsolver

__all__ = ["AFTER", "BEFORE", "LABELS"]

BEFORE: tuple[type[Subsolver], ...] = (Eliminate, Cut, Assign, Permute, Obey, Expand)
"""The stages before the relaxation, in order."""

AFTER: tuple[type[Subsolver], ...] = (Cores, Search, Semidefinite, Tighten, Improve)
"""The stages beside the relaxation, in the order of their turns."""

LABELS: tuple[type[Subsolver], ...] = (Improve, Tighten)
"""The same if no effort is made for proofs."""
