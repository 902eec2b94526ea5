"""Answers about providers: facts with their age, tables with prices, and what is not documented."""

from typing import Any

import pytest

from rules.language import LANGUAGES, Language
from rules.questions.answers_provider import bundled_catalog
from tests.rules.questions.asking import composed, told

FIELDS = (
    "billing_unit", "control_plane_fee", "device_plugin", "driver_version", "drivers_preinstalled", "gpu_models",
    "interconnect", "scale_to_zero", "sharing", "spot_notice",
)  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_field_of_every_provider_is_told_or_said_to_be_undocumented(field: str, language: Language) -> None:
    undocumented = {"en": "not documented", "es": "sin documentar", "it": "non documentato"}[language]
    for provider in bundled_catalog().providers.values():
        piece = composed("provider", field, "?", language, provider=provider.id, field=field)
        text = told(piece)
        assert provider.name in text
        assert piece.fields == {"provider": provider.id, "field": field}
        assert piece.verdict == "unknown" or piece.sources or undocumented in text
        assert "None" not in text


def test_an_unknown_fact_is_never_told_as_no() -> None:
    catalog = bundled_catalog()
    silent = next(item for item in catalog.providers.values() if item.billing is None)
    piece = composed("provider", "billing_unit", "?", provider=silent.id, field="billing_unit")
    assert piece.verdict == "unknown"
    assert "not documented: ask the provider" in told(piece)


def test_a_search_gives_a_table_with_prices_their_age_and_what_is_not_documented() -> None:
    filters: dict[str, Any] = {"gpu": "H100", "region": "eu", "managed": True, "sort": "price_asc"}
    text = told(composed("provider", "search", "?", filters=filters))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) > 4
    assert "per GPU and hour" in rows[0]
    assert "prices of different dates" in text
    documented = [row.rstrip("| ").endswith("managed, region") for row in rows[2:]]
    assert documented == sorted(documented), "those of whom something is unknown come last"


def test_on_demand_is_not_answered_with_what_can_be_taken_away() -> None:
    filters: dict[str, Any] = {"gpu": "B200", "commitment": "none", "max_price_usd_hour": 2.0}
    text = told(composed("provider", "search", "?", filters=filters))
    assert "No provider meets all of it" in text
    assert ", spot" not in text


def test_a_budget_that_cannot_be_met_names_the_closest_and_what_speaks_against_them() -> None:
    filters: dict[str, Any] = {"gpu": "H100", "max_price_usd_hour": 0.01, "interconnect": "infiniband"}
    piece = composed("provider", "search", "?", filters=filters)
    assert piece.verdict in ("no", "unknown")
    assert "No provider meets all of it" in told(piece)
    assert "max_price_usd_hour" in told(piece)


def test_a_filter_that_cannot_be_used_is_said_and_the_others_count() -> None:
    filters: dict[str, Any] = {"gpu": "H100", "region": "atlantis-7"}
    text = told(composed("provider", "search", "?", filters=filters))
    assert "Not used" in text
    assert "| provider |" in text


def test_prices_in_euro_say_their_rate_and_its_date() -> None:
    filters: dict[str, Any] = {"gpu": "L4", "currency": "eur"}
    text = told(composed("provider", "search", "?", "it", filters=filters))
    assert "€" in text
    assert "USD per EUR" in text


def test_without_provider_and_filter_it_asks_back() -> None:
    assert composed("provider", "search", "quale?", "it").clarify


def test_what_nobody_documents_is_said_to_rule_nobody_out() -> None:
    text = told(composed("provider", "search", "?", filters={"gpu": "A100", "compliance": "soc2"}))
    assert "Nothing is known of any provider on: `compliance`" in text
