"""XML within limits: flat events of start, text and end; no entities, nothing from outside."""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

from softmap.errors import FormatError
from softmap.io.streams import Content

__all__ = ["Elements", "parse_xml"]

DEEPEST = 100
_BUFFER = 1 << 18
_STEP = 1 << 22


class Elements:
    """What a reader does with elements; `line` says where the parser is."""

    line: Any = staticmethod(lambda: None)
    heads: frozenset[str] | None = None  # elements whose beginning matters; None: all

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        raise NotImplementedError

    def end(self, name: str, text: str) -> None:
        """An element ends; `text` is what stood in it, beside other elements."""
        raise NotImplementedError


def parse_xml(content: Content, elements: Elements) -> None:
    """Hand all elements over; an entity, or brackets too deep, are refused."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.buffer_size = _BUFFER
    texts: list[list[str]] = []
    heads = elements.heads

    def refuse(what: str) -> FormatError:
        message = f"expected a plain document, found {what}"
        return FormatError(message, content.name, parser.CurrentLineNumber, expected="plain XML")

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(texts) >= DEEPEST:
            raise refuse(f"more than {DEEPEST} elements inside each other")
        if heads is None or name in heads or not texts:
            elements.start(name, attributes)
        texts.append([])

    def end(name: str) -> None:
        elements.end(name, "".join(texts.pop()))

    def text(data: str) -> None:
        if texts:
            texts[-1].append(data)

    def entity(*_: object) -> None:
        raise refuse("the declaration of an entity")

    elements.line = lambda: parser.CurrentLineNumber
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = entity
    try:
        for at in range(0, len(content.data), _STEP):
            parser.Parse(content.data[at : at + _STEP], False)
        parser.Parse(b"", True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        # the last two: encodings that are declared and not known, or not possible
        if isinstance(error, FormatError):
            raise
        line = getattr(error, "lineno", None)
        raise FormatError(f"expected XML: {error}", content.name, line, expected="XML") from error
    finally:
        parser.StartElementHandler = parser.EndElementHandler = None
        parser.CharacterDataHandler = parser.EntityDeclHandler = None
