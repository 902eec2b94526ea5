"""Nodes of the big cluster: a fifth with 8 GPUs each, in pools as the clouds label them."""

from collections.abc import Iterator
from typing import Any

import msgspec

from tests.benchmarks.big_text import Object, ago, image_digest, managed, shape, uid

GPU_EVERY = 5
"""Every fifth node has GPUs."""


class Pool(msgspec.Struct, frozen=True):
    """GPU nodes that are alike."""

    name: str
    instance: str
    product: str
    family: str
    compute: str
    memory_mib: int
    driver: str
    cuda: str
    provider_id: str
    region: str
    labels: dict[str, str]
    cpu: int
    memory_gib: int


POOLS = (
    Pool("h100-eks", "p5.48xlarge", "NVIDIA-H100-80GB-HBM3", "hopper", "9.0", 81559, "570.133.20", "12.8",
         "aws:///us-east-1a/i-%(id)s", "us-east-1",
         {"eks.amazonaws.com/nodegroup": "h100-eks", "eks.amazonaws.com/capacityType": "ON_DEMAND"}, 192, 2048),
    Pool("a100-gke", "a2-highgpu-8g", "NVIDIA-A100-SXM4-40GB", "ampere", "8.0", 40960, "550.127.08", "12.4",
         "gce://acme-ml/us-central1-a/%(name)s", "us-central1",
         {"cloud.google.com/gke-nodepool": "a100-gke", "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
          "cloud.google.com/gke-accelerator-count": "8"}, 96, 680),
    Pool("nd96-aks", "Standard_ND96asr_v4", "NVIDIA-A100-SXM4-40GB", "ampere", "8.0", 40960, "535.161.08", "12.2",
         "azure:///subscriptions/0000/resourceGroups/mc_ml/providers/Microsoft.Compute/virtualMachines/%(name)s",
         "westeurope", {"agentpool": "nd96", "kubernetes.azure.com/agentpool": "nd96"}, 96, 900),
    Pool("h100-cw", "gd-8xh100ib-i128", "NVIDIA-H100-80GB-HBM3", "hopper", "9.0", 81559, "570.172.08", "12.8",
         "cw://us-east-04/%(id)s", "US-EAST-04", {"node.coreweave.cloud/class": "gpu", "gpu.nvidia.com/class": "H100"},
         128, 2048),
    Pool("l4-eks", "g6.48xlarge", "NVIDIA-L4", "ada-lovelace", "8.9", 23034, "550.163.01", "12.4",
         "aws:///us-east-1b/i-%(id)s", "us-east-1",
         {"karpenter.sh/nodepool": "l4-eks", "karpenter.sh/capacity-type": "spot"}, 192, 768),
    Pool("a100-oke", "BM.GPU4.8", "NVIDIA-A100-SXM4-40GB", "ampere", "8.0", 40960, "550.90.12", "12.4",
         "ocid1.instance.oc1.phx.%(id)s", "us-phoenix-1", {"name": "a100-oke"}, 128, 2048),
    Pool("a10g-eks", "g5.48xlarge", "NVIDIA-A10G", "ampere", "8.6", 23028, "535.183.01", "12.2",
         "aws:///eu-west-1a/i-%(id)s", "eu-west-1",
         {"eks.amazonaws.com/nodegroup": "a10g-eks", "eks.amazonaws.com/capacityType": "SPOT"}, 192, 768),
    Pool("h200-eks", "p5en.48xlarge", "NVIDIA-H200", "hopper", "9.0", 143771, "580.95.05", "13.0",
         "aws:///us-east-1c/i-%(id)s", "us-east-1", {"eks.amazonaws.com/nodegroup": "h200-eks"}, 192, 2048),
)  # fmt: skip

_CPU_TYPES = (("m6i.8xlarge", 32, 128), ("r6i.4xlarge", 16, 128), ("c7g.16xlarge", 64, 128))
_OPERANDS = ("container-toolkit", "dcgm", "dcgm-exporter", "device-plugin", "driver", "gpu-feature-discovery",
             "node-status-exporter", "operator-validator")  # fmt: skip


def is_gpu(number: int) -> bool:
    """Does node ``number`` have GPUs?"""
    return number % GPU_EVERY == 0


