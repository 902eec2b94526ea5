"""What an audit says: findings, their evidence and cost, and the report that holds them."""

import hashlib
import heapq
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Literal

import msgspec

from rules.language import Text


class Severity(StrEnum):
    """How much a finding matters; the order of the members is the order of weight.

    ``info``: good to know, nothing to do. ``low``: untidy, may confuse people. ``medium``: costs money or will fail at
    the next change. ``high``: something that is paid for does not work, or a workload fails now. ``critical``: a
    whole group of nodes or all GPU work of the cluster is down.
    """

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for info to 4 for critical."""
        return list(Severity).index(self)


class ObjectRef(msgspec.Struct, frozen=True, order=True):
    """A Kubernetes object by kind, namespace ("" when it has none) and name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


def name_list(refs: Iterable[ObjectRef], limit: int = 5) -> list[str]:
    """Sorted short names (``namespace/name``); beyond ``limit`` the rest is one last entry ``+N``."""
    every = {(ref.namespace, ref.name) for ref in refs}
    shown = ["/".join(filter(None, parts)) for parts in heapq.nsmallest(limit, every)]
    return shown if len(every) <= limit else [*shown, f"+{len(every) - limit}"]


Unit = Literal["", "s", "GPU", "GiB", "MiB", "USD/h", "USD", "date"]
"""Unit of a value: "" a plain word or number, "s" a duration in seconds, "date" an RFC 3339 time."""


class Evidence(msgspec.Struct, frozen=True):
    """A named value that a finding rests on.

    Attributes:
        name: snake_case; the words of the rule use it as a placeholder.
        value: None means unknown and is shown as such.
        unit: how to format it for people.
        source: where it was read: a field path of an object, or a data row with its date.
    """

    name: str
    value: str | int | float | bool | list[str] | None
    unit: Unit = ""
    source: str | None = None


class Cost(msgspec.Struct, frozen=True):
    """Money that a finding is about.

    Attributes:
        usd_hour: what goes on being paid, per hour.
        usd_so_far: what it has cost since it began; None when the beginning is unknown.
        basis: ``contract``, ``list`` (exact list price), ``other_region`` or ``estimate``.
        as_of: date of the price (ISO), None when unknown.
        source: where the price was read.
    """

    usd_hour: float
    usd_so_far: float | None
    basis: Literal["contract", "list", "other_region", "estimate"]
    as_of: str | None
    source: str


class Note(msgspec.Struct, frozen=True):
    """One more sentence of a finding: a key of the rule's ``notes`` words and the values it needs."""

    key: str
    values: tuple[Evidence, ...] = ()


