"""The `softmap` command: its commands, its exit codes, its one-sentence errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from softmap import __version__
from softmap.errors import OptionError, SoftmapError

__all__ = ["Exit", "app", "main"]

DEBUG = "SOFTMAP_DEBUG"


class Exit:
    """Exit codes: a limit the user set is a success, an interruption has its own code."""

    OK, FAILURE, BAD_INPUT, NOTHING_FOUND, INTERRUPTED = 0, 1, 2, 3, 130


# Name -> where its function lies.
COMMANDS = {
    "solve": "softmap.cli.solve:solve_command",
    "solve-many": "softmap.cli.many:solve_many_command",
    "solve-large": "softmap.cli.large:solve_large_command",
    "verify": "softmap.cli.verify:verify_command",
    "info": "softmap.cli.info:info_command",
    "convert": "softmap.cli.convert:convert_command",
    "demo": "softmap.cli.demo:demo_command",
    "compare": "softmap.cli.compare:compare_command",
    "doctor": "softmap.cli.doctor:doctor_command",
    "reproduce": "softmap.experiments.cli:reproduce_command",
}


class Commands(TyperGroup):
    """Commands whose modules are loaded when they are asked for, so that each starts quickly."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            module, _, function = COMMANDS[cmd_name].partition(":")
            alone = typer.Typer(add_completion=False, rich_markup_mode=None)
            alone.command(name=cmd_name)(getattr(import_module(module), function))
            self.commands[cmd_name] = typer.main.get_command(alone)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        if args[0] not in COMMANDS:
            for name in COMMANDS:  # one of them may have been meant
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="softmap",
    cls=Commands,
    help="Find the best labelling of a Markov random field, and prove how good it is.",
    epilog="Start with: softmap demo",
    no_args_is_help=True,
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
    """Find the best labelling of a Markov random field, and prove how good it is."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    With SOFTMAP_DEBUG set in the environment, errors keep their traceback.
    """
    words = None if arguments is None else list(arguments)
    try:
        code = int(app(words, prog_name="softmap", standalone_mode=False) or Exit.OK)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("softmap: interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has closed it; else Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        sentence, code = _explain(error)
        print(f"softmap: {sentence}", file=sys.stderr)
        return code


def _explain(error: Exception) -> tuple[str, int]:
    """One sentence and an exit code for an error."""
    if isinstance(error, OptionError):
        return _as_option(str(error)), Exit.BAD_INPUT
    if isinstance(error, SoftmapError):
        return str(error), Exit.BAD_INPUT
    if hasattr(error, "format_message"):  # raised by typer: wrong usage
        context = getattr(error, "ctx", None)
        command = "softmap" if context is None else context.command_path
        return f"{error.format_message().rstrip('.')}; see {command} --help", Exit.BAD_INPUT
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}", Exit.BAD_INPUT
    if isinstance(error, MemoryError):
        return "out of memory; softmap info MODEL says what a model needs", Exit.FAILURE
    first = next(iter(str(error).splitlines()), "")
    kind = type(error).__name__
    return f"an error inside softmap, {kind}: {first}; set {DEBUG}=1 to see where", Exit.FAILURE


def _as_option(sentence: str) -> str:
    """Names of Python's options as the command line has them: `lp_gap=-1` is `--lp-gap -1`."""
    name, equals, rest = sentence.partition("=")
    if equals and name.isidentifier():
        return f"--{name.replace('_', '-')} {rest}"
    return sentence
