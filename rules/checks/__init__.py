"""The rules: one module of check and one file of words each, and the registry of them.

How to add a rule (for example ``spot-bare-pod``):

1. ``rules/checks/spot_bare_pod.py``: a docstring whose first line says what is wrong, with the headings What, Why, Fix,
   Source and a last line ``Seeds: S22``; a pure ``check(facts, policy)``; a ``RULE``::

       def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
           for node in facts.gpu_nodes:
               yield node.ref                      # so that a fault of ours names the object
               if not node.spot:
                   continue
               for pod in node.gpu_pods:
                   if pod.controller is None:
                       yield found(Severity.MEDIUM, pod.ref, node.ref, node=node.name, pod=short(pod.ref))

   :func:`~rules.checks._kit.found` takes the severity, the objects (the main one first), and the evidence by name: a
   plain value, or one with unit and source (``seconds(...)``, ``gpus(...)``, ``moment(...)``, ``of(value, source)``).
   None is "unknown" and is shown as such. ``notes=`` takes further sentences (``note("key", name=value)``), ``remedy=``
   the key of another remedy, ``cost=`` money (:func:`~rules.checks._kit.cost_of`), ``identity=`` what makes it the same
   trouble tomorrow when its objects come and go. The engine fills in rule id and fingerprint.
2. ``rules/checks/spot_bare_pod.yaml``: name, title (80 characters), detail (300), labels of the evidence, remedies,
   notes, each in en, es and it, and two examples, one that fails and one that passes; see :mod:`rules.words` for the
   grammar of sentences and ``idle_gpu_node.yaml`` for a model. Words of common values are in ``_shared.yaml``.
   They speak to a colleague: Spanish says tú, Italian says tu.
3. Its line in ``RULES`` below. Tests compare the registry with the files, run the examples and check every text.

Modules whose name starts with an underscore are tools of the rules, not rules.
"""

from rules.checks import (
    allocatable_below_capacity,
    allocatable_zero_driver,
    autoscaling_disabled_pools,
    ca_gpu_label_missing,
    ca_min_size_gpu,
    claim_allocated_unused,
    claim_pending,
    consolidation_disabled,
    cordoned_idle_gpu,
    cpu_pods_block_scale_down,
    cpu_starved_gpu,
    crashloop_gpu,
    cuda_image_without_request,
    custom_controller_blocks,
    deployment_keeps_gpu_node,
    do_not_disrupt_on_idle,
    driver_cuda_mismatch,
    expire_without_tgp,
    extended_resource_in_dra_cluster,
    fragmentation,
    gang_min_member_rollout,
    gang_min_wrong,
    gang_operator_conflict,
    gpu_node_without_taint,
    gpu_pod_pending,
    hpa_cpu_on_gpu,
    idle_gpu_node,
    image_latest,
    image_pull_slow,
    job_never_cleaned,
    karpenter_empty_node_kept,
    karpenter_never_initialized,
    karpenter_startup_taint_stuck,
    keda_min_one,
    kueue_admits_without_capacity,
    kueue_never_admits,
    local_pv_blocks,
    local_storage_blocks,
    mig_resource_mismatch,
    no_price_key,
    no_rwx_class,
    nodepool_gpu_for_cpu_pods,
    nodepool_without_limits,
    notebook_idle,
    partial_gang,
    pdb_blocks_drain,
    pdb_multiple,
    pdb_on_expired_node,
    pdb_on_jobs,
    ray_idle_cluster,
    rdma_no_ipc_lock,
    rdma_not_requested,
    right_size_inference,
    rollout_deadlock,
    rollout_deadlock_risk,
    rwo_multi_node,
    scale_from_zero_unknown_gpu,
    selector_matches_nothing,
    shared_rename_zero_key,
    shm_limit_counts_memory,
    shm_missing,
    single_gpu_no_redundancy,
    single_replica_consolidation,
    spot_bare_pod,
    spot_no_handler,
    spot_pdb_zero,
    system_pod_on_gpu,
    two_jobs_deadlock,
    untolerated_gpu_taint_pod,
    visible_devices_bypass,
    whole_node_for_small_request,
)
from rules.engine import Rule

RULES: tuple[Rule, ...] = (
    allocatable_below_capacity.RULE,
    allocatable_zero_driver.RULE,
    autoscaling_disabled_pools.RULE,
    ca_gpu_label_missing.RULE,
    ca_min_size_gpu.RULE,
    claim_allocated_unused.RULE,
    claim_pending.RULE,
    consolidation_disabled.RULE,
    cordoned_idle_gpu.RULE,
    cpu_pods_block_scale_down.RULE,
    cpu_starved_gpu.RULE,
    crashloop_gpu.RULE,
    cuda_image_without_request.RULE,
    custom_controller_blocks.RULE,
    deployment_keeps_gpu_node.RULE,
    do_not_disrupt_on_idle.RULE,
    driver_cuda_mismatch.RULE,
    expire_without_tgp.RULE,
    extended_resource_in_dra_cluster.RULE,
    fragmentation.RULE,
    gang_min_member_rollout.RULE,
    gang_min_wrong.RULE,
    gang_operator_conflict.RULE,
    gpu_node_without_taint.RULE,
    gpu_pod_pending.RULE,
    hpa_cpu_on_gpu.RULE,
    idle_gpu_node.RULE,
    image_latest.RULE,
    image_pull_slow.RULE,
    job_never_cleaned.RULE,
    karpenter_empty_node_kept.RULE,
    karpenter_never_initialized.RULE,
    karpenter_startup_taint_stuck.RULE,
    keda_min_one.RULE,
    kueue_admits_without_capacity.RULE,
    kueue_never_admits.RULE,
    local_pv_blocks.RULE,
    local_storage_blocks.RULE,
    mig_resource_mismatch.RULE,
    no_price_key.RULE,
    no_rwx_class.RULE,
    nodepool_gpu_for_cpu_pods.RULE,
    nodepool_without_limits.RULE,
    notebook_idle.RULE,
    partial_gang.RULE,
    pdb_blocks_drain.RULE,
    pdb_multiple.RULE,
    pdb_on_expired_node.RULE,
    pdb_on_jobs.RULE,
    ray_idle_cluster.RULE,
    rdma_no_ipc_lock.RULE,
    rdma_not_requested.RULE,
    right_size_inference.RULE,
    rollout_deadlock.RULE,
    rollout_deadlock_risk.RULE,
    rwo_multi_node.RULE,
    scale_from_zero_unknown_gpu.RULE,
    selector_matches_nothing.RULE,
    shared_rename_zero_key.RULE,
    shm_limit_counts_memory.RULE,
    shm_missing.RULE,
    single_gpu_no_redundancy.RULE,
    single_replica_consolidation.RULE,
    spot_bare_pod.RULE,
    spot_no_handler.RULE,
    spot_pdb_zero.RULE,
    system_pod_on_gpu.RULE,
    two_jobs_deadlock.RULE,
    untolerated_gpu_taint_pod.RULE,
    visible_devices_bypass.RULE,
    whole_node_for_small_request.RULE,
)

__all__ = ["RULES"]
