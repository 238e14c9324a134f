"""Conversions from and to `pytoulbar2.CFN`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from softmap import Model, read
from softmap.errors import ModelError, needs_extra, shown
from softmap.extend import checked_model
from softmap.extend.factors import factors_of


def to_toulbar2(model: Model, *, resolution: int = 6, **options: Any) -> Any:
    """Return a model as a `pytoulbar2.CFN`, for a second opinion by `cfn.Solve()`.

    Parameters
    ----------
    model : Model
        The model; its variables and states keep their names.
    resolution : int, default 6
        Number of decimals to which toulbar2 rounds the costs.
    **options
        Other options of `pytoulbar2.CFN`, such as `vac=1`.
    """
    with needs_extra("the conversion to toulbar2", "toulbar2"):
        import pytoulbar2
    network = checked_model(model).network
    names, factors = network.names, factors_of(network)
    cfn = pytoulbar2.CFN(resolution=resolution, **options)
    for i in range(network.num_variables):
        own = names is not None and i < len(names.variables)
        states = names.states[i] if own and names is not None else None
        called = [str(s) for s in states] if states else list(range(int(network.num_labels[i])))
        cfn.AddVariable(str(names.variables[i]) if own and names is not None else f"x{i}", called)
    for scope, table in zip(factors.scopes, factors.tables, strict=True):
        cfn.AddFunction(list(scope), table.ravel().tolist())
    cfn.AddFunction([], float(network.constant))
    return cfn


def from_toulbar2(cfn: Any) -> Model:
    """Return the model of a `pytoulbar2.CFN`, with the names of its variables and values.

    Parameters
    ----------
    cfn : pytoulbar2.CFN
        A network that was not solved: `Solve` changes it.
    """
    if not callable(getattr(cfn, "Dump", None)):
        raise ModelError(f"expected a pytoulbar2.CFN, not {shown(cfn)}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.cfn"
        cfn.Dump(str(path))
        return read(path)
