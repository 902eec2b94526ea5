"""What cluster-autoscaler writes of its node groups in the ConfigMap ``cluster-autoscaler-status``.

Since 1.30 ``data.status`` is YAML (kubernetes/autoscaler cluster-autoscaler-1.36.1 clusterstate/api/types.go); before
it was text for people, of which the lines on groups are read. Karpenter writes no such thing.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rules.facts.groups import mapping, text, whole
from rules.facts.objects import OtherObject
from rules.findings import ObjectRef

STATUS_NAME = "cluster-autoscaler-status"


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group of nodes as the autoscaler sees it. None is unknown.

    Attributes:
        target: nodes that it wants the cloud to run now; ready: those that are ready.
        minimum, maximum: its limits.
        scale_up: ``NoActivity``, ``InProgress``, ``Backoff``, ``Needed`` or ``NotNeeded``.
        error_code, error_message: why a scale-up failed last, for example ``QUOTA_EXCEEDED``.
        source: the ConfigMap.
    """

    name: str
    target: int | None
    ready: int | None
    minimum: int | None
    maximum: int | None
    scale_up: str | None
    error_code: str | None
    error_message: str | None
    source: ObjectRef

    @property
    def full(self) -> bool | None:
        """Whether it stands at its maximum; None when that is unknown."""
        return None if self.target is None or self.maximum is None else self.target >= self.maximum


def node_groups(config_maps: Iterable[OtherObject]) -> tuple[NodeGroup, ...] | None:
    """The groups of the status ConfigMap; None when there is none, or none that can be read."""
    for item in config_maps:
        if item.metadata.name != STATUS_NAME:
            continue
        status = text((item.data or {}).get("status"))
        if status is not None:
            source = ObjectRef("ConfigMap", item.metadata.namespace or "", item.metadata.name)
            return _of_yaml(status, source) or _of_text(status, source)
    return None


def _of_yaml(status: str, source: ObjectRef) -> tuple[NodeGroup, ...] | None:
    import yaml

    try:
        tree = yaml.load(status, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe in either case
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    groups = tree.get("nodeGroups") if isinstance(tree, dict) else None
    if not isinstance(groups, list):
        return None
    return tuple(_group(item, source) for item in groups if isinstance(item, dict) and item.get("name"))


def _group(item: Mapping[str, Any], source: ObjectRef) -> NodeGroup:
    health = mapping(item.get("health"))
    registered = mapping(mapping(health.get("nodeCounts")).get("registered"))
    scale_up = mapping(item.get("scaleUp"))
    backoff = mapping(scale_up.get("backoffInfo"))
    return NodeGroup(
        name=str(item["name"]),
        target=whole(health.get("cloudProviderTarget")),
        ready=whole(registered.get("ready")),
        minimum=whole(health.get("minSize")),
        maximum=whole(health.get("maxSize")),
        scale_up=text(scale_up.get("status")),
        error_code=text(backoff.get("errorCode")),
        error_message=text(backoff.get("errorMessage")),
        source=source,
    )


_NAME = re.compile(r"^\s*Name:\s*(\S+)\s*$", re.MULTILINE)
_NUMBER = {
    "target": re.compile(r"cloudProviderTarget=(\d{1,6})"),
    "ready": re.compile(r"\bready=(\d{1,6})"),
    "minimum": re.compile(r"minSize=(\d{1,6})"),
    "maximum": re.compile(r"maxSize=(\d{1,6})"),
}
_SCALE_UP = re.compile(r"^\s*ScaleUp:\s*(\w+)", re.MULTILINE)


def _of_text(status: str, source: ObjectRef) -> tuple[NodeGroup, ...] | None:
    names = list(_NAME.finditer(status))
    found = []
    for index, name in enumerate(names):
        part = status[name.end() : names[index + 1].start() if index + 1 < len(names) else len(status)]
        numbers = {key: int(match[1]) if (match := pattern.search(part)) else None for key, pattern in _NUMBER.items()}
        scale_up = _SCALE_UP.search(part)
        found.append(
            NodeGroup(
                name=name[1],
                **numbers,
                scale_up=scale_up[1] if scale_up else None,
                error_code=None,
                error_message=None,
                source=source,
            )
        )
    return tuple(found) or None
