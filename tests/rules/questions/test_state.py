"""What is true in the connected clusters is told with the answer: grouped, dated, and unknown where it is unknown."""

import pytest

from rules.answers import Answer
from rules.facts.cluster import ClusterFacts, GpuResource, Sharing
from rules.findings import Unreadable
from rules.language import LANGUAGES, Language
from rules.questions import answer
from rules.questions.state import MAX_CLUSTERS, MAX_LINES, describe
from tests.rules.questions.facts import DRIVER_LABEL, cluster, gpu_node, gpu_pod, other

SHARING_LABEL = "nvidia.com/gpu.sharing-strategy"


def values(reply: Answer, name: str) -> list[object]:
    return [item.value for item in reply.evidence if item.name == name]


def sharing_answer(facts: ClusterFacts, text: str = "can two pods share one gpu?") -> Answer:
    return answer(text, clusters=[facts])


def sliced(name: str, units: int, used: int, **more: object) -> object:
    resource = GpuResource("nvidia.com/gpu", "nvidia", "device", units, units, used)
    mode = Sharing("time-slicing", replicas=4, source=SHARING_LABEL)
    return gpu_node(name, pool="a100", resources=[resource], sharing=mode, **more)  # type: ignore[arg-type]


def test_time_sliced_nodes_of_a_pool_are_one_line_with_free_units() -> None:
    nodes = [sliced(f"n{index}", 16, 6) for index in range(12)]
    reply = sharing_answer(cluster(nodes=nodes))  # type: ignore[arg-type]
    assert "12 nodes of pool `a100`: time-slicing ×4, units: 120 of 192 free" in reply.text
    assert values(reply, "sharing_mode") == ["time-slicing"]
    assert values(reply, "replicas") == [4]
    assert values(reply, "free_units") == [120]
    assert all("prod" in (item.source or "") for item in reply.evidence)


def test_units_on_nodes_that_take_no_pods_are_not_free() -> None:
    nodes = [sliced("a", 4, 0), sliced("b", 4, 0, unschedulable=True), sliced("c", 4, 0, ready=False)]
    reply = sharing_answer(cluster(nodes=nodes))  # type: ignore[arg-type]
    assert "4 of 12 free; 8 on nodes that take no new pods" in reply.text


def test_without_pods_nothing_is_called_free() -> None:
    reply = sharing_answer(cluster(nodes=[gpu_node("n1", gpus=8)], read=["Node"]))
    assert "how many are free is unknown" in reply.text
    assert values(reply, "free_units") == [None]


@pytest.mark.parametrize(
    ("sharing", "said"),
    [
        (Sharing("none", source=SHARING_LABEL), "whole GPUs, no sharing"),
        (Sharing("mps", replicas=10, source=SHARING_LABEL), "MPS ×10"),
        (Sharing("time-slicing", source=SHARING_LABEL), "time-slicing (replicas unknown)"),
        (
            Sharing("mig-mixed", profiles={"1g.10gb": 7}, source="status.allocatable"),
            "MIG, slices: 1 of 1 free (`1g.10gb`)",
        ),
        (Sharing("partitioned", profiles={"cpx": 8}), "AMD partitions"),
        (Sharing("hami"), "shared by HAMi"),
        (Sharing(None), "shared or not is unknown, nothing on the node tells"),
    ],
)
def test_each_way_of_sharing_is_named_and_the_unknown_one_too(sharing: Sharing, said: str) -> None:
    reply = sharing_answer(cluster(nodes=[gpu_node("n1", sharing=sharing)]))
    assert f"`n1`: {said}" in reply.text
    assert values(reply, "sharing_mode") == [sharing.mode]


def test_a_node_that_advertises_nothing_says_so() -> None:
    reply = sharing_answer(cluster(nodes=[gpu_node("n1", resources=[], sharing=Sharing(None))]))
    assert "`n1`: no GPU advertised" in reply.text
    assert values(reply, "sharing_mode") == [None]
    assert values(reply, "free_units") == []


