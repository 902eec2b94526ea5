"""A cluster with multi-node jobs has no StorageClass for volumes that several nodes can mount.

What:
    A job spreads over two or more GPU pods, StorageClasses were read, and the provisioner of each one is known to have
    volumes for one node only. Left alone: clusters where any class may share (an unknown driver may), a volume of a
    shared driver exists without a class, or no multi-node job runs.

Why:
    Workers of one job need the same data and must find each other's checkpoints. Without shared volumes the data is
    copied to every worker, or the job is tied to one node.

Fix:
    Install a driver for shared file systems and make a class of it.

Source:
    seeds S21, S29; kubernetes-csi/docs book/src/drivers.md.

Seeds: S21, S29
"""

from collections.abc import Iterator

from rules.checks._gangs import gangs
from rules.checks._kit import found, names, of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.components import ref_of
from rules.facts.storage import can_share, shared_volumes
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_REMEDY_BY_PROVIDER = {"aws": "aws", "gcp": "gcp", "azure": "azure", "oci": "oci"}


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding for the cluster."""
    classes = facts.of_kind("StorageClass")
    jobs = gangs(facts)
    if not classes or not jobs or any(can_share(item.provisioner) is not False for item in classes):
        return
    if shared_volumes(facts):
        return
    yield ref_of(classes[0])
    providers = {node.provider for node in facts.gpu_nodes if node.provider}
    yield found(
        Severity.LOW,
        *sorted(ref_of(item) for item in classes),
        *sorted(job.ref for job in jobs),
        remedy=_REMEDY_BY_PROVIDER.get(next(iter(providers)), "default") if len(providers) == 1 else "default",
        identity="storage classes",
        classes=of(names(ref_of(item) for item in classes), "StorageClass"),
        provisioners=of(sorted({item.provisioner for item in classes if item.provisioner}), "provisioner"),
        jobs=of(names(job.ref for job in jobs)),
    )


RULE = Rule(
    id="no-rwx-class",
    family="storage",
    severity=Severity.LOW,
    seeds=("S21", "S29"),
    needs=("Node", "Pod", "StorageClass"),
    check=check,
    doc=__doc__ or "",
)
