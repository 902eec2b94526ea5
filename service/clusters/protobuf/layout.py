"""Where things lie in a list of pods, found without decoding it.

API servers write protobuf with generated encoders (gogo protobuf), which put every field in the order of its number and
write the empty ones too. So nearly all pods of a large cluster have the same layout, and what is wanted of them can be
cut out by its place: the bulk of a page (managed fields, probes, addresses) is never copied. Every function here gives
None for bytes that are laid out in any other way; these are left to protobuf's own decoder, which takes any order.

Of fields whose numbers are higher than those that are read, order alone says that nothing more comes.
"""

import re
from contextlib import suppress

from google.protobuf.message import DecodeError

from service.clusters.protobuf import kubernetes_pb2 as pb
from service.clusters.wire import PageInvalid

_NOT_ENCODED = b"\x1a\x00\x22\x00"
"""contentEncoding and contentType, both empty: how every ``runtime.Unknown`` of an API server ends."""

_TIME = rb"\x08[\x80-\xff]{4}[\x00-\x7f]\x10\x00"
"""A time from 1978 on, in whole seconds: a number of five bytes."""

_HEAD = re.compile(
    rb"\x0a([\x01-\x7f])([a-z0-9.-]+)"  # name
    rb"(?:\x12([\x00-\x7f])([a-z0-9.-]*))?"  # generateName
    rb"\x1a([\x01-\x7f])([a-z0-9-]+)"  # namespace
    rb"(?:\x22\x00)?"  # selfLink
    rb"\x2a\x24([0-9a-f-]{36})"  # uid
    rb"\x32([\x01-\x7f])([0-9]+)"  # resourceVersion
    rb"(?:\x38[\x00-\x7f])?"  # generation
    rb"\x42\x08(%b)" % _TIME,  # creationTimestamp
)
_MANAGED = b"\x8a\x01"
"""Begins managedFields, the last that metadata has."""

_SINCE = b"\x12\x0c\x12\x0a\x0a\x08"
"""The state of a running container up to its time of eight bytes; the name comes before it."""
_NO_LAST = b"\x1a\x00"
_CONTAINERD, _CRIO = b"\x42\x4dcontainerd", b"\x42\x48cri-o"
"""A containerID up to its ``://``; 64 digits follow."""


def _true(name: bytes, time: bytes) -> bytes:
    """A condition that is true, without probe, reason and message; since Kubernetes 1.33 it may have a generation."""
    length = len(name) + 24
    begin = b"\x0a" + re.escape(bytes((len(name),))) + name + rb"\x12\x04True\x1a\x00\x22\x08" + time
    end = rb"\x2a\x00\x32\x00"
    lengths = [re.escape(bytes((number,))) for number in (length, length + 2)]
    return rb"\x12(?:%b%b%b|%b%b%b\x38[\x00-\x7f])" % (lengths[0], begin, end, lengths[1], begin, end)


_UNREAD = b"(?:%b)*" % b"|".join(
    _true(name, _TIME) for name in (b"PodReadyToStartContainers", b"Initialized", b"ContainersReady", b"PodScheduled")
)
_RUNNING = re.compile(
    rb"\x0a\x07Running"
    + _UNREAD
    + _true(b"Ready", b"(%b)" % _TIME)
    + _UNREAD
    + rb"\x1a\x00\x22\x00"  # message, reason
    + rb"\x2a([\x01-\x7f])([0-9a-f.:]+)"  # hostIP
    + rb"\x32([\x01-\x7f])([0-9a-f.:]+)"  # podIP
    + rb"\x3a\x08(%b)" % _TIME  # startTime
)
_REST = re.compile(
    rb"\x4a(?:\x09Burstable|\x0aBestEffort|\x0aGuaranteed)"  # qosClass
    rb"\x5a\x00"  # nominatedNodeName
    rb"(?:\x62[\x01-\x7f]\x0a[\x01-\x7f][0-9a-f.:]+)*"  # podIPs
    rb"(?:\x72\x00)?"  # resize
    rb"(?:[\x82\x88]\x01|\Z)"  # hostIPs, observedGeneration
)


def unwrapped(body: bytes, wanted: str) -> tuple[bytes, int, int]:
    """The list in a ``runtime.Unknown``: bytes, its begin and its end in them.

    Raises:
        PageInvalid: it is something else.
    """
    begin = 6 + body[5] if len(body) > 6 and body[4] == 0x0A and body[5] < 128 else len(body)
    if body[begin : begin + 1] == b"\x12" and body.endswith(_NOT_ENCODED):
        length, shift, at = 0, 0, begin + 1
        while body[at] > 127:
            length, shift, at = length | (body[at] & 127) << shift, shift + 7, at + 1
        length |= body[at] << shift
        if at + 1 + length + len(_NOT_ENCODED) == len(body):
            with suppress(DecodeError):
                if pb.TypeMeta.FromString(body[6:begin]).kind == wanted:
                    return body, at + 1, at + 1 + length
    try:
        outer = pb.Unknown.FromString(body[4:])
    except DecodeError as error:
        raise PageInvalid(f"expected runtime.Unknown after the first four bytes; {error}") from error
    found = outer.typeMeta.kind
    if found != wanted:
        said = pb.Status.FromString(outer.raw).message if found == "Status" else ""
        raise PageInvalid(f"kind: expected {wanted}, found {found} {said}".rstrip())
    if outer.contentEncoding:
        raise PageInvalid(f"contentEncoding: expected none, found {outer.contentEncoding}")
    return outer.raw, 0, len(outer.raw)


