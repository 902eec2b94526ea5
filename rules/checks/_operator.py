"""What the GPU operators of NVIDIA and AMD say of themselves: their state objects and the labels they write on nodes.

Sources: NVIDIA/gpu-operator config/crd/bases, controllers/state_manager.go and the vendored
NVIDIA/k8s-operator-libs pkg/upgrade/consts.go; NVIDIA/mig-parted pkg/mig/reconfigure/reconfigure.go; ROCm/gpu-operator
internal/controllers/upgrademgr.go, api/v1alpha1/deviceconfig_types.go; read in the second half of 2026.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.objects import OtherObject
from rules.findings import ObjectRef

from ._components import Layer, pods_of
from ._kit import age

GROUPS = {
    "ClusterPolicy": "nvidia.com",
    "NVIDIADriver": "nvidia.com",
    "GPUCluster": "nvidia.com",
    "DeviceConfig": "amd.com",
}
NVIDIA_STATE = "nvidia.com/gpu-driver-upgrade-state"
AMD_STATE = "operator.amd.com/gpu-driver-upgrade-state"
_AMD_FAILED = frozenset(
    {"Upgrade-Failed", "Upgrade-Timed-Out", "Cordon-Failed", "Uncordon-Failed", "Drain-Failed", "Reboot-Failed"}
)
_AMD_DONE = frozenset({"Install-Complete", "Upgrade-Complete", "Upgrade-Not-Started"})
_STARTS = (
    "nvidia.com/gpu-driver-upgrade-validation-start-time",
    "nvidia.com/gpu-driver-upgrade-wait-for-pod-completion-start-time",
    "nvidia.com/gpu-driver-upgrade-driver-wait-for-safe-load-start-time",
)
PAUSED = "paused-for-"


class OperatorState(msgspec.Struct, frozen=True):
    """What an operator's own object says.

    Attributes:
        state: of NVIDIA's ``status.state``; for AMD's DeviceConfig ``notReady`` where its condition Ready is False.
        since: when it stopped being ready, by its conditions; None when they do not say.
        message: of the condition Error, or of Ready.
    """

    item: OtherObject
    ref: ObjectRef
    state: str
    since: datetime | None
    message: str | None


class Upgrade(msgspec.Struct, frozen=True):
    """State of a driver upgrade on a node.

    Attributes:
        phase: ``done``, ``failed`` or ``open``.
        label: key of the label.
    """

    label: str
    state: str
    phase: str


def operator_states(facts: ClusterFacts) -> Iterator[OperatorState]:
    """State objects of the GPU operators, as far as they were read."""
    for kind, group in GROUPS.items():
        for item in facts.of_kind(kind, group):
            status = item.status or {}
            ready, error = _condition(status, "Ready"), _condition(status, "Error")
            state = status.get("state")
            if not isinstance(state, str):
                if not ready:
                    continue
                state = "ready" if ready.get("status") == "True" else "notReady"
            since = _time(ready.get("lastTransitionTime")) if ready.get("status") == "False" else None
            since = since or (_time(error.get("lastTransitionTime")) if error.get("status") == "True" else None)
            message = error.get("message") or ready.get("message")
            ref = ObjectRef(kind, item.metadata.namespace or "", item.metadata.name)
            yield OperatorState(item, ref, state, since, str(message) if message else None)


def _condition(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    conditions = status.get("conditions")
    found = (item for item in conditions or () if isinstance(item, dict) and item.get("type") == name)
    return next(found, {}) if isinstance(conditions, list) else {}


def _time(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(value)) if value else None
    except ValueError:
        return None
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)


def not_ready_for(facts: ClusterFacts) -> float | None:
    """Longest time that a GPU operator has said that it is not ready; None when none says so, or since when."""
    ages = [age(facts, item.since) for item in operator_states(facts) if item.state == "notReady"]
    return max((item for item in ages if item is not None), default=None)


def upgrade_of(node: NodeFacts) -> Upgrade | None:
    """The driver upgrade that an operator tracks on the node; None when it tracks none, or the node is exempt."""
    state = node.labels.get(NVIDIA_STATE)
    if state and node.labels.get("nvidia.com/gpu-driver-upgrade.skip") != "true":
        phase = "done" if state == "upgrade-done" else "failed" if state == "upgrade-failed" else "open"
        return Upgrade(NVIDIA_STATE, state, phase)
    state = node.labels.get(AMD_STATE)
    if not state:
        return None
    return Upgrade(AMD_STATE, state, "failed" if state in _AMD_FAILED else "done" if state in _AMD_DONE else "open")


def upgrade_running_for(facts: ClusterFacts, node: NodeFacts) -> float | None:
    """For how long the node's upgrade has been under way, at least: the upgrade controller notes when it began to wait,
    the operator since when it is not ready, and the driver's pod when it was replaced. None when nothing tells."""
    annotations = node.node.metadata.annotations or {}
    starts = [datetime.fromtimestamp(int(text), UTC) for key in _STARTS if _is_time(text := annotations.get(key, ""))]
    known = [age(facts, moment) for moment in starts]
    known.append(not_ready_for(facts))
    known += [
        age(facts, pod.pod.metadata.creationTimestamp)
        for pod in pods_of(node, Layer.DRIVER)
        if not _is_ready(pod.pod.status)
    ]
    return max((item for item in known if item is not None), default=None)


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdigit() and 9 <= len(text) <= 10


def _is_ready(status: Any) -> bool:
    return any(item.type == "Ready" and item.status == "True" for item in (status.conditions if status else None) or ())


def paused_operands(node: NodeFacts) -> dict[str, str]:
    """Parts of the GPU Operator that are paused on the node, and for what (``driver-upgrade``, ``mig-change``)."""
    prefix = "nvidia.com/gpu.deploy."
    return {
        label.removeprefix(prefix): value.removeprefix(PAUSED)
        for label, value in node.labels.items()
        if label.startswith(prefix) and value.startswith(PAUSED)
    }


def driver_ready_for(facts: ClusterFacts, node: NodeFacts) -> float | None:
    """For how long the driver's pod on the node has been ready; None when it is not, or there is none."""
    for pod in pods_of(node, Layer.DRIVER):
        for item in (pod.pod.status.conditions if pod.pod.status else None) or ():
            if item.type == "Ready" and item.status == "True":
                return age(facts, item.lastTransitionTime)
    return None