def test_drivers_are_told_per_pool_with_the_label_they_were_read_from() -> None:
    nodes = [
        gpu_node("a1", pool="a100", driver="550.54.15"),
        gpu_node("a2", pool="a100", driver="550.54.15"),
        gpu_node("l1", pool="l4", driver=None),
        gpu_node("x1", driver=None, resources=[]),
        gpu_node("z1", resources=[GpuResource("nvidia.com/gpu", "nvidia", "device", 8, 0, 0)]),
    ]
    reply = answer("are the drivers preinstalled?", clusters=[cluster(nodes=nodes)])
    assert f"2 nodes of pool `a100`: driver 550.54.15 (from `{DRIVER_LABEL}`)" in reply.text
    assert "`l1`: driver unknown, no label tells it" in reply.text
    assert "`x1`: driver unknown, no label tells it; GPU not advertised" in reply.text
    assert "`z1`: driver 550.54.15" in reply.text
    assert "GPU advertised, but none allocatable" in reply.text
    assert set(values(reply, "driver_version")) == {"550.54.15", None}
    assert sorted(map(str, values(reply, "gpu_advertised"))) == ["no", "none-allocatable", "yes", "yes"]


def test_single_nodes_of_several_pools_that_agree_are_one_line() -> None:
    nodes = [gpu_node("a", pool="p1"), gpu_node("b", pool="p2"), gpu_node("c", pool="p3", driver="570.1.2")]
    text = answer("are the drivers preinstalled?", clusters=[cluster(nodes=nodes)]).text
    assert "2 nodes (`a`, `b`): driver 550.54.15" in text
    assert "`c`: driver 570.1.2" in text


def test_the_moment_of_the_observation_is_told() -> None:
    text = answer("are the drivers preinstalled?", clusters=[cluster("prod", [gpu_node("a")])]).text
    assert "**In prod, as of 2026-11-30 09:00 UTC**" in text


def test_the_size_of_a_connected_cluster_is_told_where_kubernetes_is_in_doubt() -> None:
    pods = [gpu_pod("p", "n1")]
    facts = cluster(nodes=[gpu_node("n1", gpus=8, pods=pods), gpu_node("n2", gpus=8)], pods=pods)
    reply = answer("is kubernetes worth it for one gpu?", clusters=[facts])
    assert "16 GPUs on 2 GPU nodes; 1 pod holds a GPU" in reply.text
    assert "You already run this cluster" in reply.text
    assert (values(reply, "gpus"), values(reply, "gpu_pods")) == ([16], [1])


def test_an_unknown_number_of_gpus_is_not_counted_as_none() -> None:
    some = answer(
        "is kubernetes worth it for one gpu?",
        clusters=[cluster(nodes=[gpu_node("a", gpus=2), gpu_node("b", gpus=None)])],
    )
    assert "at least 2 GPUs on 2 GPU nodes" in some.text
    none = answer(
        "is kubernetes worth it for one gpu?", clusters=[cluster(nodes=[gpu_node("b", gpus=None)], read=["Node"])]
    )
    assert "an unknown number of GPUs on 1 GPU node; which pods use them is unknown" in none.text
    assert values(none, "gpus") == [None]


def multinode(facts: ClusterFacts) -> Answer:
    return answer("what should I check for multi-node training?", clusters=[facts])


def test_what_multi_node_training_needs_is_looked_up() -> None:
    nodes = [
        gpu_node("h1", gpus=8, allocatable={"rdma/hca_shared_devices_a": "63", "cpu": "96"}),
        gpu_node("h2", gpus=8, allocatable={"vpc.amazonaws.com/efa": "32"}),
        gpu_node("l1", gpus=1, allocatable={"rdma/ib": "0"}),
    ]
    pods = [gpu_pod("kueue-controller-manager-7", "l1", 0), gpu_pod("worker-0", "h1", 8, scheduler="volcano")]
    facts = cluster(
        nodes=nodes,
        pods=pods,
        others={
            "PyTorchJob": [other("PyTorchJob", "train", "kubeflow.org/v1")],
            "PersistentVolumeClaim": [other("PersistentVolumeClaim", "d", accessModes=["ReadWriteMany"])],
        },
        read=["Node", "Pod", "PersistentVolumeClaim"],
    )
    text = multinode(facts).text
    assert "nodes with 8 or more GPUs: 2" in text
    assert "fast network advertised on 2 of 3 GPU nodes: `rdma/hca_shared_devices_a`, `vpc.amazonaws.com/efa`" in text
    assert "gang scheduler or queue seen: Kueue, Volcano" in text
    assert "training operator seen: Kubeflow" in text
    assert "shared volumes (ReadWriteMany) claimed: 1" in text


