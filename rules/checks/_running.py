"""Since when a pod runs, and whether the part of it that wanted a GPU still does."""

from datetime import datetime

from rules.facts.cluster import PodFacts
from rules.facts.objects import Container
from rules.facts.resources import gpu_name


def running_since(pod: PodFacts) -> datetime | None:
    """When the pod was started; its creation where the status does not say."""
    started = pod.pod.status.startTime if pod.pod.status else None
    return started or pod.pod.metadata.creationTimestamp


def gpu_containers(pod: PodFacts) -> list[str]:
    """Names of the containers that ask for a GPU."""
    return [item.name for item in (pod.pod.spec.containers if pod.pod.spec else None) or () if _wants_gpu(item)]


def _wants_gpu(container: Container) -> bool:
    limits = (container.resources.limits if container.resources else None) or {}
    return any(gpu_name(name) and str(amount) != "0" for name, amount in limits.items())


def gpu_work_ended(pod: PodFacts) -> datetime | None:
    """When the last container that asked for a GPU ended for good, while another container goes on; None while one
    runs, waits or will be started again."""
    statuses = {item.name: item for item in (pod.pod.status.containerStatuses if pod.pod.status else None) or ()}
    wanted = gpu_containers(pod)
    if pod.phase != "Running" or not wanted:
        return None
    policy = (pod.pod.spec.restartPolicy if pod.pod.spec else None) or "Always"
    ends = []
    for name in wanted:
        state = statuses[name].state if name in statuses else None
        ended = state.terminated if state else None
        restarts = policy == "Always" or (policy == "OnFailure" and ended is not None and ended.exitCode != 0)
        if ended is None or ended.finishedAt is None or restarts:
            return None
        ends.append(ended.finishedAt)
    goes_on = any(item.state and item.state.running for name, item in statuses.items() if name not in wanted)
    return max(ends) if goes_on else None
