"""What a team may tune about the rules."""

import msgspec


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Thresholds of the rules. All durations are in seconds.

    Attributes:
        idle_grace_seconds: how long a GPU node may stand without a GPU pod before it is called idle. 30 minutes leaves
            room for autoscalers (Cluster Autoscaler waits 10 minutes, GKE and AKS likewise) and for image pulls.
        pending_grace_seconds: how long a GPU pod may wait for a node before it is called stuck; node start-up plus
            driver installation takes up to 10 minutes on most providers.
        not_ready_grace_seconds: how long a GPU node may lack its GPU resource after it came up (driver and device
            plugin start in this time), and how long allocatable may lag behind capacity.
        disabled_rules: ids of rules that are not evaluated.
    """

    idle_grace_seconds: int = 1800
    pending_grace_seconds: int = 600
    not_ready_grace_seconds: int = 900
    disabled_rules: frozenset[str] = frozenset()
