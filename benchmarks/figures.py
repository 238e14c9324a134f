"""Figures in texts, from stored runs: `python -m benchmarks.figures` (`make figures`) writes them.

A figure stands in a Markdown file between `<!--figure NAME-->` and `<!--/figure-->`, in a line or
as a block. The names are the functions in `FIGURES`. A test compares texts and stored runs.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import map_race, scoreboard_tables, uai2022
from benchmarks.facts import sentence
from benchmarks.summary import markdown

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "docs" / "benchmarks"
FIGURE = re.compile(r"<!--figure ([\w-]+)-->(.*?)<!--/figure-->", re.DOTALL)
GAPS = (1e-3, 1e-4, 1e-6)
PEERS = {
    "anneal": "softmap",
    "highs-hipdlp": "HiGHS HiPDLP",
    "ortools-pdlp": "OR-Tools PDLP",
    "trws": "TRW-S (softmap's)",
}
MODELS = {
    "tree5000": "random tree (5,000; 4,999; 5)",
    "potts64": "Potts grid (4,096; 8,064; 8)",
    "rand128": "grid of random tables (16,384; 32,512; 4)",
    "er1000": "the paper's random graph (1,000; 3,871; 3)",
    "er10000": "the same, larger (10,000; 50,932; 3)",
}


def stored(name: str) -> Any:
    """The content of a file of stored runs."""
    return json.loads((STORED / name).read_text("utf-8"))


def lp_seconds() -> dict[tuple[str, float, str], float]:
    """Seconds to a certified gap, by model, gap and solver."""
    lines = (STORED / "two-cores.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["gap"] and row["reached"]]
    return {(row["instance"], row["gap"], row["method"]): row["seconds"] for row in rows}


def lp_table() -> str:
    """Seconds of softmap and of LP solvers."""
    seconds, body = lp_seconds(), []
    for model, words in MODELS.items():
        for gap in GAPS:
            found = [seconds.get((model, gap, method)) for method in PEERS]
            least = min(one for one in found if one is not None)
            cells = ["–" if one is None else _bold(one, one == least) for one in found]
            body.append(
                [words if gap == GAPS[0] else "", f"{gap:.0e}".replace("e-0", "e-"), *cells]
            )
    return _block(markdown(["model (variables; edges; labels)", "gap", *PEERS.values()], body))


def _bold(seconds: float, fastest: bool) -> str:
    text = f"{seconds:.2g}"
    return f"**{text}**" if fastest else text


def lp_ratios() -> str:
    """The range of ratios between the fastest LP solver and softmap."""
    seconds = lp_seconds()
    ratios = []
    for model in MODELS:
        for gap in GAPS:
            peers = [seconds.get((model, gap, m)) for m in ("highs-hipdlp", "ortools-pdlp")]
            reached = [one for one in peers if one is not None]
            if reached:
                ratios.append(min(reached) / seconds[model, gap, "anneal"])
    return f"{min(ratios):.2g} to {max(ratios):.2g}"


def in_face_table() -> str:
    """CPU seconds of softmap and of in-face Frank-Wolfe steps."""
    lines = (STORED / "in-face.jsonl").read_text("utf-8").splitlines()
    rows = {(r["instance"], r["gap"], r["method"]): r for r in map(json.loads, lines)}
    body = []
    for model, gap in dict.fromkeys(key[:2] for key in rows):
        cells = []
        for method in ("anneal", "in-face"):
            row = rows[model, gap, method]
            reached = f"{row['cpu_seconds']:.2g}"
            left = f"– ({row['lp_gap']:.1e} after {row['cpu_seconds']:.0f})".replace("e-0", "e-")
            cells.append(reached if row["reached"] else left)
        first = gap == max(g for m, g, _ in rows if m == model)
        words = MODELS[model] if first else ""
        body.append([words, f"{gap:.0e}".replace("e-0", "e-"), *cells])
    heads = ["model (variables; edges; labels)", "gap", "softmap", "in-face Frank–Wolfe"]
    return _block(markdown(heads, body))


def safeguard_table() -> str:
    """Passes and CPU seconds of `anneal` and `anneal-safe`."""
    with (ROOT / "docs" / "theory" / "safeguard.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    body, name = [], ""
    for plain, safe in zip(rows[::2], rows[1::2], strict=True):
        ratio = float(safe["seconds"]) / float(plain["seconds"])
        passes = [f"{int(r['passes']):,}" for r in (plain, safe)]
        seconds = [f"{float(r['seconds']):.2g}" for r in (plain, safe)]
        words = f"`{plain['instance']}`" if plain["instance"] != name else ""
        name = plain["instance"]
        gap = f"{float(plain['gap']):.0e}".replace("e-0", "e-")
        body.append([words, gap, *passes, safe["guards"], *seconds, f"{ratio:.2f}"])
    heads = ["model", "gap", "passes: `anneal`", "`anneal-safe`", "steps", "CPU s: `anneal`",
             "`anneal-safe`", "ratio"]  # fmt: skip
    return _block(markdown(heads, body))


def safeguard_ratio() -> str:
    """All CPU seconds of `anneal-safe` over those of `anneal`, on rows with a safeguard step."""
    with (ROOT / "docs" / "theory" / "safeguard.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    pairs = [(p, s) for p, s in zip(rows[::2], rows[1::2], strict=True) if s["guards"] != "0"]
    sums = [sum(float(pair[k]["seconds"]) for pair in pairs) for k in (0, 1)]
    return f"{len(pairs)} of {len(rows) // 2} rows, {sums[1] / sums[0]:.2f} times the time"


def lp_facts() -> str:
    """When and where the LP table was measured."""
    return sentence(stored("two-cores.facts.json"))


def races() -> list[map_race.Race]:
    """The stored race of labels and proofs."""
    return map_race.races_of(stored("labels.json")["races"])


def labels_words() -> str:
    """Proofs and labellings beside toulbar2's, in a sentence."""
    known, limit = races(), stored("labels.json")["facts"]["seconds"]
    ours = {r.name for r in known if r.ours.proved}
    theirs = {r.name for r in known if r.toulbar2 is not None and r.toulbar2.proved}
    among = ", each of them among these" if theirs <= ours else ""
    signs = [r.better() for r in known if r.toulbar2 is not None]
    return (
        f"in {limit:g} s each, {len(ours)} of {len(known)} are proved optimal (by toulbar2: "
        f"{len(theirs)}{among}); the labelling is better than toulbar2's on {signs.count(1)}, "
        f"worse on {signs.count(-1) or 'none'}"
    )


