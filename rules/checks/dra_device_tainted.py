"""A GPU is tainted in its ResourceSlice, while the node looks fine.

What:
    A device of a GPU driver's ResourceSlice (newest generation of its pool) carries a taint ``NoSchedule`` or
    ``NoExecute``, for example for an Xid error or a lost GPU.

Why:
    New claims do not get it, and no condition or taint of the node tells. The node is paid in full.

Fix:
    Read the Xid; drain, reset or replace. The driver takes the taint off when the device is well again.

Source:
    kubernetes-sigs/dra-driver-nvidia-gpu site/content/docs/guides/gpu-health-checking.md,
    cmd/gpu-kubelet-plugin/device_health.go; kubernetes/api resource/v1 types.go.

Seeds: S2
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, note, of
from rules.checks._slices import bad_devices, claims_on, pools, slice_ref
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per pool with tainted devices."""
    for pool in pools(facts):
        tainted = {slice_ref(item): bad_devices(item) for item in pool.slices}
        bad = {ref: faulty for ref, faulty in tainted.items() if faulty}
        if not bad:
            continue
        yield next(iter(bad))
        devices = sorted(device.name for every in bad.values() for device in every)
        claims = claims_on(facts, pool.driver, pool.name, set(devices))
        node = facts.node(pool.node)
        total = sum(item.capacity or 0 for item in node.resources if item.origin == "dra") if node else None
        yield found(
            Severity.HIGH,
            *sorted(bad),
            ObjectRef("Node", "", pool.node),
            *claims,
            identity=f"{pool.driver} {pool.name}",
            notes=[note("held", claims=names(claims))] if claims else [],
            node=pool.node,
            slices=of(names(bad)),
            slice=min(bad).name,
            devices=of(devices, "spec.devices[].name"),
            total=of(total, "spec.devices"),
            taints=of(sorted({taint for every in bad.values() for item in every for taint in item.taints})),
            driver=pool.driver,
            gpu=of(node.product if node else None),
        )


RULE = Rule(
    id="dra-device-tainted",
    family="health",
    severity=Severity.HIGH,
    seeds=("S2",),
    needs=("Node", "ResourceSlice"),
    check=check,
    doc=__doc__ or "",
)
