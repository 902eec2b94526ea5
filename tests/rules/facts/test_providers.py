"""Provider facts: everything has a source and a date, unknown stays unknown, and the tables agree with each other."""

import csv
import json
import re
from datetime import date
from pathlib import Path

import msgspec
import pytest

from rules.facts.gpu_models import model_key
from rules.facts.identity import _tables, instance_type_of, provider_of
from rules.facts.offers_regions import _tables as region_tables
from rules.facts.offers_regions import countries_of, in_area
from rules.facts.prices import bundled
from rules.facts.providers import Fact, Provider, bundled_providers, find_provider

PROVIDERS = bundled_providers()
TODAY = "2026-12-01"
DATA = Path(__file__).parents[3] / "rules" / "data"


def test_every_provider_of_the_price_lists_is_known() -> None:
    assert {offer.provider for offer in bundled().offers} <= set(PROVIDERS)
    assert len(PROVIDERS) == 75


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=lambda provider: provider.id)
def test_every_fact_can_be_traced_to_a_source_and_a_date(provider: Provider) -> None:
    for group, fact in provider.facts():
        assert fact.sources, group
        assert all(source.strip() and "this folder" not in source for source in fact.sources), group
        assert re.fullmatch(r"20\d\d(-\d\d(-\d\d)?)?", fact.as_of), group
        assert fact.as_of <= TODAY, group
        assert "null" not in (fact.note or ""), group
        assert fact.note is None or len(fact.note) <= 200, (group, len(fact.note))


def test_every_price_can_be_traced_to_a_source_and_a_date() -> None:
    """The date of the row, or the day its source was read."""
    assert all(offer.source for offer in bundled().offers)
    with (DATA / "offers_sources.csv").open(encoding="utf-8", newline="") as file:
        read = {row["source"]: row["read"] for row in csv.DictReader(file)}
    for offer in bundled().offers:
        date.fromisoformat(offer.as_of or read[offer.source])


def test_a_fact_without_source_or_date_is_refused() -> None:
    for broken in ({"sources": [], "as_of": "2026"}, {"sources": ["x"], "as_of": ""}):
        with pytest.raises(msgspec.ValidationError, match="a fact needs a source and a date"):
            msgspec.convert(broken, Fact)


def test_a_group_says_something_or_explains_itself() -> None:
    """A group whose values are all unknown would be shown as an empty line."""
    common = set(Fact.__struct_fields__)
    for provider in PROVIDERS.values():
        for group, fact in provider.facts():
            values = [getattr(fact, name) for name in fact.__struct_fields__ if name not in common]
            assert fact.note or any(value not in (None, ()) for value in values), (provider.id, group)


def test_modes_and_control_planes_agree() -> None:
    for provider in PROVIDERS.values():
        mode = provider.kubernetes.mode if provider.kubernetes else None
        plane = provider.control_plane
        if plane and plane.managed is True and mode not in ("managed", "both"):
            assert provider.kubernetes, provider.id
            assert provider.kubernetes.note, f"{provider.id}: managed Kubernetes without GPU pools needs a word"
        if plane and plane.fee_usd_hour is not None:
            assert plane.managed is True, provider.id


def test_amd_facts_agree_with_the_models() -> None:
    for provider in PROVIDERS.values():
        models = {row.gpu_model for row in bundled().offers if row.provider == provider.id}
        models |= set(provider.gpu_models.models if provider.gpu_models else ())
        amd = {name for name in models if re.match(r"MI\d|Radeon", name)}
        if provider.amd is not None and not provider.amd.available:
            assert not amd, provider.id


def test_spot_facts_agree_with_the_prices() -> None:
    priced = {row.provider for row in bundled().offers if row.spot_price_usd_hour is not None}
    denied = {one.id for one in PROVIDERS.values() if one.spot and one.spot.available is False}
    assert not priced & denied