def labels_table() -> str:
    """Proofs and labellings beside toulbar2's."""
    known = races()
    signs = [r.better() for r in known if r.toulbar2 is not None]
    theirs = sum(r.toulbar2 is not None and r.toulbar2.proved for r in known)
    better = " / ".join(str(signs.count(sign)) for sign in (1, 0, -1))
    body = [
        [f"proved optimal, of {len(known)}", str(sum(r.ours.proved for r in known)), str(theirs)],
        ["labelling better / equal / worse than toulbar2's", better, ""],
    ]
    for race in known:
        if race.name.startswith(("uai-cost/gm_000", "uai-grid/grid80x80.f10.uai")):
            words = f"`{race.name.split('/')[1].split('.uai')[0]}` ({race.variables:,} variables)"
            entries = [race.ours, race.toulbar2]
            shown = [f"{e.energy:,.0f}, {e.bound:,.0f}" if e else "–" for e in entries]
            body.append([f"{words}: energy, bound", *shown])
    return _block(markdown(["", "softmap", "toulbar2"], body))


def labels_facts() -> str:
    """When and where the race of labels was measured."""
    return sentence(stored("labels.json")["facts"])


def labels_models() -> str:
    """Every model of the race."""
    return _block(map_race.table(races()))


def uai2022_rows() -> list[dict[str, Any]]:
    """The stored runs on the models of the UAI 2022 competition; none if there is no file."""
    return stored("uai2022.json")["rows"] if (STORED / "uai2022.json").is_file() else []


def uai2022_counts() -> str:
    """A sentence on the models of the UAI 2022 competition; empty without a stored run."""
    rows = uai2022_rows()
    if not rows:
        return ""
    known = stored("uai2022.json")["facts"]
    hour, soon = ([uai2022.compared(r, r[b]) for r in rows] for b in ("best3600", "best20"))
    return (
        f"On {len(rows)} models of the UAI 2022 competition, softmap runs for "
        f"{known['seconds']:g} s with one thread. Its labelling is at least as good as the best of "
        f"all entrants after 20 s on {sum(sign >= 0 for sign in soon)} models, and after one hour "
        f"on {sum(sign >= 0 for sign in hour)}. It proves {sum(r['proved'] for r in rows)} optimal."
    )


def uai2022_words() -> str:
    """Labellings and proofs beside those of the competition, in a sentence."""
    rows, known = uai2022_rows(), stored("uai2022.json")["facts"]
    signs = [uai2022.compared(row, row["best3600"]) for row in rows]
    return (
        f"after {known['seconds']:g} s with one thread, the labelling is at least as good as the "
        "best of all entrants after an hour (on the competition's machines) on "
        f"{sum(sign >= 0 for sign in signs)} of {len(rows)} models; "
        f"{sum(row['proved'] for row in rows)} are proved optimal"
    )


