"""Which language a response speaks: ``?lang=``, else ``Accept-Language``, else English."""

from typing import Annotated, Any

from litestar import Request
from litestar.params import QueryParameter

from rules.language import LANGUAGES, Language

Lang = Annotated[
    Language | None,
    QueryParameter(
        name="lang",
        description="Language of the words. Without it, `Accept-Language` decides; English is the default.",
        required=False,
    ),
]


def language_of(request: Request[Any, Any, Any], lang: Language | None) -> Language:
    """The language to answer in; an unusable header is no error."""
    return lang or accepted(request.headers.get("accept-language", "")) or "en"


def accepted(header: str) -> Language | None:
    """The best of our languages in an ``Accept-Language`` header (RFC 9110); None when it wants none of them."""
    best: tuple[float, Language] | None = None
    for part in header.split(","):
        tag, _, parameter = part.strip().partition(";")
        name = tag.strip().lower().split("-")[0]
        weight = _weight(parameter)
        for language in LANGUAGES:
            if name == language and weight > (best[0] if best else 0.0):
                best = (weight, language)
    return best[1] if best else None


def _weight(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0
