"""Credentials as Docker writes them."""

import base64
import json
from pathlib import Path

import pytest

from service.errors import ConfigInvalid
from service.registry.credentials import Credential, Credentials
from service.registry.settings import RegistrySettings


def auth(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


CONFIG = {
    "auths": {
        "https://index.docker.io/v1/": {"auth": auth("hub", "pa:ss")},
        "nvcr.io": {"username": "$oauthtoken", "password": "key"},
        "ghcr.io/team": {"auth": auth("team", "one")},
        "ghcr.io": {"auth": auth("all", "two")},
        "helper.example": {},
    },
    "credsStore": "desktop",
    "credHelpers": {"gcr.io": "gcloud"},
}


def test_the_file_and_the_variable_are_read_and_the_variable_wins(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG), "utf-8")
    more = json.dumps({"auths": {"nvcr.io": {"auth": auth("other", "x")}}})
    found = Credentials.of(RegistrySettings(docker_config=str(file), auth=more))
    assert found.find("docker.io") == Credential("hub", "pa:ss")
    assert found.find("registry-1.docker.io") == Credential("hub", "pa:ss")
    assert found.find("nvcr.io") == Credential("other", "x")
    assert found.find("ghcr.io", "team/image") == Credential("team", "one")
    assert found.find("ghcr.io", "teams/image") == Credential("all", "two")
    assert found.find("helper.example") is None
    assert found.find("gcr.io") is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"auths": []}', '{"auths": {"a": {"auth": "###"}}}', '{"auths": {"a": {"auth": "YQ=="}}}']
)
def test_what_cannot_be_read_names_its_source_and_shows_no_value(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigInvalid, match=r"config\.json") as caught:
        Credentials.of(RegistrySettings(docker_config=str(file)))
    assert "YQ==" not in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="cannot be read"):
        Credentials.of(RegistrySettings(docker_config=str(tmp_path / "none.json")))


def test_no_secret_is_in_any_repr() -> None:
    assert "key" not in repr(Credential("user", "key"))
    assert "hunter2" not in repr(RegistrySettings(auth="hunter2"))
