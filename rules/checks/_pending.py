"""Why a pending GPU pod gets no node: the nodes as the pod sees them, and one named cause.

:func:`waiting` works it out once per audit; the rules that explain one cause each (``fragmentation``,
``untolerated-gpu-taint-pod`` ...) and ``gpu-pod-pending``, which tells the rest, all read it there.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from rules.checks._kit import age, names, note, of, owner_of, seconds, short
from rules.checks._scheduler_message import Cause, Reason, read, read_gang, read_refusal
from rules.checks._scheduling import Obstacle, demands, selector_of, vendor_of
from rules.checks._views import View, view_of
from rules.facts.cluster import ClusterFacts, GpuResource, NodeFacts, PodFacts
from rules.facts.objects import Event
from rules.findings import Note, ObjectRef
from rules.policy import Policy

_SCALE_UP_FRESH = timedelta(minutes=30)
_DEFAULT_SCHEDULER = "default-scheduler"
_EARLY = datetime(1970, 1, 1, tzinfo=UTC)
_NOWHERE = View()


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """One cause and what shows it.

    Attributes:
        cause: key of the values of ``cause`` in the words of ``gpu-pod-pending``; ``remedy``: key of its remedies.
        judged: GPU nodes that the pod's selector admits (all GPU nodes where it admits none), as the pod sees them.
        nearest: those of them with the fewest obstacles.
        opening: the sentence about the cause; ``closing``: what autoscalers say.
        message: the scheduler's latest words.
        enumerate_nodes: whether the obstacles of the nodes are worth telling one by one.
    """

    cause: str
    remedy: str
    judged: View = _NOWHERE
    nearest: View = _NOWHERE
    opening: Note | None = None
    closing: tuple[Note, ...] = ()
    message: str | None = None
    enumerate_nodes: bool = True


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of one owner with the same demands that have waited for a node for longer than the grace period.

    Attributes:
        identity: owner and demands: what makes it the same trouble tomorrow.
        pods: the one that has waited longest first.
        fits: every GPU node as these pods see it.
    """

    identity: str
    pods: tuple[PodFacts, ...]
    fits: View
    diagnosis: Diagnosis

    @property
    def first(self) -> PodFacts:
        """The pod that has waited longest."""
        return self.pods[0]

    @property
    def refs(self) -> tuple[ObjectRef, ...]:
        """All of its pods."""
        return tuple(pod.ref for pod in self.pods)

    @property
    def resource(self) -> str | None:
        """The first GPU resource that it asks for; None where it asks in another way."""
        return next(iter(self.first.gpu_requests), None)

    @property
    def admitted(self) -> View:
        """GPU nodes that its selector admits."""
        return self.fits.admitted


def waiting(facts: ClusterFacts, policy: Policy) -> tuple[Waiting, ...]:
    """All that waits for a GPU node, in order of :attr:`Waiting.identity`, but for pods that are being deleted or are
    younger than the grace period of ``policy``."""
    grace = policy.pending_grace_seconds
    return facts.remember(f"waiting after {grace} s", lambda: _waiting(facts, grace))


def by_nodes(facts: ClusterFacts, policy: Policy) -> Iterator[Waiting]:
    """Those of :func:`waiting` that some node keeps out: nobody holds them back on purpose, no node is on its way."""
    return (queue for queue in waiting(facts, policy) if queue.diagnosis.cause not in _NOT_BY_NODES)


_NOT_BY_NODES = frozenset({"gated", "scale_up", "gang", "scheduler", "claim_missing"})


def about(facts: ClusterFacts, queue: Waiting) -> dict[str, Any]:
    """Evidence that every finding on waiting pods carries."""
    first = queue.first
    return {
        "pod": short(first.ref),
        "pod_namespace": first.ref.namespace,
        "pod_name": first.ref.name,
        "pods": of(names(queue.refs)),
        "asked": of(asked(first), "spec.containers[].resources"),
        "waited": seconds(age(facts, first.pod.metadata.creationTimestamp), "metadata.creationTimestamp"),
    }


