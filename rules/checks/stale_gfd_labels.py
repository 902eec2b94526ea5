"""GPU labels of a node describe the past: feature discovery does not run there any more.

What:
    The node still shows labels of GPU feature discovery (model, driver, memory), and either it offers no GPU and was
    started after they were written, or the feature discovery pod is gone or failing there while it runs on other nodes
    and the labels are older than a day. An old time stamp alone is normal: discovery may write it only when it starts.

Why:
    Labels outlive the pod that wrote them. Selectors, and tools such as this one, believe a driver version or a model
    that may be wrong.

Fix:
    Mend driver or discovery; when the GPU is gone for good, take the labels off.

Source:
    NVIDIA/k8s-device-plugin internal/lm/timestamp.go; NVIDIA/gpu-operator assets/gpu-feature-discovery.

Seeds: S3
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from rules.checks._components import owner_name, stuck, trouble
from rules.checks._kit import age, found, latest, moment, note, of, ready_since, seconds, short
from rules.checks._stack import offers_none
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_STAMP = "nvidia.com/gfd.timestamp"
_SHOWN = (
    "nvidia.com/gpu.product",
    "nvidia.com/cuda.driver-version.full",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.count",
)
_DAY_SECONDS = 86400


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node whose labels are stale."""
    runs_somewhere = any(_discovers(pod) and _well(pod) for node in facts.gpu_nodes for pod in node.pods)
    for node in facts.gpu_nodes:
        yield node.ref
        written = _stamp(node)
        labels = [f"{label}={node.labels[label]}" for label in _SHOWN if label in node.labels]
        old = age(facts, written)
        if written is None or old is None or not labels or node.ready is not True:
            continue
        discovery = next((pod for pod in node.pods if _discovers(pod)), None)
        booted = latest(node.since, ready_since(node))
        after = booted is not None and booted - written > timedelta(hours=1) and offers_none(facts, node, policy)
        gone = old > _DAY_SECONDS and runs_somewhere and not (discovery and _well(discovery))
        if not after and not gone:
            continue
        yield found(
            Severity.LOW,
            node.ref,
            *([discovery.ref] if discovery and not _well(discovery) else []),
            identity=str(node.ref),
            notes=[
                note("since_boot", booted=moment(booted, "status.conditions[type=Ready].lastTransitionTime"))
                if after
                else note("discovery_failing", failing_pod=short(discovery.ref))
                if discovery
                else note("discovery_absent")
            ],
            node=node.name,
            written=moment(written, f"metadata.labels[{_STAMP}]"),
            label_age=seconds(old),
            labels=of(labels, "metadata.labels"),
        )


def _stamp(node: NodeFacts) -> datetime | None:
    text = node.labels.get(_STAMP, "")
    return datetime.fromtimestamp(int(text), UTC) if text.isascii() and text.isdigit() and len(text) == 10 else None


def _discovers(pod: PodFacts) -> bool:
    return "gpu-feature-discovery" in owner_name(pod)


def _well(pod: PodFacts) -> bool:
    return pod.phase == "Running" and not stuck(pod) and trouble(pod) is None


RULE = Rule(
    id="stale-gfd-labels",
    family="health",
    severity=Severity.LOW,
    seeds=("S3",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
