"""The scheduler's and the autoscaler's sentences, in all wordings that are in use."""

import pytest

from rules.checks._scheduler_message import Cause, Gang, Reason, read, read_gang, read_refusal


def causes(message: str) -> list[tuple[Cause, int | None, str | None]]:
    return [(reason.cause, reason.count, reason.subject) for reason in read(message)]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "0/6 nodes are available: 6 node(s) had untolerated taint(s). no new claims to deallocate, preemption: "
            "0/6 nodes are available: 6 Preemption is not helpful for scheduling.",
            [(Cause.TAINT, 6, None)],
        ),
        (
            "0/4 nodes are available: 1 Insufficient nvidia.com/gpu, 3 node(s) had untolerated taint {sku: gpu}. "
            "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.",
            [(Cause.INSUFFICIENT, 1, "nvidia.com/gpu"), (Cause.TAINT, 3, "sku")],
        ),
        (
            "0/3 nodes are available: 3 node(s) had taint {dedicated: gpu}, that the pod didn't tolerate.",
            [(Cause.TAINT, 3, "dedicated")],
        ),
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, "
            "2 Insufficient nvidia.com/mig-1g.10gb.",
            [(Cause.TAINT, 1, "node.kubernetes.io/unreachable"), (Cause.INSUFFICIENT, 2, "nvidia.com/mig-1g.10gb")],
        ),
        (
            "0/4 nodes are available: 1 node(s) were unschedulable, "
            "3 node(s) didn't match Pod's node affinity/selector.",
            [(Cause.CORDONED, 1, None), (Cause.SELECTOR, 3, None)],
        ),
        (
            "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, "
            "1 node(s) had volume node affinity conflict.",
            [(Cause.VOLUME, 1, None), (Cause.VOLUME, 1, None)],
        ),
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 cannot allocate all claims. still not "
            "schedulable, preemption: 0/4 nodes are available: 3 No preemption victims found for incoming pod.",
            [(Cause.TAINT, 1, None), (Cause.DRA, 3, None)],
        ),
        (
            "0/2 nodes are available: 1 Too many pods, 1 node(s) didn't match pod anti-affinity rules.",
            [(Cause.INSUFFICIENT, 1, "pods"), (Cause.POD_RULES, 1, None)],
        ),
        (
            '0/6 nodes are available: persistentvolumeclaim "datasets" not found. not found',
            [(Cause.CLAIM_MISSING, None, "datasets")],
        ),
        ("Successfully assigned ml/train to gpu-1", []),
        ("", []),
    ],
)
def test_reasons_are_read_from_every_generation_of_the_message(
    message: str, expected: list[tuple[Cause, int | None, str | None]]
) -> None:
    assert causes(message) == expected


def test_an_unknown_reason_is_kept_as_it_was_written() -> None:
    assert read("0/1 nodes are available: 1 node(s) dislike Mondays.") == (
        Reason(Cause.OTHER, 1, "node(s) dislike Mondays"),
    )


def test_a_refused_scale_up_counts_node_groups() -> None:
    reasons = read_refusal(
        "pod didn't trigger scale-up (it wouldn't fit if a new node is added): 1 Insufficient nvidia.com/gpu, "
        "1 max node group size reached"
    )
    assert [(item.cause, item.count, item.subject) for item in reasons] == [
        (Cause.INSUFFICIENT, 1, "nvidia.com/gpu"),
        (Cause.GROUP_FULL, 1, None),
    ]


def test_a_gang_is_read_from_volcanos_sentence() -> None:
    sentence = "3/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 3 minAvailable."
    assert read_gang(sentence) == Gang(wanted=3, existing=2)
    assert read_gang("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.") is None
