"""Conversions from and to dimod's BQM, DQM and CQM, and a sampler that proves its answer.

`Sampler` is a `dimod.Sampler`. The class is created on first use, because it needs dimod.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import Linear, Model
from softmap.arguments import count
from softmap.errors import InfeasibleModel, ModelError, OptionError, needs_extra, shown
from softmap.extend import LIMITS, Costs, Network, checked_model, integers
from softmap.extend.factors import Assembly, assembled, quadratic_of, require_pairwise

TOLERANCE = 1e-8  # by how much a sample may violate a constraint, as in `cqm.check_feasible`

__all__ = [
    "Converted",
    "from_bqm",
    "from_cqm",
    "from_dimod",
    "from_dqm",
    "to_bqm",
    "to_cqm",
    "to_dqm",
]


def _dimod() -> Any:
    with needs_extra("the conversion to and from dimod", "dimod"):
        import dimod
    return dimod


@dataclass(frozen=True)
class Converted:
    """A model, and the values of dimod's variables for its labels.

    The binary variables of a discrete constraint share one variable of the model; every other
    variable has its own.

    Attributes
    ----------
    model : Model
    node : dict
        Maps dimod's variables to variables of the model.
    values : dict
        Maps dimod's variables to an array with their value at each label.
    """

    model: Model
    node: Mapping[Hashable, int]
    values: Mapping[Hashable, Costs]

    def assignment(self, labels: ArrayLike) -> dict[Hashable, int]:
        """Return the values of dimod's variables; `labels` may include chain variables."""
        n = max(self.node.values(), default=-1) + 1
        given = integers(labels, "labels")
        if given.ndim != 1:
            raise ModelError(f"expected a list of labels, not an array of shape {given.shape}")
        counts = self.model.num_labels[:n]
        if len(given) < n:
            raise ModelError(f"labels must have shape ({n},), not {given.shape}")
        if (outside := (given[:n] < 0) | (given[:n] >= counts)).any():
            i = int(np.argmax(outside))
            raise ModelError(f"label {given[i]} of variable {i} is outside 0..{counts[i] - 1}")
        return {v: int(self.values[v][given[i]]) for v, i in self.node.items()}

    def labels(self, sample: Mapping[Hashable, float]) -> NDArray[np.int64]:
        """Return the labels of a sample, which `assignment` maps back to it.

        Parameters
        ----------
        sample : mapping
            The value of each of dimod's variables.
        """
        fits = [np.ones(int(count), bool) for count in self.model.num_labels]
        for v, i in self.node.items():
            if v not in sample:
                raise ModelError(f"the initial state has no value for {v!r}")
            fits[i] &= self.values[v] == sample[v]
            if not fits[i].any():
                raise ModelError(f"the initial state has no valid value for {v!r}: {sample[v]}")
        return np.array([int(row.argmax()) for row in fits], dtype=np.int64)


class _Builder:
    """A builder of quadratic costs; a variable is a vector of values over a node's labels."""

    def __init__(self, node: dict[Hashable, int], values: dict[Hashable, Costs]) -> None:
        self.node, self.values = node, values
        if not node:
            raise ModelError("a model needs at least one variable")
        counts = np.zeros(max(node.values()) + 1, dtype=np.int64)
        for v, i in node.items():
            counts[i] = len(values[v])
        self.assembly = Assembly(counts)

    def linear(self, v: Hashable, bias: float) -> None:
        self.assembly.add_unary(self.node[v], bias * self.values[v])

    def quadratic(self, u: Hashable, v: Hashable, bias: float) -> None:
        if not bias:
            return
        i, j = self.node[u], self.node[v]
        if i == j:
            self.assembly.add_unary(i, bias * (self.values[u] * self.values[v]))
        else:
            self.assembly.add_factor((i, j), bias * np.outer(self.values[u], self.values[v]))

    def done(self, constant: float) -> Converted:
        self.assembly.add_constant(constant)
        model = assembled(self.assembly.pieces())
        return Converted(model, self.node, self.values)


