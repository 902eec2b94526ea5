"""PodDisruptionBudgets: which pods they guard, and whether they ever let one go.

Source: kubernetes/api policy/v1 types.go; kubernetes v1.36 pkg/controller/disruption and pkg/registry/core/pod/storage
(an eviction of a pod that two budgets select is refused).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rules.facts.groups import whole
from rules.facts.model import PodFacts
from rules.facts.objects import OtherObject
from rules.findings import ObjectRef

_NO_LABELS: Mapping[str, str] = {}
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
    labelled = _Labelled((item.metadata.namespace or "", (item.spec or {}).get("selector")) for item in found)
    labelled.add(pods)
    return tuple(_budget(item, labelled) for item in found)


class _Labelled:
    """Unfinished pods that selectors may select: by namespace, and by the first label that each asks for.

    Args:
        selectors: with their namespaces.
    """

    def __init__(self, selectors: Iterable[tuple[str, object]]) -> None:
        self._every: dict[str, list[PodFacts]] = {}
        self._by_label: dict[str, dict[str, dict[str | None, list[PodFacts]]]] = {}
        for namespace, selector in selectors:
            first = _first_label(selector)
            if first is None:
                self._every.setdefault(namespace, [])
            else:
                self._by_label.setdefault(namespace, {}).setdefault(first[0], {}).setdefault(first[1], [])

    def add(self, pods: Iterable[PodFacts]) -> None:
        """Sort pods in where one of the selectors may want them."""
        wanted = {
            namespace: (self._every.get(namespace), tuple(self._by_label.get(namespace, {}).items()))
            for namespace in self._every.keys() | self._by_label.keys()
        }
        for pod in pods:
            known = wanted.get(pod.ref.namespace)
            if known is None or pod.terminal:
                continue
            every, by_label = known
            if every is not None:
                every.append(pod)
            labels = pod.pod.metadata.labels or _NO_LABELS
            for label, values in by_label:
                members = values.get(labels.get(label))
                if members is not None:
                    members.append(pod)

    def selected(self, namespace: str, selector: object) -> tuple[PodFacts, ...]:
        """Pods of a namespace that a LabelSelector selects."""
        if not isinstance(selector, Mapping):
            return ()
        first = _first_label(selector)
        pods = self._every[namespace] if first is None else self._by_label[namespace][first[0]][first[1]]
        if first is not None and len(selector["matchLabels"]) == 1 and not selector.get("matchExpressions"):
            return tuple(pods)
        return tuple(pod for pod in pods if selector_matches(selector, pod.pod.metadata.labels or {}))


def _first_label(selector: object) -> tuple[str, str | None] | None:
    """The first label that a selector asks for, where its value is text or nothing."""
    labels = selector.get("matchLabels") if isinstance(selector, Mapping) else None
    first = next(iter(labels.items()), None) if labels else None
    return first if first is not None and isinstance(first[1], str | None) else None


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
