"""Updates until an LP gap of ε, by the size of a chain and by ε.

    python -m benchmarks.tightness FOLDER      writes FOLDER/tightness.csv

Each run takes η from ε as the theorems do. The chain has two labels, Potts edges of weight 1, and
the costs (t, 0) and (0, t) at its ends, for which a lower bound is proved (`docs/theory/rates.md`).
`law` is the paper's random graph. Gaps are looked at whenever the number of updates has grown by
a twentieth.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import softmap
from softmap import generators
from softmap.methods.base import make
from softmap.model import Model
from softmap.paper import rates, theory
from softmap.relaxation.bounds import projected_cost
from softmap.relaxation.dual import SmoothedDual

COLUMNS = ("model", "n", "m", "epsilon", "eta", "method", "trial", "updates")
METHODS = ("smp", "emp", "accel-smp", "accel-emp")
TIE = 0.5  # t
SIZES = (10, 20, 40, 80, 160, 320)
GAPS = (0.4, 0.2, 0.1, 0.05, 0.025, 0.0125)  # of the chain of 20 nodes, and relative to n/10
MOST = 400_000_000  # updates of a run


def chain(n: int) -> Model:
    """Return a chain whose ends prefer different labels."""
    unary = np.zeros((n, 2))
    unary[0, 0] = unary[-1, 1] = TIE
    return Model(unary, [(i, i + 1) for i in range(n - 1)], softmap.Potts(np.ones(n - 1)))


def updates(model: Model, epsilon: float, method: str, trial: int, most: int = MOST) -> int:
    """Return the updates until the proposed λ has an LP gap of ε; -1 if there are more."""
    optimum = softmap.lp.solve(model).value
    dual = SmoothedDual(model, rates.eta_for(theory.sizes(model), epsilon))
    algorithm = make(method, eta=dual.eta)
    state = algorithm.init(model, None, trial)
    done = 0
    while done < most:
        count = max(1, done // 20)
        algorithm.step(state, count)
        done += count
        lam = algorithm.propose(state).lam
        if projected_cost(dual, lam, dual.node_marginals(lam)) - optimum <= epsilon:
            return done
    return -1


def trials(n: int) -> int:
    """Return the number of runs: five, and two of the longest chain."""
    return 5 if n < 160 else 3 if n < 320 else 2


def rows() -> Iterator[tuple[object, ...]]:
    """Yield the rows of the table."""
    cases = [("chain", chain(n), 0.1) for n in SIZES]
    cases += [("chain", chain(20), gap) for gap in GAPS if gap != 0.1]
    cases += [("law", generators.erdos_renyi(20, seed=0), 2 * gap) for gap in GAPS]
    for name, model, epsilon in cases:
        eta = rates.eta_for(theory.sizes(model), epsilon)
        for method in METHODS:
            for trial in range(trials(model.n)):
                count = updates(model, epsilon, method, trial)
                yield name, model.n, model.m, epsilon, eta, method, trial, count


def main(folder: str) -> None:
    """Write the table; each row as it is measured."""
    with Path(folder, "tightness.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows():
            writer.writerow(row)
            file.flush()


if __name__ == "__main__":
    main(sys.argv[1])
