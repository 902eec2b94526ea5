"""The Web API client, and what its failures mean."""

import urllib.request
from collections.abc import Awaitable
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import DeliveryError, DeliveryPermanent, DeliveryTemporary
from bot.settings import SlackSettings

_TEMPORARY = {"ratelimited", "rate_limited", "request_timeout", "team_added_to_org", "external_channel_migrating"}
_TEMPORARY_UNKNOWN = {"fatal_error", "internal_error", "service_unavailable", "internal_error_occurred"}
"""Errors after which Slack may have done part of the work; ``fatal_error`` says so in its description."""


def make_client(settings: SlackSettings) -> AsyncWebClient:
    """A client of the bot's token.

    It retries nothing by itself: slack_sdk repeats a lost ``chat.postMessage`` blindly, which posts twice.
    :class:`bot.posting.Poster` retries with a look-up instead. Unlike slack_sdk it honours ``NO_PROXY``.
    """
    client = AsyncWebClient(
        token=settings.bot_token, base_url=settings.base_url, timeout=settings.timeout_seconds, retry_handlers=[]
    )
    if _direct(settings.base_url):
        client.proxy = None
    return client


def _direct(url: str) -> bool:
    """Whether an address is reached without the proxy of the environment."""
    host = urlsplit(url).hostname or ""
    try:
        if ip_address(host).is_loopback:
            return True
    except ValueError:
        pass
    return host == "localhost" or bool(urllib.request.proxy_bypass(host))


async def call(request: Awaitable[Any]) -> Any:
    """The answer to a Web API request.

    Raises:
        DeliveryTemporary: rate limits, 5xx, time-outs, broken connections.
        DeliveryPermanent: everything else that Slack refuses.
    """
    try:
        return await request
    except SlackApiError as error:
        raise _refused(error) from error
    except aiohttp.ClientConnectorError as error:
        raise DeliveryTemporary("connection", str(error)) from error
    except TimeoutError as error:
        raise DeliveryTemporary("timeout", outcome_unknown=True) from error
    except (aiohttp.ClientError, OSError, AttributeError) as error:
        # AttributeError: slack_sdk takes the text of a text/plain answer for a document
        detail = f"{type(error).__name__}: {error}"
        raise DeliveryTemporary("connection", detail, outcome_unknown=True) from error


def _refused(error: SlackApiError) -> DeliveryError:
    answer: Any = error.response
    status = int(getattr(answer, "status_code", None) or getattr(answer, "status", None) or 0)
    data = getattr(answer, "data", None)
    document = data if isinstance(data, dict) else {}
    reason = str(document.get("error") or (f"http-{status}" if status else "unreadable"))
    detail = _detail(document)
    if status == 429 or reason in ("ratelimited", "rate_limited"):
        return DeliveryTemporary("ratelimited", detail, retry_after=_retry_after(answer))
    if status >= 500 or reason in _TEMPORARY_UNKNOWN or not document:
        return DeliveryTemporary(reason, detail, outcome_unknown=True)
    if reason in _TEMPORARY:
        return DeliveryTemporary(reason, detail)
    return DeliveryPermanent(reason, detail)


def _retry_after(answer: Any) -> float:
    headers = getattr(answer, "headers", None) or {}
    value = str(headers.get("Retry-After", "")).strip()
    return float(value) if value.isdigit() else 1.0


def _detail(document: dict[str, Any]) -> str:
    parts = []
    if document.get("needed"):
        parts.append(f"needs {document['needed']}")
    metadata = document.get("response_metadata")
    if isinstance(metadata, dict):
        parts.extend(str(item) for item in metadata.get("messages") or ())
    return ", ".join(parts)[:500]
