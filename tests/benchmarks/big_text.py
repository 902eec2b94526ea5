"""Objects as text with holes: a shape is built once as a dictionary, and every object is a substitution into it.

What changes from object to object is arithmetic on its number, so that two runs and two machines see the same cluster.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

Object = dict[str, Any]

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
"""The moment at which the cluster is looked at."""

_ATOMIC = frozenset({"affinity", "containerStatuses", "hostIPs", "images", "securityContext", "taints", "tolerations"})
_ALPHANUMERIC = "bcdfghjklmnpqrstvwxz2456789"  # as k8s.io/apimachinery/pkg/util/rand has it


def shape(item: Mapping[str, Any]) -> str:
    """The text of an object whose strings may hold ``%(name)s``; fill it with ``text % values``."""
    return json.dumps(item, separators=(",", ":"))


def uid(number: int, family: int) -> str:
    """An identifier that no other object of the cluster has."""
    mixed = (number * 2654435761 + family * 40503) & 0xFFFFFFFF
    return f"{mixed:08x}-{family:04x}-4{number & 0xFFF:03x}-8{(mixed >> 7) & 0xFFF:03x}-{number:012x}"


def digest(number: int) -> str:
    """64 hexadecimal digits, different for every number."""
    return f"{(number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC8341082276BF3A27251F86C6A11D0C18E95 % (1 << 256):064x}"


def image_digest(image: str) -> str:
    """The digest of an image, the same on every node."""
    return hashlib.sha256(image.encode()).hexdigest()


def suffix(number: int, length: int) -> str:
    """The random-looking end of a generated name; distinct for numbers below 27 ** length."""
    number = (number * 7654321 + 12345) % (27**length)
    found = ""
    for _ in range(length):
        number, rest = divmod(number, 27)
        found += _ALPHANUMERIC[rest]
    return found


def ago(seconds: int) -> str:
    """A time before :data:`NOW`, as the API server writes it."""
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def managed(manager: str, fields: Mapping[str, Any], *, status: bool = False) -> Object:
    """An entry of ``managedFields`` for the fields that a manager has set."""
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "%(created)s",
        "fieldsType": "FieldsV1",
        "fieldsV1": _tree(fields),
        **({"subresource": "status"} if status else {}),
    }


def _tree(fields: Mapping[str, Any]) -> Object:
    found: Object = {}
    for key, value in fields.items():
        if key in _ATOMIC:
            found[f"f:{key}"] = {}
        elif isinstance(value, Mapping):
            found[f"f:{key}"] = {".": {}, **_tree(value)}
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            found[f"f:{key}"] = {".": {}, **dict(_element(item) for item in value)}
        else:
            found[f"f:{key}"] = {}
    return found


def _element(item: Mapping[str, Any]) -> tuple[str, Object]:
    key = next((key for key in ("containerPort", "mountPath", "type", "name", "uid", "ip") if key in item), "name")
    return f"k:{json.dumps({key: item.get(key, '')}, separators=(',', ':'))}", {".": {}, **_tree(item)}
