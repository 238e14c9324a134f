"""Code blocks of the documentation: how to find, run and compare them."""

from __future__ import annotations

import contextlib
import io
import re
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def run_python(block: str, names: dict[str, object], place: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        exec(compile(block, place, "exec"), names)
    return shown.getvalue()


def agrees(expected: str, printed: str) -> bool:
    return OutputChecker().check_output(expected, printed, ELLIPSIS | NORMALIZE_WHITESPACE)