def from_dimod(model: Any) -> Converted:
    """Convert a BQM, DQM or CQM of dimod.

    Parameters
    ----------
    model : BinaryQuadraticModel, DiscreteQuadraticModel or ConstrainedQuadraticModel
        A model of dimod; `from_bqm`, `from_dqm` and `from_cqm` say how each is converted.
    """
    dimod = _dimod()
    kinds = {
        dimod.BinaryQuadraticModel: from_bqm,
        dimod.DiscreteQuadraticModel: from_dqm,
        dimod.ConstrainedQuadraticModel: from_cqm,
    }
    for kind, convert in kinds.items():
        if isinstance(model, kind):
            return convert(model)
    raise ModelError(f"expected a BQM, DQM or CQM of dimod, not {shown(model)}")


def from_bqm(bqm: Any) -> Converted:
    """Convert a `BinaryQuadraticModel`; label 1 is the value 1, label 0 is the value 0 or -1."""
    dimod = _dimod()
    if not isinstance(bqm, dimod.BinaryQuadraticModel):
        raise ModelError(f"expected a BinaryQuadraticModel, not {shown(bqm)}")
    low = 0.0 if bqm.vartype is dimod.BINARY else -1.0
    values = {v: np.array([low, 1.0]) for v in bqm.variables}
    builder = _Builder({v: i for i, v in enumerate(bqm.variables)}, values)
    for v, bias in bqm.linear.items():
        builder.linear(v, float(bias))
    for (u, v), bias in bqm.quadratic.items():
        builder.quadratic(u, v, float(bias))
    return builder.done(float(bqm.offset))


def from_dqm(dqm: Any) -> Converted:
    """Convert a `DiscreteQuadraticModel`; labels are its cases."""
    dimod = _dimod()
    if not isinstance(dqm, dimod.DiscreteQuadraticModel):
        raise ModelError(f"expected a DiscreteQuadraticModel, not {shown(dqm)}")
    node = {v: i for i, v in enumerate(dqm.variables)}
    values = {v: np.arange(float(dqm.num_cases(v))) for v in node}
    builder = _Builder(node, values)
    for v, i in node.items():
        builder.assembly.add_unary(i, dqm.get_linear(v))
        for u in dqm.adj[v]:
            if node[u] > i:
                table = np.asarray(dqm.get_quadratic(v, u, array=True), dtype=np.float64)
                builder.assembly.add_factor((i, node[u]), table)
    return builder.done(float(dqm.offset))


def from_cqm(cqm: Any) -> Converted:
    """Convert a `ConstrainedQuadraticModel` of binary, spin and integer variables.

    A discrete constraint becomes one variable with a label per member. Linear constraints with
    integer coefficients become `Linear` factors, whose chain variables come last. Constraints with
    products or fractions, and those with weights (soft constraints), become tables, if they have
    few joint states; otherwise they raise `ModelError`.
    """
    dimod = _dimod()
    if not isinstance(cqm, dimod.ConstrainedQuadraticModel):
        raise ModelError(f"expected a ConstrainedQuadraticModel, not {shown(cqm)}")
    node: dict[Hashable, int] = {}
    values: dict[Hashable, Costs] = {}
    count = 0
    for label in cqm.discrete:
        members = list(cqm.constraints[label].lhs.variables)
        for k, v in enumerate(members):
            node[v], values[v] = count, np.eye(len(members))[k]
        count += 1
    for v in cqm.variables:
        if v not in node:
            node[v], values[v] = count, _domain(cqm, v, dimod)
            count += 1
    builder = _Builder(node, values)
    _add_terms(builder, cqm.objective)
    for label, constraint in cqm.constraints.items():
        if label not in cqm.discrete:
            _constrain(builder, label, constraint)
    return builder.done(float(cqm.objective.offset))


def _domain(cqm: Any, v: Hashable, dimod: Any) -> Costs:
    kind = cqm.vartype(v)
    if kind is dimod.BINARY:
        return np.array([0.0, 1.0])
    if kind is dimod.SPIN:
        return np.array([-1.0, 1.0])
    low, high = cqm.lower_bound(v), cqm.upper_bound(v)
    if kind is not dimod.INTEGER or not high - low < LIMITS.integer_values:
        raise ModelError(f"{v!r} must be binary, spin or an integer of few values, not {kind}")
    return np.arange(np.ceil(low), np.floor(high) + 1.0)


def _add_terms(builder: _Builder, polynomial: Any) -> None:
    for v, bias in polynomial.linear.items():
        builder.linear(v, float(bias))
    for (u, v), bias in polynomial.quadratic.items():
        builder.quadratic(u, v, float(bias))


