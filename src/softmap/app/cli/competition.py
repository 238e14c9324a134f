"""Lines of the MaxSAT Evaluation and of the pseudo-Boolean competition: `c`, `o`, `s` and `v`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from softmap.errors import OptionError
from softmap.views.progress import Silent

if TYPE_CHECKING:
    from softmap.model import Model
    from softmap.run.result import Result


class Lines(Silent):
    """Prints the cost of each better labelling as the run goes, and the answer at its end.

    Parameters
    ----------
    form : {"maxsat", "pb"}
    model : Model
        Variables must have two labels each.
    """

    def __init__(self, form: str, model: Model) -> None:
        counts = model.num_labels
        if (counts != 2).any():
            wrong = int(np.argmax(counts != 2))
            raise OptionError(
                f"--competition {form} is for variables with two labels; variable {wrong} has "
                f"{counts[wrong]}"
            )
        self._form, self._model, self._best = form, model, math.inf

    def __call__(self, snapshot: Any) -> None:
        """Print `o`, and the cost, if it is better than before."""
        self._cost(float(snapshot.energy))

    def _cost(self, energy: float) -> None:
        if energy < self._best:
            self._best = energy
            print(f"o {_whole(energy)}", flush=True)

    def finish(self, result: Result, answered: bool) -> None:
        """Print what was found, the status and the labelling.

        A labelling is optimal if no whole number is between its cost and the bound.
        """
        if not answered:
            print("s UNKNOWN")
            return
        self._cost(result.energy)
        whole = float(result.energy).is_integer() and result.energy - result.bound < 1
        exact = result.status.name == "OPTIMAL" and (whole or result.gap == 0)
        print("s OPTIMUM FOUND" if exact else "s SATISFIABLE")
        print(f"v {self._values(result.labels.reshape(-1).tolist())}")

    def _values(self, labels: list[int]) -> str:
        if self._form == "maxsat":
            return "".join(map(str, labels))
        names = self._model.names
        known = [f"x{i + 1}" for i in range(len(labels))] if names is None else names.variables
        return " ".join(
            f"{name}" if x else f"-{name}" for name, x in zip(known, labels, strict=True)
        )


def _whole(cost: float) -> str:
    return str(int(cost)) if float(cost).is_integer() else repr(float(cost))
