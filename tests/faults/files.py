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

    python tests/faults/files.py [--only solve] [--every 1] [--workers 2]
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import gc
import itertools
import json
import math
import os
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from faults.processes import forked, preloaded
from support.spreading import Lost, interruptible, spread

HERE = Path(__file__).resolve().parent
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
    r"|\S*/softmap-faults-[^/]*/run-\d+"
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
    from softmap.drive import checkpoint

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
    assert found.n == model_of(path.parent).n


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
    data, at, kind = path.read_bytes(), 8, b""
    while kind != b"IEND":  # chunks of a PNG file: length, kind, content, check sum
        end = at + 8 + int.from_bytes(data[at : at + 4])
        kind = data[at + 4 : at + 8]
        assert zlib.crc32(data[at + 4 : end]) == int.from_bytes(data[end : end + 4])
        at = end + 4
    assert at == len(data)


def whole_large(path: Path) -> None:
    whole_json(path / "result.json")
    whole_labels(path / "labels.MPE")


def whole_experiment(path: Path) -> None:
    whole_json(path / "manifest.json")
    for table in path.glob("*.csv"):
        whole_table(table)


def whole_binary(path: Path) -> None:
    import softmap

    assert softmap.read(str(path)).network.num_variables == BITS


def whole_network(path: Path) -> None:
    import softmap

    assert softmap.read(str(path)).network.num_variables


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
    from softmap.app.cli.app import explained
    from softmap.views.console import say

    try:
        LIBRARY[name]()
    except Exception as error:
        sentence, code = explained(error)
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
    "verify-json": Command("verify found.npz m.npz --json", {}, '"verdict"', 6),
    "verify-proof": Command(
        "verify m.npz --proof found.proof --export y.txt", {"y.txt": whole_export}, "proof"
    ),
    "energy": Command("energy m.npz found.npz", {}, "."),
    "energy-labels": Command("energy m.npz.gz found.MPE --json", {}, '"energy"'),
    "info": Command("info m.npz", {}, "edges"),
    "info-json": Command("info m.npz.gz --json", {}, '"edges"'),
    **{
        f"convert-{kind}": Command(f"convert m.npz y.{kind}", {f"y.{kind}": whole_model})
        for kind in ("uai", "uai.gz", "npz", "cfn", "cfn.bz2", "h5")
    },
    **{
        f"convert-{kind}": Command(f"convert b.{source} y.{kind}", {f"y.{kind}": whole_binary})
        for source, kinds in (("qubo", ("qubo", "coo", "qpbo")), ("wcnf", ("wcnf", "opb", "wcsp")))
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
    **{
        f"convert-from-{kind}": Command(f"convert b.{kind} y.npz", {"y.npz": whole_binary})
        for kind in ("lp", "mps")
    },
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
        "reproduce figure1 --graphs 1 --trials 1 --updates 200 --threads 1 --no-progress"
        " --out paper",
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

    import softmap
    from softmap.views.drawing import png
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
    entries = "".join(f" x{k} obj {k} c 1\n" for k in range(BITS))
    (folder / "b.mps").write_text(
        f"NAME b\nROWS\n N obj\n G c\nCOLUMNS\n M1 'MARKER' 'INTORG'\n{entries}"
        " M2 'MARKER' 'INTEND'\nRHS\n R c 1\nENDATA\n"
    )
    (folder / "n.bif").write_bytes(SAMPLES["bif"][0])
    grey = np.random.default_rng(2).integers(0, 255, (10, 10), dtype=np.uint8)
    (folder / "grey.png").write_bytes(png(grey))


# --- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Attributes
    ----------
    code : int
        The exit code; below 0 if a signal ended the process.
    calls : str
        The calls counted, one letter each, as in shim.c.
    hit : str
        The first call that failed, and its file; empty if none did.
    modules : list of str
        All modules imported.
    """

    code: int
    calls: str
    hit: str
    modules: list[str] = field(default_factory=list)


class Shim:
    """The calls that count, and fail."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.faults_calls.restype = ctypes.c_char_p
        self._library.faults_hit.restype = ctypes.c_char_p

    def arm(self, folder: Path | str, number: int, kind: str) -> None:
        error, lasting = KINDS[kind]
        where = os.fsencode(f"{folder}/" if folder else "")
        self._library.faults_arm(where, ctypes.c_long(number), error, lasting)

    def counted(self) -> tuple[str, str]:
        return self._library.faults_calls().decode(), os.fsdecode(self._library.faults_hit())


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
    code = forked(action, LIMIT)
    found = json.loads(told.read_text()) if told.exists() else ["", "", []]
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
    words = command.words
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
    tried = tried or (call == "opendir" and ended.calls.count("w") < 2)  # nothing but the message
    read = broken not in command.targets or (call == "open" and f"--resume {broken}" in words)
    early = tried or (broken in before and read)
    if not early and broken not in INSIDE and command.answer not in shown:
        found.append(f"the answer is lost (exit code {ended.code}): {said[-300:]}")
    rest = {k for k in after if k not in before and k.partition("/")[0] not in command.targets}
    rest -= INSIDE
    removing = call in ("unlink", "rmdir") or (call == "open" and Path(file).suffix == "")
    if rest and not removing and not words.startswith("demo"):
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
    kept = {k for k in command.targets if k in before and after.get(k) == before[k]}
    damaged = set(incomplete(command, kept, folder))
    for name in command.targets:
        old = name in kept
        if name in damaged and (ended.code == 0 or (folder / name).is_file()):
            found.append(f"{name} is not complete (exit code {ended.code})")
        if old and ended.code == 0 and name != "before.npz":
            found.append(f"{name} was not written, but the exit code is 0")
    return found


def incomplete(command: Command, kept: set[str], folder: Path) -> list[str]:
    """The targets that are not complete, found in a fork."""
    names = [name for name in command.targets if name not in kept]
    told = folder.with_suffix(".bad")

    def action() -> int:
        bad = [name for name in names if not accepted(command.targets[name], folder / name)]
        told.write_text(json.dumps(bad))
        return 0

    told.write_text(json.dumps(names))
    if names:
        forked(action, LIMIT)
    return json.loads(told.read_text()) if names else []


def accepted(check: Callable[[Path], object], path: Path) -> bool:
    """Whether a file is complete."""
    try:
        check(path)
    except BaseException:
        return False
    return True


# --- campaigns ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tried:
    """One run: the command, which call failed and how, how the run ended, and what is wrong."""

    name: str
    kind: str
    number: int
    ended: Ended
    wrong: list[str]


@dataclass(frozen=True)
class Campaign:
    """Runs of commands, each in a fresh copy of the inputs."""

    inputs: Path
    scratch: Path

    def fresh(self, command: Command) -> tuple[Path, dict[str, bytes]]:
        """A copy of the inputs, with older files where the command writes."""
        folder = self.scratch / f"run-{os.getpid()}"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tmp").mkdir(parents=True)
        for path in self.inputs.iterdir():
            if path.name in ("m.npz", *command.words.split()) or "library" in command.words:
                shutil.copyfile(path, folder / path.name)
        for name in command.targets:
            if "." in name and not (folder / name).exists():
                (folder / name).write_bytes(OLD)
        return folder, snapshot(folder)

    def once(self, name: str, kind: str = "full", number: int = 0) -> Tried:
        """Run a command whose call `number` fails, none for 0."""
        command = COMMANDS[name]
        folder, before = self.fresh(command)
        ended = run(command.words, folder, number, kind)
        return Tried(name, kind, number, ended, complaints(command, before, folder, ended))

    def plain(self, name: str) -> Tried:
        """Run a command without a failure."""
        tried = self.once(name)
        if tried.ended.code != COMMANDS[name].code:
            tried.wrong.append(f"exit code {tried.ended.code} without a failure")
        if not tried.ended.calls:
            tried.wrong.append("no call was counted")
        return tried

    def failing(self, task: tuple[str, str, int, bool]) -> list[Tried]:
        """Run a command whose call fails; beyond the last one counted while there are more."""
        name, kind, number, last = task
        found = [self.once(name, kind, number)]
        while last and found[-1].ended.hit:
            number += 1
            found.append(self.once(name, kind, number))
        return found


def tasks_of(tried: Tried, kinds: list[str], every: int) -> Iterator[tuple[str, str, int, bool]]:
    """All ways in which the calls of a run can fail: command, kind, number, whether it is the last.

    A failure that lasts begins with a call that it concerns: others are not changed by it.
    """
    calls = tried.ended.calls
    for kind in kinds:
        concerned = {"full": "wW", "short": "w"}.get(kind, "wW.")
        numbers = [k for k, call in enumerate(calls, start=1) if call in concerned]
        yield from ((tried.name, kind, k, k == len(calls)) for k in numbers[::every])


def tried_or_lost(found: Tried | Lost) -> Tried:
    """A run; one whose process has died is wrong."""
    if isinstance(found, Tried):
        return found
    name, kind, number, _ = found.task if isinstance(found.task, tuple) else (found.task, "", 0, 0)
    return Tried(name, kind, number, Ended(0, "", ""), [found.how])


def forgiving_import(name: str) -> None:
    import importlib

    try:
        importlib.import_module(name)
    except Exception:
        sys.modules.pop(name, None)


def main() -> int:
    """Run all campaigns; 1 if a run was wrong."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--only", nargs="*", default=list(COMMANDS), help="names of commands")
    reader.add_argument("--every", type=int, default=1, help="every n-th call only")
    reader.add_argument("--seconds", type=float, default=math.inf, help="start no run after these")
    reader.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    reader.add_argument("--kinds", nargs="*", default=list(KINDS))
    said = reader.parse_args()
    if (code := preloaded(HERE / "shim.c")) is not None:
        return code
    with tempfile.TemporaryDirectory(prefix="softmap-faults-") as place:
        return campaigns(Path(place), said)


def campaigns(place: Path, said: argparse.Namespace) -> int:
    inputs = place / "inputs"
    inputs.mkdir()
    forgiving_import("softmap.app.cli.app")  # once, not in each of the first runs
    if forked(lambda: int(prepare(inputs) is not None)):
        print("the inputs could not be written")
        return 2
    campaign, began = Campaign(inputs, place), time.monotonic()
    plain = [tried_or_lost(one) for one in spread(said.only, said.workers, campaign.plain)]
    for name in sorted({name for tried in plain for name in tried.ended.modules}):
        if name not in sys.modules and not name.startswith("_"):  # so that no run imports them
            forgiving_import(name)
    gc.collect()
    gc.freeze()  # forks need not look at, and copy, what is here now
    tasks = [task for tried in plain for task in tasks_of(tried, said.kinds, said.every)]
    counted = Counted()
    counted.add(plain)
    end = began + said.seconds
    due = itertools.takewhile(lambda _: time.monotonic() < end, tasks)
    done = 0
    with interruptible():
        for several in spread(due, said.workers, campaign.failing):
            done += 1
            counted.add([tried_or_lost(several)] if isinstance(several, Lost) else several)
    for name, runs in counted.runs.items():
        print(f"{name}: {runs} runs")
    for kind in said.kinds:
        print(f"{kind}: {counted.kinds[kind]} runs in which a call failed")
    took = time.monotonic() - began
    of = f"{done} of {len(tasks)} calls"
    print(f"{of}, {counted.runs.total()} runs, {counted.wrong} wrong, {took:.0f} s")
    return int(counted.wrong > 0)


class Counted:
    """Counts of runs; what is wrong is printed, one example of each."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.wrong = 0
        self._seen: set[tuple[str, ...]] = set()

    def add(self, several: list[Tried]) -> None:
        for tried in several:
            self.runs[tried.name] += 1
            self.kinds[tried.kind] += bool(tried.ended.hit)
            self.wrong += bool(tried.wrong)
            words = [TEMPORARY.sub("*", sentence) for sentence in tried.wrong]
            if words and (example := (tried.name, tried.kind, *words)) not in self._seen:
                self._seen.add(example)
                where = TEMPORARY.sub("*", tried.ended.hit)
                place = f"{tried.name}, {tried.kind} at call {tried.number} ({where}):"
                print(place, *words, sep="\n    ", flush=True)


if __name__ == "__main__":
    sys.exit(main())
