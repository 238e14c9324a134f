"""PGMax's smooth dual LP: Nesterov's method on the smoothed dual at one temperature, in JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.extend
import numpy as np
from pgmax import fgraph, fgroup, infer, vgroup

from benchmarks.peers.base import Answer, Prepared, Settings
from softmap.model import Model
from softmap.relaxation.dual import SmoothedDual, edge_batches

TEMPERATURE = 1e-3
if not hasattr(jax.lib, "xla_bridge"):  # PGMax 0.6.1 still asks here which device it is on
    jax.lib.xla_bridge = jax.extend.backend
STEPS = 1000  # at the first rung of the ladder; a run begins anew with more of them on the next


def prepare(model: Model, settings: Settings, *, safe: bool) -> Prepared:
    """Build the factor graph and compile the loop by running it once.

    The default step is the temperature, too long for a vertex of high degree: the safe one divides
    it by the largest degree + 1.
    """
    if len(set(model.num_labels.tolist())) != 1 or model.network.has_forbidden:
        raise ValueError("written here for equal label counts without hard constraints")
    solver, arrays = _solver(model)
    steps = round(STEPS * settings.gap / settings.tolerance)
    step = TEMPERATURE / (int(model.network.graph.degree.max()) + 1) if safe else TEMPERATURE

    def descend() -> Any:
        found, _ = solver.run_with_objvals(
            arrays, logsumexp_temp=TEMPERATURE, num_iters=steps, lr=step
        )
        return found.ftov_msgs.block_until_ready()

    descend()
    return lambda: _answer(model, descend(), steps)


def _solver(model: Model) -> tuple[Any, Any]:
    d = int(model.num_labels[0])
    tables = np.empty((model.m, d, d), dtype=np.float32)
    for batch in edge_batches(model):
        tables[batch.edges] = -batch.cost
    variables = vgroup.NDVarArray(num_states=d, shape=(model.n,))
    graph = fgraph.FactorGraph(variable_groups=variables)
    pairs = [[variables[int(i)], variables[int(j)]] for i, j in model.edges]
    graph.add_factors(
        fgroup.PairwiseFactorGroup(variables_for_factors=pairs, log_potential_matrix=tables)
    )
    solver = infer.build_inferer(graph.bp_state, backend="sdlp")
    return solver, solver.init(evidence_updates={variables: -model.unary.reshape(-1, d)})


def _answer(model: Model, messages: Any, steps: int) -> Answer:
    # what it calls dual messages is λ: variables gain them, factors pay them
    lam = np.asarray(messages, dtype=np.float64)
    nodes = SmoothedDual(model, 1 / TEMPERATURE).node_marginals(lam)
    return Answer(lam, nodes, "done", iterations=steps, work=2 * model.m * steps)
