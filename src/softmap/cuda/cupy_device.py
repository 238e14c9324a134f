"""A CUDA device through CuPy: kernels compiled at run time, launches recorded as graphs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap.cuda.shapes import Shape

__all__ = ["CupyDevice", "sources"]

NAMESPACE = "softmap::device::"
TEXT = '#include "cuda/batches.hpp"\n'


_loaded: dict[int, dict[str, Any]] = {}  # kernels of each device, which all runs share


def sources() -> Path:
    """The folder of the kernels' text: beside this file, or (in a clone) in ``src/core``."""
    installed = Path(__file__).parent / "kernels"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "core"


class CupyDevice:
    """One GPU, with a stream of its own that waits for no other."""

    block = 256
    teams = True
    model_block = 256  # for a model of its own: a tile at a time, and more models

    def __init__(self, cupy: Any) -> None:
        self._cupy = self.xp = cupy
        number = cupy.cuda.Device().id
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        self.name = properties["name"].decode()
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._kernels: dict[str, Any] = _loaded.setdefault(number, {})

    def working(self) -> Any:
        """The stream."""
        return self._stream

    def offers(self, shape: Shape) -> bool:
        """Every shape can be compiled."""
        return True

    def prepare(self, names: Sequence[str]) -> None:
        """Compile kernels, side by side; CuPy keeps them on disk for the next time."""
        wanted = sorted(set(names) - set(self._kernels))
        parts: dict[str, list[str]] = {}
        for name in wanted:
            parts.setdefault(_part(name), []).append(name)
        device = self._cupy.cuda.Device()

        def compiled(part: list[str]) -> dict[str, Any]:
            with device:
                return self._compiled(part)

        with ThreadPoolExecutor(max_workers=8) as pool:
            for found in pool.map(compiled, parts.values()):
                self._kernels.update(found)

    def _compiled(self, names: list[str]) -> dict[str, Any]:
        folder = sources()
        module = self._cupy.RawModule(
            code=TEXT,
            options=(
                "-std=c++20", "-default-device", "-DSOFTMAP_DEVICE", "-DSOFTMAP_TEXT=" + digest(),
                f"-I{folder / 'cuda' / 'std'}", f"-I{folder}", "--diag-suppress=177,128",
            ),
            name_expressions=[qualified(name) for name in names],
        )  # fmt: skip
        return {name: module.get_function(qualified(name)) for name in names}

    def upload(self, array: NDArray[Any]) -> Any:
        """A copy on the device; an array that is there stays where it is."""
        if isinstance(array, self._cupy.ndarray):
            return array
        with self._stream:
            flat = np.ascontiguousarray(array)
            raw = flat.view(np.uint8) if flat.dtype.kind == "V" else flat
            return self._cupy.asarray(raw)

    def zeros(self, size: int, dtype: DTypeLike) -> Any:
        """Zeros on the device."""
        with self._stream:
            return self._cupy.zeros(max(size, 1), dtype)

    def fetch(self, array: Any) -> NDArray[Any]:
        """A copy on the host."""
        with self._stream:
            return self._cupy.asnumpy(array, stream=self._stream)

    def copy(self, source: Any, target: Any) -> None:
        """Copy within the device."""
        target.data.copy_from_device_async(source.data, source.nbytes, self._stream)

    def put(self, array: Any, values: NDArray[Any]) -> None:
        """Write the first entries."""
        with self._stream:
            array[: len(values)].set(values, stream=self._stream)
            self._stream.synchronize()

    def launch(self, kernel: str, threads: int, arguments: Sequence[Any]) -> None:
        """Run a kernel."""
        self._launch(kernel, max(1, -(-threads // self.block)), self.block, arguments)

    def launch_blocks(self, kernel: str, blocks: int, arguments: Sequence[Any]) -> None:
        """Run a kernel with a number of blocks, one per model."""
        self._launch(kernel, blocks, self.model_block, arguments)

    def _launch(self, kernel: str, blocks: int, block: int, arguments: Sequence[Any]) -> None:
        with self._stream:
            given = tuple(_argument(value) for value in arguments)
            self._kernels[kernel]((blocks,), (block,), given)

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """A launch graph of what `work` launches."""
        stream = self._stream
        with stream:
            stream.begin_capture()
            try:
                work()
            finally:
                graph = stream.end_capture()
        return lambda: graph.launch(stream)

    def synchronize(self) -> None:
        """Wait for the stream."""
        self._stream.synchronize()

    def room(self) -> int | None:
        """Free bytes of the device, with what CuPy holds in reserve."""
        free = self._cupy.cuda.runtime.memGetInfo()[0]
        return int(free + self._cupy.get_default_memory_pool().free_bytes())


def qualified(name: str) -> str:
    """A kernel's name with its namespaces."""
    return NAMESPACE + name.replace("Shape<", NAMESPACE + "Shape<")


def _argument(value: Any) -> Any:
    if value is None:
        return np.uint64(0)
    if isinstance(value, bool | int):
        return np.int32(value)
    return np.float64(value) if isinstance(value, float) else value


def _part(name: str) -> str:
    """The kernels that are compiled together: those that take long get a compiler of their own."""
    kernel = name.split("<")[0]
    apart = ("half_pass", "half_pass_together", "couple_edges", "batch_passes", "batch_look")
    return name if kernel in apart else "the rest"


@cache
def digest() -> str:
    """Of the kernels' text: CuPy's cache knows the options, not the files that are included."""
    found = hashlib.sha256()
    for path in sorted(sources().rglob("*.hpp")):
        if path.parent.name in ("base", "cuda", "families", "proof"):
            found.update(path.read_bytes())
    return "0x" + found.hexdigest()[:15]
