"""Reading a file of kubectl output, document by document."""

import codecs
import re
from collections.abc import Callable
from typing import Any

import msgspec

from rules.errors import SnapshotInvalid
from rules.facts.completeness import note_bare
from rules.facts.decode_errors import AT_BYTE, clean, join, path_of, problem_of
from rules.facts.kinds import HOME_GROUPS, kind_key
from rules.facts.objects import Event, Node, ObjectMeta, OtherObject, Pod
from rules.facts.objectset import TAKE_SNAPSHOT, ObjectCollector, Objects

HINT = f"write the file with: {TAKE_SNAPSHOT}"


class Limits(msgspec.Struct, frozen=True):
    """What a snapshot may cost. YAML takes some fifty times the time and memory of JSON, hence its own limit.

    Attributes:
        max_bytes: size of a file.
        max_yaml_bytes: size of the YAML in it.
        max_nesting: levels of lists and mappings.
    """

    max_bytes: int = 2 * 1024**3
    max_yaml_bytes: int = 64 * 1024**2
    max_nesting: int = 200


DEFAULT_LIMITS = Limits()


class _Header(msgspec.Struct):
    kind: str | None = None
    apiVersion: str | None = None  # noqa: N815 - as Kubernetes spells it
    message: Any = None


class _Envelope(_Header):
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


class _LooseObject(msgspec.Struct):
    """An object whose spec, status or data is no mapping; such a field is left out."""

    metadata: ObjectMeta
    spec: Any = None
    status: Any = None
    data: Any = None


_TYPES: dict[str, type[Node | Pod | Event]] = {"Node": Node, "Pod": Pod, "Event": Event}
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {
    target: msgspec.json.Decoder(target) for target in (Node, Pod, Event, OtherObject, _LooseObject)
}
_ENVELOPE = msgspec.json.Decoder(_Envelope)
_HEADER = msgspec.json.Decoder(_Header)
_NOISE = (
    rb"(?:[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ [^\n]*"  # klog, as client libraries write it
    rb"|(?:Warning|WARNING|W): [^\n]*|Flag --[^\n]*|Defaulted container [^\n]*|No resources found[^\n]*"
    rb"|(?:error|Error from server[^:\n]*|Unable to connect to the server|The connection to the server)[: ][^\n]*)"
)
_NOISE_LINES = re.compile(rb"^" + _NOISE + rb"$", re.MULTILINE)
_BETWEEN = re.compile(rb"(?:\s+|(?:---[ \t]*(?:#[^\n]*)?|\.\.\.[ \t]*|#[^\n]*|" + _NOISE + rb")(?:\n|\Z))+")
_JSON_START = re.compile(rb"^\{", re.MULTILINE)
_ITEM_HEADER = re.compile(rb'\s*\{\s*"apiVersion"\s*:\s*"([^"\\]*)"\s*,\s*"kind"\s*:\s*"([^"\\]*)"')

_NO_OBJECTS: dict[str, str] = {
    "Status": "this is an error answer of the API server ({message}), not a list of objects",
    "Table": "this is a table for people, as some tools ask the API server for it, not a list of objects",
    "Config": "this is a kubeconfig, not a list of objects",
}
_MAGIC: dict[bytes, str] = {
    b"\x1f\x8b": "this is a gzip file; unpack it first",
    b"PK\x03\x04": "this is a zip file; unpack it first",
    b"k8s\x00": "this is Kubernetes' protobuf format; ask for JSON",
}


class _Payload(msgspec.Struct, frozen=True):
    """One object before its type is chosen. ``decode`` raises msgspec's errors."""

    decode: Callable[[Any], Any]
    kind: str | None
    api_version: str | None


