"""One mechanism of a run switched off at a time, over models of all kinds.

`python -m benchmarks.ablation [--seconds S] [--processes P] [--each K] [--only MODEL]
[--without TEXT] [--out FILE]`: proofs, energies, bounds and times beside the unchanged solver.
What wins nowhere should go.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.tuning import replaced
from benchmarks.variants import PLAIN, compared, run_all, table
from softmap.subsolvers import registry
from softmap.subsolvers.registry import Place, kinds

FAR = 1 << 60
STAGES = [kind.__name__ for kind in kinds(Place.BEFORE, Place.BESIDE)]
NUMBERS: dict[str, dict[str, float]] = {
    "coarse-to-fine": {"PassNumbers.coarse": FAR},
    "interior-point methods": {"PassNumbers.interior_entries": 0, "PassNumbers.vertex_entries": 0},
    "passes that prove LP labels": {"PassNumbers.proving": -FAR},
    "early search": {"SearchNumbers.early_edges": 0},
    "exact search over small parts": {"ImproveNumbers.moved_variables": 0},
    "elimination": {"SearchNumbers.eliminated_entries": 0.0, "SearchNumbers.eliminated_work": 0},
    "tree moves of decoded labels": {"SearchEffort.more": 0.0},
    "annealed tree moves": {"SearchEffort.annealed_from": FAR},
    "fusion and expansion of labels": {
        "SearchEffort.fused": FAR, "ExpansionNumbers.variables": FAR,
    },
    "limit of momentum": {"AnnealingRule.momentum": 1e9},
    "annealing by the smoothed dual": {"AnnealingRule.settled": 0.0, "TightenNumbers.settled": 0.0},
    "frequent checks near the end": {"Checks.near": 1.0, "Checks.thorough": 1.0},
    "weights of averaged marginals": {"AnnealNumbers.recent": 0.0},
    "more time for labels that fall": {"ScheduleNumbers.falling": 1.0},
    "least share of each stage": {"ScheduleNumbers.share": 0.0},
    "gain expected of idle stages": {"ScheduleNumbers.untried": 1e-9},
    "least gain": {
        "ScheduleNumbers.least_gain": 0.0, "TightenNumbers.rising": 0.0,
        "TightenNumbers.progress": 0.0, "SpinNumbers.progress": 0.0,
    },
    "limit of labels before the passes": {
        "ObeyNumbers.share": 1.0, "ObeyNumbers.avoiding_share": 1.0,
        "ExpansionNumbers.share": 1.0, "ExpansionNumbers.first_share": 1.0,
    },
    "late import of scipy": {"SpinNumbers.import_seconds": 0.0, "SpinNumbers.import_limit": 0.0},
    "a sample of penalties": {
        "PenaltyNumbers.sampled_nodes": FAR >> 20, "PenaltyNumbers.sampled_edges": FAR >> 20,
        "PenaltyNumbers.drawn": FAR >> 20,
    },
    "tree moves of earlier labels": {"SearchEffort.warm": 0},
    "restarts of the search at a better λ": {"SearchNumbers.fresh": 1e9},
    "set-up counts": {
        f"{group}.setup": 0.0
        for group in ("SearchNumbers", "TightenNumbers", "SpinNumbers", "CoreNumbers")
    },
    "least part of each label search": {"ImproveNumbers.least_part": 0.0},
    "faster growth over clusters while far": {"TightenNumbers.coarse": 1e9},
    "least gain of a cycle": {"TightenNumbers.gain": 0.0},
    "messages per round of clusters": {"ClusterSizes.messages": FAR},
    "patience with clusters": {"TightenNumbers.stalled": 1},
    "time for permutations": {"PermutationNumbers.stalled_share": 0.15},
}  # fmt: skip


@contextmanager
def without_stage(name: str) -> Iterator[dict[str, Any]]:
    """A run without one subsolver."""
    others = tuple(line for line in registry.TABLE if line.kind.__name__ != name)
    with patch.object(registry, "TABLE", others):
        yield {}


@contextmanager
def with_search(**changes: Any) -> Iterator[dict[str, Any]]:
    """A run whose exact search has other options."""
    from softmap.labels import exact

    plain = exact.ExactSearch.__init__

    def changed(self: Any, *args: Any, **named: Any) -> None:
        plain(self, *args, **named | changes)

    with patch.object(exact.ExactSearch, "__init__", changed):
        yield {}


@contextmanager
def without_neighbourhoods() -> Iterator[dict[str, Any]]:
    """A run without dynamic programming over narrow parts of the model."""
    from softmap.labels.improving import Neighbourhoods

    with patch.object(Neighbourhoods, "improve", lambda self, labels, **_: labels):
        yield {}


@contextmanager
def without_annealing() -> Iterator[dict[str, Any]]:
    """A run without annealing over single labels."""
    from softmap.labels.annealing import LabelAnnealing

    with patch.object(LabelAnnealing, "takes", lambda *_: FAR):
        yield {"memory_limit": FAR - 1}


@contextmanager
def without_penalties() -> Iterator[dict[str, Any]]:
    """A run that takes no large cost for a hard constraint."""
    from softmap.subsolvers.labels import obey

    with patch.object(obey, "dominating_penalty", lambda *_: None):
        yield {}


@contextmanager
def without_unions() -> Iterator[dict[str, Any]]:
    """A run whose relaxation is tightened by cycles only."""
    from softmap.subsolvers.clusters import tightening

    with patch.object(tightening, "unions", lambda tight, limits: tight.scopes[:0]):
        yield {}


@contextmanager
def without_recovery() -> Iterator[dict[str, Any]]:
    """A run that keeps its momentum when the smoothed dual falls."""
    from softmap.methods.sweeps import anneal

    with patch.object(anneal, "FALL", float("inf")):
        yield {}


def variants() -> dict[str, Any]:
    """The changes by the name of what they switch off."""
    found: dict[str, Any] = {PLAIN: partial(replaced, {})}
    found |= {name: partial(without_stage, name) for name in STAGES}
    found |= {name: partial(replaced, values) for name, values in NUMBERS.items()}
    found["presolve of the search"] = partial(with_search, presolve=False)
    found["ascent of the search"] = partial(with_search, ascent=False)
    found["annealing of labels"] = without_annealing
    found["neighbourhoods"] = without_neighbourhoods
    found["penalties as hard constraints"] = without_penalties
    found["unions of clusters"] = without_unions
    found["less momentum after a fall"] = without_recovery
    return found


def main() -> None:
    """Run all variants, and print their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--each", type=int, default=1, help="models of each family, at most")
    parser.add_argument("--only", default="")
    parser.add_argument("--without", default="")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    chosen = {n: v for n, v in variants().items() if n == PLAIN or given.without in n}
    found = run_all(
        chosen, seconds=given.seconds, processes=given.processes, repeats=given.repeats,
        out=given.out, only=given.only, each=given.each,
    )  # fmt: skip
    print(table(compared(found)))


if __name__ == "__main__":
    main()