def _constrain(builder: _Builder, label: Hashable, constraint: Any) -> None:
    left = constraint.lhs
    weights: dict[int, Costs] = {}
    for v, bias in left.linear.items():
        i = builder.node[v]
        weights[i] = weights.get(i, 0.0) + float(bias) * builder.values[v]
    whole = all((row == np.round(row)).all() for row in weights.values())
    if left.is_soft() or not whole or any(left.quadratic.values()):
        _tabulate(builder, label, constraint)
        return
    bound = float(constraint.rhs) - float(left.offset)
    low = None if constraint.sense.value == "<=" else bound
    high = None if constraint.sense.value == ">=" else bound
    rows = [row.astype(np.int64) for row in weights.values()]
    if rows:
        builder.assembly.add_many(Linear(list(weights), rows, low=low, high=high))
    elif not ((low is None or low <= 0) and (high is None or high >= 0)):
        raise ModelError(f"constraint {label!r} has no variables and never holds")


def _tabulate(builder: _Builder, label: Hashable, constraint: Any) -> None:
    """Add a constraint with products, fractions or a weight as a table over its variables."""
    left, node, values = constraint.lhs, builder.node, builder.values
    if not left.variables:
        raise ModelError(f"constraint {label!r} has no variables")
    nodes = sorted({node[v] for v in left.variables})
    shape = [int(builder.assembly.num_labels[i]) for i in nodes]
    if math.prod(shape) > LIMITS.table_states:
        raise ModelError(
            f"constraint {label!r} has products, fractions or a weight, and "
            f"{math.prod(shape)} joint states; at most {LIMITS.table_states} are supported"
        )

    def along(v: Hashable) -> Costs:
        axis = nodes.index(node[v])
        return values[v].reshape([-1 if k == axis else 1 for k in range(len(nodes))])

    total = np.full(shape, float(left.offset) - float(constraint.rhs))
    for v, bias in left.linear.items():
        total = total + float(bias) * along(v)
    for (u, v), bias in left.quadratic.items():
        total = total + float(bias) * along(u) * along(v)
    sense = constraint.sense.value
    violation = {"<=": total, ">=": -total, "==": np.abs(total)}[sense]
    penalty = np.inf
    if left.is_soft():
        power = {"linear": 1, "quadratic": 2}[left.penalty()]
        penalty = left.weight() * violation**power
    builder.assembly.add_factor(nodes, np.where(violation > TOLERANCE, penalty, 0.0))


def _names(model: Network, names: Sequence[Hashable] | None) -> list[Hashable]:
    own = None if model.names is None else model.names.variables
    given = own if names is None else names
    called: list[Hashable] = list(range(model.num_variables) if given is None else given)
    if len(called) != model.num_variables or len(set(called)) != len(called):
        raise ModelError(f"names must be {model.num_variables} different names")
    return called


def to_bqm(model: Model, names: Sequence[Hashable] | None = None) -> Any:
    """Return a `BinaryQuadraticModel` (0 and 1) of a model with two labels and finite costs.

    Parameters
    ----------
    model : Model
    names : list of hashable, optional
        Names of the variables; by default those of the model, or their numbers.
    """
    dimod = _dimod()
    called = _names(checked_model(model).network, names)
    found = quadratic_of(model.network, "a BinaryQuadraticModel")
    bqm = dimod.BinaryQuadraticModel(dimod.BINARY)
    bqm.add_linear_from(zip(called, found.linear.tolist(), strict=True))
    pairs = zip(found.pairs.tolist(), found.weight.tolist(), strict=True)
    bqm.add_quadratic_from((called[i], called[j], w) for (i, j), w in pairs)
    bqm.offset = found.constant
    return bqm


def to_dqm(model: Model, names: Sequence[Hashable] | None = None) -> Any:
    """Return a `DiscreteQuadraticModel` of a model with finite unary and pairwise costs.

    Parameters
    ----------
    model : Model
    names : list of hashable, optional
        Names of the variables, as for `to_bqm`.
    """
    dimod = _dimod()
    network = checked_model(model).network
    require_pairwise(network, "a DiscreteQuadraticModel")
    called = _names(network, names)
    if network.has_forbidden:
        raise ModelError("a DiscreteQuadraticModel holds finite costs only, no hard constraints")
    dqm = dimod.DiscreteQuadraticModel()
    for i, v in enumerate(called):
        dqm.add_variable(int(network.num_labels[i]), label=v)
        dqm.set_linear(v, network.unary_of(i).copy())
    summed: dict[tuple[int, int], Costs] = {}
    for (i, j), table in zip(network.edges.tolist(), network.tables(), strict=True):
        key, part = ((i, j), table) if i < j else ((j, i), table.T)
        summed[key] = summed.get(key, 0.0) + part
    for (i, j), table in summed.items():
        dqm.set_quadratic(called[i], called[j], np.array(table))
    dqm.offset += network.constant
    return dqm


