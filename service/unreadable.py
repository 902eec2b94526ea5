"""Findings about reading itself: a cluster, or a part of it, that cannot be read.

They are no rule's: a rule judges what was read. But people must hear of them like of any other trouble, once when it
begins and once when it is over, so they have the same life cycle, on record and in alerts. They are:

``cluster-unreadable``
    The latest audit failed. All other findings stay as they were, since nothing was judged.
``cluster-partly-unreadable``
    Kinds that every API server serves could not be read (no right, or trouble). A kind that is not asked for
    (``clusters[].namespaces``) or not served is no trouble.
"""

from functools import cache
from importlib import resources

import msgspec
import yaml

from rules.findings import Evidence, Finding, OwnWords, Report, Severity, fingerprint
from service.clusters.kinds import BY_KIND
from service.views import AuditError

WHOLLY = "cluster-unreadable"
PARTLY = "cluster-partly-unreadable"
IDS = frozenset({WHOLLY, PARTLY})

_SEVERITY = {WHOLLY: Severity.HIGH, PARTLY: Severity.MEDIUM}


@cache
def words() -> dict[str, OwnWords]:
    """The words of both findings, in three languages."""
    content = yaml.safe_load(resources.files("service").joinpath("unreadable.yaml").read_text("utf-8"))
    return msgspec.convert(content, dict[str, OwnWords])


def of_failure(cluster: str, error: AuditError) -> Finding | None:
    """The finding for an audit that failed; None when it failed because the process ended, which says nothing."""
    if error.code == "interrupted":
        return None
    evidence = (Evidence("code", error.code), Evidence("said", error.detail))
    return _finding(cluster, WHOLLY, evidence, error.code)


def of_report(report: Report) -> Finding | None:
    """The finding for what an audit could not read; None when it read what there is to be read."""
    missing = [
        item
        for item in report.unreadable
        if item.reason in ("forbidden", "error") and item.kind in BY_KIND and BY_KIND[item.kind].built_in
    ]
    if not missing:
        return None
    kinds = [item.kind for item in missing]
    evidence = (Evidence("kinds", kinds), Evidence("said", missing[0].detail))
    return _finding(report.cluster, PARTLY, evidence, "default")


def _finding(cluster: str, rule: str, evidence: tuple[Evidence, ...], remedy: str) -> Finding:
    said = words()[rule]
    return Finding(
        rule=rule,
        severity=_SEVERITY[rule],
        objects=(),
        evidence=evidence,
        remedy=remedy if remedy in said.remedies else "default",
        identity=rule,
        fingerprint=fingerprint(cluster, rule, (), rule),
        words=said,
    )
