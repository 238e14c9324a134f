"""Every call that writes, opens, renames or removes a file fails, one after the other.

Each command runs once per call, in a fork of this process, with a shim (shim.c) loaded before the
interpreter that lets the k-th call fail: a full disk (ENOSPC, from the k-th call on), a failing one
(EIO, once), an interrupted call (EINTR, once), short writes (from the k-th on). After each run:

- the exit code is a documented one, 0 only if all files and the whole answer were written;
- an error is one sentence on standard error;
- a file that was there before is unchanged or was replaced by a complete one;
- no temporary file remains;
- the answer was printed, if only a file could not be written.

Temporary files are made below the same folder, so that their calls fail, too. A command that begins
with `library` is a function of Python.

    python tests/faults/files.py [--only solve] [--every 1]
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

SHORT = -1  # as in shim.c
KINDS = {
    "full": (errno.ENOSPC, 1), "broken": (errno.EIO, 0), "interrupted": (errno.EINTR, 0),
    "short": (SHORT, 1),
}  # fmt: skip
REASONS = [os.strerror(number) for number, _ in KINDS.values() if number > 0]
OLD = b"what was here before\n"
BITS = 6  # variables of the binary model
LIMIT = 120  # seconds for one run
INSIDE = {"stdout", "stderr"}
TEMPORARY = re.compile(
    r"(?<=\.)[a-z0-9_]{8}(?=\.part)|(?<=proof-)[a-z0-9_]{8}|(?<=tmp/tmp)[a-z0-9_]{8}"
    r"|/tmp/softmap-faults-[^/]*"
)


# --- the commands ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    """One command line, and what it writes.

    Attributes
    ----------
    words : str
        The arguments; file names are relative to a folder of the run.
    targets : dict
        What it writes, and a function that raises an exception unless the file is complete.
    answer : str
        A text in the answer on standard output; empty if the command prints none.
    code : int
        The exit code if nothing fails.
    """

    words: str
    targets: dict[str, Callable[[Path], object]] = field(default_factory=dict)
    answer: str = ""
    code: int = 0


def model_of(folder: Path):
    """The model of a run, from its folder or one below."""
    import softmap

    near = next(place for place in (folder, folder.parent) if (place / "m.npz").exists())
    return softmap.read(str(near / "m.npz"))


def whole_labels(path: Path) -> None:
    from softmap.app.cli.targets import labellings

    assert labellings(path, model_of(path.parent))


def whole_result(path: Path) -> None:
    import softmap

    assert softmap.verify(path, model_of(path.parent)).holds


def whole_proof(path: Path) -> None:
    from softmap.verification import check_proof

    check_proof(path, model_of(path.parent))


def whole_checkpoint(path: Path) -> None:
    from softmap.solving import checkpoint

    checkpoint.load(path, model_of(path.parent))


def whole_page(path: Path) -> None:
    assert path.read_text().rstrip().endswith("</html>")


def whole_table(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) > 1
    assert len({line.count(",") for line in lines}) == 1


def whole_json(path: Path) -> None:
    json.loads(path.read_text())


def whole_model(path: Path) -> None:
    import softmap

    found = softmap.read(str(path))
    assert found.num_visible == model_of(path.parent).num_visible


def whole_text(path: Path) -> None:
    assert path.read_text().rstrip().lower().endswith(("end", "endata"))


def whole_parts(path: Path) -> None:
    from softmap.scale.distributed.storage import read_part, read_whole

    whole = read_whole(path)
    for number in range(whole.parts):
        read_part(path, number, whole)


def whole_summary(path: Path) -> None:
    whole_table(path / "summary.csv")


def whole_picture(path: Path) -> None:
    from PIL import Image

    with Image.open(path) as image:
        image.load()


def whole_large(path: Path) -> None:
    whole_json(path / "result.json")
    whole_labels(path / "labels.MPE")


def whole_experiment(path: Path) -> None:
    whole_json(path / "manifest.json")
    for table in path.glob("*.csv"):
        whole_table(table)


def whole_binary(path: Path) -> None:
    import softmap

    assert softmap.read(str(path)).num_variables == BITS


def whole_network(path: Path) -> None:
    import softmap

    assert softmap.read(str(path)).num_variables


def whole_export(path: Path) -> None:
    assert path.read_text().strip()


def each(check: Callable[[Path], object], pattern: str = "*") -> Callable[[Path], object]:
    """A function that checks all files of a folder, and that there are some."""

    def found(folder: Path) -> None:
        paths = [path for path in folder.glob(pattern) if not path.name.startswith(".")]
        assert paths
        for path in paths:
            check(path)

    return found


# --- functions of Python --------------------------------------------------------------------------


def denoised() -> None:
    import softmap

    softmap.denoise("grey.png", levels=4, time_limit=5).save("clean.png")


def segmented() -> None:
    import softmap

    softmap.segment("grey.png", 2, time_limit=5).save("parts.png")


def programmed() -> None:
    import softmap

    softmap.lp.write(model_of(Path()), "y.lp")
    softmap.read("b.lp")


def many_solved() -> None:
    import softmap

    for _, answer in softmap.solve_many(["m.npz", "m.npz.gz"], workers=1):
        if isinstance(answer, Exception):
            raise answer


def resumed() -> None:
    import softmap

    softmap.resume("before.npz", model_of(Path()), threads=1).save("r.npz")


LIBRARY = {
    "denoise": denoised, "segment": segmented, "programs": programmed, "solve-many": many_solved,
    "resume": resumed,
}  # fmt: skip


def called(name: str) -> int:
    """Call a function; the exit code is that of a command which ends with its exception."""
    from softmap.app.cli.app import _explain
    from softmap.views.console import say

    try:
        LIBRARY[name]()
    except Exception as error:
        sentence, code = _explain(error)
        say(sentence)
        return code
    return 0


def alone() -> Any:
    """One process without MPI: a fork cannot start it."""
    from softmap.scale import processes

    found: Any = processes.Alone()
    found.gather = lambda value, root=0: [value]
    return found


# --- the table of commands ------------------------------------------------------------------------

ALL = (
    "solve m.npz --no-progress --threads 2 -o x.MPE --trace t.csv --report r.html --save r.npz "
    "--proof p.proof --checkpoint c.npz"
)
FILES = {
    "x.MPE": whole_labels, "t.csv": whole_table, "r.html": whole_page, "r.npz": whole_result,
    "p.proof": whole_proof, "c.npz": whole_checkpoint,
}  # fmt: skip
COMMANDS = {
    "solve": Command(ALL, FILES, "energy"),
    "files": Command(
        ALL.partition(" --proof")[0],
        {name: check for name, check in FILES.items() if name not in ("p.proof", "c.npz")},
        "energy",
    ),
    "json": Command(
        "solve m.npz --no-progress --json --save r.npz.gz", {"r.npz.gz": whole_result}, '"energy"'
    ),
    "labels": Command("solve m.npz --no-progress -o -", {}, "MPE"),
    "resume": Command(
        "solve m.npz --no-progress --resume before.npz --checkpoint before.npz --save r.npz",
        {"r.npz": whole_result, "before.npz": whole_checkpoint},
        "energy",
    ),
    "mbest": Command(
        "solve m.npz --no-progress --mbest 3 -o x.MPE.xz", {"x.MPE.xz": whole_labels}, "rank"
    ),
    "infeasible": Command("solve never.npz --no-progress", {}, "Infeasible", 4),
    "start": Command(
        "solve m.npz.gz --no-progress --initial found.MPE --evidence e.evid -o x.sol",
        {"x.sol": whole_export},
        "energy",
    ),
    "query": Command(
        "solve m.npz --no-progress --query q.query -o x.MPE", {"x.MPE": whole_export}, "optimal"
    ),
    "competition": Command("solve b.wcnf --competition maxsat", {}, "s OPTIMUM"),
    "verify": Command("verify found.npz m.npz --proof found.proof", {}, "result"),
    "verify-json": Command("verify found.npz m.npz --json", {}, '"verdict"'),
    "verify-proof": Command(
        "verify m.npz --proof found.proof --export y.txt", {"y.txt": whole_export}, "proof"
    ),
    "energy": Command("energy m.npz found.npz", {}, "."),
    "energy-labels": Command("energy m.npz.gz found.MPE --json", {}, '"energy"'),
    "info": Command("info m.npz", {}, "edges"),
    "info-json": Command("info m.npz.gz --json", {}, '"edges"'),
    **{
        f"convert-{kind}": Command(f"convert m.npz y.{kind}", {f"y.{kind}": whole_model})
        for kind in ("uai", "uai.gz", "npz", "wcsp", "cfn", "cfn.bz2", "h5")
    },
    **{
        f"convert-{kind}": Command(f"convert b.{source} y.{kind}", {f"y.{kind}": whole_binary})
        for source, kinds in (("qubo", ("qubo", "coo", "qpbo")), ("wcnf", ("wcnf", "opb")))
        for kind in kinds
    },
    **{
        f"convert-{kind}": Command(f"convert n.bif y.{kind}", {f"y.{kind}": whole_network})
        for kind in ("bif", "xmlbif", "net", "xdsl")
    },
    **{
        f"convert-{kind}": Command(f"convert m.npz y.{kind}", {f"y.{kind}": whole_text})
        for kind in ("lp", "mps")
    },
    "convert-from-lp": Command("convert b.lp y.npz", {"y.npz": whole_binary}),
    "parts": Command("convert m.npz cut --parts 2", {"cut": whole_parts}),
    "many": Command("solve-many m.npz -o out --no-progress --workers 1", {"out": whole_summary}),
    "many-proofs": Command(
        "solve-many m.npz -o out --json --workers 1 --proofs proofs",
        {"out": whole_summary, "proofs": each(whole_proof)},
        '"models"',
    ),
    "large": Command(
        "solve-large m.npz -o out --no-progress --threads 1 --max-passes 20 --parts 2",
        {"out": whole_large},
        "energy",
    ),
    "compare": Command(
        "compare m.npz --methods anneal,highs --no-progress --plot c.png",
        {"c.png": whole_picture},
        "anneal",
    ),
    **{
        f"demo-{name}": Command(
            f"demo {name} --size {size} --no-progress --out pictures --report d.html",
            {"pictures": each(whole_picture, "*.png"), "d.html": whole_page},
            "proved",
        )
        for name, size in (("denoise", 12), ("potts", 8), ("matching", 5))
    },
    "demo-image": Command(
        "demo segment --image grey.png --no-progress --out pictures",
        {"pictures": each(whole_picture, "*.png")},
        "proved",
    ),
    "doctor": Command("doctor", {}, "softmap"),
    "reproduce": Command(
        "reproduce figure1 --trials 1 --updates 200 --threads 1 --no-progress --out paper",
        {"paper": whole_experiment},
    ),
    "denoise": Command("library denoise", {"clean.png": whole_picture}),
    "segment": Command("library segment", {"parts.png": whole_picture}),
    "programs": Command("library programs", {"y.lp": whole_text}),
    "library-many": Command("library solve-many"),
    "library-resume": Command("library resume", {"r.npz": whole_result}),
}


def prepare(folder: Path) -> None:
    """Write the inputs of all commands."""
    import numpy as np
    from PIL import Image

    import softmap
    from support.samples import SAMPLES

    model = softmap.generators.erdos_renyi(24, 3, seed=3)
    softmap.write(model, folder / "m.npz")
    never = softmap.Model(np.zeros((2, 2)), [[0, 1]], np.full((1, 2, 2), np.inf))
    softmap.write(never, folder / "never.npz")
    result = softmap.solve(model, threads=1, proof=folder / "found.proof")
    result.save(folder / "found.npz", with_model=False)
    softmap.solve(model, goal="lp", threads=1, max_work=1, checkpoint=folder / "before.npz")
    softmap.write(model, folder / "m.npz.gz")
    softmap.io.write_labels(result.labels, folder / "found.MPE")
    (folder / "e.evid").write_text(f"1 0 {result.labels[0]}\n")
    (folder / "q.query").write_text("2 0 1\n")
    bits = softmap.Model.from_qubo(np.random.default_rng(1).integers(-3, 4, (BITS, BITS)))
    softmap.write(bits, folder / "b.qubo")
    (folder / "b.wcnf").write_text("h 1 2 3 4 5 6 0\nh -1 -2 0\n3 -3 0\n5 2 4 0\n1 -4 0\n")
    columns = " ".join(f"x{k}" for k in range(BITS))
    (folder / "b.lp").write_text(
        f"min\n obj: x0 + 2 x1\nst\n c: x0 + x1 >= 1\nbin\n {columns}\nend\n"
    )
    (folder / "n.bif").write_bytes(SAMPLES["bif"][0])
    grey = np.random.default_rng(2).integers(0, 255, (10, 10), dtype=np.uint8)
    Image.fromarray(grey).save(folder / "grey.png")
    (folder / "tmp").mkdir()


# --- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Attributes
    ----------
    code : int
        The exit code; below 0 if a signal ended the process.
    calls : int
        Number of calls counted.
    hit : str
        The first call that failed, and its file; empty if none did.
    modules : list of str
        All modules imported.
    """

    code: int
    calls: int
    hit: str
    modules: list[str] = field(default_factory=list)


