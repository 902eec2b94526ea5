"""JSON and protobuf give equal objects, and equal facts; bodies that are neither say where they stop being one."""

import base64
import importlib.resources
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rules.facts.cluster import ClusterFacts
from rules.facts.prices import bundled
from service.clusters import to_facts
from service.clusters.kinds import BY_KIND, KindSpec
from service.clusters.protobuf.generate import NAMES, generated
from service.clusters.wire import JSON, PROTOBUF, PageInvalid, accept, decode, decode_json
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.kubernetes_protobuf import encode_list
from tests.service.clusters.conftest import NOW, Connect, kubeconfig_connector
from tests.service.clusters.objects import node, pod

DATA = Path(__file__).parents[2] / "data"
RECORDED = DATA / "apiserver"
NODES, PODS = BY_KIND["Node"], BY_KIND["Pod"]
SAMPLES = sorted([*(DATA / "clusters").glob("*.json"), *(DATA / "cases").glob("*/cluster.json")])


def recorded(name: str) -> bytes:
    """The body of a recorded answer."""
    return next(part for part in reversed((RECORDED / name).read_bytes().split(b"\n\n")) if part.strip()).strip()


def both(spec: KindSpec, items: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """The objects of a list that came as JSON, and of the same list that came as protobuf."""
    meta = {"resourceVersion": "7", "continue": "abc", "remainingItemCount": 3}
    text = json.dumps({"kind": f"{spec.kind}List", "apiVersion": "v1", "metadata": meta, "items": items}).encode()
    pages = [decode(spec, text), decode(spec, encode_list(spec.kind, meta, items))]
    assert [(page.continue_token, page.resource_version) for page in pages] == [("abc", "7")] * 2
    return list(pages[0].items), list(pages[1].items)


def test_what_protoc_makes_of_the_schema_is_what_is_kept() -> None:
    package = importlib.resources.files("service.clusters.protobuf")
    assert generated() == {name: (package / name).read_text(encoding="utf-8") for name in NAMES}


@pytest.mark.parametrize(
    ("spec", "text", "raw"),
    [(PODS, "list-page-1.txt", "list-protobuf.txt"), (NODES, "nodes-json.txt", "nodes-protobuf.txt")],
    ids=["pods", "nodes"],
)
def test_what_a_real_server_sent_in_both_formats_is_equal(spec: KindSpec, text: str, raw: str) -> None:
    body = base64.b64decode(recorded(raw))
    objects = list(decode(spec, body).items)
    assert objects == list(decode_json(spec, recorded(text)).items)
    assert objects


@pytest.mark.parametrize(
    ("kind", "text", "raw"),
    [("Pod", "list-page-1.txt", "list-protobuf.txt"), ("Node", "nodes-json.txt", "nodes-protobuf.txt")],
)
def test_the_stand_in_writes_the_bytes_that_a_real_server_wrote(kind: str, text: str, raw: str) -> None:
    listed, body = json.loads(recorded(text)), base64.b64decode(recorded(raw))
    page = decode(BY_KIND[kind], body)  # the two recordings are of different revisions
    meta = listed["metadata"] | {"resourceVersion": page.resource_version}
    if page.continue_token:
        meta["continue"] = page.continue_token
    assert encode_list(kind, meta, listed["items"]) == body


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem if path.stem != "cluster" else path.parent.name)
def test_samples_are_equal_in_both_formats(sample: Path) -> None:
    items = json.loads(sample.read_bytes())["items"]
    for spec in (NODES, PODS):
        of_kind = [item for item in items if item["kind"] == spec.kind]
        from_json, from_protobuf = both(spec, of_kind)
        assert from_json == from_protobuf
        assert len(from_json) == len(of_kind)


async def test_a_server_that_knows_no_protobuf_gives_equal_facts(
    server: FakeKubernetes, tmp_path: Path, live: Connect
) -> None:
    seen: list[ClusterFacts] = []
    for formats in (frozenset({"json", "protobuf"}), frozenset({"json"})):
        server.formats = formats
        collected = await kubeconfig_connector(server, tmp_path / str(len(seen))).collect()
        seen.append(to_facts("lab", collected, NOW, bundled()))
    assert seen[0].nodes == seen[1].nodes
    assert seen[0].pods == seen[1].pods
    assert len(seen[0].pods) == 3


