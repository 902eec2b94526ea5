"""Objects behind the stand-in API server: revisions, consistent pages, and the history that watches read."""

import base64
import json
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

Object = dict[str, Any]
Key = tuple[str, str]
"""Namespace ("" for cluster-wide kinds) and name; lists are sorted by it, as etcd does."""


class Resource(msgspec.Struct, frozen=True):
    """A kind that the server serves."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


BUILT_IN = (
    Resource("", "v1", "nodes", "Node", False),
    Resource("", "v1", "pods", "Pod", True),
    Resource("", "v1", "events", "Event", True),
    Resource("", "v1", "configmaps", "ConfigMap", True),
    Resource("", "v1", "secrets", "Secret", True),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True),
    Resource("", "v1", "persistentvolumes", "PersistentVolume", False),
    Resource("apps", "v1", "daemonsets", "DaemonSet", True),
    Resource("apps", "v1", "deployments", "Deployment", True),
    Resource("apps", "v1", "replicasets", "ReplicaSet", True),
    Resource("apps", "v1", "statefulsets", "StatefulSet", True),
    Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True),
    Resource("batch", "v1", "cronjobs", "CronJob", True),
    Resource("batch", "v1", "jobs", "Job", True),
    Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True),
    Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True),
    Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False),
    Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False),
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False),
    Resource("", "v1", "resourcequotas", "ResourceQuota", True),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False),
    Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", True),
    Resource("kueue.x-k8s.io", "v1beta2", "clusterqueues", "ClusterQueue", False),
    Resource("kueue.x-k8s.io", "v1beta2", "resourceflavors", "ResourceFlavor", False),
    Resource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload", True),
    Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", True),
    Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", True),
    Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", True),
    Resource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob", True),
    Resource("ray.io", "v1", "rayclusters", "RayCluster", True),
    Resource("amd.com", "v1alpha1", "deviceconfigs", "DeviceConfig", True),
    Resource("karpenter.k8s.aws", "v1", "ec2nodeclasses", "EC2NodeClass", False),
    Resource("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor", True),
    Resource("nvidia.com", "v1", "clusterpolicies", "ClusterPolicy", False),
    Resource("nvidia.com", "v1alpha1", "nvidiadrivers", "NVIDIADriver", False),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True),
    Resource("karpenter.sh", "v1", "nodepools", "NodePool", False),
    Resource("karpenter.sh", "v1", "nodeclaims", "NodeClaim", False),
    Resource("ray.io", "v1", "rayjobs", "RayJob", True),
    Resource("kubeflow.org", "v1", "notebooks", "Notebook", True),
    Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject", True),
)


class Change(msgspec.Struct, frozen=True):
    """One entry of the history: ADDED, MODIFIED or DELETED."""

    revision: int
    type: str
    resource: Resource
    object: Object


class ContinueTokenError(Exception):
    """The continue token cannot be read; the message is the API server's."""


class ExpiredError(Exception):
    """The token's revision is compacted; ``fresh`` continues with an inconsistent rest."""

    def __init__(self, fresh: str) -> None:
        self.fresh = fresh
        super().__init__(fresh)


