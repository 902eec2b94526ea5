"""The nouns of the sharing planner: what is asked, and the plan that comes back.

Memory is in GiB (2**30 bytes) unless a name says ``gb`` (10**9 bytes: how weights are quoted). Money is US dollars per
hour. None is "unknown", never "no".
"""

from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4", "int4", "nf4"]
Isolation = Literal["none", "memory", "fault"]
Task = Literal["inference", "lora", "training"]
Mode = Literal["whole", "mig", "mps", "time-slicing"]
Objective = Literal["fewest", "cheapest"]
HeadRoom = Literal["comfortable", "minimum"]

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
MODES: tuple[Mode, ...] = get_args(Mode)


class KvCache(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What tells the size of a transformer's key-value cache.

    Attributes:
        layers, kv_heads, head_dim: of the model's configuration.
        context_tokens: of one request, prompt and answer.
        concurrent: requests at once.
        bytes_per_value: 2 for fp16 and bf16, 1 for fp8.
    """

    layers: int
    kv_heads: int
    head_dim: int
    context_tokens: int
    concurrent: int = 1
    bytes_per_value: float = 2


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model or other program that wants a GPU, or a share of one.

    Its memory is known by one of: `memory_gib` or `memory_gb` (what the process holds at its peak, as nvidia-smi shows
    it, CUDA context included), `weights_gb`, or `parameters_b` with `precision`.

    Attributes:
        name: unique in the request.
        replicas: pods that run it.
        parameters_b: billions of parameters (all of them, for a mixture of experts).
        kv, kv_cache_gib: room for the key-value cache; without either a fifth of the weights is assumed.
        load: share of one GPU of the kind it is planned on that it keeps busy on average, 0 to 1; None: unknown.
        isolation: what must not be shared: memory (no neighbour can use it up), fault (no neighbour's crash is felt).
        latency_sensitive: answers are waited for, so taking turns with others (time-slicing) is ruled out.
        profile: MIG profile that it must have, where that is decided already.
        media: needs the video, JPEG or optical-flow engines.
    """

    name: str
    replicas: int = 1
    memory_gib: float | None = None
    memory_gb: float | None = None
    weights_gb: float | None = None
    parameters_b: float | None = None
    precision: Precision | None = None
    task: Task = "inference"
    kv: KvCache | None = None
    kv_cache_gib: float | None = None
    load: float | None = None
    isolation: Isolation = "none"
    latency_sensitive: bool = False
    profile: str | None = None
    media: bool = False


class SharingRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be planned.

    Attributes:
        models: the workloads.
        gpus: names of the GPUs that may be used, by any spelling; ``any`` stands for every data-centre GPU known.
        modes: ways of sharing that may be used; whole GPUs are always allowed to hold what fits nothing else.
        prices: US dollars per GPU-hour by the names of `gpus`; None or absent: not known.
        objective: fewest GPUs, or lowest price (only among GPUs with a price).
        headroom: whether an estimated model gets room for its cache and runtime (comfortable) or just loads (minimum).
    """

    models: tuple[Workload, ...]
    gpus: tuple[str, ...] = ("any",)
    modes: tuple[Mode, ...] = MODES
    prices: Mapping[str, float | None] = {}
    objective: Objective = "fewest"
    headroom: HeadRoom = "comfortable"


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of one replica.

    Attributes:
        memory_gib: that a GPU (or several together) must have for it.
        minimum_gib: below this it does not even load.
        weights_gb: of the parameters alone; None where the memory was stated instead.
        estimated: worked out from parameters, not measured.
        assumptions: keys of the words that say what was assumed.
    """

    memory_gib: float
    minimum_gib: float
    weights_gb: float | None = None
    estimated: bool = False
    assumptions: tuple[str, ...] = ()


class Sizing(msgspec.Struct, frozen=True, kw_only=True):
    """One workload by itself, on the GPU that the plan puts it on (the first allowed one where it is on none).

    Attributes:
        gpu: that the numbers are for; None where no allowed GPU can hold it, or where something is missing.
        mode, profile: how it gets its share there.
        fits: one replica runs on one such GPU; None: unknown.
        tight: it fits, but little is left: below 15 % of the memory, or less cache than is usual.
        per_gpu: replicas of this workload alone that one GPU holds in that mode; 0 where one needs several GPUs.
        gpus_per_replica: GPUs that one replica spreads over with head-room; min_gpus_per_replica: so that it loads.
        gpus: GPUs for all its replicas by itself; min_gpus: the least that lets them load.
        spare_gib: memory left on the GPUs of a replica, or on its slice or share.
        needs_more: fields without which it cannot be sized.
    """

    name: str
    replicas: int
    need: Need | None = None
    weights_gb: float | None = None
    gpu: str | None = None
    mode: Mode | None = None
    profile: str | None = None
    fits: bool | None = None
    tight: bool | None = None
    per_gpu: int | None = None
    gpus_per_replica: int | None = None
    min_gpus_per_replica: int | None = None
    gpus: int | None = None
    min_gpus: int | None = None
    spare_gib: float | None = None
    needs_more: tuple[str, ...] = ()


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A replica on a GPU.

    Attributes:
        model, replica: whose; replicas count from 0.
        need_gib: that it takes there (its part, where it spreads over several GPUs).
        profile, start, size: of its MIG slice; start and size in memory slices. None outside MIG.
        room_gib: memory that is its own: of the slice, the MPS share or the GPU; None: shared without limit.
    """

    model: str
    replica: int
    need_gib: float
    profile: str | None = None
    start: int | None = None
    size: int | None = None
    room_gib: float | None = None


class GpuUse(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU of the plan.

    Attributes:
        number: counts from 1 over the whole plan.
        gpu: its kind.
        shares: replicas the device plugin must advertise for it: 1 for a whole GPU, clients of time-slicing or MPS, MIG
            slices.
        placed: what runs on it.
        free_gib: memory nobody was given.
        free_profiles: MIG slices that would still fit, largest first.
    """

    number: int
    gpu: str
    mode: Mode
    shares: int
    placed: tuple[Placed, ...]
    free_gib: float
    free_profiles: tuple[str, ...] = ()


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of the words: its key, and the values in it."""

    key: str
    values: Mapping[str, str | int | float | list[str]] = {}


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """Another way that was worked out: all shareable workloads on one kind of GPU in one mode.

    Attributes:
        gpus: it takes, or None where it cannot be done.
        optimal: that number is proven to be the least.
        usd_hour: its price; None where the price is not known.
        reasons: why it was not taken, or why it cannot be done.
    """

    gpu: str
    mode: Mode
    gpus: int | None
    optimal: bool
    usd_hour: float | None
    reasons: tuple[Remark, ...]


class SharingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan.

    Attributes:
        complete: every workload has its place; False where something is missing (`needs_more`) or fits nowhere
            (`unplaced`).
        gpus: GPUs in all; by_gpu: by kind.
        uses: what each GPU holds.
        optimal: no allowed plan does with fewer (or costs less).
        lower_bound: what no plan can go below, in GPUs or, for the cheapest, in dollars per hour.
        whole_gpus: GPUs without any sharing, on the best kind for it; None where some workload fits none.
        usd_hour, whole_usd_hour: prices of both; None where a price is not known.
        saved_gpus, saved_usd_hour: against whole GPUs.
        sizings: every workload by itself, in the order of the request.
        needs_more: fields to ask for, as in ``models[0].precision``.
        unplaced: names of workloads that no allowed GPU can hold.
        caveats: what to know before doing it.
    """

    complete: bool
    gpus: int
    by_gpu: Mapping[str, int]
    uses: tuple[GpuUse, ...]
    objective: Objective
    optimal: bool
    lower_bound: float
    whole_gpus: int | None
    usd_hour: float | None
    whole_usd_hour: float | None
    saved_gpus: int | None
    saved_usd_hour: float | None
    sizings: tuple[Sizing, ...]
    needs_more: tuple[str, ...]
    unplaced: tuple[str, ...]
    caveats: tuple[Remark, ...]
    alternatives: tuple[Alternative, ...]
