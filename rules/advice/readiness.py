"""Is a cluster ready for training over several nodes?

Four things are asked for (seeds S20, S21, S29): a fast interconnect, scheduling that starts all workers or none, an
operator for the training framework, and storage that several nodes can mount. Each is met, not met or unknown, with the
objects that show it. Unknown means that what would show it was not read, and says what to read. Nothing here says that
a job runs well; it says what would keep it from doing so.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from rules.facts.cluster import ClusterFacts
from rules.facts.components import Component, Role, ref_of
from rules.facts.groups import WorkloadGroup
from rules.facts.network import fast_network
from rules.facts.storage import can_share, shared_volumes
from rules.findings import Evidence, Note, ObjectRef, name_list
from rules.language import Language, Text
from rules.words import format_list, format_value

Topic = Literal["interconnect", "gang_scheduling", "training_operator", "shared_storage"]
State = Literal["met", "not_met", "unknown"]

_RDMA_LABELS = ("feature.node.kubernetes.io/rdma.available", "feature.node.kubernetes.io/rdma.capable")
_MELLANOX = "feature.node.kubernetes.io/pci-15b3.present"
_MOST_OBJECTS = 20


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One of the four things.

    Attributes:
        reasons: why it is in that state, in order; the words are in ``readiness.yaml``.
        step: what to do next, a key of the words; None where nothing is to be done.
        objects: that show it.
        missing: kinds that were not read and would tell.
    """

    topic: Topic
    state: State
    reasons: tuple[Note, ...]
    step: str | None = None
    objects: tuple[ObjectRef, ...] = ()
    missing: tuple[str, ...] = ()


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """The report of one cluster.

    Attributes:
        state: met when all requirements are, not met when one is not, else unknown.
    """

    cluster: str
    observed_at: datetime
    state: State
    requirements: tuple[Requirement, ...]


class RequirementWords(msgspec.Struct, frozen=True):
    """A requirement in one language: its name, its state, why, and what to do next (None: nothing)."""

    name: str
    state: str
    reasons: tuple[str, ...]
    step: str | None


def readiness(facts: ClusterFacts) -> Readiness:
    """Judge a cluster."""
    requirements = tuple(judge(facts) for judge in _JUDGES)
    states = {item.state for item in requirements}
    state: State = "not_met" if "not_met" in states else "unknown" if "unknown" in states else "met"
    return Readiness(cluster=facts.name, observed_at=facts.observed_at, state=state, requirements=requirements)


def _note(key: str, /, **values: str | int | list[str] | None) -> Note:
    return Note(key, tuple(Evidence(name, value) for name, value in values.items()))


def _interconnect(facts: ClusterFacts) -> Requirement:
    topic: Topic = "interconnect"
    if not facts.gpu_nodes:
        return Requirement(topic=topic, state="unknown", reasons=(_note("no_gpu_nodes"),), step="start_nodes")
    fast = [node for node in facts.gpu_nodes if fast_network(node)]
    resources = sorted({name for node in fast for name in fast_network(node)})
    objects = tuple(node.ref for node in fast)
    if len(fast) > 1:
        notes = [_note("fast_nodes", count=len(fast), total=len(facts.gpu_nodes), resources=resources)]
        if len(fast) < len(facts.gpu_nodes):
            notes.append(_note("slow_nodes", nodes=name_list(node.ref for node in facts.gpu_nodes if node not in fast)))
        notes += _troubled(facts.components.present(Role.NETWORK))
        return Requirement(topic=topic, state="met", reasons=tuple(notes), objects=objects[:_MOST_OBJECTS])
    own_way = [node for node in facts.gpu_nodes if node.provider == "gcp" and _is_gpudirect(node.instance_type)]
    if own_way and not fast:
        found = tuple(node.ref for node in own_way)
        return Requirement(topic=topic, state="unknown", reasons=(_note("gpudirect"),), step="gpudirect", objects=found)
    if fast:
        return Requirement(
            topic=topic,
            state="not_met",
            reasons=(_note("one_fast_node", node=fast[0].name, resources=resources),),
            step="more_nodes",
            objects=objects,
        )
    hidden = [node for node in facts.gpu_nodes if _has_hidden_rdma(node.labels)]
    if hidden:
        names = name_list(node.ref for node in hidden)
        reasons = (_note("hidden_rdma", nodes=names), *_troubled(facts.components.present(Role.NETWORK)))
        found = tuple(node.ref for node in hidden)[:_MOST_OBJECTS]
        return Requirement(topic=topic, state="not_met", reasons=reasons, step="expose_rdma", objects=found)
    return Requirement(
        topic=topic,
        state="not_met",
        reasons=(_note("no_fast_network", total=len(facts.gpu_nodes)),),
        step="fast_network",
        objects=tuple(node.ref for node in facts.gpu_nodes)[:_MOST_OBJECTS],
    )


def _is_gpudirect(instance_type: str | None) -> bool:
    """GKE machines whose network cards show as Network objects and annotations, not as resources of the node."""
    return (instance_type or "").startswith(("a3-", "a4-", "a4x-"))


def _has_hidden_rdma(labels: Mapping[str, str]) -> bool:
    return any(labels.get(label) == "true" for label in (*_RDMA_LABELS, _MELLANOX))


