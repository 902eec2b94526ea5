"""Advice: the verdict, the machines, the prices and what is not known."""

import math
from typing import Any

import msgspec
import pytest

from rules.advice.advise import advise
from rules.advice.model import Advice, Verdict
from rules.advice.request import AdviceInvalid, read
from rules.facts.offers import HOURS_PER_MONTH, Catalog
from rules.facts.prices import Offer, PriceBook
from rules.facts.providers import Provider
from tests.rules.advice.catalogue import advice, catalog

LLM = {"name": "llm", "parameters_b": 70, "precision": "fp16"}
NODES: dict[str, Any] = {"kind": "training", "gpu": ["H100"], "gpus": 8, "nodes": 4}
REQUESTS: tuple[dict[str, Any], ...] = (
    {"kind": "notebook", "gpu": ["L4"]},
    {"kind": "inference", "models": [LLM], "region": "eu"},
    {"kind": "inference", "gpu": ["A100"], "models": [{"name": "small", "memory_gib": 3, "replicas": 12}]},
    {"kind": "batch", "gpu": ["T4"], "interruptible": True, "parallel": 5},
    NODES,
)


@pytest.mark.parametrize(
    ("request_", "verdict"),
    [
        ({"kind": "notebook", "gpu": ["L4"]}, "no"),
        ({"kind": "fine-tune", "gpu": ["A100"]}, "no"),
        ({"kind": "inference", "models": [LLM], "autoscaling": True, "team": {"kubernetes": True}}, "yes"),
        ({"kind": "inference", "gpu": ["A100"], "models": [{"name": "s", "memory_gib": 3, "replicas": 12}]}, "yes"),
        (NODES, "yes"),
        ({**NODES, "team": {"platform_engineers": False, "kubernetes": False}}, "depends"),
        ({"kind": "batch", "gpu": ["L4"], "parallel": 10}, "yes"),
        (
            {
                "kind": "inference",
                "gpu": ["L4"],
                "team": {"existing_cluster": True, "kubernetes": True, "gitops": True},
            },
            "yes",
        ),
    ],
)
def test_the_verdict_follows_the_tradeoff(request_: dict[str, Any], verdict: Verdict) -> None:
    found = advice(**request_).kubernetes
    assert found.verdict == verdict
    assert found.score == sum(reason.weight for reason in found.reasons)


@pytest.mark.parametrize("request_", REQUESTS, ids=[f"{number}-{one['kind']}" for number, one in enumerate(REQUESTS)])
def test_what_would_change_the_answer_is_another_answer(request_: dict[str, Any]) -> None:
    found = advice(**request_).kubernetes
    assert all(change.verdict != found.verdict for change in found.changes)


def test_a_cluster_that_exists_changes_the_answer_as_foretold() -> None:
    found = advice(kind="notebook", gpu=["L4"]).kubernetes
    told = {change.key: change.verdict for change in found.changes}
    assert (
        advice(kind="notebook", gpu=["L4"], team={"existing_cluster": True}).kubernetes.verdict
        == told["existing_cluster"]
    )


@pytest.mark.parametrize("request_", REQUESTS, ids=[f"{number}-{one['kind']}" for number, one in enumerate(REQUESTS)])
def test_totals_are_machines_times_hours_and_the_fee(request_: dict[str, Any]) -> None:
    found = advice(**request_, hours_per_month=100)
    demand = found.demand
    assert demand is not None
    assert found.providers
    for one in found.providers:
        if one.offer is None:
            assert one.usd_month is None
            continue
        assert one.usd_hour is not None
        assert one.gpus is not None
        assert one.gpus >= demand.gpus
        assert one.machines_usd_month == pytest.approx(one.usd_hour * 100)
        assert one.machines_usd_month is not None
        assert one.usd_month == pytest.approx(one.machines_usd_month + (one.fee_usd_month or 0))
        if one.machines is not None:
            count = one.offer.offer.gpu_count or 0
            assert count >= demand.per_machine
            assert one.machines == (demand.machines or math.ceil(demand.gpus / count))
        plane = one.provider.control_plane
        if found.control.choice == "managed" and found.kubernetes.verdict == "yes":
            fee = plane.fee_usd_hour if plane else None
            assert one.fee_unknown == (fee is None)
            assert one.fee_usd_month == (None if fee is None else fee * HOURS_PER_MONTH)
        assert request_.get("interruptible") or one.offer.purchase != "spot"


