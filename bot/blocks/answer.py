"""An answer as a Slack message, and the help people get when they ask nothing."""

import re
from collections.abc import Sequence

from bot.blocks.markup import PIECE, Piece, inline, pack, pieces
from bot.blocks.message import Block, Message, buttons, code, context, message, section
from bot.port import ClusterHealth
from bot.text import fit, size
from bot.words import words
from rules.answers import Answer
from rules.findings import Evidence
from rules.language import LANGUAGES, Language
from rules.words import format_value

TEXT = 7500
"""Most characters of the answer itself; evidence, sources and follow-ups together stay below 3,300."""
EVIDENCE_ROWS = 8
SOURCE_ROWS = 8
FOLLOW_UPS = 4
SMALL_PRINT = 1400
HELPED = "gpu_advisor_helped"
NOT_HELPED = "gpu_advisor_not_helped"
"""Action ids of the feedback buttons; their value is the language and the id of the answer."""


def answer_message(answer: Answer) -> Message:
    """The message of an answer, in the language of the answer.

    First the verdict and the text, then what it is based on, its sources with their dates, and what one may ask next.
    A text that is too long for a message is cut between its paragraphs and says so.
    """
    w, language = words(), answer.language
    parts = list(pieces(answer.text))
    parts = _with_verdict(answer, parts)
    texts, left_out = pack(parts, TEXT)
    if not texts:
        texts = ["…"]
    blocks: list[Block] = [section(text) for text in texts]
    fallback = list(texts)
    if left_out:
        note = f"_{w.more.in_(language).format(count=left_out)}. {w.cut.in_(language)}_"
        blocks.append(context(note))
        fallback.append(note)
    if answer.evidence:
        lines = [_evidence(item, language) for item in answer.evidence[:EVIDENCE_ROWS]]
        blocks.append(_small_print(w.evidence.in_(language), lines, len(answer.evidence), language))
    if answer.sources:
        lines = [_source(source.label, source.url, source.as_of, language) for source in answer.sources[:SOURCE_ROWS]]
        blocks.append(_small_print(w.sources.in_(language), lines, len(answer.sources), language))
    further = [question for question in answer.follow_ups if question not in answer.text][:FOLLOW_UPS]
    if further:
        asked = [f"• {fit(' '.join(question.split()), 150)}" for question in further]
        blocks.append(context("\n".join([f"*{w.follow_ups.in_(language)}*", *asked])))
    if answer.id is not None and not answer.abstain and not answer.clarify:
        value = f"{answer.language}:{answer.id}"
        blocks.append(buttons((w.helped.in_(language), HELPED, value), (w.not_helped.in_(language), NOT_HELPED, value)))
    return message("\n\n".join(fallback), blocks)


def _with_verdict(answer: Answer, parts: list[Piece]) -> list[Piece]:
    """Put the verdict before the text, unless its first sentence says it or it is no answer."""
    if answer.verdict in (None, "unknown") or answer.abstain or answer.clarify or not parts:
        return parts
    word = words().verdict[answer.verdict].in_(answer.language)
    first = parts[0].text
    sentence_one = re.split(r"[.;!?](?:\s|$)", first, maxsplit=1)[0]
    if re.search(rf"(?<!\w){re.escape(word.split()[-1])}(?!\w)", sentence_one, re.IGNORECASE):
        return parts
    joined = f"*{word}.* {first}"
    if first.startswith(("```", "•", "◦", ">")) or size(joined) > PIECE:
        return [Piece(f"*{word}.*"), *parts]
    return [Piece(joined), *parts[1:]]


def _small_print(title: str, lines: Sequence[str], total: int, language: Language) -> Block:
    """One context block of ready lines, as many as there is room for, and how many are left."""
    kept: list[str] = []
    room = SMALL_PRINT
    for line in lines:
        room -= size(line) + 3
        if room < 0:
            break
        kept.append(line)
    rest = total - len(kept)
    if rest:
        kept.append(words().more.in_(language).format(count=rest))
    return context("\n".join([f"*{title}*", *kept]))


def _evidence(item: Evidence, language: Language) -> str:
    name = fit(item.name.replace("_", " "), 60)
    value = fit(" ".join(format_value(item.value, item.unit, language).split()), 160)
    source = f" — {code(item.source, 120)}" if item.source else ""
    return f"• {name}: {value}{source}"


def _source(label: str, url: str | None, as_of: str | None, language: Language) -> str:
    shown = fit(" ".join(label.split()), 120).replace("|", "¦")
    if url and url.startswith(("https://", "http://")) and len(url) <= 500 and not re.search(r"[\s<>|]", url):
        shown = f"<{url.replace('&', '&amp;')}|{shown}>"
    date = f" ({fit(format_value(as_of, 'date', language), 40)})" if as_of else ""
    return f"• {shown}{date}"


def help_message(languages: Sequence[Language], clusters: Sequence[ClusterHealth] = ()) -> Message:
    """What the bot can do, once in each of ``languages``, and what it is connected to."""
    w = words()
    texts = []
    for language in languages or LANGUAGES:
        prompts = [f"• {fit(prompt.message.in_(language), 150)}" for prompt in w.prompts]
        texts.append("\n".join([f"*{w.help_title.in_(language)}*", f"{w.help_how.in_(language)}:", *prompts]))
    blocks: list[Block] = [section(text) for text in texts]
    if clusters:
        language = (languages or LANGUAGES)[0]
        lines = [_cluster(cluster, language) for cluster in clusters]
        blocks.append(_small_print(w.help_clusters.in_(language), lines, len(lines), language))
    return message("\n\n".join(texts), blocks)


def _cluster(cluster: ClusterHealth, language: Language) -> str:
    w = words()
    state = w.health.get(cluster.state)  # type: ignore[call-overload]
    said = [state.in_(language) if state else fit(cluster.state, 40)]
    if cluster.state == "ok":
        said.append(w.open_findings.in_(language).format(count=sum(cluster.open_findings.values())))
    return f"• {code(cluster.name, 80)}: {', '.join(said)}"


def sentence(text: str) -> Message:
    """A single sentence of the bot; ``text`` is Markdown."""
    line = inline(" ".join(text.split())).strip() or "…"
    if size(line) > PIECE:
        line = fit(" ".join(text.split()), PIECE)
    return message(line, [section(line)])