class SnapshotReader:
    """One run over one file. :func:`~rules.facts.decode.decode_objects` says what is read.

    Args:
        data: the file's bytes.
        source: its name.
        limits: what it may cost.
    """

    def __init__(self, data: bytes, source: str, limits: Limits) -> None:
        self._source = source
        self._limits = limits
        self._found = ObjectCollector()
        self._documents = 0
        self._lists = 0
        self._bare: list[str] = []
        if len(data) > limits.max_bytes:
            raise self._invalid(
                None, f"at most {limits.max_bytes} bytes are read, these are {len(data)}; split the file"
            )
        self._data = self._as_utf8(data)

    def read(self) -> Objects:
        """All documents in order."""
        position = self._next(0)
        while position < len(self._data):
            read = self._read_json if self._data[position : position + 1] == b"{" else self._read_yaml
            position = self._next(read(position))
        if not self._documents:
            raise self._nothing()
        note_bare(self._found, self._bare, beside_lists=self._lists > 0)
        return self._found.finish()

    def _next(self, position: int) -> int:
        between = _BETWEEN.match(self._data, position)
        return between.end() if between else position

    def _as_utf8(self, data: bytes) -> bytes:
        for magic, problem in _MAGIC.items():
            if data.startswith(magic):
                raise self._invalid(None, f"{problem}; {HINT}")
        if data.startswith(codecs.BOM_UTF8):
            return data[len(codecs.BOM_UTF8) :]
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = "utf-16"
        elif data[:4:2] == b"\0\0":
            encoding = "utf-16-be"
        elif data[1:4:2] == b"\0\0":
            encoding = "utf-16-le"
        else:
            return data
        try:
            return data.decode(encoding).encode()
        except UnicodeError as error:
            problem = "the text looks like UTF-16 but is not; save it as UTF-8 (PowerShell: | Out-File -Encoding utf8)"
            raise self._invalid(None, problem) from error

    # JSON

    def _read_json(self, start: int) -> int:
        """Read the document that begins at ``start``; answer where it ends."""
        end = len(self._data)
        try:
            try:
                envelope = self._envelope(start, end)
            except msgspec.DecodeError as error:
                trailing = AT_BYTE.search(str(error)) if "trailing characters" in str(error) else None
                if trailing is None:
                    raise
                # The byte that is reported is the one after the first that is too much.
                end = start + int(trailing[1]) - 1
                envelope = self._envelope(start, end)
        except (msgspec.MsgspecError, UnicodeError) as error:
            if self._drop_noise(start):
                return start
            raise self._json_invalid(error, start) from error
        except RecursionError as error:
            raise self._too_deep(self._document("")) from error
        document = memoryview(self._data)[start:end]
        self._documents += 1
        self._take_json(envelope, document, self._document(""))
        return end

    def _envelope(self, start: int, end: int) -> _Envelope:
        document = memoryview(self._data)[start:end]
        try:
            return _ENVELOPE.decode(document)
        except msgspec.ValidationError:
            # A custom object may have a field called items that is no list.
            header = _HEADER.decode(document)
            if (header.kind or "").endswith("List"):
                raise
            return _Envelope(header.kind, header.apiVersion, header.message)

    def _take_json(self, envelope: _Envelope, document: Any, path: str) -> None:
        items = envelope.items
        if not self._is_list(envelope.kind, items is not msgspec.UNSET, path, envelope.message):
            self._take(_Payload(_json_decode(document), envelope.kind, envelope.apiVersion), path, listed=False)
            return
        kind, api_version = self._list_of(envelope.kind, envelope.apiVersion)
        for index, raw in enumerate(items or ()):
            self._take_json_item(raw, kind, api_version, join(path, f"items[{index}]"))

    def _take_json_item(self, raw: Any, kind: str | None, api_version: str | None, path: str) -> None:
        header = _ITEM_HEADER.match(memoryview(raw))
        try:
            if header is not None:
                own_version, own_kind = header[1].decode(), header[2].decode()
            else:
                own = _HEADER.decode(raw)
                own_version, own_kind = own.apiVersion or "", own.kind or ""
            if own_kind.endswith("List"):
                envelope = _ENVELOPE.decode(raw)
                if envelope.items is not msgspec.UNSET:
                    self._take_json(envelope, raw, path)
                    return
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise self._wrong(error, path) from error
        except RecursionError as error:
            raise self._too_deep(path) from error
        self._take(_Payload(_json_decode(raw), own_kind or kind, own_version or api_version), path)

    def _json_invalid(self, error: Exception, start: int) -> SnapshotInvalid:
        message = str(error)
        if isinstance(error, msgspec.ValidationError):
            return self._wrong(error, self._document(""))
        at = AT_BYTE.search(message)
        if at is not None:
            offset = min(start + int(at[1]), len(self._data))
        else:
            offset = len(self._data)
            try:
                self._data[start:].decode()
            except UnicodeDecodeError as undecodable:
                offset = start + undecodable.start
                message = "this is not UTF-8"
        if "truncated" in message:
            message = "the JSON ends in the middle of an object; the file is not complete"
        return self._invalid(self._line_column(offset), f"expected JSON as kubectl prints it; {clean(message)}; {HINT}")

    def _drop_noise(self, start: int) -> bool:
        """Blank out lines of kubectl that fell into the middle of its output; False when there are none."""
        cleaned, found = _NOISE_LINES.subn(lambda line: b" " * len(line[0]), self._data[start:])
        if found:
            self._data = self._data[:start] + cleaned
        return found > 0

    # YAML

    def _read_yaml(self, start: int) -> int:
        """Read the documents from ``start`` up to the next one in JSON; answer where they end."""
        from rules.facts import yaml_tree

        following = _JSON_START.search(self._data, start)
        end = following.start() if following else len(self._data)
        if end - start > self._limits.max_yaml_bytes:
            most = self._limits.max_yaml_bytes
            raise self._invalid(None, f"at most {most} bytes of YAML are read, these are {end - start}; use -o json")
        text = _NOISE_LINES.sub(b"", self._data[start:end])
        first_line = self._data.count(b"\n", 0, start)
        try:
            for tree, line in yaml_tree.documents(text, self._limits.max_nesting):
                if tree is None or tree == "":
                    continue
                self._documents += 1
                if not isinstance(tree, dict):
                    raise self._not_a_mapping(tree, first_line + line)
                self._take_yaml(tree, None, None, self._document(""))
        except yaml_tree.YamlInvalid as error:
            position = f"line {first_line + error.line}, column {error.column}" if error.line else None
            problem = f"expected YAML as kubectl prints it; {clean(str(error))}; {HINT}"
            raise self._invalid(position, problem) from error
        return end

    def _take_yaml(self, tree: Any, kind: str | None, api_version: str | None, path: str, depth: int = 0) -> None:
        from rules.facts import yaml_tree

        if not isinstance(tree, dict):
            raise self._invalid(path, "expected an object")
        for field in ("kind", "apiVersion"):
            if field in tree and not isinstance(tree[field], str):
                raise self._invalid(join(path, field), "expected a word")
        own_kind, own_version = (str(tree.get(field) or "") for field in ("kind", "apiVersion"))
        is_list = own_kind.endswith("List") and "items" in tree
        if depth and not is_list:
            payload = _Payload(lambda to: yaml_tree.convert(tree, to), own_kind or kind, own_version or api_version)
            self._take(payload, path)
            return
        if not self._is_list(own_kind or None, is_list, path, tree.get("message")):
            payload = _Payload(lambda to: yaml_tree.convert(tree, to), own_kind, own_version)
            self._take(payload, path, listed=False)
            return
        items = yaml_tree.resolve(tree["items"]) if isinstance(tree["items"], str) else tree["items"]
        if not isinstance(items, list | None):
            raise self._invalid(join(path, "items"), "expected a list of objects")
        of_kind, of_version = self._list_of(own_kind, own_version)
        for index, item in enumerate(items or ()):
            self._take_yaml(item, of_kind, of_version, join(path, f"items[{index}]"), depth + 1)

    def _not_a_mapping(self, tree: object, line: int) -> SnapshotInvalid:
        if isinstance(tree, list):
            problem = "expected an object or a List, found a bare list; keep kubectl's whole answer"
        elif isinstance(tree, str) and re.match(r"(NAME|NAMESPACE|LAST SEEN)\s", tree):
            problem = "this is kubectl's table for people; add -o json"
        else:
            problem = "expected Kubernetes objects"
        return self._invalid(f"line {line}", f"{problem}; {HINT}")

    # both

    def _is_list(self, kind: str | None, has_items: bool, path: str, message: object) -> bool:
        if not kind:
            raise self._invalid(join(path, "kind"), f"expected the kind of a Kubernetes object or a List; {HINT}")
        if kind in _NO_OBJECTS:
            problem = _NO_OBJECTS[kind].format(message=str(message or "without a message")[:300])
            raise self._invalid(path or None, f"{problem}; {HINT}")
        if not has_items and kind.endswith("List") and kind.removesuffix("List") in ("", *HOME_GROUPS):
            raise self._invalid(join(path, "items"), f"expected the items of the {kind}; {HINT}")
        return kind.endswith("List") and has_items

    def _list_of(self, kind: str | None, api_version: str | None) -> tuple[str | None, str | None]:
        """Kind and apiVersion of the items of a typed list, noted as read; nothing for a plain List."""
        self._lists += 1
        of_kind = (kind or "").removesuffix("List")
        if not of_kind:
            return None, None
        self._found.saw(kind_key(api_version or "", of_kind))
        return of_kind, api_version

    def _take(self, payload: _Payload, path: str, *, listed: bool = True) -> None:
        if not payload.kind:
            raise self._invalid(join(path, "kind"), f"expected the kind of a Kubernetes object; {HINT}")
        key = kind_key(payload.api_version or "", payload.kind)
        try:
            target = _TYPES.get(key)
            item = payload.decode(target) if target is not None else self._other(payload, path)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise self._wrong(error, path) from error
        except RecursionError as error:
            raise self._too_deep(path) from error
        if not item.metadata.name:
            raise self._invalid(join(path, "metadata.name"), "expected the name of the object")
        self._found.add(key, item)
        if listed:
            self._found.saw(key)
        else:
            self._bare.append(key)

    def _other(self, payload: _Payload, path: str) -> OtherObject:
        try:
            item: OtherObject = payload.decode(OtherObject)
        except msgspec.ValidationError:
            loose: _LooseObject = payload.decode(_LooseObject)
            spec, status, data = (
                value if isinstance(value, dict) else None for value in (loose.spec, loose.status, loose.data)
            )
            item = OtherObject(metadata=loose.metadata, spec=spec, status=status, data=data)
        if any(_deeper(value, self._limits.max_nesting) for value in (item.spec, item.status, item.data)):
            raise self._too_deep(path)
        return msgspec.structs.replace(
            item,
            kind=payload.kind or "",
            apiVersion=payload.api_version or "",
            data=None if payload.kind == "Secret" else item.data,
        )

    # errors

    def _nothing(self) -> SnapshotInvalid:
        noise = _NOISE_LINES.search(self._data)
        if noise is not None:
            said = noise[0].decode(errors="replace").strip()[:300]
            return self._invalid(None, f"the file holds only what kubectl complained about ({said}); {HINT}")
        return self._invalid(None, f"the file holds no Kubernetes object; {HINT}")

    def _document(self, path: str) -> str:
        """``path`` in the document that is being read; only from the second on its number is said."""
        return join(f"document {self._documents}", path) if self._documents > 1 else path

    def _wrong(self, error: Exception, path: str) -> SnapshotInvalid:
        position = join(path, path_of(str(error)) or "")
        return self._invalid(position or None, f"{problem_of(error)}; {HINT}")

    def _too_deep(self, path: str) -> SnapshotInvalid:
        return self._invalid(path or None, f"expected at most {self._limits.max_nesting} levels of nesting")

    def _line_column(self, offset: int) -> str:
        line_start = self._data.rfind(b"\n", 0, offset) + 1
        column = len(self._data[line_start:offset].decode(errors="replace")) + 1
        line = self._data.count(b"\n", 0, offset) + 1
        return f"line {line}, column {column}"

    def _invalid(self, position: str | None, expected: str) -> SnapshotInvalid:
        return SnapshotInvalid(self._source, position or None, expected)


def _json_decode(document: Any) -> Callable[[Any], Any]:
    return lambda target: _DECODERS[target].decode(document)


def _deeper(value: object, levels: int) -> bool:
    """True when lists and mappings are nested in ``value`` more than ``levels`` deep."""
    pending: list[tuple[object, int]] = [(value, 1)]
    while pending:
        current, depth = pending.pop()
        inside = current.values() if isinstance(current, dict) else current if isinstance(current, list) else ()
        if inside and depth > levels:
            return True
        pending.extend((item, depth + 1) for item in inside if isinstance(item, dict | list))
    return False
