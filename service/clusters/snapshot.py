"""The connector to a cluster that somebody wrote down: files of ``kubectl get -o json|yaml`` output, folders and
archives of them, or what the GPU Operator's must-gather collected.

The moment of observation matters, because every age is counted from it: a snapshot of last week must not make every
node a week older. It is the configured ``observed_at``; else the newest timestamp in the objects, which in any cluster
that lives is a few minutes before the files were written (heartbeats, events); else the files' modification time.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import structlog

from rules.errors import SnapshotInvalid
from rules.facts.completeness import of_operator, of_place, of_whole
from rules.facts.decode import Objects, decode_objects, newest_timestamp, not_in_snapshot
from rules.facts.objectset import ObjectCollector
from rules.facts.trim import Shelf, trim_node, trim_pod
from service.clusters.archives import Source as File
from service.clusters.archives import Unpacker
from service.clusters.config import ClusterSettings, Source
from service.clusters.kinds import is_routine
from service.clusters.model import Collected, ObservedFrom

_KIND = re.compile(rb"""(?m)^\s*\{?\s*["']?kind["']?\s*:\s*["']?(\w+)""")

log = structlog.get_logger(__name__)


class SnapshotConnector:
    """Reads the files anew at every collection, in a thread.

    Args:
        settings: ``snapshot`` names files and directories.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings

    @property
    def name(self) -> str:
        """The configured name of the cluster."""
        return self._settings.name

    @property
    def kind(self) -> Source:
        """``snapshot``."""
        return "snapshot"

    async def collect(self) -> Collected:
        """Read and decode all files; see :class:`~service.clusters.model.Connector`."""
        return await asyncio.to_thread(_collect, self._settings)

    async def close(self) -> None:
        """Nothing is held."""


def _collect(settings: ClusterSettings) -> Collected:
    unpacker = Unpacker()
    found = ObjectCollector()
    read = 0
    given = [Path(text).expanduser() for text in settings.snapshot]
    for path in given:
        for file in unpacker.open(path):
            objects = _decoded(file, unpacker.skipped)
            if objects is not None:
                found.include(objects)
                read += 1
    if not read:
        raise SnapshotInvalid(str(given[0]), None, "no file with Kubernetes objects is in it")
    if unpacker.skipped:
        log.warning("a snapshot was read in part", cluster=settings.name, read=read, skipped=_counted(unpacker.skipped))
    objects = of_whole(found.finish())
    observed_at, observed_from = _observed(settings, objects, given)
    shelf = Shelf()
    return Collected(
        nodes=tuple(trim_node(node, shelf) for node in objects.nodes),
        pods=tuple(trim_pod(pod, shelf) for pod in objects.pods),
        events=tuple(event for event in objects.events if not is_routine(event)),
        others={kind: tuple(items) for kind, items in objects.others.items()},
        read_kinds=frozenset(objects.kinds),
        unreadable=not_in_snapshot(objects.kinds, partial=objects.partial),
        observed_at=observed_at,
        observed_from=observed_from,
    )


def _decoded(file: File, skipped: Counter[str]) -> Objects | None:
    """The objects of a file. In a folder or archive, a file that never was one of objects is counted and left out; one
    that was, and is broken, is an error: what it lacks would look as if it were not there."""
    if file.below is None:
        return of_operator(decode_objects(file.data, file.name))
    if not file.data.strip():
        skipped["empty"] += 1
        return None
    try:
        objects = decode_objects(file.data, file.name)
    except SnapshotInvalid:
        kind = _KIND.search(file.data[:65536])
        if kind is None or kind[1] == b"Config":
            skipped["without objects"] += 1
            return None
        raise
    return of_place(of_operator(objects), file.below)


def _counted(skipped: Counter[str]) -> str:
    """``14 *.log, 3 *.descr``, the most first."""
    return ", ".join(
        f"{number} {what}" for what, number in sorted(skipped.items(), key=lambda item: (-item[1], item[0]))
    )


def _observed(settings: ClusterSettings, objects: Objects, files: Sequence[Path]) -> tuple[datetime, ObservedFrom]:
    if settings.observed_at is not None:
        return settings.observed_at, "setting"
    newest = newest_timestamp(objects)
    if newest is not None:
        return newest, "objects"
    every = [path for given in files for path in ((given, *given.rglob("*")) if given.is_dir() else (given,))]
    return datetime.fromtimestamp(max(path.lstat().st_mtime for path in every if not path.is_dir()), UTC), "file"
