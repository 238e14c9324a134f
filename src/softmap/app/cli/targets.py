"""The files that a command reads and writes.

Those that it writes are checked before the run and written one by one after it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from softmap.errors import (
    CheckpointWarning,
    OptionError,
    ProofWarning,
    SoftmapError,
    StageWarning,
)
from softmap.views.console import discard_output, say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from softmap.model import Model


REPORTED = (CheckpointWarning, ProofWarning)  # of files that are not written as asked
STANDARD = Path("-")  # standard input or output
FAILURE = 1  # the exit code if a requested file was not written
# What is written for an option, and endings that promise something else.
WRITTEN = {
    "--report": ("an HTML page (.html)", ".pdf .png .svg .jpg .md .txt .json .docx"),
    "--trace": ("a table (.csv)", ".json .xlsx .html .parquet"),
}


class Targets:
    """The files a command writes, by the option that names each.

    The constructor raises an error if a file could not be written after the run, or would replace
    an input or another target. If writing one target fails later, the error is reported and the
    other targets are still written.

    Parameters
    ----------
    targets : mapping
        Option (or a name for a file without an option) to path; None if the option was not given.
        The path "-" is standard output.
    sources : mapping
        Description of each input to its path.
    """

    def __init__(
        self, targets: Mapping[str, Path | None], sources: Mapping[str, Path | None]
    ) -> None:
        self._paths = {name: path for name, path in targets.items() if path is not None}
        self.written: list[Path] = []
        self._failed = False
        self._defect: Exception | None = None
        read = {name: path for name, path in sources.items() if path not in (None, STANDARD)}
        seen: dict[str, Path] = {}
        for name, path in self._paths.items():
            for what, source in read.items():
                if source is not None and _coincide(path, source):
                    raise OptionError(f"{name} {path} would replace {what}, {source}")
            for other, earlier in seen.items():
                if _coincide(path, earlier):
                    raise OptionError(f"{other} {earlier} and {name} {path} are the same file")
            seen[name] = path
        for name, path in self._paths.items():
            if path != STANDARD:
                _try(name, path)
            if name == "--output":
                from softmap.io.results import labels_format  # not needed by other targets

                labels_format(path)
            elif name in WRITTEN and path.suffix.lower() in WRITTEN[name][1].split():
                raise OptionError(f"{name} {path}: {WRITTEN[name][0]} is written, no {path.suffix}")

    def path(self, name: str) -> Path | None:
        """The path given for an option, or None."""
        return self._paths.get(name)

    def write(self, name: str, action: Callable[[Path], object]) -> None:
        """Write a target if it was requested; report a failure."""
        if name in self._paths:
            self.write_to(name, self._paths[name], action)

    def write_to(self, name: str, path: Path, action: Callable[[Path], object]) -> None:
        """Write a file that was not known before the run; report a failure."""
        try:
            action(path)
        except (OSError, SoftmapError) as error:
            self._failed = True
            words = str(error) if isinstance(error, SoftmapError) else f"{path}: {error.strerror}"
            say(f"{name} {words}")
        except Exception as error:  # defects are raised in `exit_code`
            self._defect = self._defect or error
        else:
            self.written.append(path)

    @contextmanager
    def printing(self) -> Iterator[None]:
        """Print inside this context; report a full disk, but not a closed pipe."""
        try:
            yield
            sys.stdout.flush()
        except OSError as error:
            discard_output()
            if not isinstance(error, BrokenPipeError):
                self._failed = True
                say(f"standard output: {error.strerror}")

    @contextmanager
    def solving(self) -> Iterator[None]:
        """Run a solver inside this context.

        A checkpoint or proof that it cannot write, and a subsolver that has failed, are reported.
        """
        with warnings.catch_warnings():
            usual = warnings.showwarning

            def show(message: Any, kind: type[Warning], *where: Any) -> None:
                if not issubclass(kind, (*REPORTED, StageWarning)):
                    usual(message, kind, *where)
                    return
                say(str(message))
                if issubclass(kind, REPORTED):
                    self._failed = self._failed or not getattr(message, "written", False)

            warnings.showwarning = cast("Any", show)
            for kind in (*REPORTED, StageWarning):
                warnings.simplefilter("always", kind)
            yield

    def tell(self) -> None:
        """Print the names of the files written."""
        if self.written:
            with self.printing():
                print("Wrote " + ", ".join(map(str, self.written)))

    def exit_code(self, code: int = 0) -> int:
        """Return `code`, or `FAILURE` if a target was not written."""
        if self._defect is not None:
            raise self._defect
        return code or (FAILURE if self._failed else 0)


def _coincide(one: Path, other: Path) -> bool:
    """Whether two paths are both standard output, or lead to the same regular file."""
    from softmap.io.store import same_file  # imported late: it needs numpy

    return one == other if STANDARD in (one, other) else same_file(one, other)


def check_folder(
    name: str, folder: Path, sources: Iterable[Path] = (), written: Iterable[str] = ()
) -> None:
    """Create a folder for results if needed; raise an error if it is not writable.

    Parameters
    ----------
    name : str
        The option that names the folder.
    folder : Path
        The folder.
    sources : iterable of Path
        Files that the command reads. None may be a file that the command writes.
    written : iterable of str
        Patterns of the names of the files that the command writes into the folder.
    """
    import tempfile  # not every command writes files

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OptionError(f"{name} {folder}: cannot be written: {error.strerror}") from error
    read = {_identity(path) for path in sources if path.is_file()}
    for pattern in written:
        for path in folder.glob(pattern):
            if path.is_file() and _identity(path) in read:
                raise OptionError(f"{name} {folder}: {path} is an input, and would be replaced")


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _try(name: str, path: Path) -> None:
    """Raise an error if a file could not be written; links are followed."""
    if path.is_dir():
        raise OptionError(f"{name} {path} is a folder; name a file")
    if path.exists() and not path.is_file():
        return  # devices and pipes are not replaced, so the folder does not matter
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise OptionError(f"{name} {path}: there is no folder {path.parent}; make it first")
    check_folder(f"{name} {path}:", folder)


def check_picture(name: str, path: Path) -> None:
    """Raise an error before the run if the suffix of a picture is not known."""
    from softmap.views.plotting import picture_format

    try:
        picture_format(path)
    except OptionError as error:
        raise OptionError(f"{name} {error}") from None


def read_model(
    path: Path,
    *,
    values: str | None = None,
    form: str | None = None,
    block: int | None = None,
    evidence: str | None = None,
) -> Model:
    """Read a model and apply its evidence, given as a file or as text such as `0=3,x7=1`."""
    import softmap

    options: dict[str, Any] = {} if block is None else {"block": block}
    return softmap.read(str(path), values=values, format=form, evidence=evidence, **options)


def evidence_file(evidence: str | None) -> Path | None:
    """The file of `--evidence`, or None if evidence is given as text or not at all."""
    if evidence is None or ("=" in evidence and not Path(evidence).exists()):
        return None
    return Path(evidence)


def labellings(path: Path, model: Model) -> list[NDArray[np.int64]]:
    """All labellings of a file: `.MPE`, `.sol`, JSON, or a result written by `--save`."""
    from softmap.io.results import parse_labellings
    from softmap.io.streams import load

    content = load(str(path))
    if content.data[:4] == b"PK\x03\x04":
        import softmap

        return [softmap.load_result(path, model).labels.reshape(-1)]
    return parse_labellings(content, model)


def best_labels(path: Path, model: Model) -> NDArray[np.int64]:
    """The labelling of lowest cost in a file, or the first one if all costs are infinite."""
    found = labellings(path, model)
    if not found:
        raise OptionError(f"{path}: there is no labelling in it")
    return min(found, key=lambda labels: float(model.energy(labels)))
