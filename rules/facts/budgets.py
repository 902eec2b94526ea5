"""PodDisruptionBudgets: which pods they guard, and whether they ever let one go.

Source: kubernetes/api policy/v1 types.go; kubernetes v1.36 pkg/controller/disruption and pkg/registry/core/pod/storage
(an eviction of a pod that two budgets select is refused).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rules.facts.groups import whole
from rules.facts.model import PodFacts
from rules.facts.objects import OtherObject
from rules.findings import ObjectRef

_PERCENT = re.compile(r"(\d{1,3})%\Z")


class Budget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget and the unfinished pods that it selects.

    Attributes:
        allowed, healthy, desired, expected: as the status says; None where it does not.
        rule: what its spec demands, for example ``maxUnavailable: 0``.
    """

    ref: ObjectRef
    pods: tuple[PodFacts, ...]
    rule: str
    allowed: int | None
    healthy: int | None
    desired: int | None
    expected: int | None
    strict: bool

    @property
    def blocks(self) -> bool:
        """True when it lets no pod go although nothing is wrong with them, so that waiting never helps.

        One that allows nothing because pods are sick at the moment is not counted. Without a status the spec decides.
        """
        if not self.pods:
            return False
        if self.allowed is None:
            return self.strict
        if self.allowed > 0 or self.healthy is None or self.desired is None:
            return self.allowed == 0 and self.strict
        return self.healthy >= self.desired

    @property
    def cannot_count(self) -> bool:
        """True when the controller does not know how many pods there should be, so that it allows nothing, ever: the
        pods' owner has no scale, and the budget is a percentage or a ``maxUnavailable``."""
        counts = self.rule.startswith("maxUnavailable") or self.rule.endswith("%")
        return counts and self.allowed == 0 and not self.expected


def budgets(items: Iterable[OtherObject], pods: Iterable[PodFacts]) -> tuple[Budget, ...]:
    """Budgets with the unfinished pods that they select."""
    found = tuple(items)
    wanted = {item.metadata.namespace or "" for item in found}
    labelled = _Labelled(pod for pod in pods if pod.ref.namespace in wanted and not pod.terminal)
    return tuple(_budget(item, labelled) for item in found)


class _Labelled:
    """Pods by namespace, and by the labels that were asked for."""

    def __init__(self, pods: Iterable[PodFacts]) -> None:
        self._by_namespace: dict[str, list[PodFacts]] = {}
        for pod in pods:
            self._by_namespace.setdefault(pod.ref.namespace, []).append(pod)
        self._by_label: dict[tuple[str, str], dict[str | None, list[PodFacts]]] = {}

    def selected(self, namespace: str, selector: object) -> tuple[PodFacts, ...]:
        """Pods of a namespace that a LabelSelector selects."""
        if not isinstance(selector, Mapping):
            return ()
        pods: Sequence[PodFacts] = self._by_namespace.get(namespace, ())
        for label, value in (selector.get("matchLabels") or {}).items():
            pods = self._with(namespace, label).get(value, ()) if isinstance(value, str | None) else ()
            break
        return tuple(pod for pod in pods if selector_matches(selector, pod.pod.metadata.labels or {}))

    def _with(self, namespace: str, label: str) -> dict[str | None, list[PodFacts]]:
        found = self._by_label.get((namespace, label))
        if found is None:
            found = self._by_label[namespace, label] = {}
            for pod in self._by_namespace.get(namespace, ()):
                found.setdefault((pod.pod.metadata.labels or {}).get(label), []).append(pod)
        return found


def _budget(item: OtherObject, pods: _Labelled) -> Budget:
    spec, status = item.spec or {}, item.status or {}
    selected = pods.selected(item.metadata.namespace or "", spec.get("selector"))
    name = "minAvailable" if "minAvailable" in spec else "maxUnavailable"
    value = spec.get(name, 1)
    return Budget(
        ref=ObjectRef("PodDisruptionBudget", item.metadata.namespace or "", item.metadata.name),
        pods=selected,
        rule=f"{name}: {value}",
        allowed=whole(status.get("disruptionsAllowed")),
        healthy=whole(status.get("currentHealthy")),
        desired=whole(status.get("desiredHealthy")),
        expected=whole(status.get("expectedPods")),
        strict=_strict(name, value, len(selected)),
    )


def _strict(name: str, value: object, pods: int) -> bool:
    percent = _PERCENT.match(value) if isinstance(value, str) else None
    number = int(percent[1]) if percent else whole(value)
    if number is None:
        return False
    if name == "maxUnavailable":
        return number == 0
    return number >= 100 if percent else 0 < pods <= number


def selector_matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector matches: none matches nothing, an empty one everything."""
    if not isinstance(selector, Mapping):
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_matches(item, labels) for item in selector.get("matchExpressions") or ())


def _matches(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = str(expression.get("key", "")), [str(value) for value in expression.get("values") or ()]
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False
