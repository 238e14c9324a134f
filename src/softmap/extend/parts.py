"""One model cut into parts, and the run over them, for what distributes a run.

`cut_model` makes `ModelPart`s of a partition; a `Team` says which process owns which part, and
exchanges arrays through a communicator; `PartsRun` advances and checks.
"""

from softmap.model.partition import partition
from softmap.parts.cut import ModelPart, Whole, cut_model, part_nodes
from softmap.parts.run import PartsLimits, PartsProgress, PartsRun, memory_of_run
from softmap.parts.team import Alone, Team
from softmap.run.values import Tolerances

__all__ = [
    "Alone",
    "ModelPart",
    "PartsLimits",
    "PartsProgress",
    "PartsRun",
    "Team",
    "Tolerances",
    "Whole",
    "cut_model",
    "memory_of_run",
    "part_nodes",
    "partition",
]
