"""Reading image configurations from a registry over real HTTP."""

import asyncio
import base64
import json
import time
from typing import Any

import pytest

from rules.facts.images import ImageUse
from service.errors import RegistryTrouble
from service.registry.reader import ImageReader
from tests.fakes.registry import FakeRegistry
from tests.service.registry.conftest import Clock, Make

CUDA = ["CUDA_VERSION=12.8.1", "NVIDIA_REQUIRE_CUDA=cuda>=12.8", "SECRET_KEY=hunter2"]


def auths(registry: FakeRegistry, user: str = "robot", password: str = "pass") -> str:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return json.dumps({"auths": {registry.host: {"auth": pair}}})


async def trouble(reader: ImageReader, image: str) -> RegistryTrouble:
    with pytest.raises(RegistryTrouble) as caught:
        await reader.config(image)
    return caught.value


def env(config: Any) -> list[str]:
    found: list[str] = config["config"]["Env"]
    return found


async def test_the_configuration_of_the_architecture_is_read_through_the_index(
    registry: FakeRegistry, make: Make
) -> None:
    registry.add("team/train", "v1", env=CUDA)
    reader = make()
    for arch in ("amd64", "arm64"):
        config = await reader.config(f"{registry.host}/team/train:v1", arch)
        assert config["architecture"] == arch
        assert "CUDA_VERSION=12.8.1" in env(config)


async def test_a_digest_and_an_image_without_an_index_are_read_too(registry: FakeRegistry, make: Make) -> None:
    digest = registry.add("team/train", "v1", env=CUDA, index=False)
    reader = make()
    for reference in (":v1", f"@{digest}"):
        assert "CUDA_VERSION=12.8.1" in env(await reader.config(f"{registry.host}/team/train{reference}"))


async def test_nothing_but_what_compatibility_needs_is_kept(registry: FakeRegistry, make: Make) -> None:
    registry.add("team/train", "v1", env=CUDA, labels={"maintainer": "a", "com.nvidia.cuda.version": "12.8.1"})
    config = await make().config(f"{registry.host}/team/train:v1")
    assert "hunter2" not in str(config)
    assert config["config"]["Labels"] == {"com.nvidia.cuda.version": "12.8.1"}


async def test_an_anonymous_token_is_fetched_once_for_all_requests_to_a_repository(make: Make) -> None:
    with FakeRegistry("token") as registry:
        registry.add("team/train", "v1", env=CUDA)
        assert env(await make().config(f"{registry.host}/team/train:v1"))
        assert len([path for path in registry.asked() if path.startswith("/token")]) == 1
        assert "scope=repository%3Ateam%2Ftrain%3Apull" in registry.asked()[1]
        assert all("authorization" not in headers for _, path, headers in registry.requests if "/token" in path)


@pytest.mark.parametrize("kind", ["token", "basic"])
async def test_credentials_open_a_private_repository(make: Make, kind: str) -> None:
    with FakeRegistry(kind) as registry:
        registry.accounts = {"robot": "pass"}
        registry.add("team/train", "v1", env=CUDA)
        image = f"{registry.host}/team/train:v1"
        assert env(await make(auth=auths(registry)).config(image))
        assert (await trouble(make(), image)).reason == "unauthorized"
        wrong = await trouble(make(auth=auths(registry, password="wrong")), image)
        assert wrong.reason == "unauthorized"
        assert "wrong" not in str(wrong)


async def test_credentials_do_not_go_to_a_token_service_on_another_host(make: Make) -> None:
    with FakeRegistry("token") as registry, FakeRegistry("token") as other:
        registry.accounts = {"robot": "pass"}
        registry.realm = f"http://localhost:{other.port}/token"
        registry.add("team/train", "v1", env=CUDA)
        image, hosts = f"{registry.host}/team/train:v1", ("127.0.0.1", "localhost")
        await make(auth=auths(registry), hosts=hosts).config(image)
        assert [headers.get("authorization") for _, _, headers in other.requests] == [None]
        await make(auth=auths(registry), hosts=hosts, token_hosts=("localhost",)).config(image)
        assert str(other.requests[-1][2].get("authorization")).startswith("Basic ")


