"""Numbers and small tables for the page about a reproduction, all read off its CSV files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from softmap.app.experiments.claims import decide, details, overview
from softmap.app.experiments.tables import Curve, Table, curve, ratio_curve
from softmap.app.experiments.trials import FORMS, Method

__all__ = ["facts"]

Tables = Mapping[str, Table]
GAPS = ("gap", "returned_gap", "bound_gap")
LEVELS = (10.0, 1.0, 0.1)  # gaps whose price Figure 3's table gives


def facts(tables: Tables) -> dict[str, str]:
    """Text by name, for a template; needs the tables of a whole reproduction."""
    claims = decide(tables)
    held = {f: sum(_holds(c.outcomes, f) for c in claims) for f in FORMS}
    return {
        "overview": overview(claims),
        "details": details(claims).replace("\n## ", "\n### ").replace("## ", "### ", 1),
        "claims": str(len(claims)),
        **{f"held_{form}": str(count) for form, count in held.items()},
        **_setting(tables),
        **dict(_figure1(tables["figure1"])),
        **dict(_figure2(tables["figure2"])),
        **dict(_figure3(tables)),
        **dict(_best_eta(tables["figure3-eta"])),
        **dict(_by_eta(tables["figure3-eta"])),
        "figure1_table": _ends(tables["figure1"]),
        "figure3_table": _prices(tables),
        "eta_table": _etas(tables["figure3-eta"]),
    }


def _holds(outcomes: Mapping[str, object], form: str) -> bool:
    outcome = outcomes.get(form, outcomes.get("standard"))
    return bool(getattr(outcome, "holds", False))


def _setting(tables: Tables) -> dict[str, str]:
    table, truth = tables["figure1"], tables["truth"]
    row = truth.where(n=table["n"][0])
    messages = tables["figure3"].where(method="emp", form="standard")["work"].max()
    return {
        "n": str(table["n"][0]),
        "m": str(row["m"][0]),
        "optimum": f"{row['optimum'][0]:.4f}",
        "trials": str(len(np.unique(table["trial"]))),
        "updates": f"{table['updates'].max():,}",
        "eta": f"{table['eta'][0]:g}",
        "messages": f"{messages:,}",
        "sweeps": f"{messages / (2 * row['m'][0]):,.0f}",
    }


def _figure1(table: Table) -> Iterator[tuple[str, str]]:
    for method, form in table.distinct("method", "form"):
        rows = table.where(method=method, form=form)
        for column in GAPS:
            yield f"{column}_{method}_{form}", f"{curve(rows, column).last:.3g}"
    for method in ("emp", "smp", "bcd"):
        for form in FORMS:
            found = ratio_curve(table, method, form)
            for name, k in (("max", found.mean.argmax()), ("min", found.mean.argmin())):
                yield f"ratio_{name}_{method}_{form}", f"{found.mean[k]:+.3f}"
                yield f"ratio_{name}_at_{method}_{form}", f"{found.updates[k]:,.0f}"
            yield f"ratio_size_{method}_{form}", f"{np.abs(found.mean).max():.3f}"
            bound = ratio_curve(table, method, form, "bound_gap")
            yield f"bound_factor_{method}_{form}", f"{math.exp(bound.last):.3g}"


def _figure2(table: Table) -> Iterator[tuple[str, str]]:
    for (n,) in table.distinct("n"):
        for form in FORMS:
            found = ratio_curve(table.where(n=n), "smp", form)
            k = int(found.mean.argmax())
            yield f"size_{n}_{form}_max", f"{found.mean[k]:+.3f}"
            yield f"size_{n}_{form}_at", f"{found.updates[k]:,.0f}"
            yield f"size_{n}_{form}_min", f"{found.mean.min():+.3f}"
            yield f"size_{n}_{form}_end", f"{found.last:+.3f}"


def _figure3(tables: Tables) -> Iterator[tuple[str, str]]:
    table, clock = tables["figure3"], tables["figure3-seconds"]
    for method, form in table.distinct("method", "form"):
        rows, times = (t.where(method=method, form=form) for t in (table, clock))
        method = method.replace("-", "_")  # names of templates have no dashes
        for column in GAPS:
            yield f"work_{column}_{method}_{form}", f"{curve(rows, column).last:.3g}"
        yield f"work_certified_{method}_{form}", f"{_certified(rows):.3g}"
        last = times["updates"] == times["updates"].max()
        each = times["seconds"][last].sum() / times["updates"][last].sum()
        yield f"microseconds_{method}_{form}", f"{1e6 * each:.2f}"


def _certified(rows: Table) -> float:
    """What is proved at the end: primal of what is returned minus bound."""
    return curve(rows, "returned_gap").last + curve(rows, "bound_gap").last


def _best_eta(table: Table) -> Iterator[tuple[str, str]]:
    """The best fixed η of momentum over chains, by each measure."""
    rows = table.where(method="momentum", form="fixed")
    etas = np.unique(rows["eta"])
    found = {column: [curve(rows.where(eta=e), column).last for e in etas] for column in GAPS}
    found["certified"] = [_certified(rows.where(eta=e)) for e in etas]
    for name, values in found.items():
        k = int(np.argmin(values))
        yield f"best_eta_{name}", f"{etas[k]:g}"
        yield f"best_eta_{name}_value", f"{values[k]:.3g}"


def _by_eta(table: Table) -> Iterator[tuple[str, str]]:
    for method, form, eta in table.distinct("method", "form", "eta"):
        end = curve(table.where(method=method, form=form, eta=eta)).last
        yield f"eta_gap_{method}_{form}_{eta:g}", f"{end:.3g}"


def _ends(table: Table) -> str:
    """Figure 1 at its end."""
    lines = ["| method | gap | gap of what is returned | bound gap |", "| --- | --- | --- | --- |"]
    for method, form in table.distinct("method", "form"):
        rows = table.where(method=method, form=form)
        found = [curve(rows, column) for column in GAPS]
        cells = " | ".join(f"{c.last:.3g} ± {c.deviation[-1]:.2g}" for c in found)
        lines.append(f"| {Method(method, form).label} | {cells} |")
    return "\n".join(lines)


def _prices(tables: Tables) -> str:
    """Figure 3 as a table: sweeps' worth of messages to a gap, and where all messages lead."""
    table, truth = tables["figure3"], tables["truth"]
    sweep = 2.0 * float(truth.where(n=table["n"][0])["m"][0])
    heads = [f"{name} ≤ {level:g}" for name in ("gap", "bound gap") for level in LEVELS]
    ends = ["final gap", "returned gap", "final bound gap"]
    lines = [f"| method | {' | '.join(heads + ends)} |", "| --- " * (len(heads + ends) + 1) + "|"]
    for method, form in table.distinct("method", "form"):
        found = {c: curve(table.where(method=method, form=form), c) for c in GAPS}
        cells = [_price(found[c], v, sweep) for c in ("gap", "bound_gap") for v in LEVELS]
        cells += [f"{found[c].last:.2g}" for c in GAPS]
        lines.append(f"| {Method(method, form).label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _price(found: Curve, level: float, sweep: float) -> str:
    reached = np.flatnonzero(found.mean <= level)
    return f"{found.work[reached[0]] / sweep:,.0f}" if reached.size else "–"


def _etas(table: Table) -> str:
    """Gap / bound gap by η."""
    etas = np.unique(table["eta"])
    heads = " | ".join(f"η = {eta:g}" for eta in etas)
    lines = [f"| method | {heads} |", "| --- " * (len(etas) + 1) + "|"]
    for method, form in table.distinct("method", "form"):
        rows = table.where(method=method, form=form)
        ends = [[curve(rows.where(eta=e), c).last for c in ("gap", "bound_gap")] for e in etas]
        cells = " | ".join(f"{gap:.2g} / {bound:.2g}" for gap, bound in ends)
        lines.append(f"| {Method(method, form).label} | {cells} |")
    return "\n".join(lines)
