"""Where the passes of a process run: on its cores, or on one device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softmap.arguments import count
from softmap.distributed.chains import PartChains
from softmap.distributed.engines import PartEngine
from softmap.distributed.parts import Part
from softmap.distributed.team import Team
from softmap.errors import CheckpointError, OptionError, shown
from softmap.machine import usable_cores
from softmap.solving.options import BACKENDS, MOST_THREADS

__all__ = ["Backend"]

PRECISIONS = {"cpu": ("float64",), "cuda": ("float32", "float64")}


@dataclass(frozen=True)
class Backend:
    """What makes the engines of parts; `device` and `threads` are set by `on`."""

    name: str
    dtype: str
    threads: int = 1
    device: Any = None

    @classmethod
    def checked(cls, name: Any, dtype: Any) -> Backend:
        """A backend by name."""
        if not isinstance(name, str) or name not in BACKENDS:
            raise OptionError(f"backend={shown(name)}: expected 'cpu' or 'cuda'")
        try:
            wanted = BACKENDS[name] if dtype is None else np.dtype(dtype).name
        except TypeError as error:
            raise OptionError(f"dtype={shown(dtype)}: expected float32 or float64") from error
        if wanted not in PRECISIONS[name]:
            expected = " or ".join(PRECISIONS[name])
            raise OptionError(f"dtype={shown(dtype)}: expected {expected} with backend={name!r}")
        return cls(name, wanted)

    @classmethod
    def named(cls, words: Any) -> Backend:
        """The backend of a checkpoint."""
        try:
            return cls.checked(*str(words).split(" ", 1))
        except (OptionError, TypeError) as error:
            raise CheckpointError(f"a checkpoint of a backend {shown(words)}") from error

    @property
    def words(self) -> str:
        """As checkpoints name it."""
        return f"{self.name} {self.dtype}"

    def on(self, team: Team, threads: Any) -> Backend:
        """The same for this process: its share of the cores, unless given, and its device."""
        wanted = None if threads is None else count("threads", threads, 1, MOST_THREADS)
        number, beside = team.beside()
        device = None
        if self.name == "cuda":
            from softmap.cuda.finding import device_number

            device = device_number(number)
        return replace(self, threads=wanted or max(1, usable_cores() // beside), device=device)

    def engine(self, part: Part, *, averaging: bool) -> PartEngine:
        """What runs the passes of a part."""
        if self.device is None:
            return PartChains(part, self.threads)
        from softmap.distributed.device import DevicePart

        return DevicePart(part, self.device, self.dtype, averaging, self.threads)
