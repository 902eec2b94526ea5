"""A workload may land on GPU nodes on which its image would not run.

What:
    For every pod template (Deployment, StatefulSet, Job, CronJob, custom resources that hold one, and pods whose
    workload was not read) that asks for GPUs, each GPU node that offers the resource and that nodeSelector, required
    affinity and tolerations admit is judged: would the image run on its driver and GPU? Reported are nodes whose driver
    is too old, whose card the software has no code for, or that need the forward compatibility package without the
    image carrying it. Nothing is said where the image's CUDA, the driver or the GPU is unknown, and where pods of the
    workload already show the mismatch, the rule driver-cuda-mismatch speaks.

Why:
    It works until the scheduler picks the wrong node: after an eviction, a scale-up, a roll-out. Medium where part of
    the nodes would run it; high where none would and it wants pods now; low while it is suspended or scaled to zero.

Fix:
    Bring the drivers of the pool to one version, keep the workload to nodes that fit, or take an older image.

Source:
    seeds S4, S19; https://docs.nvidia.com/deploy/cuda-compatibility/; see :mod:`rules.compat` and, for the scheduler's
    filters, :mod:`rules.checks._scheduling`.

Seeds: S4, S19
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any, NamedTuple

import msgspec

from rules.checks._kit import found, names, note, of, short
from rules.checks._scheduling import resource_of, selects, untolerated_taints
from rules.checks._templates import Template, templates
from rules.checks.driver_cuda_mismatch import compute_capability, stated_cuda
from rules.checks.driver_version_skew import alike_with
from rules.compat import Verdict, image_cuda
from rules.compat import check as judge
from rules.engine import Root, Rule, Symptom, Yielded
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.objects import Container, PodSpec
from rules.facts.resources import gpu_requests
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_BAD = ("driver_too_old", "arch_unsupported", "needs_forward_compat")
_GOOD = ("ok", "ok_minor_compat")
_SHOWN = 20


class Hardware(NamedTuple):
    """What decides whether an image runs."""

    driver: str | None
    product: str | None
    vendor: str | None
    compute_capability: str | None


class _Nodes(msgspec.Struct, frozen=True, dict=True):
    """Nodes that a pod may land on and that decide alike, in the order of the cluster; what is to be told of them."""

    items: tuple[NodeFacts, ...]

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def refs(self) -> list[ObjectRef]:
        return sorted(node.ref for node in self.items)

    @cached_property
    def names(self) -> list[str]:
        return names(node.ref for node in self.items)

    @cached_property
    def drivers(self) -> list[str]:
        return sorted({node.driver_version or "" for node in self.items})

    @cached_property
    def cards(self) -> list[str]:
        return sorted({node.product or "GPU" for node in self.items})

    @cached_property
    def alike(self) -> frozenset[tuple[str, str] | None]:
        return frozenset(alike_with(node) for node in self.items)

    @cached_property
    def by_amd(self) -> bool:
        return any(node.driver_source == "amd.com/gpu.driver-version" for node in self.items)

    def values(self, label: str) -> list[str]:
        """Values of a label."""
        if label not in self._values:
            self._values[label] = sorted({value for node in self.items if (value := node.labels.get(label))})
        return self._values[label]

    @cached_property
    def _values(self) -> dict[str, list[str]]:
        return {}


class _Reach:
    """Nodes that the scheduler may pick for a pod, together with their like: driver and GPU decide, not the single
    node."""

    def __init__(self, likes: dict[Hardware, list[tuple[int, NodeFacts]]]) -> None:
        self.likes = likes
        self._told: dict[tuple[Hardware, ...], _Nodes] = {}

    def nodes(self, likes: Iterable[Hardware]) -> _Nodes:
        """All nodes of these kinds."""
        key = tuple(likes)
        if key not in self._told:
            # Kind by kind, so that the first one tells its reasons.
            self._told[key] = _Nodes(tuple(node for like in key for _, node in self.likes[like]))
        return self._told[key]


class Case(NamedTuple):
    """A container of a template, and the nodes it may land on: those on which it would not run, and would.

    Attributes:
        verdicts: one for each kind of the bad nodes, the first one's first.
    """

    template: Template
    container: Container
    bad: _Nodes
    verdicts: list[Verdict]
    good: _Nodes
    unknown: int


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Yielded]:
    """Yield one finding per workload and image, to be told unless its pods show the mismatch already."""
    configs = facts.image_configs

    @cache
    def judged(config: str | None, **case: str | None) -> Verdict:
        return judge(**case, image_config=configs[config] if config else None)  # type: ignore[arg-type]

    seen: set[str] = set()
    reached: dict[bytes, _Reach] = {}
    for template in templates(facts):
        yield template.ref
        wanted = gpu_requests(template.spec)
        containers = [item for item in template.spec.containers or [] if _asks(item, wanted) and _known(facts, item)]
        if not containers:
            continue
        demand = _demand(template, wanted)
        if demand not in reached:
            reached[demand] = _reach(facts, template, wanted)
        for container in containers:
            case = _case(facts, judged, template, container, reached[demand])
            identity = f"{template.ref} {container.image}"
            if case.bad.items and identity not in seen:
                seen.add(identity)
                roots = [Root(pod.ref, ("driver-cuda-mismatch",)) for pod in template.pods]
                yield Symptom(_finding(case, identity), tuple(roots))


def _asks(container: Container, wanted: Mapping[str, int]) -> bool:
    resources = container.resources
    asked = {**(resources.requests or {}), **(resources.limits or {})} if resources else {}
    return any(name in wanted for name in asked)


def _known(facts: ClusterFacts, container: Container) -> bool:
    """Whether the version of CUDA or ROCm in the image can be known at all."""
    if container.image is None:
        return False
    tagged = image_cuda(container.image)
    return container.image in facts.image_configs or bool(tagged.cuda or tagged.rocm or stated_cuda(container))


def _demand(template: Template, wanted: Mapping[str, int]) -> bytes:
    """What decides where such a pod may run: equal for many templates of a cluster."""
    spec = template.spec
    return msgspec.json.encode([wanted, spec.nodeSelector, spec.affinity, spec.tolerations], order="sorted")


def _reach(facts: ClusterFacts, template: Template, wanted: Mapping[str, int]) -> _Reach:
    spec = template.spec
    likes: dict[Hardware, list[tuple[int, NodeFacts]]] = {}
    for (like, _, _), kind in facts.remember("GPU nodes alike to templates", lambda: _kinds(facts)).items():
        if _may_run(spec, wanted, kind[0][1]):
            inside = [item for item in kind if selects(spec, item[1].name, item[1].labels)]
            if inside:
                likes.setdefault(like, []).extend(inside)
    for found_nodes in likes.values():
        found_nodes.sort(key=lambda item: item[0])
    return _Reach(dict(sorted(likes.items(), key=lambda item: item[1][0][0])))


_Kind = tuple[Hardware, tuple[object, ...], tuple[object, ...]]


def _kinds(facts: ClusterFacts) -> dict[_Kind, list[tuple[int, NodeFacts]]]:
    """GPU nodes with their positions, by what :func:`_may_run` and the judgement look at."""
    kinds: dict[_Kind, list[tuple[int, NodeFacts]]] = {}
    for place, node in enumerate(facts.gpu_nodes):
        like = Hardware(node.driver_version, node.product, node.vendor, compute_capability(node))
        taints = (node.node.spec.taints if node.node.spec else None) or ()
        hard = tuple((taint.key, taint.value, taint.effect) for taint in taints)
        amounts = tuple((item.name, item.capacity, item.allocatable) for item in node.resources)
        kinds.setdefault((like, hard, amounts), []).append((place, node))
    return kinds


def _may_run(spec: PodSpec, wanted: Mapping[str, int], node: NodeFacts) -> bool:
    """Whether the scheduler may bind such a pod to the node once the GPUs are free, wherever its selector leads it.
    Cordon and readiness pass."""
    for name, amount in wanted.items():
        resource = resource_of(node, name)
        if resource is None or max(resource.capacity or 0, resource.allocatable or 0) < amount:
            return False
    taints = untolerated_taints(node, spec.tolerations or [])
    return all(key.startswith("node.kubernetes.io/") for key in taints)


def _case(
    facts: ClusterFacts,
    judged: Callable[..., Verdict],
    template: Template,
    container: Container,
    reach: _Reach,
) -> Case:
    tagged = image_cuda(container.image)
    stated = None if tagged.cuda or tagged.rocm else stated_cuda(container)
    bad: dict[Hardware, Verdict] = {}
    good: list[Hardware] = []
    unknown = 0
    for like, nodes in reach.likes.items():
        verdict = judged(
            container.image if container.image in facts.image_configs else None,
            driver=like.driver,
            cuda=stated,
            image=container.image,
            gpu=like.product,
            vendor=like.vendor,
            compute_capability=like.compute_capability,
        )
        carries = bool(verdict.image and verdict.image.compat)
        if like.driver is None or (verdict.verdict == "needs_forward_compat" and carries):
            unknown += len(nodes)
        elif verdict.verdict in _BAD:
            bad[like] = verdict
        elif verdict.verdict in _GOOD:
            good.append(like)
        else:
            unknown += len(nodes)
    return Case(template, container, reach.nodes(bad), list(bad.values()), reach.nodes(good), unknown)


def _finding(case: Case, identity: str) -> Finding:
    template, bad, good = case.template, case.bad, case.good
    verdict = case.verdicts[0]
    by_card = all(item.verdict == "arch_unsupported" for item in case.verdicts)
    software = _software(verdict, case.container)
    minimum = verdict.floor_driver or verdict.min_driver
    return found(
        _severity(case),
        template.ref,
        *bad.refs[:_SHOWN],
        remedy=("card" if by_card else "default") if good.items else ("no_card" if by_card else "nowhere"),
        identity=identity,
        notes=_notes(case, by_card=by_card),
        workload=short(template.ref),
        kind=template.ref.kind,
        image=of(case.container.image, "spec.template, containers[].image"),
        software=of(software, "tag of the image, its configuration, or CUDA_VERSION"),
        bad_nodes=of(bad.names),
        bad_count=len(bad),
        good_nodes=of(good.names),
        reach_count=len(bad) + len(good) + case.unknown,
        drivers=of(bad.drivers, bad.items[0].driver_source),
        good_drivers=of(good.drivers),
        cards=of(bad.cards),
        good_cards=of(good.cards),
        floor_driver=of(minimum, verdict.reasons[0].source),
        pin=_pin(good, by_card=by_card),
    )


def _pin(good: _Nodes, *, by_card: bool) -> str:
    """A match expression that admits the nodes which fit, by the label that tells them from the others."""
    key = "nvidia.com/gpu.product" if by_card else "nvidia.com/cuda.driver-version.full"
    if not by_card and good.by_amd:
        key = "amd.com/gpu.driver-version"
    return f"{{key: {key}, operator: In, values: [{', '.join(good.values(key))}]}}"


def _severity(case: Case) -> Severity:
    if not case.template.active:
        return Severity.LOW
    return Severity.HIGH if not case.good.items and not case.unknown else Severity.MEDIUM


def _software(verdict: Verdict, container: Container) -> str:
    if verdict.cuda or verdict.rocm:
        return f"CUDA {verdict.cuda}" if verdict.cuda else f"ROCm {verdict.rocm}"
    stated: Any = stated_cuda(container)
    return f"CUDA {stated}" if stated else "CUDA"


def _notes(case: Case, *, by_card: bool) -> Iterator[Note]:
    yield note("cards" if by_card else "drivers")
    if case.good.items:
        yield note("fits")
    pools = case.bad.alike & case.good.alike
    mixed = sorted(name for alike in pools if alike is not None and alike[0] == "pool" for name in [alike[1]])
    if mixed and not by_card:
        yield note("mixed_pool", mixed_pools=mixed)
    if case.unknown:
        yield note("unknown", unknown_count=case.unknown)
    if not case.template.active:
        yield note("inactive")


RULE = Rule(
    id="driver-pool-mismatch",
    family="compatibility",
    severity=Severity.MEDIUM,
    seeds=("S4", "S19"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
