"""Whole GPU, time-slicing, MPS or MIG: which one, and how many GPUs that takes.

``rules.sharing.plan.plan(request: SharingRequest) -> SharingPlan`` is the way in; its nouns are in
``rules.sharing.model``, the configuration that carries a plan out in ``rules.sharing.manifests``, its words in
``rules.sharing.words``.
"""
