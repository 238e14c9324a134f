"""A CUDA device through CuPy: kernels compiled at run time, launches recorded as graphs."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap.errors import MissingExtra, OptionError
from softmap.machine import usable_cores
from softmap.methods.cuda.devices import Device, HostDevice
from softmap.methods.cuda.shapes import Shape

LOG = logging.getLogger("softmap")
FOLDER = "SOFTMAP_CACHE"

Binary = tuple[str, bytes]
"""The name of a kernel in its binary, and the binary."""

HEADERS = {
    "tick": "passes", "half_pass": "passes",
    "add_up_nodes": "links", "send_along": "links", "batch_passes": "batches",
    "batch_look": "batches", "batch_keep": "batches", "to_lam": "transfer", "from_lam": "transfer",
    "scatter": "placing", "rounded_apart": "placing", "node_order": "transfer",
    "arrange": "transfer", "decode_shots": "decoding",
}  # fmt: skip
"""The header of each kernel; kernels not listed are in ``judging.hpp``."""


def sources() -> Path:
    """Return the folder of the kernel sources: beside this file, or in a clone ``src/core``."""
    installed = Path(__file__).parent / "kernels"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "core"


@cache
def digest() -> str:
    """Return a digest of the kernel sources."""
    found = hashlib.sha256()
    for path in sorted(sources().rglob("*.hpp")):
        if path.parent.name in ("base", "codes", "cuda", "families", "proof"):
            found.update(path.read_bytes())
    return found.hexdigest()


class Store:
    """A cache of binaries in a folder; `None` stores nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @classmethod
    def of_user(cls) -> Store:
        """Return the cache in the folder that the environment names, or in the user's caches."""
        given = os.environ.get(FOLDER)
        if given:
            return cls(Path(given))
        with suppress(RuntimeError):  # the home folder is unknown
            base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
            return cls(Path(base) / "softmap")
        return cls(None)

    def load(self, key: str) -> Binary | None:
        """Return a stored binary, or None if it is missing or damaged."""
        if self.folder is None:
            return None
        try:
            head, code = (self.folder / key).read_bytes().split(b"\n", 1)
            facts = json.loads(head)
            if facts["sha256"] == hashlib.sha256(code).hexdigest():
                return str(facts["name"]), code
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def save(self, key: str, binary: Binary) -> None:
        """Store a binary if possible; the write is atomic."""
        if self.folder is None:
            return
        name, code = binary
        head = json.dumps({"name": name, "sha256": hashlib.sha256(code).hexdigest()})
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                file.write(head.encode() + b"\n" + code)
            os.replace(file.name, self.folder / key)


class Compiler:
    """A compiler of kernels for one kind of device; it compiles several in parallel.

    Parameters
    ----------
    compile_one : callable
        Maps source text, kernel name and options to a binary.
    facts : sequence of str
        Further strings that identify a binary: the architecture, the compiler version.
    store : Store, optional
        The cache; the user's folder by default.

    Attributes
    ----------
    waited : float
        Seconds so far that `binary` was blocked.
    """

    def __init__(
        self, compile_one: Callable[[str, str, Sequence[str]], Binary], facts: Sequence[str],
        store: Store | None = None,
    ) -> None:  # fmt: skip
        self._compile, self._facts = compile_one, tuple(facts)
        self._store = store or Store.of_user()
        self.waited = 0.0
        self._found: dict[str, Future[Binary]] = {}
        self._pool = ThreadPoolExecutor(max_workers=max(2, usable_cores()))

    def begin(self, names: Sequence[str]) -> None:
        """Start to compile kernels in this order, in the background."""
        new = [name for name in dict.fromkeys(names) if name not in self._found]
        missing = []
        for name in new:
            self._found[name] = Future()
            kept = self._store.load(self._key(name))
            if kept is None:
                missing.append(name)
            else:
                self._found[name].set_result(kept)
        if missing:
            LOG.info("compiling %d GPU kernels (first run of this kind here) ...", len(missing))
        for name in missing:
            self._found[name] = self._pool.submit(self._make, name)

    def done(self) -> bool:
        """Whether no compilation is running."""
        return all(future.done() for future in self._found.values())

    def binary(self, name: str) -> Binary:
        """Return the binary of a kernel; block until it is compiled."""
        self.begin([name])
        began = time.perf_counter()
        try:
            return self._found[name].result()
        finally:
            self.waited += time.perf_counter() - began

    def _make(self, name: str) -> Binary:
        made = self._compile(self._text(name), name, self._options())
        self._store.save(self._key(name), made)
        return made

    def _text(self, name: str) -> str:
        header = HEADERS.get(name.split("<")[0], "judging")
        return f'#include "cuda/{header}.hpp"\nusing namespace softmap::device;\n'

    def _options(self) -> list[str]:
        folder = sources()
        return [
            "-std=c++20", "-default-device", "-ftz=true", "-DSOFTMAP_DEVICE",
            f"-I{folder / 'cuda' / 'std'}", f"-I{folder}", "--diag-suppress=177,128",
        ]  # fmt: skip

    def _key(self, name: str) -> str:
        fixed = [option for option in self._options() if not option.startswith("-I")]
        parts = [digest(), self._text(name), name, *fixed, *self._facts]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest() + ".cubin"


