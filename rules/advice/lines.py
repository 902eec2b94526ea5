"""An advice as lines of text, from its document."""

from collections.abc import Iterator, Sequence
from typing import Any

from rules.advice.words import label, words
from rules.language import Language
from rules.words import format_money, format_value

SHOWN = 8


def lines(document: dict[str, Any], language: Language) -> Iterator[str]:
    """Markdown without headings: a sentence, then lists under their names."""
    yield document["kubernetes"]["text"]
    reasons = document["kubernetes"]["reasons"]
    for name, chosen in (
        ("for", [r for r in reasons if r["weight"] > 0]),
        ("against", [r for r in reasons if r["weight"] < 0]),
    ):
        yield from _list(name, [f"{reason['text']} ({reason['weight']:+d})" for reason in chosen], language)
    changes = [
        f"{item['text']}: {words().short[item['verdict']].in_(language)}" for item in document["kubernetes"]["changes"]
    ]
    yield from _list("changes", changes, language)
    yield ""
    yield f"{label('control', language)}: {document['control']['text']}"
    yield from (f"- {item['text']}" for item in document["control"]["reasons"])
    if document["demand"]:
        yield ""
        yield f"{label('gpus', language)}: {_demand(document['demand'])}"
    if document["sharing"]:
        yield document["sharing"]["summary"]
    yield from _providers(document, language)
    yield from _budget(document["budget"], language)
    for name in ("simpler", "remarks", "checklist", "defaults"):
        yield from _list(name, [item["text"] for item in document[name]], language)
    for name in ("needs_more", "optional"):
        yield from _list(name, [f"`{field}`" for field in document[name]], language)
    yield from _list("manifests", [item["file"] for item in document["manifests"]], language)


def _list(name: str, items: Sequence[str], language: Language) -> Iterator[str]:
    if items:
        yield ""
        yield f"{label(name, language)}:"
        yield from (f"- {item}" for item in items)


def _demand(demand: dict[str, Any]) -> str:
    text = f"{demand['gpus']} x {' / '.join(demand['gpu']) or 'GPU'}"
    return f"{text} ({demand['machines']} x {demand['per_machine']})" if demand["machines"] else text


def _providers(document: dict[str, Any], language: Language) -> Iterator[str]:
    if document["demand"] is None:
        return
    items = [_provider(one, language) for one in document["providers"][:SHOWN]]
    rest = document["found"] - len(items)
    if rest > 0:
        items.append(f"+{rest} {label('more', language)}")
    if document["ruled_out"]:
        items.append(f"{label('ruled_out', language)}: {', '.join(one['name'] for one in document['ruled_out'])}")
    if not document["found"]:
        items.insert(0, label("none_found", language))
    yield from _list("providers", items, language)


def _provider(one: dict[str, Any], language: Language) -> str:
    said = [f"**{one['name']}**"]
    if one["usd_month"] is not None:
        said[0] += f": {format_money(one['usd_month'], language)} {label('month', language)}"
        count = "" if one["machines"] is None else f"{one['machines']} x "
        purchase = " (spot)" if one["purchase"] == "spot" else ""
        said.append(f"{count}{one['instance_type']}{purchase}" + (f", {one['region']}" if one["region"] else ""))
        if one["fee_usd_month"]:
            said.append(f"{label('fee', language)} {format_money(one['fee_usd_month'], language)}")
        said.append(_age(one, language))
    said += [item["text"] for item in one["reasons_for"] + one["reasons_against"]]
    if one["not_documented"]:
        said.append(f"{label('not_documented', language)}: {', '.join(one['not_documented'])}")
    return "; ".join(said)


def _age(one: dict[str, Any], language: Language) -> str:
    if one["price_as_of"]:
        return f"{label('price_of', language)} {format_value(one['price_as_of'], 'date', language)}"
    if one["price_read"]:
        return f"{label('read_on', language)} {format_value(one['price_read'], 'date', language)}"
    return label("undated", language)


def _budget(budget: dict[str, Any] | None, language: Language) -> Iterator[str]:
    if budget is None:
        return
    limit = f"{format_money(budget['limit_usd_month'], language)} {label('month', language)}"
    if budget["best_usd_month"] is None:
        outcome = label("unknown", language)
    elif budget["over_usd_month"] is None and budget["unsure"]:
        outcome = f"{label('may_fit', language)}: {', '.join(budget['unsure'])} ({budget['best']})"
    elif budget["over_usd_month"] is None:
        outcome = f"{label('within', language)} ({budget['best']})"
    else:
        outcome = f"{label('missed_by', language)} {format_money(budget['over_usd_month'], language)}"
    yield ""
    yield f"{label('budget', language)}: {limit}; {outcome}"
    yield from (f"- {item['text']}" for item in budget["ways"])


def elsewhere_lines(document: dict[str, Any], language: Language) -> Iterator[str]:
    """A comparison of a cluster with other providers, from its document."""
    now = document["usd_month_now"]
    unknown = label("unknown_word", language)
    money = unknown if now is None else f"{format_money(now, language)} {label('month', language)}"
    yield f"{label('now', language)}: {document['cluster']}: {money}"
    for number, shape in enumerate(document["shapes"]):
        spot = " (spot)" if shape["spot"] else ""
        yield f"- {number}: {shape['nodes']} x {_shape(shape, unknown)}{spot}; {'; '.join(shape['prices']) or unknown}"
    items = [_place(place, language) for place in document["places"][:SHOWN]]
    if len(document["places"]) > SHOWN:
        items.append(f"+{len(document['places']) - SHOWN} {label('more', language)}")
    yield from _list("elsewhere", items or [label("none_found", language)], language)
    yield from _list("remarks", [item["text"] for item in document["remarks"]], language)


def _shape(shape: dict[str, Any], unknown: str) -> str:
    return f"{shape['gpus'] or '?'} {shape['gpu'] or unknown}"


def _place(place: dict[str, Any], language: Language) -> str:
    said = [f"**{place['name']}**"]
    if place["usd_month"] is not None:
        said[0] += f": {format_money(place['usd_month'], language)} {label('month', language)}"
        if place["difference_usd_month"] is not None:
            sign = "+" if place["difference_usd_month"] >= 0 else "-"
            said[0] += f" ({sign}{format_money(abs(place['difference_usd_month']), language)})"
        machines = place["machines"]
        said.append(", ".join(f"{one['machines'] or ''} {one['instance_type']}".strip() for one in machines))
        said += [_age(one, language) for one in machines[:1]]
    if place["missing"]:
        said.append(f"{label('not_offered', language)}: {', '.join(map(str, place['missing']))}")
    if place["fee_unknown"]:
        said.append(label("fee_open", language))
    said += place["doubts"]
    if place["not_documented"]:
        said.append(f"{label('not_documented', language)}: {', '.join(place['not_documented'])}")
    return "; ".join(said)