def pool_of(number: int) -> Pool:
    """The pool of GPU node ``number``."""
    return POOLS[(number // GPU_EVERY) % len(POOLS)]


def node_name(number: int) -> str:
    """Name of node ``number``; the names sort as the numbers within a pool."""
    return f"{pool_of(number).name if is_gpu(number) else 'cpu-workers'}-{number:05d}"


def is_broken(number: int) -> bool:
    """A GPU node whose driver lost the GPUs."""
    return is_gpu(number) and (number // GPU_EVERY) % 101 == 100


def nodes(count: int) -> Iterator[tuple[str, str]]:
    """Name and JSON text of every node, in the order of the API server."""
    shapes = {pool.name: shape(_gpu_node(pool)) for pool in POOLS}
    plain = [shape(_cpu_node(*kind)) for kind in _CPU_TYPES]
    for name, number in sorted((node_name(number), number) for number in range(count)):
        text = shapes[pool_of(number).name] if is_gpu(number) else plain[number % len(plain)]
        yield (
            name,
            text
            % {
                "name": name,
                "uid": uid(number, 1),
                "id": f"0{number * 2654435761 % (1 << 64):016x}",
                "version": 1_000_000 + number,
                "created": ago(86_400 * (3 + number % 60) + number % 3600),
                "beat": ago(number % 300),
                "ip": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
                "gpus": "0" if is_broken(number) else "8",
                "zone": "abc"[number % 3],
            },
        )


def _gpu_node(pool: Pool) -> Object:
    driver, cuda, compute = pool.driver.split("."), pool.cuda.split("."), pool.compute.split(".")
    labels = {
        **pool.labels,
        "feature.node.kubernetes.io/cpu-cpuid.AVX2": "true",
        "feature.node.kubernetes.io/cpu-cpuid.AVX512F": "true",
        "feature.node.kubernetes.io/cpu-hardware_multithreading": "true",
        "feature.node.kubernetes.io/kernel-version.full": "6.8.0-1021",
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "feature.node.kubernetes.io/system-os_release.ID": "ubuntu",
        "feature.node.kubernetes.io/system-os_release.VERSION_ID": "22.04",
        "nvidia.com/cuda.driver-version.full": pool.driver,
        "nvidia.com/cuda.driver.major": driver[0],
        "nvidia.com/cuda.driver.minor": driver[1],
        "nvidia.com/cuda.driver.rev": driver[2],
        "nvidia.com/cuda.runtime-version.full": pool.cuda,
        "nvidia.com/cuda.runtime.major": cuda[0],
        "nvidia.com/cuda.runtime.minor": cuda[1],
        "nvidia.com/gfd.timestamp": "1796068800",
        "nvidia.com/gpu.compute.major": compute[0],
        "nvidia.com/gpu.compute.minor": compute[1],
        "nvidia.com/gpu.count": "8",
        **{f"nvidia.com/gpu.deploy.{operand}": "true" for operand in _OPERANDS},
        "nvidia.com/gpu.family": pool.family,
        "nvidia.com/gpu.machine": pool.instance,
        "nvidia.com/gpu.memory": str(pool.memory_mib),
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": pool.product,
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "true" if pool.family in ("hopper", "ampere") else "false",
        "nvidia.com/mig.strategy": "single",
    }
    gpus = {"nvidia.com/gpu": "%(gpus)s"}
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    return _node(pool.instance, pool.region, pool.provider_id, labels, pool.cpu, pool.memory_gib, gpus, taints)


def _cpu_node(instance: str, cpu: int, memory_gib: int) -> Object:
    labels = {"eks.amazonaws.com/nodegroup": "cpu-workers", "eks.amazonaws.com/capacityType": "ON_DEMAND"}
    return _node(instance, "us-east-1", "aws:///us-east-1a/i-%(id)s", labels, cpu, memory_gib, {}, [])


def _node(
    instance: str,
    region: str,
    provider_id: str,
    own: dict[str, str],
    cpu: int,
    memory_gib: int,
    gpus: dict[str, str],
    taints: list[Any],
) -> Object:
    arch = "arm64" if instance.startswith("c7g") else "amd64"
    labels = {
        "beta.kubernetes.io/arch": arch,
        "beta.kubernetes.io/instance-type": instance,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": arch,
        "kubernetes.io/hostname": "%(name)s",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": instance,
        "topology.kubernetes.io/region": region,
        "topology.kubernetes.io/zone": f"{region}%(zone)s",
        **own,
    }
    annotations = {
        "csi.volume.kubernetes.io/nodeid": '{"ebs.csi.aws.com":"i-%(id)s"}',
        "node.alpha.kubernetes.io/ttl": "15",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }
    sizes = {"ephemeral-storage": "524276Mi", "hugepages-1Gi": "0", "hugepages-2Mi": "0", "pods": "250", **gpus}
    spec: Object = {"providerID": provider_id, **({"taints": taints} if taints else {})}
    status: Object = {
        "capacity": {"cpu": str(cpu), "memory": f"{memory_gib}Gi", **sizes},
        "allocatable": {"cpu": f"{cpu * 1000 - 110}m", "memory": f"{memory_gib - 2}Gi", **sizes},
        "conditions": [
            _condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "has sufficient memory available"),
            _condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "has no disk pressure"),
            _condition("PIDPressure", "False", "KubeletHasSufficientPID", "has sufficient PID available"),
            _condition("Ready", "True", "KubeletReady", "is posting ready status"),
        ],
        "addresses": [{"type": "InternalIP", "address": "%(ip)s"}, {"type": "Hostname", "address": "%(name)s"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "machineID": "ec2%(id)s",
            "systemUUID": "%(uid)s",
            "bootID": "%(uid)s",
            "kernelVersion": "6.8.0-1021",
            "osImage": "Ubuntu 22.04.5 LTS",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kubeletVersion": "v1.36.2",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": arch,
        },
        "images": [_image(number) for number in range(25)],
    }
    without_images = {key: value for key, value in status.items() if key != "images"}
    return {
        "metadata": {
            "name": "%(name)s",
            "uid": "%(uid)s",
            "resourceVersion": "%(version)s",
            "creationTimestamp": "%(created)s",
            "labels": labels,
            "annotations": annotations,
            "managedFields": [
                managed("kube-controller-manager", {"metadata": {"labels": labels, "annotations": annotations}}),
                managed("kubelet", {"status": without_images}, status=True),
            ],
        },
        "spec": spec,
        "status": status,
    }


def _condition(name: str, value: str, reason: str, says: str) -> Object:
    times = {"lastHeartbeatTime": "%(beat)s", "lastTransitionTime": "%(created)s"}
    return {"type": name, "status": value, **times, "reason": reason, "message": f"kubelet {says}"}


def _image(number: int) -> Object:
    name = f"602401143452.dkr.ecr.us-east-1.amazonaws.com/team/image-{number:02d}"
    return {
        "names": [f"{name}@sha256:{image_digest(name)}", f"{name}:v1.{number}.0"],
        "sizeBytes": 9_500_000_000 - 300_000_000 * number,
    }
