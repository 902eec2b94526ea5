"""Prices of nodes: which row counts, how sure it is, and when nothing is said."""

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from rules.facts.gpu_models import model_key
from rules.facts.prices import ContractPrice, Offer, Price, PriceBook, bundled


def offer(provider: str = "p", name: str = "big", region: str | None = "r1", **more: Any) -> Offer:
    row: dict[str, Any] = {
        "gpu_model": "H100-SXM",
        "gpu_count": 8.0,
        "gpu_memory_gib": 80.0,
        "vcpus": None,
        "memory_gib": None,
        "price_usd_hour": 20.0,
        "spot_price_usd_hour": None,
        "as_of": "2026-08-01",
        "source": "list",
    }
    return Offer(provider=provider, instance_type=name, region=region, **{**row, **more})


@dataclass
class Ask:
    """A node to be priced; every field may be changed."""

    provider: str | None = "p"
    instance_type: str | None = "big"
    region: str | None = "r1"
    spot: bool | None = False
    product: str | None = "NVIDIA-H100-80GB-HBM3"
    gpus: int | None = 8


def find(rows: list[Offer], ask: Ask | None = None, *contract: ContractPrice) -> Price | None:
    ask = ask or Ask()
    return PriceBook(tuple(rows)).with_contract(contract).find(**vars(ask))


def summary(price: Price | None) -> tuple[float, str, str | None] | None:
    return (price.usd_hour, price.basis, price.as_of) if price else None


def test_the_list_price_of_type_and_region_comes_first_and_the_newest_row_wins() -> None:
    rows = [
        offer(price_usd_hour=30.0, as_of="2025-04-04"),
        offer(price_usd_hour=22.0, as_of="2026-07-20"),
        offer(price_usd_hour=90.0, as_of=None),
        offer(region="r2", price_usd_hour=50.0, as_of="2026-08-01"),
    ]
    assert summary(find(rows)) == (22.0, "list", "2026-07-20")
    assert summary(find(rows[::-1])) == (22.0, "list", "2026-07-20")
    assert summary(find(rows, Ask(instance_type="BIG"))) == (22.0, "list", "2026-07-20")


def test_a_price_for_all_regions_is_a_list_price() -> None:
    assert summary(find([offer(region="all")])) == (20.0, "list", "2026-08-01")
    assert summary(find([offer(region="all")], Ask(region=None))) == (20.0, "list", "2026-08-01")


def test_other_regions_stand_in_with_their_median_and_oldest_date() -> None:
    rows = [
        offer(region="a", price_usd_hour=10.0),
        offer(region="b", price_usd_hour=12.0, as_of="2026-06-01"),
        offer(region="c", price_usd_hour=90.0),
        offer(region="us-gov-west-1", price_usd_hour=1000.0),
    ]
    assert summary(find(rows)) == (12.0, "other_region", "2026-06-01")
    assert summary(find(rows, Ask(region=None))) == (12.0, "other_region", "2026-06-01")
    assert summary(find([offer(region=None)])) == (20.0, "other_region", "2026-08-01")


def test_an_unknown_type_is_estimated_from_its_model_at_the_same_provider() -> None:
    rows = [
        offer(name="H100 (list)", region=None, gpu_count=1.0, price_usd_hour=3.0),
        offer(name="H100 PCIe", region=None, gpu_model="H100-PCIe", gpu_count=2.0, price_usd_hour=10.0),
        offer(name="slice", region=None, gpu_count=0.5, price_usd_hour=0.1),
        offer(name="A100", region=None, gpu_model="A100-SXM-80GB", gpu_count=1.0, price_usd_hour=1.0),
        offer(provider="other", name="x", gpu_count=1.0, price_usd_hour=100.0),
    ]
    assert summary(find(rows)) is not None
    ask = Ask(instance_type="unheard-of")
    assert summary(find(rows, ask)) == (32.0, "estimate", "2026-08-01")
    assert summary(find(rows, Ask(provider="third", instance_type="z", gpus=1))) == (5.0, "estimate", "2026-08-01")


@pytest.mark.parametrize(
    "ask",
    [
        Ask(provider=None, instance_type=None),
        Ask(provider=None, instance_type="k3s"),
        Ask(instance_type="z", product=None),
        Ask(instance_type="z", product="a card of tomorrow"),
        Ask(instance_type="z", gpus=None),
        Ask(instance_type="z", spot=True),
        Ask(spot=True),
    ],
)
def test_nothing_is_said_where_no_row_bears_on_the_node(ask: Ask) -> None:
    assert find([offer()], ask) is None


def test_spot_nodes_get_spot_prices_only() -> None:
    rows = [offer(), offer(region="r2", spot_price_usd_hour=7.0), offer(region="r3", spot_price_usd_hour=9.0)]
    assert summary(find(rows, Ask(region="r2", spot=True))) == (7.0, "list", "2026-08-01")
    assert summary(find(rows, Ask(spot=True))) == (8.0, "other_region", "2026-08-01")
    assert summary(find(rows, Ask(spot=None))) == (20.0, "list", "2026-08-01")


def test_a_type_of_one_provider_tells_the_provider_and_a_common_name_does_not() -> None:
    assert summary(find([offer()], Ask(provider=None))) == (20.0, "list", "2026-08-01")
    assert find([offer(), offer(provider="q")], Ask(provider=None)) is None