@pytest.mark.parametrize(
    "realm", ["http://token.example/token", "ftp://token.example", "https://u:p@token.example/", "", "https://[::1"]
)
async def test_a_token_service_that_is_not_https_is_not_asked(make: Make, realm: str) -> None:
    with FakeRegistry("token") as registry:
        registry.realm = realm
        registry.add("team/train", "v1", env=CUDA)
        assert (await trouble(make(), f"{registry.host}/team/train:v1")).reason in ("not-allowed", "invalid")


async def test_blobs_may_be_stored_elsewhere_and_the_token_stays_here(make: Make) -> None:
    with FakeRegistry("token") as registry, FakeRegistry() as storage:
        registry.add("team/train", "v1", env=CUDA)
        storage.add("any", "v1", env=CUDA)
        registry.trouble["team/train"], registry.storage = "moved", storage.url
        assert env(await make().config(f"{registry.host}/team/train:v1"))
        assert len(storage.requests) == 1
        assert "authorization" not in storage.requests[0][2]


@pytest.mark.parametrize(
    "storage",
    ["http://storage.example", "ftp://storage.example", "file:///etc", "https://[::1", "https://u:p@a.example"],
)
async def test_a_redirect_to_another_scheme_is_not_followed(registry: FakeRegistry, make: Make, storage: str) -> None:
    registry.add("team/train", "v1", env=CUDA)
    registry.trouble["team/train"], registry.storage = "moved-http", storage
    assert (await trouble(make(), f"{registry.host}/team/train:v1")).reason in ("not-allowed", "unreachable")


@pytest.mark.parametrize(
    "image",
    [
        "127.0.0.1:1/a/b:1",
        "localhost/a/b:1",
        "169.254.169.254/latest/meta-data:1",
        "[::1]:5000/a/b:1",
        "inner.example/a:1",
    ],
)
async def test_this_machine_and_its_link_are_not_asked_unless_they_are_named(make: Make, image: str) -> None:
    async def resolve(name: str, port: int) -> list[str]:
        return ["169.254.169.254"] if name == "inner.example" else []

    assert (await trouble(make(hosts=(), resolve=resolve), image)).reason == "not-allowed"


async def test_only_named_registries_are_asked(registry: FakeRegistry, make: Make) -> None:
    registry.add("team/train", "v1", env=CUDA)
    reader = make(hosts=("nvcr.io",))
    assert (await trouble(reader, f"{registry.host}/team/train:v1")).reason == "not-allowed"
    assert await reader.configs([ImageUse(f"{registry.host}/team/train:v1")]) == {}
    assert registry.requests == []


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("huge", "too-large"),
        ("garbage", "invalid"),
        ("packed", "invalid"),
        ("limit", "rate-limited"),
        ("down", "unavailable"),
        ("wrong-blob", "invalid"),
        ("loop", "invalid"),
        ("slow", "timeout"),
    ],
)
async def test_every_trouble_has_a_name_and_an_end(registry: FakeRegistry, make: Make, kind: str, reason: str) -> None:
    registry.add("team/train", "v1", env=CUDA)
    registry.trouble["team/train"] = kind
    reader = make(request_seconds=0.5 if kind == "slow" else 5.0)
    begun = time.monotonic()
    said = await trouble(reader, f"{registry.host}/team/train:v1")
    assert said.reason == reason
    assert "team/train" in str(said) or registry.host in str(said)
    assert time.monotonic() - begun < 20


async def test_an_image_that_is_not_there_and_a_registry_that_is_not_there(registry: FakeRegistry, make: Make) -> None:
    assert (await trouble(make(), f"{registry.host}/team/none:v1")).reason == "not-found"
    assert (await trouble(make(), "127.0.0.1:9/team/none:v1")).reason == "unreachable"


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"manifests": []},
        {"manifests": [{"digest": "x"}]},
        {"manifests": [{"digest": "sha256:" + "a" * 64, "platform": {"os": "windows", "architecture": "amd64"}}]},
        {"manifests": 5},
        {"config": {"digest": "../../x", "mediaType": "application/vnd.oci.image.config.v1+json"}},
        {"config": {"digest": "sha256:" + "a" * 64, "mediaType": "application/vnd.cncf.helm.config.v1+json"}},
        {
            "config": {
                "digest": "sha256:" + "a" * 64,
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "size": 10**12,
            }
        },
    ],
)
async def test_manifests_of_any_shape_are_refused_by_name(registry: FakeRegistry, make: Make, document: Any) -> None:
    registry.put("team/train", "v1", document)
    said = await trouble(make(), f"{registry.host}/team/train:v1")
    assert said.reason in ("invalid", "not-found", "too-large")


