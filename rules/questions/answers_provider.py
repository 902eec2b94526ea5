"""Answers about providers: a fact of one, or a table of those that fit, with prices, ages and what is unknown."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from rules import knowledge, words
from rules.answers import Source, Verdict
from rules.facts.offers import BUNDLED_RATE, Catalog, EuroRate, FilterInvalid, Filters
from rules.facts.offers_match import PricedOffer, ProviderMatch
from rules.facts.offers_search import SearchResult, compare, search
from rules.facts.prices import bundled
from rules.facts.providers import Provider, bundled_providers
from rules.facts.providers_shown import FactRow, fact_rows, lines, verdict_text
from rules.language import Language
from rules.questions.composers import Asked, Piece
from rules.questions.topics import TOPIC_OF_FIELD
from rules.questions.words import say

ROWS = 8
"""Providers in a table; a longer one is a search of its own (``GET /v1/providers``)."""
CLOSEST = 5
FACTS_OF = 3
"""Providers whose further facts are told below the table."""
NAMED = 5
"""Providers named in a sentence."""
_NOT_FACTS = frozenset({"price"})
_SHOWN_ANYWAY = frozenset({"price", "managed", "spot"})
"""Facts that the table, its prices or its last column tell already."""
_SAME = {"sharing": "sharing", "spot_notice": "spot"}
"""Filters that say the same as the field that is asked for, where their names differ or more is asked."""


@cache
def bundled_catalog() -> Catalog:
    """Providers and prices as they are shipped."""
    return Catalog(bundled_providers(), bundled())


_VERDICTS: dict[str, Verdict] = {"meets": "yes", "fails": "no", "unknown": "unknown"}


def compose(asked: Asked) -> Piece | None:
    """The fact or the table; asks back where neither a provider nor a filter is named."""
    catalog = asked.known.catalog or bundled_catalog()
    part = asked.part
    named = catalog.providers.get(part.provider) if part.provider else None
    wanted = {name: value for name, value in part.filters.items() if name not in ("fields", "providers")}
    if named is not None and part.field and part.field not in _NOT_FACTS:
        return _fact(catalog, named, part.field, wanted, asked)
    if not wanted and not part.filters.get("providers") and named is None:
        return Piece(
            title=say("provider.title_search", asked.language),
            blocks=(say("provider.which", asked.language),),
            clarify=True,
        )
    return _table(catalog, part.filters, named, asked)


def _fact(catalog: Catalog, provider: Provider, field: str, wanted: Mapping[str, Any], asked: Asked) -> Piece:
    language = asked.language
    rows = fact_rows(catalog, provider, language, (field,))
    blocks = ["\n".join(fact_lines(provider, rows, language))]
    filters, problems = _filters(wanted)
    [match] = compare(catalog, [provider.id], filters, asked.known.rate or BUNDLED_RATE)
    told = {field, _SAME.get(field)}
    checked = [
        f"- {check.filter} {check.wanted}: {verdict_text(check, language)}"
        for check in match.checks
        if check.filter not in told and check.wanted != field
    ]
    blocks += ["\n".join(checked), *(say("provider.invalid", language, problem=text) for text in problems)]
    topic = TOPIC_OF_FIELD.get(field)
    follow_ups: tuple[str, ...] = ()
    if topic in knowledge.topics():
        follow_ups = (say(f"question.{topic}", language),)
        if not any(row.known for row in rows):
            blocks.append(say("provider.also_general", language, lead=knowledge.topic(topic, language).lead))
    return Piece(
        title=say("provider.title_fact", language, provider=provider.name, label=rows[0].label if rows else field),
        blocks=tuple(filter(None, blocks)),
        verdict=_VERDICTS[match.verdict] if match.checks else None if any(row.known for row in rows) else "unknown",
        sources=tuple(dict.fromkeys(source for row in rows for source in sources_of(row, provider))),
        follow_ups=follow_ups,
        fields={"provider": provider.id, "field": field},
    )


def fact_lines(provider: Provider, rows: Sequence[FactRow], language: Language) -> Iterator[str]:
    """Facts of one provider in lines of Markdown, each with its note, age and confidence."""
    for row in rows:
        label = row.label[0].lower() + row.label[1:] if row.label[:2].istitle() or row.label[1:2] == " " else row.label
        text = row.text.rstrip(".")
        dated = [line for line in lines(row, language) if line != row.note]
        if len(rows) == 1:
            yield say("provider.fact", language, provider=provider.name, label=label, text=text)
        else:
            if row is rows[0]:
                yield f"**{provider.name}**"
            yield f"- {row.label}: {text}"
        note = say("provider.note", language, note=row.note.rstrip(".")) if row.note else ""
        small = "; ".join(filter(None, [note, *dated]))
        if small:
            yield f"  ({small})" if len(rows) > 1 else f"({small})"


def sources_of(row: FactRow, provider: Provider) -> Iterator[Source]:
    """Where a fact comes from."""
    for source in row.sources:
        yield Source(
            label=f"{provider.name}: {row.label}",
            url=source if source.startswith("https://") else None,
            as_of=row.as_of,
        )


def _filters(values: Mapping[str, Any]) -> tuple[Filters, list[str]]:
    """Filters of the values that can be used, and what is wrong with the others."""
    usable = dict(values)
    problems: list[str] = []
    while True:
        try:
            return Filters.of(usable), problems
        except FilterInvalid as error:
            problems.append(str(error))
            if error.filter not in usable:
                return Filters(), problems
            del usable[error.filter]


def _searched(catalog: Catalog, values: Mapping[str, Any], rate: EuroRate) -> tuple[SearchResult, list[str]]:
    filters, problems = _filters(values)
    usable = dict(values)
    while True:
        try:
            return search(catalog, filters, rate), problems
        except FilterInvalid as error:
            problems.append(str(error))
            usable.pop(error.filter, None)
            filters, _ = _filters(usable)


def _table(catalog: Catalog, given: Mapping[str, Any], named: Provider | None, asked: Asked) -> Piece:
    language, rate = asked.language, asked.known.rate or BUNDLED_RATE
    values = dict(given)
    if named is not None:
        values["providers"] = [named.id]
    if values.get("commitment") == "none":
        values.setdefault("spot", False)  # "on demand" is neither reserved nor taken away
    result, problems = _searched(catalog, values, rate)
    shown = _surest_first(result)[:ROWS]
    blocks = [_lead(result, named, language)]
    if shown:
        blocks.append(_rows(shown, result, language))
        asked_for = {check.filter for match in shown for check in match.checks}
        fields = tuple(name for name in result.filters.fields if name not in _SHOWN_ANYWAY | asked_for)
        if fields:
            blocks += [
                "\n".join(fact_lines(match.provider, fact_rows(catalog, match.provider, language, fields), language))
                for match in shown[:FACTS_OF]
            ]
    elif result.ruled_out:
        blocks.append(_against(result, language))
    if result.unlisted and named is None:
        names = [match.provider.name for match in result.unlisted[:NAMED]]
        if len(result.unlisted) > NAMED:
            names.append(f"+{len(result.unlisted) - NAMED}")
        blocks.append(say("provider.unlisted", language, names=words.format_list(names, language)))
    blocks.append("\n".join(_notes(result, problems, language)))
    return Piece(
        title=say("provider.title_search", language),
        blocks=tuple(filter(None, blocks)),
        verdict=None if shown else "unknown" if result.unlisted else "no",
        sources=tuple(dict.fromkeys(source for match in shown for source in _price_sources(match))),
        fields={"provider": named.id if named else None},
    )


def _surest_first(result: SearchResult) -> list[ProviderMatch]:
    """Those of whom everything asked for is documented before those of whom something is not."""
    nowhere = set(result.without_data)
    return sorted(result.matches, key=lambda match: bool(set(match.not_documented) - nowhere))


def _lead(result: SearchResult, named: Provider | None, language: Language) -> str:
    looked = say("provider.asked", language, filters=_spelled(result.filters))
    if named is not None:
        if result.matches and result.matches[0].offers:
            return looked
        return f"{say('provider.no_price_of', language, provider=named.name)} {looked}"
    if not result.matches:
        return f"{say('provider.none', language)} {looked}"
    return f"{say('provider.found', language, count=len(result.matches))} {looked}"


def _spelled(filters: Filters) -> str:
    """The filters as they were read: ``gpu H100, region eu, managed``."""
    parts = []
    for name in filters.__struct_fields__:
        value = getattr(filters, name)
        if value in (None, ()) or name in ("fields", "sort", "currency") or (name == "spot" and value is False):
            continue
        shown = ", ".join(map(str, value)) if isinstance(value, tuple) else "" if value is True else f"{value}"
        if isinstance(value, float):
            shown = f"{value:g}"
        parts.append(f"`{name} {shown}`" if shown else f"`{name}`")
    return ", ".join(parts) or "–"


def _rows(matches: Sequence[ProviderMatch], result: SearchResult, language: Language) -> str:
    filters, euro = result.filters, result.rate
    total = filters.machines > 1 or filters.max_total_usd_hour is not None
    month = filters.hours_per_month is not None
    open_ = any(match.not_documented for match in matches)
    heads = ["provider", "offer", "gpu_hour", *(["total"] if total else []), *(["month"] if month else [])]
    heads += ["open"] if open_ else []
    table = ["| " + " | ".join(say(f"provider.column.{head}", language) for head in heads) + " |"]
    table.append("|" + " --- |" * len(heads))
    for match in matches:
        offer = match.offers[0] if match.offers else None
        cells = [match.provider.name, _offer(offer, language), _money(match.usd_gpu_hour, euro, language)]
        if total:
            cells.append(_money(match.usd_total_hour, euro, language))
        if month:
            cells.append(_money(match.usd_month, euro, language))
        if open_:
            cells.append(", ".join(match.not_documented))
        table.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return "\n".join(table)


def _offer(offer: PricedOffer | None, language: Language) -> str:
    if offer is None:
        return say("provider.no_price", language)
    parts = [offer.offer.instance_type, offer.offer.region or ""]
    if offer.purchase == "spot":
        parts.append(say("provider.spot", language))
    if offer.offer.as_of:
        parts.append(words.format_value(offer.offer.as_of, "date", language))
    elif offer.offer.read:
        read = words.format_value(offer.offer.read, "date", language)
        parts.append(say("provider.read", language, date=read))
    return ", ".join(filter(None, parts))


def _money(usd: float | None, rate: EuroRate | None, language: Language) -> str:
    if usd is None:
        return "–"
    if rate is None:
        return words.format_money(usd, language)
    from babel.numbers import format_currency

    return format_currency(usd / rate.usd_per_eur, "EUR", locale=language).replace("\xa0", " ")


def _against(result: SearchResult, language: Language) -> str:
    closest = sorted(
        result.ruled_out,
        key=lambda match: (sum(check.verdict == "fails" for check in match.checks), match.provider.name),
    )
    table = [say("provider.closest", language)]
    for match in closest[:CLOSEST]:
        against = [
            f"{check.filter}: {verdict_text(check, language)}" for check in match.checks if check.verdict == "fails"
        ]
        price = _money(match.usd_gpu_hour, result.rate, language)
        shown = f" ({say('provider.column.gpu_hour', language)}: {price})" if match.usd_gpu_hour is not None else ""
        table.append(f"- {match.provider.name}{shown}: {'; '.join(against)}")
    return "\n".join(table)


def _notes(result: SearchResult, problems: Sequence[str], language: Language) -> Iterator[str]:
    for problem in problems:
        yield say("provider.invalid", language, problem=problem.rstrip("."))
    if result.without_data:
        listed = words.format_list([f"`{name}`" for name in result.without_data], language)
        yield say("provider.without_data", language, filters=listed)
    if result.matches and result.prices_as_of:
        oldest, newest = (words.format_value(day, "date", language) for day in result.prices_as_of)
        key = "provider.price_of" if oldest == newest else "provider.prices_of"
        yield say(key, language, oldest=oldest, newest=newest)
    if result.rate is not None:
        yield say(
            "provider.rate",
            language,
            rate=f"{result.rate.usd_per_eur:g}",
            date=words.format_value(result.rate.as_of, "date", language),
            source=result.rate.source,
        )
    if result.matches:
        yield say("provider.verify", language)


def _price_sources(match: ProviderMatch) -> Iterator[Source]:
    if match.offers:
        offer = match.offers[0].offer
        is_page = offer.source.startswith("https://")
        yield Source(
            label=f"{match.provider.name}: {offer.source}" if not is_page else match.provider.name,
            url=offer.source if is_page else None,
            as_of=offer.as_of,
        )
