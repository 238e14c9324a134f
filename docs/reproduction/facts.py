"""Numbers and small tables for the page about a reproduction, all read off its stored run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from softmap.app.experiments.claims import Verdict, decide, details, outcome_of, overview
from softmap.app.experiments.entries import FORMS, SETTLED, Method
from softmap.app.experiments.plan import FIGURE1, FIGURE2, FIGURE3, FIGURE3_ETA, FIGURE4, Settings
from softmap.app.experiments.publishing import ratio_curve, seconds_of, settling
from softmap.app.experiments.samples import Curve, Estimate, Evidence, gap_curve

__all__ = ["facts"]

GAPS = ("gap", "returned_gap", "bound_gap")
LEVELS = (10.0, 1.0, 0.1)  # gaps whose price Figure 3's table gives


def facts(evidence: Evidence, settings: Settings, manifest: Path) -> dict[str, str]:
    """Text by name, for a template; needs a whole run."""
    claims = decide(evidence)
    counted = {
        f"{verdict.name.lower()}_{form}": str(
            sum(outcome_of(claim, form).verdict is verdict for claim in claims)
        )
        for form in FORMS
        for verdict in Verdict
    }
    return {
        "overview": overview(claims),
        "details": details(claims).replace("\n## ", "\n### ").replace("## ", "### ", 1),
        "claims": str(len(claims)),
        **counted,
        **_setting(evidence, settings),
        **_made(manifest),
        **dict(_figure1(evidence)),
        **dict(_figure2(evidence)),
        **dict(_figure3(evidence)),
        **dict(_best_eta(evidence)),
        **dict(_by_eta(evidence)),
        **dict(_figure4(evidence)),
        "figure1_table": _ends(evidence),
        "figure3_table": _prices(evidence),
        "eta_table": _etas(evidence),
        "settled_table": _settled(evidence, evidence.sizes(FIGURE4)[:1]),
        "settled_small_table": _settled(evidence, evidence.sizes(FIGURE4)[1:]),
    }


def _setting(evidence: Evidence, settings: Settings) -> dict[str, str]:
    n = evidence.sizes(FIGURE1)[0]
    edges, optima = evidence.reference("m", n), evidence.reference("optimum", n)
    sweeps = evidence.runs(FIGURE3, n, "emp", "standard").axis[-1] / (2 * edges.mean())
    return {
        "n": str(n),
        "m": f"{edges.min():.0f} to {edges.max():.0f}",
        "optimum": f"{optima.min():.1f} to {optima.max():.1f}",
        "graphs": str(settings.graphs),
        "trials": str(settings.trials),
        "updates": f"{settings.updates:,}",
        "thrice": f"{3 * settings.updates:,}",
        "points": str(settings.points),
        "eta": f"{settings.eta:g}",
        "messages": f"{settings.messages:,}",
        "work_trials": str(settings.work_trials),
        "sweeps": f"{sweeps:,.0f}",
    }


def _made(manifest: Path) -> dict[str, str]:
    content = json.loads(manifest.read_text(encoding="utf-8"))
    packages = ", ".join(f"{k} {v}" for k, v in content["versions"].items() if k != "softmap")
    return {
        "version": content["versions"]["softmap"],
        "date": content["date"],
        "machine": content["machine"],
        "packages": packages,
        "code": content["code"][:12],
    }


def _figure1(evidence: Evidence) -> Iterator[tuple[str, str]]:
    n = evidence.sizes(FIGURE1)[0]
    for entry in evidence.entries(FIGURE1):
        runs = evidence.runs(FIGURE1, n, entry.method, entry.form)
        for column in (*GAPS, "exchanged_gap"):
            yield (
                f"{column}_{entry.method}_{entry.form}",
                f"{gap_curve(evidence, runs, column).last:.3g}",
            )
    for entry in (each for each in evidence.entries(FIGURE1) if each.form in FORMS):
        name = f"{entry.method}_{entry.form}"
        curve = ratio_curve(evidence, FIGURE1, n, entry, entry.method)
        for end, k in (("max", curve.mean.argmax()), ("min", curve.mean.argmin()), ("end", -1)):
            yield f"ratio_{end}_{name}", curve.at(int(k)).text()
            yield f"ratio_{end}_at_{name}", f"{curve.axis[k]:,.0f}"
            yield f"number_ratio_{end}_{name}", f"{curve.mean[k]:+.4f}"
        yield f"ratio_size_{name}", f"{np.abs(curve.mean).max():.3f}"
        bound = ratio_curve(evidence, FIGURE1, n, entry, entry.method, "bound_gap")
        yield f"bound_factor_{name}", f"{math.exp(bound.last):.3g}"


def _figure2(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for n in evidence.sizes(FIGURE2):
        for form in FORMS:
            curve = ratio_curve(evidence, FIGURE2, n, Method("smp", form), "smp")
            k = int(curve.mean.argmax())
            yield f"size_{n}_{form}_max", f"{curve.mean[k]:+.2f}"
            yield f"size_{n}_{form}_at", f"{curve.axis[k]:,.0f}"
            yield f"size_{n}_{form}_min", f"{curve.mean.min():+.2f}"
            yield f"size_{n}_{form}_end", f"{curve.last:+.2f}"


def _figure3(evidence: Evidence) -> Iterator[tuple[str, str]]:
    n = evidence.sizes(FIGURE3)[0]
    for entry in evidence.entries(FIGURE3):
        runs = evidence.runs(FIGURE3, n, entry.method, entry.form)
        name = f"{entry.method.replace('-', '_')}_{entry.form}"  # names have no dashes
        ends = {column: gap_curve(evidence, runs, column).last for column in GAPS}
        for column, end in ends.items():
            yield f"work_{column}_{name}", f"{end:.3g}"
        yield f"work_certified_{name}", f"{ends['returned_gap'] + ends['bound_gap']:.3g}"
        each = 1e6 * seconds_of(runs)[-1] / runs.axis[-1]
        yield f"microseconds_{name}", f"{each:.2f}"


def _eta_ends(evidence: Evidence, method: str, form: str) -> dict[str, list[float]]:
    n = evidence.sizes(FIGURE3_ETA)[0]
    ends: dict[str, list[float]] = {column: [] for column in GAPS}
    for eta in evidence.etas(FIGURE3_ETA):
        runs = evidence.runs(FIGURE3_ETA, n, method, form, eta=eta)
        for column in GAPS:
            ends[column].append(gap_curve(evidence, runs, column).last)
    return ends


def _best_eta(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """The best fixed η of momentum over chains, by each measure."""
    etas, ends = evidence.etas(FIGURE3_ETA), _eta_ends(evidence, "momentum", "fixed")
    sums = zip(ends["returned_gap"], ends["bound_gap"], strict=True)
    ends["certified"] = [point + bound for point, bound in sums]
    for name, values in ends.items():
        k = int(np.argmin(values))
        yield f"best_eta_{name}", f"{etas[k]:g}"
        yield f"best_eta_{name}_value", f"{values[k]:.3g}"


def _by_eta(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for entry in evidence.entries(FIGURE3_ETA):
        ends = _eta_ends(evidence, entry.method, entry.form)
        for eta, end in zip(evidence.etas(FIGURE3_ETA), ends["gap"], strict=True):
            yield f"eta_gap_{entry.method.replace('-', '_')}_{entry.form}_{eta:g}", f"{end:.3g}"


def _figure4(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for n, method, form, length, ratio in settling(evidence):
        graphs = ratio.mean(axis=1)
        name = f"{n}_{method}_{form.replace('-', '_')}_{length}"
        yield f"settling_{name}", Estimate.of(evidence.means(ratio)).text()
        yield f"settling_ahead_{name}", str(int((graphs > 0).sum()))
        yield f"settling_spread_{name}", f"{graphs.min():+.2f} to {graphs.max():+.2f}"
        yield f"number_settling_least_{name}", f"{graphs.min():+.4f}"


def _ends(evidence: Evidence) -> str:
    """Figure 1 at its end."""
    n = evidence.sizes(FIGURE1)[0]
    columns = ("gap", "exchanged_gap", "returned_gap", "bound_gap")
    heads = "gap | gap after exchanges of mass | gap of what is returned | bound gap"
    lines = [f"| method | {heads} |", "| --- " * 5 + "|"]
    for entry in evidence.entries(FIGURE1):
        runs = evidence.runs(FIGURE1, n, entry.method, entry.form)
        ends = (gap_curve(evidence, runs, column).at(-1) for column in columns)
        lines.append(f"| {entry.label} | {' | '.join(end.text('.3g') for end in ends)} |")
    return "\n".join(lines)


def _prices(evidence: Evidence) -> str:
    """Figure 3 as a table: sweeps' worth of messages to a gap, and where all messages lead."""
    n = evidence.sizes(FIGURE3)[0]
    sweep = 2.0 * evidence.reference("m", n).mean()
    heads = [f"{name} ≤ {level:g}" for name in ("gap", "bound gap") for level in LEVELS]
    ends = ["final gap", "returned gap", "final bound gap"]
    lines = [f"| method | {' | '.join(heads + ends)} |", "| --- " * (len(heads + ends) + 1) + "|"]
    for entry in evidence.entries(FIGURE3):
        runs = evidence.runs(FIGURE3, n, entry.method, entry.form)
        curves = {column: gap_curve(evidence, runs, column) for column in GAPS}
        cells = [_price(curves[c], v, sweep) for c in ("gap", "bound_gap") for v in LEVELS]
        cells += [f"{curves[c].last:.2g}" for c in GAPS]
        lines.append(f"| {entry.label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _price(curve: Curve, level: float, sweep: float) -> str:
    reached = np.flatnonzero(curve.mean <= level)
    return f"{curve.axis[reached[0]] / sweep:,.0f}" if reached.size else "–"


def _etas(evidence: Evidence) -> str:
    """Gap / bound gap by η."""
    etas = evidence.etas(FIGURE3_ETA)
    heads = " | ".join(f"η = {eta:g}" for eta in etas)
    lines = [f"| method | {heads} |", "| --- " * (len(etas) + 1) + "|"]
    for entry in evidence.entries(FIGURE3_ETA):
        ends = _eta_ends(evidence, entry.method, entry.form)
        pairs = zip(ends["gap"], ends["bound_gap"], strict=True)
        cells = " | ".join(f"{gap:.2g} / {bound:.2g}" for gap, bound in pairs)
        lines.append(f"| {entry.label} | {cells} |")
    return "\n".join(lines)


def _settled(evidence: Evidence, sizes: list[int]) -> str:
    """Figure 4: log ratios alone and settled, by length of the run."""
    rows: dict[tuple[int, str, str, int], dict[bool, str]] = {}
    graphs = 0
    for n, method, form, length, ratio in settling(evidence):
        if n in sizes:
            means, graphs = ratio.mean(axis=1), len(ratio)
            cell = (
                f"{Estimate.of(evidence.means(ratio)).text()} | {means.min():+.2f} to"
                f" {means.max():+.2f} | {(means > 0).sum()}"
            )
            key = n, method, form.removesuffix(SETTLED), length
            rows.setdefault(key, {})[form.endswith(SETTLED)] = cell
    ahead = f"graphs ahead, of {graphs}"
    lines = [
        f"| n | method | updates | alone | by graph | {ahead} | settled | by graph | {ahead} |",
        "| --- " * 9 + "|",
    ]
    for (n, method, form, length), cells in sorted(rows.items()):
        label = Method(method, form).label
        lines.append(f"| {n} | {label} | {length:,} | {cells[False]} | {cells[True]} |")
    return "\n".join(lines)
