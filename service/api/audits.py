"""``/v1/audits``: one run of the rules over one cluster."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from litestar import Controller, Request, get
from litestar.params import PathParameter

from rules.language import Language
from service.api.documents import ErrorDocument, ReportDocument, report_document
from service.api.languages import Lang, language_of
from service.api.port import Advisor
from service.api.problems import documented
from service.views import AuditState, AuditView


class AuditDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One audit.

    Attributes:
        state: queued, running, done or failed.
        trigger: who asked for it.
        error: why it failed, null otherwise.
        report: what it found; null until it is done, and again when old reports have been cleared away.
    """

    id: str
    cluster: str
    state: AuditState
    trigger: str
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: ErrorDocument | None
    report: ReportDocument | None


def audit_document(audit: AuditView, language: Language) -> AuditDocument:
    """``audit`` with its findings in the words of ``language``."""
    return AuditDocument(
        id=audit.id,
        cluster=audit.cluster,
        state=audit.state,
        trigger=audit.trigger,
        queued_at=audit.queued_at,
        started_at=audit.started_at,
        finished_at=audit.finished_at,
        error=ErrorDocument(audit.error.code, audit.error.detail) if audit.error else None,
        report=report_document(audit.report, language) if audit.report else None,
    )


class AuditController(Controller):
    """Audits."""

    path = "/v1/audits"
    tags = ("audits",)

    @get(
        "/{audit_id:str}",
        operation_id="readAudit",
        summary="Read an audit",
        description=(
            "Its state and, once it is done, its report: findings heaviest first, the kinds of objects that could not "
            "be read, rules that failed and rules that could not judge."
        ),
        responses=documented(400, 404),
    )
    async def read(
        self,
        request: Request[Any, Any, Any],
        advisor: Advisor,
        audit_id: Annotated[str, PathParameter(description="The `id` that starting the audit returned.")],
        lang: Lang = None,
    ) -> AuditDocument:
        """Read an audit."""
        return audit_document(await advisor.audit(audit_id), language_of(request, lang))