class State:
    """A mutable cluster. Thread-safe: tests change it while the server's own thread reads it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.revision = 300
        self.compacted = 0
        self.resources = {(r.group, r.version, r.plural): r for r in BUILT_IN}
        self.history: list[Change] = []
        self.changed: Callable[[], None] = lambda: None
        self._objects: dict[Resource, dict[Key, Object]] = {r: {} for r in BUILT_IN}
        self._pinned: dict[int, dict[Resource, list[tuple[Key, Object]]]] = {}

    def load(self, *paths: Path) -> None:
        """Add every object of ``kubectl get -o json`` files."""
        for path in paths:
            document = json.loads(path.read_text(encoding="utf-8"))
            for item in document.get("items", [document]):
                self.put(item)

    def put(self, item: Object) -> Object:
        """Add or replace an object, as a controller would; gives what is stored."""
        with self.lock:
            resource = self._resource_of(item)
            key = (item["metadata"].get("namespace", "") if resource.namespaced else "", item["metadata"]["name"])
            old = self._objects[resource].get(key)
            self.revision += 1
            stored: Object = json.loads(json.dumps(item))
            stored["metadata"]["resourceVersion"] = str(self.revision)
            stored["metadata"].setdefault(
                "uid", str(uuid.uuid5(uuid.NAMESPACE_URL, f"{resource.plural}/{'/'.join(key)}"))
            )
            self._objects[resource][key] = stored
            self._record("MODIFIED" if old else "ADDED", resource, stored)
            return stored

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Remove an object; KeyError when there is none."""
        with self.lock:
            resource = next(r for r in self.resources.values() if r.kind == kind)
            gone = self._objects[resource].pop((namespace if resource.namespaced else "", name))
            self.revision += 1
            self._record(
                "DELETED", resource, {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.revision)}}
            )

    def get(self, kind: str, name: str, namespace: str = "") -> Object:
        """A copy of an object; KeyError when there is none."""
        with self.lock:
            resource = next(r for r in self.resources.values() if r.kind == kind)
            copy: Object = json.loads(
                json.dumps(self._objects[resource][(namespace if resource.namespaced else "", name)])
            )
            return copy

    def dump(self) -> bytes:
        """All objects as ``kubectl get ... -A -o json`` prints them."""
        with self.lock:
            items = [item for kept in self._objects.values() for _, item in sorted(kept.items())]
        return json.dumps(
            {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}
        ).encode()

    def compact(self) -> None:
        """Forget old revisions: continue tokens expire, watches from before get 410."""
        with self.lock:
            self._pinned.clear()
            self.compacted = self.revision
            self.history.clear()

    def expire_pages(self, plural: str) -> None:
        """Forget the lists of one resource that are being read; others go on."""
        with self.lock:
            for pinned in self._pinned.values():
                for resource in [resource for resource in pinned if resource.plural == plural]:
                    del pinned[resource]

    def remove_group(self, group: str) -> None:
        """Serve no longer an API group (an older cluster, a custom resource that is not installed)."""
        with self.lock:
            for key in [key for key in self.resources if key[0] == group]:
                del self.resources[key]

    def serve_group_as(self, group: str, version: str) -> None:
        """Serve a group in another version only (an older cluster)."""
        with self.lock:
            for key in [key for key in self.resources if key[0] == group]:
                old = self.resources.pop(key)
                new = msgspec.structs.replace(old, version=version)
                self.resources[(group, version, old.plural)] = new
                self._objects[new] = self._objects.pop(old)

    def groups(self) -> dict[str, list[str]]:
        """Versions by API group, without the core group."""
        with self.lock:
            found: dict[str, list[str]] = {}
            for resource in self.resources.values():
                versions = found.setdefault(resource.group, [])
                if resource.version not in versions:
                    versions.append(resource.version)
            found.pop("", None)
            return found

    def page(
        self, resource: Resource, keep: Callable[[Object], bool], namespace: str | None, limit: int, token: str
    ) -> tuple[list[Object], int, str, int]:
        """One page: objects, revision, token of the next page ("" at the end), number of remaining objects."""
        with self.lock:
            revision, start = self.revision, ""
            if token:
                revision, start = _read_token(token)
                if revision != -1 and resource not in self._pinned.get(revision, {}):
                    raise ExpiredError(_token(-1, start))
            if revision == -1:
                revision = self.revision
                everything = sorted(self._objects[resource].items())
            elif token:
                everything = self._pinned[revision][resource]
            else:
                everything = sorted(self._objects[resource].items())
                if limit:
                    self._pinned.setdefault(revision, {})[resource] = everything
            chosen = [
                (key, item)
                for key, item in everything
                if "/".join(key) + "\0" > start and (namespace is None or key[0] == namespace) and keep(item)
            ]
            shown = chosen[:limit] if limit else chosen
            rest = len(chosen) - len(shown)
            following = _token(revision, "/".join(shown[-1][0]) + "\0") if rest else ""
            return [item for _, item in shown], revision, following, rest

    def changes_since(self, revision: int, resource: Resource) -> Iterator[Change]:
        """History after a revision, in order."""
        with self.lock:
            found = [c for c in self.history if c.revision > revision and c.resource == resource]
        yield from found

    def _record(self, change: str, resource: Resource, item: Object) -> None:
        self.history.append(Change(self.revision, change, resource, item))
        self.changed()

    def _resource_of(self, item: Object) -> Resource:
        group, _, version = item["apiVersion"].rpartition("/")
        for resource in self._objects:
            if resource.kind == item["kind"] and resource.group == group:
                return resource
        lower = item["kind"].lower()
        plural = lower[:-1] + "ies" if lower.endswith("y") else lower + ("es" if lower.endswith(("s", "ss")) else "s")
        resource = Resource(group, version, plural, item["kind"], bool(item["metadata"].get("namespace")))
        self.resources[(group, version, plural)] = resource
        self._objects[resource] = {}
        return resource


def _token(revision: int, start: str) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    try:
        read = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(read["rv"]), str(read["start"])
    except (ValueError, KeyError, TypeError) as error:
        message = "continue key is not valid: invalid character 'i' looking for beginning of value"
        raise ContinueTokenError(f"invalid continue token: {message}") from error


def field_filter(resource: Resource, selector: str) -> Callable[[Object], bool]:
    """``fieldSelector`` as the API server reads it; ValueError with its message for a field it does not know."""
    terms = []
    for term in filter(None, selector.split(",")):
        for operator in ("!=", "==", "="):
            if operator in term:
                field, wanted = term.split(operator, 1)
                break
        else:
            raise ValueError(f"invalid selector: '{term}'; can't understand '{term}'")
        if field not in _selectable(resource):
            raise ValueError(f"field label not supported: {field}")
        terms.append((field.split("."), operator != "!=", wanted))

    def keep(item: Object) -> bool:
        return all((_value(item, path) == wanted) is equal for path, equal, wanted in terms)

    return keep


def _selectable(resource: Resource) -> Iterable[str]:
    own = {
        "pods": (
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
        ),
        "nodes": ("spec.unschedulable",),
        "events": (
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "reason",
            "source",
            "type",
        ),
    }
    return ("metadata.name", "metadata.namespace", *own.get(resource.plural, ()))


def _value(item: Object, path: list[str]) -> str:
    found: Any = item
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return "" if found is None else str(found)