def asked(pod: PodFacts) -> list[str]:
    """What the pod asks for: ``nvidia.com/gpu=2``."""
    amounts = [f"{name}={amount}" for name, amount in sorted(pod.gpu_requests.items())]
    return amounts or ["ResourceClaim (DRA)" if pod.other_gpu_claim == "dra-claim" else pod.other_gpu_claim or "GPU"]


def offers(node: NodeFacts, name: str) -> bool:
    """Whether pods can ask the node for the resource in ``resources.limits``."""
    return any(item.name == name and _plain(item) for item in node.resources)


def refusals(facts: ClusterFacts, pod: PodFacts) -> tuple[Reason, ...]:
    """Why cluster-autoscaler added no node for the pod when it last looked; empty when it has not said."""
    said = [event for event in facts.events_of(pod.ref) if event.reason in _AUTOSCALER_EVENTS]
    last = max(said, key=_when, default=None)
    return read_refusal(_text(last) or "") if last is not None and last.reason == "NotTriggerScaleUp" else ()


def _waiting(facts: ClusterFacts, grace: int) -> tuple[Waiting, ...]:
    queues: dict[str, tuple[str, list[PodFacts]]] = {}
    for pod in facts.pending_gpu_pods:
        waited = age(facts, pod.pod.metadata.creationTimestamp)
        if waited is None or waited < grace or pod.pod.metadata.deletionTimestamp:
            continue
        demand = demands(pod)
        queues.setdefault(f"{owner_of(pod)} {demand}", (demand, []))[1].append(pod)
    seen: dict[str, View] = {}
    found = []
    for identity, (demand, pods) in sorted(queues.items()):
        pods.sort(key=lambda pod: (str(pod.pod.metadata.creationTimestamp), pod.ref))
        if demand not in seen:
            seen[demand] = view_of(facts, pods[0])
        diagnosis = diagnose(facts, pods[0], seen[demand])
        found.append(Waiting(identity=identity, pods=tuple(pods), fits=seen[demand], diagnosis=diagnosis))
    return tuple(found)


def diagnose(facts: ClusterFacts, pod: PodFacts, fits: View) -> Diagnosis:
    """Why ``pod`` has no node, where ``fits`` is its :func:`~rules.checks._views.view_of` the GPU nodes."""
    message = _message(facts, pod)
    verdict = _held_back(pod, message, fits) or _by_nodes(facts, pod, fits, read(message or ""))
    coming, closing = _autoscalers(facts, pod, verdict.cause)
    if coming:
        verdict = msgspec.structs.replace(verdict, cause="scale_up", remedy="scale_up")
    elif verdict.cause == "no_gpu_node" and any(item.key == "autoscaler_blind" for item in closing):
        verdict = msgspec.structs.replace(verdict, remedy="scale_from_zero")
    return msgspec.structs.replace(verdict, closing=tuple(closing), message=message)


def _judged(fits: View) -> tuple[View, View]:
    """The nodes that the selector admits (all where it admits none), and those of them with the fewest obstacles."""
    judged = fits.admitted if fits.admitted.groups else fits
    return judged, judged.nearest


def _held_back(pod: PodFacts, message: str | None, fits: View) -> Diagnosis | None:
    """Causes that have nothing to do with nodes: gates, gangs, a scheduler that is not there."""
    spec, status = pod.pod.spec, pod.pod.status
    gates = [str(item.get("name")) for item in (spec.schedulingGates if spec else None) or []]
    if gates:
        return Diagnosis(cause="gated", remedy="gated", opening=note("gated", gates=gates), enumerate_nodes=False)
    gang = read_gang(message or "")
    if gang is not None:
        key = "gang_incomplete" if gang.existing < gang.wanted else "gang_waits"
        opening = note(key, wanted=gang.wanted, existing=gang.existing)
        return Diagnosis(cause="gang", remedy=key, opening=opening, enumerate_nodes=False)
    scheduler = (spec.schedulerName if spec else None) or _DEFAULT_SCHEDULER
    looked_at = message is not None or any(item.type == "PodScheduled" for item in (status and status.conditions) or [])
    if scheduler != _DEFAULT_SCHEDULER and not looked_at:
        opening = note("scheduler_silent", scheduler=scheduler)
        judged, nearest = _judged(fits)
        return Diagnosis(cause="scheduler", remedy="scheduler", judged=judged, nearest=nearest, opening=opening)
    return None


