"""Markov and Bayesian networks of pgmpy and pyAgrum: conversions, and the MPE in one call."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from softmap import Model
from softmap.errors import ModelError, needs_extra, shown
from softmap.extend import Costs, Network, checked_model
from softmap.extend.factors import conditionals, factors_of

Names = Sequence[Hashable]
Part = tuple[tuple[int, ...], Costs]


def _pgmpy() -> tuple[Any, Any]:
    with needs_extra("the conversion to and from pgmpy", "interop"):
        import pgmpy.factors.discrete as discrete
        import pgmpy.models as models
    return models, discrete


def from_pgmpy(network: Any) -> Model:
    """Convert a discrete Markov or Bayesian network; costs are -log of its potentials.

    The model keeps the names of variables and states (`Model.names`).
    """
    _pgmpy()
    if not hasattr(network, "get_cpds") and not hasattr(network, "get_factors"):
        raise ModelError(f"expected a network of pgmpy, not {shown(network)}")
    if hasattr(network, "get_cpds"):
        factors = [cpd.to_factor() for cpd in network.get_cpds()]
    else:
        factors = list(network.get_factors())
    names = tuple(network.nodes())
    place = {name: i for i, name in enumerate(names)}
    states: dict[Hashable, tuple[Hashable, ...]] = {}
    parts: list[Part] = []
    for factor in factors:
        for name in factor.variables:
            states.setdefault(name, tuple(factor.state_names[name]))
        parts.append((tuple(place[name] for name in factor.variables), _costs(factor, states)))
    missing = [name for name in names if name not in states]
    if missing:
        raise ModelError(f"{missing[0]!r} is in no factor: its number of states is not known")
    rows = tuple(states[name] for name in names)
    return Model.from_factors([len(row) for row in rows], parts).with_names(names, rows)


def from_pyagrum(network: Any) -> Model:
    """Convert a `BayesNet` or `MarkovRandomField` of pyAgrum; costs are -log of its potentials.

    The model keeps the names of variables and labels (`Model.names`).
    """
    if not (hasattr(network, "cpt") or hasattr(network, "factors")):
        raise ModelError(f"expected a network of pyAgrum, not {shown(network)}")
    nodes = sorted(network.nodes())
    variables = [network.variable(node) for node in nodes]
    names = tuple(variable.name() for variable in variables)
    place = {name: i for i, name in enumerate(names)}
    if hasattr(network, "cpt"):
        tensors = [network.cpt(node) for node in nodes]
    else:
        tensors = [network.factor(scope) for scope in network.factors()]
    parts: list[Part] = []
    for tensor in tensors:
        values = np.asarray(tensor.toarray(), dtype=np.float64)  # axes in reverse order
        scope = tuple(place[name] for name in reversed(tensor.names))
        parts.append((scope, _minus_log(values, list(tensor.names))))
    rows = tuple(tuple(variable.labels()) for variable in variables)
    return Model.from_factors([len(row) for row in rows], parts).with_names(names, rows)


def mpe(
    network: Any,
    evidence: Mapping[Any, Any] | None = None,
    query: Iterable[Any] | None = None,
    **options: Any,
) -> Any:
    """Return the most probable explanation of a network of pgmpy or pyAgrum, with a bound.

    Parameters
    ----------
    network : network of pgmpy or pyAgrum
        A discrete Bayesian network or Markov random field.
    evidence : mapping, optional
        Observed states by the names of their variables. A label of pyAgrum may be its number.
    query : iterable, optional
        The variables whose most probable states are asked for: the others, but for those of the
        evidence, are summed over (marginal MAP, as `map_query` of pgmpy). By default all variables.
    **options
        Options of `softmap.solve`; of `softmap.marginal_map` with a query.

    Returns
    -------
    Result or MarginalMap
        `result.as_dict()` maps all variables to their states, those of the evidence included, or
        the variables of the query to theirs. `result.energy` is -log of their probability: with the
        evidence, not given the evidence.
    """
    import softmap

    if hasattr(network, "get_cpds") or hasattr(network, "get_factors"):
        model, observed = from_pgmpy(network), dict(evidence or {})
    else:
        model, observed = from_pyagrum(network), dict(evidence or {})
        for name, state in observed.items():
            if isinstance(state, int | np.integer):
                observed[name] = network.variable(name).labels()[state]
    conditioned = model.condition(observed)
    if query is None:
        return softmap.solve(conditioned, **options)
    assert model.names is not None
    asked = {model.names.number(name) for name in query}
    fixed = {model.names.number(name) for name in observed}
    if both := sorted(asked & fixed):
        name = model.names.variables[both[0]]
        raise ModelError(f"query: {shown(name)} is observed; expected variables without evidence")
    summed = [i for i in range(len(model.names.variables)) if i not in asked]
    return softmap.marginal_map(conditioned, summed, **options)


def _costs(factor: Any, states: dict[Hashable, tuple[Hashable, ...]]) -> Costs:
    """Return -log of a factor's values, with its states in the common order."""
    values = np.asarray(factor.values, dtype=np.float64)
    for axis, name in enumerate(factor.variables):
        own = tuple(factor.state_names[name])
        if own != states[name]:
            order = [own.index(state) for state in states[name]]
            values = np.take(values, order, axis=axis)
    return _minus_log(values, list(factor.variables))