async def test_nodes_and_pods_are_asked_for_as_protobuf_and_all_else_as_json(
    server: FakeKubernetes, live: Connect
) -> None:
    await live().collect()
    asked = {request.path.rsplit("/", 1)[-1]: request.headers["accept"] for request in server.requests}
    assert asked["pods"] == asked["nodes"] == f"{PROTOBUF},{JSON}"
    assert {wanted for plural, wanted in asked.items() if plural not in ("pods", "nodes")} == {JSON}
    assert accept(BY_KIND["ClusterPolicy"]) == JSON


@pytest.mark.parametrize("status", [406, 415])
async def test_a_server_that_refuses_the_format_is_asked_for_json(
    server: FakeKubernetes, live: Connect, status: int
) -> None:
    server.faults.add("pods", status=status, reason="NotAcceptable", message="only json", times=1)
    collected = await live(page_size=1).collect()
    assert len(collected.pods) == 3
    assert [request.headers["accept"] for request in server.asked("pods")] == [f"{PROTOBUF},{JSON}", *[JSON] * 3]


BODY = encode_list("Pod", {"resourceVersion": "7"}, [pod("busy", on="gpu-a")])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"k8s\0", "kind: expected PodList, found"),
        (BODY[:40], "after the first four bytes"),
        (b"k8s\0\xff\xff\xff\xff", "after the first four bytes"),
        (encode_list("Node", {}, [node("gpu-a")]), "kind: expected PodList, found NodeList"),
        (BODY.replace(b"gpu-a", b"gpu-\xff"), "items.0.: expected a Pod"),
        (b"\0s8k" + BODY[4:], "expected a PodList"),
        (
            b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x08\x1a\x06no one",
            "kind: expected PodList, found Status no one",
        ),
    ],
    ids=["nothing", "cut", "noise", "another kind", "not text", "no magic", "a status"],
)
def test_a_body_that_is_no_list_says_where(body: bytes, says: str) -> None:
    with pytest.raises(PageInvalid, match=says):
        list(decode(PODS, body).items)


@given(st.integers(0, len(BODY) - 1), st.binary(min_size=1, max_size=3))
@settings(max_examples=200, deadline=None)
def test_broken_bytes_never_fail_in_another_way(at: int, noise: bytes) -> None:
    for broken in (BODY[:at], BODY[:at] + noise + BODY[at + len(noise) :], BODY[:at] + noise + BODY[at:]):
        try:
            list(decode(PODS, broken).items)
        except PageInvalid as error:
            assert str(error)  # noqa: PT017 - what it says may be anything, that it says something is the point


names = st.sampled_from(["a", "b", "kube-api-access-x8k2p", "shm", "/dev/shm", "nvidia.com/gpu", "Ready", ""])
texts = names | st.text(st.characters(codec="utf-8"), max_size=6)
pairs = st.dictionaries(texts, texts, max_size=3)
amounts = st.dictionaries(texts, st.sampled_from(["1", "500m", "8Gi", "0"]) | st.integers(0, 9), max_size=3)
times = st.sampled_from(["2026-11-30T09:00:00Z", "1970-01-01T00:00:00Z", "2026-11-30T09:00:00.123456Z"])
switch = st.booleans()
whole = st.integers(0, 2**31 - 1)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with any of these fields, or null, or none."""
    return st.fixed_dictionaries({}, optional={name: st.none() | value for name, value in fields.items()})


def has(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with all of these fields."""
    return st.fixed_dictionaries(fields)