def test_no_provider_that_fails_a_wish_is_ranked_and_gaps_come_later() -> None:
    found = advice(**NODES)
    assert all(check.verdict != "fails" for one in found.providers for check in one.checks)
    assert all(one.failed for one in found.ruled_out)
    gaps = [len(one.unknown) + len(one.doubts) for one in found.providers if one.offer]
    assert gaps == sorted(gaps)
    asked = {check.filter for check in found.providers[0].checks}
    assert {"interconnect", "shared_storage", "feature", "gpu_count"} <= asked


def own(*offers: Offer, **facts: Any) -> Catalog:
    provider = msgspec.convert({"id": "mine", "name": "Mine", **facts}, Provider)
    return Catalog({"mine": provider}, PriceBook(offers))


def offer(name: str, gpus: float, price: float | None, spot: float | None = None) -> Offer:
    return Offer("mine", name, "de-1", "L4", gpus, 24, 8, 32, price, spot, "2026-11-01", "price list")


def on(found: Catalog, **request: Any) -> Advice:
    return advise(read({"kind": "batch", "gpu": ["L4"], "parallel": 3, **request}), found)


def test_the_cheapest_machines_for_all_gpus_together_are_taken() -> None:
    found = on(own(offer("one", 1, 1.0), offer("four", 4, 2.5), offer("eight", 8, 4.0)))
    (mine,) = found.providers
    assert (mine.offer and mine.offer.offer.instance_type, mine.machines, mine.gpus, mine.usd_hour) == (
        "four",
        1,
        4,
        2.5,
    )


def test_spot_prices_count_only_where_interruption_is_tolerated() -> None:
    found = own(offer("one", 1, 1.0, 0.25))
    assert on(found).providers[0].usd_hour == 3.0
    assert on(found, interruptible=True).providers[0].usd_hour == 0.75
    assert "spot_notice_unknown" in {item.key for item in on(found, interruptible=True).providers[0].reasons_against}


def test_a_fee_that_is_not_documented_is_said_and_not_taken_for_zero() -> None:
    (mine,) = on(own(offer("one", 1, 1.0))).providers
    assert (mine.fee_usd_month, mine.fee_unknown) == (None, True)
    assert "fee_unknown" in {item.key for item in mine.reasons_against}
    assert "no_fee" not in {item.key for item in mine.reasons_for}
    fact = {"sources": ["s"], "as_of": "2026", "fee_usd_hour": 0.1}
    (mine,) = on(own(offer("one", 1, 1.0), control_plane=fact)).providers
    assert mine.fee_usd_month == pytest.approx(73)
    assert not mine.fee_unknown
    assert mine.usd_month == pytest.approx(3 * 730 + 73)


def test_a_budget_that_is_missed_says_by_how_much_and_what_fits() -> None:
    found = own(offer("one", 1, 1.0, 0.25))
    budget = on(found, budget_usd_month=1000).budget
    assert budget is not None
    assert (budget.best, budget.best_usd_month, budget.over_usd_month) == ("Mine", 2190, 1190)
    ways = {item.key: item.values for item in budget.ways}
    assert ways["fewer_hours"]["hours"] == 333
    assert ways["on_spot"]["usd"] == pytest.approx(547.5)
    tight = on(found, budget_usd_hour=0.1).budget
    assert tight is not None
    assert [item.key for item in tight.ways] == ["nothing_fits"]
    enough = on(found, budget_usd_month=3000).budget
    assert enough is not None
    assert (enough.over_usd_month, enough.ways) == (None, ())
    assert {"managed", "fee"} <= set(enough.unsure)


