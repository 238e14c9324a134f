"""OR-Tools' PDLP."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.pdlp import solve_log_pb2, solvers_pb2
from ortools.pdlp.python import pdlp
from scipy.sparse import csc_matrix

from benchmarks.peers.base import Answer, Prepared, Settings
from benchmarks.peers.local_polytope import Program, program
from softmap.model import Model


def prepare(model: Model, settings: Settings) -> Prepared:
    """Hand the LP to PDLP, relative tolerance as asked."""
    lp = program(model)
    height, width = lp.matrix.shape
    problem = pdlp.QuadraticProgram()
    problem.resize_and_initialize(width, height)
    problem.objective_vector = lp.cost
    problem.constraint_matrix = csc_matrix(lp.matrix)
    problem.constraint_lower_bounds = problem.constraint_upper_bounds = lp.rhs
    problem.variable_lower_bounds = np.zeros(width)
    parameters = solvers_pb2.PrimalDualHybridGradientParams(num_threads=settings.threads)
    criteria = parameters.termination_criteria
    criteria.time_sec_limit = settings.time_limit
    criteria.simple_optimality_criteria.eps_optimal_relative = settings.tolerance
    criteria.simple_optimality_criteria.eps_optimal_absolute = 0.0
    return lambda: _run(problem, parameters, lp)


def _run(problem: Any, parameters: Any, lp: Program) -> Answer:
    result = pdlp.primal_dual_hybrid_gradient(problem, parameters)
    log = result.solve_log
    return lp.answer(
        result.primal_solution,
        result.dual_solution,
        solve_log_pb2.TerminationReason.Name(log.termination_reason),
        log.iteration_count,
    )