def to_cqm(model: Model, names: Sequence[Hashable] | None = None) -> Any:
    """Return a `ConstrainedQuadraticModel` with a one-hot binary `(name, label)` per label.

    Forbidden labels and pairs become linear constraints.

    Parameters
    ----------
    model : Model
    names : list of hashable, optional
        Names of the variables, as for `to_bqm`.
    """
    dimod = _dimod()
    network = checked_model(model).network
    require_pairwise(network, "a ConstrainedQuadraticModel")
    called = _names(network, names)
    cqm, objective = dimod.ConstrainedQuadraticModel(), dimod.BinaryQuadraticModel("BINARY")
    objective.offset = network.constant
    own = [[(v, x) for x in range(int(d))] for v, d in zip(called, network.num_labels, strict=True)]
    never = []
    for i, labels in enumerate(own):
        for v, cost in zip(labels, network.unary_of(i).tolist(), strict=True):
            objective.add_linear(v, cost if cost < np.inf else 0.0)
            never += [([v], 0)] if cost == np.inf else []
    for (i, j), table in zip(network.edges.tolist(), network.tables(), strict=True):
        for x, y in np.argwhere(table != 0).tolist():
            if table[x, y] == np.inf:
                never.append(([own[i][x], own[j][y]], 1))
            else:
                objective.add_quadratic(own[i][x], own[j][y], float(table[x, y]))
    cqm.set_objective(objective)
    for name, labels in zip(called, own, strict=True):
        cqm.add_discrete(labels, label=("one", name))
    for members, most in never:
        cqm.add_constraint([(v, 1) for v in members], "<=", rhs=most)
    return cqm


def _options() -> dict[str, list[str]]:
    """Return the keywords of `solve` in the form of `dimod.Sampler.parameters`."""
    import softmap

    parameters = inspect.signature(softmap.solve).parameters.values()
    own: dict[str, list[str]] = {p.name: [] for p in parameters if p.kind is p.KEYWORD_ONLY}
    return own | {"num_reads": [], "diversity": [], "initial_states": []}


READS = ("gap", "time_limit", "threads", "seed", "diversity")

# What other samplers of dimod take, and what to use here.
REFUSED = {
    "num_sweeps": "time_limit= or max_work= ends a run",
    "beta_range": "there is no temperature to choose",
    "beta_schedule_type": "there is no temperature to choose",
    "chain_strength": "no variable is embedded",
    "annealing_time": "time_limit= ends a run",
}


def _solved(
    converted: Converted, options: dict[str, Any]
) -> tuple[list[dict[Any, int]], dict[str, Any]]:
    """Return the samples, best first, and their `info` with bound, gap and proof."""
    import softmap

    if (states := options.pop("initial_states", None)) is not None:
        options["initial"] = converted.labels(_first(states))
    reads = count("num_reads", options.pop("num_reads", None) or 1, 1)
    if reads > 1:
        return _best(converted, reads, options)
    options.pop("diversity", None)  # there is no other sample to differ from
    result = softmap.solve(converted.model, **options)
    info = {
        "bound": result.bound,
        "gap": result.gap,
        "relative_gap": result.relative_gap(result.gap),
        "proof": result.proof.kind,
        "status": str(result.status),
        "method": result.method,
    }
    return [converted.assignment(result.labels)], info


def _first(states: Any) -> dict[Hashable, float]:
    """Return the first of the initial states, in any form that dimod takes for samples."""
    samples, variables = _dimod().as_samples(states)
    if not len(samples):
        raise OptionError("initial_states is empty: expected a sample")
    return dict(zip(variables, samples[0].tolist(), strict=True))


