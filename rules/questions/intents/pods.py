"""Intents about pods: who holds GPUs, who waits and why, what failed, what uses a GPU without asking."""

from collections.abc import Iterator
from datetime import datetime

from rules import words
from rules.facts.model import PodFacts
from rules.facts.objects import ContainerStatus
from rules.facts.scale_down import movable
from rules.findings import Evidence
from rules.questions.intents.shown import Shown, View, findings_of, partly, told, unknown

_WAITING = (
    "gpu-pod-pending", "untolerated-gpu-taint-pod", "selector-matches-nothing", "fragmentation", "cpu-starved-gpu",
    "mig-resource-mismatch", "shared-rename-zero-key", "timeslice-request-gt-one", "kueue-never-admits", "partial-gang",
    "kueue-admits-without-capacity", "two-jobs-deadlock", "gang-min-wrong", "gang-operator-conflict",
    "gang-min-member-rollout", "claim-pending", "rollout-deadlock", "extended-resource-in-dra-cluster",
    "gpu-of-another-vendor", "ca-scale-up-backoff", "scale-from-zero-unknown-gpu", "rwo-multi-node",
    "device-plugin-missing", "allocatable-zero-driver", "plugin-desired-zero", "image-pull-slow",
    "runtimeclass-missing",
)  # fmt: skip
_CRASHES = (
    "crashloop-gpu", "driver-cuda-mismatch", "unexpected-admission-pileup", "out-of-gpu-reason", "driver-pod-crashloop",
    "operator-rollout-kills-pods",
)  # fmt: skip
_IDLE_PODS = ("notebook-idle", "ray-idle-cluster", "claim-allocated-unused", "yunikorn-placeholder-idle",
              "kai-reservation-leak", "job-never-cleaned", "crashloop-gpu", "init-container-gpu")  # fmt: skip
_BYPASS = ("visible-devices-bypass", "cuda-image-without-request")
MESSAGE = 240


def _name(pod: PodFacts) -> str:
    return f"{pod.ref.namespace}/{pod.ref.name}" if pod.ref.namespace else pod.ref.name


def gpu_pods(view: View) -> Shown:
    """Pods that hold GPUs."""
    blind = unknown(view, "Pod")
    if blind is not None:
        return blind
    held = [pod for pod in view.facts.gpu_pods if pod.holds_gpu and view.wants_pod(pod) and _on_wanted(view, pod)]
    if not held:
        return Shown(view.say("pods.none_hold"), verdict="no")
    held.sort(key=lambda pod: (-sum(pod.gpu_requests.values()), _name(pod)))
    source = f"{view.facts.name}: Pod"
    evidence = (Evidence("gpu_pods", len(held), source=source),)
    return Shown(
        view.say("pods.hold", pods=view.count("pods", len(held))),
        tuple(_held(view, pod) for pod in held),
        evidence,
        "yes",
    )


def _on_wanted(view: View, pod: PodFacts) -> bool:
    node = view.facts.node(pod.node_name) if pod.node_name else None
    return not view.gpu or (node is not None and view.wants(node))


def _held(view: View, pod: PodFacts) -> str:
    if pod.gpu_requests:
        said = ", ".join(f"{count} `{name}`" for name, count in sorted(pod.gpu_requests.items()))
        return view.say("pod.holds", pod=_name(pod), node=pod.node_name, gpus=said)
    return view.say("pod.holds_other", pod=_name(pod), node=pod.node_name, way=f"`{pod.other_gpu_claim}`")


