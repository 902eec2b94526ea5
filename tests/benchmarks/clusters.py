"""Reading and judging large clusters, measured: ``python -m tests.benchmarks.clusters``.

One run, side by side, against an API server process on loopback: (a) draining the same bytes with a plain HTTP client,
(b) our collection to indexed facts, (c) all rules, (d) the official client's models on a tenth of the pods, scaled,
(e) a watched cluster in which pods change; and the small cluster, in the service and by command line. Every measure has
a process of its own. Prints ratios beside the goals; nothing fails on a time. The first run writes the pages (1.5 GB)
into the temporary folder and takes some minutes more.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.benchmarks import big_cluster
from tests.benchmarks.big_server import PROTOBUF
from tests.benchmarks.measures import Figures

_ACCEPT = {"JSON": "application/json", "protobuf": PROTOBUF}
SMALL_NODES, SMALL_PODS = 200, 5_000
OFFICIAL_SHARE = 10
CHANGES, ROUNDS = 1_000, 10
_PATHS = ["/api/v1/nodes", "/api/v1/pods", "/api/v1/events", "/apis/apps/v1/deployments", "/apis/batch/v1/jobs"]


class Server(msgspec.Struct, frozen=True):
    """A running API server."""

    url: str
    kubeconfig: str


class Line(msgspec.Struct, frozen=True):
    """A figure beside its goal."""

    what: str
    value: float
    unit: str
    goal: str = ""


@contextmanager
def serving(
    pages: big_cluster.Pages, nodes: int, pods: int, *, tls: bool = False, protobuf: bool = True
) -> Iterator[Server]:
    """An API server process with these pages."""
    with tempfile.TemporaryDirectory() as directory:
        arguments = [str(pages.directory), directory, "--nodes", str(nodes), "--pods", str(pods)]
        command = [
            sys.executable,
            "-m",
            "tests.benchmarks.big_server",
            *arguments,
            *(["--tls"] if tls else []),
            *([] if protobuf else ["--json-only"]),
        ]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        with process, process.stdin, process.stdout:
            url = process.stdout.readline().decode().strip()
            if not url:
                raise RuntimeError("the API server did not start")
            yield Server(url, str(Path(directory) / "kubeconfig"))
            process.stdin.close()  # which ends it


def measured(name: str, **arguments: Any) -> Figures:
    """Run one of :data:`~tests.benchmarks.measures.MEASURES` in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.measures", name, json.dumps(arguments)]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    figures: Figures = json.loads(output.splitlines()[-1])  # before it may be what the service logs
    return figures


