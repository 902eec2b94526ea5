"""``/v1/findings``: what is wrong now and what has been, over all clusters."""

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from litestar import Controller, Request, Response, get
from litestar.datastructures import ResponseHeader
from litestar.params import QueryParameter

from rules.findings import Severity
from rules.language import Language
from service.api.documents import FindingDocument, finding_document
from service.api.languages import Lang, language_of
from service.api.port import Advisor
from service.api.problems import documented
from service.views import FindingState, FindingView, Reason


class TrackedFindingDocument(FindingDocument, frozen=True, kw_only=True):
    """A finding over time.

    Attributes:
        state: open, resolved, or withdrawn (nobody judges it any more).
        first_seen, opened_at, last_seen, resolved_at: opened_at is when its present opening began.
        reason: why the latest audit did not report it; null while that audit confirms it.
    """

    id: str
    cluster: str
    state: FindingState
    first_seen: datetime
    opened_at: datetime
    last_seen: datetime
    resolved_at: datetime | None
    reason: Reason | None


class FindingList(msgspec.Struct, frozen=True):
    """One page of findings, heaviest first. ``next_cursor`` is null on the last page."""

    items: list[TrackedFindingDocument]
    next_cursor: str | None


def tracked_document(view: FindingView, language: Language) -> TrackedFindingDocument:
    """``view`` in the words of ``language``."""
    words = finding_document(view.finding, language)
    return TrackedFindingDocument(
        **msgspec.structs.asdict(words),
        id=view.id,
        cluster=view.cluster,
        state=view.state,
        first_seen=view.first_seen,
        opened_at=view.opened_at,
        last_seen=view.last_seen,
        resolved_at=view.resolved_at,
        reason=view.reason,
    )


class FindingController(Controller):
    """Findings."""

    path = "/v1/findings"
    tags = ("findings",)

    @get(
        operation_id="listFindings",
        summary="List findings",
        description=(
            "Heaviest first, page by page: pass `next_cursor` as `cursor` for the next page, or follow the `Link` "
            'header (`rel="next"`). Filters add up.'
        ),
        response_headers=[
            ResponseHeader(
                name="link", description="Address of the next page, where there is one.", documentation_only=True
            )
        ],
        responses=documented(400, 404),
    )
    async def list_findings(
        self,
        *,
        request: Request[Any, Any, Any],
        advisor: Advisor,
        cluster: Annotated[str | None, QueryParameter(description="Only of this cluster.")] = None,
        rule: Annotated[
            str | None, QueryParameter(description="Only of this rule, for example `idle-gpu-node`.")
        ] = None,
        severity: Annotated[Severity | None, QueryParameter(description="Only of this severity or heavier.")] = None,
        finding_state: Annotated[
            FindingState | None, QueryParameter(name="state", description="Only in this state. Without it, in any.")
        ] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=200, description="Findings per page.")] = 50,
        cursor: Annotated[str | None, QueryParameter(description="`next_cursor` of the page before.")] = None,
        lang: Lang = None,
    ) -> Response[FindingList]:
        """List findings."""
        page = await advisor.findings(
            cluster=cluster, rule=rule, severity=severity, state=finding_state, limit=limit, cursor=cursor
        )
        language = language_of(request, lang)
        document = FindingList([tracked_document(view, language) for view in page.items], page.next_cursor)
        return Response(document, headers=next_link(request, page.next_cursor))


def next_link(request: Request[Any, Any, Any], cursor: str | None) -> dict[str, str]:
    """The ``Link`` header to the next page of what was asked for; nothing on the last page."""
    if cursor is None:
        return {}
    query = sorted((key, value) for key, value in request.query_params.multi_items() if key != "cursor")
    return {"link": f'<{request.url.path}?{urlencode([*query, ("cursor", cursor)])}>; rel="next"'}
