"""Archives and folders: what is read, what is left out, and that none costs more than its limit."""

import contextlib
import gzip
import io
import json
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rules.errors import SnapshotInvalid
from service.clusters import ClusterSettings, Collected, connect
from service.clusters.archives import PackingLimits, Unpacker
from tests.service.clusters.objects import daemon_set, node, pod

Files = dict[str, bytes]


def listed(*items: dict[str, Any]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


FILES: Files = {
    "dump/nodes.json": listed(node("gpu-a"), node("gpu-b")),
    "dump/pods.yaml": b'{"kind": "List", "items": [' + json.dumps(pod("busy", on="gpu-a")).encode() + b"]}",
    "dump/deep/er/daemonsets.json.gz": gzip.compress(listed(daemon_set("plugin"))),
    "dump/nodes.log": b"I1130 1 x.go:1] hello",
    "dump/nodes.descr": b"Name: gpu-a",
    "dump/.hidden.json": b"{",
    "dump/._pods.yaml": b"\x00\x05\x16\x07",
    "dump/empty.yaml": b"",
    "dump/values.yaml": b"image: x\nreplicas: 3\n",
    "dump/kubeconfig.yaml": b"apiVersion: v1\nkind: Config\nclusters: []\n",
    "dump/version": b"NVIDIA GPU Operator",
}


def as_folder(path: Path, files: Files) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def as_tar(path: Path, files: Files, mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def as_zip(path: Path, files: Files, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


FORMS: dict[str, Callable[[Path, Files], Path]] = {
    "folder": lambda path, files: as_folder(path / "given", files),
    "tar": lambda path, files: as_tar(path / "given.tar", files),
    "tar.gz": lambda path, files: as_tar(path / "given.tar.gz", files, "w:gz"),
    "tgz": lambda path, files: as_tar(path / "given.TGZ", files, "w:gz"),
    "gz without an ending": lambda path, files: as_tar(path / "given", files, "w:gz"),
    "zip": lambda path, files: as_zip(path / "given.zip", files),
    "tar.gz in a zip": lambda path, files: as_zip(
        path / "given.zip", {"a/must.tar.gz": as_tar(path / "x", files, "w:gz").read_bytes()}
    ),
    "folder with an archive": lambda path, files: as_folder(
        path / "given", {"deeper/all.tar": as_tar(path / "x", files).read_bytes()}
    ),
}


async def read(*paths: Path) -> Collected:
    return await connect(ClusterSettings(name="lab", snapshot=[str(path) for path in paths])).collect()


@pytest.mark.parametrize("form", FORMS)
async def test_every_way_of_packing_gives_the_same_objects(
    tmp_path: Path, form: str, said: list[dict[str, Any]]
) -> None:
    collected = await read(FORMS[form](tmp_path, FILES))
    assert [item.metadata.name for item in collected.nodes] == ["gpu-a", "gpu-b"]
    assert [item.metadata.name for item in collected.pods] == ["busy"]
    assert collected.read_kinds == {"Node", "Pod", "DaemonSet"}
    assert [item["read"] for item in said] == [3]
    skipped = {"1 *.log", "1 *.descr", "2 hidden", "1 empty", "2 without objects", "1 without ending"}
    assert set(said[0]["skipped"].split(", ")) == skipped


@pytest.mark.parametrize("form", FORMS)
async def test_a_broken_file_of_objects_is_an_error_that_names_it(tmp_path: Path, form: str) -> None:
    files = {**FILES, "dump/pods.yaml": b'{"kind": "List", "items": [{"kind": "Pod", "metad'}
    with pytest.raises(SnapshotInvalid) as caught:
        await read(FORMS[form](tmp_path, files))
    assert "pods.yaml" in caught.value.source
    assert "not complete" in str(caught.value)


@pytest.mark.parametrize("form", FORMS)
async def test_what_holds_no_objects_is_no_empty_cluster(tmp_path: Path, form: str) -> None:
    with pytest.raises(SnapshotInvalid, match="is in it"):
        await read(FORMS[form](tmp_path, {"a/values.yaml": b"x: 1", "a/x.log": b"y"}))
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(SnapshotInvalid, match="is in it"):
        await read(FORMS[form](other, {"a/x.log": b"y"}))


def test_names_that_lead_outside_are_labels_and_nothing_is_written(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    names = ("../out.json", "/etc/out.json", "a/../../out.json", "C:\\out.json")
    for archive in (
        as_tar(inside / "a.tar", dict.fromkeys(names, listed(node("a")))),
        as_zip(inside / "a.zip", dict.fromkeys(names, listed(node("a")))),
    ):
        before = sorted(tmp_path.rglob("*"))
        assert len(list(Unpacker().open(archive))) == 4
        assert sorted(tmp_path.rglob("*")) == before


def test_links_and_devices_of_archives_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind in (("a.json", tarfile.SYMTYPE), ("b.json", tarfile.LNKTYPE), ("c.json", tarfile.FIFOTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
    unpacker = Unpacker()
    assert list(unpacker.open(path)) == []
    assert unpacker.skipped == {"link": 2, "device": 1}
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        info = zipfile.ZipInfo("a.json")
        info.external_attr = 0o120777 << 16
        packed.writestr(info, "/etc/passwd")
    unpacker = Unpacker()
    assert list(unpacker.open(tmp_path / "a.zip")) == []
    assert unpacker.skipped == {"link": 1}


def test_links_of_a_folder_are_followed_inside_it_only(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    as_folder(outside, {"secret.json": listed(node("secret"))})
    given = as_folder(tmp_path / "given", {"real/nodes.json": listed(node("a"))})
    (given / "inside.json").symlink_to(given / "real" / "nodes.json")
    (given / "outside.json").symlink_to(outside / "secret.json")
    (given / "folder").symlink_to(outside)
    (given / "round").symlink_to(given)
    (given / "broken.json").symlink_to(given / "none.json")
    os.mkfifo(given / "pipe.json")
    unpacker = Unpacker()
    assert [Path(item.name).name for item in unpacker.open(given)] == ["inside.json", "nodes.json"]
    assert unpacker.skipped == {"link": 4, "device": 1}


SMALL = PackingLimits(max_bytes=10_000_000, max_members=20, max_depth=3, max_ratio=100, ratio_from_bytes=1_000_000)
ZEROS = b" " * 5_000_000


@pytest.mark.parametrize(
    ("name", "make", "says"),
    [
        ("a.json.gz", lambda path: path.write_bytes(gzip.compress(ZEROS)), "100 times"),
        ("a.tar.gz", lambda path: as_tar(path, {"a.log": ZEROS, "a.json": b"{}"}, "w:gz"), "100 times"),
        ("a.zip", lambda path: as_zip(path, {"a.json": ZEROS}), "100 times"),
        ("b.zip", lambda path: as_zip(path, {"a.json.gz": gzip.compress(ZEROS)}), "100 times"),
        ("a.json", lambda path: path.write_bytes(ZEROS * 3), "larger than 10000000 bytes"),
        ("a.tar", lambda path: as_tar(path, {f"{i}.json": ZEROS for i in range(3)}), "larger than 10000000 bytes"),
        ("c.zip", lambda path: as_zip(path, {f"{i}.json": ZEROS for i in range(3)}, zipfile.ZIP_STORED), "larger than"),
        ("m.tar", lambda path: as_tar(path, {f"{i}.log": b"" for i in range(21)}), "more than 20 files"),
        ("m.zip", lambda path: as_zip(path, {f"{i}.log": b"" for i in range(21)}), "more than 20 files"),
    ],
)
def test_no_archive_costs_more_than_its_limit(
    tmp_path: Path, name: str, make: Callable[[Path], object], says: str
) -> None:
    make(tmp_path / name)
    with pytest.raises(SnapshotInvalid, match=says) as caught:
        list(Unpacker(SMALL).open(tmp_path / name))
    assert name in caught.value.source


def test_a_size_that_lies_costs_no_more_either(tmp_path: Path) -> None:
    data = bytearray(as_zip(tmp_path / "a.zip", {"a.json": ZEROS}).read_bytes())
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.index(mark) + at
        data[start : start + 4] = (10).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(SnapshotInvalid):
        list(Unpacker(SMALL).open(tmp_path / "a.zip"))


def test_archives_and_folders_may_not_be_nested_for_ever(tmp_path: Path) -> None:
    data = listed(node("a"))
    for number in range(8):
        data = as_zip(tmp_path / f"{number}.zip", {"inner.zip" if number else "a.json": data}).read_bytes()
    with pytest.raises(SnapshotInvalid, match="nested"):
        list(Unpacker().open(tmp_path / "7.zip"))
    for _ in range(8):
        data = gzip.compress(data)
    (tmp_path / "a.json.gz").write_bytes(data)
    with pytest.raises(SnapshotInvalid, match="nested"):
        list(Unpacker().open(tmp_path / "a.json.gz"))
    as_folder(tmp_path / "deep", {"/".join("abcdefg") + "/x.json": data})
    with pytest.raises(SnapshotInvalid, match="nested"):
        list(Unpacker(SMALL).open(tmp_path / "deep"))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tar", b"not a tar"),
        ("a.zip", b"not a zip"),
        ("a.zip", b"PK\x03\x04 and then nothing"),
        ("a.tgz", b"not gzip"),
        ("a.tar.gz", gzip.compress(b"x" * 257 + b"ustar" + b"y" * 500, mtime=0)),
        ("a.tar.gz", gzip.compress(b"x" * 5000, mtime=0)[:-9]),
        ("a.gz", b"\x1f\x8b\x08\x00" + b"\xff" * 50),
    ],
)
async def test_what_cannot_be_unpacked_is_said_plainly(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SnapshotInvalid) as caught:
        await read(tmp_path / name)
    assert name in str(caught.value)


def test_an_encrypted_or_unusual_zip_is_told_how_to_mend(tmp_path: Path) -> None:
    data = bytearray(as_zip(tmp_path / "a.zip", {"a.json": b"{}"}).read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(SnapshotInvalid, match="encrypted"):
        list(Unpacker().open(tmp_path / "a.zip"))
    as_zip(tmp_path / "b.zip", {"a.json": b"{}"}, zipfile.ZIP_LZMA)
    with pytest.raises(SnapshotInvalid, match="unusually"):
        list(Unpacker().open(tmp_path / "b.zip"))


@pytest.mark.parametrize("seed", range(40))
def test_damaged_archives_never_do_worse_than_an_error(tmp_path: Path, seed: int) -> None:
    made = (
        as_tar(tmp_path / "a.tar.gz", FILES, "w:gz"),
        as_tar(tmp_path / "b.tar", FILES),
        as_zip(tmp_path / "c.zip", FILES),
    )
    for path in made:
        data = bytearray(path.read_bytes())
        for step in range(5):
            data[zlib.crc32(f"{seed} {step}".encode()) % len(data)] ^= 0xFF
        path.write_bytes(data)
        with contextlib.suppress(SnapshotInvalid):
            list(Unpacker(SMALL).open(path))
