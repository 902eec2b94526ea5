"""Is Kubernetes worth it for this workload, and who should run its control plane?

Reasons have weights and are summed. For it speak inference that is scaled or packed (S9), training over nodes (S10),
queues of batch jobs (S11), several workloads or GPUs (S13) and a cluster that is there already; against it one workload
on one GPU (S12, S28) and a team without anybody to run it (S7, S8). Weights are ours: what decides alone has 3, one
that two others outweigh has 2, one that tips the scales has 1.
"""

from collections.abc import Iterator

import msgspec

from rules.advice.model import Change, Control, Reason, Verdict, Worth
from rules.advice.request import AdviceRequest
from rules.sharing.model import Remark

DECIDES = 2


class Load(msgspec.Struct, frozen=True):
    """What runs at once.

    Attributes:
        workloads: programs that want a GPU or a share of one.
        gpus: in all; None where that is not known.
        shared: the plan puts several on one GPU.
    """

    workloads: int
    gpus: int | None
    shared: bool = False


def worth(request: AdviceRequest, load: Load) -> Worth:
    """The verdict, its reasons, and what would change it."""
    reasons = tuple(sorted(_reasons(request, load), key=lambda reason: (-abs(reason.weight), reason.key)))
    score = sum(reason.weight for reason in reasons)
    verdict = _verdict(score)
    changes = []
    for key, other, other_load in _others(request, load):
        changed = _verdict(sum(reason.weight for reason in _reasons(other, other_load)))
        if changed != verdict:
            changes.append(Change(key, changed))
    return Worth(verdict=verdict, score=score, reasons=reasons, changes=tuple(changes))


def _verdict(score: int) -> Verdict:
    return "yes" if score >= DECIDES else "no" if score <= -DECIDES else "depends"


def _reasons(request: AdviceRequest, load: Load) -> Iterator[Reason]:
    yield from _of_work(request, load)
    team = request.team
    if request.interruptible:
        yield Reason("spot_recovery", 1, ("S22",))
    if request.scale_to_zero:
        yield Reason("scale_to_zero", 1, ("S24",))
    if (request.tenants or 1) > 1:
        yield Reason("tenants", 1, ("S13",))
    if team.existing_cluster:
        yield Reason("existing_cluster", 3, ("S13",))
    elif team.platform_engineers is False:
        yield Reason("no_platform_engineers", -2, ("S7", "S8"))
    if team.kubernetes:
        yield Reason("knows_kubernetes", 1, ("S8",))
    elif team.kubernetes is False:
        yield Reason("new_to_kubernetes", -1, ("S8",))
    if team.gitops:
        yield Reason("gitops", 1, ("S9",))


def _of_work(request: AdviceRequest, load: Load) -> Iterator[Reason]:
    several = load.workloads > 1
    # replicas that follow the load are several as soon as it is worth talking of
    scaled = request.kind == "inference" and request.autoscaling
    if (request.nodes or 1) > 1:
        yield Reason("multi_node", 3, ("S10",))
    if scaled:
        yield Reason("autoscaled_inference", 3, ("S9",))
    if request.kind == "batch":
        yield Reason("batch_queue", 2 if several else 1, ("S11",))
    if several:
        yield Reason("several_workloads", 2, ("S13", "S28"))
        if load.shared:
            yield Reason("packed", 1, ("S9", "S27"))
    if load.gpus is not None and load.gpus > 1 and (several or (request.nodes or 1) > 1):
        yield Reason("several_gpus", 1, ("S13",))
    if not several and not scaled and (request.nodes or 1) == 1:
        if load.gpus == 1:
            yield Reason("single_job", -3, ("S12", "S28"))
        elif load.gpus is not None:
            yield Reason("one_machine", -1, ("S12",))
        if request.kind == "notebook":
            yield Reason("notebook", -1, ("S12",))


def _others(request: AdviceRequest, load: Load) -> Iterator[tuple[str, AdviceRequest, Load]]:
    """The same workload in other circumstances, one changed at a time."""
    team, replace = request.team, msgspec.structs.replace
    if not team.existing_cluster:
        yield "existing_cluster", replace(request, team=replace(team, existing_cluster=True)), load
    if team.platform_engineers is not False and not team.existing_cluster:
        yield "no_platform_engineers", replace(request, team=replace(team, platform_engineers=False)), load
    if team.platform_engineers is False and not team.existing_cluster:
        yield "platform_engineers", replace(request, team=replace(team, platform_engineers=True)), load
    if load.workloads == 1:
        more = Load(5, None if load.gpus is None else load.gpus * 5)
        yield "more_workloads", replace(request, parallel=5), more
    else:
        yield "one_workload", replace(request, parallel=1, nodes=None), Load(1, 1)
    if (request.nodes or 1) == 1 and request.kind != "notebook":
        yield (
            "multi_node" if request.kind == "training" else "more_nodes",
            replace(request, nodes=2),
            Load(load.workloads, None if load.gpus is None else load.gpus * 2),
        )
    if request.kind == "inference" and not request.autoscaling:
        yield "autoscaling", replace(request, autoscaling=True), load
    if request.interruptible:
        yield "not_interruptible", replace(request, interruptible=False), load


def control(request: AdviceRequest, verdict: Verdict) -> Control:
    """Managed, own or existing cluster (S6 to S8)."""
    if verdict == "no":
        return Control("none", (Remark(key="control_none"),))
    if request.edge:
        return Control("own", (Remark(key="own_edge"),))
    if request.managed is not None:
        return Control("managed" if request.managed else "own", (Remark(key="as_asked"),))
    if request.team.existing_cluster:
        return Control("existing", (Remark(key="existing_reuse"),))
    if request.team.platform_engineers is False:
        return Control("managed", (Remark(key="managed_nobody"),))
    if request.team.platform_engineers and request.team.kubernetes:
        return Control("managed", (Remark(key="managed_default"), Remark(key="own_possible")))
    return Control("managed", (Remark(key="managed_default"),))