class OwnWords(msgspec.Struct, frozen=True, kw_only=True):
    """Words of a rule, as :mod:`rules.words` explains them.

    Attributes:
        name: what is wrong, without values, for lists of rules.
        title, detail: headline and first paragraph of a finding.
        evidence: label of every value that a finding or one of its notes carries; only these may be placeholders.
        remedies: what to do, by key, with the exact command or manifest; it may use the values of notes too.
        notes: further sentences, by key.
        values: words for values out of a closed set, by evidence name and value.
    """

    name: Text
    title: Text
    detail: Text
    evidence: dict[str, Text]
    remedies: dict[str, Text]
    notes: dict[str, Text] = {}
    values: dict[str, dict[str, Text]] = {}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One trouble found by one rule. Words are not in it: :mod:`rules.words` renders them per language.

    Attributes:
        rule: id of the rule.
        severity: see :class:`Severity`.
        objects: what it is about, the main object first; never empty unless the rule is about the whole cluster.
        evidence: what it rests on.
        notes: further sentences, in order.
        cost: money, where it is known.
        remedy: which of the rule's remedies applies.
        identity: what makes it the same trouble tomorrow where its objects come and go, for example the workload that
            owns the pods; empty when it is the objects themselves.
        fingerprint: stable id of this trouble, set by the engine: the same rule on the same objects (or identity) in
            the same cluster gives the same one tomorrow, whatever the numbers say by then.
        usual_severity: what the rule itself says, where the team wants another severity; None where it does not.
        words: of a rule of the team's own, which has no file of words and may be gone tomorrow.
    """

    rule: str
    severity: Severity
    objects: tuple[ObjectRef, ...]
    evidence: tuple[Evidence, ...]
    notes: tuple[Note, ...] = ()
    cost: Cost | None = None
    remedy: str = "default"
    identity: str = ""
    fingerprint: str = ""
    usual_severity: Severity | None = None
    words: OwnWords | None = None

    def value(self, name: str) -> str | int | float | bool | list[str] | None:
        """The evidence called ``name``; None when it is unknown or absent."""
        return next((item.value for item in self.evidence if item.name == name), None)


def fingerprint(cluster: str, rule: str, objects: Iterable[ObjectRef], identity: str = "") -> str:
    """Hash that identifies a trouble across audits: 16 hex digits over cluster, rule and objects (sorted), or over the
    identity in place of the objects where there is one."""
    what = [f"identity {identity}"] if identity else sorted(map(str, objects))
    parts = "\n".join([cluster, rule, *what])
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


class Unreadable(msgspec.Struct, frozen=True):
    """A kind of object that could not be read, and so is unknown, not empty.

    Attributes:
        kind: for example ``Pod``.
        reason: ``forbidden``, ``not-found``, ``not-in-snapshot``, ``outside`` (of the namespaces that are read: some
            of its objects may be here), ``error``.
        detail: what the server said, or what is missing.
        namespaces: where all of its objects are known all the same.
    """

    kind: str
    reason: Literal["forbidden", "not-found", "not-in-snapshot", "outside", "error"]
    detail: str
    namespaces: tuple[str, ...] = ()


class FailedRule(msgspec.Struct, frozen=True):
    """A rule that raised: our bug, reported without taking the audit down.

    Attributes:
        rule: id of the rule.
        object: what it was looking at, when that is known.
        error: type and message of the exception.
    """

    rule: str
    object: ObjectRef | None
    error: str


class SkippedRule(msgspec.Struct, frozen=True):
    """A rule that could not judge because kinds it needs were not read."""

    rule: str
    missing: tuple[str, ...]


class Undecided(msgspec.Struct, frozen=True):
    """Objects about which a rule could say neither yes nor no, because facts are unknown.

    Attributes:
        rule: id of the rule.
        objects: empty when the rule is about the whole cluster.
        unknown: the facts, for example ``node.driver``.
    """

    rule: str
    objects: tuple[ObjectRef, ...]
    unknown: tuple[str, ...]


class Exempted(msgspec.Struct, frozen=True):
    """A finding that the team does not want to hear of for the time being.

    Attributes:
        reason: the team's own words.
        until: the last day (or moment) on which the exemption holds, in ISO form.
        by: where it is written: ``policy.exemptions[0]``, or ``annotations of Node/gpu-1``.
    """

    finding: Finding
    reason: str
    until: str
    by: str


class ExemptionTrouble(msgspec.Struct, frozen=True):
    """An exemption that does not work.

    Attributes:
        by: where it is written.
        problem: ``ended`` (its last day is over), ``no-reason``, ``no-end``, ``end-unreadable``, or ``no-such-rule``.
        rules: what it names.
        reason, until: as they are written; empty where they are missing.
        findings: fingerprints of the findings that it would hide if it worked.
    """

    by: str
    problem: Literal["ended", "no-reason", "no-end", "end-unreadable", "no-such-rule"]
    rules: tuple[str, ...]
    reason: str = ""
    until: str = ""
    findings: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Result of evaluating all rules over one cluster.

    ``findings`` are sorted by severity (heaviest first), then rule, then objects, so that equal facts give equal bytes.
    What the team does not want to hear of is not in them, but never lost: see ``exempted`` and ``disabled_rules``.
    """

    cluster: str
    observed_at: datetime
    findings: tuple[Finding, ...]
    unreadable: tuple[Unreadable, ...] = ()
    failed_rules: tuple[FailedRule, ...] = ()
    skipped_rules: tuple[SkippedRule, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    exempted: tuple[Exempted, ...] = ()
    exemption_troubles: tuple[ExemptionTrouble, ...] = ()
    disabled_rules: tuple[str, ...] = ()