def items(body: bytes, begin: int, end: int) -> tuple[bytes, list[tuple[int, int]]] | None:
    """Metadata of the list that lies at ``begin`` to ``end``, and begin and end of each of its items."""
    try:
        if begin >= end or body[begin] != 0x0A or body[begin + 1] > 127:
            return None
        at = begin + 2 + body[begin + 1]
        meta = body[begin + 2 : at]
        places = []
        while at < end:
            if body[at] != 0x12:
                return None
            length, high = body[at + 1], body[at + 2]
            at += 2
            if length > 127:
                length += (high << 7) - 128
                at += 1
                if high > 127:
                    length += (body[at] << 14) - (1 << 14)
                    at += 1
                    if body[at - 1] > 127:
                        return None
            places.append((at, at + length))
            at += length
    except IndexError:
        return None
    return (meta, places) if at == end else None


def pod(body: bytes, begin: int, end: int) -> tuple[int, int, int, int, int] | None:
    """Where a pod's metadata begins and ends, its spec begins and ends, and its status begins; that ends with it."""
    at, found = begin, []
    try:
        for tag in b"\x0a\x12\x1a":
            if body[at] != tag:
                return None
            length, high = body[at + 1], body[at + 2]
            at += 2
            if length > 127:
                length += (high << 7) - 128
                at += 1
                if high > 127:
                    length += (body[at] << 14) - (1 << 14)
                    at += 1
                    if body[at - 1] > 127:
                        return None
            found.append(at)
            at += length
            found.append(at)
    except IndexError:
        return None
    return (found[0], found[1], found[2], found[3], found[4]) if at == end else None


def metadata_head(body: bytes, begin: int, end: int) -> tuple[bytes, bytes, bytes, bytes, bytes, int, int] | None:
    """What no two pods have in common, and where to find what they may: name, namespace, uid, resourceVersion,
    creationTimestamp (as bytes of a Time), begin and end of the rest up to the managed fields.

    That rest is to be decoded as metadata. If the bytes that begin managed fields were found where they mean something
    else, the cut goes through a field, and what is before it cannot be decoded.
    """
    head = _HEAD.match(body, begin, end)
    if head is None:
        return None
    long, name, prefix_long, prefix, space_long, space, uid, version_long, version, created = head.groups()
    if (
        long[0] != len(name)
        or space_long[0] != len(space)
        or version_long[0] != len(version)
        or (prefix is not None and prefix_long[0] != len(prefix))
    ):
        return None
    rest = head.end()
    managed = body.find(_MANAGED, rest, end)
    return name, space, uid, version, created, rest, managed if managed >= 0 else end


def running(body: bytes, begin: int, end: int) -> tuple[bytes, bytes, list[bytes]] | None:
    """Of the status of a pod that runs, is ready and has nothing to say: since when it is ready, when it started, and
    the statuses of its containers. None for all others, also for those with init containers."""
    found = _RUNNING.match(body, begin, end)
    if found is None:
        return None
    ready, ready_too, host_long, host, own_long, own, started = found.groups()
    if host_long[0] != len(host) or own_long[0] != len(own):
        return None
    at, containers = found.end(), []
    while at + 2 < end and body[at] == 0x42:
        length, high = body[at + 1], body[at + 2]
        at += 2
        if length > 127:
            length += (high << 7) - 128
            at += 1
            if high > 127:
                return None
        containers.append(body[at : at + length])
        at += length
    if _REST.match(body, at, end) is None:
        return None
    return ready or ready_too, started, containers


def running_container(raw: bytes) -> tuple[bytes, bytes] | None:
    """The status of a container that runs and never ended before, without that state and its ID; and since when it
    runs. Nothing that comes before the ID then is text that anybody could write."""
    if len(raw) < 3:
        return None
    state = 2 + raw[1]
    time = state + 6
    if raw[state:time] != _SINCE or raw[time + 8 : time + 10] != _NO_LAST:
        return None
    scheme = raw.find(b"://", time)
    begin = scheme - len(_CONTAINERD)
    if raw[begin:scheme] != _CONTAINERD:
        begin = scheme - len(_CRIO)
        if raw[begin:scheme] != _CRIO:
            return None
    if begin < time + 10:
        return None
    return raw[:state] + raw[time + 8 : begin] + raw[scheme + 67 :], raw[time : time + 8]
