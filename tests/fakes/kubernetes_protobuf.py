"""Nodes and pods as the API server writes them in ``application/vnd.kubernetes.protobuf``, from their JSON.

Tables of field numbers, written down apart from the schema of the code under test: all fields that the samples have,
managedFields among them, so that sizes are honest. Numbers are those of Kubernetes 1.36 (core/v1, meta/v1
generated.proto). ``tests/fakes/test_...`` holds the result to bytes that a real API server sent.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"
KINDS = frozenset({"Node", "Pod"})

Write = Callable[[Any], bytes]
Field = tuple[tuple[int, ...], Write, bool]
"""Where it goes (a path: Go embeds some structs that JSON inlines), how, and whether it is written when empty."""


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _chunk(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _text(value: Any) -> bytes:
    body = str(value).encode()
    return _varint(len(body)) + body


def _whole(value: Any) -> bytes:
    return _varint(int(value))


def _nested(body: bytes) -> bytes:
    return _varint(len(body)) + body


def _message(table: "Table") -> Write:
    return lambda value: _nested(table.encode(value))


def _time(value: str | None) -> bytes:
    if value is None:
        return _nested(b"")
    moment = datetime.fromisoformat(value)
    return _nested(b"\x08" + _varint(int(moment.timestamp())) + b"\x10" + _varint(moment.microsecond * 1000))


def _quantity(value: Any) -> bytes:
    return _nested(_chunk(1, str(value).encode()))


def _port(value: Any) -> bytes:
    text = isinstance(value, str)
    return _nested(
        b"\x08"
        + _varint(int(text))
        + b"\x10"
        + _varint(0 if text else value)
        + _chunk(3, str(value).encode() if text else b"")
    )


def _raw_json(value: Any) -> bytes:
    return _nested(_chunk(1, json.dumps(value, separators=(",", ":")).encode()))


class _Each:
    """A repeated field."""

    def __init__(self, write: Write) -> None:
        self.write = write


class _Pairs:
    """A map from text."""

    def __init__(self, write: Write) -> None:
        self.write = write


_VARINT = (_whole,)


class Table:
    """Fields of one message by their JSON names.

    Args:
        fields: the number, or the path of numbers, and what is there. A name that ends in ``!`` is written when it is
            empty too: in Go it is no pointer.
    """

    def __init__(self, **fields: tuple[int | tuple[int, ...], Any]) -> None:
        self._fields = dict(fields)

    def also(self, more: Mapping[str, tuple[int | tuple[int, ...], Any]]) -> "Table":
        """Add fields; for names that are no Python names, and for messages that hold themselves."""
        self._fields.update(more)
        return self

    def encode(self, value: Mapping[str, Any]) -> bytes:
        """``value`` as JSON has it. Raises ValueError for a field that is not in the table."""
        tree: dict[int, Any] = {}
        unknown = value.keys() - self._fields.keys()
        if unknown:
            raise ValueError(f"no field number known for {sorted(unknown)}")
        for name, (where, kind) in self._fields.items():
            path = where if isinstance(where, tuple) else (where,)
            written = b"".join(_fields(path[-1], kind, value.get(name), name in value))
            if written or len(path) > 1:
                branch = tree
                for number in path[:-1]:
                    branch = branch.setdefault(number, {})
                branch[path[-1]] = written
        return _joined(tree)


def _joined(tree: Mapping[int, Any]) -> bytes:
    parts = []
    for number, branch in sorted(tree.items()):
        if not isinstance(branch, dict):
            parts.append(branch)
        elif any(_leaves(branch)):
            parts.append(_chunk(number, _joined(branch)))
    return b"".join(parts)


def _leaves(tree: Mapping[int, Any]) -> Iterable[Any]:
    for branch in tree.values():
        if isinstance(branch, dict):
            yield from _leaves(branch)
        else:
            yield branch


class Always:
    """A field that Go writes when it is empty too."""

    def __init__(self, write: Write) -> None:
        self.write = write


_EMPTY: dict[Write, Any] = {_text: "", _whole: 0, _time: None}


def _fields(number: int, kind: Any, value: Any, present: bool) -> Iterable[bytes]:
    if isinstance(kind, _Each):
        for each in value or ():
            yield _tag(number, kind.write) + kind.write(each)
    elif isinstance(kind, _Pairs):
        for key, each in sorted((value or {}).items()):
            yield _chunk(number, b"\x0a" + _text(key) + b"\x12" + kind.write(each))
    elif isinstance(kind, Always):
        yield _tag(number, kind.write) + kind.write(_EMPTY[kind.write] if value is None else value)
    elif present and value is not None:
        yield _tag(number, kind) + kind(value)


def _tag(number: int, write: Write) -> bytes:
    return _varint(number << 3 | (0 if write in _VARINT else 2))


_t, _i, _T, _I = _text, _whole, Always(_text), Always(_whole)
_labels, _amounts, _words = _Pairs(_text), _Pairs(_quantity), _Each(_text)


def _m(table: Table) -> Write:
    return _message(table)


def _ms(table: Table) -> _Each:
    return _Each(_message(table))


_OWNER = Table(
    kind=(1, _T), name=(3, _T), uid=(4, _T), apiVersion=(5, _T), controller=(6, _i), blockOwnerDeletion=(7, _i)
)
_MANAGED = Table(
    manager=(1, _T), operation=(2, _T), apiVersion=(3, _T), time=(4, _time), fieldsType=(6, _T),
    fieldsV1=(7, _raw_json), subresource=(8, _T),
)  # fmt: skip
_META = Table(
    name=(1, _T), generateName=(2, _T), namespace=(3, _T), selfLink=(4, _T), uid=(5, _T), resourceVersion=(6, _T),
    generation=(7, _I), creationTimestamp=(8, Always(_time)), deletionTimestamp=(9, _time),
    deletionGracePeriodSeconds=(10, _i), labels=(11, _labels), annotations=(12, _labels),
    ownerReferences=(13, _ms(_OWNER)), finalizers=(14, _words), managedFields=(17, _ms(_MANAGED)),
)  # fmt: skip
_LIST_META = Table(selfLink=(1, _T), resourceVersion=(2, _T), remainingItemCount=(4, _i)).also({"continue": (3, _T)})

_REQUIREMENT = Table(key=(1, _T), operator=(2, _T), values=(3, _words))
_LABEL_SELECTOR = Table(matchLabels=(1, _labels), matchExpressions=(2, _ms(_REQUIREMENT)))
_TERM = Table(matchExpressions=(1, _ms(_REQUIREMENT)), matchFields=(2, _ms(_REQUIREMENT)))
_NODE_AFFINITY = Table(
    requiredDuringSchedulingIgnoredDuringExecution=(1, _m(Table(nodeSelectorTerms=(1, _ms(_TERM))))),
    preferredDuringSchedulingIgnoredDuringExecution=(2, _ms(Table(weight=(1, _I), preference=(2, _m(_TERM))))),
)
_POD_TERM = Table(labelSelector=(1, _m(_LABEL_SELECTOR)), namespaces=(2, _words), topologyKey=(3, _T),
                  namespaceSelector=(4, _m(_LABEL_SELECTOR)))  # fmt: skip
_POD_AFFINITY = Table(
    requiredDuringSchedulingIgnoredDuringExecution=(1, _ms(_POD_TERM)),
    preferredDuringSchedulingIgnoredDuringExecution=(2, _ms(Table(weight=(1, _I), podAffinityTerm=(2, _m(_POD_TERM))))),
)
_AFFINITY = Table(
    nodeAffinity=(1, _m(_NODE_AFFINITY)), podAffinity=(2, _m(_POD_AFFINITY)), podAntiAffinity=(3, _m(_POD_AFFINITY))
)

_SECCOMP = Table(type=(1, _T), localhostProfile=(2, _t))
_SELINUX = Table(user=(1, _T), role=(2, _T), type=(3, _T), level=(4, _T))
_SECURITY = Table(
    capabilities=(1, _m(Table(add=(1, _words), drop=(2, _words)))), privileged=(2, _i),
    seLinuxOptions=(3, _m(_SELINUX)), runAsUser=(4, _i), runAsNonRoot=(5, _i), readOnlyRootFilesystem=(6, _i),
    allowPrivilegeEscalation=(7, _i), runAsGroup=(8, _i), procMount=(9, _t), seccompProfile=(11, _m(_SECCOMP)),
)  # fmt: skip
_POD_SECURITY = Table(
    seLinuxOptions=(1, _m(_SELINUX)), runAsUser=(2, _i), runAsNonRoot=(3, _i), supplementalGroups=(4, _Each(_whole)),
    fsGroup=(5, _i), runAsGroup=(6, _i), sysctls=(7, _ms(Table(name=(1, _T), value=(2, _T)))),
    fsGroupChangePolicy=(9, _t), seccompProfile=(10, _m(_SECCOMP)),
)  # fmt: skip

_FIELD = Table(apiVersion=(1, _T), fieldPath=(2, _T))
_RESOURCE_FIELD = Table(containerName=(1, _T), resource=(2, _T), divisor=(3, _quantity))
_KEY = Table(name=((1, 1), _T), key=(2, _T), optional=(3, _i))
_NAMED = Table(name=((1, 1), _T), optional=(2, _i))
_ENV = Table(
    name=(1, _T),
    value=(2, _T),
    valueFrom=(3, _m(Table(
        fieldRef=(1, _m(_FIELD)), resourceFieldRef=(2, _m(_RESOURCE_FIELD)), configMapKeyRef=(3, _m(_KEY)),
        secretKeyRef=(4, _m(_KEY)),
    ))),
)  # fmt: skip
_HTTP = Table(path=(1, _T), port=(2, _port), host=(3, _T), scheme=(4, _T),
              httpHeaders=(5, _ms(Table(name=(1, _T), value=(2, _T)))))  # fmt: skip
_EXEC, _TCP = Table(command=(1, _words)), Table(port=(1, _port), host=(2, _T))
_PROBE = Table(
    exec=((1, 1), _m(_EXEC)), httpGet=((1, 2), _m(_HTTP)), tcpSocket=((1, 3), _m(_TCP)),
    grpc=((1, 4), _m(Table(port=(1, _I), service=(2, _t)))), initialDelaySeconds=(2, _I), timeoutSeconds=(3, _I),
    periodSeconds=(4, _I), successThreshold=(5, _I), failureThreshold=(6, _I), terminationGracePeriodSeconds=(7, _i),
)  # fmt: skip
_HANDLER = Table(
    exec=(1, _m(_EXEC)), httpGet=(2, _m(_HTTP)), tcpSocket=(3, _m(_TCP)), sleep=(4, _m(Table(seconds=(1, _I))))
)
_RESOURCES = Table(limits=(1, _amounts), requests=(2, _amounts), claims=(3, _ms(Table(name=(1, _T), request=(2, _T)))))
_CONTAINER = Table(
    name=(1, _T), image=(2, _T), command=(3, _words), args=(4, _words), workingDir=(5, _T),
    ports=(6, _ms(Table(name=(1, _T), hostPort=(2, _I), containerPort=(3, _I), protocol=(4, _T), hostIP=(5, _T)))),
    env=(7, _ms(_ENV)), resources=(8, _m(_RESOURCES)),
    volumeMounts=(9, _ms(Table(
        name=(1, _T), readOnly=(2, _I), mountPath=(3, _T), subPath=(4, _T), mountPropagation=(5, _t),
        subPathExpr=(6, _T), recursiveReadOnly=(7, _t),
    ))),
    livenessProbe=(10, _m(_PROBE)), readinessProbe=(11, _m(_PROBE)),
    lifecycle=(12, _m(Table(postStart=(1, _m(_HANDLER)), preStop=(2, _m(_HANDLER))))),
    terminationMessagePath=(13, _T), imagePullPolicy=(14, _T), securityContext=(15, _m(_SECURITY)), stdin=(16, _I),
    stdinOnce=(17, _I), tty=(18, _I),
    envFrom=(19, _ms(Table(prefix=(1, _T), configMapRef=(2, _m(_NAMED)), secretRef=(3, _m(_NAMED))))),
    terminationMessagePolicy=(20, _T), volumeDevices=(21, _ms(Table(name=(1, _T), devicePath=(2, _T)))),
    startupProbe=(22, _m(_PROBE)), resizePolicy=(23, _ms(Table(resourceName=(1, _T), restartPolicy=(2, _T)))),
    restartPolicy=(24, _t),
)  # fmt: skip

_ITEM = Table(key=(1, _T), path=(2, _T), mode=(3, _i))
_CONFIG_MAP = Table(name=((1, 1), _T), items=(2, _ms(_ITEM)), defaultMode=(3, _i), optional=(4, _i))
_DOWNWARD_FILE = Table(path=(1, _T), fieldRef=(2, _m(_FIELD)), resourceFieldRef=(3, _m(_RESOURCE_FIELD)), mode=(4, _i))
_PROJECTION = Table(
    secret=(1, _m(_CONFIG_MAP)), downwardAPI=(2, _m(Table(items=(1, _ms(_DOWNWARD_FILE))))),
    configMap=(3, _m(_CONFIG_MAP)),
    serviceAccountToken=(4, _m(Table(audience=(1, _T), expirationSeconds=(2, _i), path=(3, _T)))),
)  # fmt: skip
_CLAIM_SPEC = Table(
    accessModes=(1, _words), resources=(2, _m(_RESOURCES)), volumeName=(3, _T), selector=(4, _m(_LABEL_SELECTOR)),
    storageClassName=(5, _t), volumeMode=(6, _t),
)  # fmt: skip
_VOLUME = Table(
    name=(1, _T),
    hostPath=((2, 1), _m(Table(path=(1, _T), type=(2, _t)))),
    emptyDir=((2, 2), _m(Table(medium=(1, _T), sizeLimit=(2, _quantity)))),
    secret=((2, 6), _m(Table(secretName=(1, _T), items=(2, _ms(_ITEM)), defaultMode=(3, _i), optional=(4, _i)))),
    nfs=((2, 7), _m(Table(server=(1, _T), path=(2, _T), readOnly=(3, _I)))),
    persistentVolumeClaim=((2, 10), _m(Table(claimName=(1, _T), readOnly=(2, _I)))),
    downwardAPI=((2, 16), _m(Table(items=(1, _ms(_DOWNWARD_FILE)), defaultMode=(2, _i)))),
    configMap=((2, 19), _m(_CONFIG_MAP)),
    projected=((2, 26), _m(Table(sources=(1, _ms(_PROJECTION)), defaultMode=(2, _i)))),
    csi=((2, 28), _m(Table(driver=(1, _T), readOnly=(2, _i), fsType=(3, _t), volumeAttributes=(4, _labels)))),
    ephemeral=(
        (2, 29),
        _m(Table(volumeClaimTemplate=(1, _m(Table(metadata=(1, _m(_META)), spec=(2, _m(_CLAIM_SPEC))))))),
    ),
)
_TOLERATION = Table(key=(1, _T), operator=(2, _T), value=(3, _T), effect=(4, _T), tolerationSeconds=(5, _i))
_SPREAD = Table(
    maxSkew=(1, _I), topologyKey=(2, _T), whenUnsatisfiable=(3, _T), labelSelector=(4, _m(_LABEL_SELECTOR)),
    minDomains=(5, _i),
)  # fmt: skip
_POD_SPEC = Table(
    volumes=(1, _ms(_VOLUME)), containers=(2, _ms(_CONTAINER)), restartPolicy=(3, _T),
    terminationGracePeriodSeconds=(4, _i), activeDeadlineSeconds=(5, _i), dnsPolicy=(6, _T), nodeSelector=(7, _labels),
    serviceAccountName=(8, _T), serviceAccount=(9, _T), nodeName=(10, _T), hostNetwork=(11, _I), hostPID=(12, _I),
    hostIPC=(13, _I), securityContext=(14, _m(_POD_SECURITY)), imagePullSecrets=(15, _ms(Table(name=(1, _T)))),
    hostname=(16, _T), subdomain=(17, _T), affinity=(18, _m(_AFFINITY)), schedulerName=(19, _T),
    initContainers=(20, _ms(_CONTAINER)), automountServiceAccountToken=(21, _i), tolerations=(22, _ms(_TOLERATION)),
    hostAliases=(23, _ms(Table(ip=(1, _T), hostnames=(2, _words)))), priorityClassName=(24, _T), priority=(25, _i),
    shareProcessNamespace=(27, _i), readinessGates=(28, _ms(Table(conditionType=(1, _T)))), runtimeClassName=(29, _t),
    enableServiceLinks=(30, _i), preemptionPolicy=(31, _t), overhead=(32, _amounts),
    topologySpreadConstraints=(33, _ms(_SPREAD)), os=(36, _m(Table(name=(1, _T)))), hostUsers=(37, _i),
    schedulingGates=(38, _ms(Table(name=(1, _T)))),
    resourceClaims=(39, _ms(Table(name=(1, _T), resourceClaimName=(3, _t), resourceClaimTemplateName=(4, _t)))),
    resources=(40, _m(_RESOURCES)),
)  # fmt: skip
_STATE = Table(
    waiting=(1, _m(Table(reason=(1, _T), message=(2, _T)))),
    running=(2, _m(Table(startedAt=(1, Always(_time))))),
    terminated=(3, _m(Table(
        exitCode=(1, _i), signal=(2, _I), reason=(3, _T), message=(4, _T), startedAt=(5, Always(_time)),
        finishedAt=(6, Always(_time)), containerID=(7, _T),
    ))),
)  # fmt: skip
_CONTAINER_STATUS = Table(
    name=(1, _T), state=(2, _m(_STATE)), lastState=(3, _m(_STATE)), ready=(4, _i), restartCount=(5, _i), image=(6, _T),
    imageID=(7, _T), containerID=(8, _T), started=(9, _i), allocatedResources=(10, _amounts),
    resources=(11, _m(_RESOURCES)),
    volumeMounts=(12, _ms(Table(name=(1, _T), mountPath=(2, _T), readOnly=(3, _I), recursiveReadOnly=(4, _t)))),
    allocatedResourcesStatus=(14, _ms(Table(
        name=(1, _T), resources=(2, _ms(Table(resourceID=(1, _T), health=(2, _T), message=(6, _t)))),
    ))),
)  # fmt: skip
_POD_CONDITION = Table(
    type=(1, _T), status=(2, _T), lastProbeTime=(3, Always(_time)), lastTransitionTime=(4, Always(_time)),
    reason=(5, _T), message=(6, _T), observedGeneration=(7, _I),
)  # fmt: skip
_POD_STATUS = Table(
    phase=(1, _T), conditions=(2, _ms(_POD_CONDITION)), message=(3, _T), reason=(4, _T), hostIP=(5, _T), podIP=(6, _T),
    startTime=(7, _time), containerStatuses=(8, _ms(_CONTAINER_STATUS)), qosClass=(9, _T),
    initContainerStatuses=(10, _ms(_CONTAINER_STATUS)), nominatedNodeName=(11, _T),
    podIPs=(12, _ms(Table(ip=(1, _T)))),
    ephemeralContainerStatuses=(13, _ms(_CONTAINER_STATUS)), resize=(14, _T),
    resourceClaimStatuses=(15, _ms(Table(name=(1, _T), resourceClaimName=(2, _t)))),
    hostIPs=(16, _ms(Table(ip=(1, _T)))),
    observedGeneration=(17, _I),
)  # fmt: skip
_NODE_SPEC = Table(
    podCIDR=(1, _T), externalID=(2, _T), providerID=(3, _T), unschedulable=(4, _I),
    taints=(5, _ms(Table(key=(1, _T), value=(2, _T), effect=(3, _T), timeAdded=(4, _time)))), podCIDRs=(7, _words),
)  # fmt: skip
_NODE_CONDITION = Table(
    type=(1, _T), status=(2, _T), lastHeartbeatTime=(3, Always(_time)), lastTransitionTime=(4, Always(_time)),
    reason=(5, _T), message=(6, _T),
)  # fmt: skip
_INFO = Table(
    machineID=(1, _T), systemUUID=(2, _T), bootID=(3, _T), kernelVersion=(4, _T), osImage=(5, _T),
    containerRuntimeVersion=(6, _T), kubeletVersion=(7, _T), kubeProxyVersion=(8, _T), operatingSystem=(9, _T),
    architecture=(10, _T), swap=(11, _m(Table(capacity=(1, _i)))),
)  # fmt: skip
_HANDLER_FEATURES = Table(recursiveReadOnlyMounts=(1, _i), userNamespaces=(2, _i))
_NODE_STATUS = Table(
    capacity=(1, _amounts), allocatable=(2, _amounts), phase=(3, _T), conditions=(4, _ms(_NODE_CONDITION)),
    addresses=(5, _ms(Table(type=(1, _T), address=(2, _T)))),
    daemonEndpoints=(6, _m(Table(kubeletEndpoint=(1, _m(Table(Port=(1, _I))))))), nodeInfo=(7, _m(_INFO)),
    images=(8, _ms(Table(names=(1, _words), sizeBytes=(2, _I)))), volumesInUse=(9, _words),
    volumesAttached=(10, _ms(Table(name=(1, _T), devicePath=(2, _T)))),
    runtimeHandlers=(12, _ms(Table(name=(1, _T), features=(2, _m(_HANDLER_FEATURES))))),
    features=(13, _m(Table(supplementalGroupsPolicy=(1, _i), containerUlimits=(2, _i)))), declaredFeatures=(14, _words),
)  # fmt: skip
_OBJECTS = {
    "Node": Table(metadata=(1, _m(_META)), spec=(2, _m(_NODE_SPEC)), status=(3, _m(_NODE_STATUS))),
    "Pod": Table(metadata=(1, _m(_META)), spec=(2, _m(_POD_SPEC)), status=(3, _m(_POD_STATUS))),
}


def encode_list(kind: str, metadata: Mapping[str, Any], items: Iterable[Mapping[str, Any]]) -> bytes:
    """A list of ``kind`` as the body of an answer.

    Args:
        kind: of :data:`KINDS`.
        metadata: of the list.
        items: objects as JSON has them.
    """
    objects = [encode_object(kind, item) for item in items]
    return wrap(kind, metadata, objects)


def encode_object(kind: str, item: Mapping[str, Any]) -> bytes:
    """One item of a list."""
    return _OBJECTS[kind].encode({key: value for key, value in item.items() if key not in ("kind", "apiVersion")})


def wrap(kind: str, metadata: Mapping[str, Any], objects: Iterable[bytes]) -> bytes:
    """A list of objects that are encoded already."""
    raw = _chunk(1, _LIST_META.encode(metadata)) + b"".join(_chunk(2, item) for item in objects)
    about = _chunk(1, b"v1") + _chunk(2, f"{kind}List".encode())
    return MAGIC + _chunk(1, about) + _chunk(2, raw) + _chunk(3, b"") + _chunk(4, b"")
