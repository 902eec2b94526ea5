"""The wire format: list bodies to trimmed objects."""

from typing import Any, Generic, TypeVar

import msgspec

from rules.facts.objects import Event, Node, OtherObject, Pod
from service.clusters.collect import Page, PageInvalid
from service.clusters.kinds import KindSpec

T = TypeVar("T")


class _ListMeta(msgspec.Struct, rename={"continue_": "continue"}):
    continue_: str = ""


class _List(msgspec.Struct, Generic[T]):
    kind: str
    items: list[T] | None = None
    metadata: _ListMeta | None = None


_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "Node": msgspec.json.Decoder(_List[Node]),
    "Pod": msgspec.json.Decoder(_List[Pod]),
    "Event": msgspec.json.Decoder(_List[Event]),
}
_OTHER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_List[OtherObject])


def decode_json(spec: KindSpec, body: bytes) -> Page:
    """One page as JSON. Raises PageInvalid."""
    try:
        page = _DECODERS.get(spec.kind, _OTHER).decode(body)
    except msgspec.DecodeError as error:
        raise PageInvalid(str(error)) from error
    if page.kind != f"{spec.kind}List":
        raise PageInvalid(f"it is of kind {page.kind}, not {spec.kind}List")
    return Page(page.items or (), page.metadata.continue_ if page.metadata else "")
