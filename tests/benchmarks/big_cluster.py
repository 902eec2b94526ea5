"""A big cluster as an API server holds it: Kubernetes objects by kind, and pages of its lists as bytes.

The cluster has no chance in it: object ``n`` is arithmetic on ``n``. A fifth of the nodes has 8 GPUs, in eight pools of
several clouds, models and drivers; pods have 4 to 8 KB, five in a hundred want GPUs, and of these up to 400 wait, each
with other wishes. Typical use::

    from tests.benchmarks import big_cluster

    for pod in big_cluster.objects("Pod", nodes=200, pods=5_000): ...
    pages = big_cluster.pages(nodes=5_000, pods=100_000)   # written once, then read from a temporary folder
    pages.of("Pod")[0].read_bytes()                        # a PodList of 500 with its continue token
"""

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from tests.benchmarks import big_nodes, big_pods
from tests.benchmarks.big_others import OTHERS
from tests.benchmarks.big_text import Object

NODES, PODS = 5_000, 100_000
PAGE_SIZE = 500
REVISION = 9_000_000
"""``resourceVersion`` of every list."""

API_VERSIONS = {"Node": "v1", "Pod": "v1", **{kind: version for kind, (version, _) in OTHERS.items()}}
"""The kinds there are."""


def texts(kind: str, nodes: int = NODES, pods: int = PODS) -> Iterator[bytes]:
    """Every object of a kind as it stands in a list (without kind and apiVersion), as JSON, in the server's order.

    Raises:
        KeyError: a kind outside :data:`API_VERSIONS`.
    """
    if kind == "Node":
        yield from (text.encode() for _, text in big_nodes.nodes(nodes))
    elif kind == "Pod":
        yield from (text.encode() for _, text in big_pods.pods(nodes, pods))
    else:
        yield from map(msgspec.json.encode, OTHERS[kind][1](nodes, pods))


def objects(kind: str, nodes: int = NODES, pods: int = PODS) -> Iterator[Object]:
    """Every object of a kind, complete with kind and apiVersion."""
    head = {"kind": kind, "apiVersion": API_VERSIONS[kind]}
    for text in texts(kind, nodes, pods):
        yield head | msgspec.json.decode(text)


def changed_pods(count: int, nodes: int = NODES, pods: int = PODS, *, first: int = 0) -> Iterator[bytes]:
    """``count`` running pods with one restart more than before, as JSON without kind; ``first`` numbers the changes.

    Every call with another ``first`` changes other pods, in turn over the whole cluster.
    """
    moving = [pod for pod in big_pods.plan(nodes, pods) if pod.look not in ("waiting", "finished", "cron")]
    for change in range(first, first + count):
        pod = moving[change * 97 % len(moving)]
        yield big_pods.written(pod, version=REVISION + 1 + change, restarts=1 + change % 50).encode()


def list_pages(kind: str, nodes: int = NODES, pods: int = PODS, page_size: int = PAGE_SIZE) -> Iterator[bytes]:
    """The bodies of the pages of a list, as the API server writes them; the token of page ``n`` + 1 names ``n`` + 1."""
    total = pods if kind == "Pod" else sum(1 for _ in texts(kind, nodes, pods))
    every = texts(kind, nodes, pods)
    for number in range(max(1, -(-total // page_size))):
        left = total - (number + 1) * page_size
        rest = {"continue": token(number + 1), "remainingItemCount": left} if left > 0 else {}
        meta = json.dumps({"resourceVersion": str(REVISION), **rest}, separators=(",", ":"))
        head = f'{{"kind":"{kind}List","apiVersion":"{API_VERSIONS[kind]}","metadata":{meta},"items":['
        yield head.encode() + b",".join(islice(every, page_size)) + b"]}\n"


def token(page: int) -> str:
    """The continue token that asks for a page."""
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": REVISION, "start": f"page-{page}\0"}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


class Pages(msgspec.Struct, frozen=True):
    """Pages of a cluster's lists in a folder: ``Pod-00000.json`` and so on."""

    directory: Path

    def of(self, kind: str, ending: str = "json") -> list[Path]:
        """The files of a kind, in order."""
        return sorted(self.directory.glob(f"{kind}-*.{ending}"))

    def size(self, kind: str, ending: str = "json") -> int:
        """Bytes of all pages of a kind."""
        return sum(path.stat().st_size for path in self.of(kind, ending))


def pages(nodes: int = NODES, pods: int = PODS, page_size: int = PAGE_SIZE, directory: Path | None = None) -> Pages:
    """The pages of all kinds, written at the first call; 5,000 nodes and 100,000 pods take 0.7 GB.

    Args:
        directory: where the folders of all sizes are kept; None for one in the system's temporary folder. A change of
            this package gets a new folder.
    """
    home = Path(tempfile.gettempdir()) / "gpu-advisor-benchmarks" if directory is None else directory
    folder = home / f"{nodes}-{pods}-{page_size}-{_source_digest()}"
    if not folder.exists():
        home.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=home))
        for kind in API_VERSIONS:
            for number, body in enumerate(list_pages(kind, nodes, pods, page_size)):
                (unfinished / f"{kind}-{number:05d}.json").write_bytes(body)
        try:
            unfinished.rename(folder)
        except OSError:  # another process was faster; its pages are the same
            for path in unfinished.iterdir():
                path.unlink()
            unfinished.rmdir()
    return Pages(folder)


def add_protobuf(known: Pages) -> None:
    """Write the pages of nodes and pods as protobuf too, beside the others; about two minutes for 100,000 pods."""
    from tests.fakes import kubernetes_protobuf

    for kind in ("Node", "Pod"):
        for path in known.of(kind):
            target = path.with_suffix(".pb")
            if target.exists():
                continue
            page = msgspec.json.decode(path.read_bytes())
            body = kubernetes_protobuf.encode_list(kind, page["metadata"], page["items"])
            handle, unfinished = tempfile.mkstemp(dir=known.directory, suffix=".unfinished")
            os.close(handle)
            Path(unfinished).write_bytes(body)
            Path(unfinished).replace(target)


def _source_digest() -> str:
    sources = sorted(Path(__file__).parent.glob("big_*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
