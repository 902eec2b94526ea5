"""What is measured, each in a process of its own: ``python -m tests.benchmarks.measures NAME JSON`` prints figures.

Seconds are those of a wall clock, CPU seconds those of this process, peaks are resident memory in MiB.
"""

import asyncio
import gc
import http.client
import json
import resource
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

Figures = dict[str, float]
TOKEN = "reader-token-0000"


def peak_mib() -> float:
    """The most memory this process has had so far (Linux; getrusage counts the parent's before the exec)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def resident_mib() -> float:
    """The memory this process has now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / (1 << 20)


@contextmanager
def clocked(figures: Figures, name: str) -> Iterator[None]:
    """Add ``name_seconds`` and ``name_cpu`` of what is done inside."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    figures[f"{name}_seconds"] = time.perf_counter() - wall
    figures[f"{name}_cpu"] = time.process_time() - cpu


def drain_http_client(url: str, paths: list[str], accept: str, page_size: int) -> Figures:
    """Read all pages of all lists with the standard library, and look for nothing but the next token."""
    figures: Figures = {"bytes": 0}
    with clocked(figures, "drain"):
        address = urlsplit(url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port or 80)
        for path in paths:
            token = ""
            while True:
                connection.request("GET", f"{path}?{_query(page_size, token)}", headers=_headers(accept))
                body = connection.getresponse().read()
                figures["bytes"] += len(body)
                token = _token(body)
                if not token:
                    break
        connection.close()
    return figures | {"peak": peak_mib()}


def drain_aiohttp(url: str, paths: list[str], accept: str, page_size: int) -> Figures:
    """The same with aiohttp."""
    import aiohttp

    figures: Figures = {"bytes": 0}

    async def run() -> None:
        async with aiohttp.ClientSession(headers=_headers(accept)) as session:
            for path in paths:
                token = ""
                while True:
                    async with session.get(f"{url}{path}?{_query(page_size, token)}") as answer:
                        body = await answer.read()
                    figures["bytes"] += len(body)
                    token = _token(body)
                    if not token:
                        break

    with clocked(figures, "drain"):
        asyncio.run(run())
    return figures | {"peak": peak_mib()}


def collect_and_evaluate(kubeconfig: str) -> Figures:
    """Our way: collection to indexed facts, then all rules."""
    from rules.checks import RULES
    from rules.engine import evaluate
    from rules.facts.prices import bundled
    from rules.policy import Policy
    from service.cli.loop import run as run_async
    from service.clusters import to_facts
    from tests.benchmarks.big_text import NOW

    prices, figures = bundled(), cast("Figures", {})
    connector = _connector(kubeconfig)

    figures["before"] = peak_mib()
    with clocked(figures, "collect"):
        collected = run_async(connector.collect())
    figures["collect_peak"] = peak_mib()
    with clocked(figures, "facts"):
        facts = to_facts("big", collected, NOW, prices)
    figures["facts_peak"] = peak_mib()
    del collected
    with clocked(figures, "evaluate"):
        report = evaluate(facts, Policy(), RULES)
    with clocked(figures, "again"):
        evaluate(facts, Policy(), RULES)
    counted = {"nodes": len(facts.nodes), "pods": len(facts.pods), "findings": len(report.findings)}
    return {**figures, "peak": peak_mib(), "resident": resident_mib(), **counted}


def steady_state(kubeconfig: str, url: str, changes: int, rounds: int) -> Figures:
    """Follow the cluster; ``rounds`` times ``changes`` pods change, and all rules are evaluated anew."""
    from rules.checks import RULES
    from rules.engine import evaluate
    from rules.facts.cluster import FactsBuilder
    from rules.facts.prices import bundled
    from rules.policy import Policy
    from tests.benchmarks.big_cluster import REVISION
    from tests.benchmarks.big_text import NOW

    figures: Figures = {}
    builder = FactsBuilder("big", bundled())

    async def judge(connector: Any) -> Any:
        held = await connector.collect()
        facts = builder.build(NOW, nodes=held.nodes, pods=held.pods, events=held.events, others=held.others,
                              read_kinds=held.read_kinds, unreadable=held.unreadable,
                              api_groups=held.api_groups)  # fmt: skip
        evaluate(facts, Policy(), RULES)
        return held

    async def run() -> None:
        connector = _connector(kubeconfig)
        connector.follow()
        with clocked(figures, "first"):
            await judge(connector)
        await _quiet()
        for number in range(rounds):
            before = time.process_time()
            sent = await asyncio.to_thread(_change, url, number * changes, changes)
            if not sent:
                raise RuntimeError("nobody watches the pods")
            await _quiet()
            figures["events_cpu"] = time.process_time() - before
            with clocked(figures, "judge"):
                held = await judge(connector)
            newest = str(REVISION + (number + 1) * changes)
            if not any(pod.metadata.resourceVersion == newest for pod in held.pods):
                raise RuntimeError("the newest change did not arrive")
            del held
            figures.setdefault("early_resident", resident_mib())
        figures["late_resident"] = resident_mib()
        await connector.close()

    asyncio.run(run())
    return figures | {"peak": peak_mib()}


async def _quiet() -> None:
    """Wait until this process has nothing left to do."""
    still = 0
    while still < 3:
        seen = time.process_time()
        await asyncio.sleep(0.3)
        still = still + 1 if time.process_time() - seen < 0.01 else 0


def _change(url: str, first: int, count: int) -> int:
    with urllib.request.urlopen(f"{url}/control/change?first={first}&count={count}") as answer:
        return int(json.load(answer)["watches"])


def audits_in_one_process(kubeconfig: str) -> Figures:
    """Whole audits as the running service makes them: the second one, when everything is imported and warm."""
    from datetime import UTC, datetime

    from rules.facts.prices import bundled
    from rules.policy import Policy
    from service.once import run_audit_once

    figures: Figures = {}

    async def run() -> None:
        connector = _connector(kubeconfig)
        for name in ("cold", "warm"):
            with clocked(figures, name):
                await run_audit_once(connector, now=datetime.now(UTC), policy=Policy(), prices=bundled())
        await connector.close()

    asyncio.run(run())
    return figures | {"peak": peak_mib()}


def command_line(kubeconfig: str) -> Figures:
    """``gpu-advisor audit`` of a kubeconfig, from the start of its process to its end."""
    figures: Figures = {}
    with clocked(figures, "audit"):
        done = subprocess.run(
            [sys.executable, "-m", "service.main", "audit", "--kubeconfig", kubeconfig, "--format", "json"],
            capture_output=True,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures["audit_cpu"] = used.ru_utime + used.ru_stime
    return figures | {"findings": len(json.loads(done.stdout)["findings"]), "peak": used.ru_maxrss / 1024}


def official_client(kubeconfig: str, pods: int, page_size: int) -> Figures:
    """The official client's models of ``pods`` pods, paged."""
    from kubernetes import client, config

    config.load_kube_config(kubeconfig)  # type: ignore[no-untyped-call]
    figures: Figures = {"pods": 0}
    kept: list[Any] = []
    with clocked(figures, "models"):
        api = client.CoreV1Api()
        token: str | None = None
        while len(kept) < pods:
            page = api.list_pod_for_all_namespaces(limit=page_size, _continue=token)
            kept.extend(page.items)
            token = page.metadata._continue if page.metadata else None
            if not token:
                break
    return figures | {"pods": len(kept), "peak": peak_mib()}


