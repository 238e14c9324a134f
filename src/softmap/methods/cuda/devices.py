"""The interface of a device, and its implementation on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap import core
from softmap.errors import OptionError
from softmap.methods.cuda.shapes import Shape

Launch = tuple[str, int, Sequence[Any]]
"""A kernel by name, the threads it needs, and its arguments: arrays, integers, floats, and records
(numpy arrays of a structured type with one entry), which go by value."""


class Device(Protocol):
    """A device: memory and kernels. Arrays belong to the device; all work is in one stream.

    Attributes
    ----------
    name : str
    block : int
        Number of threads per block; kernels write one partial sum per block.
    teams : bool
        Whether several warps can work on a tile; otherwise a block is one thread.
    """

    name: str
    block: int
    teams: bool

    def working(self) -> AbstractContextManager[Any]:
        """Return a context in which allocations are ordered with launches."""

    def offers(self, shape: Shape) -> bool:
        """Whether there are kernels of this shape."""

    def prepare(self, names: Sequence[str]) -> None:
        """Start to compile kernels, in the order in which they will be needed."""

    def require(self, names: Sequence[str], deadline: core.Deadline | None = None) -> None:
        """Block until kernels can be launched; raise `core.OutOfTime` at the deadline."""

    def upload(self, array: NDArray[Any]) -> Any:
        """Return a copy of an array on the device."""

    def zeros(self, size: int, dtype: DTypeLike) -> Any:
        """Return an array of zeros on the device."""

    def fetch(self, array: Any) -> NDArray[Any]:
        """Return a copy of a device array on the host; block until earlier work is done."""

    def address(self, array: Any) -> int:
        """Return the address of an array."""

    def copy(self, source: Any, target: Any) -> None:
        """Copy an array within the device, ordered with launches."""

    def put(self, array: Any, values: NDArray[Any]) -> None:
        """Write the first entries of an array, ordered with launches."""

    def launch(self, kernel: str, threads: int, arguments: Sequence[Any]) -> None:
        """Launch a kernel with at least this many threads."""

    def launch_blocks(self, kernel: str, blocks: int, arguments: Sequence[Any]) -> None:
        """Launch a kernel with this many blocks, one per model."""

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """Record the launches of `work`; return a function that repeats them faster."""

    def synchronize(self) -> None:
        """Block until all work is done."""

    def room(self) -> int | None:
        """Return the free memory in bytes, or None if unknown."""


class HostDevice(Device):
    """The kernels compiled for the host; threads run one after another. For tests only."""

    name = "host"
    block = 1
    teams = False
    general = 128  # number of labels of the general shape

    def __init__(self) -> None:
        try:
            self._module: Any = import_module("softmap.core._device")
        except ImportError as error:
            raise OptionError(
                "SOFTMAP_CUDA=host: the kernels are not compiled for the host; `make test` in a "
                "clone does that"
            ) from error
        self._names = frozenset(self._module.names())

    def working(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def offers(self, shape: Shape) -> bool:
        return any(shape.name in name for name in self._names)

    def prepare(self, names: Sequence[str]) -> None:
        missing = [name for name in names if name not in self._names]
        if missing:
            raise LookupError(f"not compiled for the host: {', '.join(missing)}")

    def require(self, names: Sequence[str], deadline: core.Deadline | None = None) -> None:
        self.prepare(names)

    def upload(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.array(array, order="C")

    def zeros(self, size: int, dtype: DTypeLike) -> NDArray[Any]:
        return np.zeros(max(size, 1), dtype)

    def fetch(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.copy()

    def address(self, array: NDArray[Any]) -> int:
        return array.ctypes.data

    def copy(self, source: NDArray[Any], target: NDArray[Any]) -> None:
        target[:] = source

    def put(self, array: NDArray[Any], values: NDArray[Any]) -> None:
        array[: len(values)] = values

    def launch(self, kernel: str, threads: int, arguments: Sequence[Any]) -> None:
        words = np.array([_word(value) for value in arguments], dtype=np.uint64)
        self._module.launch(kernel, threads, words)

    def launch_blocks(self, kernel: str, blocks: int, arguments: Sequence[Any]) -> None:
        self.launch(kernel, blocks, arguments)

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        return work

    def synchronize(self) -> None:
        """Do nothing: all work is synchronous."""

    def room(self) -> int | None:
        return None


def _word(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.ctypes.data
    if value is None:
        return 0
    if isinstance(value, float):
        return int(np.float64(value).view(np.uint64))
    return int(value) % (1 << 64)
