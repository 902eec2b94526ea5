"""As a user has it: the installed command serves, reads a Kubernetes API over HTTPS and talks to Slack."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.slack import FakeSlack

ALERTS = "C0ALERTS"
NODE = "ip-10-0-1-7.ec2.internal"
ADDRESS = re.compile(rb"http://127\.0\.0\.1:\d+")


def gpu_node() -> dict[str, Any]:
    """An EKS node with eight A100, up for two days."""
    created = (datetime.now(UTC) - timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    amounts = {"cpu": "96", "memory": "1152Gi", "pods": "250", "nvidia.com/gpu": "8"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NODE,
            "creationTimestamp": created,
            "labels": {
                "kubernetes.io/hostname": NODE,
                "node.kubernetes.io/instance-type": "p4d.24xlarge",
                "topology.kubernetes.io/region": "us-east-1",
                "topology.kubernetes.io/zone": "us-east-1b",
                "eks.amazonaws.com/nodegroup": "gpu-a100",
                "eks.amazonaws.com/capacityType": "ON_DEMAND",
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.count": "8",
                "nvidia.com/gpu.replicas": "1",
                "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
                "nvidia.com/gpu.sharing-strategy": "none",
                "nvidia.com/cuda.driver-version.full": "580.126.20",
                "nvidia.com/cuda.runtime-version.full": "13.0",
            },
        },
        "spec": {"providerID": "aws:///us-east-1b/i-0aaaabbbbccccdddd"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": created}],
        },
    }


def training_pod() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "finetune-0",
            "namespace": "research",
            "creationTimestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
        "spec": {
            "nodeName": NODE,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/research/finetune:7",
                    "resources": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}},
                }
            ],
        },
        "status": {"phase": "Running"},
    }


@asynccontextmanager
async def served(config: Path, environment: dict[str, str]) -> AsyncIterator[str]:
    """Address of ``gpu-advisor serve``, run as its own process and stopped by SIGTERM; it must end cleanly."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "service.main", "serve", "--config", str(config), "--port", "0",
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    said = b""
    try:
        async with asyncio.timeout(60):
            while not (found := ADDRESS.search(said)):
                line = await process.stdout.readline()
                assert line, f"it ended: {said.decode()}"
                said += line
        drain = asyncio.create_task(process.stdout.read())
        yield found.group().decode()
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            assert await process.wait() == 0, (said + await drain).decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def audited(client: httpx.AsyncClient) -> dict[str, Any]:
    """Ask for an audit and follow its Location until it is over."""
    answer = await client.post("/v1/clusters/prod/audits")
    assert answer.status_code == 202, answer.text
    async with asyncio.timeout(30):
        while True:
            audit: dict[str, Any] = (await client.get(answer.headers["location"])).json()
            if audit["state"] in ("done", "failed"):
                return audit
            await asyncio.sleep(0.05)


def shown(message: dict[str, Any]) -> str:
    return json.dumps([message.get("text"), message.get("blocks"), message.get("attachments")], ensure_ascii=False)


async def test_idle_node_is_announced_in_slack_and_its_message_edited_once_the_node_is_used(
    tmp_path: Path, database_url: str
) -> None:
    with FakeKubernetes() as kubernetes:
        async with FakeSlack() as slack:
            kubernetes.state.put(gpu_node())
            slack.add_channel(ALERTS, "gpu-alerts", bot_in=True)
            config = tmp_path / "config.yaml"
            cluster = {"name": "prod", "kubeconfig": str(kubernetes.kubeconfig(tmp_path)), "context": "fake"}
            config.write_text(yaml.safe_dump({"clusters": [cluster], "audit": {"interval_seconds": 86400}}))
            environment = {
                "PATH": os.environ["PATH"],
                "DATABASE_URL": database_url,
                "SLACK_BOT_TOKEN": slack.bot_token,
                "SLACK_SIGNING_SECRET": slack.signing_secret,
                "SLACK_ALERT_CHANNEL": ALERTS,
                "SLACK_API_URL": slack.base_url,
            }
            async with served(config, environment) as address, httpx.AsyncClient(base_url=address) as client:
                audit = await audited(client)
                assert audit["state"] == "done", audit
                idle = [item for item in audit["report"]["findings"] if item["rule"] == "idle-gpu-node"]
                assert [item["objects"][0]["name"] for item in idle] == [NODE]
                assert idle[0]["cost"]["usd_hour"] > 0

                await slack.until(lambda: slack.messages(ALERTS), 20)
                (alert,) = slack.messages(ALERTS)
                assert NODE in shown(alert)
                assert "USD" in shown(alert) or "$" in shown(alert)
                opened = shown(alert)

                slack.events_url = f"{address}/slack/events"
                question = await slack.says("U0ANNA", ALERTS, "<@U0BOT> posso far girare più pod su una GPU?")
                await slack.until(lambda: slack.thread(ALERTS, question), 20)
                (answer,) = slack.thread(ALERTS, question)
                assert NODE in shown(answer) or "gpu-a100" in shown(answer), "the answer adds what is true here"
                assert "GPU" in shown(answer)

                await audited(client)
                assert len([m for m in slack.messages(ALERTS) if not m.get("thread_ts")]) == 1, "told once"

                kubernetes.state.put(training_pod())  # the cluster is followed: nobody asks for an audit
                await slack.until(lambda: shown(slack.messages(ALERTS)[0]) != opened, 20)
                assert not [f for f in (await audited(client))["report"]["findings"] if f["rule"] == "idle-gpu-node"]
                resolved = slack.messages(ALERTS)[0]
                assert resolved["ts"] == alert["ts"], "edited, not posted anew"
                assert "resolved" in shown(resolved).lower()
                assert len([m for m in slack.messages(ALERTS) if not m.get("thread_ts")]) == 1

                listed = (await client.get("/v1/findings", params={"rule": "idle-gpu-node"})).json()
                assert [item["state"] for item in listed["items"]] == ["resolved"]


async def test_a_cluster_out_of_reach_fails_its_own_audit_only(tmp_path: Path) -> None:
    with FakeKubernetes() as kubernetes:
        kubernetes.state.put(gpu_node())
        good = kubernetes.kubeconfig(tmp_path)
        gone = tmp_path / "gone"
        gone.mkdir()
        with FakeKubernetes() as other:
            broken = other.kubeconfig(gone)
        config = tmp_path / "config.yaml"
        clusters = [{"name": "gone", "kubeconfig": str(broken)}, {"name": "prod", "kubeconfig": str(good)}]
        config.write_text(yaml.safe_dump({"clusters": clusters, "audit": {"interval_seconds": 86400}}))
        environment = {"PATH": os.environ["PATH"], "DATABASE_URL": f"sqlite:///{tmp_path}/state.db"}
        async with served(config, environment) as address, httpx.AsyncClient(base_url=address) as client:
            assert (await audited(client))["state"] == "done"
            answer = await client.post("/v1/clusters/gone/audits")
            async with asyncio.timeout(60):
                while (audit := (await client.get(answer.headers["location"])).json())["state"] != "failed":
                    await asyncio.sleep(0.05)
            assert audit["error"]["code"] == "cluster-unreachable"
            health = {item["name"]: item["state"] for item in (await client.get("/v1/clusters")).json()["items"]}
            assert health == {"gone": "unreachable", "prod": "ok"}
