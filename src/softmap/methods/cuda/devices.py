"""What the driver asks of a device, and the host as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap.errors import OptionError
from softmap.methods.cuda.shapes import Shape

__all__ = ["Device", "HostDevice", "Launch"]

Launch = tuple[str, int, Sequence[Any]]
"""A kernel by name, the threads it needs, and its arguments: arrays, integers, floats, and records
(numpy arrays of a structured type with one entry), which go by value."""


class Device(Protocol):
    """Memory and kernels. Arrays are the device's own; all work happens in one order.

    Attributes
    ----------
    name : str
    block : int
        Threads in a block: sums come out one per block.
    teams : bool
        Whether a tile can have several warps; else a block is one thread.
    """

    name: str
    block: int
    teams: bool

    def working(self) -> AbstractContextManager[Any]:
        """Within this, arrays are made in the order of launches."""

    def offers(self, shape: Shape) -> bool:
        """Whether there are kernels of this shape."""

    def prepare(self, names: Sequence[str]) -> None:
        """Begin to compile kernels, those that are needed first in front."""

    def prepared(self) -> bool:
        """Whether no launch has to wait for a compiler."""

    def upload(self, array: NDArray[Any]) -> Any:
        """A copy of an array on the device."""

    def zeros(self, size: int, dtype: DTypeLike) -> Any:
        """An array of zeros on the device."""

    def fetch(self, array: Any) -> NDArray[Any]:
        """A copy of a device's array; waits for everything before it."""

    def address(self, array: Any) -> int:
        """Where an array begins."""

    def copy(self, source: Any, target: Any) -> None:
        """Copy within the device, in the order of launches."""

    def put(self, array: Any, values: NDArray[Any]) -> None:
        """Write the first entries of an array, in the order of launches."""

    def launch(self, kernel: str, threads: int, arguments: Sequence[Any]) -> None:
        """Run a kernel."""

    def launch_blocks(self, kernel: str, blocks: int, arguments: Sequence[Any]) -> None:
        """Run a kernel with a number of blocks, one per model."""

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """What `work` launches, as something that can be repeated at less cost."""

    def synchronize(self) -> None:
        """Wait for everything."""

    def room(self) -> int | None:
        """Free bytes; None if not known."""


class HostDevice:
    """The kernels compiled for the host, thread by thread: for tests, not for speed."""

    name = "host"
    block = 1
    teams = False
    general = 128  # labels of the general shape

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
        """Nothing is to be done for that."""
        return nullcontext()

    def offers(self, shape: Shape) -> bool:
        """Whether there are kernels of this shape."""
        return any(shape.name in name for name in self._names)

    def prepare(self, names: Sequence[str]) -> None:
        """See that there are such kernels."""
        missing = [name for name in names if name not in self._names]
        if missing:
            raise LookupError(f"not compiled for the host: {', '.join(missing)}")

    def prepared(self) -> bool:
        """They were compiled before."""
        return True

    def upload(self, array: NDArray[Any]) -> NDArray[Any]:
        """A copy."""
        return np.array(array, order="C")

    def zeros(self, size: int, dtype: DTypeLike) -> NDArray[Any]:
        """Zeros."""
        return np.zeros(max(size, 1), dtype)

    def fetch(self, array: NDArray[Any]) -> NDArray[Any]:
        """A copy."""
        return array.copy()

    def address(self, array: NDArray[Any]) -> int:
        """Where it is."""
        return array.ctypes.data

    def copy(self, source: NDArray[Any], target: NDArray[Any]) -> None:
        """Copy."""
        target[:] = source

    def put(self, array: NDArray[Any], values: NDArray[Any]) -> None:
        """Write the first entries."""
        array[: len(values)] = values

    def launch(self, kernel: str, threads: int, arguments: Sequence[Any]) -> None:
        """Run a kernel, thread by thread."""
        words = np.array([_word(value) for value in arguments], dtype=np.uint64)
        self._module.launch(kernel, threads, words)

    def launch_blocks(self, kernel: str, blocks: int, arguments: Sequence[Any]) -> None:
        """Run a kernel, block by block: one thread each."""
        self.launch(kernel, blocks, arguments)

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """The work itself."""
        return work

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def room(self) -> int | None:
        """Not known."""
        return None


def _word(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.ctypes.data
    if value is None:
        return 0
    if isinstance(value, float):
        return int(np.float64(value).view(np.uint64))
    return int(value) % (1 << 64)
