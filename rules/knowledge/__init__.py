"""Topics in English, Spanish and Italian: what is answered to a frequent question, with its sources and their dates.

A topic is three files, ``<topic>.en.md``, ``.es.md`` and ``.it.md``: front matter (verdict, seed statements, sources,
follow-ups) and the sections ``verdict`` (what is said first), ``why`` and ``verify``.
"""

import re
from functools import lru_cache
from importlib.resources import files

import msgspec
import yaml

from rules.answers import Source, Verdict
from rules.errors import InternalFault
from rules.language import LANGUAGES, Language

SECTIONS = ("verdict", "why", "verify")
LENGTH_BUDGET = 2600
"""Characters of one topic in one language: a Slack message that is still read."""

_HEADING = re.compile(r"^# +(\w+) *$", re.MULTILINE)
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")


class TopicInvalid(InternalFault):
    """A topic file does not have the shape of a topic; the message names file and fault."""

    code = "topic-invalid"


class _Front(msgspec.Struct, forbid_unknown_fields=True):
    topic: str
    verdict: Verdict
    seeds: list[str]
    sources: list[Source]
    follow_ups: list[str]


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """One topic in one language.

    Attributes:
        seeds: ids of the source statements that it encodes (S1 to S29).
        sources: each with the date of what it says (year, month or day).
        lead: the verdict as one short paragraph; why, verify: Markdown lists.
    """

    topic: str
    language: Language
    verdict: Verdict
    seeds: tuple[str, ...]
    sources: tuple[Source, ...]
    follow_ups: tuple[str, ...]
    lead: str
    why: str
    verify: str


@lru_cache(maxsize=1)
def topics() -> tuple[str, ...]:
    """Ids of all topics, sorted."""
    return tuple(
        sorted(file.name.removesuffix(".en.md") for file in files(__name__).iterdir() if file.name.endswith(".en.md"))
    )


@lru_cache(maxsize=128)
def topic(name: str, language: Language) -> Topic:
    """The topic ``name`` in ``language``.

    Raises:
        TopicInvalid: there is no such topic, or its file does not have the shape of one.
    """
    file = files(__name__) / f"{name}.{language}.md"
    if language not in LANGUAGES or not re.fullmatch(r"\w+", name) or not file.is_file():
        raise TopicInvalid(f"there is no topic {name!r} in {language!r}")
    return parse(file.read_text(encoding="utf-8"), name, language)


def parse(text: str, name: str, language: Language) -> Topic:
    """A topic from the text of its file.

    Raises:
        TopicInvalid: front matter, a section or a date is missing or out of place.
    """
    where = f"{name}.{language}.md"
    head, separator, body = text.removeprefix("---\n").partition("\n---\n")
    if not text.startswith("---\n") or not separator:
        raise TopicInvalid(f"{where}: no front matter between two lines of ---")
    try:
        front = msgspec.convert(yaml.load(head, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)), _Front)  # noqa: S506
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise TopicInvalid(f"{where}: front matter: {error}") from error
    if front.topic != name:
        raise TopicInvalid(f"{where}: says topic {front.topic!r}")
    undated = [source.label for source in front.sources if not (source.as_of and _DATE.fullmatch(source.as_of))]
    if undated or not front.sources:
        raise TopicInvalid(f"{where}: sources without a date: {undated or 'there are no sources'}")
    pieces = _HEADING.split(body)
    sections = {heading: content.strip() for heading, content in zip(pieces[1::2], pieces[2::2], strict=True)}
    if tuple(sections) != SECTIONS or not all(sections.values()):
        raise TopicInvalid(f"{where}: sections are {list(sections)}, expected {list(SECTIONS)}, none empty")
    return Topic(
        topic=name,
        language=language,
        verdict=front.verdict,
        seeds=tuple(front.seeds),
        sources=tuple(front.sources),
        follow_ups=tuple(front.follow_ups),
        lead=sections["verdict"],
        why=sections["why"],
        verify=sections["verify"],
    )
