"""Fetching one provider's prices: what is read, and every way in which a source can fail."""

import io
import zipfile
from datetime import date
from typing import Any

import msgspec
import pytest

from service.catalog.fetch import fetch
from service.catalog.settings import CatalogSettings
from service.errors import CatalogSourceTrouble
from tests.fakes.price_catalogs import PriceCatalogs, packed, row

TODAY = date(2026, 11, 30)


def settings(catalogs: PriceCatalogs, **more: Any) -> CatalogSettings:
    return CatalogSettings(url=catalogs.url, **more)


async def test_machines_come_with_their_region_price_date_and_source(catalogs: PriceCatalogs) -> None:
    catalogs.publish(
        "aws",
        "20260818-42",
        [
            row("p5.48xlarge", 55.04),
            row("p5.48xlarge", 20.0, spot=True),
            row("p5.48xlarge", 18.0, spot=True),
            row("p5.48xlarge", 60.5, location="eu-west-1"),
            row("m7i.large", 0.1, gpu_count=0, gpu_name="", gpu_memory="", gpu_vendor=""),
            row("free", 0.0),
            row("p4d.24xlarge", 21.96, gpu_name="A100", gpu_memory=40.0),
            row("g5g.xlarge", 0.42, gpu_count=1, gpu_name="T4G", gpu_memory=16.0, cpu_arch="arm"),
        ],
    )
    found = await fetch("aws", settings(catalogs), TODAY)
    assert found.version == "20260818-42"
    shown = [(one.instance_type, one.region, one.price_usd_hour, one.spot_price_usd_hour) for one in found.offers]
    assert shown == [
        ("g5g.xlarge", "us-east-1", 0.42, None),
        ("p4d.24xlarge", "us-east-1", 21.96, None),
        ("p5.48xlarge", "eu-west-1", 60.5, None),
        ("p5.48xlarge", "us-east-1", 55.04, 18.0),
    ]
    assert {(one.as_of, one.source) for one in found.offers} == {("2026-08-18", "gpuhunt catalogue aws 20260818-42")}
    assert [(one.gpu_model, one.arch) for one in found.offers[:2]] == [("T4G", "arm64"), ("A100-40GB", "amd64")]


async def test_zones_become_one_region_and_machines_that_take_any_gpu_are_told_apart(catalogs: PriceCatalogs) -> None:
    catalogs.publish(
        "gcp",
        "today",
        [
            row("a3-highgpu-8g", 90.0, location="us-central1-a"),
            row("a3-highgpu-8g", 88.0, location="us-central1-b"),
            row("n1-standard-8", 0.7, location="us-central1-a", gpu_count=1, gpu_name="T4", gpu_memory=16.0),
            row("n1-standard-8", 2.8, location="us-central1-a", gpu_count=1, gpu_name="V100", gpu_memory=16.0),
            row("tpu", 4.0, location="us-central1-a", gpu_name="v5litepod", gpu_vendor="google"),
        ],
    )
    found = await fetch("gcp", settings(catalogs), TODAY)
    assert [(one.instance_type, one.region, one.price_usd_hour) for one in found.offers] == [
        ("a3-highgpu-8g", "us-central1", 88.0),
        ("n1-standard-8 [1 x T4]", "us-central1", 0.7),
        ("n1-standard-8 [1 x V100-16GB]", "us-central1", 2.8),
    ]
    assert found.offers[0].as_of == "2026-11-30", "a version that shows no date counts as read today"


