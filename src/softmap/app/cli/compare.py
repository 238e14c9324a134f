"""softmap compare: several methods on one model, in one table and one figure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from softmap.app.cli.options import Exit, ModelArgument, QuietOption, ValuesOption, complete_methods
from softmap.app.cli.targets import Targets, check_picture
from softmap.relaxation.gaps import model_unit, relative_gap
from softmap.views.console import number, ratio, say

if TYPE_CHECKING:
    from softmap.model import Model
    from softmap.views.plotting import Columns

# The exact LP solver is an external library: it has one row in the table and no trace.
EXACT_LP = "highs"


@dataclass(frozen=True)
class MethodRow:
    """The results of one method: a row of the table."""

    bound: float
    energy: float
    seconds: float
    work: int
    stopped: str
    trace: Columns


def compare_command(
    model: ModelArgument,
    methods: Annotated[
        str,
        typer.Option(
            help="Names, separated by commas: anneal, trws, mplp, highs, ...",
            autocompletion=complete_methods,
        ),
    ] = "anneal,trws,smp",
    evidence: Annotated[Path | None, typer.Option(help="Variables to fix (.evid).")] = None,
    time_limit: Annotated[
        float, typer.Option("--time-limit", "-t", help="Seconds for each method.")
    ] = 10.0,
    goal: Annotated[
        Literal["map", "lp", "labels", "optimal"],
        typer.Option(help="lp: each method alone; map: with all subsolvers, as solve."),
    ] = "lp",
    lp_gap: Annotated[float, typer.Option(help="Stop at this relative LP gap.")] = 1e-4,
    eta: Annotated[float, typer.Option(help="η of methods that do not choose it.")] = 1000.0,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    threads: Annotated[
        int | None, typer.Option("--threads", "-j", help="Threads; all by default.")
    ] = None,
    values: ValuesOption = None,
    plot: Annotated[
        Path | None, typer.Option(help="Write a chart of the runs (.png, .jpg).")
    ] = None,
    no_progress: QuietOption = False,
) -> None:
    """Compare methods on a model: a table, and a chart.

    The table has the bound and energy that each method reaches on the linear relaxation. With
    --goal map, the other subsolvers of softmap solve (search, clusters, cuts) continue from there,
    which hides the differences between methods.
    """
    import softmap
    from softmap.methods.base import METHODS
    from softmap.run.interrupts import Interrupts
    from softmap.views.console import results

    targets = Targets({"--plot": plot}, {"the model": model, "the evidence": evidence})
    if plot is not None:
        check_picture("--plot", plot)
    names = _names(methods)
    loaded = softmap.read(str(model), values=values, evidence=evidence)
    options: dict[str, Any] = {"goal": goal, "time_limit": time_limit, "lp_gap": lp_gap}
    options |= {"seed": seed, "threads": threads}
    runs: dict[str, MethodRow] = {}
    with Interrupts() as held:
        for name in names:
            if held.noted:
                say("interrupted; other methods were not run")
                break
            if name == EXACT_LP:
                runs[name] = _exact(loaded, options)
            else:
                fixed = {"eta": eta} if METHODS[name].fixed_eta else {}
                runs[name] = _method(loaded, name, no_progress, options | fixed)
        with targets.printing():
            results().print(_table(runs, loaded))
        traces = {name: run.trace for name, run in runs.items()}
        targets.write("--plot", lambda path: _draw(traces, path))
        targets.tell()
    raise typer.Exit(targets.exit_code(Exit.INTERRUPTED if held.noted else Exit.OK))


def _draw(traces: dict[str, Columns], path: Path) -> None:
    from softmap.views.plotting import save_comparison

    save_comparison(traces, path)


def _names(methods: str) -> list[str]:
    from softmap.errors import OptionError
    from softmap.methods.base import METHODS

    names = [name.strip() for name in methods.split(",") if name.strip()]
    known = [*METHODS, EXACT_LP]
    for name in names:
        if name not in known:
            raise OptionError(f"there is no method {name!r}; there are {', '.join(known)}")
    if not names:
        raise OptionError("--methods names none")
    return list(dict.fromkeys(names))


def _method(model: Model, name: str, no_progress: bool, options: dict[str, Any]) -> MethodRow:
    import softmap
    from softmap.views.progress import display

    with display(not no_progress, options["time_limit"]) as show:
        result = softmap.paper.solve(model, on_snapshot=show, **options | {"method": name})
    return MethodRow(
        bound=result.bound,
        energy=result.energy,
        seconds=result.seconds,
        work=result.work,
        stopped=result.status.name.lower().replace("_", " "),
        trace=result.trace.columns(),
    )


def _exact(model: Model, options: dict[str, Any]) -> MethodRow:
    """Solve the LP relaxation with HiGHS; the bound is recomputed from its dual variables."""
    import numpy as np

    from softmap.labels import round_nodes
    from softmap.relaxation import lp
    from softmap.relaxation.bounds import dual_bound

    limits = {name: options[name] for name in ("time_limit", "threads")}
    network = model.network
    solution = lp.solve(network, **limits)
    solved = np.isfinite(solution.value)
    bound = dual_bound(network, solution.lam)
    energy = network.energy(round_nodes(network, solution.node_marginals)) if solved else np.inf
    trace = {
        "seconds": np.array([solution.seconds]),
        "work": np.array([np.nan]),
        "bound": np.array([bound]),
        "energy": np.array([energy]),
    }
    return MethodRow(bound, energy, solution.seconds, 0, f"HiGHS: {solution.status}", trace)


def _table(runs: dict[str, MethodRow], model: Model) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("method")
    for column in ("bound", "energy", "relative gap", "seconds", "work"):
        table.add_column(column, justify="right")
    table.add_column("stopped", overflow="fold")
    for name, run in runs.items():
        gap = relative_gap(run.energy - run.bound, model_unit(model.network, run.bound))
        work = f"{run.work:,}" if run.work else "-"
        cells = (number(run.bound), number(run.energy), ratio(gap), f"{run.seconds:.2f}", work)
        table.add_row(name, *cells, run.stopped)
    return table