def namespaces(view: View) -> Shown:
    """GPU requests by namespace."""
    blind = unknown(view, "Pod")
    if blind is not None:
        return blind
    used: dict[str, list[PodFacts]] = {}
    waiting: dict[str, int] = {}
    for pod in view.facts.gpu_pods:
        if pod.gpu_requests and view.wants_pod(pod) and not pod.terminal:
            if pod.node_name is not None:
                used.setdefault(pod.ref.namespace, []).append(pod)
            else:
                waiting[pod.ref.namespace] = waiting.get(pod.ref.namespace, 0) + sum(pod.gpu_requests.values())
    rows = []
    for namespace in used.keys() | waiting.keys():
        pods = used.get(namespace, [])
        rows.append((sum(sum(pod.gpu_requests.values()) for pod in pods), namespace, len(pods)))
    rows.sort(key=lambda row: (-row[0], row[1]))
    if not rows:
        return Shown(view.say("pods.none_hold"), verdict="no")
    lines = tuple(
        view.say(
            "namespace.row",
            namespace=namespace,
            gpus=view.count("gpus", total),
            pods=view.count("pods", count),
            waiting=view.say("namespace.waiting", count=waiting[namespace]) if namespace in waiting else "",
        )
        for total, namespace, count in rows
    )
    evidence = tuple(
        Evidence("gpus_requested", total, "GPU", f"{view.facts.name}: {namespace}") for total, namespace, _ in rows[:10]
    )
    return Shown("", lines, evidence, None, view.say("namespace.units"))


def cpu_pods(view: View) -> Shown:
    """Pods without a GPU on GPU nodes."""
    blind = unknown(view, "Pod")
    if blind is not None:
        return blind
    lines, number = [], 0
    for node in view.gpu_nodes:
        others = [pod.ref for pod in movable(node) if not pod.holds_gpu and view.wants_pod(pod)]
        if others:
            number += len(others)
            lines.append(view.say("cpu.row", node=node.name, names=view.names(others)))
    if not lines:
        return Shown(view.say("cpu.none"), verdict="no")
    evidence = (Evidence("cpu_pods_on_gpu_nodes", number, source=f"{view.facts.name}: Pod"),)
    return Shown(view.say("cpu.lead", pods=view.count("pods", number)), tuple(lines), evidence, "yes")


def pending(view: View) -> Shown:
    """Why GPU pods wait."""
    blind = unknown(view, "Pod")
    if blind is not None:
        return blind
    if view.pod is not None:
        named = [pod for pod in view.facts.pods if view.wants_pod(pod)]
        if not named:
            return Shown(view.say("cluster.no_object", kind=view.say("kind.pod"), name=view.pod), verdict="unknown")
        if not any(pod in view.facts.pending_gpu_pods for pod in named):
            return Shown("", tuple(_not_waiting(view, pod) for pod in named))
    waiting = [pod for pod in view.facts.pending_gpu_pods if view.wants_pod(pod)]
    if not waiting:
        return Shown(view.say("pending.none"), verdict="no")
    found, missing = findings_of(view, _WAITING)
    lines = told(view, found)
    explained = {ref for finding in found for ref in finding.objects}
    lines += [
        _message(view, pod) for pod in waiting if pod.ref not in explained and (not found or view.pod is not None)
    ]
    evidence = [Evidence("pending_gpu_pods", len(waiting), source=f"{view.facts.name}: Pod")]
    evidence += [item for finding in found[:4] for item in finding.evidence[:4]]
    lead = view.say("pending.lead", pods=view.count("pods", len(waiting)))
    return Shown(lead, tuple(lines), tuple(evidence), "yes", partly(view, missing))


def _not_waiting(view: View, pod: PodFacts) -> str:
    if pod.phase == "Pending" and pod.node_name is None:
        return view.say("pending.not_gpu", pod=_name(pod), message=_scheduled(pod) or "?")
    return view.say("pending.runs", pod=_name(pod), phase=pod.phase)


def _message(view: View, pod: PodFacts) -> str:
    message = _scheduled(pod)
    if message is None:
        return view.say("pending.silent", pod=_name(pod))
    return view.say("pending.message", pod=_name(pod), message=message.replace("`", "'"))


def _scheduled(pod: PodFacts) -> str | None:
    conditions = (pod.pod.status.conditions if pod.pod.status else None) or []
    text = next((item.message for item in conditions if item.type == "PodScheduled" and item.status == "False"), None)
    return None if not text else text if len(text) <= MESSAGE else text[: MESSAGE - 1] + "…"


