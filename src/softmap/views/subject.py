"""What a report needs to know of a run; `softmap.Result` has it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model

__all__ = ["STAGES", "Basis", "Columns", "Subject"]

STAGES = ("relaxation", "search", "tightening", "labels", "minimum cut")  # by the column `stage`


class Columns(Protocol):
    """A trace: one row per check."""

    def columns(self) -> dict[str, NDArray[Any]]:
        """The trace as arrays by column name."""


class Basis(Protocol):
    """What a bound rests on."""

    @property
    def kind(self) -> object: ...
    @property
    def clusters(self) -> tuple[tuple[int, ...], ...]: ...
    @property
    def nodes(self) -> int: ...
    @property
    def stated(self) -> bool: ...


class Subject(Protocol):
    """A run that a page is written about."""

    @property
    def model(self) -> Model: ...
    @property
    def method(self) -> str: ...
    @property
    def status(self) -> object: ...
    @property
    def labels(self) -> NDArray[np.int64]: ...
    @property
    def node_marginals(self) -> NDArray[np.float64]: ...
    @property
    def energy(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def proof(self) -> Basis: ...
    @property
    def primal(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def lp_gap(self) -> float: ...
    @property
    def unit(self) -> float: ...
    @property
    def eta(self) -> float: ...
    @property
    def trace(self) -> Columns: ...
    @property
    def work(self) -> int: ...
    @property
    def sweeps(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def setup_seconds(self) -> float: ...
    @property
    def threads(self) -> int: ...