async def test_names_are_those_that_nodes_and_people_use(catalogs: PriceCatalogs) -> None:
    named = {
        "H100NVL": "H100-NVL",
        "A6000": "RTX A6000",
        "RTX6000": "Quadro RTX 6000",
        "RTX6000Ada": "RTX 6000 Ada",
        "RTXPRO6000": "RTX PRO 6000",
        "RTX4070TiSUPER": "RTX 4070 Ti Super",
        "MI300X": "MI300X",
        "A10": "A10",
    }
    catalogs.publish("nebius", "1", [row(f"gpu-{name} 1gpu", 1.0, gpu_name=name) for name in named])
    found = await fetch("nebius", settings(catalogs), TODAY)
    assert {one.instance_type: one.gpu_model for one in found.offers} == {
        f"gpu-{name}_1gpu": ours for name, ours in named.items()
    }


def bomb() -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("aws.csv", b"x" * 3_000_000)
    return archive.getvalue()


def other() -> bytes:
    return packed("azure", [row("x", 1.0)])


@pytest.mark.parametrize(
    ("answers", "reason", "says"),
    [
        ({}, "unavailable", "answers 404"),
        ({"aws/version": (500, b"")}, "unavailable", "answers 500"),
        ({"aws/version": (200, b"<html>")}, "invalid", "is no version"),
        ({"aws/version": (200, b"../../x")}, "invalid", "is no version"),
        ({"aws/version": (200, b"1" * 5000)}, "too-large", "larger than 1000 bytes"),
        ({"aws/version": (200, b"1")}, "unavailable", "catalog.zip answers 404"),
        ({"aws/version": (200, b"1"), "aws/1/catalog.zip": (200, b"not a zip")}, "invalid", "no aws.csv"),
        ({"aws/version": (200, b"1"), "aws/1/catalog.zip": (200, other())}, "invalid", "no aws.csv"),
        ({"aws/version": (200, b"1"), "aws/1/catalog.zip": (200, b"x" * 1_100_000)}, "too-large", "1000000 bytes"),
        ({"aws/version": (200, b"1"), "aws/1/catalog.zip": (200, bomb())}, "too-large", "aws.csv is larger"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_a_source_that_fails_says_how(
    catalogs: PriceCatalogs, answers: dict[str, tuple[int, bytes]], reason: str, says: str
) -> None:
    for path, (status, body) in answers.items():
        catalogs.answer(path, status, body)
    with pytest.raises(CatalogSourceTrouble, match=says) as caught:
        await fetch("aws", settings(catalogs, max_megabytes=1), TODAY)
    assert caught.value.reason == reason
    assert caught.value.provider == "aws"


async def test_a_source_that_holds_the_line_is_given_up(catalogs: PriceCatalogs) -> None:
    catalogs.answer("aws/version", 0)
    with pytest.raises(CatalogSourceTrouble) as caught:
        await fetch("aws", settings(catalogs, timeout_seconds=0.3), TODAY)
    assert caught.value.reason in ("timeout", "unreachable")


async def test_a_machine_that_is_not_there_is_unreachable() -> None:
    with PriceCatalogs() as gone:
        closed = settings(gone)
    with pytest.raises(CatalogSourceTrouble) as caught:
        await fetch("aws", closed, TODAY)
    assert caught.value.reason == "unreachable"


async def test_a_provider_that_wants_a_key_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOTAISLE_API_KEY", raising=False)
    with pytest.raises(CatalogSourceTrouble, match="HOTAISLE_API_KEY"):
        await fetch("hotaisle", CatalogSettings(), TODAY)


async def test_asking_a_provider_is_ended_with_its_process_when_time_is_up() -> None:
    with pytest.raises(CatalogSourceTrouble) as caught:
        await fetch("hotaisle", CatalogSettings(timeout_seconds=0.05), TODAY)
    assert caught.value.reason == "timeout"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"url": "http://example.org"}, "https address"),
        ({"url": "file:///etc"}, "https address"),
        ({"providers": ["aws", "mars"]}, "no prices can be fetched for mars"),
        ({"refresh_hours": 0}, ">= 1"),
        ({"euro": {"usd_per_eur": 1.1}}, "as_of"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_used_are_refused(values: dict[str, Any], says: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=says):
        msgspec.convert(values, CatalogSettings)
