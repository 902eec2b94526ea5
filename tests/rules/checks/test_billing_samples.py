"""What the rules on billing, evictions and spot nodes say of the sample clusters and re-made bug reports.

The table was written after reading each cluster. It is complete: a finding that it does not name is a false alarm.
"""

import pytest

from rules.findings import ObjectRef, Severity
from rules.language import LANGUAGES
from rules.words import render
from tests.rules.checks.test_samples import SAMPLES, audited, the

RULES = frozenset(
    {
        "autoscaling-disabled-pools",
        "ca-gpu-label-missing",
        "ca-min-size-gpu",
        "consolidation-disabled",
        "cordoned-idle-gpu",
        "cpu-pods-block-scale-down",
        "custom-controller-blocks",
        "deployment-keeps-gpu-node",
        "do-not-disrupt-on-idle",
        "expire-without-tgp",
        "gpu-node-without-taint",
        "job-never-cleaned",
        "karpenter-empty-node-kept",
        "karpenter-never-initialized",
        "karpenter-startup-taint-stuck",
        "keda-min-one",
        "local-pv-blocks",
        "local-storage-blocks",
        "no-price-key",
        "nodepool-gpu-for-cpu-pods",
        "nodepool-without-limits",
        "notebook-idle",
        "pdb-blocks-drain",
        "pdb-multiple",
        "pdb-on-expired-node",
        "pdb-on-jobs",
        "ray-idle-cluster",
        "right-size-inference",
        "single-gpu-no-redundancy",
        "single-replica-consolidation",
        "spot-bare-pod",
        "spot-no-handler",
        "spot-pdb-zero",
        "system-pod-on-gpu",
        "whole-node-for-small-request",
    }
)
EKS = "ip-192-0-2-{}.eu-west-1.compute.internal"
IDLE_BILL = "ip-192-0-2-{}.ec2.internal"
SAID: dict[str, dict[str, list[str]]] = {
    "amd-mi300x": {"gpu-node-without-taint": ["mi300x-node-01"], "no-price-key": ["mi300x-node-01"]},
    "broken-driver-not-ready": {"no-price-key": ["gpu-srv-a1"]},
    "coreweave-h100-infiniband": {"autoscaling-disabled-pools": ["g0a1c52"], "cordoned-idle-gpu": ["g0a1c54"]},
    "doks-single-h100": {"single-gpu-no-redundancy": ["pool-gpu-h100-tx3k9"]},
    "dra-1-35": {"no-price-key": ["dra-worker-1"]},
    "eks-managed-spot-ondemand": {
        "ca-gpu-label-missing": [EKS.format(21)],
        "cpu-pods-block-scale-down": [EKS.format(12)],
        "gpu-node-without-taint": [EKS.format(11)],
        "local-storage-blocks": ["billing-cache-0"],
        "spot-bare-pod": ["finetune-llama-run7"],
        "spot-pdb-zero": ["finetune-pdb"],
    },
    "k3s-joined-vms-no-operator": {
        "autoscaling-disabled-pools": ["vm-gpu-4090-01"],
        "gpu-node-without-taint": ["vm-gpu-4090-01"],
        "no-price-key": ["vm-gpu-4090-01"],
        "single-gpu-no-redundancy": ["vm-gpu-4090-01"],
    },
    "karpenter-idle-bill": {
        "consolidation-disabled": ["gpu-inference", "gpu-research"],
        "karpenter-never-initialized": [IDLE_BILL.format(145)],
        "nodepool-without-limits": ["gpu-research"],
        "notebook-idle": ["jupyter-user-a"],
        "ray-idle-cluster": ["ray-exp"],
        "right-size-inference": [IDLE_BILL.format(143)],
        "whole-node-for-small-request": [IDLE_BILL.format(141)],
    },
    "oke-a10-a100-pools": {"autoscaling-disabled-pools": ["192.0.2.91"], "spot-bare-pod": ["sweep-a"]},
    "openshift-gpu-operator": {
        "cordoned-idle-gpu": ["ocp-lab-7xk2p-gpu-us-east-2a-8w4dn"],
        "gpu-node-without-taint": ["ocp-lab-7xk2p-gpu-us-east-2a-5lq9z"],
        "notebook-idle": ["wb-team-a"],
    },
    "01-karpenter-gpu-node-stays-empty": {"karpenter-never-initialized": ["ip-10-20-31-77.eu-west-1.compute.internal"]},
    "06-allocatable-one-but-pod-waits": {"gpu-node-without-taint": ["lab-gpu-2"], "no-price-key": ["lab-gpu-2"]},
    "10-device-plugin-restarted-269-times": {"no-price-key": ["onprem-gpu-1"]},
    "15-g5-node-without-nvml-library": {
        "karpenter-never-initialized": ["ip-10-4-55-3.ap-northeast-2.compute.internal"]
    },
    "18-eight-h100-seven-allocatable": {"no-price-key": ["h100-rack2-04"]},
    "20-gang-waits-for-a-third-member": {"no-price-key": ["train-1"]},
    "24-cuda-image-on-another-vendors-card": {"no-price-key": ["ryzen-w7900"]},
    "26-cuda-pod-without-a-gpu-request": {"no-price-key": ["ws-gpu-3"], "single-gpu-no-redundancy": ["ws-gpu-3"]},
    "27-two-gpu-server-crashes-one-gpu-server-runs": {"single-gpu-no-redundancy": ["l4x2-node"]},
    "29-gpu-node-stays-with-no-users": {"deployment-keeps-gpu-node": ["comfyui"]},
}


@pytest.mark.parametrize("name", list(SAMPLES))
def test_exactly_these_findings_are_made(name: str) -> None:
    found: dict[str, list[str]] = {}
    for item in audited(name)[1].findings:
        if item.rule in RULES:
            found.setdefault(item.rule, []).append(item.objects[0].name)
    assert {rule: sorted(names) for rule, names in found.items()} == SAID.get(name, {})


def test_the_service_that_nobody_scales_is_named_and_its_gpu_is_not_called_idle() -> None:
    found = the("29-gpu-node-stays-with-no-users", "deployment-keeps-gpu-node", "comfyui")
    assert ObjectRef("Node", "", "ip-10-0-77-12.us-west-2.compute.internal") in found.objects
    said = render(found, "en")
    assert "60s" in said.detail
    assert "cannot be seen" in said.detail
    assert "kubectl scale deployment -n default comfyui --replicas 0" in said.remedy


def test_karpenters_own_word_is_told() -> None:
    found = the(
        "01-karpenter-gpu-node-stays-empty", "karpenter-never-initialized", "ip-10-20-31-77.eu-west-1.compute.internal"
    )
    for language in LANGUAGES:
        assert "didn't register" in render(found, language).detail


def test_a_large_machine_with_one_notebook_is_the_dearest_of_them() -> None:
    found = the("karpenter-idle-bill", "whole-node-for-small-request", IDLE_BILL.format(141))
    assert found.severity == Severity.HIGH
    assert found.value("smaller") is None
