"""Build the core with sanitizers and run tests on it: sanitize.py SANITIZERS [pytest arguments].

The build is installed under build/, beside the sources. The tests run in the base interpreter:
it sees that folder and the packages of this environment, but not its editable softmap.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter itself leaves memory to the system
    "TSAN_OPTIONS": "halt_on_error=1 ignore_noninstrumented_modules=1",
    "UBSAN_OPTIONS": "print_stacktrace=1 halt_on_error=1",
    "PYTHONMALLOC": "malloc",
}


def build(sanitizers: str, target: Path) -> None:
    """Install softmap, compiled with these sanitizers, into the folder `target`."""
    settings = {
        "build-dir": str(target.with_suffix(".build")),
        "cmake.define.SOFTMAP_SANITIZE": sanitizers,
    }
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    command += ["--no-build-isolation", "--no-deps", "--upgrade"]
    command += ["--target", str(target), str(ROOT)]
    command += [f"--config-settings={name}={value}" for name, value in settings.items()]
    subprocess.run(command, check=True)


def runtime(sanitizers: str) -> list[str]:
    """Return the libraries to load before the interpreter, which is itself not instrumented."""
    compiler = os.environ.get("CXX", "c++")
    name = "libtsan.so" if "thread" in sanitizers else "libasan.so"
    found = [
        subprocess.run(
            [compiler, f"-print-file-name={library}"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for library in (name, "libstdc++.so")
    ]
    if not all(Path(path).is_absolute() for path in found):
        sys.exit(f"{compiler} has no {name}: the sanitizers need GCC and its libraries")
    return [str(Path(path).resolve()) for path in found]


def run_tests(sanitizers: str, target: Path, arguments: list[str]) -> int:
    """Run pytest on the installed build and return its exit status."""
    environment = os.environ | OPTIONS
    environment["PYTHONPATH"] = os.pathsep.join([str(target), sysconfig.get_path("purelib")])
    environment["LD_PRELOAD"] = " ".join(runtime(sanitizers))
    python = [str(Path(sys.executable).resolve()), "-s"]
    check = "import softmap.core as core; print('testing', core.native.__file__)"
    subprocess.run([*python, "-c", check], check=True, env=environment)
    # A sanitizer ends the process: what it says must not end in a buffer of pytest.
    tests = [*python, "-m", "pytest", "--capture=sys", "-p", "no:cacheprovider"]
    tests += ["-o", "timeout=0", *arguments]  # checked code is slow
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    """Build, then test."""
    sanitizers, *arguments = sys.argv[1:]
    target = ROOT / "build" / f"sanitize-{sanitizers.replace(',', '-')}"
    build(sanitizers, target)
    return run_tests(sanitizers, target, arguments)


if __name__ == "__main__":
    sys.exit(main())