def _by_nodes(facts: ClusterFacts, pod: PodFacts, fits: View, reasons: tuple[Reason, ...]) -> Diagnosis:
    judged, nearest = _judged(fits)
    absent = [reason.subject for reason in reasons if reason.cause == Cause.CLAIM_MISSING and reason.subject]
    if absent:
        opening = note("claim_missing", subjects=absent)
        return Diagnosis(cause="claim_missing", remedy="claim_missing", judged=judged, nearest=nearest, opening=opening)
    if pod.gpu_requests:
        missing = _not_offered(facts, pod, judged, nearest)
        if missing is not None:
            return missing
    if nearest.has_free:
        return _beyond_objects(facts, reasons, judged, nearest)
    if not judged.groups:
        return Diagnosis(cause="no_gpu_node", remedy="no_gpu_node", opening=note("no_gpu_node"))
    if not judged.admitted.groups:
        return Diagnosis(cause="selector", remedy="selector", judged=judged, nearest=nearest)
    kinds = nearest.kinds
    cause = remedy = next(iter(kinds)).value if len(kinds) == 1 else "mixed"
    if all(Obstacle.TOO_SMALL in group.obstacles for group in judged.groups):
        # No patience and no toleration helps before this: it comes first, the others are told beside it.
        cause = "too_small"
        remedy = "too_small_tainted" if Obstacle.TAINT in kinds else cause
    outside = fits.where(lambda group: group.obstacles == {Obstacle.SELECTOR})
    opening = note("free_elsewhere", at=_at(facts, outside), selector=selector_of(pod))
    return Diagnosis(cause=cause, remedy=remedy, judged=judged, nearest=nearest, opening=opening if outside else None)


def _not_offered(facts: ClusterFacts, pod: PodFacts, judged: View, nearest: View) -> Diagnosis | None:
    """The case that no node of the cluster, selected or not, has the resource at all."""
    offered = facts.remember("resources that pods can ask for", lambda: _plain_names(facts))
    missing = [name for name in pod.gpu_requests if name not in offered]
    if not missing:
        return None
    wanted = missing[0]
    same_maker = [name for name in offered if vendor_of(name) == vendor_of(wanted)]
    if same_maker:
        opening = note("other_form", wanted_resource=wanted, offered=same_maker)
        return Diagnosis(cause="not_offered", remedy="other_form", judged=judged, nearest=nearest, opening=opening)
    if any(item.origin == "dra" for node in facts.nodes for item in node.resources):
        opening = note("dra_only", wanted_resource=wanted)
        return Diagnosis(cause="not_offered", remedy="dra_only", opening=opening)
    if Obstacle.BROKEN in judged.kinds:
        return Diagnosis(cause="broken", remedy="broken", judged=judged, nearest=nearest)
    makers: list[str] = sorted(
        {node.vendor for node in facts.gpu_nodes if node.vendor and node.vendor != vendor_of(wanted)}
    )
    if makers:
        opening = note("other_maker", wanted_resource=wanted, makers=makers)
        return Diagnosis(
            cause="not_offered",
            remedy="other_maker",
            judged=judged,
            nearest=nearest,
            opening=opening,
        )
    return Diagnosis(cause="no_gpu_node", remedy="no_gpu_node", opening=note("no_gpu_node"))


def _plain_names(facts: ClusterFacts) -> tuple[str, ...]:
    return tuple(sorted({item.name for node in facts.nodes for item in node.resources if _plain(item)}))


def _plain(resource: GpuResource) -> bool:
    """Whether a pod can ask for it in ``resources.limits``."""
    return resource.origin == "kubelet" and bool(resource.allocatable)


_BEYOND: tuple[tuple[str, Callable[[Reason], bool]], ...] = (
    ("dra", lambda reason: reason.cause == Cause.DRA),
    ("volume", lambda reason: reason.cause == Cause.VOLUME),
    ("other_resource", lambda reason: reason.cause == Cause.INSUFFICIENT and not vendor_of(reason.subject or "")),
    ("pod_rules", lambda reason: reason.cause in (Cause.POD_RULES, Cause.PORTS)),
)


