"""What a team may tune about the rules."""

from collections.abc import Iterable, Mapping
from datetime import date
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec

from rules.findings import Severity

Glob = Annotated[str, msgspec.Meta(min_length=1)]
"""A name, in which ``*`` stands for any letters and ``?`` for one, as in a shell."""


class Exemption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Findings that the team does not want to hear of for the time being. What is left out fits everything.

    Attributes:
        rules: ids of rules.
        reason: why; shown wherever the exemption is.
        until: the last day on which it holds, in UTC. There is no exemption without an end.
        kind, namespace, name: of the object that a finding is about.
        labels: that object has all of them.
        cluster: name of the cluster.
    """

    rules: Annotated[tuple[Glob, ...], msgspec.Meta(min_length=1)]
    reason: Annotated[str, msgspec.Meta(pattern=r"\S")]
    until: date
    kind: str | None = None
    namespace: Glob | None = None
    name: Glob | None = None
    labels: Mapping[str, str] = {}
    cluster: Glob | None = None

    def __post_init__(self) -> None:
        if not self.about_objects and any(set(pattern) == {"*"} for pattern in self.rules):
            raise ValueError(
                "this would exempt everything: name rules, or say which objects (kind, namespace, name, labels)"
            )

    @property
    def about_objects(self) -> bool:
        """Whether it says which objects it is about."""
        return bool(self.kind or self.namespace or self.name or self.labels)


def matching(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """Those of ``names`` that one of the patterns fits."""
    wanted = tuple(patterns)
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in wanted)]


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
        severity: severity of all findings of a rule, by its id, in place of the rule's own.
        exemptions: findings to leave out; see also :mod:`rules.exemptions` for annotations that do the same.
    """

    idle_grace_seconds: int = 1800
    pending_grace_seconds: int = 600
    not_ready_grace_seconds: int = 900
    disabled_rules: frozenset[str] = frozenset()
    severity: Mapping[str, Severity] = {}
    exemptions: tuple[Exemption, ...] = ()
