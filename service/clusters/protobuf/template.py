"""What pods of one template differ in, and how to find it in the bytes of their specs."""

from typing import Any

from google.protobuf.message import DecodeError

from service.clusters.protobuf import kubernetes_pb2 as pb

_TOKEN_MOUNT = b"\x10\x01\x1a\x2d/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_NAME = b"\x0a\x15kube-api-access-"
NO_TOKEN = b"kube-api-access-....."
_RANDOM = 5
"""The volume of the service account's token is ``kube-api-access-`` and five random characters (kubernetes
plugin/pkg/admission/serviceaccount): it would make equal containers of one template different."""


def neutral(raw: bytes) -> bytes:
    """A container without the random part of its token volume's name; that mount is not kept."""
    at = raw.find(_TOKEN_MOUNT) - _RANDOM
    if at < 0 or not raw.endswith(TOKEN_NAME, 0, at):
        return raw
    return b"%b-----%b" % (raw[:at], raw[at + _RANDOM :])


def holds_token(raw: bytes) -> bool:
    """Whether a volume is that of the service account's token: projected (field 26), which is not kept."""
    return raw.startswith(TOKEN_NAME) and b"\xd2\x01" in raw[25:28]


def pin(node: str) -> bytes:
    """The affinity that the DaemonSet controller gives a pod for ``node``, as the API server writes it."""
    raw = short_chunk(b"\x0a\x0dmetadata.name\x12\x02In\x1a", node.encode())  # key, operator, values
    for field in (
        b"\x12",  # matchFields of a term
        b"\x0a",  # nodeSelectorTerms
        b"\x0a",  # requiredDuringSchedulingIgnoredDuringExecution
        b"\x0a",  # nodeAffinity
    ):
        raw = short_chunk(field, raw)
    return raw


def short_chunk(tag: bytes, body: bytes) -> bytes:
    """A field with its length; nothing where there is nothing, or where one byte cannot say its length: such names
    are rare, and left to the decoder."""
    return tag + bytes((len(body),)) + body if 0 < len(body) < 128 else b""


def placed_nowhere(raw: bytes) -> bool:
    """Whether a spec still is one without the bytes that named its node: it was the field that was taken away."""
    try:
        return not pb.PodPlace.FromString(raw).nodeName
    except DecodeError:
        return False


def volume(raw: bytes) -> dict[str, Any]:
    """A volume with what holds storage."""
    item = pb.Volume.FromString(raw)
    source, read = item.volumeSource, {"name": item.name}
    found: dict[str, Any] = dict(read)
    if source.HasField("hostPath"):
        found["hostPath"] = {"path": source.hostPath.path}
    if source.HasField("emptyDir"):
        empty = source.emptyDir
        found["emptyDir"] = {"medium": empty.medium, "sizeLimit": empty.sizeLimit.string}
    if source.HasField("persistentVolumeClaim"):
        found["persistentVolumeClaim"] = {"claimName": source.persistentVolumeClaim.claimName}
    if source.HasField("ephemeral"):
        found["ephemeral"] = {}
    return found


def term(item: Any) -> dict[str, Any]:
    """A term of a node selector."""
    return {
        name: [
            {"key": each.key, "operator": each.operator, "values": list(each.values)} for each in getattr(item, name)
        ]
        for name in ("matchExpressions", "matchFields")
    }