def _connector(kubeconfig: str) -> Any:
    from service.clusters.config import ClusterSettings
    from service.clusters.live import LiveConnector

    return LiveConnector(ClusterSettings(name="big", kubeconfig=kubeconfig, timeout_seconds=3600))


def _query(page_size: int, token: str) -> str:
    return urlencode({"limit": page_size, **({"continue": token} if token else {})})


def _headers(accept: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}", "Accept": accept, "Accept-Encoding": "identity"}


def _token(body: bytes) -> str:
    """The continue token, found in the first bytes without decoding the body."""
    head = body[:600]
    if head.startswith(b"k8s\0"):
        start = head.find(b"eyJ2Ijo")
        end = start
        while (start >= 0 and head[end : end + 1].isalnum()) or head[end : end + 1] in (b"-", b"_"):
            end += 1
        return head[start:end].decode() if start >= 0 else ""
    _, found, rest = head.partition(b'"continue":"')
    return rest.partition(b'"')[0].decode() if found else ""


MEASURES: dict[str, Callable[..., Figures]] = {
    "drain_http_client": drain_http_client,
    "drain_aiohttp": drain_aiohttp,
    "collect_and_evaluate": collect_and_evaluate,
    "official_client": official_client,
    "steady_state": steady_state,
    "audits_in_one_process": audits_in_one_process,
    "command_line": command_line,
}


def main() -> None:
    """Measure what the arguments name."""
    gc.collect()
    print(json.dumps(MEASURES[sys.argv[1]](**json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
