# ruff: noqa: E501 - the text of a page
"""The documentation's page about GPUs, from stored measurements: `python -m benchmarks.gpu.page`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
STORED, PAGE = DOCS / "benchmarks" / "gpu.json", DOCS / "benchmarks" / "gpu.md"
FASTDOG = DOCS / "benchmarks" / "gpu-fastdog.csv"
PICTURE = DOCS / "images" / "gpu-bandwidth.svg"
ROOFLINE = DOCS / "images" / "gpu-roofline.svg"
PEAK = 67e12  # operations in single precision per second, by the data sheet of an H200
NAMES = {
    "potts": "Potts, 1024 × 1024, 16 labels",
    "linear": "truncated linear, 1024 × 1024, 16 labels",
    "dense": "dense tables, 1024 × 1024, 16 labels",
    "random": "dense tables, 10⁷ random edges, 3 labels",
}
TARGETS = {"potts": "0.5 ms", "linear": "0.8 ms", "dense": "1.6 ms", "random": "45 % of copying"}


def share(found, name):
    one = found[f"{name} pass"]
    return one["bytes"] / one["pass_s_mild"] / found["copy"]["bytes_per_s"]


def passes_table(found):
    yield "| model | pass | of the bandwidth of a copy | target | check | in passes |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, words in NAMES.items():
        one = found[f"{name} pass"]
        seconds, look = one["pass_s_mild"], one["look_s_mild"]
        yield (
            f"| {words} | {1e3 * seconds:.3f} ms | {share(found, name):.0%} | {TARGETS[name]} | "
            f"{1e3 * look:.1f} ms | {look / seconds:.1f} |"
        )


def certify_table(found):
    yield "| model | relative LP gap | passes | loop | with set-up | target (loop) | our passes on 2 cores |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    rows = (
        ("potts", 1e-3, "0.12 s"), ("potts", 1e-4, "0.4 s"), ("linear", 1e-3, "–"),
        ("dense", 1e-3, "0.6 s"),
    )  # fmt: skip
    for name, gap, aim in rows:
        one = found[f"{name} {gap:g}"]
        cpu = found.get(f"{name} processor")
        other = "–"
        if cpu and gap == 1e-3:
            other = f"{cpu['seconds']:.0f} s, {cpu['seconds'] / one['loop_s']:.0f} times as long"
        yield (
            f"| {NAMES[name]} | {gap:g} | {one['passes']:.0f} | {one['loop_s']:.3f} s | "
            f"{one['with_setup_s']:.1f} s | {aim} | {other} |"
        )
    one = found["large"]
    yield (
        f"| truncated linear, 4096 × 4096, 64 labels | 0.001 | {one['passes']:.0f} | "
        f"{one['loop_s']:.1f} s | {one['with_setup_s']:.0f} s | done | – |"
    )


def cores_of(batch):
    """The same batch on the processor, in words."""
    seconds = {int(cores): taken for cores, taken in batch["cores"].items()}
    one = seconds.pop(1)
    rest = [
        f"{taken:.1f} s on {cores} ({one / taken:.1f} times)" for cores, taken in seconds.items()
    ]
    return f"{one:.1f} s on one core, " + " and ".join(sorted(rest, reverse=True))


def fastdog_table():
    """The measurements beside FastDOG, from their own file: `benchmarks.gpu.run` does not run it."""
    lines = ["| model | distance to the LP | FastDOG | softmap |", "| --- | --- | --- | --- |"]
    with FASTDOG.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            times = (row["fastdog_s"], row["softmap_s"])
            cells = [f"{t} s" if t[:1].isdigit() else t or "–" for t in times]
            lines.append(f"| {row['model']} | {row['gap']} | {' | '.join(cells)} |")
    return lines


def page(found):
    facts, batch = found["facts"], found["batch"]
    linear, layer = found["linear pass"], found["layer"]
    return f"""# How fast is a GPU?

Measured on {facts["date"]} by `python -m benchmarks.gpu.run` (this page: `python -m benchmarks.gpu.page`, from `docs/benchmarks/gpu.json`): {facts["device"]}, softmap {facts["softmap"]}, Python {facts["python"]}, numpy {facts["numpy"]}.
Medians of seven runs; kernels were compiled before. A copy within the device moves {found["copy"]["bytes_per_s"] / 1e12:.2f} TB/s, bytes read and written.

## A pass

{chr(10).join(passes_table(found))}

