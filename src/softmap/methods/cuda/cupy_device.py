"""A CUDA device through CuPy: kernels compiled at run time, launches recorded as graphs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap.errors import MissingExtra, OptionError
from softmap.methods.cuda.compiling import Binary, Compiler
from softmap.methods.cuda.devices import Device, HostDevice
from softmap.methods.cuda.shapes import Shape

__all__ = ["CupyDevice", "cupy_or_none", "describe", "find_device"]


class _Kernels:
    """The kernels of a device, loaded when they are first launched; all runs share them."""

    def __init__(self, cupy: Any) -> None:
        version = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
        arch = f"sm_{cupy.cuda.Device().compute_capability}"
        self._cupy, self._option = cupy, f"-arch={arch}"
        self.compiler = Compiler(self._compiled, [arch, version])
        self._loaded: dict[str, Any] = {}

    def function(self, name: str) -> Any:
        """A kernel that can be launched."""
        if name not in self._loaded:
            own, code = self.compiler.binary(name)
            module = self._cupy.cuda.function.Module()
            module.load(code)
            self._loaded[name] = module.get_function(own)
        return self._loaded[name]

    def _compiled(self, text: str, name: str, options: Sequence[str]) -> Binary:
        nvrtc = self._cupy.cuda.nvrtc
        program = nvrtc.createProgram(text, "softmap.cu", (), ())
        try:
            nvrtc.addNameExpression(program, name)
            try:
                nvrtc.compileProgram(program, (*options, self._option))
            except nvrtc.NVRTCError as error:
                raise RuntimeError(f"{name}: {nvrtc.getProgramLog(program)}") from error
            return nvrtc.getLoweredName(program, name), nvrtc.getCUBIN(program)
        finally:
            nvrtc.destroyProgram(program)


_devices: dict[int, _Kernels] = {}


class CupyDevice:
    """One GPU, with a stream of its own that waits for no other."""

    block = 256
    teams = True
    model_block = 256  # for a model of its own: a tile at a time, and more models

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        number = cupy.cuda.Device().id
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        self.name = properties["name"].decode()
        self._stream = cupy.cuda.Stream(non_blocking=True)
        if number not in _devices:
            _devices[number] = _Kernels(cupy)
        self._kernels = _devices[number]
        self._rehearsing = False

    def working(self) -> Any:
        """The stream."""
        return self._stream

    def offers(self, shape: Shape) -> bool:
        """Every shape can be compiled."""
        return True

    def prepare(self, names: Sequence[str]) -> None:
        """Begin to compile kernels; what launches them waits for them."""
        self._kernels.compiler.begin(names)

    def prepared(self) -> bool:
        """Whether all kernels that were asked for are compiled."""
        return self._kernels.compiler.done()

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

    def address(self, array: Any) -> int:
        """Where it is on the device."""
        return int(array.data.ptr)

    def copy(self, source: Any, target: Any) -> None:
        """Copy within the device."""
        if self._rehearsing:
            return
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
        function = self._kernels.function(kernel)
        if self._rehearsing:
            return
        with self._stream:
            function((blocks,), (block,), tuple(_argument(value) for value in arguments))

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """A launch graph of what `work` launches; all kernels are loaded before."""
        self._rehearsing = True
        try:
            work()
        finally:
            self._rehearsing = False
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


def _argument(value: Any) -> Any:
    if value is None:
        return np.uint64(0)
    if isinstance(value, bool | int):
        return np.int32(value)
    return np.float64(value) if isinstance(value, float) else value


EXTRA = "cuda13"  # or cuda12, by the driver
SWITCH = "SOFTMAP_CUDA"  # "host" runs the kernels without a device


def find_device() -> Device:
    """The device that kernels run on; an error says what is missing."""
    if os.environ.get(SWITCH) == "host":
        return HostDevice()
    try:
        import cupy
    except ImportError as error:
        raise MissingExtra("backend='cuda'", EXTRA) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy's own, of several types; also a driver that is too old
        raise OptionError(f"backend='cuda': no CUDA device can be used ({error})") from error
    if not count:
        raise OptionError("backend='cuda': this machine has no CUDA device")
    return CupyDevice(cupy)


def cupy_or_none() -> Any:
    """CuPy, if it is installed."""
    try:
        import cupy
    except ImportError:
        return None
    return cupy


def describe() -> str:
    """What was found, in words."""
    try:
        import cupy
    except ImportError:
        return f"none (CuPy is not installed: pip install '.[{EXTRA}]' in a clone)"
    try:
        return ", ".join(_described(cupy, k) for k in range(cupy.cuda.runtime.getDeviceCount()))
    except Exception as error:
        return f"none (CuPy {cupy.__version__}: {error})"


def _described(cupy: Any, number: int) -> str:
    found = cupy.cuda.runtime.getDeviceProperties(number)
    driver = cupy.cuda.runtime.driverGetVersion()
    return (
        f"{found['name'].decode()}, {found['totalGlobalMem'] / 2**30:.0f} GiB, compute capability "
        f"{found['major']}.{found['minor']} (CuPy {cupy.__version__}, driver for CUDA "
        f"{driver // 1000}.{driver % 1000 // 10})"
    )
