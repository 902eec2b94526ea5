"""Providers and offers over HTTP: filters, paging, comparison, languages, and what goes wrong."""

from datetime import date
from typing import Any

import httpx
import pytest

from rules.facts.offers import Filters
from rules.facts.prices import bundled


async def get(client: httpx.AsyncClient, path: str, **query: Any) -> Any:
    response = await client.get(path, params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def test_providers_are_found_with_their_price_its_age_and_what_is_not_documented(
    client: httpx.AsyncClient,
) -> None:
    found = await get(client, "/v1/providers", gpu="h100", gpu_count=8, interconnect="infiniband", compliance="soc2")
    assert found["without_data"] == ["compliance"]
    best = found["items"][0]
    assert best["not_documented"] == ["compliance"]
    assert best["usd_total_hour"] == best["offers"][0]["usd_hour"]
    assert best["offers"][0]["source"]
    for one in found["items"]:
        for offer in one["offers"]:
            if offer["as_of"] is not None:
                assert offer["age_days"] > 0
                date.fromisoformat(offer["as_of"])
            else:
                assert offer["age_days"] is None
    together = found["items"] + found["unlisted"] + found["ruled_out"]
    assert len(together) == 75
    assert not any(one["facts"] for one in together)


async def test_all_filters_of_the_vocabulary_are_parameters(client: httpx.AsyncClient) -> None:
    document = (await client.get("/schema/openapi.json")).json()
    for path in ("/v1/providers", "/v1/offers"):
        parameters = {one["name"] for one in document["paths"][path]["get"]["parameters"]}
        assert set(Filters.__struct_fields__) <= parameters


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"gpu": "zz9"}, "no GPU model"),
        ({"sort": "colour"}, "price_asc"),
        ({"region": "atlantis"}, "country code"),
        ({"providers": "nobody"}, "no provider"),
        ({"max_price_usd_hour": "-1"}, "> 0"),
        ({"gpu_count": "many"}, "gpu_count"),
        ({"managed": "perhaps"}, "managed"),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["/v1/providers", "/v1/offers"])
async def test_filters_that_cannot_be_used_are_problems(
    client: httpx.AsyncClient, path: str, query: dict[str, str], says: str
) -> None:
    response = await client.get(path, params=query)
    assert response.status_code == 400
    problem = response.json()
    assert response.headers["content-type"].startswith("application/problem+json")
    assert says in problem["detail"]


@pytest.mark.parametrize(
    ("language", "unknown"),
    [
        ("en", "not documented: ask the provider"),
        ("es", "sin documentar: pregunta al proveedor"),
        ("it", "non documentato: chiedi al provider"),
    ],
)
async def test_a_provider_shows_all_its_facts_and_says_what_is_not_documented(
    client: httpx.AsyncClient, language: str, unknown: str
) -> None:
    one = await get(client, "/v1/providers/Lambda Labs", lang=language)
    assert one["id"] == "lambda"
    facts = {fact["field"]: fact for fact in one["facts"]}
    assert facts["control_plane_fee"]["text"] == unknown
    assert facts["control_plane_fee"]["known"] is False
    assert facts["interconnect"]["sources"]
    assert facts["interconnect"]["as_of"]
    assert one["offers_found"] > 100


async def test_fields_choose_the_facts(client: httpx.AsyncClient) -> None:
    one = await get(client, "/v1/providers/aws", fields=["spot_notice", "sharing"])
    assert [fact["field"] for fact in one["facts"]] == ["spot_notice", "spot", "time_slicing", "mig", "mps"]


async def test_comparison_takes_ids_repeated_or_with_commas(client: httpx.AsyncClient) -> None:
    for ids in (["runpod", "coreweave", "eks"], "runpod,coreweave,eks"):
        found = await get(client, "/v1/providers/compare", ids=ids, managed="true", gpu="h100")
        assert [one["id"] for one in found["items"]] == ["runpod", "coreweave", "aws"]
        assert [one["verdict"] for one in found["items"]] == ["fails", "meets", "meets"]
        fields = [[fact["field"] for fact in one["facts"]] for one in found["items"]]
        assert "kubernetes" in fields[0]


@pytest.mark.parametrize("path", ["/v1/providers/mars", "/v1/providers/compare?ids=aws,mars"])
async def test_an_unknown_provider_is_not_found_and_the_known_ones_are_named(
    client: httpx.AsyncClient, path: str
) -> None:
    response = await client.get(path)
    assert response.status_code == 404
    assert response.json()["type"].endswith("provider-unknown")
    assert "coreweave" in response.json()["known"]


async def test_offers_come_page_by_page_each_once_and_in_order(client: httpx.AsyncClient) -> None:
    seen: list[Any] = []
    path: str | None = "/v1/offers?gpu=h100&spot=false&limit=70"
    while path:
        response = await client.get(path)
        page = response.json()
        seen += page["items"]
        link = response.headers.get("link")
        path = link[1 : link.index(">")] if link else None
        assert (path is None) == (page["next_cursor"] is None)
    assert len(seen) == page["found"] > 140
    prices = [one["usd_gpu_hour"] for one in seen if one["usd_gpu_hour"] is not None]
    assert prices == sorted(prices)
    assert len({tuple(sorted((key, str(value)) for key, value in one.items())) for one in seen}) == len(seen)
    assert all(one["purchase"] == "on_demand" for one in seen)


async def test_all_offers_are_those_of_the_price_lists_without_regions_of_authorities(
    client: httpx.AsyncClient,
) -> None:
    found = await get(client, "/v1/offers", limit=1)
    public = [offer for offer in bundled().offers if "gov" not in (offer.region or "")]
    assert found["found"] == len(public)


@pytest.mark.parametrize("cursor", ["nonsense", "!!", "bm90LW91cnM=", ""])
async def test_a_cursor_of_another_list_is_refused(client: httpx.AsyncClient, cursor: str) -> None:
    response = await client.get("/v1/offers", params={"cursor": cursor})
    assert response.status_code == 400
    assert response.json()["type"].endswith("cursor-invalid")


async def test_a_cursor_holds_for_its_own_filters_only(client: httpx.AsyncClient) -> None:
    cursor = (await get(client, "/v1/offers", gpu="h100", limit=5))["next_cursor"]
    assert (await client.get("/v1/offers", params={"gpu": "l4", "cursor": cursor})).status_code == 400


async def test_euro_come_with_their_rate(client: httpx.AsyncClient) -> None:
    found = await get(client, "/v1/offers", gpu="h100", currency="eur", max_price_eur_hour=2, limit=3)
    rate = found["rate"]
    assert rate["as_of"]
    for one in found["items"]:
        assert one["eur_gpu_hour"] == pytest.approx(one["usd_gpu_hour"] / rate["usd_per_eur"], abs=1e-3)
        assert one["eur_gpu_hour"] <= 2
    assert (await get(client, "/v1/offers", gpu="h100", limit=1))["rate"] is None
