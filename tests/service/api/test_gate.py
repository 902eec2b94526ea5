"""Who is let in: token, host and origin."""

import asyncio

import httpx
import msgspec
import pytest

from bot.settings import SlackSettings
from service.app import build
from service.errors import ConfigInvalid
from service.settings import Settings
from tests.service.api.doubles import DoubleAdvisor, serving

TOKEN = "correct horse battery staple"
GUARDED = ["/", "/v1/clusters", "/v1/rules", "/v1/findings", "/schema", "/schema/openapi.json", "/metrics", "/none"]
OPEN = ["/health/live", "/health/ready"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com", ""])
def test_serving_other_machines_without_a_token_is_refused(host: str) -> None:
    with pytest.raises(ConfigInvalid, match="GPU_ADVISOR_API_TOKEN"):
        build(Settings(host=host), advisor=DoubleAdvisor())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_loopback_needs_no_token(host: str) -> None:
    assert build(Settings(host=host), advisor=DoubleAdvisor()) is not None


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
async def test_a_token_guards_everything_but_probes(host: str) -> None:
    async with serving(Settings(host=host, api_token=TOKEN), DoubleAdvisor()) as client:
        for path in GUARDED:
            refused = await client.get(path)
            assert refused.status_code == 401, path
            assert refused.headers["www-authenticate"].startswith("Bearer")
            assert refused.headers["content-type"] == "application/problem+json"
            let_in = await client.get(path, headers={"authorization": f"Bearer {TOKEN}"})
            assert let_in.status_code == (404 if path == "/none" else 200), path
        for path in OPEN:
            assert (await client.get(path)).status_code == 200
        assert (await client.post("/v1/ask", json={"text": "hi"})).status_code == 401
        assert (await client.post("/v1/clusters/prod/audits")).status_code == 401


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, "token-missing"),
        ("Bearer", "token-missing"),
        (f"Basic {TOKEN}", "token-wrong"),
        (f"Bearer {TOKEN}x", "token-wrong"),
        (f"Bearer {TOKEN[:-1]}", "token-wrong"),
        ("Bearer ñandú", "token-wrong"),
    ],
)
async def test_a_missing_or_wrong_token_is_told_apart(header: str | None, code: str) -> None:
    async with serving(Settings(api_token=TOKEN), DoubleAdvisor()) as client:
        headers = {b"authorization": header.encode()} if header is not None else {}
        response = await client.get("/v1/clusters", headers=headers)
        assert response.status_code == 401
        assert response.json()["type"].endswith(code)
        assert TOKEN not in response.text


async def test_the_scheme_of_the_token_is_case_insensitive() -> None:
    async with serving(Settings(api_token=TOKEN), DoubleAdvisor()) as client:
        response = await client.get("/v1/clusters", headers={"authorization": f"bearer {TOKEN}"})
        assert response.status_code == 200


async def test_spelling_a_path_differently_does_not_open_the_gate() -> None:
    async with serving(Settings(api_token=TOKEN), DoubleAdvisor()) as client:
        for path in (
            "//health/live",
            "/health/live/../../v1/clusters",
            "/v1/clusters/",
            "/V1/clusters",
            "/health/livex",
        ):
            response = await client.get(f"http://127.0.0.1:{client.base_url.port}{path}")
            assert response.status_code == 401, path


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "127.9.9.9"])
async def test_names_of_this_machine_are_answered_without_a_token(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/v1/clusters", headers={"host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "192.0.2.1", "["])
async def test_another_name_is_refused_against_dns_rebinding(client: httpx.AsyncClient, host: str) -> None:
    response = await client.get("/v1/clusters", headers={"host": host})
    assert response.status_code == 421
    assert response.json()["type"].endswith("host-not-allowed")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example"])
async def test_pages_of_other_sites_cannot_start_anything(
    client: httpx.AsyncClient, advisor: DoubleAdvisor, origin: str
) -> None:
    response = await client.post("/v1/clusters/prod/audits", headers={"origin": origin})
    assert response.status_code == 403
    assert advisor.audits == {}


async def test_pages_of_this_machine_may(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/clusters/prod/audits", headers={"origin": "http://localhost:3000"})
    assert response.status_code == 202


async def test_a_token_makes_host_and_origin_needless() -> None:
    async with serving(Settings(api_token=TOKEN), DoubleAdvisor()) as client:
        headers = {"authorization": f"Bearer {TOKEN}", "host": "gpu.example", "origin": "https://ui.example"}
        assert (await client.get("/v1/clusters", headers=headers)).status_code == 200


async def test_slack_needs_its_signature_and_neither_token_nor_host() -> None:
    slack = SlackSettings(bot_token="xoxb-1", signing_secret="shh", base_url="http://127.0.0.1:1/")
    settings = Settings(api_token=TOKEN, slack=slack)
    for given in (settings, msgspec.structs.replace(settings, api_token=None)):
        async with serving(given, DoubleAdvisor()) as client:
            headers = {"host": "bot.example.com"}
            unsigned = await client.post("/slack/events", content=b"{}", headers=headers)
            assert unsigned.status_code == 401
            assert unsigned.headers["content-type"] != "application/problem+json"
            challenge = b'{"type": "url_verification", "challenge": "abc"}'
            signed = await client.post("/slack/events", content=challenge, headers={**headers, **_signed(challenge)})
            assert signed.status_code == 200, signed.text
            assert "abc" in signed.text


async def test_socket_mode_needs_no_route_and_does_not_wait_for_slack() -> None:
    slack = SlackSettings(bot_token="xoxb-1", app_token="xapp-1", base_url="http://127.0.0.1:1/")
    async with asyncio.timeout(20), serving(Settings(slack=slack), DoubleAdvisor()) as client:
        assert (await client.get("/health/live")).status_code == 200
        assert (await client.post("/slack/events", content=b"{}")).status_code == 404


async def test_without_slack_there_is_no_slack_route(client: httpx.AsyncClient) -> None:
    assert (await client.post("/slack/events", content=b"{}")).status_code == 404


async def test_the_application_starts_and_stops_what_runs_behind_it() -> None:
    advisor = DoubleAdvisor()
    async with serving(Settings(), advisor):
        assert advisor.running
    assert not advisor.running


async def test_work_that_does_not_stop_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck(DoubleAdvisor):
        async def stop(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr("service.app.STOP_SECONDS", 0.01)
    async with asyncio.timeout(20), serving(Settings(), Stuck()) as client:
        assert (await client.get("/health/live")).status_code == 200


def _signed(body: bytes) -> dict[str, str]:
    import time

    from slack_sdk.signature import SignatureVerifier

    now = str(int(time.time()))
    signature = SignatureVerifier("shh").generate_signature(timestamp=now, body=body)
    return {
        "x-slack-request-timestamp": now,
        "x-slack-signature": str(signature),
        "content-type": "application/json",
    }
