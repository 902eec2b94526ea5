"""What an intent shows of one cluster, and the pieces that several intents are made of."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from rules import words
from rules.answers import Verdict
from rules.facts.cluster import ClusterFacts
from rules.facts.model import NodeFacts, PodFacts
from rules.findings import Evidence, Finding, ObjectRef, Report
from rules.language import Language
from rules.questions.composers import Asked
from rules.questions.words import say

MOST = 8
"""Lines per cluster; what is beyond is counted."""
NAMES = 6
HOURS_PER_MONTH = 730


class Shown(msgspec.Struct, frozen=True):
    """What one cluster shows.

    Attributes:
        lead: what is said first; empty where the lines say it all.
        lines: Markdown, one list item each; only the first :data:`MOST` are told.
        verdict: where the question can be answered by yes or no.
    """

    lead: str
    lines: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    verdict: Verdict | None = None
    after: str = ""


class View(msgspec.Struct, frozen=True):
    """One cluster, and what of it the question is about.

    Attributes:
        node, pod, namespace, gpu: names in the question, None where it names none.
    """

    facts: ClusterFacts
    report: Callable[[], Report]
    language: Language
    node: str | None
    pod: str | None
    namespace: str | None
    gpu: tuple[str, ...]

    def say(self, key: str, **values: object) -> str:
        """A sentence in the language of the question."""
        return say(key, self.language, **values)

    @property
    def gpu_nodes(self) -> tuple[NodeFacts, ...]:
        """GPU nodes that the question is about."""
        return tuple(node for node in self.facts.gpu_nodes if self.wants(node))

    def wants(self, node: NodeFacts) -> bool:
        """Whether the question is about this node."""
        if self.node is not None and not (node.name == self.node or node.name.startswith(f"{self.node}.")):
            return False
        if not self.gpu:
            return True
        model = (node.product or "").lower().replace("-", " ").split()
        return any(name.lower().split()[0] in model for name in self.gpu)

    def wants_pod(self, pod: PodFacts) -> bool:
        """Whether the question is about this pod."""
        if self.namespace is not None and pod.ref.namespace != self.namespace:
            return False
        if self.pod is not None and not (pod.ref.name == self.pod or pod.ref.name.startswith(f"{self.pod}-")):
            return False
        return self.node is None or pod.node_name == self.node

    def count(self, what: str, number: int) -> str:
        """ "3 nodes" """
        return self.say(what, count=number)

    def money(self, usd: float) -> str:
        """An amount of US dollars."""
        return words.format_money(usd, self.language)

    def names(self, refs: Iterable[ObjectRef | str]) -> str:
        """Names of objects as code, the rest as a number."""
        texts = sorted(
            {ref if isinstance(ref, str) else "/".join(filter(None, (ref.namespace, ref.name))) for ref in refs}
        )
        shown = [f"`{text}`" for text in texts[:NAMES]]
        if len(texts) > NAMES:
            shown.append(f"+{len(texts) - NAMES}")
        return words.format_list(shown, self.language)


Intent = Callable[[View], Shown]


def view_of(facts: ClusterFacts, asked: Asked) -> View:
    """The cluster as the question looks at it."""
    named = asked.part.entities
    gpu = named.get("gpu") or ()
    return View(
        facts=facts,
        report=lambda: asked.known.report(facts),
        language=asked.language,
        node=named.get("node"),
        pod=named.get("pod"),
        namespace=named.get("namespace"),
        gpu=(gpu,) if isinstance(gpu, str) else tuple(gpu),
    )


def unknown(view: View, *kinds: str) -> Shown | None:
    """What is shown where one of ``kinds`` was not read; None when all were."""
    missing = [kind for kind in kinds if not view.facts.knows(kind)]
    if not missing:
        return None
    return Shown(view.say("cluster.unread", kinds=words.format_list(missing, view.language)), verdict="unknown")


def findings_of(view: View, rules: Sequence[str]) -> tuple[list[Finding], set[str]]:
    """Findings of ``rules`` that the question is about, heaviest first, and the kinds for want of which one of them
    could not judge."""
    report = view.report()
    found = [finding for finding in report.findings if finding.rule in rules and _about(finding, view)]
    blind = {kind for skipped in report.skipped_rules if skipped.rule in rules for kind in skipped.missing}
    return found, blind


def _about(finding: Finding, view: View) -> bool:
    if view.node is None and view.pod is None and view.namespace is None:
        return True
    for ref in finding.objects:
        if view.node is not None and ref.kind == "Node" and ref.name == view.node:
            return True
        if view.pod is not None and ref.kind == "Pod" and (ref.name == view.pod or ref.name.startswith(f"{view.pod}-")):
            return True
        if view.pod is None and view.namespace is not None and ref.namespace == view.namespace:
            return True
    return False


def told(view: View, found: Sequence[Finding]) -> list[str]:
    """Findings in one line each."""
    lines = []
    for finding in found:
        shown = words.render(finding, view.language)
        line = f"**{shown.title.rstrip('.')}.** {shown.summary}"
        lines.append(" ".join(line.split()))
    return lines


def by_rules(*rules: str, nothing: str = "found.none") -> Intent:
    """An intent that is answered by the findings of some rules."""

    def show(view: View) -> Shown:
        found, blind = findings_of(view, rules)
        after = partly(view, blind)
        if not found:
            return Shown(after, verdict="unknown") if blind else Shown(view.say(nothing), verdict="no")
        evidence = tuple(item for finding in found[:MOST] for item in finding.evidence[:4])
        return Shown("", tuple(told(view, found)), evidence, "yes", after)

    return show


def partly(view: View, blind: Iterable[str]) -> str:
    """That something could not be judged, and for want of what; empty when nothing is missing."""
    kinds = sorted(blind)
    return view.say("cluster.partly", kinds=words.format_list(kinds, view.language)) if kinds else ""
