"""The methods that are compared, each in a file of its own, each run in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec

from benchmarks.peers.base import Answer, Prepare, Prepared, Settings

__all__ = ["PEERS", "Answer", "Peer", "Prepare", "Prepared", "Settings", "available"]

# Tolerances asked for, as multiples of the gap: residuals are not certified gaps, so a solver may
# have to be asked for more, or less. The first that certifies the gap counts, its own time only.
FIRST_ORDER = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
INTERIOR = (10.0, 1.0, 0.1, 0.01)
LONGER = (1.0, 1 / 4, 1 / 16)


@dataclass(frozen=True)
class Peer:
    """Where a method lives, its fixed arguments, and the tolerances to try.

    `kind` is "ours", "lp" (solvers of the general LP) or "dual" (methods on the dual alone, whose
    gap may never close).
    """

    module: str
    needs: str | None = None
    arguments: dict[str, object] = field(default_factory=dict)
    ladder: tuple[float, ...] = (1.0,)
    kind: str = "lp"

    def prepare(self) -> Prepare:
        """Import the peer, let it load what it compiles, and return its `prepare`."""
        module = import_module(f"benchmarks.peers.{self.module}")
        if hasattr(module, "warm_up"):
            module.warm_up(**self.arguments)
        return partial(module.prepare, **self.arguments)


PEERS = {
    "anneal": Peer("ours", None, {"method": "anneal"}, kind="ours"),
    "anneal-star": Peer("ours", None, {"method": "anneal-star"}, kind="ours"),
    "trws": Peer("ours", None, {"method": "trws"}, kind="dual"),
    "highs-ipm": Peer("highs", "highspy", {"solver": "ipm"}, INTERIOR),
    "highs-simplex": Peer("highs", "highspy", {"solver": "simplex", "presolve": True}),
    "highs-hipdlp-presolve": Peer(
        "highs", "highspy", {"solver": "hipdlp", "presolve": True}, FIRST_ORDER
    ),
    "highs-pdlp": Peer("highs", "highspy", {"solver": "pdlp"}, FIRST_ORDER),
    "highs-hipdlp": Peer("highs", "highspy", {"solver": "hipdlp"}, FIRST_ORDER),
    "ortools-pdlp": Peer("ortools_pdlp", "ortools", {}, FIRST_ORDER),
    "clarabel": Peer("clarabel_ipm", "clarabel", {}, INTERIOR),
    "in-face": Peer("in_face", None, {}, FIRST_ORDER),
    "pgmax": Peer("pgmax_sdlp", "pgmax", {"safe": False}, LONGER, kind="dual"),
    "pgmax-safe": Peer("pgmax_sdlp", "pgmax", {"safe": True}, LONGER, kind="dual"),
}


def available(name: str) -> bool:
    """Whether what the peer needs is installed."""
    needs = PEERS[name].needs
    return needs is None or find_spec(needs) is not None