def test_documented_shapes_of_nodes_are_recognised_as_the_provider() -> None:
    """``node-identity.json`` recognises nodes; the shapes that facts show must lead to the same provider."""
    known = {row.provider for row in _tables().provider_ids}
    shared = {"ovhcloud", "rackspace-spot", "stackit"}  # OpenStack clouds: the id alone does not tell them apart
    seen = set()
    for provider in PROVIDERS.values():
        for shape in provider.node_identity.provider_ids if provider.node_identity else ():
            example = re.sub(r"<region>", "cn-hangzhou", shape)
            example = re.sub(r"<instance-id>", "i-bp1abc", example)
            example = re.sub(r"<[^>]*>", "x1", example).replace("ocid1.instance...", "ocid1.instance.oc1..x")
            if provider.id in known and not (provider.id in shared and example.startswith("openstack")):
                assert provider_of(example, {}) == provider.id, shape
                seen.add(provider.id)
    assert len(seen) >= 20


def test_labels_of_spot_nodes_agree_with_the_table_that_recognises_them() -> None:
    recognised = {row.label for row in _tables().spot_labels}
    for provider in PROVIDERS.values():
        for label in provider.node_identity.spot_labels if provider.node_identity else ():
            assert label.partition("=")[0] in recognised, (provider.id, label)


def test_pool_labels_agree_with_the_table_that_recognises_them() -> None:
    recognised = {row.label for row in _tables().pool_labels} | {"nodepool", "oci.oraclecloud.com/node-pool-id"}
    for provider in PROVIDERS.values():
        labels = provider.node_identity.pool_labels if provider.node_identity else ()
        assert not labels or recognised & set(labels), provider.id


def test_every_alias_leads_to_one_provider() -> None:
    for provider in PROVIDERS.values():
        for name in (provider.id, provider.name, *provider.aliases):
            found = find_provider(name)
            assert found is not None, name
            assert found.id == provider.id, name


def test_regions_of_price_lists_have_a_country_or_are_known_not_to() -> None:
    unknown = {
        (row.provider, row.region)
        for row in bundled().offers
        if row.region not in (None, "all") and countries_of(row.provider, row.region) is None
    }
    assert unknown == {("lambda", "europe-south-1")}
    for row in region_tables().regions:
        assert row.provider in PROVIDERS
        date.fromisoformat(row.as_of)
        assert row.source


@pytest.mark.parametrize(
    ("provider", "region", "area", "inside"),
    [
        ("aws", "eu-central-1", "de", True),
        ("aws", "eu-central-1", "eu", True),
        ("aws", "eu-west-2", "eu", False),
        ("aws", "sa-east-1", "latam", True),
        ("nebius", "EU / US", "eu", True),
        ("nebius", "EU / US", "de", None),
        ("nebius", "EU / US", "us", True),
        ("vast", "Germany, DE", "de", True),
        ("digitalocean", "NYC / TOR / AMS", "nl", True),
        ("oci", "all", "de", None),
        ("lambda", None, "us", None),
        ("lambda", "europe-south-1", "eu", None),
    ],
)
def test_a_region_is_in_a_country_or_area_or_that_is_unknown(
    provider: str, region: str | None, area: str, inside: bool | None
) -> None:
    assert in_area(countries_of(provider, region), area) is inside


@pytest.mark.parametrize(
    "file", sorted((DATA.parents[1] / "tests/data/clusters").glob("*.json")), ids=lambda file: file.stem
)
def test_nodes_of_the_sample_clusters_agree_with_providers_and_price_lists(file: Path) -> None:
    for node in (item for item in json.loads(file.read_bytes())["items"] if item["kind"] == "Node"):
        labels = node["metadata"].get("labels", {})
        provider = provider_of(node["spec"].get("providerID"), labels)
        assert provider is None or provider in PROVIDERS
        shape = bundled().shape(provider, instance_type_of(labels, provider))
        product, count = labels.get("nvidia.com/gpu.product"), labels.get("nvidia.com/gpu.count")
        if shape is not None and product is not None:
            assert str(model_key(product)).split()[0] == str(model_key(shape.gpu_model)).split()[0]
            assert count is None or int(count) == shape.gpu_count
