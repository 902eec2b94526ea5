"""Fetching the prices of one provider by gpuhunt, within a time and a size."""

import asyncio
import io
import json
import re
import sys
import zipfile
from datetime import date
from typing import TYPE_CHECKING

import msgspec

from rules.facts.prices import Offer
from service.catalog.settings import CatalogSettings
from service.catalog.sources import ASKED_BY_GPUHUNT, PUBLISHED_BY_GPUHUNT, offers_from
from service.errors import CatalogSourceTrouble

if TYPE_CHECKING:
    import httpx

_MEGABYTE = 1_000_000
_STDERR_KEPT = 2000


class Fetched(msgspec.Struct, frozen=True):
    """What a source had; ``version`` is the source's own name of it, None where it has none."""

    version: str | None
    source: str
    offers: tuple[Offer, ...]


async def fetch(provider: str, settings: CatalogSettings, today: date) -> Fetched:
    """The prices of a provider. Nothing of it runs on the event loop for long.

    Args:
        provider: of :func:`service.catalog.sources.known_sources`.
        today: date of prices whose source shows none.

    Raises:
        CatalogSourceTrouble: no answer, too late, too large, or not a catalogue.
    """
    try:
        async with asyncio.timeout(settings.timeout_seconds):
            if provider in PUBLISHED_BY_GPUHUNT:
                return await _published(provider, settings, today)
            return await _asked(provider, settings, today)
    except TimeoutError as error:
        raise CatalogSourceTrouble(
            "timeout", provider, f"no complete answer within {settings.timeout_seconds:g} s"
        ) from error


async def _published(provider: str, settings: CatalogSettings, today: date) -> Fetched:
    import httpx

    name = PUBLISHED_BY_GPUHUNT[provider]
    base = f"{settings.url.rstrip('/')}/{name}"
    limit = settings.max_megabytes * _MEGABYTE
    try:
        async with httpx.AsyncClient(timeout=settings.timeout_seconds) as client:
            version = (await _get(client, f"{base}/version", provider, 1000)).decode("utf-8", "replace").strip()
            if not re.fullmatch(r"[\w.-]{1,64}", version):
                raise CatalogSourceTrouble("invalid", provider, f"{base}/version is no version")
            packed = await _get(client, f"{base}/{version}/catalog.zip", provider, limit)
    except httpx.HTTPError as error:
        raise CatalogSourceTrouble("unreachable", provider, f"{base}: {str(error) or type(error).__name__}") from error
    as_of = _dated(version) or today.isoformat()
    source = f"gpuhunt catalogue {name} {version}"
    offers = await asyncio.to_thread(_unpacked, packed, name, provider, limit, as_of, source)
    return Fetched(version, source, offers)


async def _get(client: "httpx.AsyncClient", url: str, provider: str, limit: int) -> bytes:
    async with client.stream("GET", url) as response:
        if response.status_code != 200:
            raise CatalogSourceTrouble("unavailable", provider, f"{url} answers {response.status_code}")
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > limit:
                raise CatalogSourceTrouble("too-large", provider, f"{url} is larger than {limit} bytes")
        return bytes(body)


def _unpacked(packed: bytes, name: str, provider: str, limit: int, as_of: str, source: str) -> tuple[Offer, ...]:
    from gpuhunt._internal import storage

    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive, archive.open(f"{name}.csv") as file:
            # the size that the archive declares may be a lie; only what is read counts
            text = file.read(limit + 1)
    except (zipfile.BadZipFile, KeyError, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise CatalogSourceTrouble("invalid", provider, f"the archive holds no {name}.csv: {error}") from error
    if len(text) > limit:
        raise CatalogSourceTrouble("too-large", provider, f"{name}.csv is larger than {limit} bytes")
    try:
        rows = io.StringIO(text.decode("utf-8"), newline="")
        return offers_from(storage.load(rows, provider=name), provider=provider, as_of=as_of, source=source)
    except Exception as error:
        raise CatalogSourceTrouble("invalid", provider, f"{name}.csv cannot be read: {error}") from error


async def _asked(provider: str, settings: CatalogSettings, today: date) -> Fetched:
    """By a process of its own: gpuhunt's requests have no deadline, and only a process can be stopped for sure."""
    limit = settings.max_megabytes * _MEGABYTE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "service.catalog.ask", provider),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=limit,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        said, trouble = await asyncio.gather(_bounded(process.stdout, limit), _bounded(process.stderr, limit))
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code != 0:
        last = trouble[-_STDERR_KEPT:].decode("utf-8", "replace").strip().splitlines()
        raise CatalogSourceTrouble("unavailable", provider, last[-1] if last else f"gpuhunt ended with {code}")
    if len(said) > limit:
        raise CatalogSourceTrouble("too-large", provider, f"the answer is larger than {limit} bytes")
    source = f"gpuhunt, asked {ASKED_BY_GPUHUNT[provider][0]} on {today.isoformat()}"
    offers = [
        msgspec.structs.replace(offer, as_of=today.isoformat(), source=source)
        for offer in msgspec.convert(json.loads(said), list[Offer])
    ]
    return Fetched(None, source, tuple(offers))


async def _bounded(stream: asyncio.StreamReader, limit: int) -> bytes:
    """What the stream says, to its end; of more than the limit, only that it is more."""
    kept = bytearray()
    while chunk := await stream.read(65536):
        if len(kept) <= limit:
            kept += chunk
    return bytes(kept)


def _dated(version: str) -> str | None:
    """``20260818-42`` -> ``2026-08-18``."""
    found = re.match(r"(20\d\d)(\d\d)(\d\d)", version)
    if found is None:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3])).isoformat()
    except ValueError:
        return None
