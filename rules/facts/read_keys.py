"""Parts of pods that rules read as plain dictionaries, with the keys that they look at; decoding skips all others.

Keys are spelled as Kubernetes spells them.
"""

from typing import TypedDict

_Quantity = str | int | float


class _HostPath(TypedDict, total=False):
    path: str


class _EmptyDir(TypedDict, total=False):
    medium: str | None
    sizeLimit: _Quantity | None


class _MountedClaim(TypedDict, total=False):
    claimName: str


class _Ephemeral(TypedDict, total=False):
    """Its presence tells: such a volume has a claim of its own."""


class Volume(TypedDict, total=False):
    """A volume of a pod."""

    name: str
    hostPath: _HostPath | None
    emptyDir: _EmptyDir | None
    persistentVolumeClaim: _MountedClaim | None
    ephemeral: _Ephemeral | None


class _Capabilities(TypedDict, total=False):
    add: list[str] | None


class SecurityContext(TypedDict, total=False):
    """Of a container."""

    privileged: bool | None
    capabilities: _Capabilities | None


class UsedClaim(TypedDict, total=False):
    """A claim of the pod that a container uses, or one request of it."""

    name: str
    request: str | None


class PodResourceClaimStatus(TypedDict, total=False):
    """Which ResourceClaim was made for a claim of the pod."""

    name: str
    resourceClaimName: str | None


class SchedulingGate(TypedDict, total=False):
    """What keeps a pod from being scheduled."""

    name: str


class _Requirement(TypedDict, total=False):
    key: str
    operator: str
    values: list[str] | None


class _SelectorTerm(TypedDict, total=False):
    matchExpressions: list[_Requirement] | None
    matchFields: list[_Requirement] | None


class _NodeSelector(TypedDict, total=False):
    nodeSelectorTerms: list[_SelectorTerm] | None


class _Preferred(TypedDict, total=False):
    weight: int
    preference: _SelectorTerm | None


class _NodeAffinity(TypedDict, total=False):
    requiredDuringSchedulingIgnoredDuringExecution: _NodeSelector | None
    preferredDuringSchedulingIgnoredDuringExecution: list[_Preferred] | None


class Affinity(TypedDict, total=False):
    """Where a pod may run, by its nodes; what it wants of other pods is read by no rule."""

    nodeAffinity: _NodeAffinity | None
