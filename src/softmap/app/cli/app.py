"""The `softmap` command: its commands, its exit codes, its one-sentence errors."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from softmap import __version__
from softmap.app.cli.options import SHORT, Exit, as_typed, exit_codes
from softmap.errors import DEBUG, InfeasibleModel, OptionError, SoftmapError, debugging
from softmap.views.console import discard_output, say

# Errors of writing to standard output. Errors of other files carry the file's name.
OUTPUT_FULL = (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EBADF)


class Command(NamedTuple):
    """Where a command is defined, and its sentence in the list of commands."""

    function: str
    summary: str


# The sentences stand here, so that the list of commands imports none of them.
COMMANDS = {
    "solve": Command(
        "softmap.app.cli.solve:solve_command",
        "Solve a model and certify the answer.",
    ),
    "solve-many": Command(
        "softmap.app.cli.many:solve_many_command",
        "Solve many models, skipping those that already have a result.",
    ),
    "solve-large": Command(
        "softmap.app.cli.large:solve_large_command",
        "Solve one large model: mpiexec -n P softmap solve-large …",
    ),
    "verify": Command(
        "softmap.app.cli.files:verify_command",
        "Check a saved result, or a proof, against its model.",
    ),
    "energy": Command(
        "softmap.app.cli.files:energy_command",
        "Print the cost of a labelling, or of each labelling in a file.",
    ),
    "info": Command(
        "softmap.app.cli.files:info_command",
        "Describe a model: sizes, families, structure.",
    ),
    "convert": Command(
        "softmap.app.cli.files:convert_command",
        "Convert a model to another format, or to parts.",
    ),
    "demo": Command(
        "softmap.app.cli.demo:demo_command",
        "Solve a small problem from start to finish.",
    ),
    "compare": Command(
        "softmap.app.cli.compare:compare_command",
        "Compare methods on a model: a table, and a chart.",
    ),
    "doctor": Command(
        "softmap.app.cli.doctor:doctor_command",
        "Print versions, threads, devices and the instruction set.",
    ),
    "reproduce": Command(
        "softmap.app.cli.reproduce:reproduce_command",
        "Run the paper's experiments; report which claims hold.",
    ),
}


class Commands(TyperGroup):
    """Command group that imports the module of a command only when the command is used."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            module, _, function = COMMANDS[cmd_name].function.partition(":")
            alone = typer.Typer(add_completion=False, rich_markup_mode=None)
            settings = {"help_option_names": ["-h", "--help"]}
            said = exit_codes(cmd_name)
            command = alone.command(name=cmd_name, epilog=said, context_settings=settings)
            command(getattr(import_module(module), function))
            self.commands[cmd_name] = typer.main.get_command(alone)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        if args[0] not in COMMANDS:
            for name in COMMANDS:  # suggest a command with a similar name
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # typer would return the exit code without a word
            say("interrupted")
            raise typer.Exit(Exit.INTERRUPTED) from None


app = typer.Typer(
    name="softmap",
    cls=Commands,
    help="Find a labelling of low cost, and prove how far it can be from the optimum.",
    epilog=f"Start with: softmap demo. {SHORT}",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help fits on a screen
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"softmap {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Find a labelling of low cost, and prove how far it can be from the optimum."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    With SOFTMAP_DEBUG set in the environment, errors keep their traceback.
    """
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if sys.stdout is None:
        say("standard output is closed; send it to a file or /dev/null")
        return Exit.BAD_INPUT
    try:
        code = int(app(words, prog_name="softmap", standalone_mode=False) or Exit.OK)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        say("interrupted")
        return Exit.INTERRUPTED
    except BrokenPipeError:  # the reader of standard output has closed the pipe
        discard_output()
        return Exit.OK
    except Exception as error:
        if debugging():
            raise
        sentence, code = explained(error, words)
        say(sentence)
        return code


def explained(error: Exception, words: Sequence[str] = ()) -> tuple[str, int]:
    """Return one sentence that explains the error of a command, and the exit code.

    Parameters
    ----------
    error : Exception
        What the command raised.
    words : sequence of str
        The arguments of the command.
    """
    if isinstance(error, InfeasibleModel):
        return str(error), Exit.INFEASIBLE
    if isinstance(error, OptionError):
        return as_typed(str(error)), Exit.BAD_INPUT
    if isinstance(error, SoftmapError):
        return str(error), Exit.BAD_INPUT
    if hasattr(error, "format_message"):  # raised by typer: wrong usage
        context = getattr(error, "ctx", None)
        command = "softmap" if context is None else context.command_path
        if said := _instead(words):
            return f"{said}; see {command} --help", Exit.BAD_INPUT
        return f"{error.format_message().rstrip('.')}; see {command} --help", Exit.BAD_INPUT
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}", Exit.BAD_INPUT
    if isinstance(error, OSError) and error.errno in OUTPUT_FULL:
        discard_output()
        return f"standard output: {error.strerror}", Exit.FAILURE
    if isinstance(error, MemoryError):
        return "out of memory; softmap info MODEL says what a model needs", Exit.FAILURE
    first = next(iter(str(error).splitlines()), "")
    kind = type(error).__name__
    return f"an error inside softmap, {kind}: {first}; set {DEBUG}=1 to see where", Exit.FAILURE


def _instead(words: Sequence[str]) -> str:
    """Return what to type, if a word of a wrong command is known from another solver, or empty."""
    from softmap.app.vision.demos import NAMES
    from softmap.hints import option_meant

    if words[0] in NAMES:
        return f"there is no command {words[0]}; softmap demo {words[0]} is a demo"
    if words[0] in ("help", "version"):
        asked = "--version" if words[0] == "version" else " ".join((*words[1:2], "--help"))
        return f"there is no command {words[0]}; use softmap {asked}"
    if words[0] not in COMMANDS and Path(words[0]).is_file():
        return f"{words[0]} is a file; use softmap solve {words[0]}"
    for before, word in pairwise(words):
        if (ours := option_meant(word)) is not None:
            return f"there is no option {word.partition('=')[0]}; {ours}"
        if word.endswith((".evid", ".sol", ".MPE", ".MAP")) and not before.startswith("-"):
            option = "--evidence" if word.endswith(".evid") else "--initial"
            return f"{word}: there is one model; use {option} {word}"
    return ""