class Shim:
    """The calls that count, and fail."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.faults_count.restype = ctypes.c_long
        self._library.faults_hit.restype = ctypes.c_char_p

    def arm(self, folder: Path | str, number: int, kind: str) -> None:
        error, lasting = KINDS[kind]
        where = os.fsencode(f"{folder}/" if folder else "")
        self._library.faults_arm(where, ctypes.c_long(number), error, lasting)

    def counted(self) -> tuple[int, str]:
        return int(self._library.faults_count()), os.fsdecode(self._library.faults_hit())


def forked(action: Callable[[], int]) -> int:
    """Run an action in a fork; return its number, or minus the signal that ended it."""
    child = os.fork()
    if not child:
        code = 97
        try:
            signal.alarm(LIMIT)
            code = action()
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status)


def run(words: str, folder: Path, number: int, kind: str) -> Ended:
    """Run one command in a folder; its call `number` fails."""
    told = folder.with_suffix(".told")

    def action() -> int:
        os.chdir(folder)
        for stream, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
            file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
            os.dup2(file, stream)
            os.close(file)
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder / "tmp")
        from softmap.app.cli.app import main
        from softmap.scale import processes

        processes.world = alone
        first, *rest = words.split()
        shim = Shim()
        shim.arm(folder, number, kind)
        code = called(*rest) if first == "library" else main([first, *rest])
        calls, hit = shim.counted()
        shim.arm("", 0, kind)
        told.write_text(json.dumps([calls, hit, sorted(sys.modules)]))
        return code

    told.unlink(missing_ok=True)
    code = forked(action)
    found = json.loads(told.read_text()) if told.exists() else [0, "", []]
    return Ended(code, *found)


def snapshot(folder: Path) -> dict[str, bytes]:
    """The content of all files below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# --- what must hold -------------------------------------------------------------------------------


