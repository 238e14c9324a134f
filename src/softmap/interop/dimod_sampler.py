"""A `dimod.Sampler` that returns the best labelling found, with its bound."""

from __future__ import annotations

import inspect
from typing import Any

from softmap.interop.dimod import Converted, from_bqm, from_cqm, from_dqm
from softmap.solving.solve import solve

__all__ = ["sampler_class"]


def _options() -> dict[str, list[str]]:
    """The keywords of `solve`, as dimod wants to see them."""
    parameters = inspect.signature(solve).parameters.values()
    return {p.name: [] for p in parameters if p.kind is p.KEYWORD_ONLY}


def _solved(converted: Converted, options: dict[str, Any]) -> tuple[dict[Any, int], dict[str, Any]]:
    """The sample, and what is proved about it."""
    result = solve(converted.model, **options)
    info = {
        "bound": result.bound,
        "gap": result.gap,
        "status": str(result.status),
        "method": result.method,
    }
    return converted.assignment(result.labels), info


def sampler_class(dimod: Any) -> Any:
    """The class, made for the dimod that is installed."""

    class Sampler(dimod.Sampler):  # type: ignore[misc]
        """Best labelling and lower bound of binary, discrete and constrained quadratic models.

        `sample`, `sample_ising`, `sample_qubo`, `sample_dqm` and `sample_cqm` take the keywords of
        `softmap.solve` and return a `SampleSet` of one sample. In its `info`, `bound` is a lower
        bound on every energy and `gap` the energy less that bound: 0 proves the sample optimal.
        """

        parameters: Any = None
        properties: Any = None

        def __init__(self) -> None:
            self.parameters = _options()
            self.properties = {"category": "software", "proves_bounds": True}

        def sample(self, bqm: Any, **options: Any) -> Any:
            """The best sample of a `BinaryQuadraticModel`."""
            options = self.remove_unknown_kwargs(**options)
            if not bqm.num_variables:
                info = {"bound": float(bqm.offset), "gap": 0.0}
                return dimod.SampleSet.from_samples_bqm({}, bqm, info=info)
            sample, info = _solved(from_bqm(bqm), options)
            return dimod.SampleSet.from_samples_bqm(sample, bqm, info=info)

        def sample_dqm(self, dqm: Any, **options: Any) -> Any:
            """The best sample of a `DiscreteQuadraticModel`."""
            sample, info = _solved(from_dqm(dqm), self.remove_unknown_kwargs(**options))
            energy = float(dqm.energy(sample))
            return dimod.SampleSet.from_samples(
                sample, energy=energy, vartype="DISCRETE", info=info
            )

        def sample_cqm(self, cqm: Any, **options: Any) -> Any:
            """The best sample of a `ConstrainedQuadraticModel`."""
            sample, info = _solved(from_cqm(cqm), self.remove_unknown_kwargs(**options))
            return dimod.SampleSet.from_samples_cqm(sample, cqm, info=info)

    Sampler.__module__, Sampler.__qualname__ = "softmap.interop.dimod", "Sampler"
    return Sampler