def crashes(view: View) -> Shown:
    """GPU pods that failed or restarted, the latest first."""
    blind = unknown(view, "Pod")
    if blind is not None:
        return blind
    found, missing = findings_of(view, _CRASHES)
    rows = sorted(_fallen(view), key=lambda row: (row[0] is None, -(row[0].timestamp() if row[0] else 0), row[1]))
    lines = [*told(view, found), *(line for _, _, line in rows)]
    if not lines:
        return Shown(view.say("crash.none"), verdict="no", after=partly(view, missing))
    evidence = (Evidence("failed_gpu_pods", len(rows), source=f"{view.facts.name}: status.containerStatuses"),)
    return Shown("", tuple(lines), evidence, "yes", partly(view, missing))


def _fallen(view: View) -> Iterator[tuple[datetime | None, str, str]]:
    for pod in view.facts.gpu_pods:
        if not view.wants_pod(pod) or pod.pod.status is None:
            continue
        status = pod.pod.status
        containers = [*(status.containerStatuses or []), *(status.initContainerStatuses or [])]
        restarts = sum(item.restartCount or 0 for item in containers)
        worst = next((item for item in containers if _reason(item) is not None), None)
        if pod.phase != "Failed" and (worst is None or not restarts):
            continue
        at, reason = _reason(worst) or (None, None) if worst is not None else (None, None)
        said = reason or status.reason or "Failed"
        if said.isdigit():
            said = view.say("crash.exit", code=said)
        moment = words.format_value(at.isoformat(), "date", view.language) if at else None
        when = view.say("crash.when", when=moment) if moment else ""
        yield at, _name(pod), view.say("crash.row", pod=_name(pod), reason=said, count=restarts, when=when)


def _reason(container: ContainerStatus) -> tuple[datetime | None, str] | None:
    """When a container fell last, and why: a reason, or its exit code; None when it never did."""
    waiting = container.state.waiting if container.state else None
    for state in (container.state, container.lastState):
        ended = state.terminated if state else None
        if ended is not None and ended.exitCode:
            generic = ended.reason in (None, "Error")
            return ended.finishedAt, str(ended.exitCode) if generic else str(ended.reason)
    if waiting is not None and waiting.reason and ("BackOff" in waiting.reason or "Err" in waiting.reason):
        return None, waiting.reason
    return None


def idle_pods(view: View) -> Shown:
    """Pods that hold GPUs without sign of need, as far as the API tells."""
    found, missing = findings_of(view, _IDLE_PODS)
    evidence = tuple(item for finding in found[:8] for item in finding.evidence[:4])
    lead = "" if found else view.say("found.none")
    after = " ".join(filter(None, [view.say("idle.use_unknown"), partly(view, missing)]))
    return Shown(lead, tuple(told(view, found)), evidence, "yes" if found else "unknown", after)


def unrequested(view: View) -> Shown:
    """Pods that use, or may use, a GPU without a request the scheduler counts."""
    blind = unknown(view, "Pod")
    if blind is not None:
        return blind
    found, missing = findings_of(view, _BYPASS)
    told_of = {ref for finding in found for ref in finding.objects}
    lines = told(view, found)
    for pod in view.facts.gpu_pods:
        by = pod.other_gpu_claim
        if (
            by in ("visible-devices", "device-mount")
            and pod.ref not in told_of
            and view.wants_pod(pod)
            and not pod.terminal
        ):
            lines.append(view.say("unrequested.row", pod=_name(pod), node=pod.node_name, way=f"`{by}`"))
    after = " ".join(filter(None, [view.say("idle.use_unknown"), partly(view, missing)]))
    if not lines:
        return Shown(view.say("found.none"), verdict="no", after=after)
    evidence = tuple(item for finding in found[:8] for item in finding.evidence[:4])
    return Shown("", tuple(lines), evidence, "yes", after)
