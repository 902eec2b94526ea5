"""A node asks for a MIG layout that the MIG manager's ConfigMap does not have.

What:
    The value of the label ``nvidia.com/mig.config`` is no key of ``mig-configs`` in the ConfigMap that the MIG manager
    reads: the one that the ClusterPolicy names, else every one in view that holds such layouts. Nodes with a ConfigMap
    of their own (``<node>-mig-config``) are left out.

Why:
    The change fails and the device plugin stays paused.

Fix:
    Correct the label, or add the layout to the ConfigMap.

Source:
    https://github.com/NVIDIA/gpu-operator/issues/1287; NVIDIA/mig-parted api/spec/v1.

Seeds: S16, S18
"""

from collections.abc import Iterator
from typing import Any

import yaml

from rules.checks._kit import found, of, short
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.objects import OtherObject
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_LABEL = "nvidia.com/mig.config"


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node that asks for an unknown layout."""
    asking = [node for node in facts.nodes if node.labels.get(_LABEL)]
    maps = _maps(facts) if asking else []
    if not maps:
        return
    layouts = sorted({name for _, known in maps for name in known})
    for node in asking:
        yield node.ref
        wanted = node.labels[_LABEL]
        if wanted in layouts or _own_map(facts, node.name):
            continue
        refs = [ObjectRef("ConfigMap", item.metadata.namespace or "", item.metadata.name) for item, _ in maps]
        yield found(
            Severity.HIGH,
            node.ref,
            *refs,
            identity=str(node.ref),
            node=node.name,
            mig_config=of(wanted, f"metadata.labels[{_LABEL}]"),
            config_map=short(refs[0]),
            config_map_namespace=refs[0].namespace,
            config_map_name=refs[0].name,
            layouts=of(layouts[:12], "data, mig-configs"),
            gpu=of(node.product),
        )


def _maps(facts: ClusterFacts) -> list[tuple[OtherObject, frozenset[str]]]:
    named = {
        str(name)
        for item in facts.of_kind("ClusterPolicy", "nvidia.com")
        if (name := _at(item.spec, "migManager", "config", "name"))
    }
    every = [(item, known) for item in facts.of_kind("ConfigMap") if (known := _layouts(item))]
    mine = [pair for pair in every if pair[0].metadata.name in named]
    return mine if named else every


def _layouts(item: OtherObject) -> frozenset[str]:
    names: set[str] = set()
    for text in (item.data or {}).values():
        if not isinstance(text, str) or "mig-configs" not in text:
            continue
        try:
            parsed = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError):
            continue
        names |= {str(name) for name in _at(parsed, "mig-configs") or ()}
    return frozenset(names)


def _at(value: Any, *path: str) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _own_map(facts: ClusterFacts, node: str) -> bool:
    return any(item.metadata.name == f"{node}-mig-config" for item in facts.of_kind("ConfigMap"))


RULE = Rule(
    id="mig-custom-config-missing",
    family="sharing",
    severity=Severity.HIGH,
    seeds=("S16", "S18"),
    needs=("Node",),
    check=check,
    doc=__doc__ or "",
)
