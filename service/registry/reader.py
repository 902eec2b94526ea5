"""Image configurations for audits: kept by digest, read beside the audit, and never waited for beyond a limit."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import structlog

from rules.facts.images import ImageUse
from service.errors import RegistryTrouble
from service.registry.credentials import Credentials
from service.registry.distribution import Distribution
from service.registry.exchange import Exchange
from service.registry.names import Place, named_in, place_of
from service.registry.settings import RegistrySettings

MAX_IMAGES = 500
"""Images that are asked for at the same time; more than a cluster's GPU pods have."""
MAX_KEPT = 5000
"""Configurations, digests of tags and troubles that are kept; a trimmed configuration is about a kilobyte."""

AGAIN_SECONDS: Mapping[str, float] = {
    "not-allowed": 3600,
    "not-found": 600,
    "unauthorized": 600,
    "invalid": 3600,
    "too-large": 3600,
    "rate-limited": 900,
}
"""After which trouble it is tried again when; everything else (network, 5xx) after a minute."""
_SOON_SECONDS = 60.0
_LONGEST_SECONDS = 3600.0

_VARIABLES = ("CUDA", "NVIDIA", "NV_", "ROCM", "HIP", "PYTORCH_ROCM")
_LABELS = ("com.nvidia", "com.amd", "cuda", "rocm")

K = TypeVar("K")
V = TypeVar("V")

log = structlog.get_logger(__name__)


class ImageConfigs(Protocol):
    """Who knows image configurations."""

    async def configs(self, images: Iterable[ImageUse]) -> dict[str, Mapping[str, Any]]:
        """Configurations by reference, as far as they are known within the waiting time; never raises."""
        ...


class _Key(NamedTuple):
    place: Place
    arch: str


class ImageReader:
    """Reads and keeps image configurations.

    A digest is read once for the life of the process; where a tag points is looked up again after a while, and the old
    answer counts until the new one is there. What a registry refuses is not asked again at once.

    Args:
        settings: of the operator.
        exchange: sends the requests.
        clock: seconds that only grow.

    Raises:
        ConfigInvalid: the credentials cannot be read.
    """

    def __init__(
        self,
        settings: RegistrySettings,
        *,
        exchange: Exchange | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._exchange = exchange or Exchange(settings)
        self._registry = Distribution(settings, Credentials.of(settings), self._exchange, clock)
        self._digests: dict[_Key, tuple[str, float]] = {}
        self._configs: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._not_before: dict[_Key | str, float] = {}
        self._reading: dict[_Key, asyncio.Task[None]] = {}

    async def configs(self, images: Iterable[ImageUse]) -> dict[str, Mapping[str, Any]]:
        """Configurations by reference, as far as they are known within ``wait_seconds``; never raises."""
        wanted: dict[str, _Key] = {}
        for use in images:
            place = place_of(use.reference)
            if place is not None and self._allowed(place):
                wanted[use.reference] = _Key(place, use.arch)
        tasks = [task for key in wanted.values() if (task := self._begin(key)) is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=self._settings.wait_seconds)
        known = {reference: self._known(key) for reference, key in wanted.items()}
        return {reference: config for reference, config in known.items() if config is not None}

    async def config(self, image: str, arch: str = "amd64") -> Mapping[str, Any]:
        """The configuration of one image, read now.

        Raises:
            RegistryTrouble: any reason.
        """
        place = place_of(image)
        if place is None:
            raise RegistryTrouble("invalid", image, "not a reference to an image in a registry")
        if not self._allowed(place):
            raise RegistryTrouble("not-allowed", place.host, "registry.hosts of the settings does not name it")
        return _trimmed((await self._registry.read(place, arch)).config)

    async def close(self) -> None:
        """Abandon what is being read, and close the connections."""
        tasks = list(self._reading.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._exchange.close()

    def _allowed(self, place: Place) -> bool:
        return not self._settings.hosts or named_in(place.host, self._settings.hosts)

    def _known(self, key: _Key) -> Mapping[str, Any] | None:
        digest = self._digest(key)
        return self._configs.get((digest, key.arch)) if digest else None

    def _digest(self, key: _Key) -> str | None:
        """The digest of a place as far as it is known, be it old."""
        if key.place.pinned:
            return key.place.reference
        known = self._digests.get(key)
        return known[0] if known else None

    def _begin(self, key: _Key) -> "asyncio.Task[None] | None":
        """The task that reads ``key``; None when there is nothing to read, or not yet again."""
        if key in self._reading:
            return self._reading[key]
        now = self._clock()
        fresh = key.place.pinned or self._digests.get(key, ("", 0.0))[1] > now
        closed = max(self._not_before.get(key, 0.0), self._not_before.get(key.place.host, 0.0)) > now
        if (fresh and self._known(key) is not None) or closed or len(self._reading) >= MAX_IMAGES:
            return None
        task = asyncio.create_task(self._read(key), name=f"image {key.place}")
        self._reading[key] = task
        task.add_done_callback(lambda _: self._reading.pop(key, None))
        return task

    async def _read(self, key: _Key) -> None:
        try:
            await self._refresh(key)
        except RegistryTrouble as trouble:
            self._put_off(key, trouble)
        except Exception:
            log.exception("an image could not be read", image=str(key.place))
            _keep(self._not_before, key, self._clock() + _LONGEST_SECONDS)

    async def _refresh(self, key: _Key) -> None:
        until = self._clock() + self._settings.tag_seconds
        old = self._digest(key)
        if old is not None and not key.place.pinned and (old, key.arch) in self._configs:
            digest = await self._registry.digest(key.place)
            if digest == old:
                _keep(self._digests, key, (old, until))
                return
        found = await self._registry.read(key.place, key.arch)
        _keep(self._configs, (found.digest, key.arch), _trimmed(found.config))
        if not key.place.pinned:
            _keep(self._digests, key, (found.digest, until))

    def _put_off(self, key: _Key, trouble: RegistryTrouble) -> None:
        seconds = AGAIN_SECONDS.get(trouble.reason, _SOON_SECONDS)
        if trouble.retry_after is not None:
            seconds = min(max(trouble.retry_after, 1.0), _LONGEST_SECONDS)
        # one registry that limits or is down shall not be asked for every image of the cluster
        whole = trouble.reason in ("rate-limited", "unreachable", "timeout")
        _keep(self._not_before, key.place.host if whole else key, self._clock() + seconds)
        log.warning("an image is left to its tag", image=str(key.place), reason=trouble.reason, detail=trouble.detail)


def _keep(kept: "dict[K, V]", key: K, value: V) -> None:
    """Put ``value`` under ``key``; the oldest entry goes when there are too many."""
    kept.pop(key, None)
    if len(kept) >= MAX_KEPT:
        kept.pop(next(iter(kept)))
    kept[key] = value


def _trimmed(config: Mapping[str, Any]) -> dict[str, Any]:
    """What compatibility needs of a configuration; the rest (other variables may hold secrets) is not kept."""
    inner = config.get("config")
    inner = inner if isinstance(inner, Mapping) else {}
    env, labels = inner.get("Env"), inner.get("Labels")
    kept: dict[str, Any] = {
        "Env": [item for item in env if isinstance(item, str) and item.startswith(_VARIABLES)]
        if isinstance(env, list)
        else [],
        "Labels": {key: value for key, value in labels.items() if str(key).startswith(_LABELS)}
        if isinstance(labels, Mapping)
        else {},
    }
    return {"architecture": config.get("architecture"), "os": config.get("os"), "config": kept}