def complaints(command: Command, before: dict[str, bytes], folder: Path, ended: Ended) -> list[str]:
    """What is wrong after a run."""
    after, (call, _, file) = snapshot(folder), ended.hit.partition(" ")
    broken = file.removeprefix(f"{folder}/")
    said = after["stderr"].decode(errors="replace")
    shown = after["stdout"].decode(errors="replace")
    found = []
    if ended.code not in documented():
        found.append(f"exit code {ended.code}: {said[-300:]}")
    if "Traceback" in said or "inside softmap" in said:
        found.append(f"an error of its own: {said[-300:]}")
    if ended.code in (1, 2) and ended.hit and broken != "stderr" and not clear(said, broken):
        found.append(f"no clear message: {said!r}")
    tried = broken in ("", ".") or broken.endswith("(deleted)")  # whether a folder can be written
    tried = tried or call in ("read", "mkdir")  # an input, or a folder that is made before the run
    early = tried or (broken in before and broken not in command.targets)
    if not early and broken not in INSIDE and command.answer not in shown:
        found.append(f"the answer is lost (exit code {ended.code}): {said[-300:]}")
    rest = {k for k in after if k not in before and k.partition("/")[0] not in command.targets}
    rest -= INSIDE
    removing = call in ("unlink", "rmdir") or (call == "open" and Path(file).suffix == "")
    if rest and not removing and not command.words.startswith("demo"):
        found.append(f"files remain: {sorted(rest)}")
    return found + lost(command, before, after, folder, ended)


