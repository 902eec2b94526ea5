"""Providers, offers and the state of the catalogue as text for a terminal."""

from collections.abc import Iterable, Iterator, Sequence

from rules.facts.providers_shown import phrase, price_word
from rules.language import Language
from rules.words import format_money
from service.catalog.documents import FactDocument, OfferDocument, ProviderDocument, ProviderSearch, RateDocument
from service.cli import catalog_labels as say
from service.cli.text import wrapped

_UNKNOWN = "?"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as their widest cell; the last one is not padded."""
    cells = [list(headings), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def search_lines(found: ProviderSearch, language: Language, columns: int, limit: int) -> Iterator[str]:
    """A search: the table, and what has to be known to read it."""
    shown = found.items[:limit]
    if shown:
        headings = (say.PROVIDER, say.KUBERNETES, say.PER_GPU, say.TOTAL, say.MONTH, say.PURCHASE, say.MACHINE)
        more = (say.AGE, say.UNKNOWN)
        yield from table(
            [heading.in_(language) for heading in (*headings, *more)],
            [_provider_row(one, found.rate, language) for one in shown],
        )
        for one in shown:
            yield from _facts_of(one, columns)
        yield ""
    else:
        yield say.NOTHING.in_(language)
    counts = say.FOUND.in_(language).format(
        found=len(found.items),
        all=len(found.items) + len(found.unlisted) + len(found.ruled_out),
        ruled_out=len(found.ruled_out),
        unlisted=len(found.unlisted),
    )
    yield from wrapped(counts, columns)
    if found.without_data:
        yield from wrapped(say.NO_DATA.in_(language).format(names=", ".join(found.without_data)), columns)
    if found.prices_as_of:
        oldest, newest = found.prices_as_of
        yield from wrapped(say.DATES.in_(language).format(oldest=oldest, newest=newest), columns)
    yield from rate_lines(found.rate, language)


def rate_lines(rate: RateDocument | None, language: Language) -> Iterator[str]:
    """The exchange rate, where one was used."""
    if rate is not None:
        yield say.RATE.in_(language).format(rate=f"{rate.usd_per_eur:g}", source=rate.source, date=rate.as_of)


def _provider_row(one: ProviderDocument, rate: RateDocument | None, language: Language) -> list[str]:
    best = one.offers[0] if one.offers else None
    mode = say.MODE[one.kubernetes].in_(language)
    return [
        one.id,
        mode,
        _amount(one.usd_gpu_hour, rate, language),
        _amount(one.usd_total_hour, rate, language),
        _amount(one.usd_month, rate, language),
        price_word(best.purchase, language) if best and best.usd_hour is not None else "",
        machine(best) if best else "",
        age(best, language) if best and best.usd_hour is not None else "",
        ", ".join(one.not_documented),
    ]


def _facts_of(one: ProviderDocument, columns: int) -> Iterator[str]:
    if one.facts:
        yield ""
        yield f"{one.name}:"
        for fact in one.facts:
            yield from wrapped(f"{fact.label}: {fact.text}", columns, "  ")


def offer_lines(offers: Sequence[OfferDocument], rate: RateDocument | None, language: Language) -> Iterator[str]:
    """Offers as a table."""
    headings = (say.PROVIDER, say.PER_GPU, say.TOTAL, say.PURCHASE, say.MACHINE, say.REGION, say.AGE, say.UNKNOWN)
    rows = [
        [
            one.provider,
            _amount(one.usd_gpu_hour, rate, language),
            _amount(one.usd_total_hour, rate, language),
            price_word(one.purchase, language),
            machine(one),
            one.region or _UNKNOWN,
            age(one, language),
            ", ".join(one.not_documented),
        ]
        for one in offers
    ]
    yield from table([heading.in_(language) for heading in headings], rows)


def provider_lines(one: ProviderDocument, rate: RateDocument | None, language: Language, columns: int) -> Iterator[str]:
    """A provider with all that is known of it."""
    yield one.name
    if one.checks:
        yield ""
        yield f"{say.FILTERS.in_(language)}:"
        for check in one.checks:
            yield from wrapped(f"{check.filter} {check.wanted}: {check.text}", columns, "  ")
    yield ""
    for fact in one.facts:
        yield from _fact_lines(fact, language, columns)
    if one.offers:
        yield ""
        counts = say.OFFERS_FOUND.in_(language).format(shown=len(one.offers), found=one.offers_found)
        yield f"{say.CHEAPEST.in_(language)} ({counts}):"
        yield from offer_lines(one.offers, rate, language)


def _fact_lines(fact: FactDocument, language: Language, columns: int) -> Iterator[str]:
    yield from wrapped(f"{fact.label}: {fact.text}", columns)
    if fact.note:
        yield from wrapped(fact.note, columns, "    ")
    if not fact.known:
        return
    how = phrase("read" if fact.dated == "read" else "as_of", language, date=fact.as_of) if fact.as_of else ""
    sure = phrase("inferred", language) if fact.confidence == "inferred" else ""
    sources = "; ".join(fact.sources[:2]) + (f" +{len(fact.sources) - 2}" if len(fact.sources) > 2 else "")
    yield from wrapped(" · ".join(filter(None, (how, sure, sources))), columns, "    ")


def comparison_lines(items: Sequence[ProviderDocument], language: Language, columns: int) -> Iterator[str]:
    """Providers side by side: one block per fact, one line per provider."""
    fields = dict.fromkeys(fact.field for one in items for fact in one.facts)
    width = max((len(one.id) for one in items), default=0)
    for one in items:
        for check in one.checks:
            yield from wrapped(f"{one.id.ljust(width)}  {check.filter} {check.wanted}: {check.text}", columns)
    for field in fields:
        facts = {one.id: fact for one in items for fact in one.facts if fact.field == field}
        yield ""
        yield f"{next(iter(facts.values())).label}:"
        for one in items:
            fact = facts.get(one.id)
            if fact is not None:
                dated = f" ({fact.as_of})" if fact.as_of else ""
                yield from wrapped(f"{one.id.ljust(width)}  {fact.text}{dated}", columns, "  ")


def machine(one: OfferDocument) -> str:
    """``8 x H100-SXM (p5.48xlarge)``; a ``*`` marks a price per GPU in a list."""
    count = _UNKNOWN if one.gpu_count is None else f"{one.gpu_count:g}"
    return f"{count} x {one.gpu_model} ({one.instance_type}){' *' if one.price_line else ''}"


def age(one: OfferDocument, language: Language) -> str:
    """Date and age of a price."""
    if one.as_of is None:
        return say.READ.in_(language).format(date=one.read) if one.read else say.NO_DATE.in_(language)
    return say.DAYS_OLD.in_(language).format(
        date=one.as_of, days=one.age_days if one.age_days is not None else _UNKNOWN
    )


def _amount(usd: float | None, rate: RateDocument | None, language: Language) -> str:
    if usd is None:
        return _UNKNOWN
    if rate is None:
        return format_money(usd, language)
    return f"{format_money(usd, language)} / {_euro(usd / rate.usd_per_eur, language)}"


def _euro(amount: float, language: Language) -> str:
    from babel.numbers import format_currency

    return format_currency(amount, "EUR", locale=language).replace("\xa0", " ")
