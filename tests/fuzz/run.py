"""Fuzz one reader, or all: `python tests/fuzz/run.py all --count 10000000 --workers 15`.

With atheris installed it drives a single reader (and takes its own options); otherwise the small
fuzzer of `mutate.py` does, in as many processes as there are workers, for so many seconds in all or
(with `--count`) until so many inputs were tried; every reader has the same time.
Findings are printed and written to the folder given by `--out`; small files of the folder given by
`--data` are added to the inputs to start from. The last line says how many inputs were tried.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path

try:
    import atheris
except ImportError:
    atheris = None

# atheris sees only code that is imported under its eyes
with atheris.instrument_imports(include=["softmap"]) if atheris else contextlib.nullcontext():
    from mutate import LONGEST, fuzz, place_of
    from targets import targets

    import softmap

MEMORY = 4 << 30
SLOW = 2.0  # seconds of the processor
SHARES = 4  # turns that each worker has, at least
SUFFIXES = {
    "uai": (".uai", ".uai.xz"),
    "evidence": (".evid",),
    "labels": (".MAP", ".MPE"),
    "wcsp": (".wcsp", ".wcsp.xz"),
    "cfn": (".cfn", ".cfn.gz"),
    "dd": (".dd",),
    "opengm": (".h5",),
    "qpbo": (".qpbo",),
    "qap": (".dat",),
    "sln": (".sln",),
}


def with_atheris(name: str, options: argparse.Namespace, rest: list[str]) -> None:
    """Hand over to atheris, with the seeds of the target as its corpus; it never returns."""
    target, seeds = targets()[name]
    corpus = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
    for k, data in enumerate([*seeds, *from_folder(name, options.data)]):
        (corpus / f"seed{k}").write_bytes(data)
    seen: set[str] = set()

    def one_input(data: bytes) -> None:
        begin = time.process_time()
        found: BaseException | float | None = None
        try:
            target(data)
        except softmap.SoftmapError:
            pass
        except Exception as error:
            found = error
        spent = time.process_time() - begin
        if found is None and spent > SLOW:
            found = spent
        place = "slow" if isinstance(found, float) else place_of(found) if found else ""
        if found is not None and place not in seen:
            seen.add(place)
            report(name, data, found, options.out)

    limits = [f"-max_total_time={options.seconds:.0f}", f"-seed={options.seed + 1}"]
    limits += ["-rss_limit_mb=4096", "-timeout=60", f"-max_len={LONGEST}", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *limits, *rest, str(corpus)], one_input)
    atheris.Fuzz()


def from_folder(name: str, folder: Path | None) -> list[bytes]:
    """Small real files of the format."""
    if folder is None:
        return []
    found = []
    for path in sorted(folder.rglob("*")):
        if path.name.endswith(SUFFIXES.get(name, ())) and path.stat().st_size <= LONGEST:
            data = softmap.io.streams.load(path).data
            if len(data) <= LONGEST:
                found.append(data)
    return found


def limit_memory() -> None:
    """An absurd allocation shall fail here, not bring the machine down."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def begin_worker() -> None:
    """Limit the memory of a worker; only Python prints, not the compiled readers of programs."""
    limit_memory()
    sys.stdout = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), 1)


def work(task: tuple[str, int, float, Path | None, Path | None]) -> tuple[str, int, int, int]:
    """Fuzz one reader for a while: its name, runs, pairs of lines covered, and findings."""
    name, seed, seconds, data, out = task
    target, seeds = targets()[name]
    inputs = [*seeds, *from_folder(name, data)]
    runs, pairs, findings = fuzz(target, inputs, seconds, softmap.SoftmapError, seed)
    for content, what in findings:
        report(name, content, what, out)
    return name, runs, pairs, len(findings)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[*targets(), "all"])
    parser.add_argument("--seconds", type=float, default=60.0, help="in all, or between counts")
    parser.add_argument("--count", type=int, default=0, help="go on until so many were tried")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--data", type=Path)
    options, rest = parser.parse_known_args()
    if atheris and options.name != "all" and options.workers == 1:
        limit_memory()
        with_atheris(options.name, options, rest)
    names = list(targets()) if options.name == "all" else [options.name]
    turns = -(-SHARES * options.workers // len(names))  # of each reader, with seeds of their own
    each = options.seconds * options.workers / (turns * len(names))
    done: dict[str, list[int]] = {name: [0, 0, 0] for name in names}
    pool = multiprocessing.get_context("spawn").Pool(options.workers, begin_worker)
    with pool:
        for first in itertools.count(options.seed, turns):
            tasks = [
                (name, seed, each, options.data, options.out)
                for seed in range(first, first + turns)
                for name in names
            ]
            for name, runs, pairs, found in pool.imap_unordered(work, tasks):
                before = done[name]
                done[name] = [before[0] + runs, max(before[1], pairs), before[2] + found]
            total = sum(numbers[0] for numbers in done.values())
            if total >= options.count:
                break
            print(f"# {total:,} inputs", flush=True)
    for name, (runs, pairs, found) in done.items():
        print(f"{name}: {runs:,} runs, {pairs} pairs of lines, {found} findings")
    total, findings = (sum(numbers[k] for numbers in done.values()) for k in (0, 2))
    print(f"{total:,} inputs in all, {findings} findings")
    return 1 if findings else 0


def report(name: str, data: bytes, what: BaseException | float, out: Path | None) -> None:
    if isinstance(what, BaseException):
        traceback.print_exception(what)
    else:
        print(f"slow: {what:.2f} s")
    print(f"{name}: {data[:300]!r}", flush=True)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(data).hexdigest()[:12]
        (out / f"{name}-{digest}").write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
