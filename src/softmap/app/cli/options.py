"""Arguments and exit codes that several commands share, and how shells complete arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer


class Exit:
    """Exit codes. A run that ends at a limit of the user is a success."""

    OK, FAILURE, BAD_INPUT, NOTHING_FOUND, INFEASIBLE, NONE_BELOW, STATED = range(7)
    INTERRUPTED = 130


SHORT = (
    "Exit codes: 0 done, 1 failed, 2 bad input, 3 no labelling, 4 infeasible, 5 none below, "
    "6 not checked, 130 interrupted."
)

CODES = {
    0: "0 done, also if a limit stopped the run",
    1: "1 something failed, a file was not written or a check is false",
    2: "2 wrong arguments or files",
    3: "3 no labelling was found that satisfies the hard constraints and costs at most "
    "--upper-bound",
    4: "4 infeasible: it is proved that no labelling satisfies the hard constraints",
    5: "5 it is proved that no labelling costs less than --upper-bound",
    6: "6 nothing is false, but not everything was checked",
    130: "130 interrupted (Ctrl-C, SIGTERM or SIGHUP)",
}


def exit_codes(command: str) -> str:
    """Return the sentence about the exit codes of a command."""
    meant = _MEANT.get(command, CODES)
    return f"Exit codes: {'; '.join(meant[code] for code in sorted(meant))}."


_BRIEF = {0: "0 done", 1: "1 failed", 2: "2 wrong arguments or files", 130: CODES[130]}
_MEANT: dict[str, dict[int, str]] = {
    "verify": _BRIEF
    | {0: "0 everything was checked", 1: "1 a statement is false, or checking failed", 6: CODES[6]},
    "energy": _BRIEF | {3: "3 the labelling violates a hard constraint"},
    "compare": _BRIEF | {4: CODES[4]},
    "solve-many": _BRIEF | {1: "1 a model failed, or a file was not written"},
    "solve-large": {code: words for code, words in CODES.items() if code not in (5, 6)}
    | {3: "3 no labelling was found that satisfies the hard constraints"},
    **dict.fromkeys(("info", "convert", "demo", "doctor", "reproduce"), _BRIEF),
}


def _beginning(names: Iterable[str], start: str) -> list[str]:
    return [name for name in names if name.startswith(start)]


def complete_method(incomplete: str) -> list[str]:
    """Methods that begin with what was typed; those to solve with if nothing was."""
    from softmap.methods.base import METHODS, SOLVERS

    return _beginning(METHODS, incomplete) if incomplete else list(SOLVERS)


def complete_methods(incomplete: str) -> list[str]:
    """Complete the last method of a comma-separated list."""
    done, comma, last = incomplete.rpartition(",")
    found = [*complete_method(last), *_beginning(["highs"], last)]
    return [f"{done}{comma}{name}" for name in found]


def complete_format(incomplete: str) -> list[str]:
    """Formats that begin with what was typed."""
    from softmap.io.formats import FORMATS

    return _beginning(FORMATS, incomplete)


def complete_demo(incomplete: str) -> list[str]:
    """Demos that begin with what was typed."""
    from softmap.app.vision.demos import NAMES

    return _beginning(NAMES, incomplete)


def _bytes(text: str) -> int:
    """Parse a number of bytes: 500000000, 500M, 2G, 1.5GiB; units are powers of 1024."""
    import math

    word = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = "KMGT".find(word[-1:]) + 1 if word else 0
    try:
        number = float(word[:-1] if unit else word)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise typer.BadParameter(f"{text!r} is no number of bytes; expected for example 500M or 2G")
    return int(number * 1024**unit)


MemoryOption = Annotated[
    int | None,
    typer.Option(help="Bytes that the run may take: 500M, 2G.", parser=_bytes, metavar="<bytes>"),
]

ModelArgument = Annotated[Path, typer.Argument(help="A model file, or - for standard input.")]

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Format of the file, if its name does not tell: uai, wcsp, cfn, opengm, dd, ...",
        autocompletion=complete_format,
    ),
]

EvidenceOption = Annotated[
    str | None, typer.Option(help="Variables to fix: a file (.evid), or 0=3,x7=1.")
]

BlockOption = Annotated[
    int | None, typer.Option(help="Number of the problem, from 0, in a .dd file with several.")
]

InitialOption = Annotated[
    Path | None, typer.Option(help="Start from this labelling (.MPE, .sol, .json, result).")
]

UpperBoundOption = Annotated[
    float | None,
    typer.Option("--upper-bound", "-ub", help="Search only for labellings of lower cost."),
]

MethodOption = Annotated[
    str | None,
    typer.Option(
        help="anneal (default) or trws; or one to compare with: smp, accel-smp, mplp, ...",
        autocompletion=complete_method,
    ),
]

BestOption = Annotated[
    int | None, typer.Option("--mbest", help="Number of best labellings to find.")
]

DiversityOption = Annotated[
    int | None,
    typer.Option(help="With --mbest: two labellings differ in at least this many variables."),
]

QueryOption = Annotated[
    Path | None,
    typer.Option(help="Maximise over the variables of this file (.query), sum over the others."),
]

TimeOption = Annotated[
    float | None, typer.Option("--time-limit", "-t", help="Stop after this many seconds.")
]

ThreadsOption = Annotated[int | None, typer.Option("--threads", "-j", help="Threads [all].")]

DtypeOption = Annotated[str | None, typer.Option(help="On a GPU: float32 or float64 [float32].")]

BackendOption = Annotated[str | None, typer.Option(help="cpu or cuda [cpu].")]

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Write the labelling (.MPE, .sol, .json); - prints it alone."
    ),
]

QuietOption = Annotated[bool, typer.Option("--no-progress", help="Be quiet.")]

GoalOption = Annotated[
    Literal["map", "lp", "labels", "optimal"] | None,
    typer.Option(
        help="map: labels and bound [default]; optimal: until proved; labels: labels alone; "
        "lp: the relaxation alone."
    ),
]

GapOption = Annotated[float | None, typer.Option(help="Stop at this relative gap [1e-6].")]

LPGapOption = Annotated[
    float | None, typer.Option(help="Relative gap at which the LP is solved [1e-4].")
]

EtaOption = Annotated[float | None, typer.Option(help="Inverse temperature (for smp etc.).")]

SeedOption = Annotated[int | None, typer.Option(help="Seed of the random numbers [0].")]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

PartitionOption = Annotated[str, typer.Option(help="Partitioner: auto, grid, metis or own.")]

ProofsOption = Annotated[
    Path | None, typer.Option(help="Folder to write proofs to, for softmap verify.")
]

ValuesOption = Annotated[
    Literal["potential", "log", "cost"] | None, typer.Option(help="What UAI tables hold.")
]

_ARGUMENT = re.compile(r"\b([a-z]+(?:_[a-z]+)*)=('[^']*'|\.\.\.|[^\s,;:()]+)")


def as_typed(sentence: str) -> str:
    """Return a sentence about Python's arguments, rewritten for the command line.

    `lp_gap=-1` becomes `--lp-gap -1`, and `give eta=..., for example` `give --eta, for example`.
    """

    def typed(match: re.Match[str]) -> str:
        name, value = match[1].replace("_", "-"), match[2].strip("'")
        name = "mbest" if name == "m" else name
        return f"--{name}" if value == "..." else f"--{name} {value}"

    return _ARGUMENT.sub(typed, sentence)
