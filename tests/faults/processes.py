"""Processes of a campaign: with a library loaded before the interpreter, and forks of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path


def preloaded(source: Path) -> int | None:
    """Run this program again, with a library compiled from `source` loaded first (LD_PRELOAD).

    Returns the exit code of that run, and None within it.
    """
    if os.environ.get("SOFTMAP_FAULTS") == source.name:
        return None
    plus = source.suffix == ".cpp"
    compiler = shutil.which(os.environ.get("CXX", "c++") if plus else os.environ.get("CC", "cc"))
    if compiler is None or not sys.platform.startswith("linux"):
        print("needs Linux and a compiler")
        return 2
    with tempfile.TemporaryDirectory(prefix="softmap-faults-") as place:
        library = f"{place}/{source.stem}.so"
        flags = ["-std=c++20" if plus else "-std=c11", "-shared", "-fPIC", "-O1", "-Wall"]
        words = [compiler, *flags, "-Wextra", "-o", library, str(source), "-ldl"]
        subprocess.run(words, check=True)
        environment = os.environ | {"LD_PRELOAD": library, "SOFTMAP_FAULTS": source.name}
        program = [sys.executable, *sys.argv]
        return subprocess.run(program, env=environment, check=False).returncode


def forked(action: Callable[[], int], limit: int = 0) -> int:
    """Run an action in a fork, for `limit` seconds at most; its number, or minus a signal's."""
    child = os.fork()
    if not child:
        code = 97
        try:
            signal.alarm(limit)
            code = action()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
