"""How much GPU memory a replica needs.

Stated memory is taken as it is. From parameters it is estimated: weights are parameters times the bytes of their
precision (70 billion in fp16 are 140 GB); a fifth more is assumed for key-value cache and activations where nothing
tells the cache (a rule of thumb for short contexts); and a serving runtime uses nine tenths of the memory it finds (the
default ``gpu_memory_utilization`` of vLLM, https://docs.vllm.ai/en/stable/configuration/engine_args.html, read
2026-11), the rest being CUDA context and fragmentation. Training with Adam in mixed precision keeps 16 bytes per
parameter (ZeRO, https://arxiv.org/abs/1910.02054, section 3.1).
"""

from rules.sharing.errors import PlanInvalid
from rules.sharing.model import KvCache, Need, Workload

GB_IN_GIB = 1e9 / 2**30
RUNTIME_SHARE = 0.9
CACHE_SHARE = 0.2
TRAINING_BYTES = 16.0

_BYTES = {
    "fp32": 4.0, "tf32": 4.0, "fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5, "int4": 0.5, "nf4": 0.5,
}  # fmt: skip


def weights_gb(workload: Workload) -> float | None:
    """Size of the parameters in GB; None when they or their precision are not known."""
    if workload.weights_gb is not None:
        return workload.weights_gb
    if workload.parameters_b is None or workload.precision is None:
        return None
    return round(workload.parameters_b * _BYTES[workload.precision], 3)


def kv_cache_gib(cache: KvCache) -> float:
    """Keys and values of all layers, for every token of every request at once."""
    per_token = 2 * cache.layers * cache.kv_heads * cache.head_dim * cache.bytes_per_value
    return per_token * cache.context_tokens * cache.concurrent / 2**30


def missing(workload: Workload) -> tuple[str, ...]:
    """Fields without which the memory is not known; empty when it is."""
    if workload.memory_gib is not None or workload.memory_gb is not None or workload.weights_gb is not None:
        return ("parameters_b",) if workload.task == "training" and _training_unknown(workload) else ()
    if workload.parameters_b is None:
        return ("memory_gib",)
    return ("precision",) if workload.precision is None and workload.task != "training" else ()


def _training_unknown(workload: Workload) -> bool:
    stated = workload.memory_gib is not None or workload.memory_gb is not None
    return not stated and workload.parameters_b is None


def need(workload: Workload) -> Need | None:
    """Memory of one replica; None when :func:`missing` names what would tell it.

    Raises:
        PlanInvalid: two statements of the memory that may not stand together.
    """
    if workload.memory_gib is not None and workload.memory_gb is not None:
        raise PlanInvalid("memory_gb", "give either memory_gib or memory_gb, not both")
    if missing(workload):
        return None
    weights = weights_gb(workload)
    stated = workload.memory_gib
    if stated is None and workload.memory_gb is not None:
        stated = workload.memory_gb * GB_IN_GIB
    if stated is not None:
        return Need(memory_gib=stated, minimum_gib=stated, weights_gb=weights)
    if workload.task == "training":
        held = (workload.parameters_b or 0) * TRAINING_BYTES * GB_IN_GIB
        return Need(
            memory_gib=held * (1 + CACHE_SHARE) / RUNTIME_SHARE,
            minimum_gib=held / RUNTIME_SHARE,
            weights_gb=weights,
            estimated=True,
            assumptions=("adam_16_bytes", "activations_fifth", "runtime_share"),
        )
    weights_gib = (weights or 0) * GB_IN_GIB
    cache, how = _cache(workload, weights_gib)
    return Need(
        memory_gib=(weights_gib + cache) / RUNTIME_SHARE,
        minimum_gib=weights_gib / RUNTIME_SHARE,
        weights_gb=weights,
        estimated=True,
        assumptions=(how, "runtime_share", *(("lora_frozen",) if workload.task == "lora" else ())),
    )


def _cache(workload: Workload, weights_gib: float) -> tuple[float, str]:
    if workload.kv_cache_gib is not None:
        return workload.kv_cache_gib, "cache_stated"
    if workload.kv is not None:
        return kv_cache_gib(workload.kv), "cache_worked_out"
    return weights_gib * CACHE_SHARE, "cache_fifth"
