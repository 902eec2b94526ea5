"""Volumes: which storage drivers can mount a file system on several nodes, and what a claim therefore can do.

The access modes of a claim are a wish: a claim may ask for ReadWriteMany on a block driver and bind, and the mount then
fails on the second node. The table is ``storage_drivers`` of ``rules/data/components.json``.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rules.facts.objects import OtherObject
from rules.findings import ObjectRef

if TYPE_CHECKING:
    from rules.facts.cluster import ClusterFacts

_DATA = Path(__file__).parent.parent / "data" / "components.json"
_SHARED_SOURCES = ("nfs", "cephfs", "glusterfs", "azureFile")
_NODE_SOURCES = ("hostPath", "local", "awsElasticBlockStore", "gcePersistentDisk", "azureDisk", "iscsi", "fc", "rbd")


class StorageDriverRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A storage driver.

    Attributes:
        driver: name of the CSI driver or provisioner. Operators put their namespace before it
            (``rook-ceph.rbd.csi.ceph.com``), charts a prefix and a slash.
        rwx: whether pods on several nodes can write to one of its file systems; None: it depends.
    """

    driver: str
    rwx: bool | None
    note: str | None = None
    source: str
    as_of: str


class _File(msgspec.Struct, frozen=True):
    storage_drivers: tuple[StorageDriverRow, ...]


class ClaimFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A PersistentVolumeClaim and what its volume can do.

    Attributes:
        access_modes: as the claim asks for them.
        block: it is a raw block device, not a file system.
        storage_class: name of its class; None when it names none.
        driver: of its volume or class; None when neither was read.
        rwx: whether the driver can mount it on several nodes; None when that is not known.
    """

    ref: ObjectRef
    access_modes: tuple[str, ...]
    block: bool
    storage_class: str | None
    driver: str | None
    rwx: bool | None

    @property
    def asks_for_many(self) -> bool:
        """Whether it asks for being mounted on several nodes, to write or to read."""
        return bool({"ReadWriteMany", "ReadOnlyMany"} & set(self.access_modes))


@cache
def storage_drivers() -> tuple[StorageDriverRow, ...]:
    """The table."""
    return msgspec.json.decode(_DATA.read_bytes(), type=_File).storage_drivers


@cache
def driver_row(driver: str) -> StorageDriverRow | None:
    """The row of a driver or provisioner; None for an unknown one."""
    rows = {row.driver: row for row in storage_drivers()}
    tail = driver.rpartition("/")[2]
    if driver in rows:
        return rows[driver]
    return next(
        (
            row
            for row in storage_drivers()
            if driver.endswith((f".{row.driver}", f"/{row.driver}")) or tail == row.driver
        ),
        None,
    )


def can_share(driver: str | None) -> bool | None:
    """Whether a driver mounts one file system on several nodes; None when it depends or the driver is not known."""
    row = driver_row(driver) if driver else None
    return row.rwx if row else None


def shared_volumes(facts: "ClusterFacts") -> tuple[ObjectRef, ...]:
    """Volumes that can be mounted on several nodes, and claims that are bound to such volumes; of those that were
    read."""
    volumes = [
        ObjectRef("PersistentVolume", "", item.metadata.name)
        for item in facts.others.get("PersistentVolume", ())
        if _of_volume(item)[1]
    ]
    return (*(claim.ref for claim in facts.claims.values() if claim.rwx), *volumes)


def claims_of(facts: "ClusterFacts") -> dict[ObjectRef, ClaimFacts]:
    """All claims that were read, by their reference."""
    volumes = {item.metadata.name: item for item in facts.others.get("PersistentVolume", ())}
    classes = {item.metadata.name: item for item in facts.others.get("StorageClass", ())}
    found: dict[ObjectRef, ClaimFacts] = {}
    for item in facts.others.get("PersistentVolumeClaim", ()):
        spec = item.spec or {}
        class_name = spec.get("storageClassName") or None
        driver, rwx = _of_volume(volumes.get(str(spec.get("volumeName") or "")))
        if driver is None and class_name in classes:
            driver = classes[str(class_name)].provisioner
            rwx = can_share(driver)
        ref = ObjectRef("PersistentVolumeClaim", item.metadata.namespace or "", item.metadata.name)
        found[ref] = ClaimFacts(
            ref=ref,
            access_modes=tuple(str(mode) for mode in spec.get("accessModes") or ()),
            block=spec.get("volumeMode") == "Block",
            storage_class=str(class_name) if class_name else None,
            driver=driver,
            rwx=rwx,
        )
    return found


def _of_volume(volume: OtherObject | None) -> tuple[str | None, bool | None]:
    spec: dict[str, Any] = (volume.spec if volume else None) or {}
    csi = spec.get("csi")
    if isinstance(csi, dict) and csi.get("driver"):
        return str(csi["driver"]), can_share(str(csi["driver"]))
    for sources, rwx in ((_SHARED_SOURCES, True), (_NODE_SOURCES, False)):
        for source in sources:
            if source in spec:
                return source, rwx
    return None, None


def claim_names(pod_name: str, volumes: list[dict[str, Any]] | None) -> list[str]:
    """Names of the claims that a pod mounts; a generic ephemeral volume has a claim of its own."""
    found: list[str] = []
    for volume in volumes or ():
        claim = volume.get("persistentVolumeClaim")
        if isinstance(claim, dict) and claim.get("claimName"):
            found.append(str(claim["claimName"]))
        elif "ephemeral" in volume:
            found.append(f"{pod_name}-{volume.get('name')}")
    return found
