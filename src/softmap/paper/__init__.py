"""For people with the paper open: its algorithms in numpy, to read, and its methods, compiled.

`softmap.paper.algorithms` is the text: (Reg-P), (Reg-D), EMP, SMP and Algorithms 1 to 4 in the
paper's letters. `iterate` runs them with any rule, order and scheme, and `as_method` makes a method
of them. `EMP`, `AccelSMP` and so on are the compiled methods, which are also
`softmap.paper.solve(model, method="accel-smp", eta=...)`. `Stars` makes sweeps. `theory` has the
constants of the paper's theorems, `rates` those of the theorems that go beyond it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from softmap.methods.sweeps.loops import Messages
from softmap.methods.sweeps.stars import Rule as StarRule
from softmap.methods.sweeps.stars import Stars
from softmap.paper.adapter import as_method
from softmap.paper.algorithms import (
    LEMMA,
    PRINTED,
    PROVED,
    STANDARD,
    H,
    Point,
    Scheme,
    bcd,
    emp,
    lemma_gain,
    log_mu,
    log_mu_e,
    log_S,
    nu,
    primal,
    printed_gain,
    proj,
    proved_gain,
    reg_d,
    reg_p,
    slack,
    smp,
)
from softmap.paper.blocks import N, edges, entries, sample, stars, vertex
from softmap.paper.methods import (
    BCD,
    EMP,
    SMP,
    AccelBCD,
    AccelBCDPrinted,
    AccelEMP,
    AccelEMPPrinted,
    AccelSMP,
    AccelSMPPrinted,
    Blocks,
    UpdateRule,
    gain,
)
from softmap.paper.runs import (
    ALGORITHMS,
    accel_bcd,
    accel_emp,
    accel_smp,
    iterate,
    points,
    standard_mp,
)
from softmap.paper.settled import Settled

if TYPE_CHECKING:
    from softmap.drive.paper_runs import resume, snapshots, solve

__all__ = [
    "ALGORITHMS",
    "BCD",
    "EMP",
    "LEMMA",
    "PRINTED",
    "PROVED",
    "SMP",
    "STANDARD",
    "AccelBCD",
    "AccelBCDPrinted",
    "AccelEMP",
    "AccelEMPPrinted",
    "AccelSMP",
    "AccelSMPPrinted",
    "Blocks",
    "H",
    "Messages",
    "N",
    "Point",
    "Scheme",
    "Settled",
    "StarRule",
    "Stars",
    "UpdateRule",
    "accel_bcd",
    "accel_emp",
    "accel_smp",
    "as_method",
    "bcd",
    "edges",
    "emp",
    "entries",
    "gain",
    "iterate",
    "lemma_gain",
    "log_S",
    "log_mu",
    "log_mu_e",
    "nu",
    "points",
    "primal",
    "printed_gain",
    "proj",
    "proved_gain",
    "reg_d",
    "reg_p",
    "resume",
    "sample",
    "slack",
    "smp",
    "snapshots",
    "solve",
    "standard_mp",
    "stars",
    "vertex",
]

_RUNS = ("resume", "snapshots", "solve")


def __getattr__(name: str) -> object:
    if name in _RUNS:  # imported late: the driver lies above this package
        value: object = getattr(import_module("softmap.drive.paper_runs"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
