"""``/v1/clusters``: what is connected, and audits on demand."""

import asyncio
from typing import Annotated, Any

import msgspec
from litestar import Controller, Request, Response, get, post
from litestar.datastructures import ResponseHeader
from litestar.params import PathParameter, QueryParameter

from bot.port import ClusterHealth
from rules.advice.elsewhere import document, elsewhere
from service.api.advice import ElsewhereDocument
from service.api.audits import AuditDocument, audit_document
from service.api.documents import ReadinessDocument, readiness_document
from service.api.languages import Lang, language_of
from service.api.port import Advisor
from service.api.problems import documented

ClusterName = Annotated[str, PathParameter(description="Name of the cluster as the settings give it.")]


class ClusterList(msgspec.Struct, frozen=True):
    """Connected clusters, in the order of the settings."""

    items: list[ClusterHealth]


class ClusterController(Controller):
    """Clusters."""

    path = "/v1/clusters"
    tags = ("clusters",)

    @get(
        operation_id="listClusters",
        summary="List the clusters",
        description=(
            "Each with its state (`ok`, `unreachable`, `never-audited`), number of GPU nodes (null when unknown), open "
            "findings by severity, the Unix time of its last complete audit, `unreadable` kinds (no right, trouble, or "
            "only some namespaces are read), and `notes` on what is followed less closely than it should be."
        ),
        responses=documented(),
    )
    async def list_clusters(self, advisor: Advisor) -> ClusterList:
        """List the clusters."""
        return ClusterList(list(await advisor.clusters()))

    @post(
        "/{name:str}/audits",
        status_code=202,
        operation_id="startAudit",
        summary="Audit a cluster now",
        description=(
            "Returns at once; the audit runs in the background. Read it at the `Location`. A cluster is never audited "
            "twice at once: when an audit is running already, that one is returned."
        ),
        response_headers=[
            ResponseHeader(name="location", description="Where the audit is read.", documentation_only=True)
        ],
        responses=documented(400, 404),
    )
    async def start_audit(self, advisor: Advisor, name: ClusterName) -> Response[AuditDocument]:
        """Audit a cluster now."""
        audit = await advisor.start_audit(name, trigger="api")
        return Response(audit_document(audit, "en"), headers={"location": f"/v1/audits/{audit.id}"})

    @get(
        "/{name:str}/readiness",
        operation_id="readReadiness",
        summary="Tell whether a cluster is ready for training over several nodes",
        description=(
            "Fast interconnect, gang scheduling, training operator and shared storage: each `met`, `not_met` or "
            "`unknown`, with the objects that show it and what to do next. It is judged as the cluster was last read; "
            "a cluster that was never read is read now."
        ),
        responses=documented(400, 404, 502),
    )
    async def readiness(
        self, request: Request[Any, Any, Any], advisor: Advisor, name: ClusterName, lang: Lang = None
    ) -> ReadinessDocument:
        """Tell whether a cluster is ready for training over several nodes."""
        return readiness_document(await advisor.readiness(name), language_of(request, lang))

    @get(
        "/{name:str}/compare",
        operation_id="compareCluster",
        summary="What would this cluster cost elsewhere?",
        description=(
            "The GPU nodes by shape, priced at every provider that meets the same constraints: same GPU and at least "
            "as many per machine, spot where they are spot now, managed if the cluster is, a fast interconnect if pods "
            "ask for one, the sharing in use. Nodes and fees whose price is not known are said."
        ),
        responses=documented(400, 404, 502),
    )
    async def compare(
        self,
        *,
        request: Request[Any, Any, Any],
        advisor: Advisor,
        name: ClusterName,
        region: Annotated[
            str | None, QueryParameter(description="Country code, `eu`, `us`, `latam`, or a provider's region.")
        ] = None,
        lang: Lang = None,
    ) -> ElsewhereDocument:
        """Compare a cluster with other providers."""
        facts = await advisor.cluster_facts(name)
        found = await asyncio.to_thread(elsewhere, facts, advisor.catalog(), region)
        return msgspec.convert(document(found, language_of(request, lang)), ElsewhereDocument)
