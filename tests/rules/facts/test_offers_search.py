"""A search says what is met, what speaks against it and what is not documented; it never takes silence for a no."""

from typing import Any

import pytest

from rules.facts.offers import Catalog, EuroRate, FilterInvalid, Filters
from rules.facts.offers_checks import WITHOUT_DATA, Check
from rules.facts.offers_search import ProviderMatch, SearchResult, compare, find_offers, search
from rules.facts.prices import Offer, PriceBook, bundled
from rules.facts.providers import (
    Billing,
    ControlPlane,
    Interconnect,
    Kubernetes,
    Link,
    Provider,
    Sharing,
    Spot,
    Storage,
    bundled_providers,
)

CATALOG = Catalog(bundled_providers(), bundled())
SOURCE: dict[str, Any] = {"sources": ("https://example.org",), "as_of": "2026-10"}

RICH = Provider(
    id="rich",
    name="Rich",
    kubernetes=Kubernetes(mode="both", **SOURCE),
    control_plane=ControlPlane(managed=True, fee_usd_hour=0, **SOURCE),
    interconnect=Interconnect(links=(Link("InfiniBand", "infiniband"),), **SOURCE),
    sharing=Sharing(mig="supported", time_slicing="self_managed", mps="not_supported", **SOURCE),
    storage=Storage(rwx=("Big NFS",), **SOURCE),
    spot=Spot(available=True, **SOURCE),
    billing=Billing(unit="second", **SOURCE),
)
POOR = Provider(
    id="poor",
    name="Poor",
    kubernetes=Kubernetes(mode="own", **SOURCE),
    control_plane=ControlPlane(managed=False, **SOURCE),
    storage=Storage(rwx=(), **SOURCE),
    spot=Spot(available=False, **SOURCE),
    billing=Billing(unit="hour", **SOURCE),
)
SILENT = Provider(id="silent", name="Silent")


def offer(provider: str = "rich", name: str = "h8", **more: Any) -> Offer:
    row: dict[str, Any] = {
        "region": "Berlin, DE",
        "gpu_model": "H100-SXM",
        "gpu_count": 8.0,
        "gpu_memory_gib": 80.0,
        "vcpus": 96.0,
        "memory_gib": 960.0,
        "price_usd_hour": 16.0,
        "spot_price_usd_hour": None,
        "as_of": "2026-10-01",
        "source": "list",
    }
    return Offer(provider=provider, instance_type=name, **{**row, **more})


def small(*offers: Offer) -> Catalog:
    return Catalog({one.id: one for one in (RICH, POOR, SILENT)}, PriceBook(offers))


def ask(catalog: Catalog = CATALOG, rate: EuroRate | None = None, **filters: Any) -> SearchResult:
    wanted = Filters.of(filters)
    return search(catalog, wanted, rate) if rate else search(catalog, wanted)


def verdicts(result: SearchResult) -> dict[str, str]:
    return {one.provider.id: one.verdict for one in (*result.matches, *result.unlisted, *result.ruled_out)}


def checks_of(result: SearchResult, provider: str) -> dict[str, Check]:
    found = next(one for one in (*result.matches, *result.unlisted, *result.ruled_out) if one.provider.id == provider)
    return {check.filter: check for check in found.checks}


def ids(matches: tuple[ProviderMatch, ...]) -> list[str]:
    return [match.provider.id for match in matches]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"managed": True}, {"rich": "meets", "poor": "fails", "silent": "unknown"}),
        ({"managed": False}, {"rich": "meets", "poor": "meets", "silent": "unknown"}),
        ({"free_control_plane": True}, {"rich": "meets", "poor": "unknown", "silent": "unknown"}),
        ({"interconnect": "infiniband"}, {"rich": "meets", "poor": "unknown", "silent": "unknown"}),
        ({"interconnect": "rdma"}, {"rich": "meets", "poor": "unknown", "silent": "unknown"}),
        ({"interconnect": "efa"}, {"rich": "unknown", "poor": "unknown", "silent": "unknown"}),
        ({"sharing": "mig"}, {"rich": "meets", "poor": "unknown", "silent": "unknown"}),
        ({"sharing": "mps"}, {"rich": "fails", "poor": "unknown", "silent": "unknown"}),
        ({"shared_storage": "any"}, {"rich": "meets", "poor": "fails", "silent": "unknown"}),
        ({"shared_storage": "big nfs"}, {"rich": "meets", "poor": "fails", "silent": "unknown"}),
        ({"shared_storage": "lustre"}, {"rich": "unknown", "poor": "fails", "silent": "unknown"}),
        ({"billing_unit": "minute"}, {"rich": "meets", "poor": "fails", "silent": "unknown"}),
        ({"spot": True}, {"rich": "meets", "poor": "fails", "silent": "unknown"}),
        ({"scale_to_zero": True}, {"rich": "unknown", "poor": "unknown", "silent": "unknown"}),
        ({"feature": "mig"}, {"rich": "meets", "poor": "unknown", "silent": "unknown"}),
        ({"gpu": "h100"}, {"rich": "unknown", "poor": "unknown", "silent": "unknown"}),
        ({"commitment": "1y"}, {"rich": "unknown", "poor": "unknown", "silent": "unknown"}),
    ],
    ids=str,
)
def test_three_answers(filters: dict[str, Any], expected: dict[str, str]) -> None:
    assert verdicts(ask(small(), **filters)) == expected


