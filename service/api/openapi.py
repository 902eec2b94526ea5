"""The OpenAPI document at ``/schema``.

It is served as JSON and YAML only. The browser viewers that Litestar offers load their scripts from a public CDN, which
neither a closed network nor a locked-down browser has; any viewer can be pointed at ``/schema/openapi.json``.
"""

from importlib.metadata import version
from typing import Any

import msgspec
from litestar import Request
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, YamlRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme, Tag

_DESCRIPTION = """Advice about GPU nodes on Kubernetes: answers to questions, and findings of audits.

Errors are problem details (RFC 9457, `application/problem+json`): `type` is a stable name, `detail` says what to do,
`instance` is the id under which the log knows the request. Times are RFC 3339 in UTC, money is US dollars. A value of
null is unknown, never "no"."""

_TAGS = [
    Tag("questions", "Ask, in English, Spanish or Italian."),
    Tag("clusters", "What is connected, and audits on demand."),
    Tag("audits", "One run of the rules over one cluster."),
    Tag("findings", "What is wrong now, and what has been."),
    Tag("rules", "What is checked, and why."),
    Tag("providers", "Who rents GPUs, on what terms, at what price."),
    Tag("compatibility", "CUDA and ROCm against drivers and GPUs."),
    Tag("planning", "How models share GPUs, and where and at what price a workload runs best."),
    Tag("health", "For probes; no token needed."),
]


class _Json(JsonRenderPlugin):
    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        return super().render(request, _exact(openapi_schema))


class _Yaml(YamlRenderPlugin):
    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        return super().render(request, _exact(openapi_schema))


def _exact(node: Any) -> Any:
    """The document as plain data, with ``anyOf`` for unions.

    Litestar writes ``oneOf``, which whole numbers break where a value may be an integer or a number; and its YAML
    plugin writes default values that are tuples as Python objects.
    """
    if isinstance(node, dict):
        return {"anyOf" if key == "oneOf" else key: _exact(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_exact(value) for value in node]
    return node if node is None or isinstance(node, str | int | float) else msgspec.to_builtins(node)


def openapi_config(*, token_needed: bool) -> OpenAPIConfig:
    """Configuration of the document; ``token_needed`` says whether callers must send the bearer token."""
    scheme = SecurityScheme(
        type="http",
        scheme="bearer",
        description="The `api_token` of the settings. Demanded whenever one is set; always, unless bound to loopback.",
    )
    return OpenAPIConfig(
        title="gpu-advisor",
        version=version("gpu-advisor"),
        description=_DESCRIPTION,
        tags=_TAGS,
        path="/schema",
        render_plugins=[_Json(), _Yaml()],
        components=Components(security_schemes={"token": scheme}),
        security=[{"token": []}] if token_needed else [],
        use_handler_docstrings=False,
    )
