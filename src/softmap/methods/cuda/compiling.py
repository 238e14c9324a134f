"""Compilation of kernels: in parallel background threads, with a cache on disk.

A kernel is compiled once per machine and shape of model. The binary is stored in
``$SOFTMAP_CACHE``, or else in ``softmap`` in the user's cache folder, under a digest of all that it
depends on. If the folder cannot be read or written, kernels are compiled again in each process.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path

from softmap.machine import usable_cores

__all__ = ["Binary", "Compiler", "Store", "sources"]

LOG = logging.getLogger("softmap")
FOLDER = "SOFTMAP_CACHE"

Binary = tuple[str, bytes]
"""The name of a kernel in its binary, and the binary."""

HEADERS = {
    "tick": "passes", "half_pass": "passes",
    "add_up_nodes": "links", "send_along": "links", "batch_passes": "batches",
    "batch_look": "batches", "batch_keep": "batches", "to_lam": "transfer", "from_lam": "transfer",
    "scatter": "placing", "rounded_apart": "placing", "node_order": "transfer",
    "arrange": "transfer",
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
        if path.parent.name in ("base", "cuda", "families", "proof"):
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
    """

    def __init__(
        self, compile_one: Callable[[str, str, Sequence[str]], Binary], facts: Sequence[str],
        store: Store | None = None,
    ) -> None:  # fmt: skip
        self._compile, self._facts = compile_one, tuple(facts)
        self._store = store or Store.of_user()
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
        return self._found[name].result()

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