def uai2022_table() -> str:
    """Every model of the UAI 2022 competition; empty without a stored run."""
    rows = uai2022_rows()
    if not rows:
        return ""
    words = {1: "better", 0: "equal", -1: "worse"}
    body = [
        [
            row["problem"],
            f"{row['variables']:,}",
            f"{row['energy']:,.2f}",
            f"{row['bound']:,.2f}",
            f"{row['seconds']:.2f}\u00a0s" if row["proved"] else "open",
            "–" if row["best20"] is None else f"{row['best20']:,.1f}",
            "–" if row["best3600"] is None else f"{row['best3600']:,.1f}",
            words[uai2022.compared(row, row["best3600"])],
        ]
        for row in rows
    ]
    head = ["model", "variables", "energy", "bound", "proof", "entrants: 20 s", "1 h", "after 1 h"]
    facts_line = sentence(stored("uai2022.json")["facts"])
    return _block(f"{facts_line}\n\n{markdown(head, body)}")


def scoreboard_rows() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The facts and the runs of the stored scoreboard."""
    facts, *rows = map(json.loads, (STORED / "scoreboard.jsonl").read_text("utf-8").splitlines())
    return facts, rows


def scoreboard_facts() -> str:
    """When, where and beside which versions the scoreboard was measured."""
    known, _ = scoreboard_rows()
    peers = ", ".join(f"{solver} ({version})" for solver, version in known["solvers"].items())
    limits = f"{known['seconds']:g} s and one thread per run, {known['workers']} runs at a time"
    return f"{sentence(known)} {limits}. Peers: {peers}."


def scoreboard_overview() -> str:
    """Proofs, labellings and bounds by family and solver."""
    return _block(scoreboard_tables.overview(scoreboard_rows()[1]))


def scoreboard_families() -> str:
    """Every model of the scoreboard, one table per family."""
    return _block(scoreboard_tables.family_tables(scoreboard_rows()[1]))


def gpu_words() -> str:
    """A pass and a certified gap on a GPU, beside two cores."""
    found = stored("gpu.json")
    one, cpu = found["potts 0.001"], found["potts processor"]
    return (
        f"1,024 × 1,024 pixels with 16 labels (Potts) have a certified gap of 0.1 % after "
        f"{one['with_setup_s']:.1f} s with set-up; the same passes on two cores take "
        f"{cpu['seconds'] / one['with_setup_s']:.0f} times as long"
    )


def batch_words() -> str:
    """Many small models on a GPU and on cores."""
    batch = stored("gpu.json")["batch"]
    return (
        f"{batch['models']:,} models of 100 variables to a gap of 0.1 % in "
        f"{batch['seconds']:.2f} s on a GPU, in {batch['cores']['16']:.1f} s on 16 cores"
    )


def landing_gap() -> str:
    """The gap of the photograph on the landing page."""
    return f"{100 * stored('landing.json')['run']['relative_gap']:.2g} %"


def landing_words() -> str:
    """The photograph of the landing page in numbers."""
    run = stored("landing.json")["run"]
    return (
        f"{run['rows']} × {run['columns']} pixels, {run['levels']} levels in each of three "
        f"channels; the root mean square error falls from {run['error_before']:.0f} to "
        f"{run['error_after']:.1f} grey levels"
    )


FIGURES: dict[str, Callable[[], str]] = {
    "lp-table": lp_table, "in-face-table": in_face_table,
    "safeguard-table": safeguard_table, "safeguard-ratio": safeguard_ratio,
    "lp-ratios": lp_ratios, "lp-facts": lp_facts,
    "labels-words": labels_words, "labels-table": labels_table, "labels-facts": labels_facts,
    "labels-models": labels_models, "uai2022-counts": uai2022_counts,
    "uai2022-words": uai2022_words,
    "uai2022-table": uai2022_table, "gpu": gpu_words, "batch": batch_words,
    "scoreboard-facts": scoreboard_facts, "scoreboard-overview": scoreboard_overview,
    "scoreboard-families": scoreboard_families, "landing-gap": landing_gap,
    "landing": landing_words,
}  # fmt: skip


def _block(text: str) -> str:
    return f"\n\n{text}\n\n"


def texts() -> list[Path]:
    """The files that have figures."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in pages if "_build" not in path.parts and "gallery" not in path.parts]


def renewed(text: str) -> str:
    """A text with all figures as the stored runs have them."""

    def figure(match: re.Match[str]) -> str:
        return f"<!--figure {match[1]}-->{FIGURES[match[1]]()}<!--/figure-->"

    return FIGURE.sub(figure, text)


def main() -> None:
    """Write the figures of all texts."""
    for path in texts():
        before = path.read_text("utf-8")
        if (after := renewed(before)) != before:
            path.write_text(after, encoding="utf-8")
            print(path.relative_to(ROOT), file=sys.stderr)


if __name__ == "__main__":
    main()
