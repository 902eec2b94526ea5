"""Parts of readings as composers get them, without the reading."""

from typing import Any

from rules.answers import Kind
from rules.language import Language
from rules.questions.composers import Asked, Known, Piece, composer
from rules.questions.reading import Part


def part(kind: Kind, label: str, text: str, **details: Any) -> Part:
    found: dict[str, Any] = {"filters": {}, "provider": None, "field": None, "entities": {}, **details}
    return Part(
        text=text, kind=kind, label=label, confidence=1.0, kind_confidence=1.0, sure=True, rivals=(), also=(),
        matched=(), **found,
    )  # fmt: skip


def composed(
    kind: Kind, label: str, text: str, language: Language = "en", known: Known | None = None, **details: Any
) -> Piece:
    asked = Asked(part=part(kind, label, text, **details), language=language, known=known or Known(), text=text)
    make = composer(kind)
    assert make is not None
    piece = make(asked)
    assert piece is not None
    return piece


def told(piece: Piece) -> str:
    return "\n\n".join(piece.blocks)
