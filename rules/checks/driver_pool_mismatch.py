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

from collections.abc import Callable, Iterator, Mapping
from functools import cache
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
from rules.facts.objects import Container
from rules.facts.resources import gpu_requests
from rules.findings import Finding, Note, Severity
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


Reach = Mapping[Hardware, list[NodeFacts]]


class Case(NamedTuple):
    """A container of a template, and the nodes it may land on: those on which it would not run, and would."""

    template: Template
    container: Container
    bad: list[tuple[NodeFacts, Verdict]]
    good: list[NodeFacts]
    unknown: int


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Yielded]:
    """Yield one finding per workload and image, to be told unless its pods show the mismatch already."""
    configs = facts.image_configs

    @cache
    def judged(config: str | None, **case: str | None) -> Verdict:
        return judge(**case, image_config=configs[config] if config else None)  # type: ignore[arg-type]

    seen: set[str] = set()
    reached: dict[bytes, Reach] = {}
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
            if case.bad and identity not in seen:
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


def _reach(facts: ClusterFacts, template: Template, wanted: Mapping[str, int]) -> Reach:
    """Nodes that the scheduler may pick, together with their like: driver and GPU decide, not the single node."""
    reach: dict[Hardware, list[NodeFacts]] = {}
    for node in facts.gpu_nodes:
        if _may_run(template, wanted, node):
            like = Hardware(node.driver_version, node.product, node.vendor, compute_capability(node))
            reach.setdefault(like, []).append(node)
    return reach


def _may_run(template: Template, wanted: Mapping[str, int], node: NodeFacts) -> bool:
    """Whether the scheduler may bind such a pod to the node once the GPUs are free. Cordon and readiness pass."""
    spec = template.spec
    for name, amount in wanted.items():
        resource = resource_of(node, name)
        if resource is None or max(resource.capacity or 0, resource.allocatable or 0) < amount:
            return False
    taints = untolerated_taints(node, spec.tolerations or [])
    return selects(spec, node.name, node.labels) and all(key.startswith("node.kubernetes.io/") for key in taints)


def _case(
    facts: ClusterFacts,
    judged: Callable[..., Verdict],
    template: Template,
    container: Container,
    reach: Reach,
) -> Case:
    tagged = image_cuda(container.image)
    stated = None if tagged.cuda or tagged.rocm else stated_cuda(container)
    case = Case(template, container, [], [], 0)
    unknown = 0
    for like, nodes in reach.items():
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
            case.bad.extend((node, verdict) for node in nodes)
        elif verdict.verdict in _GOOD:
            case.good.extend(nodes)
        else:
            unknown += len(nodes)
    return case._replace(unknown=unknown)


def _finding(case: Case, identity: str) -> Finding:
    template, bad = case.template, case.bad
    verdict = bad[0][1]
    by_card = all(item.verdict == "arch_unsupported" for _, item in bad)
    software = _software(verdict, case.container)
    minimum = verdict.floor_driver or verdict.min_driver
    refs = sorted(node.ref for node, _ in bad)
    return found(
        _severity(case),
        template.ref,
        *refs[:_SHOWN],
        remedy=("card" if by_card else "default") if case.good else ("no_card" if by_card else "nowhere"),
        identity=identity,
        notes=_notes(case, by_card=by_card),
        workload=short(template.ref),
        kind=template.ref.kind,
        image=of(case.container.image, "spec.template, containers[].image"),
        software=of(software, "tag of the image, its configuration, or CUDA_VERSION"),
        bad_nodes=of(names(refs)),
        bad_count=len(refs),
        good_nodes=of(names(node.ref for node in case.good)),
        reach_count=len(refs) + len(case.good) + case.unknown,
        drivers=of(sorted({node.driver_version or "" for node, _ in bad}), bad[0][0].driver_source),
        good_drivers=of(sorted({node.driver_version or "" for node in case.good})),
        cards=of(sorted({node.product or "GPU" for node, _ in bad})),
        good_cards=of(sorted({node.product or "GPU" for node in case.good})),
        floor_driver=of(minimum, verdict.reasons[0].source),
        pin=_pin(case.good, by_card=by_card),
    )


def _pin(good: list[NodeFacts], *, by_card: bool) -> str:
    """A match expression that admits the nodes which fit, by the label that tells them from the others."""
    key = "nvidia.com/gpu.product" if by_card else "nvidia.com/cuda.driver-version.full"
    if not by_card and any(node.driver_source == "amd.com/gpu.driver-version" for node in good):
        key = "amd.com/gpu.driver-version"
    values = sorted({value for node in good if (value := node.labels.get(key))})
    return f"{{key: {key}, operator: In, values: [{', '.join(values)}]}}"


def _severity(case: Case) -> Severity:
    if not case.template.active:
        return Severity.LOW
    return Severity.HIGH if not case.good and not case.unknown else Severity.MEDIUM


def _software(verdict: Verdict, container: Container) -> str:
    if verdict.cuda or verdict.rocm:
        return f"CUDA {verdict.cuda}" if verdict.cuda else f"ROCm {verdict.rocm}"
    stated: Any = stated_cuda(container)
    return f"CUDA {stated}" if stated else "CUDA"


def _notes(case: Case, *, by_card: bool) -> Iterator[Note]:
    yield note("cards" if by_card else "drivers")
    if case.good:
        yield note("fits")
    pools = {alike_with(node) for node, _ in case.bad} & {alike_with(node) for node in case.good}
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
