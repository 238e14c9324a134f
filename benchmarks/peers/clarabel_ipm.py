"""Clarabel, an interior-point solver for cones."""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
from scipy.sparse import csc_matrix, identity, vstack

from benchmarks.peers.base import Answer, Prepared, Settings
from benchmarks.peers.local_polytope import Program, program
from softmap.model import Model


def prepare(model: Model, settings: Settings) -> Prepared:
    """Equalities as a zero cone, bounds as a non-negative one."""
    lp = program(model)
    height, width = lp.matrix.shape
    rows = vstack([csc_matrix(lp.matrix), -identity(width, format="csc")], format="csc")
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.time_limit = settings.time_limit
    options.max_threads = settings.threads
    options.tol_gap_rel = options.tol_feas = settings.tolerance
    options.tol_gap_abs = 0.0
    cones = [clarabel.ZeroConeT(height), clarabel.NonnegativeConeT(width)]
    rhs = np.concatenate([lp.rhs, np.zeros(width)])
    solver = clarabel.DefaultSolver(csc_matrix((width, width)), lp.cost, rows, rhs, cones, options)
    return lambda: _run(solver, lp)


def _run(solver: Any, lp: Program) -> Answer:
    found = solver.solve()
    # Clarabel's prices satisfy cost + rowsᵀz = 0: the sign of ours is the other way round
    return lp.answer(
        found.x,
        -np.asarray(found.z)[: lp.model.n + len(lp.halves)],
        str(found.status),
        int(found.iterations),
    )
