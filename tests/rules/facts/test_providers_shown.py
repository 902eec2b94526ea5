"""Facts as people see them: every row has a source and a date or says that it is not documented, in three languages."""

import re

import pytest

from rules.facts.offers import Catalog, Filters
from rules.facts.offers_checks import Check
from rules.facts.offers_search import search
from rules.facts.prices import bundled
from rules.facts.providers import Provider, bundled_providers
from rules.facts.providers_shown import (
    FIELDS,
    ROWS,
    FactRow,
    _words,
    fact_rows,
    lines,
    phrase,
    price_word,
    verdict_text,
)
from rules.language import LANGUAGES, Language

CATALOG = Catalog(bundled_providers(), bundled())
VOCABULARY = (
    *("billing_unit", "control_plane_fee", "device_plugin", "driver_version", "drivers_preinstalled", "gpu_models"),
    *("interconnect", "scale_to_zero", "sharing", "spot_notice", "managed", "spot"),
)


def row(provider: str, field: str, language: Language = "en") -> FactRow:
    (found,) = (one for one in fact_rows(CATALOG, CATALOG.providers[provider], language) if one.field == field)
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_row_of_every_provider_is_traceable_or_said_to_be_undocumented(language: Language) -> None:
    no = re.compile(r"\b(no|none|null|ninguno|nessuno|falso|false)\b", re.IGNORECASE)
    unknown = phrase("not_documented", language)
    for provider in CATALOG.providers.values():
        for one in fact_rows(CATALOG, provider, language):
            assert one.label, (provider.id, one.field)
            if one.known:
                assert one.sources, (provider.id, one.field)
                assert one.as_of or one.field in ("gpu_models", "regions"), (provider.id, one.field)
                assert "None" not in one.text, (provider.id, one.field)
            else:
                assert one.text == unknown, (provider.id, one.field)
                assert not no.search(one.text), (provider.id, one.field)


def test_the_provider_without_any_fact_is_undocumented_throughout() -> None:
    silent = Provider(id="silent", name="Silent")
    rows = fact_rows(Catalog({"silent": silent}, bundled()), silent, "en")
    assert len(rows) == len(ROWS) - 2  # no remark, and a driver version only when asked for
    assert not any(one.known for one in rows)


@pytest.mark.parametrize("field", VOCABULARY)
def test_every_field_that_people_ask_for_has_rows(field: str) -> None:
    for provider in CATALOG.providers.values():
        rows = fact_rows(CATALOG, provider, "en", [field])
        assert rows or (field == "managed" and provider.kubernetes), (provider.id, field)
    assert all(name in ROWS for names in FIELDS.values() for name in names)


@pytest.mark.parametrize(
    ("provider", "field", "language", "text"),
    [
        ("aws", "control_plane_fee", "en", "$0.10 per hour and cluster"),
        ("ovhcloud", "control_plane_fee", "es", "gratis"),
        ("aws", "spot_notice", "it", "2 minuti"),
        ("salad", "spot_notice", "en", "none: it stops without warning"),
        ("vast", "shared_storage", "en", "none, as documented"),
        ("runpod", "kubernetes", "es", "no ofrece: ni servicio gestionado ni máquinas que se puedan unir a un clúster"),
        ("northflank", "time_slicing", "it", "non supportato"),
        ("lambda", "spot", "en", "no"),
        ("aws", "interconnect", "en", "EFA, NVLink (inferred)"),
        ("lambda", "control_plane_fee", "en", "not documented: ask the provider"),
        ("lambda", "control_plane_fee", "es", "sin documentar: pregunta al proveedor"),
        ("lambda", "control_plane_fee", "it", "non documentato: chiedi al provider"),
    ],
)
def test_rows_in_words(provider: str, field: str, language: Language, text: str) -> None:
    assert row(provider, field, language).text == text


def test_age_and_confidence_stand_below_a_fact() -> None:
    assert list(lines(row("coreweave", "scale_to_zero"), "en"))[-1].endswith("inferred")
    assert list(lines(row("hetzner", "device_plugin"), "es"))[-1].startswith("leído el 2026-11-30")
    assert not list(lines(row("lambda", "spot_notice"), "en"))


def test_models_come_from_price_lists_and_documentation_together() -> None:
    assert "B200-SXM" in row("aws", "gpu_models").text
    assert "MI355X" in row("tensorwave", "gpu_models").text
    assert row("aws", "gpu_models").sources


@pytest.mark.parametrize("language", LANGUAGES)
def test_outcomes_of_filters_are_in_words(language: Language) -> None:
    result = search(CATALOG, Filters.of({"managed": True, "interconnect": "roce", "compliance": "soc2"}))
    said = {
        verdict_text(check, language)
        for match in (*result.matches, *result.unlisted, *result.ruled_out)
        for check in match.checks
    }
    assert len(said) > 4
    unknown = verdict_text(Check("spot", "true", "unknown", "not_documented"), language)
    assert phrase("not_documented", language) in unknown
    assert price_word("spot", language) == "spot"


def test_placeholders_are_the_same_in_all_languages() -> None:
    words = _words()
    tables = [words.labels, words.phrases, words.reasons, words.verdicts, words.prices, *words.values.values()]
    for text in (text for table in tables for text in table.values()):
        assert len({tuple(sorted(re.findall(r"\{\w+\}", text.in_(language)))) for language in LANGUAGES}) == 1
        assert all(text.in_(language).strip() for language in LANGUAGES)
