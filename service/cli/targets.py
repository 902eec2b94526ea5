"""Which clusters a command reads, from its arguments."""

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rules.errors import InputInvalid
from service.clusters.config import ClusterSettings
from service.errors import ClusterUnknown
from service.settings import Settings

if TYPE_CHECKING:
    from rules.facts.cluster import ClusterFacts

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_ENDINGS = (".gz", ".tgz", ".tar", ".zip", ".json", ".yaml", ".yml")


def targets(args: argparse.Namespace, settings: Settings, env: Mapping[str, str]) -> tuple[ClusterSettings, ...]:
    """The clusters that ``audit`` reads.

    A cluster named by --context, --kubeconfig or --snapshot goes before those of the settings; then --cluster gives
    it a name. Without one, --cluster chooses among the clusters of the settings; without any of these it is the
    current context of the kubeconfig, as kubectl takes it.

    Raises:
        InputInvalid: options that exclude each other, or a name that cannot be one.
        ClusterUnknown: --cluster names none of the settings.
    """
    if args.snapshot:
        if args.context or args.kubeconfig:
            raise InputInvalid("--snapshot reads files, --context and --kubeconfig a live cluster: give one of them")
        name = args.cluster or _snapshot_name(args.snapshot)
        return (_settings(name=name, snapshot=list(args.snapshot), observed_at=args.observed_at),)
    if args.observed_at:
        raise InputInvalid("--observed-at is for --snapshot; a live cluster is read now")
    if args.context or args.kubeconfig or not settings.clusters:
        name = args.cluster or args.context or _current_context(args.kubeconfig, env) or "kubeconfig"
        return (_settings(name=_as_name(name), kubeconfig=args.kubeconfig, context=args.context),)
    if args.cluster is None:
        return settings.clusters
    chosen = tuple(cluster for cluster in settings.clusters if cluster.name == args.cluster)
    if not chosen:
        raise ClusterUnknown(args.cluster, [cluster.name for cluster in settings.clusters])
    return chosen


def snapshot_facts(paths: Sequence[str]) -> "ClusterFacts":
    """The facts of one cluster that is read from files; its "now" is their newest timestamp.

    Raises:
        SnapshotInvalid: a file does not hold Kubernetes objects.
    """
    from rules.facts.prices import bundled
    from service.cli.loop import run as run_async
    from service.clusters import connect, to_facts

    async def collect() -> Any:
        connector = connect(_settings(name=_snapshot_name(paths), snapshot=list(paths)))
        try:
            return connector.name, await connector.collect()
        finally:
            await connector.close()

    name, collected = run_async(collect())
    return to_facts(name, collected, datetime.now(UTC), bundled())


def _settings(**fields: Any) -> ClusterSettings:
    try:
        return msgspec.convert({key: value for key, value in fields.items() if value is not None}, ClusterSettings)
    except msgspec.ValidationError as error:
        raise InputInvalid(f"the cluster cannot be read so: {error}") from error


def _snapshot_name(paths: Sequence[str]) -> str:
    if len(paths) != 1:
        return "snapshot"
    name = Path(paths[0]).resolve().name
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return _as_name(name)


def _as_name(text: str) -> str:
    """``text`` as a name of a cluster may be spelled; contexts are often called like ``arn:aws:eks:...:cluster/a``."""
    return _NOT_IN_NAMES.sub("-", text)[-63:].strip("-._") or "cluster"


def _current_context(kubeconfig: str | None, env: Mapping[str, str]) -> str | None:
    import yaml

    paths = kubeconfig or env.get("KUBECONFIG") or str(Path.home() / ".kube/config")
    for path in filter(None, paths.split(os.pathsep)):
        try:
            document = yaml.safe_load(Path(path).expanduser().read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            continue  # the connector says what is wrong with the file
        if isinstance(document, dict) and isinstance(document.get("current-context"), str):
            return str(document["current-context"])
    return None
