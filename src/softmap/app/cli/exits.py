"""Exit codes of all commands, and the sentence about them that `--help` ends with."""

from __future__ import annotations

__all__ = ["HELP", "SHORT", "Exit"]


class Exit:
    """Exit codes. A run that ends at a limit of the user is a success."""

    OK, FAILURE, BAD_INPUT, NOTHING_FOUND, INFEASIBLE, INTERRUPTED = 0, 1, 2, 3, 4, 130


SHORT = "Exit codes: 0 done, 1 failed, 2 bad input, 3 none found, 4 infeasible, 130 Ctrl-C."

HELP = (
    "Exit codes: 0 done, also where a limit stopped it; 1 something failed or a check is false; "
    "2 wrong arguments or files; 3 no labelling was found that obeys the hard constraints; "
    "4 infeasible: it is proved that there is none; 130 interrupted."
)
