"""Files of a snapshot: plain, packed, in folders and in archives.

Nothing is ever written, and nothing is read that lies outside of what was given. A folder is read with all folders in
it; hidden files and links that lead out of it are left out. In folders and archives only ``.json``, ``.yaml`` and
``.yml`` (each also as ``.gz``) and archives are read; the rest is counted. Every limit is checked while unpacking, so
that an archive that unpacks to much more than it weighs costs no more than the limit.
"""

import gzip
import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, Protocol

import msgspec

from rules.errors import SnapshotInvalid
from rules.facts.objectset import TAKE_SNAPSHOT

SUFFIXES = (".json", ".yaml", ".yml")
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")

_CHUNK = 1024**2
_GZIP, _ZIP, _TAR = b"\x1f\x8b", b"PK\x03\x04", b"ustar"
_TAR_AT = 257
_DAMAGED = (gzip.BadGzipFile, zlib.error, EOFError, struct.error, ValueError, OverflowError)
"""What the standard library raises on packed data that is cut or altered."""


class PackingLimits(msgspec.Struct, frozen=True):
    """What unpacking may cost.

    Attributes:
        max_bytes: of everything that is unpacked, also of members that are not read.
        max_members: files in folders and archives.
        max_depth: archives in archives, and folders in folders.
        max_ratio: unpacked to packed size, checked from ``ratio_from_bytes`` on; logs and objects reach some 50.
    """

    max_bytes: int = 4 * 1024**3
    max_members: int = 50_000
    max_depth: int = 20
    max_ratio: int = 200
    ratio_from_bytes: int = 64 * 1024**2


class Source(NamedTuple):
    """The bytes of one file.

    Attributes:
        name: for messages: the path that was given, and after ``!`` the path in an archive.
        below: path below the folder or archive that was given; None for a file that was named itself.
    """

    name: str
    data: bytes
    below: PurePosixPath | None