def _minus_log(values: Costs, names: Names) -> Costs:
    if not (values >= 0).all():
        raise ModelError(f"the factor over {names} has negative or NaN entries")
    with np.errstate(divide="ignore"):
        return 0.0 - np.log(values)


def to_pgmpy(model: Model, names: Names | None = None) -> Any:
    """Return a `DiscreteMarkovNetwork` with potentials exp(-cost).

    Each table is scaled so that its largest potential is 1: energies agree up to a constant.

    Parameters
    ----------
    model : Model
    names : list of str, optional
        Names of the variables; by default those of the model, or x0, x1, ... Names of states are
        kept.
    """
    models, discrete = _pgmpy()
    given = checked_model(model).network
    called = _names(given, names)
    network = models.DiscreteMarkovNetwork()
    network.add_nodes_from(called)
    factors = factors_of(given)
    for scope, table in zip(factors.scopes, factors.tables, strict=True):
        members = [called[i] for i in scope]
        network.add_edges_from((a, b) for k, b in enumerate(members) for a in members[:k])
        finite = table[np.isfinite(table)]
        shift = finite.min() if finite.size else 0.0
        potentials, states = np.exp(shift - table), _states(given, scope, called)
        factor = discrete.DiscreteFactor(members, table.shape, potentials, state_names=states)
        network.add_factors(factor)
    return network


def to_pgmpy_bayesian(model: Model, names: Names | None = None) -> Any:
    """Return a `DiscreteBayesianNetwork`, if the factors are conditional probabilities.

    Parameters
    ----------
    model : Model
    names : list of str, optional
        Names of the variables, as for `to_pgmpy`.

    Raises
    ------
    ModelError
        A factor is no conditional probability.
    """
    models, discrete = _pgmpy()
    given = checked_model(model).network
    called = _names(given, names)
    network = models.DiscreteBayesianNetwork()
    network.add_nodes_from(called)
    for part in conditionals(given):
        count = int(given.num_labels[part.child])
        network.add_edges_from((called[p], called[part.child]) for p in part.parents)
        cards = [int(given.num_labels[p]) for p in part.parents]
        cpd = discrete.TabularCPD(
            called[part.child],
            count,
            np.exp(-part.costs).reshape(-1, count).T,
            evidence=[called[p] for p in part.parents] or None,
            evidence_card=cards or None,
            state_names=_states(given, (part.child, *part.parents), called),
        )
        network.add_cpds(cpd)
    return network


def _states(
    model: Network, scope: Iterable[int], called: Sequence[Hashable]
) -> dict[Hashable, Any]:
    """Return the names of the states of some variables, by the names of the variables."""
    known = () if model.names is None else model.names.states
    named = {called[i]: known[i] if i < len(known) else None for i in scope}
    counts = {called[i]: int(model.num_labels[i]) for i in scope}
    return {name: list(states or range(counts[name])) for name, states in named.items()}


def _names(model: Network, names: Names | None) -> list[Hashable]:
    default: Names = [f"x{i}" for i in range(model.num_variables)]
    if names is None and model.names is not None:
        names = model.names.variables
    if isinstance(names, str | bytes) or not (names is None or isinstance(names, Sequence)):
        raise ModelError(f"names must be a list of names, not {shown(names)}")
    called = list(default if names is None else names)
    visible = len(model.visible_counts)
    if len(called) == visible:  # chain variables get names of their own
        called += default[visible:]
    if not all(isinstance(name, Hashable) for name in called):
        raise ModelError("names must be hashable, such as strings")
    if len(called) != model.num_variables or len(set(called)) != len(called):
        raise ModelError(f"names must be {visible} different names")
    return called