@pytest.mark.parametrize("name", sorted(WITHOUT_DATA))
def test_filters_without_data_rule_nothing_out_and_say_so(name: str) -> None:
    value: Any = {"compliance": "soc2", "free_egress": True, "k8s_version": "1.34"}.get(name, 4)
    result = ask(**{name: value})
    assert result.without_data == (name,)
    assert not result.ruled_out
    assert all(checks_of(result, one)[name].verdict == "unknown" for one in ids(result.matches))


def test_an_unknown_feature_is_said_to_be_unknown_to_all() -> None:
    result = ask(feature=["quantum_teleport", "kueue"])
    assert result.without_data == ("quantum_teleport",)
    assert not result.ruled_out


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"gpu": "H100"}, True),
        ({"gpu": "h100 sxm"}, True),
        ({"gpu": "h100 pcie"}, False),
        ({"gpu": ["a100", "h100"]}, True),
        ({"gpu": "h200"}, False),
        ({"gpu_count": 8}, True),
        ({"gpu_count": 9}, False),
        ({"min_vram_gb": 80}, True),
        ({"min_vram_gb": 96}, False),
        ({"region": "de"}, True),
        ({"region": "eu"}, True),
        ({"region": "us"}, False),
        ({"region": "berlin, de"}, True),
        ({"vendor": "nvidia"}, True),
        ({"vendor": "amd"}, False),
        ({"max_price_usd_hour": 2.0}, True),
        ({"max_price_usd_hour": 1.99}, False),
        ({"max_total_usd_hour": 32, "nodes": 2}, True),
        ({"max_total_usd_hour": 31.9, "nodes": 2}, False),
        ({"spot": False}, True),
    ],
    ids=str,
)
def test_machines_are_filtered_by_what_their_list_says(filters: dict[str, Any], found: bool) -> None:
    catalog = small(offer())
    assert bool(find_offers(catalog, Filters.of(filters))) is found
    assert ("rich" in ids(ask(catalog, **filters).matches)) is found


def test_what_a_list_does_not_say_is_kept_and_said() -> None:
    catalog = small(offer(region=None, gpu_memory_gib=None, gpu_model="H100"))
    (found,) = find_offers(catalog, Filters.of({"gpu": "h100 sxm", "region": "de", "min_vram_gb": 80, "arch": "amd64"}))
    assert found.unknown == ("gpu", "min_vram_gb", "region", "arch")


def test_a_missing_machine_is_no_proof_and_a_high_price_is() -> None:
    catalog = small(offer())
    unlisted = ask(catalog, gpu="h200")
    assert ids(unlisted.unlisted) == ["poor", "rich", "silent"]
    assert checks_of(unlisted, "rich")["gpu"].reason == "not_listed"
    assert checks_of(unlisted, "silent")["gpu"].reason == "not_documented"
    dear = ask(catalog, gpu="h100", max_price_usd_hour=1)
    assert ids(dear.ruled_out) == ["rich"]
    assert checks_of(dear, "rich")["max_price_usd_hour"].found == "2.00 USD/h"
    assert checks_of(dear, "rich")["gpu"].verdict == "meets"


def test_certain_and_keepable_offers_come_before_cheaper_doubtful_ones() -> None:
    catalog = small(
        offer(name="dear", price_usd_hour=24.0),
        offer(name="sure"),
        offer(name="where", region=None, price_usd_hour=8.0),
        offer(name="taken-away", price_usd_hour=None, spot_price_usd_hour=4.0),
    )
    found = ask(catalog, gpu="h100", region="de").matches[0]
    assert [one.offer.instance_type for one in found.offers] == ["sure", "dear", "taken-away", "where"]
    assert found.usd_gpu_hour == 2.0
    assert found.usd_month == 16.0 * 730


def test_a_price_line_is_priced_for_the_gpus_wanted_and_marked() -> None:
    catalog = small(offer(name="NVIDIA H100 (on-demand)", gpu_count=1.0, price_usd_hour=2.0))
    (found,) = find_offers(catalog, Filters.of({"gpu": "h100", "gpu_count": 8, "nodes": 2}))
    assert (found.usd_hour, found.usd_total_hour, found.price_line) == (16.0, 32.0, True)
    assert found.unknown == ("gpu_count",)


