"""A CUDA device through CuPy: kernels compiled at run time, launches recorded as graphs."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap import core
from softmap.errors import MissingExtra, OptionError
from softmap.machine import usable_cores
from softmap.methods.cuda.devices import Device, HostDevice
from softmap.methods.cuda.shapes import Shape
from softmap.methods.cuda.waiting import waited

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

    Nobody has to wait for it: kernels that a run has asked for are compiled and stored even if the
    run ends before. When the program ends, kernels that are being compiled are completed, and no
    others are begun.

    Parameters
    ----------
    compile_one : callable
        Maps source text, kernel name and options to a binary.
    facts : sequence of str
        Further strings that identify a binary: the architecture, the compiler version.
    store : Store, optional
        The cache; the user's folder by default.
    load : callable, optional
        Maps a binary to a kernel that can be launched; by default the binary itself.
    """

    def __init__(
        self, compile_one: Callable[[str, str, Sequence[str]], Binary], facts: Sequence[str],
        store: Store | None = None, load: Callable[[Binary], Any] = lambda binary: binary,
    ) -> None:  # fmt: skip
        self._compile, self._load, self._facts = compile_one, load, tuple(facts)
        self._store = store or Store.of_user()
        self._found: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()  # two runs may ask for kernels at once
        self._pool = ThreadPoolExecutor(max(2, usable_cores()), "softmap-compiler")

    def begin(self, names: Sequence[str]) -> None:
        """Start to compile and load kernels in this order, in the background."""
        with self._lock:
            new = [name for name in dict.fromkeys(names) if name not in self._found]
            kept = {name: self._store.load(self._key(name)) for name in new}
            missing = sum(binary is None for binary in kept.values())
            if missing:
                LOG.info("compiling %d GPU kernels (first run of this kind here) ...", missing)
            for name, binary in kept.items():
                self._found[name] = self._pool.submit(self._make, name, binary)

    def running(self) -> int:
        """Return how many kernels are being compiled or loaded."""
        return sum(future.running() for future in list(self._found.values()))

    def kernel(self, name: str, deadline: core.Deadline | None = None) -> Any:
        """Return a kernel that can be launched; block until it is compiled and loaded.

        Raises `core.OutOfTime` if the deadline passes first.
        """
        if name not in self._found:
            self.begin([name])
        return waited(self._found[name], deadline)

    def _make(self, name: str, binary: Binary | None) -> Any:
        if binary is None:
            if self._ending():  # nobody needs this kernel
                raise CancelledError
            binary = self._compile(self._text(name), name, self._options())
            self._store.save(self._key(name), binary)
        return self._load(binary)

    def _ending(self) -> bool:
        """Whether the program ends: Python then rejects new work for threads."""
        try:
            self._pool.submit(bool)
        except RuntimeError:
            return True
        return False

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


class Kernels:
    """The kernels of a device, compiled and loaded in the background, and shared by all runs."""

    known: ClassVar[dict[int, Kernels]] = {}
    lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, cupy: Any, number: int) -> None:
        version = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
        arch = f"sm_{cupy.cuda.Device(number).compute_capability}"
        self._cupy, self._number, self._option = cupy, number, f"-arch={arch}"
        self.compiler = Compiler(self._compiled, [arch, version], load=self._loaded)

    @classmethod
    def of(cls, cupy: Any, number: int) -> Kernels:
        """Return the kernels of a device."""
        with cls.lock:
            if number not in cls.known:
                cls.known[number] = cls(cupy, number)
            return cls.known[number]

    @classmethod
    def forget(cls) -> None:
        """Drop all kernels: a forked process has neither the devices nor the threads."""
        cls.known, cls.lock = {}, threading.Lock()

    def _loaded(self, binary: Binary) -> Any:
        own, code = binary
        self._cupy.cuda.Device(self._number).use()  # in this thread of the compiler
        module = self._cupy.cuda.function.Module()
        module.load(code)
        return module.get_function(own)

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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Kernels.forget)