def documented() -> set[int]:
    """The exit codes that the commands name."""
    from softmap.app.cli.options import Exit

    return {code for code in vars(Exit).values() if isinstance(code, int)}


def clear(said: str, broken: str) -> bool:
    """Whether standard error has a sentence that names the reason, or the file not read."""
    return said.startswith("softmap: ") and any(words in said for words in (*REASONS, broken))


def lost(command: Command, before: dict, after: dict, folder: Path, ended: Ended) -> list[str]:
    """The files that are neither as before nor complete."""
    found = [
        f"{name} has changed"
        for name, content in before.items()
        if name.partition("/")[0] not in command.targets and after.get(name) != content
    ]
    for name, check in command.targets.items():
        old = after.get(name) == before.get(name, OLD) and name in before
        code = 0 if old else forked(lambda name=name, check=check: accepted(check, folder / name))
        if code and (ended.code == 0 or (folder / name).is_file()):
            found.append(f"{name} is not complete (exit code {ended.code})")
        if old and ended.code == 0 and name != "before.npz":
            found.append(f"{name} was not written, but the exit code is 0")
    return found


def accepted(check: Callable[[Path], object], path: Path) -> int:
    """0 if a file is complete."""
    try:
        check(path)
    except BaseException:
        return 1
    return 0