class Unpacker:
    """Finds the files of a snapshot.

    Attributes:
        skipped: what was not read, by kind of file, such as ``*.log`` or ``link``.
    """

    def __init__(self, limits: PackingLimits | None = None) -> None:
        self.skipped: Counter[str] = Counter()
        self._limits = limits or PackingLimits()
        self._members = 0
        self._bytes = 0

    def open(self, given: Path) -> Iterator[Source]:
        """The readable files of what was given, in order of their names.

        Raises:
            SnapshotInvalid: it is not there, cannot be unpacked, or goes beyond a limit.
        """
        if not given.is_dir():
            yield from self._file(given, str(given), None, 0)
            return
        found = False
        for path in self._walk(given, given.resolve(), 0):
            below = PurePosixPath(path.relative_to(given).as_posix())
            for source in self._file(path, str(path), below, 0):
                found = True
                yield source
        if not found:
            raise SnapshotInvalid(str(given), None, "no .json, .yaml or .yml file (or .gz or archive of one) is in it")

    # folders

    def _walk(self, folder: Path, root: Path, depth: int) -> Iterator[Path]:
        if depth > self._limits.max_depth:
            raise self._beyond(str(folder), f"folders are nested more than {self._limits.max_depth} deep")
        try:
            entries = sorted(folder.iterdir())
        except OSError as error:
            raise SnapshotInvalid(str(folder), None, f"the folder cannot be read ({error.strerror})") from error
        for path in entries:
            if path.name.startswith("."):
                self.skipped["hidden"] += 1
            elif path.is_symlink() and not (path.is_file() and path.resolve().is_relative_to(root)):
                self.skipped["link"] += 1
            elif path.is_dir():
                yield from self._walk(path, root, depth + 1)
            elif not path.is_file():
                self.skipped["device"] += 1
            elif self._wanted(path.name, str(path)):
                yield path

    def _wanted(self, name: str, where: str) -> bool:
        self._members += 1
        if self._members > self._limits.max_members:
            raise self._beyond(where, f"there are more than {self._limits.max_members} files")
        lowered = name.lower()
        if lowered.startswith("._"):  # what macOS packs beside every file
            self.skipped["hidden"] += 1
            return False
        if lowered.removesuffix(".gz").endswith(SUFFIXES) or lowered.endswith(ARCHIVES):
            return True
        inner = lowered.removesuffix(".gz").rpartition(".")
        self.skipped[f"*.{inner[2]}" if inner[0] else "without ending"] += 1
        return False

    # files

    def _file(self, path: Path, name: str, below: PurePosixPath | None, depth: int) -> Iterator[Source]:
        try:
            with path.open("rb") as file:
                yield from self._content(file, name, below, depth, path.stat().st_size)
        except FileNotFoundError as error:
            raise SnapshotInvalid(name, None, f"there is no such file; write one with: {TAKE_SNAPSHOT}") from error
        except OSError as error:
            raise SnapshotInvalid(name, None, f"the file cannot be read ({error.strerror or error})") from error

    def _content(
        self, file: IO[bytes], name: str, below: PurePosixPath | None, depth: int, packed: int
    ) -> Iterator[Source]:
        """The files that a file holds: itself, or its members. ``file`` can seek."""
        if depth > 4:
            raise self._beyond(name, "archives are nested more than 4 deep")
        head = file.read(_TAR_AT + len(_TAR))
        file.seek(0)
        lowered = name.lower()
        if head.startswith(_ZIP) or lowered.endswith(".zip"):
            yield from self._zip(file, name, below, depth)
        elif head[_TAR_AT:] == _TAR or lowered.endswith(".tar"):
            yield from self._tar(file, name, below, depth)
        elif head.startswith(_GZIP) or lowered.endswith((".gz", ".tgz")):
            yield from self._gzip(file, name, below, depth, packed)
        else:
            yield Source(name, self._read(file, name), below)

    def _gzip(
        self, file: IO[bytes], name: str, below: PurePosixPath | None, depth: int, packed: int
    ) -> Iterator[Source]:
        with gzip.GzipFile(fileobj=file) as unpacked:
            limited = _Limited(unpacked, self._counter(name, packed))
            try:
                head = limited.read(_TAR_AT + len(_TAR))
                if head[_TAR_AT:] == _TAR:
                    limited.push_back(head)
                    yield from self._tar(limited, name, below, depth, stream=True)
                    return
                data = head + limited.read()
            except _DAMAGED as error:
                raise SnapshotInvalid(name, None, f"expected gzip data ({error})") from error
        inner = name[:-3] if name.lower().endswith(".gz") else name
        if data.startswith((_GZIP, _ZIP)):
            yield from self._content(io.BytesIO(data), inner, below, depth + 1, len(data))
        else:
            yield Source(name, data, below)

    def _tar(
        self, file: "IO[bytes] | _Limited", name: str, below: PurePosixPath | None, depth: int, *, stream: bool = False
    ) -> Iterator[Source]:
        try:
            with tarfile.open(fileobj=file, mode="r|" if stream else "r:") as archive:  # type: ignore[call-overload]
                for member in archive:
                    if member.isdir():
                        continue
                    if not member.isfile() or member.issparse():
                        self.skipped["link" if member.issym() or member.islnk() else "device"] += 1
                        continue
                    content = archive.extractfile(member) if self._candidate(member.name, name) else None
                    if content is not None:
                        yield from self._member(content, name, member.name, below, depth, member.size)
        except (tarfile.TarError, *_DAMAGED) as error:
            raise SnapshotInvalid(name, None, f"expected a tar archive ({error})") from error

    def _zip(self, file: IO[bytes], name: str, below: PurePosixPath | None, depth: int) -> Iterator[Source]:
        try:
            with zipfile.ZipFile(file) as archive:
                for member in sorted(archive.infolist(), key=lambda item: item.filename):
                    if member.is_dir():
                        continue
                    if stat.S_ISLNK(member.external_attr >> 16):
                        self.skipped["link"] += 1
                        continue
                    if not self._candidate(member.filename, name):
                        continue
                    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                        raise SnapshotInvalid(name, None, f"{member.filename} is packed unusually; use deflate or gzip")
                    if member.flag_bits & 0x1:
                        problem = f"{member.filename} is encrypted; pack it without a password"
                        raise SnapshotInvalid(name, None, problem)
                    with archive.open(member) as content:
                        yield from self._member(content, name, member.filename, below, depth, member.compress_size)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, *_DAMAGED) as error:
            raise SnapshotInvalid(name, None, f"expected a zip archive ({error})") from error

    def _candidate(self, member: str, where: str) -> bool:
        path = PurePosixPath(member)
        if "__MACOSX" in path.parts or any(part.startswith(".") and part not in (".", "..") for part in path.parts):
            self.skipped["hidden"] += 1
            return False
        return self._wanted(path.name, where)

    def _member(
        self, content: IO[bytes], archive: str, member: str, below: PurePosixPath | None, depth: int, packed: int
    ) -> Iterator[Source]:
        name = f"{archive}!{member}"
        data = _Limited(content, self._counter(name, packed)).read()
        inner = (below.parent if below else PurePosixPath()) / PurePosixPath(member)
        if data.startswith((_GZIP, _ZIP)) or data[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
            yield from self._content(io.BytesIO(data), name, inner, depth + 1, len(data))
        else:
            yield Source(name, data, inner)

    def _read(self, file: IO[bytes], name: str) -> bytes:
        return _Limited(file, self._counter(name, None)).read()

    # limits

    def _counter(self, name: str, packed: int | None) -> "Count":
        """What counts the bytes of one file and raises beyond a limit; ``packed``: the size it was unpacked from."""
        limits = self._limits

        def count(more: int, so_far: int) -> None:
            self._bytes += more
            if self._bytes > limits.max_bytes:
                raise self._beyond(name, f"unpacked it is larger than {limits.max_bytes} bytes")
            if packed is not None and so_far > max(limits.ratio_from_bytes, packed * limits.max_ratio):
                raise self._beyond(name, f"it unpacks to more than {limits.max_ratio} times its size")

        return count

    def _beyond(self, name: str, problem: str) -> SnapshotInvalid:
        return SnapshotInvalid(name, None, f"{problem}; give the files of Kubernetes objects only")


Count = Callable[[int, int], None]
"""Told of every piece that was read: its size, and the size of the file so far."""


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Limited:
    """A stream that counts what is read, piece by piece, before more is unpacked."""

    def __init__(self, file: _Readable, count: "Count") -> None:
        self._file = file
        self._count = count
        self._read = 0
        self._pushed = b""

    def push_back(self, data: bytes) -> None:
        """Have ``data`` read again first."""
        self._pushed = data + self._pushed

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes, or all that there are."""
        pieces = [self._pushed if size < 0 else self._pushed[:size]]
        self._pushed = self._pushed[len(pieces[0]) :]
        wanted = size - len(pieces[0])
        while size < 0 or wanted > 0:
            piece = self._file.read(_CHUNK if size < 0 else min(_CHUNK, wanted))
            if not piece:
                break
            self._read += len(piece)
            wanted -= len(piece)
            self._count(len(piece), self._read)
            pieces.append(piece)
        return b"".join(pieces)
