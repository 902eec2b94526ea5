"""``/v1/clusters``: what is connected, and audits on demand."""

from typing import Annotated

import msgspec
from litestar import Controller, Response, get, post
from litestar.datastructures import ResponseHeader
from litestar.params import PathParameter

from bot.port import ClusterHealth
from service.api.audits import AuditDocument, audit_document
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
            "findings by severity, and the Unix time of its last complete audit."
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
