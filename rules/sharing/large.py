"""Workloads that are larger than any allowed GPU: spread over several whole ones (tensor parallelism).

The number is rounded up to a power of two up to 8 and to whole nodes of 8 beyond, because attention heads must divide
by it and fast links end at the node (vLLM, https://docs.vllm.ai/en/stable/serving/parallelism_scaling.html, 2026-11).
"""

import math
from collections.abc import Mapping, Sequence

import msgspec

from rules.sharing.devices import Device
from rules.sharing.model import HeadRoom, Need, Workload

NODE = 8


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A workload over several GPUs.

    Attributes:
        each: GPUs of one replica; least: that hold it at all, not rounded.
    """

    workload: Workload
    need: Need
    memory_gib: float
    device: Device
    each: int
    least: int


def rounded(count: int) -> int:
    """The next number of GPUs that people spread a model over."""
    if count <= NODE:
        return 1 << (count - 1).bit_length()
    return -(-count // NODE) * NODE


def spread(
    workload: Workload, need: Need, devices: Sequence[Device], costs: Mapping[str, int], headroom: HeadRoom
) -> Spread | None:
    """The cheapest way to spread it, the fewest GPUs among equals; None without a device."""
    memory = need.memory_gib if headroom == "comfortable" else need.minimum_gib
    ways = [
        Spread(
            workload=workload,
            need=need,
            memory_gib=memory,
            device=device,
            each=rounded(math.ceil(memory / device.memory_gib - 1e-9)),
            least=math.ceil(need.minimum_gib / device.memory_gib - 1e-9),
        )
        for device in devices
    ]
    return min(ways, key=lambda way: (way.each * costs[way.device.name], way.each, way.device.memory_gib), default=None)