def test_the_teams_own_price_comes_before_all_lists_and_the_most_exact_row_wins() -> None:
    anywhere = ContractPrice(product="H100", price_usd_gpu_hour=1.5, as_of="2026-01-01", source="our contract")
    exact = ContractPrice(provider="p", instance_type="big", region="r1", price_usd_hour=9.0)
    spot_only = ContractPrice(provider="p", instance_type="big", region="r1", spot=True, price_usd_hour=4.0)
    elsewhere = ContractPrice(provider="p", region="r9", price_usd_hour=1.0)
    assert find([offer()], None, anywhere) == Price(12.0, "contract", "2026-01-01", "our contract")
    assert summary(find([offer()], None, anywhere, exact, elsewhere)) == (9.0, "contract", None)
    assert summary(find([offer()], None, exact, spot_only)) == (9.0, "contract", None)
    assert summary(find([offer()], Ask(spot=True), exact, spot_only)) == (4.0, "contract", None)
    assert summary(find([offer()], None, elsewhere)) == (20.0, "list", "2026-08-01")
    owned = Ask(provider=None, instance_type=None, region=None)
    assert summary(find([], owned, anywhere)) == (12.0, "contract", "2026-01-01")
    assert find([], Ask(provider=None, instance_type=None, gpus=None), anywhere) is None


def test_contracts_can_be_added_to_a_book_that_is_in_use() -> None:
    book = PriceBook((offer(),))
    assert summary(book.find(**vars(Ask()))) == (20.0, "list", "2026-08-01")
    assert summary(book.with_contract([ContractPrice(price_usd_hour=1.0)]).find(**vars(Ask()))) == (
        1.0,
        "contract",
        None,
    )
    assert summary(book.find(**vars(Ask()))) == (20.0, "list", "2026-08-01")


def test_shapes_tell_whole_gpus_only() -> None:
    book = PriceBook((offer(), offer(name="slice", gpu_count=0.5), offer(name="unknown", gpu_count=None)))
    counts = [
        shape and shape.gpu_count for shape in (book.shape("p", name) for name in ("big", "slice", "unknown", "no"))
    ]
    assert counts == [8, None, None, None]
    assert book.shape(None, "big") is not None


def test_every_bundled_row_has_a_source_and_a_price() -> None:
    book = bundled()
    assert len(book.offers) > 3500
    for row in book.offers:
        assert row.source
        assert row.price_usd_hour or row.spot_price_usd_hour
    assert summary(
        book.find(provider="gcp", instance_type="a2-highgpu-1g", region="europe-west4", spot=True, product=None, gpus=1)
    ) == (
        1.6928,
        "list",
        "2026-08-03",
    )


def test_prices_are_read_on_first_use_only() -> None:
    code = "import sys, rules.facts.prices, rules.facts.cluster, rules.facts.decode; print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "rules.facts.prices" in modules
    assert "yaml" not in modules
    code = "import rules.facts.prices as p; assert p.bundled.cache_info().currsize == 0"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100"),
        ("H100-SXM", "h100"),
        ("nvidia-h100-mega-80gb", "h100"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "a100 40gb"),
        ("NVIDIA-A100-80GB-PCIe", "a100 80gb"),
        ("nvidia-tesla-a100", "a100 40gb"),
        ("a100", "a100"),
        ("Tesla-T4-SHARED", "t4"),
        ("T4G", "t4g"),
        ("NVIDIA-A10G", "a10g"),
        ("NVIDIA-A10", "a10"),
        ("NVIDIA-L40S", "l40s"),
        ("NVIDIA-L4", "l4"),
        ("Tesla-V100-SXM2-32GB", "v100 32gb"),
        ("AMD_Instinct_MI300X_OAM", "mi300x"),
        ("MI300X", "mi300x"),
        ("NVIDIA-GeForce-RTX-4090", "rtx 4090"),
        ("Quadro-RTX-6000", "quadro rtx 6000"),
        ("NVIDIA-RTX-6000-Ada-Generation", "rtx 6000 ada"),
        ("NVIDIA-RTX-A6000", "rtx a6000"),
        ("A6000", "rtx a6000"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "rtx pro 6000"),
        ("Gaudi2", "gaudi2"),
        ("NVIDIA-GH200-480GB", "gh200"),
        ("something", None),
        ("", None),
    ],
)
def test_one_model_has_one_name_whoever_spells_it(name: str, key: str | None) -> None:
    assert model_key(name) == key


@pytest.mark.parametrize(
    ("row", "price", "spot_price"),
    [
        (ContractPrice(provider="AWS", instance_type="P5.48xlarge", price_usd_hour=1.0), 1.0, 1.0),
        (ContractPrice(provider="aws", price_usd_hour=1.0, spot=False), 1.0, 5.0),
        (ContractPrice(instance_type="p5.48xlarge", price_usd_hour=1.0, spot=True), 9.0, 1.0),
        (ContractPrice(product="h100", price_usd_gpu_hour=0.5, spot=False), 4.0, 5.0),
        (ContractPrice(region="mars", price_usd_hour=1.0), 9.0, 5.0),
        (ContractPrice(provider="gcp", price_usd_hour=1.0), 9.0, 5.0),
    ],
    ids=range(6),
)
def test_offers_show_the_price_that_the_team_pays(row: ContractPrice, price: float, spot_price: float) -> None:
    listed = Offer("aws", "p5.48xlarge", "us-east-1", "H100-SXM", 8.0, 80.0, 192.0, 2048.0, 9.0, 5.0, "2026-01-01", "s")
    (found,) = PriceBook((listed,), (row,)).contracted()
    assert (found.price_usd_hour, found.spot_price_usd_hour) == (price, spot_price)
    assert found.contract == ((price, spot_price) != (9.0, 5.0))
    assert PriceBook((listed,)).contracted() == (listed,)