def _beyond_objects(facts: ClusterFacts, reasons: tuple[Reason, ...], judged: View, nearest: View) -> Diagnosis:
    """Some node looks free: the reason lies in what only the scheduler knows."""
    for cause, applies in _BEYOND:
        matching = [reason for reason in reasons if applies(reason)]
        if matching:
            subjects = sorted({reason.subject for reason in matching if reason.subject})
            opening = note(cause, subjects=subjects or [reason.text for reason in matching])
            return Diagnosis(
                cause=cause, remedy=cause, judged=judged, nearest=nearest, opening=opening, enumerate_nodes=False
            )
    opening = note("unclear", at=_at(facts, nearest))
    return Diagnosis(
        cause="unclear", remedy="unclear", judged=judged, nearest=nearest, opening=opening, enumerate_nodes=False
    )


def _at(facts: ClusterFacts, view: View) -> list[str]:
    """The nodes by name, worked out once for all pods that see the same ones."""
    told = facts.remember("names of GPU nodes", dict[tuple[int, ...], list[str]])
    if view.places not in told:
        told[view.places] = names(node.ref for node in view.nodes)
    return told[view.places]


def _message(facts: ClusterFacts, pod: PodFacts) -> str | None:
    """The scheduler's latest words: its newest FailedScheduling event, else the PodScheduled condition."""
    events = [
        event
        for event in facts.events_of(pod.ref)
        if event.reason == "FailedScheduling" and _component(event) != "karpenter"
    ]
    if events:
        return _text(max(events, key=_when))
    conditions = (pod.pod.status.conditions if pod.pod.status else None) or []
    return next((item.message for item in conditions if item.type == "PodScheduled" and item.message), None)


def _autoscalers(facts: ClusterFacts, pod: PodFacts, cause: str) -> tuple[bool, list[Note]]:
    """Whether a node is on its way, and what autoscalers last said about the pod."""
    said = [event for event in facts.events_of(pod.ref) if event.reason in _AUTOSCALER_EVENTS or _is_karpenter(event)]
    if not said:
        return False, []
    last = max(said, key=_when)
    text = _text(last) or ""
    if last.reason in ("TriggeredScaleUp", "Nominated"):
        fresh = facts.observed_at - _when(last) < _SCALE_UP_FRESH
        return fresh, [note("scale_up" if fresh else "scale_up_stale", said=_cut(text))]
    if last.reason != "NotTriggerScaleUp":
        return False, [note("karpenter_says", said=_cut(text))]
    notes = [note("autoscaler_refuses", said=_cut(text.partition(": ")[2] or text))]
    refused = read_refusal(text)
    if cause == "no_gpu_node" and any(
        reason.cause == Cause.INSUFFICIENT and reason.subject in pod.gpu_requests for reason in refused
    ):
        notes.append(note("autoscaler_blind"))
    if any(reason.cause == Cause.GROUP_FULL for reason in refused):
        notes.append(note("group_full"))
    return False, notes


_AUTOSCALER_EVENTS = ("TriggeredScaleUp", "NotTriggerScaleUp")


def _is_karpenter(event: Event) -> bool:
    return _component(event) == "karpenter" and event.reason in ("FailedScheduling", "Nominated")


def _component(event: Event) -> str | None:
    return (event.source.component if event.source else None) or event.reportingComponent or event.reportingController


def _text(event: Event) -> str | None:
    return event.message or event.note


def _when(event: Event) -> datetime:
    times: Iterable[datetime | None] = (
        event.series.lastObservedTime if event.series else None,
        event.lastTimestamp,
        event.eventTime,
        event.firstTimestamp,
        event.metadata.creationTimestamp,
    )
    return next((item for item in times if item is not None), _EARLY)


def _cut(said: str, width: int = 180) -> str:
    line = " ".join(said.split())
    return line if len(line) <= width else line[: width - 1] + "…"
