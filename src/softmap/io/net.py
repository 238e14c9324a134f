"""NET (Hugin): Bayesian networks as blocks `node` and `potential`, tables in nested brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from softmap.io.atomic import write_text
from softmap.io.bayes import NO_QUOTES, Network, check_names, conditionals, names_of, open_blocks
from softmap.io.blocks import Blocks, plain_numbers
from softmap.io.named import Named
from softmap.io.streams import Content, Source, load
from softmap.model import Model

__all__ = ["format_net", "named_net", "parse_net", "read_net", "write_net"]

_PLAIN = bytes.maketrans(b"(),", b"   ")
_VALUE = re.compile(rb"""\s*+=((?:[^";]++|"[^"]*+")*+);""")
_NAME = re.compile(r"[^\s{}()\[\],;|\"%=]+")


def parse_net(data: bytes | Content) -> Model:
    """Model from the text of a NET file."""
    return named_net(data).model


def read_net(source: Source) -> Model:
    """Model from a NET file; `softmap.io.read_named` keeps the names."""
    return parse_net(load(source))


def named_net(data: bytes | Content) -> Named:
    """The same with the names of variables and states."""
    blocks, network = open_blocks(data, b"%")
    while not blocks.done():
        kind = blocks.word("net, node or potential")
        if kind in ("net", "class"):
            blocks.until(b"{", "'{'")
            while not blocks.sign(b"}"):
                _attribute(blocks)
        elif kind in ("node", "discrete"):
            _node(blocks, network, kind)
        elif kind == "potential":
            _potential(blocks, network)
        else:
            raise network.error("net, node or potential (others are not supported)", kind)
    return network.named()


def _attribute(blocks: Blocks) -> tuple[str, bytes]:
    """`key = text;` as it stands; quoted texts may hold semicolons."""
    key = blocks.word("an attribute")
    match = _VALUE.match(blocks.data, blocks.at)
    if match is None:
        raise blocks.error("'=', a value and ';'")
    blocks.at = match.end()
    return key, match[1]


def _node(blocks: Blocks, network: Network, kind: str) -> None:
    if kind == "discrete":
        blocks.word("node")
    name = blocks.word("the name of a node")
    blocks.expect(b"{")
    states: list[str] = []
    while not blocks.sign(b"}"):
        key, text = _attribute(blocks)
        if key == "states":
            inner = Blocks(blocks.content, text)
            if not inner.sign(b"("):
                raise network.error("states in brackets", text[:40].decode("latin-1"))
            states = inner.words(b")", "the name of a state")
    network.add_variable(name, states)


def _potential(blocks: Blocks, network: Network) -> None:
    blocks.expect(b"(")
    child = blocks.word("the name of a node")
    parents = []
    if blocks.sign(b"|"):
        parents = blocks.words(b")", "the name of a parent")
    else:
        blocks.expect(b")")
    i, others, shape = network.scope(child, parents)
    blocks.expect(b"{")
    text = None
    while not blocks.sign(b"}"):
        key, value = _attribute(blocks)
        if key == "data":
            text = value
        elif key.startswith("model"):
            raise network.error("data (tables made by formulas are not supported)", key)
    if text is None:
        network.add_table(i, others, np.full(shape, 1.0 / shape[-1]))  # as the format has it
        return
    values = plain_numbers(text.translate(_PLAIN))
    if values is None or len(values) != np.prod(shape):
        found = text[:60].strip().decode("utf-8", "backslashreplace")
        raise network.error(f"{int(np.prod(shape))} probabilities of {child!r}", found)
    network.add_table(i, others, values.reshape(shape))


def write_net(model: Model | Named, target: Source) -> None:
    """Write a NET file; the model must be a Bayesian network."""
    write_text(target, format_net(model))


def format_net(model: Model | Named) -> Iterator[str]:
    """Text of a NET file, in pieces; names of nodes are written as they are."""
    named = names_of(model)
    parts = conditionals(named.model)
    check_names(named, "NET", _NAME, NO_QUOTES)
    yield "net\n{\n}\n"
    for name, own in zip(named.variables, named.states, strict=True):
        states = " ".join(f'"{state}"' for state in own)
        yield f"node {name}\n{{\n  states = ( {states} );\n}}\n"
    for part in parts:
        given = " | " + " ".join(str(named.variables[j]) for j in part.parents)
        head = f"{named.variables[part.child]}{given if part.parents else ''}"
        yield f"potential ( {head} )\n{{\n  data = "
        yield _nested(np.exp(-part.table).tolist())
        yield ";\n}\n"


def _nested(values: list[object] | float) -> str:
    if not isinstance(values, list):
        return repr(values)
    return f"( {' '.join(_nested(v) for v in values)} )"  # type: ignore[arg-type]
