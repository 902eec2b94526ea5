"""Provider facts as people read them, in three languages: one row per fact, the undocumented ones included.

Words are in ``rules/data/providers-words.yaml``; names, labels and notes stay as they are (notes are English facts).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec

from rules.facts.offers import Catalog
from rules.facts.offers_checks import Check
from rules.facts.providers import Fact, Provider
from rules.language import Language, Text
from rules.words import format_duration, format_money

_DATA = Path(__file__).parent.parent / "data" / "providers-words.yaml"


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    labels: dict[str, Text]
    values: dict[str, dict[str, Text]]
    phrases: dict[str, Text]
    reasons: dict[str, Text]
    verdicts: dict[str, Text]
    prices: dict[str, Text]


class FactRow(msgspec.Struct, frozen=True):
    """One fact of a provider.

    Attributes:
        field: stable name of the row (:data:`ROWS`).
        known: False where it is not documented; then ``text`` says so.
        note: an English sentence about limits.
        as_of: date as in the data; None when unknown.
        dated: ``source``, or ``read`` where the source shows no date.
        confidence: ``documented`` or ``inferred``; None when unknown.
    """

    field: str
    label: str
    text: str
    known: bool
    note: str | None = None
    sources: tuple[str, ...] = ()
    as_of: str | None = None
    dated: str | None = None
    confidence: str | None = None


_TABLES = {"kubernetes": "kubernetes", "drivers": "drivers", "sharing": "support", "billing": "billing_unit"}
"""Groups of facts whose values have words."""


@cache
def _words() -> _Words:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return msgspec.convert(yaml.load(_DATA.read_bytes(), Loader=loader), _Words)  # noqa: S506 - a safe loader, in C


def phrase(key: str, language: Language, **values: str) -> str:
    """One of the phrases about facts."""
    return _words().phrases[key].in_(language).format(**values)


def verdict_text(check: Check, language: Language) -> str:
    """How a filter came out, and why: "yes (documented: InfiniBand, NVLink)"."""
    words = _words()
    reason = words.reasons[check.reason].in_(language)
    table = words.values.get(_TABLES.get(check.fact or "", ""), {})
    known = table[check.found].in_(language) if check.found in table else check.found
    found = f": {known}" if known and check.reason in ("documented", "price", "not_listed") else ""
    return f"{words.verdicts[check.verdict].in_(language)} ({reason}{found})"


def price_word(name: str, language: Language) -> str:
    """How a price is to be had (``contract``, ``on_demand``, ``spot``), or what a ``price_line`` is."""
    return _words().prices[name].in_(language)


Show = Callable[[Provider, Language], str | None]


def _value(table: str, value: object, language: Language) -> str | None:
    if value is None:
        return None
    key = str(value).lower() if isinstance(value, bool) else str(value)
    return _words().values[table][key].in_(language)


def _mode(provider: Provider, language: Language) -> str | None:
    return _value("kubernetes", provider.kubernetes.mode, language) if provider.kubernetes else None


def _product(provider: Provider, language: Language) -> str | None:
    return provider.kubernetes.product if provider.kubernetes else None


def _control_plane(provider: Provider, language: Language) -> str | None:
    return _value("control_plane", provider.control_plane.managed, language) if provider.control_plane else None


def _fee(provider: Provider, language: Language) -> str | None:
    plane = provider.control_plane
    if plane is None or plane.fee_usd_hour is None:
        return None
    if plane.fee_usd_hour == 0:
        return phrase("free", language)
    amount = format_money(plane.fee_usd_hour, language)
    return phrase("per_hour_or_free" if plane.free_tier else "per_hour", language, amount=amount)


def _drivers(provider: Provider, language: Language) -> str | None:
    return _value("drivers", provider.drivers.model, language) if provider.drivers else None


def _device_plugin(provider: Provider, language: Language) -> str | None:
    return _value("device_plugin", provider.device_plugin.method, language) if provider.device_plugin else None


def _sharing(mode: str) -> Show:
    def show(provider: Provider, language: Language) -> str | None:
        return _value("support", getattr(provider.sharing, mode), language) if provider.sharing else None

    return show


def _interconnect(provider: Provider, language: Language) -> str | None:
    if provider.interconnect is None:
        return None
    inferred = phrase("inferred", language)
    return ", ".join(
        f"{link.name} ({inferred})" if link.inferred else link.name for link in provider.interconnect.links
    )


def _gang(provider: Provider, language: Language) -> str | None:
    return _value("gang", provider.training.gang, language) if provider.training else None


def _tools(provider: Provider, language: Language) -> str | None:
    return ", ".join(provider.training.tools) or None if provider.training else None


def _csi(provider: Provider, language: Language) -> str | None:
    return ", ".join(provider.storage.csi) if provider.storage and provider.storage.csi else None


def _rwx(provider: Provider, language: Language) -> str | None:
    volumes = provider.storage.rwx if provider.storage else None
    if volumes is None:
        return None
    return ", ".join(volumes) or phrase("none_documented", language)


def _spot(provider: Provider, language: Language) -> str | None:
    spot = provider.spot
    if spot is None or spot.available is None:
        return None
    if spot.available and spot.name:
        return phrase("yes_named", language, name=spot.name)
    return _value("yes_no", spot.available, language)


def _notice(provider: Provider, language: Language) -> str | None:
    seconds = provider.spot.notice_seconds if provider.spot else None
    if seconds is None:
        return None
    return format_duration(seconds, language) if seconds else phrase("no_notice", language)


def _scale_to_zero(provider: Provider, language: Language) -> str | None:
    return _value("yes_no", provider.scale_to_zero.available, language) if provider.scale_to_zero else None


def _billing(provider: Provider, language: Language) -> str | None:
    return _value("billing_unit", provider.billing.unit, language) if provider.billing else None


def _identity(name: str) -> Show:
    def show(provider: Provider, language: Language) -> str | None:
        return ", ".join(getattr(provider.node_identity, name)) or None if provider.node_identity else None

    return show


def _amd(provider: Provider, language: Language) -> str | None:
    return _value("yes_no", provider.amd.available, language) if provider.amd else None


def _remark(provider: Provider, language: Language) -> str | None:
    return provider.remark.note if provider.remark else None


def _unknown(provider: Provider, language: Language) -> str | None:
    return None


ROWS: dict[str, tuple[str, Show]] = {
    "kubernetes": ("kubernetes", _mode),
    "product": ("kubernetes", _product),
    "control_plane": ("control_plane", _control_plane),
    "control_plane_fee": ("control_plane", _fee),
    "drivers": ("drivers", _drivers),
    "driver_version": ("drivers", _unknown),
    "device_plugin": ("device_plugin", _device_plugin),
    "time_slicing": ("sharing", _sharing("time_slicing")),
    "mig": ("sharing", _sharing("mig")),
    "mps": ("sharing", _sharing("mps")),
    "interconnect": ("interconnect", _interconnect),
    "gang_scheduling": ("training", _gang),
    "training_tools": ("training", _tools),
    "csi": ("storage", _csi),
    "shared_storage": ("storage", _rwx),
    "spot": ("spot", _spot),
    "spot_notice": ("spot", _notice),
    "scale_to_zero": ("scale_to_zero", _scale_to_zero),
    "billing_unit": ("billing", _billing),
    "provider_id": ("node_identity", _identity("provider_ids")),
    "gpu_label": ("node_identity", _identity("gpu_labels")),
    "spot_label": ("node_identity", _identity("spot_labels")),
    "pool_label": ("node_identity", _identity("pool_labels")),
    "gpu_models": ("gpu_models", _unknown),
    "regions": ("regions", _unknown),
    "amd": ("amd", _amd),
    "remark": ("remark", _remark),
}
"""Rows in the order in which they are shown: name -> group of facts, and its text."""

FIELDS: dict[str, tuple[str, ...]] = {
    "billing_unit": ("billing_unit",),
    "control_plane_fee": ("control_plane", "control_plane_fee"),
    "device_plugin": ("device_plugin",),
    "driver_version": ("driver_version", "drivers"),
    "drivers_preinstalled": ("drivers",),
    "gpu_models": ("gpu_models",),
    "interconnect": ("interconnect",),
    "managed": ("kubernetes", "product"),
    "scale_to_zero": ("scale_to_zero",),
    "sharing": ("time_slicing", "mig", "mps"),
    "spot": ("spot", "spot_notice"),
    "spot_notice": ("spot_notice", "spot"),
    "storage": ("csi", "shared_storage"),
    "training": ("gang_scheduling", "training_tools"),
    "regions": ("regions",),
    "node_identity": ("provider_id", "gpu_label", "spot_label", "pool_label"),
}
"""Facts that people ask for -> rows that answer."""


def fact_rows(
    catalog: Catalog, provider: Provider, language: Language, fields: Sequence[str] = ()
) -> tuple[FactRow, ...]:
    """The facts of a provider, in the order of :data:`ROWS`.

    Args:
        fields: names of :data:`FIELDS` or :data:`ROWS`, which come in the order asked for; all rows when empty. A name
            of neither gives no row.
    """
    names = [row for field in fields for row in FIELDS.get(field, (field,)) if row in ROWS] if fields else _ALL
    return tuple(_row(catalog, provider, name, language) for name in dict.fromkeys(names) if _shown(provider, name))


_ALL = [name for name in ROWS if name != "driver_version"]
"""Versions change weekly and are kept of no provider: that is said to those who ask."""


def _shown(provider: Provider, name: str) -> bool:
    """Remarks and products that do not exist are no gaps in what is documented."""
    if name == "remark":
        return provider.remark is not None
    if name == "product":
        return provider.kubernetes is None or provider.kubernetes.mode in ("managed", "both")
    return True


def _row(catalog: Catalog, provider: Provider, name: str, language: Language) -> FactRow:
    group, show = ROWS[name]
    label = _words().labels[name].in_(language)
    fact: Fact | None = getattr(provider, group)
    if name in ("gpu_models", "regions"):
        return _listed(catalog, provider, name, label, language)
    text = show(provider, language)
    if text is None or fact is None:
        note = fact.note if fact is not None and name in _EXPLAINED else None
        return FactRow(name, label, phrase("not_documented", language), known=False, note=note)
    note = fact.note if name in _EXPLAINED and name != "remark" else None
    return FactRow(name, label, text, True, note, fact.sources, fact.as_of, fact.dated, fact.confidence)


_EXPLAINED = frozenset(
    {"kubernetes", "control_plane_fee", "drivers", "device_plugin", "mps", "interconnect", "training_tools"}
    | {"shared_storage", "spot", "scale_to_zero", "billing_unit", "pool_label", "amd"}
)
"""The row of each group that carries its note, so that it is said once."""


def _listed(catalog: Catalog, provider: Provider, name: str, label: str, language: Language) -> FactRow:
    """What price lists and documentation show together, with the sources of both."""
    names = catalog.models(provider.id) if name == "gpu_models" else catalog.regions(provider.id)
    fact: Fact | None = getattr(provider, name)
    note = fact.note if fact else None
    if not names:
        return FactRow(name, label, phrase("not_documented", language), known=False, note=note)
    rows = [row.offer for row in catalog.rows.get(provider.id, ()) if name == "gpu_models" or row.offer.region]
    dates = [row.as_of for row in rows if row.as_of] + ([fact.as_of] if fact else [])
    return FactRow(
        name,
        label,
        ", ".join(names),
        True,
        note,
        tuple(dict.fromkeys([*(fact.sources if fact else ()), *sorted({row.source for row in rows})])),
        min(dates, default=None),
        fact.dated if fact else "source",
        fact.confidence if fact else "documented",
    )


def lines(row: FactRow, language: Language) -> Iterator[str]:
    """What stands below a fact: its note, and how old and how sure it is."""
    if row.note:
        yield row.note
    if row.known and row.as_of:
        dated = phrase("read" if row.dated == "read" else "as_of", language, date=row.as_of)
        yield f"{dated}, {phrase('inferred', language)}" if row.confidence == "inferred" else dated
