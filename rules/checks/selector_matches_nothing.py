"""A GPU pod selects a label value that no node has.

What:
    The pod has waited longer than the grace period, its nodeSelector or required node affinity admits no GPU node, and
    it demands a label or a value that not one node of the cluster carries. Where Karpenter may create such a node, or a
    node group of cluster-autoscaler that stands empty may have the label, nothing is claimed.

Why:
    It can never be placed. Often the product name lost or gained its suffix: GPU feature discovery writes
    ``Tesla-T4-SHARED`` under time-slicing and ``...-MIG-1g.10gb`` under MIG strategy single, and a driver upgrade put
    ``NVIDIA-`` in front. High.

Fix:
    Name a value that is there; the closest one is told.

Source:
    seeds S6, S18; NVIDIA/k8s-device-plugin internal/lm/resource.go.

Seeds: S6, S18
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from rules.checks._kit import found, of
from rules.checks._pending import about, by_nodes, refusals
from rules.checks._scheduler_message import Cause
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.groups import mapping
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per owner and demand."""
    if not facts.gpu_nodes:
        return
    for queue in by_nodes(facts, policy):
        yield queue.first.ref
        if queue.admitted.groups or _may_come(facts, queue.first):
            continue
        dead = _dead(facts, queue.first)
        if not dead:
            continue
        key, value = dead[0]
        there = sorted({node.labels[key] for node in facts.gpu_nodes if key in node.labels})
        closest = next(iter(difflib.get_close_matches(value or "", there, n=1, cutoff=0.5)), None)
        yield found(
            Severity.HIGH,
            *queue.refs,
            remedy="closest" if closest else "default" if there else "no_such_label",
            identity=queue.identity,
            **about(facts, queue),
            demanded=of([f"{key}={value}" if value else key for key, value in dead], "spec.nodeSelector, affinity"),
            label=key,
            there=of(there[:5], f"labels of {len(facts.gpu_nodes)} GPU nodes"),
            closest=closest,
        )


def _may_come(facts: ClusterFacts, pod: PodFacts) -> bool:
    """Whether an autoscaler may have nodes of a kind that is not there now."""
    if facts.scaling.karpenter:
        return True
    reasons = refusals(facts, pod)
    if reasons and all(reason.cause == Cause.SELECTOR for reason in reasons):
        return False
    return any(group.target == 0 and group.maximum != 0 for group in facts.autoscaler_groups or ())


def _dead(facts: ClusterFacts, pod: PodFacts) -> list[tuple[str, str | None]]:
    """Labels, with the value where one is demanded, that no node has and without which none is admitted."""
    spec = pod.pod.spec
    if spec is None:
        return []
    found_dead: list[tuple[str, str | None]] = [
        (key, value)
        for key, value in sorted((spec.nodeSelector or {}).items())
        if not any(node.labels.get(key) == value for node in facts.nodes)
    ]
    affinity = mapping(mapping(spec.affinity).get("nodeAffinity"))
    required = mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms = [_dead_of_term(facts, mapping(term)) for term in required.get("nodeSelectorTerms") or []]
    if terms and all(terms):
        found_dead += [item for term in terms for item in term]
    return list(dict.fromkeys(found_dead))


def _dead_of_term(facts: ClusterFacts, term: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    dead: list[tuple[str, str | None]] = []
    for item in term.get("matchExpressions") or []:
        key, operator = str(mapping(item).get("key")), mapping(item).get("operator")
        values = [str(value) for value in mapping(item).get("values") or []]
        there = {node.labels[key] for node in facts.nodes if key in node.labels}
        if operator == "Exists" and not there:
            dead.append((key, None))
        if operator == "In" and not there & set(values):
            dead += [(key, value) for value in values]
    return dead


RULE = Rule(
    id="selector-matches-nothing",
    family="scheduling",
    severity=Severity.HIGH,
    seeds=("S6", "S18"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
