"""Processes of a campaign: with a library loaded before the interpreter, and forks of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path


def preloaded(*sources: Path) -> int | None:
    """Run this program again, with libraries compiled from `sources` loaded first (LD_PRELOAD).

    Returns the exit code of that run, and None within it.
    """
    names = " ".join(source.name for source in sources)
    if os.environ.get("SOFTMAP_FAULTS") == names:
        return None
    if not can_preload():
        print("needs Linux and a compiler")
        return 2
    with tempfile.TemporaryDirectory(prefix="softmap-faults-") as place:
        libraries = [compiled(source, place) for source in sources]
        environment = os.environ | {"LD_PRELOAD": ":".join(libraries), "SOFTMAP_FAULTS": names}
        with subprocess.Popen([sys.executable, *sys.argv], env=environment) as child:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child has it from the terminal
            signal.signal(signal.SIGTERM, lambda *_: child.terminate())
            return child.wait()


def can_preload() -> bool:
    """Whether this is Linux, with compilers for C and C++."""
    found = [shutil.which(os.environ.get(*name)) for name in (("CC", "cc"), ("CXX", "c++"))]
    return sys.platform.startswith("linux") and all(found)


def compiled(source: Path, place: str) -> str:
    """Compile a library; return its path."""
    plus = source.suffix == ".cpp"
    compiler = os.environ.get("CXX", "c++") if plus else os.environ.get("CC", "cc")
    library = f"{place}/{source.stem}.so"
    flags = ["-std=c++20" if plus else "-std=c11", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra"]
    subprocess.run([compiler, *flags, "-o", library, str(source), "-ldl"], check=True)
    return library


def forked(action: Callable[[], int], limit: int = 0) -> int:
    """Run an action in a fork, for `limit` seconds at most; its number, or minus a signal's."""
    child = os.fork()
    if not child:
        code = 97
        try:
            signal.alarm(limit)
            code = action()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