def few(one: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Up to two."""
    return st.lists(one, max_size=2)


requirements = few(has(key=texts, operator=st.sampled_from(["In", "Exists"]), values=few(texts)))
terms = has(matchExpressions=requirements) | has(matchFields=requirements)
pinned = st.just([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-a"]}]}])
affinities = some(
    nodeAffinity=some(
        requiredDuringSchedulingIgnoredDuringExecution=has(nodeSelectorTerms=pinned | few(terms)),
        preferredDuringSchedulingIgnoredDuringExecution=few(has(weight=st.integers(1, 100), preference=terms)),
    )
)
claims = few(st.fixed_dictionaries({"name": texts}, optional={"request": texts}))
resources = some(requests=amounts, limits=amounts, claims=claims)
mounts = few(st.fixed_dictionaries({"name": names, "mountPath": names}, optional={"readOnly": switch}))
security = some(privileged=switch, capabilities=some(add=few(texts), drop=few(texts)))
envs = few(st.fixed_dictionaries({"name": texts}, optional={"value": texts}))
containers = few(
    st.builds(
        lambda name, more: {"name": name, **more},
        texts,
        some(
            image=texts,
            command=few(texts),
            args=few(texts),
            env=envs,
            resources=resources,
            volumeMounts=mounts,
            securityContext=security,
            restartPolicy=texts,
        ),
    )
)
sources = some(
    hostPath=has(path=texts),
    emptyDir=some(medium=texts, sizeLimit=st.just("1Gi")),
    persistentVolumeClaim=has(claimName=texts),
    configMap=has(name=texts),
    ephemeral=st.just({}),
)
volumes = few(st.builds(lambda name, source: {"name": name, **source}, names, sources))
states = some(
    waiting=some(reason=texts, message=texts),
    running=some(startedAt=times),
    terminated=some(exitCode=whole, reason=texts, startedAt=times, finishedAt=times),
)
statuses = few(
    st.builds(
        lambda name, more: {"name": name, **more},
        texts,
        some(ready=switch, restartCount=whole, image=texts, imageID=texts, state=states, lastState=states),
    )
)
conditions = few(
    st.builds(
        lambda kind, more: {"type": kind, "status": "True", **more},
        st.sampled_from(["Ready", "PodScheduled", "Initialized", "ReadyToFly"]),
        some(reason=texts, message=texts, lastTransitionTime=times),
    )
)
owners = few(
    st.fixed_dictionaries(
        {"apiVersion": texts, "kind": st.sampled_from(["DaemonSet", "ReplicaSet"]), "name": texts, "uid": texts},
        optional={"controller": switch},
    )
)
metadata = st.builds(
    lambda more: {"name": "p", **more},
    some(
        namespace=texts,
        uid=texts,
        resourceVersion=texts,
        creationTimestamp=times,
        deletionTimestamp=times,
        labels=pairs,
        annotations=pairs,
        ownerReferences=owners,
    ),
)
pods = st.builds(
    lambda meta, more: {"metadata": meta, **more},
    metadata,
    some(
        spec=some(
            nodeName=st.sampled_from(["gpu-a", "", "n" * 120]),
            nodeSelector=pairs,
            affinity=affinities,
            tolerations=few(some(key=texts, operator=texts, value=texts, effect=texts, tolerationSeconds=whole)),
            containers=containers,
            initContainers=containers,
            overhead=amounts,
            resources=resources,
            resourceClaims=few(has(name=texts, resourceClaimName=texts)),
            volumes=volumes,
            schedulerName=texts,
            schedulingGates=few(has(name=texts)),
            priorityClassName=texts,
            runtimeClassName=texts,
            restartPolicy=texts,
            hostNetwork=switch,
            hostIPC=switch,
            terminationGracePeriodSeconds=whole,
        ),
        status=some(
            phase=st.sampled_from(["Pending", "Running", ""]),
            reason=texts,
            message=texts,
            startTime=times,
            nominatedNodeName=texts,
            conditions=conditions,
            containerStatuses=statuses,
            initContainerStatuses=statuses,
            resourceClaimStatuses=few(has(name=texts, resourceClaimName=texts)),
        ),
    ),
)
nodes = st.builds(
    lambda meta, more: {"metadata": meta, **more},
    metadata,
    some(
        spec=some(
            providerID=texts,
            unschedulable=switch,
            taints=few(
                st.fixed_dictionaries({"key": texts, "effect": texts}, optional={"value": texts, "timeAdded": times})
            ),
        ),
        status=some(
            capacity=amounts,
            allocatable=amounts,
            conditions=few(
                st.builds(
                    lambda more: {"type": "Ready", "status": "Unknown", **more},
                    some(reason=texts, lastHeartbeatTime=times, lastTransitionTime=times),
                )
            ),
            nodeInfo=some(kernelVersion=texts, osImage=texts, kubeletVersion=texts, architecture=texts),
            images=few(some(names=few(texts), sizeBytes=whole)),
        ),
    ),
)


@given(st.lists(pods, max_size=3))
@example(
    [{"metadata": {"name": "p"}, "spec": {"volumes": [{"name": "kube-api-access-x8k2p", "hostPath": {"path": "/"}}]}}]
)
@settings(max_examples=250, deadline=None)
def test_any_pods_are_equal_in_both_formats(items: list[dict[str, Any]]) -> None:
    from_json, from_protobuf = both(PODS, items)
    assert from_json == from_protobuf


@given(st.lists(nodes, max_size=3))
@settings(max_examples=100, deadline=None)
def test_any_nodes_are_equal_in_both_formats(items: list[dict[str, Any]]) -> None:
    from_json, from_protobuf = both(NODES, items)
    assert from_json == from_protobuf
