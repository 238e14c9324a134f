"""Labellings and evidence: `.MPE` and `.sol` files, QAPLIB solutions, observed labels."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import FormatError, ModelError, OptionError, shown
from softmap.io.atomic import write_text
from softmap.io.streams import Content, Source, bare_suffixes, load
from softmap.io.tokens import Numbers, quote, skip_comments
from softmap.model import Model, checked_model
from softmap.model.potentials.base import integers

Labels = NDArray[np.int64]

_HEADER = re.compile(rb"\s*(\S+)")
_BEGIN = re.compile(rb"-BEGIN-")
_AGAIN = re.compile(rb"\s*(?:MPE|MAP)\b", re.IGNORECASE)
_LABEL = re.compile(rb"\d{1,9}")
_SUFFIXES = {
    "": "mpe", ".mpe": "mpe", ".map": "mpe", ".txt": "mpe", ".sol": "sol", ".json": "json",
}  # fmt: skip


def read_labels(source: Source, model: Model | None = None) -> Labels:
    """Read a labelling from an `.MPE`, `.sol` or JSON file.

    Of several labellings, it is the last one, as competitions define it.

    Parameters
    ----------
    source : path, "-" or binary file
        The file; "-" is standard input.
    model : Model, optional
        The model of the labelling; required if the file contains names.
    """
    return read_labellings(source, model)[-1]


def read_labellings(source: Source, model: Model | None = None) -> list[Labels]:
    """Read all labellings of a file, in its order; see `read_labels`.

    Parameters
    ----------
    source : path, "-" or binary file
        The file; "-" is standard input.
    model : Model, optional
        The model of the labellings; required if the file contains names.
    """
    return parse_labellings(load(source), model)


def format_labellings(labellings: Sequence[ArrayLike]) -> str:
    """The text of an `.MPE` file; several labellings follow their number, one per line.

    A labelling of a grid is written row by row.
    """
    rows = [_flat(labels) for labels in _listed(labellings)]
    head = "MPE\n" if len(rows) == 1 else f"MPE\n{len(rows)}\n"
    return head + "".join(" ".join(map(str, (len(row), *row))) + "\n" for row in rows)


def write_labels(labels: ArrayLike, target: Source, model: Model | None = None) -> None:
    """Write a labelling; the suffix selects `.sol` (toulbar2), `.json` or `.MPE`.

    Parameters
    ----------
    labels : int array
        The labels.
    target : path, "-" or binary file
        The file; "-" is standard output. Without a suffix, or with `.txt`, it is an `.MPE` file.
    model : Model, optional
        The model, whose names are used in `.sol` and `.json` files.
    """
    write_labellings([labels], target, model)


def labels_format(target: Source) -> str:
    """Return the format of a labelling by the suffix of its file: "mpe", "sol" or "json".

    Raises
    ------
    OptionError
        The suffix is another one.
    """
    suffix = (bare_suffixes(getattr(target, "name", target)) or [""])[-1]
    if suffix not in _SUFFIXES:
        known = "no suffix, .MPE, .MAP, .txt, .sol or .json"
        raise OptionError(f"{target}: a labelling is written to {known}, not to {suffix}")
    return _SUFFIXES[suffix]


def write_labellings(
    labellings: Sequence[ArrayLike], target: Source, model: Model | None = None
) -> None:
    """Write several labellings to one file; see `write_labels`.

    Parameters
    ----------
    labellings : list of int arrays
        The labellings.
    target : path, "-" or binary file
        The file; "-" is standard output.
    model : Model, optional
        The model, whose names are used in `.sol` and `.json` files.
    """
    labellings = _listed(labellings)
    if model is not None:
        checked_model(model, "write_labellings")
    form = labels_format(target)
    if form == "sol":
        text = "".join(f"{' '.join(_words(labels, model))}\n" for labels in labellings)
    elif form == "json":
        objects = [labelling_object(_flat(labels), model) for labels in labellings]
        text = json.dumps(objects[0] if len(objects) == 1 else objects, default=str) + "\n"
    else:
        text = format_labellings(labellings)
    write_text(target, [text])


def labelling_object(labels: Sequence[int], model: Model | None) -> dict[str, Any]:
    """A labelling as a JSON object: labels by number, and by name if the model has names."""
    found: dict[str, Any] = {"labels": list(labels)}
    if model is not None and model.names is not None:
        named = model.names.as_dict(np.array(labels, dtype=np.int64))
        found["assignment"] = {str(name): state for name, state in named.items()}
    return found


def _listed(labellings: Any) -> list[Any]:
    if isinstance(labellings, str | bytes | dict) or not np.iterable(labellings):
        raise ModelError(f"expected a list of labellings, not {shown(labellings)}")
    return list(labellings)


def _flat(labels: ArrayLike) -> list[int]:
    array = integers(labels, "labels")
    if array.ndim < 1:
        raise ModelError(f"labels must be a list of integers, not {array.dtype} {array.shape}")
    row: list[int] = array.reshape(-1).tolist()
    return row


def _words(labels: ArrayLike, model: Model | None) -> list[str]:
    """Labels as numbers, or as `variable=label` if no name needs quotes."""
    row = _flat(labels)
    if model is None or model.names is None:
        return [str(label) for label in row]
    pairs = model.names.as_dict(np.array(row, dtype=np.int64)).items()
    words = [f"{name}={state}" for name, state in pairs]
    plain = all(re.fullmatch(r"[^\s=,]+=[^\s=,]+", word) for word in words)
    return words if plain else [str(label) for label in row]


def parse_labellings(content: Content, model: Model | None = None) -> list[Labels]:
    """Parse all labellings: `MPE`, toulbar2's `.sol`, or the JSON of `softmap solve --json`.

    A `.sol` file has one labelling per line: labels by number, or, if the model has names, by name
    or as pairs `variable=label`. An `MPE` file has one labelling, or several, which are separated
    by `-BEGIN-` or preceded by their number.

    Parameters
    ----------
    content : Content
        The text.
    model : Model, optional
        The model of the labellings, which resolves names. A labelling that does not fit it raises
        `FormatError`.
    """
    content.data = skip_comments(content.data)
    header = _HEADER.match(content.data)
    if header is None:
        raise content.error("labels", "the end of the file", 1)
    if header[1][:1] in (b"{", b"["):
        found = _from_json(content)
    elif header[1].upper() in (b"MPE", b"MAP"):
        found = _from_mpe(content, header.end())
    elif _LABEL.fullmatch(header[1]) or model is not None:
        found = _from_lines(content, model)
    else:
        raise content.error("MPE, MAP or labels", quote(header[1]), 1)
    if model is not None:
        for labels in found:
            _check_fit(labels, model, content)
    return found


def _check_fit(labels: Labels, model: Model, content: Content) -> None:
    counts = model.num_labels
    if len(labels) != len(counts):
        raise content.error(f"labels of {len(counts)} variables", len(labels))
    if (bad := (labels < 0) | (labels >= counts)).any():
        i = int(np.argmax(bad))
        raise content.error(f"a label 0 to {counts[i] - 1} of variable {i}", labels[i])


def _from_mpe(content: Content, start: int) -> list[Labels]:
    places = [start, *(mark.end() for mark in _BEGIN.finditer(content.data))]
    ends = [*(mark.start() for mark in _BEGIN.finditer(content.data)), len(content.data)]
    found: list[Labels] = []
    for begin, end in zip(places, ends, strict=True):
        again = _AGAIN.match(content.data, begin, end)
        first = again.end() if again else begin
        lines = content.data.count(b"\n", 0, first)
        part = Content(b"\n" * lines + content.data[first:end], content.name)
        if part.data.strip() or begin == places[-1]:
            found += _block(Numbers(part))
    return found


def _block(numbers: Numbers) -> list[Labels]:
    """Parse one labelling with its length, or several preceded by their number."""
    values = numbers.values
    several = 1
    if len(values) > 1:
        count, n = (int(k) if 0 <= k < len(values) else -1 for k in values[:2])
        if count >= 0 <= n and count * (1 + n) + 1 == len(values) != 1 + count:
            several = numbers.whole("the number of labellings", 1)
    found = []
    for _ in range(several):
        n = numbers.whole("the number of variables", 0)
        found.append(numbers.wholes(n, "labels", 0, 2**31 - 1))
    numbers.finish("the labels")
    return found


def _from_json(content: Content) -> list[Labels]:
    try:
        held = json.loads(content.data)
        objects = held if isinstance(held, list) else [held]
        rows = [one["labels"] for one in objects]
        if not rows or any(row is None for row in rows):
            raise ValueError("no labels were found")
        return [integers(row, "labels").reshape(-1) for row in rows]
    except (ValueError, KeyError, TypeError, ModelError) as error:
        raise FormatError(f"expected an object with labels ({error})", content.name) from error


def _from_lines(content: Content, model: Model | None) -> list[Labels]:
    """Parse one labelling per line, or a single labelling on several lines."""
    lines = [(number, line.split()) for number, line in enumerate(content.data.split(b"\n"), 1)]
    lines = [(number, words) for number, words in lines if words]
    sizes = {len(words) for _, words in lines}
    wanted = None if model is None else model.n
    every = [word for _, words in lines for word in words]
    if (len(sizes) > 1 or wanted not in sizes) and wanted in (None, len(every)):
        lines = [(lines[0][0], every)]
    return [_labels_of(words, number, content, model) for number, words in lines]


def _labels_of(words: list[bytes], line: int, content: Content, model: Model | None) -> Labels:
    if all(_LABEL.fullmatch(word) for word in words):
        return np.array([int(word) for word in words], dtype=np.int64)
    if model is None:
        odd = next(word for word in words if not _LABEL.fullmatch(word))
        raise content.error("a label", quote(odd), line)
    texts = [word.decode("utf-8", "backslashreplace") for word in words]
    try:
        if all("=" in text for text in texts):
            pairs = dict(text.rsplit("=", 1) for text in texts)
            return _in_order(found_labels(model, pairs), model)
        if len(texts) != model.n:
            raise ModelError(f"expected {model.n} labels, found {len(texts)}")
        return np.array([_label(model, i, text) for i, text in enumerate(texts)], dtype=np.int64)
    except ModelError as error:
        raise FormatError(str(error), content.name, line) from error


def _in_order(found: Mapping[int, int], model: Model) -> Labels:
    missing = [i for i in range(model.n) if i not in found]
    if missing:
        raise ModelError(f"expected a label of every variable, found none of {missing[0]}")
    return np.array([found[i] for i in range(model.n)], dtype=np.int64)


def found_labels(model: Model, pairs: Mapping[str, str]) -> dict[int, int]:
    """Resolve pairs of variable and label, each given as text by number or by name.

    In a model without names, `x7` is variable 7.
    """
    return {(i := _variable(model, name)): _label(model, i, text) for name, text in pairs.items()}


def _variable(model: Model, name: str) -> int:
    if model.names is not None and name in model.names.place:
        return model.names.place[name]
    number = name[1:] if model.names is None and name[:1] in ("x", "X") else name
    if number.isdecimal() and int(number) < model.n:
        return int(number)
    if model.names is not None:
        return model.names.number(name)
    last = model.n - 1
    raise ModelError(f"there is no variable {shown(name)}; expected a number 0 to {last}")


def _label(model: Model, i: int, text: str) -> int:
    states = None if model.names is None else model.names.states[i]
    if states is not None and text in states:
        return states.index(text)
    if text.isdecimal() and int(text) < model.num_labels[i]:
        return int(text)
    if model.names is not None and states is not None:
        return int(model.names.label(i, text))
    raise ModelError(f"variable {i} has labels 0 to {model.num_labels[i] - 1}, not {shown(text)}")


def inline_evidence(model: Model, text: str) -> dict[int, int]:
    """Parse evidence such as `0=3,x7=1`: variables and labels by number or name."""
    pairs: dict[str, str] = {}
    for word in text.split(","):
        name, equals, state = (part.strip() for part in word.partition("="))
        if not equals or not name or not state:
            raise ModelError(f"expected pairs such as 0=3,x7=1, found {shown(word)}")
        if pairs.setdefault(name, state) != state:
            raise ModelError(f"variable {name} is observed as {pairs[name]} and as {state}")
    return found_labels(model, pairs)


def read_sln(source: Source) -> tuple[NDArray[np.int64], float]:
    """Read a QAPLIB solution (`n value permutation`, from 1); return its labels and its value."""
    content = load(source)
    content.data = content.data.replace(b",", b" ")
    numbers = Numbers(content)
    n = numbers.whole("the size of the permutation", 1, 2**31 - 1)
    if not numbers.left:
        raise numbers.fail(len(numbers), "the value of the solution")
    value = float(numbers.values[1])
    numbers.at += 1
    labels = numbers.wholes(n, "entries of the permutation", 1, n) - 1
    numbers.finish("the permutation")
    if len(np.unique(labels)) != n:
        raise content.error(f"each of 1 to {n} once")
    return labels, value


def read_evidence(source: Source) -> dict[int, int]:
    """Read evidence from a file; return observed labels by variable.

    The text holds `k v1 x1 ... vk xk`, on one line (2014 and later) or on several (2008). In the
    older layout, the number of samples comes first, and each sample has this form. If both layouts
    fit, the newer one is used. Several samples are accepted only if they are equal.
    """
    numbers = _numbers_of(source)
    if len(numbers) == 0:
        raise numbers.content.error("the number of observed variables", line=1)
    tokens = numbers.wholes(len(numbers), "counts, variables and labels", 0, 2**31 - 1)
    if len(tokens) == 1 + 2 * tokens[0]:
        return _pairs(numbers, tokens[1:], {})
    return _samples(numbers, tokens)


def read_query(source: Source) -> list[int]:
    """Read a UAI query of marginal MAP, `k v1 ... vk`; return the variables that are maximised."""
    numbers = _numbers_of(source)
    many = numbers.whole("the number of maximised variables", 0, 2**31 - 1)
    found = numbers.wholes(many, "maximised variables", 0, 2**31 - 1).tolist()
    numbers.finish("the maximised variables")
    if len(set(found)) < many:
        raise numbers.content.error("each variable once")
    return [int(v) for v in found]


def format_maxima(variables: NDArray[np.int64], labels: NDArray[np.int64]) -> str:
    """The text of an `.MMAP` file: the number of variables, then each with its label."""
    pairs = np.stack([variables, labels], axis=1).ravel().tolist()
    return "MMAP\n" + " ".join(map(str, (len(variables), *pairs))) + "\n"


def _numbers_of(source: Source) -> Numbers:
    """Return the numbers of a file without its comments."""
    content = load(source)
    content.data = skip_comments(content.data)
    return Numbers(content)


def _samples(numbers: Numbers, tokens: NDArray[np.int64]) -> dict[int, int]:
    found: dict[int, int] = {}
    at = 1
    for _ in range(int(tokens[0])):
        if at >= len(tokens) or at + 2 * int(tokens[at]) >= len(tokens):
            raise _unreadable(numbers, tokens)
        end = at + 1 + 2 * int(tokens[at])
        _pairs(numbers, tokens[at + 1 : end], found)
        at = end
    if at != len(tokens):
        raise _unreadable(numbers, tokens)
    return found


def _unreadable(numbers: Numbers, tokens: NDArray[np.int64]) -> FormatError:
    return FormatError(
        f"expected {tokens[0]} pairs of variable and label, or {tokens[0]} samples of them; "
        f"found {len(tokens) - 1} more numbers",
        numbers.content.name,
        numbers.line(0),
        expected="pairs of variable and label",
    )


def _pairs(numbers: Numbers, tokens: NDArray[np.int64], found: dict[int, int]) -> dict[int, int]:
    for i, x in tokens.reshape(-1, 2).tolist():
        if found.setdefault(i, x) != x:
            message = f"variable {i} is observed as {found[i]} and as {x}"
            raise FormatError(message, numbers.content.name, expected="one label per variable")
    return found