class _Kernels:
    """The kernels of a device, loaded at their first launch and shared by all runs."""

    def __init__(self, cupy: Any) -> None:
        version = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
        arch = f"sm_{cupy.cuda.Device().compute_capability}"
        self._cupy, self._option = cupy, f"-arch={arch}"
        self.compiler = Compiler(self._compiled, [arch, version])
        self._loaded: dict[str, Any] = {}

    def function(self, name: str) -> Any:
        """Return a loaded kernel."""
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


class CupyDevice(Device):
    """One GPU, with its own non-blocking stream."""

    block = 256
    teams = True
    model_block = 256  # threads per block in batches, where a block works on one model

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
        return self._stream

    @property
    def waited(self) -> float:  # type: ignore[override]
        return self._kernels.compiler.waited

    def offers(self, shape: Shape) -> bool:
        return True

    def prepare(self, names: Sequence[str]) -> None:
        self._kernels.compiler.begin(names)

    def prepared(self) -> bool:
        return self._kernels.compiler.done()

    def upload(self, array: NDArray[Any]) -> Any:
        if isinstance(array, self._cupy.ndarray):
            return array
        with self._stream:
            flat = np.ascontiguousarray(array)
            raw = flat.view(np.uint8) if flat.dtype.kind == "V" else flat
            return self._cupy.asarray(raw)

    def zeros(self, size: int, dtype: DTypeLike) -> Any:
        with self._stream:
            return self._cupy.zeros(max(size, 1), dtype)

    def fetch(self, array: Any) -> NDArray[Any]:
        with self._stream:
            return self._cupy.asnumpy(array, stream=self._stream)

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def copy(self, source: Any, target: Any) -> None:
        if self._rehearsing:
            return
        target.data.copy_from_device_async(source.data, source.nbytes, self._stream)

    def put(self, array: Any, values: NDArray[Any]) -> None:
        with self._stream:
            array[: len(values)].set(values, stream=self._stream)
            self._stream.synchronize()

    def launch(self, kernel: str, threads: int, arguments: Sequence[Any]) -> None:
        self._launch(kernel, max(1, -(-threads // self.block)), self.block, arguments)

    def launch_blocks(self, kernel: str, blocks: int, arguments: Sequence[Any]) -> None:
        self._launch(kernel, blocks, self.model_block, arguments)

    def _launch(self, kernel: str, blocks: int, block: int, arguments: Sequence[Any]) -> None:
        function = self._kernels.function(kernel)
        if self._rehearsing:
            return
        with self._stream:
            function((blocks,), (block,), tuple(_argument(value) for value in arguments))

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """Record the launches of `work` as a CUDA graph; all kernels are loaded first."""
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
        self._stream.synchronize()

    def room(self) -> int | None:
        """Return the free memory of the device in bytes, CuPy's memory pool included."""
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
    return HostDevice() if os.environ.get(SWITCH) == "host" else CupyDevice(_usable_cupy())


def find_arrays() -> tuple[Any, int | None]:
    """The module of arrays on the device, and its free memory in bytes; numpy for the host."""
    if os.environ.get(SWITCH) == "host":
        return np, None
    cupy = _usable_cupy()
    return cupy, int(cupy.cuda.runtime.memGetInfo()[0])


def _usable_cupy() -> Any:
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
    return cupy


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