def test_software_that_was_not_seen_is_unknown_until_the_definitions_were_read() -> None:
    nodes = [gpu_node("h1", gpus=None)]
    unknown = multinode(cluster(nodes=nodes))
    assert "gang scheduler: none seen, unknown" in unknown.text
    assert "training operator: none seen, unknown" in unknown.text
    assert "shared storage: unknown" in unknown.text
    assert "GPU count unknown on 1" in unknown.text
    assert values(unknown, "gang_seen") == [None]
    known = multinode(cluster(nodes=nodes, read=["Node", "Pod", "CustomResourceDefinition"]))
    assert "gang scheduler: none installed" in known.text
    assert values(known, "gang_seen") == [[]]


def test_custom_resource_definitions_tell_what_is_installed() -> None:
    names = ["mpijobs.kubeflow.org", "podgroups.scheduling.volcano.sh"]
    definitions = [other("CustomResourceDefinition", name) for name in names]
    facts = cluster(
        nodes=[gpu_node("n")],
        others={"CustomResourceDefinition": definitions},
        read=["Node", "Pod", "CustomResourceDefinition"],
    )
    text = multinode(facts).text
    assert "queue seen: Volcano" in text
    assert "operator seen: MPI operator" in text


def test_a_cluster_without_gpu_nodes_and_one_that_could_not_be_read_differ() -> None:
    empty = sharing_answer(cluster(nodes=[]))
    assert "no GPU node found" in empty.text
    assert values(empty, "gpu_nodes") == [0]
    blind = sharing_answer(cluster(read=["Pod"], unreadable=[Unreadable("Node", "forbidden", "nodes is forbidden")]))
    assert "its nodes could not be read" in blind.text
    assert values(blind, "gpu_nodes") == [None]


def test_many_pools_and_many_clusters_stay_short() -> None:
    nodes = [gpu_node(f"n{index}", pool=f"p{index}", driver=f"550.{index}") for index in range(40)]
    clusters = [cluster(f"c{index}", nodes) for index in range(12)]
    for topic in ("drivers_preinstalled", "multiple_workloads_per_gpu", "single_gpu_worth_it", "multinode_checklist"):
        for language in LANGUAGES:
            text, evidence = describe(topic, clusters, language)
            assert len(text) < 2600
            assert text.count("\n- ") <= MAX_CLUSTERS * (MAX_LINES + 1)
            assert "c11" in text
            assert evidence
    text, _ = describe("drivers_preinstalled", clusters[:1], "en")
    assert "… and 34 more groups of nodes" in text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "topic", ["drivers_preinstalled", "multiple_workloads_per_gpu", "single_gpu_worth_it", "multinode_checklist"]
)
def test_the_state_is_told_in_the_language_of_the_answer(topic: str, language: Language) -> None:
    facts = cluster(nodes=[sliced("a", 4, 1), gpu_node("b", gpus=8, driver=None, sharing=Sharing(None))])  # type: ignore[list-item]
    texts = {tongue: describe(topic, [facts], tongue)[0] for tongue in LANGUAGES}
    assert len(set(texts.values())) == len(LANGUAGES)
    assert "{" not in texts[language]
    assert len({text.count("\n") for text in texts.values()}) == 1


def test_a_topic_without_a_state_and_no_clusters_add_nothing() -> None:
    assert describe("drivers_preinstalled", [], "en") == ("", ())
    assert describe("spot", [cluster(nodes=[gpu_node("a")])], "en") == ("", ())