def test_the_cheapest_kind_of_gpu_is_found_among_all() -> None:
    request: dict[str, Any] = {"kind": "inference", "models": [LLM]}
    free = advice(**request).sharing
    assert free is not None
    for name in ("H100", "A100-80GB", "H200", "B300", "L40S"):
        fixed = advice(**request, gpu=[name]).sharing
        assert fixed is not None
        assert fixed.usd_hour is None or free.usd_hour is None or free.usd_hour <= fixed.usd_hour


def test_third_parties_are_left_out_when_refused() -> None:
    request: dict[str, Any] = {"kind": "notebook", "gpu": ["RTX 4090"], "providers": ["runpod", "akash"]}
    named = [one.offer.offer.instance_type for one in advice(**request).providers if one.offer]
    assert any("community" in name or "marketplace" in name for name in named)
    refused = advice(**request, marketplace=False)
    names = [one.offer.offer.instance_type for one in refused.providers if one.offer]
    assert not any("community" in name or "marketplace" in name for name in names)
    assert "marketplace_out" in {item.key for item in refused.remarks}


def test_what_is_missing_is_asked_for_and_nothing_is_guessed() -> None:
    found = advice(kind="inference", models=[{"name": "llm"}])
    assert found.needs_more == ("models[0].memory_gib",)
    assert (found.demand, found.providers) == (None, ())
    assert advice(kind="batch").needs_more == ("models", "gpu")


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"kind": "game"}, "kind"),
        ({}, "kind"),
        ({"kind": "batch", "colour": 1}, "colour"),
        ({"kind": "batch", "gpu": ["L4", "X9000"]}, "gpu[1]"),
        ({"kind": "batch", "gpu": ["L4"], "nodes": 0}, "nodes"),
        ({"kind": "batch", "gpu": ["L4"], "region": "mars"}, "region"),
        ({"kind": "batch", "gpu": ["L4"], "exclude": ["nobody"]}, "exclude[0]"),
        ({"kind": "batch", "gpu": ["L4"], "providers": ["nobody"]}, "providers[0]"),
        ({"kind": "batch", "models": [{"name": "a", "memory_gib": -1}]}, "models[0].memory_gib"),
        ({"kind": "batch", "models": [{"name": "a", "memory_gib": 1, "memory_gb": 1}]}, "models[0].memory_gb"),
        (
            {"kind": "batch", "gpu": ["L4"], "models": [{"name": "a", "memory_gib": 1, "profile": "1g.5gb"}]},
            "models[0].profile",
        ),
        ({"kind": "batch", "team": {"gitops": "maybe"}}, "team.gitops"),
    ],
)
def test_a_wrong_value_is_named(request_: dict[str, Any], field: str) -> None:
    with pytest.raises(AdviceInvalid) as caught:
        advise(read(request_), catalog())
    assert caught.value.field == field


def test_old_and_unbelievable_prices_are_shown_with_their_doubt_and_do_not_decide() -> None:
    old = msgspec.structs.replace(offer("old", 1, 0.9), as_of="2025-03-07")
    assert on(own(offer("fair", 1, 1.0), old)).providers[0].usd_hour == 3.0
    (only,) = on(own(old, msgspec.structs.replace(offer("x", 8, 9.0), gpu_model="H100"))).providers
    assert only.doubts == ("price_old",)
    assert "price_old" in {item.key for item in only.reasons_against}
    slip = msgspec.structs.replace(offer("slip", 1, 0.02), provider="other")
    fair = msgspec.structs.replace(offer("fair", 1, 1.1), provider="third")
    found = own(offer("one", 1, 1.0), slip, fair)
    named = {name: msgspec.convert({"id": name, "name": name}, Provider) for name in ("mine", "other", "third")}
    ranked = on(Catalog(named, found.book)).providers
    assert [(one.provider.id, one.doubts) for one in ranked] == [("mine", ()), ("third", ()), ("other", ("price_low",))]
    assert "cheapest" in {item.key for item in ranked[0].reasons_for}


def test_the_cheapest_is_no_slip_of_a_list() -> None:
    found = advice(kind="notebook", gpu=["L4"])
    (least,) = [one for one in found.providers if "cheapest" in {item.key for item in one.reasons_for}]
    assert not least.doubts
    assert found.providers[0].usd_hour is not None
    assert found.providers[0].usd_hour > 0.1
