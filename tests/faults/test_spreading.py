"""Campaigns over several processes end, and name what was lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from support.spreading import Lost, spread

FUZZ = Path(__file__).resolve().parent.parent / "fuzz" / "run.py"


def squared(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 5:
        time.sleep(600)
    return number * number


def test_tasks_that_die_or_hang_are_named():
    found = list(spread(range(9), 2, squared, limit=2.0))
    assert sorted(one for one in found if not isinstance(one, Lost)) == [0, 1, 4, 16, 36, 49, 64]
    lost = {one.task: one.how for one in found if isinstance(one, Lost)}
    assert lost == {3: "the process ended with -9", 5: "no answer after 2 s"}


def test_fuzzing_ends_with_a_count():
    command = [sys.executable, str(FUZZ), "all", "--count", "1000000000", "--seconds", "1.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.match(r"[1-9][\d,]* inputs in all, 0 findings", done.stdout.splitlines()[-1])


def test_fuzzing_that_is_ended_prints_its_count(tmp_path):
    command = [sys.executable, str(FUZZ), "uai", "--seconds", "600"]
    own = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) as child:
        while child.poll() is None and not any(tmp_path.glob("fuzz-*/uai-*")):
            time.sleep(0.02)  # until a worker writes down its inputs
        child.terminate()
        said, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert said.splitlines()[-1].endswith("inputs in all, 0 findings")
