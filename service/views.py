"""What the use cases hand to the API, the dashboard and the command line: plain structs, no table rows."""

from datetime import datetime
from typing import Literal

import msgspec

from rules.answers import Previous
from rules.findings import Finding, Report, Severity
from rules.language import Language

AuditState = Literal["queued", "running", "done", "failed"]
FindingState = Literal["open", "resolved", "withdrawn"]
"""``withdrawn``: nobody hears of it any more (its rule was switched off or dropped, or the team exempts it), so it is
neither open nor mended."""

Reason = Literal[
    "gone",
    "rule-disabled",
    "rule-gone",
    "exempted",
    "rule-skipped",
    "rule-failed",
    "kind-unreadable",
    "fact-unknown",
]
"""Why a finding that the latest audit did not report is in its state; :mod:`service.judgement` says what each means."""


class AuditError(msgspec.Struct, frozen=True):
    """Why an audit failed. ``code`` is the kebab-case name of the error, ``detail`` one sentence for people."""

    code: str
    detail: str


class AuditView(msgspec.Struct, frozen=True, kw_only=True):
    """One audit of one cluster.

    Attributes:
        trigger: who asked for it: ``schedule``, ``start``, ``api``, ``cli`` ...
        queued_at, started_at, finished_at: timezone-aware UTC; None until it happened.
        error: set when ``state`` is ``failed``.
        report: set when ``state`` is ``done`` and the report is still kept (see ``keep_days`` of the settings).
    """

    id: str
    cluster: str
    state: AuditState
    trigger: str
    queued_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: AuditError | None = None
    report: Report | None = None


class FindingView(msgspec.Struct, frozen=True, kw_only=True):
    """A finding over time.

    Attributes:
        id: of the record, stable as long as the fingerprint is.
        first_seen: when it was seen for the first time ever; opened_at: when its present (or last) opening began.
        last_seen: latest audit that reported it.
        resolved_at: when it left the state ``open``; None while open.
        reason: None while the latest complete audit confirms it. For an open one, why that audit could not judge it
            (so that it stays open); otherwise why it was closed.
        finding: with the numbers of the latest audit that reported it.
    """

    id: str
    cluster: str
    rule: str
    severity: Severity
    state: FindingState
    first_seen: datetime
    opened_at: datetime
    last_seen: datetime
    resolved_at: datetime | None = None
    reason: Reason | None = None
    finding: Finding


class FindingPage(msgspec.Struct, frozen=True):
    """One page of findings, heaviest first; ``next_cursor`` is None on the last page."""

    items: list[FindingView]
    next_cursor: str | None = None


class Undelivered(msgspec.Struct, frozen=True, kw_only=True):
    """A notification that nobody got, and that is not tried any more before the next start.

    Attributes:
        action: ``post`` (the alert) or ``resolve`` (its edit).
        reason: ``refused`` (someone must act) or ``gave-up`` (tried for too long).
        detail: what Slack said, and what to do.
    """

    alert_id: str
    cluster: str
    rule: str
    action: Literal["post", "resolve"]
    reason: str
    detail: str
    since: datetime


Why = Literal["abstained", "asked-back", "not-helped"]
"""Why a question counts as unanswered: outside what is known, not clear enough, or people say it did not help."""


class Unanswered(msgspec.Struct, frozen=True, kw_only=True):
    """A question for the team to review.

    Attributes:
        id: that of the answer.
        text: without people and secrets; null when it is not kept any more.
        read: what was read in it.
        helped, not_helped: how many people said so; comments: what they added.
    """

    id: str
    asked_at: datetime
    language: Language
    why: Why
    text: str | None
    read: Previous
    helped: int
    not_helped: int
    comments: list[str]


class UnansweredPage(msgspec.Struct, frozen=True):
    """One page of them, newest first; ``next_cursor`` is None on the last page."""

    items: list[Unanswered]
    next_cursor: str | None = None
