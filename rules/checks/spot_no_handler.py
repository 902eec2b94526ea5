"""Nothing on the cluster reacts when AWS announces that it takes a spot GPU node back.

What:
    Either self-managed spot GPU nodes on EKS (no managed node group, Karpenter, Auto Mode or Ocean) without
    aws-node-termination-handler, said only when Deployments and DaemonSets were read; or Karpenter's own Deployment
    without an interruption queue while it runs spot GPU nodes on AWS.

Why:
    AWS gives two minutes' notice. Unheard, the pods are killed instead of being drained, and their work is lost.
    Managed node groups, Auto Mode, GKE and AKS do this themselves.

Fix:
    Install aws-node-termination-handler, or give Karpenter its queue.

Source:
    seeds S22; aws/karpenter-provider-aws website/content/en/v1.14/reference/settings.md (INTERRUPTION_QUEUE);
    aws/aws-node-termination-handler README.md.

Seeds: S22
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rules.checks._kit import found, names
from rules.checks._nodes import refs
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.objects import OtherObject
from rules.facts.scaling import karpenter_pool
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_HANDLED = ("eks.amazonaws.com/nodegroup", "eks.amazonaws.com/compute-type", "spotinst.io/node-lifecycle")
_HANDLER = "node-termination-handler"


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per kind of node at most."""
    spot = [node for node in facts.gpu_nodes if node.spot and node.provider == "aws"]
    if not spot or _has_handler(facts):
        return
    alone = [node for node in spot if not any(label in node.labels for label in _HANDLED) and not karpenter_pool(node)]
    if alone and facts.knows("DaemonSet"):
        yield alone[0].ref
        yield found(
            Severity.MEDIUM, *refs(alone), identity="self-managed spot nodes", nodes=names(refs(alone)), owner="self"
        )
    of_karpenter = [node for node in spot if _by_karpenter(node)]
    controllers = (item for item in facts.of_kind("Deployment") if of_karpenter and _is_karpenter(item))
    controller = next(controllers, None)
    if controller is not None and not _has_queue(controller):
        ref = ObjectRef("Deployment", controller.metadata.namespace or "", controller.metadata.name)
        yield ref
        yield found(
            Severity.MEDIUM,
            ref,
            *refs(of_karpenter),
            identity=str(ref),
            remedy="karpenter",
            nodes=names(refs(of_karpenter)),
            owner="karpenter",
        )


def _by_karpenter(node: NodeFacts) -> bool:
    return karpenter_pool(node) is not None and node.labels.get("eks.amazonaws.com/compute-type") != "auto"


def _has_handler(facts: ClusterFacts) -> bool:
    items = [*facts.of_kind("DaemonSet"), *facts.of_kind("Deployment")]
    return any(_HANDLER in item.metadata.name for item in items) or any(
        _HANDLER in pod.ref.name for pod in facts.pods if not pod.terminal
    )


def _containers(item: OtherObject) -> list[Mapping[str, Any]]:
    return (((item.spec or {}).get("template") or {}).get("spec") or {}).get("containers") or []


def _is_karpenter(item: OtherObject) -> bool:
    return any("karpenter/controller" in str(container.get("image")) for container in _containers(item))


def _has_queue(item: OtherObject) -> bool:
    for container in _containers(item):
        for variable in container.get("env") or ():
            if variable.get("name") == "INTERRUPTION_QUEUE" and (variable.get("value") or variable.get("valueFrom")):
                return True
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        if any(str(word).startswith("--interruption-queue") for word in words) or container.get("envFrom"):
            return True
    return False


RULE = Rule(
    id="spot-no-handler",
    family="spot",
    severity=Severity.MEDIUM,
    seeds=("S22",),
    needs=("Node", "Pod", "Deployment"),
    check=check,
    doc=__doc__ or "",
)