def reading(servers: dict[str, Server], nodes: int, pods: int, *, changes: int, rounds: int) -> Iterator[Line]:
    """(a) to (e).

    Args:
        servers: by the format that they speak: ``JSON``, and ``protobuf`` where it is to be measured.
        nodes: what they have.
        pods: what they have.
        changes: pods that change in each of ``rounds``.
    """
    server = servers.get("protobuf") or servers["JSON"]
    drained: dict[str, Figures] = {}
    read: dict[str, Figures] = {}
    for name, one in servers.items():
        drain = {"url": one.url, "paths": _PATHS, "accept": _ACCEPT[name], "page_size": big_cluster.PAGE_SIZE}
        both = [measured(client, **drain) for client in ("drain_http_client", "drain_aiohttp")]
        drained[name] = min(both, key=lambda figures: figures["drain_seconds"])
        yield Line(f"(a) drain, {name}", drained[name]["drain_seconds"], "s")
        yield Line(f"(a) drain, {name}, CPU", drained[name]["drain_cpu"], "s")
        yield Line(f"(a) drain, {name}, bytes", drained[name]["bytes"] / 1e6, "MB")
        read[name] = measured("collect_and_evaluate", kubeconfig=one.kubeconfig)
        if (read[name]["nodes"], read[name]["pods"]) != (nodes, pods):
            raise RuntimeError(f"{name}: read {read[name]['nodes']} nodes and {read[name]['pods']} pods")
        yield Line(f"(b) collect to facts, {name}", _to_facts(read[name]), "s")
        yield Line(f"(b) collect to facts, {name}, CPU", read[name]["collect_cpu"] + read[name]["facts_cpu"], "s")
        yield Line(f"(b) peak memory, {name}", read[name]["facts_peak"], "MiB")
        yield Line(f"(b) / (a), {name}", _to_facts(read[name]) / drained[name]["drain_seconds"], "times", "<= 1.3")
    best = read[next(reversed(servers))]
    if "protobuf" in read:
        yield Line("(b) JSON / protobuf", _to_facts(read["JSON"]) / _to_facts(best), "times", ">= 1.5")
        yield Line("(b) protobuf / (a) JSON", _to_facts(best) / drained["JSON"]["drain_seconds"], "times")
    yield Line("(c) all rules, CPU", best["evaluate_cpu"], "s", "<= 1")
    yield Line("(b)+(c) peak memory", best["peak"], "MiB", "<= 400")
    share = max(1, pods // OFFICIAL_SHARE)
    official = measured("official_client", kubeconfig=server.kubeconfig, pods=share, page_size=big_cluster.PAGE_SIZE)
    scaled = pods / official["pods"]
    yield Line("(d) official client, scaled", official["models_seconds"] * scaled, "s")
    yield Line("(d) / (b)", official["models_seconds"] * scaled / _to_facts(best), "times", ">= 10")
    yield Line(f"(d) peak memory, 1/{scaled:.0f} of the pods", official["peak"], "MiB")
    steady = measured("steady_state", kubeconfig=server.kubeconfig, url=server.url, changes=changes, rounds=rounds)
    yield Line(f"(e) {changes} watch events, CPU", steady["events_cpu"], "s")
    yield Line("(e) new facts and all rules, CPU", steady["judge_cpu"], "s")
    yield Line("(e) together, CPU", steady["events_cpu"] + steady["judge_cpu"], "s", "<= 0.5")
    grown = steady["late_resident"] - steady["early_resident"]
    yield Line(f"(e) memory grown over {changes * (rounds - 1)} events", grown, "MiB", "flat")
    yield Line("(e) peak memory", steady["peak"], "MiB")


def small(server: Server) -> Iterator[Line]:
    """The small cluster, over TLS."""
    service = measured("audits_in_one_process", kubeconfig=server.kubeconfig)
    yield Line("small, in the service", service["warm_seconds"], "s", "<= 1")
    yield Line("small, in the service, CPU", service["warm_cpu"], "s")
    command = measured("command_line", kubeconfig=server.kubeconfig)
    yield Line("small, by command line", command["audit_seconds"], "s", "<= 2.5")
    yield Line("small, by command line, CPU", command["audit_cpu"], "s")
    yield Line("small, by command line, peak memory", command["peak"], "MiB", "<= 150")


def run(
    nodes: int, pods: int, small_size: tuple[int, int], *, protobuf: bool, changes: int, rounds: int
) -> Iterator[Line]:
    """All measures of a run.

    Args:
        small_size: nodes and pods of the small cluster.
        protobuf: also measure protobuf; otherwise JSON only.
        changes: pods that change in each of ``rounds``.
    """
    pages = big_cluster.pages(nodes, pods)
    few = big_cluster.pages(*small_size)
    if protobuf:
        big_cluster.add_protobuf(pages)
        big_cluster.add_protobuf(few)
    with serving(pages, nodes, pods, protobuf=False) as plain, serving(pages, nodes, pods) as fast:
        servers = {"JSON": plain, **({"protobuf": fast} if protobuf else {})}
        yield from reading(servers, nodes, pods, changes=changes, rounds=rounds)
    with serving(few, *small_size, tls=True) as server:
        yield from small(server)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=big_cluster.NODES)
    parser.add_argument("--pods", type=int, default=big_cluster.PODS)
    parser.add_argument("--json-only", action="store_true", help="leave out protobuf")
    args = parser.parse_args(arguments)
    print(f"{args.nodes} nodes, {args.pods} pods; small: {SMALL_NODES} nodes, {SMALL_PODS} pods", flush=True)
    small_size = (SMALL_NODES, SMALL_PODS)
    for line in run(args.nodes, args.pods, small_size, protobuf=not args.json_only, changes=CHANGES, rounds=ROUNDS):
        goal = f"   goal {line.goal}" if line.goal else ""
        print(f"{line.what:<48}{line.value:>10.2f} {line.unit:<6}{goal}", flush=True)


def _to_facts(figures: Figures) -> float:
    return figures["collect_seconds"] + figures["facts_seconds"]


if __name__ == "__main__":
    main()