@pytest.mark.parametrize("config", [[], "x", {"config": None}, {"config": {"Env": "x", "Labels": 3}}, {"a": 1}])
async def test_configurations_of_any_shape_do_not_raise(registry: FakeRegistry, make: Make, config: Any) -> None:
    registry.add("team/train", "v1", config=config)
    image = f"{registry.host}/team/train:v1"
    found = await make().configs([ImageUse(image)])
    assert found == {} or env(found[image]) == []


# beside audits


async def test_what_is_not_there_in_time_is_unknown_now_and_known_to_the_next_audit(
    registry: FakeRegistry, make: Make
) -> None:
    registry.add("team/train", "v1", env=CUDA)
    registry.add("team/other", "v1", env=CUDA)
    registry.trouble["team/other"] = "slow"
    reader = make(wait_seconds=0.0, request_seconds=2.0)
    images = [ImageUse(f"{registry.host}/team/train:v1"), ImageUse(f"{registry.host}/team/other:v1")]
    begun = time.monotonic()
    assert await reader.configs(images) == {}
    assert time.monotonic() - begun < 1
    await asyncio.gather(*list(reader._reading.values()))
    assert list(await reader.configs(images)) == [images[0].reference]


async def test_a_digest_is_read_once_and_a_tag_again_after_a_while_by_a_request_that_costs_nothing(
    registry: FakeRegistry, make: Make, clock: Clock
) -> None:
    digest = registry.add("team/train", "v1", env=CUDA)
    pinned = ImageUse(f"{registry.host}/team/train@{digest}")
    tagged = ImageUse(f"{registry.host}/team/train:v1")
    reader = make(tag_seconds=100)
    assert set(await reader.configs([pinned, tagged])) == {pinned.reference, tagged.reference}
    asked = len(registry.requests)
    clock.now += 99
    await reader.configs([pinned, tagged])
    assert len(registry.requests) == asked
    clock.now += 2
    await reader.configs([pinned, tagged])
    assert [verb for verb, _, _ in registry.requests[asked:]] == ["HEAD"]
    registry.add("team/train", "v1", env=["CUDA_VERSION=13.0.1"])
    clock.now += 101
    found = await reader.configs([pinned, tagged])
    assert "CUDA_VERSION=13.0.1" in env(found[tagged.reference])
    assert "CUDA_VERSION=12.8.1" in env(found[pinned.reference])


async def test_an_old_answer_counts_while_the_registry_is_away(
    registry: FakeRegistry, make: Make, clock: Clock
) -> None:
    registry.add("team/train", "v1", env=CUDA)
    image = ImageUse(f"{registry.host}/team/train:v1")
    reader = make(tag_seconds=100)
    await reader.configs([image])
    registry.trouble["*"] = "down"
    clock.now += 1000
    assert "CUDA_VERSION=12.8.1" in env((await reader.configs([image]))[image.reference])


async def test_a_registry_that_limits_is_left_alone_for_as_long_as_it_says(
    registry: FakeRegistry, make: Make, clock: Clock
) -> None:
    registry.trouble["*"] = "limit"
    registry.add("team/train", "v1", env=CUDA)
    image, other = (ImageUse(f"{registry.host}/team/{name}:v1") for name in ("train", "other"))
    reader = make()
    assert await reader.configs([image]) == {}
    asked = len(registry.requests)
    registry.trouble.clear()
    clock.now += 119
    assert await reader.configs([image, other]) == {}
    assert len(registry.requests) == asked
    clock.now += 2
    assert image.reference in await reader.configs([image])


async def test_one_image_is_read_once_however_many_audits_ask_for_it(registry: FakeRegistry, make: Make) -> None:
    registry.add("team/train", "v1", env=CUDA)
    image = ImageUse(f"{registry.host}/team/train:v1")
    reader = make()
    found = await asyncio.gather(*(reader.configs([image]) for _ in range(10)))
    assert all(image.reference in item for item in found)
    assert len(registry.asked()) == 3


async def test_closing_abandons_what_is_being_read(registry: FakeRegistry, make: Make) -> None:
    registry.trouble["*"] = "slow"
    reader = make(wait_seconds=0.0, request_seconds=60.0)
    await reader.configs([ImageUse(f"{registry.host}/team/train:v1")])
    begun = time.monotonic()
    await reader.close()
    assert time.monotonic() - begun < 5
    assert not reader._reading