class CupyDevice(Device):
    """The GPU of the thread that makes this object, with its own non-blocking stream.

    Other threads may use it, too, one at a time.
    """

    block = 256
    teams = True
    model_block = 256  # threads per block in batches, where a block works on one model

    def __init__(self, cupy: Any) -> None:
        self._cupy, self._own = cupy, cupy.cuda.Device()
        properties = cupy.cuda.runtime.getDeviceProperties(self._own.id)
        self.name = properties["name"].decode()
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._compiler = Kernels.of(cupy, self._own.id).compiler
        self._rehearsing = False

    @contextmanager
    def working(self) -> Iterator[Any]:
        with self._own, self._stream as stream:
            yield stream

    def offers(self, shape: Shape) -> bool:
        return True

    def prepare(self, names: Sequence[str]) -> None:
        self._compiler.begin(names)

    def require(self, names: Sequence[str], deadline: core.Deadline | None = None) -> None:
        self._compiler.begin(names)
        for name in names:
            self._compiler.kernel(name, deadline)

    def upload(self, array: NDArray[Any]) -> Any:
        if isinstance(array, self._cupy.ndarray):
            return array
        with self.working():
            flat = np.ascontiguousarray(array)
            raw = flat.view(np.uint8) if flat.dtype.kind == "V" else flat
            return self._cupy.asarray(raw)

    def zeros(self, size: int, dtype: DTypeLike) -> Any:
        with self.working():
            return self._cupy.zeros(max(size, 1), dtype)

    def fetch(self, array: Any) -> NDArray[Any]:
        with self.working() as stream:
            return self._cupy.asnumpy(array, stream=stream)

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def copy(self, source: Any, target: Any) -> None:
        if self._rehearsing:
            return
        with self.working() as stream:
            target.data.copy_from_device_async(source.data, source.nbytes, stream)

    def put(self, array: Any, values: NDArray[Any]) -> None:
        with self.working() as stream:
            array[: len(values)].set(values, stream=stream)
            stream.synchronize()

    def launch(self, kernel: str, threads: int, arguments: Sequence[Any]) -> None:
        self._launch(kernel, max(1, -(-threads // self.block)), self.block, arguments)

    def launch_blocks(self, kernel: str, blocks: int, arguments: Sequence[Any]) -> None:
        self._launch(kernel, blocks, self.model_block, arguments)

    def _launch(self, kernel: str, blocks: int, block: int, arguments: Sequence[Any]) -> None:
        function = self._compiler.kernel(kernel)
        if self._rehearsing:
            return
        with self.working():
            function((blocks,), (block,), tuple(_argument(value) for value in arguments))

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """Record the launches of `work` as a CUDA graph; all kernels are loaded first."""
        self._rehearsing = True
        try:
            work()
        finally:
            self._rehearsing = False
        with self.working() as stream:
            stream.begin_capture()
            try:
                work()
            finally:
                graph = stream.end_capture()
        return lambda: self._replay(graph)

    def _replay(self, graph: Any) -> None:
        with self.working() as stream:
            graph.launch(stream)

    def synchronize(self) -> None:
        self._stream.synchronize()

    def room(self) -> int | None:
        """Return the free memory of the device in bytes, CuPy's memory pool included."""
        with self._own:
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


def find_device(number: int | None = None) -> Device:
    """The device that kernels run on; an error says what is missing.

    Parameters
    ----------
    number : int, optional
        Number of the device; by default the current device of this thread.
    """
    if os.environ.get(SWITCH) == "host":
        return HostDevice()
    return CupyDevice(_usable_cupy(number))


def find_arrays(number: int | None = None) -> tuple[Any, int | None]:
    """The module of arrays on the device, and its free memory in bytes; numpy for the host."""
    if os.environ.get(SWITCH) == "host":
        return np, None
    cupy = _usable_cupy(number)
    return cupy, int(cupy.cuda.runtime.memGetInfo()[0])


def require_cupy() -> None:
    """Raise `MissingExtra` if CuPy is needed and not installed, without importing it."""
    if os.environ.get(SWITCH) != "host" and find_spec("cupy") is None:
        raise MissingExtra("backend='cuda'", EXTRA)


def chosen_device() -> int | None:
    """The number of the device that this thread uses; None if it has not used any.

    Neither CuPy nor the driver is started by this call.
    """
    try:
        driver = sys.modules["cupy"].cuda.driver
        return int(driver.ctxGetDevice()) if driver.ctxGetCurrent() else None
    except Exception:  # CuPy or the driver is not there yet, or another thread starts it right now
        return None


def _usable_cupy(number: int | None = None) -> Any:
    try:
        import cupy
    except ImportError as error:
        raise MissingExtra("backend='cuda'", EXTRA) from error
    try:
        if number is not None:
            cupy.cuda.Device(number).use()
        # This starts driver and device. Unlike CuPy's other calls that do, it does not hold the
        # interpreter's lock.
        cupy.cuda.runtime.free(0)
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
