"""Build a wheel for every Python at hand into dist/, and try each outside the source tree.

Python 3.12 and later share one wheel (abi3); 3.11 has its own. On Linux, auditwheel renames a wheel
to the oldest manylinux it runs on, or says what stands against that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def run(*command: str | Path, **options: object) -> None:
    """Run a command and stop where it fails."""
    subprocess.run([str(part) for part in command], check=True, **options)


def works(python: str) -> bool:
    """Whether an interpreter of this name is there (a shim of pyenv may be there without one)."""
    try:
        return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def tag(version: str) -> str:
    """Return how the name of the wheel for this Python goes on after the version of softmap."""
    return "cp311-cp311" if version == "3.11" else "cp312-abi3"


def wheel_of(version: str) -> Path | None:
    """Return the wheel in dist/ that this Python takes."""
    return next(DIST.glob(f"softmap-*-{tag(version)}-*.whl"), None)


def build(python: Path, scratch: Path) -> None:
    """Build a wheel and put it into dist/."""
    levels = "--config-settings=cmake.define.SOFTMAP_LEVELS=all"
    run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", levels, "--wheel-dir", scratch, ROOT)
    (wheel,) = scratch.glob("softmap-*.whl")
    if sys.platform == "linux":
        run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", DIST, wheel)
    else:
        wheel.replace(DIST / wheel.name)


def try_out(python: Path, wheel: Path, scratch: Path) -> None:
    """Install the wheel and solve a small model, in a folder that knows nothing of the sources."""
    run(python, "-m", "pip", "install", "--quiet", wheel)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run(python, ROOT / "tests" / "installed.py", cwd=scratch, env=environment)


def main() -> None:
    """Build and try the wheels."""
    found = [version for version in VERSIONS if works(f"python{version}")]
    if not found:
        sys.exit(f"no python{VERSIONS[0]} or later on the path")
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("softmap-*.whl"):
        old.unlink()
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for version in found:
        print(f"Python {version}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder)
            run(f"python{version}", "-m", "venv", scratch / "venv")
            python = scratch / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
            if wheel_of(version) is None:
                build(python, scratch)
            wheel = wheel_of(version)
            assert wheel is not None
            try_out(python, wheel, scratch)


if __name__ == "__main__":
    main()
