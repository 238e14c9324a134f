"""What runs the passes of one part: compiled loops here, the kernels of a device there."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softmap.distributed.parts import Part

__all__ = ["Engines", "PartEngine"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PartEngine(Protocol):
    """The messages of one part, wherever they are; see `chains.PartChains` for each verb.

    Arrays that it hands out may be those of a device: only itself looks into them.
    """

    part: Part
    rank: Ints
    owned: NDArray[np.bool_]
    own_states: int
    dtype: np.dtype[Any]

    @property
    def msg(self) -> Any: ...

    def extrapolate(self, clock: Floats, eta: float) -> None: ...

    def half_pass(self, phase: int, forward: bool, eta: float, momentum: bool, msg: Any) -> None:
        """Let the own nodes of one phase send."""

    def product(self) -> float: ...

    def take(self, places: Any, values: NDArray[Any], *, early: bool, msg: Any) -> None: ...

    def sample(self, eta: float, weight: float, samples: int) -> None: ...

    def places(self, halves: Ints) -> Ints: ...

    def state_places(self, nodes: Ints) -> Ints: ...

    def ready(self, places: Ints) -> Any: ...

    def read(self, array: Any, places: Any) -> NDArray[Any]: ...

    def write(self, array: Any, places: Any, values: NDArray[Any]) -> None: ...

    def measure(self, eta: float) -> None: ...

    def boundary(self, averaged: bool) -> list[Any]: ...

    def marginals(self) -> Floats: ...

    def glimpsed(self) -> None: ...

    def priced(self, averaged: bool) -> list[float]: ...

    def spare(self, hard: int) -> Any: ...

    def prove(self, msg: Any) -> tuple[float, Floats | None]:
        """A share of the bound, and λ; None where λ is still on a device (see `fetched`)."""

    def keep(self) -> None:
        """Keep λ of the last bound on the device."""

    def fetched(self, kept: bool) -> Floats:
        """λ of the last bound, or of the one that was kept, from the device."""

    def forget(self) -> None: ...

    def stored(self) -> dict[str, NDArray[Any]]: ...

    def restore(self, name: str, array: NDArray[Any]) -> None: ...


Engines = dict[int, PartEngine]  # by part
