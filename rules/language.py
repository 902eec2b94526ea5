"""The three languages people are answered in, and the text type that carries all three."""

from typing import Literal, get_args

import msgspec

Language = Literal["en", "es", "it"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


class Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One sentence or paragraph in every language; a missing one is a decoding error, not a fallback."""

    en: str
    es: str
    it: str

    def in_(self, language: Language) -> str:
        """The text in ``language``."""
        return getattr(self, language)  # type: ignore[no-any-return]