Bytes are those that a pass has to move, each array entry once per half pass (`bytes_of_pass`). A check computes a bound and a point with its cost. At large η, where sums of exponentials overflow or underflow, a truncated linear pass takes
{1e3 * linear["pass_s_cold"]:.2f} ms. Potts passes are slightly slower than the target. On random graphs, messages are stored by edge, sorted by the levels of both endpoints ([how, and what was tried](../decisions/gpu.md#19-a-cuda-backend)).

![Fraction of the bandwidth of a copy that a pass reaches](../images/gpu-bandwidth.svg)

![Operations per second against operations per byte, below the roof that copying and arithmetic set](../images/gpu-roofline.svg)

Operations are counted by `operations_of_pass`; an exponential counts as one. All passes are far to the left of the ridge of the roofline: they are limited by memory bandwidth.

## Time to a certified gap

{chr(10).join(certify_table(found))}

*Loop* is everything between the first pass and the certificate: passes, checks, and the work of the host between them. *With set-up* adds the statistics of the costs (computed by numpy on the host), their upload, the tiles (built on the device) and the recording of launches.
The last column counts passes of the CPU solver on two cores of the same machine, as many as the device needed, and no checks; its loops were those for x86-64-{facts["loops"]}, messages in double precision.

## A batch

{batch["models"]:,} of the paper's problems (n = 100), each to a certified 1e-3: {batch["seconds"]:.2f} s in all, of which {batch["loop_s"]:.2f} s are passes and checks ({batch["passes_mean"]:.0f} passes on average, {batch["passes_most"]:.0f} at most), {batch["setup_s"]:.2f} s set-up; each run had new models. One by one on one core: {1e3 * batch["cpu_each_s"]:.1f} ms
each, {batch["ratio"]:.0f} times as long. A `Result` is lazily computed; all of them, with their arrays on the host, are available after {batch["with_results_s"]:.2f} s{batch.get("note", "")}. The target was 500 times. A third of the time each is spent on joining
and validating a thousand models, on tiles and uploads, and on passes with their checks, of which the last few models need most. On the CPU of the same machine the batch takes {cores_of(batch)}. Bounds differ by {batch["bounds_apart"]:.1g} at most, within the requested gap.

## A layer

`softmap.soft_map` and its gradient, PyTorch tensors in double precision, {layer["members"]} grids of {layer["side"]} × {layer["side"]} with {layer["labels"]} labels at η = {layer["eta"]:g}: {layer["cuda_s"]:.2f} s if the tensors are on the device, {layer["cpu_s"]:.1f} s on the CPU (one thread). Marginals and
gradients agree to {layer["apart"]:.0e}.

## Beside FastDOG

[FastDOG](https://github.com/LPMP/BDD) (Abbas and Swoboda, CVPR 2022; later with L-BFGS) maximises the bound of a decomposition into binary decision diagrams on a GPU. Its current sources were built and run on the same kind of device, an H200, in November 2026: by its own clock, which begins after it has built its diagrams (MMA and L-BFGS, in single and in double precision, were run).
Seconds until the bound is within a fraction of the LP optimum; for softmap, seconds of passes and checks to the bound on the same device ("–": not measured):

{chr(10).join(fastdog_table())}

On the random graphs its bound stopped 2.9 % below the LP optimum or further away; on the random tables it did not reach 1e-4 in 4 s. These runs were made by hand, outside `benchmarks.gpu.run`. A GPU does not pay for all models: on proteins with large tables, softmap takes 2.2 s to 1e-4 on the GPU and 0.8 s on one core.
"""


def chart(width, height):
    """A figure and its axes, with text that can be read on a phone."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams |= {"svg.hashsalt": "softmap", "font.size": 13}
    return plt.subplots(figsize=(width, height), layout="constrained")


def bandwidth_chart(found):
    figure, axes = chart(6, 4)
    for k, (name, words) in enumerate(NAMES.items()):
        part = share(found, name)
        axes.barh(k, part, height=0.4, color="tab:blue")
        axes.text(part + 0.01, k, f"{part:.0%}", va="center")
        axes.text(0.0, k + 0.25, words, va="bottom")
    axes.axvline(1.0, color="black", lw=1)
    axes.set(xlim=(0, 1.1), yticks=[], xlabel="bandwidth of a pass / bandwidth of a copy")
    figure.savefig(PICTURE, metadata={"Date": None})


def roofline(found):
    figure, axes = chart(6, 5)
    bandwidth = found["copy"]["bytes_per_s"]
    ends = (0.3, PEAK / bandwidth, 60.0)
    axes.loglog(ends, [min(bandwidth * x, PEAK) / 1e12 for x in ends], color="black", lw=1)
    for (name, words), mark in zip(NAMES.items(), "os^D", strict=True):
        one = found[f"{name} pass"]
        x, y = one["operations"] / one["bytes"], one["operations"] / one["pass_s_mild"] / 1e12
        axes.plot(x, y, mark, label=words)
    axes.set(xlabel="operations per byte that a pass has to move")
    axes.set(ylabel="10¹² operations per second")
    axes.legend(loc="lower right", fontsize=11)
    figure.savefig(ROOFLINE, metadata={"Date": None})


def main():
    found = json.loads(STORED.read_text("utf-8"))
    PAGE.write_text(page(found), "utf-8")
    bandwidth_chart(found)
    roofline(found)


if __name__ == "__main__":
    main()
