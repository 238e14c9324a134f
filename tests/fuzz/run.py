"""Fuzz one reader: `python tests/fuzz/run.py uai --seconds 600`.

With atheris installed it drives the readers (which also takes its own options); otherwise the small
fuzzer of `mutate.py` does. Findings are printed and written to the folder given by `--out`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import resource
import sys
import tempfile
import traceback
from pathlib import Path

try:
    import atheris
except ImportError:
    atheris = None

# atheris sees only code that is imported under its eyes
with atheris.instrument_imports(include=["softmap"]) if atheris else contextlib.nullcontext():
    from mutate import fuzz
    from targets import targets

    import softmap

MEMORY = 4 << 30


def with_atheris(name: str, seconds: float, seed: int, rest: list[str]) -> None:
    """Hand over to atheris, with the seeds of the target as its corpus; it never returns."""
    target, seeds = targets()[name]
    corpus = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
    for k, data in enumerate(seeds):
        (corpus / f"seed{k}").write_bytes(data)

    def one_input(data: bytes) -> None:
        with contextlib.suppress(softmap.SoftmapError):
            target(data)

    limits = [f"-max_total_time={seconds:.0f}", f"-seed={seed + 1}", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], *limits, *rest, str(corpus)], one_input)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[*targets(), "all"])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options, rest = parser.parse_known_args()
    # an absurd allocation shall fail here, not bring the machine down
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if atheris and options.name != "all":
        with_atheris(options.name, options.seconds, options.seed, rest)
    found = 0
    for name in targets() if options.name == "all" else [options.name]:
        target, seeds = targets()[name]
        runs, pairs, findings = fuzz(
            target, seeds, options.seconds, softmap.SoftmapError, options.seed
        )
        print(f"{name}: {runs} runs, {pairs} pairs of lines, {len(findings)} findings", flush=True)
        for data, what in findings:
            report(name, data, what, options.out)
        found += len(findings)
    return 1 if found else 0


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
