"""No request can hand over a kubeconfig: its ``exec`` entries would run commands on this machine."""

import json
from collections.abc import Iterator
from typing import Any

import httpx

FORBIDDEN = (
    "kubeconfig",
    "exec",
    "auth-provider",
    "authprovider",
    "client-certificate",
    "clientcertificate",
    "contexts",
)


def properties(node: Any) -> Iterator[str]:
    """Names of all properties and parameters that a schema declares."""
    if isinstance(node, dict):
        yield from node.get("properties") or ()
        if "in" in node and "name" in node:
            yield str(node["name"])
        for value in node.values():
            yield from properties(value)
    elif isinstance(node, list):
        for value in node:
            yield from properties(value)


async def test_no_body_and_no_parameter_takes_one(client: httpx.AsyncClient) -> None:
    document = (await client.get("/schema/openapi.json")).json()
    names = {name.lower() for name in properties(document)}

    assert "text" in names  # the question of POST /v1/ask: properties are found where they are
    assert not {name for name in names for word in FORBIDDEN if name == word or name.replace("_", "-") == word}


async def test_one_in_a_body_is_not_used(client: httpx.AsyncClient) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false"}
    config = {"users": [{"name": "u", "user": {"exec": plugin}}]}
    document = (await client.get("/schema/openapi.json")).json()
    posts = [path for path, methods in document["paths"].items() if "post" in methods and "{" not in path]

    assert posts
    for path in posts:
        answer = await client.post(path, content=json.dumps({"kubeconfig": config, "clusters": [config]}))
        assert answer.status_code in (400, 422), path
