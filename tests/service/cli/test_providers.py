"""``providers``, ``compare``, ``offers`` and ``catalog`` at the terminal."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rules.facts.offers import Filters
from service.catalog.filter_words import MEANING
from tests.fakes.price_catalogs import PriceCatalogs, row
from tests.service.cli.running import Cli


@pytest.fixture
def catalogs() -> Iterator[PriceCatalogs]:
    with PriceCatalogs() as running:
        yield running


def settings(cli: Cli, catalogs: PriceCatalogs, sources: str = "[aws, gcp]", **more: str) -> Path:
    path = cli.home / "settings.yaml"
    extra = "".join(f"{key}: {value}\n" for key, value in more.items())
    path.write_text(
        f"database_url: sqlite:///{cli.home}/prices.db\n"
        f"catalog: {{url: '{catalogs.url}', providers: {sources}}}\n{extra}",
        encoding="utf-8",
    )
    return path


def read(cli: Cli, *arguments: str | Path) -> Any:
    done = cli(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_every_filter_is_an_option() -> None:
    assert set(MEANING) == set(Filters.__struct_fields__)


def test_text_and_json_show_the_same_providers(cli: Cli) -> None:
    asked = ("providers", "--gpu", "h100", "--gpu-count", "8", "--managed", "--no-spot", "--compliance", "soc2")
    found = read(cli, *asked)
    lines = cli(*asked).stdout.decode().splitlines()
    assert [line.split()[0] for line in lines[1:4]] == [one["id"] for one in found["items"][:3]]
    assert "Nothing is known of any provider on compliance" in "\n".join(lines)
    assert all(one["checks"][0]["verdict"] for one in found["items"])


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ("not documented: ask the provider", "Control-plane fee")),
        ("es", ("sin documentar: pregunta al proveedor", "Coste del plano de control")),
        ("it", ("non documentato: chiedi al provider", "Costo del control plane")),
    ],
)
def test_a_provider_is_shown_in_three_languages(cli: Cli, language: str, words: tuple[str, ...]) -> None:
    text = cli("providers", "show", "Lambda Labs", "--lang", language).stdout.decode()
    assert all(word in text for word in words)
    assert "lambda" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["providers", "show"], "show ID"),
        (["providers", "coreweave"], "show ID"),
        (["providers", "show", "mars"], "there is no provider 'mars'"),
        (["compare", "aws", "mars"], "there is no provider 'mars'"),
        (["providers", "--gpu", "zz9"], "no GPU model"),
        (["offers", "--sort", "colour"], "price_asc"),
        (["catalog", "refresh", "--provider", "mars"], "there is no provider 'mars'"),
    ],
    ids=str,
)
def test_what_cannot_be_used_ends_with_2_and_says_why(cli: Cli, arguments: list[str], says: str) -> None:
    done = cli(*arguments, DATABASE_URL=f"sqlite:///{cli.home}/x.db")
    assert done.returncode == 2
    assert says in done.stderr.decode()


def test_without_network_and_database_everything_works_on_bundled_data_and_says_how_old_it_is(cli: Cli) -> None:
    for command in (["providers", "--gpu", "l4"], ["offers", "--gpu", "l4"], ["compare", "aws", "gcp"], ["catalog"]):
        done = cli(*command, HTTPS_PROXY="http://127.0.0.1:9", HTTP_PROXY="http://127.0.0.1:9")
        assert done.returncode == 0, done.stderr.decode()
        assert "2026-0" in done.stdout.decode()
    assert not list(cli.home.glob("*.db")), "reading makes no database"


def test_a_refresh_is_on_record_and_used_by_the_other_commands(cli: Cli, catalogs: PriceCatalogs) -> None:
    config = settings(cli, catalogs)
    catalogs.publish("aws", "20261129-1", [row("p5.48xlarge", 44.0), row("p5.48xlarge", 20.0, spot=True)])
    catalogs.answer("gcp/version", 503)
    done = cli("catalog", "refresh", "--config", config)
    assert done.returncode == 3, "a source failed"
    said = done.stdout.decode()
    assert "updated" in said
    assert "503" in said

    (aws,) = read(cli, "catalog", "--provider", "aws", "--config", config)["items"]
    assert (aws["origin"], aws["newest"], aws["outcome"], aws["error"]) == ("fetched", "2026-11-29", "updated", None)
    (gcp,) = read(cli, "catalog", "--provider", "gcp", "--config", config)["items"]
    assert (gcp["origin"], gcp["outcome"]) == ("bundled", "failed")
    assert gcp["rows"] > 300
    assert "503" in gcp["error"]

    found = read(cli, "offers", "--gpu", "h100", "--providers", "aws", "--config", config)["items"]
    assert [(one["usd_hour"], one["as_of"], one["source"]) for one in found] == [
        (44.0, "2026-11-29", "gpuhunt catalogue aws 20261129-1")
    ]
    (kept,) = read(cli, "catalog", "history", "--config", config)["items"]
    assert (kept["provider"], kept["version"], kept["rows"]) == ("aws", "20261129-1", 1)


def test_contract_prices_and_private_providers_win_over_lists(cli: Cli, catalogs: PriceCatalogs) -> None:
    config = settings(
        cli,
        catalogs,
        prices="[{provider: aws, instance_type: p5.48xlarge, usd_hour: 10, as_of: 2026-10-01, note: ours}]",
        providers="[{id: gcp, as_of: 2026-10-02, kubernetes: own, offers: "
        "[{instance_type: box, gpu: H100, gpu_count: 8, usd_hour: 9}]}]",
    )
    found = read(cli, "offers", "--gpu", "h100", "--providers", "aws", "--providers", "gcp", "--config", config)
    cheapest = [(one["provider"], one["usd_hour"], one["purchase"], one["source"]) for one in found["items"][:2]]
    assert cheapest == [("gcp", 9.0, "contract", "settings"), ("aws", 10.0, "contract", "contract price: ours")]
    assert not [one for one in found["items"] if one["provider"] == "gcp" and one["instance_type"] != "box"]
    (gcp,) = read(cli, "compare", "gcp", "--config", config)["items"]
    assert gcp["private"] is True
    facts = {fact["field"]: fact for fact in gcp["facts"]}
    assert facts["kubernetes"]["sources"] == ["settings"]
    assert facts["spot"]["known"] is False


def test_a_database_that_cannot_be_read_costs_the_fetched_prices_only(cli: Cli) -> None:
    (cli.home / "broken.db").write_text("this is no database, whatever its name says " * 40, encoding="utf-8")
    done = cli("offers", "--gpu", "l4", DATABASE_URL=f"sqlite:///{cli.home}/broken.db")
    assert done.returncode == 0
    assert "those of the package are used" in done.stderr.decode()
    assert done.stdout


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("catalog: {url: 'http://example.org'}\n", 1, "https address"),
        ("language: en\ncatalog:\n  providers: [mars]\n", 2, "no prices can be fetched for mars"),
        ("providers:\n  - id: Our DC\n    as_of: 2026-01-01\n", 2, "matching regex"),
        ("providers:\n  - id: dc\n", 2, "as_of"),
        ("providers:\n  - id: dc\n    as_of: 2026-01-01\n    offers: [{instance_type: a, gpu: L4}]\n", 4, "usd_hour"),
    ],
    ids=["url", "source", "id", "date", "price"],
)
def test_wrong_settings_name_their_line(cli: Cli, text: str, line: int, says: str) -> None:
    path = cli.home / "wrong.yaml"
    path.write_text(text, encoding="utf-8")
    done = cli("providers", "--config", path)
    assert done.returncode == 2
    assert says in done.stderr.decode()
    assert f"line {line}" in done.stderr.decode()
