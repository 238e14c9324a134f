"""Run every command and snippet of the README and of the landing page, from top to bottom.

`python tests/first_minute.py` runs them in an environment with nothing but `pip install .`; the
tests run them with all extras. `sh` blocks are commands, `python` blocks run in a process of their
own; `console` blocks install or test the project and are not run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXTS = (ROOT / "README.md", ROOT / "docs" / "index.md")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
# one image, named in the text, that a new user would have at hand
PICTURE = (
    "from softmap.app.vision.landscape import landscape;"
    "from softmap.views.drawing import as_bytes, png;"
    "open('x.png', 'wb').write(png(as_bytes(landscape(40, 60))))"
)
SEGMENTED = "import softmap; assert softmap.segment('x.png', 4).labels.shape == (40, 60)"


def run(command: list[str], folder: Path) -> None:
    """Run a command in a folder, with this interpreter's programs first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{shlex.join(command)}: {done.stderr}"


def as_run(line: str) -> list[str]:
    """The words of a command; for `make demo`, which would install anew, what it runs then."""
    words = shlex.split(line, comments=True)
    if words[:1] != ["make"]:
        return words
    # the options of a make that runs these tests are not for this one
    own = {name: value for name, value in os.environ.items() if name not in MAKE}
    dry = ["make", "--dry-run", "--no-print-directory", *words[1:]]
    shown = subprocess.run(dry, cwd=ROOT, env=own, check=True, capture_output=True, text=True)
    last = shlex.split(shown.stdout.splitlines()[-1])
    return [Path(last[0]).name, *last[1:]]


def run_text(
    path: Path, folder: Path, *demo_options: str, run: Callable[[list[str], Path], None] = run
) -> list[str]:
    """Run the blocks of one text, its demos with further options; return its commands."""
    ran = []
    for language, block in BLOCK.findall(path.read_text("utf-8")):
        if language == "python":
            run([sys.executable, "-W", "error", "-c", block], folder)
            ran.append("python")
        if language == "sh":
            for line in block.strip().splitlines():
                words = as_run(line)
                run([*words, *(demo_options if "demo" in words else ())], folder)
                ran.append(line)
    return ran


def main() -> None:
    """Run both texts, and read an image from a file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in TEXTS:
            for line in run_text(path, folder):
                print(f"{path.name}: {line}")
        run([sys.executable, "-c", PICTURE], folder)
        run([sys.executable, "-c", SEGMENTED], folder)


if __name__ == "__main__":
    main()