def test_only_the_newest_price_of_a_machine_counts() -> None:
    catalog = small(offer(price_usd_hour=8.0, as_of="2025-01-01"), offer(price_usd_hour=24.0))
    (found,) = find_offers(catalog, Filters())
    assert found.usd_hour == 24.0


def test_regions_of_authorities_are_offered_only_to_who_names_them() -> None:
    assert not [one for one in find_offers(CATALOG, Filters.of({"providers": "aws"})) if "gov" in str(one.offer.region)]
    named = find_offers(CATALOG, Filters.of({"providers": "aws", "region": "us-gov-west-1"}))
    assert {one.offer.region for one in named} == {"us-gov-west-1"}


def test_euro_limits_use_the_rate_given_and_say_so() -> None:
    catalog = small(offer())
    dear = EuroRate(1.0, "2026-11-30", "test")
    cheap = EuroRate(2.0, "2026-11-30", "test")
    assert ids(ask(catalog, dear, max_price_eur_hour=1.5).ruled_out) == ["rich"]
    found = ask(catalog, cheap, max_price_eur_hour=1.5)
    assert "rich" in ids(found.matches)
    assert found.rate == cheap
    assert ask(catalog, cheap, max_price_usd_hour=1.5).rate is None


def test_the_order_is_by_unknowns_then_by_price_unless_another_is_asked_for() -> None:
    result = ask(gpu="h100", interconnect="infiniband")
    unknowns = [len(match.not_documented) for match in result.matches]
    assert unknowns == sorted(unknowns)
    cheapest = ask(gpu="h100", sort="price_asc")
    prices = [match.usd_gpu_hour for match in cheapest.matches if match.offers and match.offers[0].purchase != "spot"]
    assert prices == sorted(price for price in prices if price is not None)
    named = ask(sort="name")
    assert [match.provider.name.lower() for match in named.matches] == sorted(
        match.provider.name.lower() for match in named.matches
    )


def test_named_and_excluded_providers() -> None:
    assert ids(ask(providers=["AWS", "google cloud"], sort="name").matches) == ["aws", "gcp"]
    assert "aws" not in ids(ask(exclude="amazon").matches)


def test_documented_models_and_regions_count_but_never_together() -> None:
    """That IBM has H100, and that it has Frankfurt, does not say that it has H100 in Frankfurt."""
    assert checks_of(ask(gpu="h100"), "ibm")["gpu"].reason == "documented"
    assert checks_of(ask(region="de"), "ibm")["region"].reason == "documented"
    assert "ibm" in ids(ask(gpu="h100", region="de").unlisted)


def test_comparison_keeps_the_order_and_hides_no_failure() -> None:
    found = compare(CATALOG, ["runpod", "aws", "runpod"], Filters.of({"managed": True}))
    assert ids(found) == ["runpod", "aws"]
    assert found[0].verdict == "fails"


@pytest.mark.parametrize(
    ("values", "name", "says"),
    [
        ({"gpu": "zz9"}, "gpu", "no GPU model"),
        ({"region": "atlantis"}, "region", "country code"),
        ({"providers": "nobody"}, "providers", "no provider 'nobody'"),
        ({"sort": "colour"}, "sort", "price_asc, price_desc, name"),
        ({"gpu_count": 0}, "gpu_count", ">= 1"),
        ({"gpu_count": "many"}, "gpu_count", "int"),
        ({"max_price_usd_hour": -1}, "max_price_usd_hour", "> 0"),
        ({"colour": "red"}, "colour", "there is no filter 'colour'"),
    ],
    ids=str,
)
def test_a_filter_that_cannot_be_used_is_named(values: dict[str, Any], name: str, says: str) -> None:
    with pytest.raises(FilterInvalid, match=says) as caught:
        search(CATALOG, Filters.of(values))
    assert caught.value.filter == name


def test_a_free_tier_counts_as_free_and_an_unverified_one_as_unknown() -> None:
    found = verdicts(ask(free_control_plane=True))
    assert [found[name] for name in ("azure", "digitalocean", "aws", "oci")] == ["meets", "meets", "fails", "unknown"]


def test_bundled_data_answers_plain_questions() -> None:
    training = ask(gpu="h100", gpu_count=8, nodes=4, interconnect="infiniband")
    assert {"nebius", "azure"} <= set(ids(training.matches))
    assert all(match.usd_total_hour and match.usd_total_hour > 20 for match in training.matches[:3])
    assert "lambda" in ids(ask(region="de", gpu="h100").matches)
    assert set(ids(ask(vendor="amd", managed=True).ruled_out)) >= {"coreweave", "runpod"}