def _gang_scheduling(facts: ClusterFacts) -> Requirement:
    topic: Topic = "gang_scheduling"
    there = facts.components.present(Role.GANG_SCHEDULER)
    loose = [group for group in facts.workload_groups if group.gang is None and _uses_gpus(group)]
    if there:
        return _installed(topic, there, [_note("loose_jobs", jobs=_jobs(loose))] if loose else [])
    if loose:
        # Jobs that the default scheduler starts pod by pod show the want of it, whatever else was not read.
        return Requirement(
            topic=topic,
            state="not_met",
            reasons=(_note("no_gang_scheduler"), _note("loose_jobs", jobs=_jobs(loose))),
            step="gang_scheduler",
            objects=tuple(group.ref for group in loose)[:_MOST_OBJECTS],
        )
    return _absent(topic, facts, Role.GANG_SCHEDULER, "no_gang_scheduler", "gang_scheduler")


def _training_operator(facts: ClusterFacts) -> Requirement:
    topic: Topic = "training_operator"
    there = facts.components.present(Role.TRAINING_OPERATOR)
    if there:
        return _installed(topic, there, [])
    return _absent(topic, facts, Role.TRAINING_OPERATOR, "no_training_operator", "training_operator")


def _installed(topic: Topic, there: tuple[Component, ...], more: Iterable[Note]) -> Requirement:
    """Software that is there: met, unless all of it is known to be broken."""
    broken = all(item.healthy is False for item in there)
    objects = [ref for item in there for ref in (item.troubled if broken else item.shown_by[:5])]
    return Requirement(
        topic=topic,
        state="not_met" if broken else "met",
        reasons=(_note("installed", names=[item.name for item in there]), *_troubled(there), *more),
        step="mend" if broken else None,
        objects=tuple(dict.fromkeys(objects))[:_MOST_OBJECTS],
    )


def _absent(topic: Topic, facts: ClusterFacts, role: Role, reason: str, step: str) -> Requirement:
    if facts.components.has(role) is False:
        return Requirement(topic=topic, state="not_met", reasons=(_note(reason),), step=step)
    missing = [] if facts.knows("Pod") else ["Pod"]
    if facts.api_groups is None and not facts.knows("CustomResourceDefinition") and not facts.knows("APIService"):
        missing.append("APIService")
    reasons = (_note("not_seen", kinds=missing),) if missing else (_note("not_certain"),)
    return Requirement(topic=topic, state="unknown", reasons=reasons, step="read", missing=tuple(missing))


def _shared_storage(facts: ClusterFacts) -> Requirement:
    topic: Topic = "shared_storage"
    classes = facts.of_kind("StorageClass")
    shared = [item for item in classes if can_share(item.provisioner)]
    open_ones = [item for item in classes if can_share(item.provisioner) is None]
    volumes = shared_volumes(facts)
    if shared or volumes:
        notes = []
        if shared:
            named = [f"{item.metadata.name} ({item.provisioner})" for item in shared]
            notes.append(_note("shared_classes", classes=named))
        if volumes:
            notes.append(_note("shared_volumes", volumes=name_list(volumes)))
        objects = (*(ref_of(item) for item in shared), *volumes)
        return Requirement(topic=topic, state="met", reasons=tuple(notes), objects=objects[:_MOST_OBJECTS])
    if not facts.knows("StorageClass"):
        missing = tuple(kind for kind in ("StorageClass", "PersistentVolume") if not facts.knows(kind))
        reasons = (_note("not_seen", kinds=list(missing)),)
        return Requirement(topic=topic, state="unknown", reasons=reasons, step="read", missing=missing)
    objects = tuple(ref_of(item) for item in classes)[:_MOST_OBJECTS]
    if open_ones:
        named = sorted({str(item.provisioner) for item in open_ones})
        reasons = (_note("open_drivers", drivers=named),)
        return Requirement(topic=topic, state="unknown", reasons=reasons, step="ask_driver", objects=objects)
    named = sorted({str(item.provisioner) for item in classes})
    reasons = (_note("block_only", drivers=named) if classes else _note("no_classes"),)
    return Requirement(topic=topic, state="not_met", reasons=reasons, step="shared_storage", objects=objects)


_JUDGES: tuple[Callable[[ClusterFacts], Requirement], ...] = (
    _interconnect,
    _gang_scheduling,
    _training_operator,
    _shared_storage,
)


def _troubled(components: Iterable[Component]) -> list[Note]:
    sick = [item for item in components if item.healthy is False]
    refs = name_list(ref for item in sick for ref in item.troubled)
    return [_note("troubled", names=[item.name for item in sick], objects=refs)] if sick else []


def _uses_gpus(group: WorkloadGroup) -> bool:
    return sum(1 for pod in group.pods if pod.gpu_requests or pod.dra_devices) > 1


def _jobs(groups: Iterable[WorkloadGroup]) -> list[str]:
    return name_list(group.ref for group in groups)


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: Text
    states: dict[State, Text]
    topics: dict[Topic, Text]
    reasons: dict[str, Text]
    steps: dict[str, Text]
    next: Text
    objects: Text


@cache
def words() -> _Words:
    """All words of the report."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data = Path(__file__).with_name("readiness.yaml").read_bytes()
    return msgspec.convert(yaml.load(data, Loader=loader), _Words)  # noqa: S506 - a safe loader, in C


def say(requirement: Requirement, language: Language) -> RequirementWords:
    """A requirement in ``language``."""
    known = words()
    return RequirementWords(
        name=known.topics[requirement.topic].in_(language),
        state=known.states[requirement.state].in_(language),
        reasons=tuple(_filled(known.reasons[item.key], item, language) for item in requirement.reasons),
        step=known.steps[requirement.step].in_(language).strip() if requirement.step else None,
    )


def _filled(text: Text, note: Note, language: Language) -> str:
    values = {
        item.name: format_list(item.value, language)
        if isinstance(item.value, list)
        else format_value(item.value, "", language)
        for item in note.values
    }
    return text.in_(language).format(**values)
