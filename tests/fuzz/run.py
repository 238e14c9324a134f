"""Fuzz one reader, or all: `python tests/fuzz/run.py all --count 10000000 --workers 15`.

With atheris installed it drives a single reader (and takes its own options); otherwise the small
fuzzer of `mutate.py` does, in as many processes as there are workers, until so many inputs were
tried (`--count`) or for so many seconds (`--seconds`, 60 without a count), whichever comes first;
every reader has the same time. Ctrl-C and SIGTERM end it, too. The last line always says how many
inputs were tried. An input that ends its process, or does not return, is a finding as well.
Findings are printed and written to the folder given by `--out`; small files of the folder given by
`--data` are added to the inputs to start from.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import math
import mmap
import os
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
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

from support.spreading import Lost, interruptible, spread

MEMORY = 4 << 30
SECONDS = 60.0  # without a count
SLOW = 2.0  # seconds of the processor
SHARE = 20.0  # seconds, at most, for which a reader is fuzzed at a time
SLOWEST = 1000.0  # inputs per second, at least, where shares are cut to a count
PATIENCE = 120.0  # seconds after which a share that should be over is ended
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

    limits = [f"-max_total_time={options.seconds or SECONDS:.0f}", f"-seed={options.seed + 1}"]
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


@dataclass(frozen=True)
class Share:
    """One reader, fuzzed for a while.

    Attributes
    ----------
    name : str
        The reader.
    seed : int
        Seed of the random changes.
    seconds : float
        For how long.
    options : argparse.Namespace
        Those of the command line.
    place : Path
        A file that holds the input at hand, behind its length in eight bytes.
    """

    name: str
    seed: int
    seconds: float
    options: argparse.Namespace
    place: Path

    def last_input(self) -> bytes:
        """The input that was tried last."""
        held = self.place.read_bytes() if self.place.exists() else b""
        return held[8 : 8 + int.from_bytes(held[:8], "little")]


def work(share: Share) -> tuple[str, int, int, int]:
    """Fuzz one reader for a while: its name, runs, pairs of lines covered, and findings."""
    target, seeds = targets()[share.name]
    inputs = [*seeds, *from_folder(share.name, share.options.data)]
    longest = max(LONGEST, *map(len, inputs))
    with share.place.open("w+b") as file:
        file.truncate(8 + longest)
        with mmap.mmap(file.fileno(), 0) as held:

            def note(data: bytes) -> None:
                held[: 8 + len(data)] = len(data).to_bytes(8, "little") + data

            runs, pairs, findings = fuzz(
                target, inputs, share.seconds, softmap.SoftmapError, share.seed, note
            )
    share.place.unlink()
    for content, what in findings:
        report(share.name, content, what, share.options.out)
    return share.name, runs, pairs, len(findings)


class Counts:
    """Runs, pairs of lines covered, and findings of each reader."""

    def __init__(self, names: list[str]) -> None:
        self.done = {name: [0, 0, 0] for name in names}

    @property
    def total(self) -> int:
        """The number of inputs tried."""
        return sum(numbers[0] for numbers in self.done.values())

    @property
    def findings(self) -> int:
        """The number of findings."""
        return sum(numbers[2] for numbers in self.done.values())

    def add(self, name: str, runs: int, pairs: int, found: int) -> None:
        """Add what a share has tried."""
        before = self.done[name]
        self.done[name] = [before[0] + runs, max(before[1], pairs), before[2] + found]


def shares(options: argparse.Namespace, counts: Counts, folder: Path) -> Iterator[Share]:
    """Yield shares of all readers in turn until the count is reached or the time is over."""
    most = options.seconds or (math.inf if options.count else SECONDS)
    end, names = time.monotonic() + most, list(counts.done)
    fair = options.count / SLOWEST if options.count else most * options.workers
    each = min(SHARE, max(1.0, fair / len(names)))
    for seed in itertools.count(options.seed):
        if options.count and counts.total >= options.count:
            return
        for name in names:
            left = end - time.monotonic()
            if left <= 0:
                return
            yield Share(name, seed, min(each, left), options, folder / f"{name}-{seed}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[*targets(), "all"])
    parser.add_argument("--seconds", type=float, help="the most seconds, 60 without a count")
    parser.add_argument("--count", type=int, default=0, help="go on until so many were tried")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--data", type=Path)
    options, rest = parser.parse_known_args()
    if atheris and options.name != "all" and options.workers == 1:
        limit_memory()
        with_atheris(options.name, options, rest)
    counts = Counts(list(targets()) if options.name == "all" else [options.name])
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, interruptible():
        campaign(options, counts, Path(folder))
    for name, (runs, pairs, found) in counts.done.items():
        print(f"{name}: {runs:,} runs, {pairs} pairs of lines, {found} findings")
    print(f"{counts.total:,} inputs in all, {counts.findings} findings")
    return 1 if counts.findings else 0


def campaign(options: argparse.Namespace, counts: Counts, folder: Path) -> None:
    """Fuzz in several processes, and count."""
    told = time.monotonic()
    tasks = shares(options, counts, folder)
    for found in spread(tasks, options.workers, work, begin=begin_worker, limit=SHARE + PATIENCE):
        if isinstance(found, Lost):
            counts.add(found.task.name, 1, 0, 1)
            report(found.task.name, found.task.last_input(), found.how, options.out)
        else:
            counts.add(*found)
        if time.monotonic() - told > SHARE:
            told = time.monotonic()
            print(f"# {counts.total:,} inputs, {counts.findings} findings", flush=True)


def report(name: str, data: bytes, what: BaseException | float | str, out: Path | None) -> None:
    if isinstance(what, BaseException):
        traceback.print_exception(what)
    elif isinstance(what, str):
        print(what)
    else:
        print(f"slow: {what:.2f} s")
    print(f"{name}: {data[:300]!r}", flush=True)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(data).hexdigest()[:12]
        (out / f"{name}-{digest}").write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