# --- campaigns ------------------------------------------------------------------------------------


@dataclass
class Campaign:
    """Runs of one command after another, each in a fresh copy of the inputs."""

    inputs: Path
    scratch: Path
    runs: int = 0
    failed: int = 0

    def fresh(self, command: Command) -> tuple[Path, dict[str, bytes]]:
        """A copy of the inputs, with older files where the command writes."""
        folder = self.scratch / "run"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.inputs, folder)
        for name in command.targets:
            if "." in name and not (folder / name).exists():
                (folder / name).write_bytes(OLD)
        return folder, snapshot(folder)

    def one(self, command: Command, number: int, kind: str) -> tuple[Ended, list[str]]:
        """Run a command whose call `number` fails, and return what is wrong."""
        folder, before = self.fresh(command)
        ended = run(command.words, folder, number, kind)
        self.runs += 1
        return ended, complaints(command, before, folder, ended)

    def every(
        self, command: Command, every: int = 1, kinds: Iterator[str] | None = None
    ) -> Iterator[tuple[str, int, Ended, list[str]]]:
        """Let each call of a command fail in each way; yield the runs that were wrong."""
        ended, wrong = self.one(command, 0, "full")
        for name in ended.modules:  # so that no run imports them again
            if name not in sys.modules and not name.startswith("_"):
                forgiving_import(name)
        calls = ended.calls
        if ended.code != command.code:
            wrong.append(f"exit code {ended.code} without a failure")
        if wrong or not calls:
            self.failed += 1
            yield "none", 0, ended, wrong or ["no call was counted"]
        for kind in kinds or KINDS:
            for number in range(1, calls + 1, every):
                ended, wrong = self.one(command, number, kind)
                if wrong:
                    self.failed += 1
                    yield kind, number, ended, wrong


def forgiving_import(name: str) -> None:
    import importlib

    try:
        importlib.import_module(name)
    except Exception:
        sys.modules.pop(name, None)


def compiled(folder: Path) -> Path | None:
    """Compile the shim; None where that is not possible."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    library = folder / "shim.so"
    flags = ["-std=c11", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o", str(library)]
    subprocess.run([compiler, *flags, str(HERE / "shim.c"), "-ldl"], check=True)
    return library


def main() -> int:
    """Run all campaigns; 1 if a run was wrong."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--only", nargs="*", default=[], help="names of commands")
    reader.add_argument("--every", type=int, default=1, help="every n-th call only")
    reader.add_argument("--kinds", nargs="*", default=list(KINDS))
    said = reader.parse_args()
    with tempfile.TemporaryDirectory(prefix="softmap-faults-") as place:
        if "faults_arm" not in os.environ.get("SOFTMAP_FAULTS", ""):
            library = compiled(Path(place))
            if library is None:
                print("needs Linux and a C compiler")
                return 2
            loaded = {"LD_PRELOAD": str(library), "SOFTMAP_FAULTS": "faults_arm"}
            command = [sys.executable, *sys.argv]
            return subprocess.run(command, env=os.environ | loaded, check=False).returncode
        return campaigns(Path(place), said)


def campaigns(place: Path, said: argparse.Namespace) -> int:
    inputs = place / "inputs"
    inputs.mkdir()
    if forked(lambda: int(prepare(inputs) is not None)):
        print("the inputs could not be written")
        return 2
    everything = Campaign(inputs, place)
    for name, command in COMMANDS.items():
        if said.only and name not in said.only:
            continue
        before, began = everything.runs, time.monotonic()
        seen = set()
        for kind, number, ended, wrong in everything.every(command, said.every, said.kinds):
            place = TEMPORARY.sub("*", ended.hit.removeprefix(str(place)))
            words = tuple(TEMPORARY.sub("*", sentence) for sentence in wrong)
            if (kind, words) not in seen:  # one example of each
                seen.add((kind, words))
                print(
                    f"{name}, {kind} at call {number} ({place}):", *words, sep="\n    ", flush=True
                )
        took = time.monotonic() - began
        print(f"{name}: {everything.runs - before} runs in {took:.0f} s", flush=True)
    print(f"{everything.runs} runs, {everything.failed} wrong")
    return int(everything.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
