"""A Deployment that nobody scales to zero keeps a GPU node up for days.

What:
    The GPU work on a node that an autoscaler could remove is one Deployment with one replica, it has held its GPU for
    a while, and nothing scales it: no HorizontalPodAutoscaler and no ScaledObject names it. Groups at
    their minimum size, pools that do not shrink and notebooks are told by other rules.

Why:
    Autoscalers of nodes look at pods, not at requests of users: while the pod runs, the node is in use. Whether its GPU
    does any work cannot be seen from objects, GPU metrics would tell. Information at
    first, low after three days, medium after a week. It carries no cost,
    since the service may be worth it; the price of the node is said.

Fix:
    Scale the Deployment to zero when it is not needed: KEDA, a schedule, or by hand. The node then goes by itself.

Source:
    seeds S9, S24; https://github.com/aws-samples/comfyui-on-eks/issues/6;
    https://github.com/kubernetes-sigs/karpenter/issues/1475.

Seeds: S9, S24
"""

from collections.abc import Iterator

from rules.checks._kit import Value, age, cost_of, found, moment, note, of, seconds, short
from rules.checks._nodes import kept_by
from rules.checks._running import running_since
from rules.checks._workloads import find, is_notebook, workload
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

DAYS_SECONDS = 3 * 86400
WEEK_SECONDS = 7 * 86400
_HARMLESS = {"policy_when_empty"}


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node and Deployment."""
    scaled = _scaled(facts)
    for node in facts.gpu_nodes:
        yield node.ref
        pods = [pod for pod in node.gpu_pods if not pod.is_daemon]
        manager = facts.scaling.manager(node)
        if len(pods) != 1 or manager is None or node.ready is not True or set(kept_by(facts, node)) - _HARMLESS:
            continue
        owner, runs = workload(facts, pods[0]), age(facts, running_since(pods[0]))
        item = find(facts, owner) if owner.kind == "Deployment" else None
        one = item is not None and (item.spec or {}).get("replicas", 1) == 1
        if not one or owner in scaled or runs is None or is_notebook(facts, pods[0]):
            continue
        yield found(
            _severity(runs),
            owner,
            node.ref,
            pods[0].ref,
            identity=f"{owner} on a node of its own",
            notes=list(_notes(facts, node)),
            owner=short(owner),
            node=node.name,
            pod=short(pods[0].ref),
            runs=seconds(runs, "status.startTime"),
            since=moment(running_since(pods[0])),
            gpu=node.product,
            manager=of(manager, "labels of the node, objects of the autoscaler"),
            namespace=owner.namespace,
            name=owner.name,
        )


def _severity(runs: float) -> Severity:
    if runs >= WEEK_SECONDS:
        return Severity.MEDIUM
    return Severity.LOW if runs >= DAYS_SECONDS else Severity.INFO


def _scaled(facts: ClusterFacts) -> set[ObjectRef]:
    """What some autoscaler of pods already scales."""
    found_targets = set()
    for item in (*facts.of_kind("HorizontalPodAutoscaler"), *facts.of_kind("ScaledObject")):
        target = (item.spec or {}).get("scaleTargetRef") or {}
        kind = str(target.get("kind") or "Deployment")
        found_targets.add(ObjectRef(kind, item.metadata.namespace or "", str(target.get("name"))))
    return found_targets


def _notes(facts: ClusterFacts, node: NodeFacts) -> Iterator[Note]:
    yield note("unseen")
    cost = cost_of(node.price, None)
    if cost is not None:
        rate = Value(cost.usd_hour, "USD/h", cost.source)
        yield note("price", usd_hour=rate, price_basis=cost.basis, price_date=Value(cost.as_of, "date", cost.source))
    pool = facts.scaling.pool(node)
    after = pool.consolidate_after if pool else None
    if after and after != "Never":
        yield note("goes_after", after=after)


RULE = Rule(
    id="deployment-keeps-gpu-node",
    family="billing",
    severity=Severity.LOW,
    seeds=("S9", "S24"),
    needs=("Node", "Pod", "Deployment"),
    check=check,
    doc=__doc__ or "",
)
