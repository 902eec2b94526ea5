"""The connector to a cluster that somebody wrote down: files of ``kubectl get -o json|yaml`` output.

The moment of observation matters, because every age is counted from it: a snapshot of last week must not make every
node a week older. It is the configured ``observed_at``; else the newest timestamp in the objects, which in any cluster
that lives is a few minutes before the files were written (heartbeats, events); else the files' modification time.
"""

import asyncio
import gzip
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

from rules.errors import SnapshotInvalid
from rules.facts.decode import Objects, decode_objects, newest_timestamp, not_in_snapshot
from rules.facts.objectset import TAKE_SNAPSHOT
from service.clusters.config import ClusterSettings, Source
from service.clusters.kinds import is_routine
from service.clusters.model import Collected, ObservedFrom

SUFFIXES = (".json", ".yaml", ".yml")


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
    files = [file for given in settings.snapshot for file in _files(Path(given).expanduser())]
    objects = reduce(Objects.merge, (_decoded(file) for file in files))
    observed_at, observed_from = _observed(settings, objects, files)
    return Collected(
        nodes=tuple(objects.nodes),
        pods=tuple(objects.pods),
        events=tuple(event for event in objects.events if not is_routine(event)),
        others={kind: tuple(items) for kind, items in objects.others.items()},
        read_kinds=frozenset(objects.kinds),
        unreadable=not_in_snapshot(objects.kinds),
        observed_at=observed_at,
        observed_from=observed_from,
    )


def _files(given: Path) -> Sequence[Path]:
    """The file itself, or the readable files of a directory in order of their names."""
    if not given.is_dir():
        return [given]
    found = sorted(path for path in given.iterdir() if path.is_file() and _is_snapshot(path))
    if not found:
        raise SnapshotInvalid(str(given), None, "no .json, .yaml or .yml file (or .gz of one) is in this directory")
    return found


def _is_snapshot(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(SUFFIXES)


def _decoded(file: Path) -> Objects:
    try:
        data = file.read_bytes()
        if file.suffix.lower() == ".gz":
            data = gzip.decompress(data)
    except FileNotFoundError as error:
        raise SnapshotInvalid(str(file), None, f"there is no such file; write one with: {TAKE_SNAPSHOT}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SnapshotInvalid(str(file), None, f"expected gzip data ({error})") from error
    except OSError as error:
        raise SnapshotInvalid(str(file), None, f"the file cannot be read ({error.strerror})") from error
    return decode_objects(data, str(file))


def _observed(settings: ClusterSettings, objects: Objects, files: Sequence[Path]) -> tuple[datetime, ObservedFrom]:
    if settings.observed_at is not None:
        return settings.observed_at, "setting"
    newest = newest_timestamp(objects)
    if newest is not None:
        return newest, "objects"
    return datetime.fromtimestamp(max(file.stat().st_mtime for file in files), UTC), "file"