def _best(
    converted: Converted, reads: int, options: dict[str, Any]
) -> tuple[list[dict[Any, int]], dict[str, Any]]:
    """Return the `reads` best samples, each with its own proof."""
    import softmap

    if other := [name for name in options if name not in READS]:
        raise OptionError(f"num_reads={reads} finds the best samples: no {', '.join(other)}")
    found = softmap.solve_mbest(converted.model, reads, **options)
    if not found:
        raise OptionError(f"num_reads={reads}: no sample was found within the limits")
    first = found[0]
    gap = max(0.0, first.energy - first.bound)
    info = {
        "bound": first.bound,
        "gap": gap,
        "relative_gap": gap / max(1.0, abs(first.energy)),
        "proof": "ranked",
        "bounds": [entry.bound for entry in found],
        "proved": [entry.proved for entry in found],
    }
    return [converted.assignment(entry.labels) for entry in found], info


def _feasible(cqm: Any, options: dict[str, Any]) -> tuple[list[dict[Any, int]], dict[str, Any]]:
    """Return the samples of a constrained model as `_solved`; none if it is infeasible."""
    try:
        return _solved(from_cqm(cqm), options)
    except InfeasibleModel as error:
        return [], {"status": f"infeasible: {error}"}


def _refuse(options: Mapping[str, Any]) -> None:
    for name in options:
        if name in REFUSED:
            raise OptionError(f"{name} does not apply: {REFUSED[name]}")


@cache
def _sampler() -> Any:
    """Return the class `Sampler`, derived from the installed dimod."""
    dimod: Any = _dimod()

    class Sampler(dimod.Sampler):  # type: ignore[misc]
        """A dimod sampler that returns the best labelling and a lower bound.

        `sample`, `sample_ising`, `sample_qubo`, `sample_dqm` and `sample_cqm` take the keywords of
        `softmap.solve` and return a `SampleSet` of one sample. In its `info`, `bound` is a lower
        bound on every energy, `gap` is the energy minus that bound (0 proves optimality), and
        `proof` says what the bound rests on.

        With `num_reads=m`, the samples are the m best of all, in order, as `softmap.solve_mbest`
        finds them; fewer if there are no m. `info["proved"]` says for each whether its rank is
        proved (`proof` is "ranked"). They are no random samples. With `diversity=d`, any two differ
        in at least d variables.

        `initial_states` gives labels to start with: the first sample of what dimod takes for
        samples. A constrained model without a feasible sample gives an empty `SampleSet`, whose
        `info["status"]` says so. Options of annealers, such as `num_sweeps`, raise `OptionError`.
        """

        parameters: Any = None
        properties: Any = None

        def __init__(self) -> None:
            self.parameters = _options()
            self.properties = {"category": "software", "proves_bounds": True}

        def remove_unknown_kwargs(self, **options: Any) -> dict[str, Any]:
            """Refuse options of annealers; remove other unknown ones with dimod's warning."""
            _refuse(options)
            return dict(super().remove_unknown_kwargs(**options))

        def sample(self, bqm: Any, **options: Any) -> Any:
            """Return the best sample of a `BinaryQuadraticModel`."""
            options = self.remove_unknown_kwargs(**options)
            if not bqm.num_variables:
                info = {"bound": float(bqm.offset), "gap": 0.0, "proof": "relaxation"}
                return dimod.SampleSet.from_samples_bqm({}, bqm, info=info)
            samples, info = _solved(from_bqm(bqm), options)
            return dimod.SampleSet.from_samples_bqm(samples, bqm, info=info)

        def sample_dqm(self, dqm: Any, **options: Any) -> Any:
            """Return the best sample of a `DiscreteQuadraticModel`."""
            samples, info = _solved(from_dqm(dqm), self.remove_unknown_kwargs(**options))
            energies = [float(dqm.energy(sample)) for sample in samples]
            return dimod.SampleSet.from_samples(
                samples, energy=energies, vartype="DISCRETE", info=info
            )

        def sample_cqm(self, cqm: Any, **options: Any) -> Any:
            """Return the best sample of a `ConstrainedQuadraticModel`."""
            samples, info = _feasible(cqm, self.remove_unknown_kwargs(**options))
            return dimod.SampleSet.from_samples_cqm(samples, cqm, info=info)

    Sampler.__module__, Sampler.__qualname__ = __name__, "Sampler"
    return Sampler


def __getattr__(name: str) -> Any:
    if name == "Sampler":
        return _sampler()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
