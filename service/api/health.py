"""``/health``: for probes; no token needed, nothing said beyond the state."""

from typing import Any

import msgspec
from litestar import Controller, Request, Response, get

from service.api.port import Advisor
from service.api.problems import FieldProblem, Problem, documented, problem, problem_response, request_id_of


class Health(msgspec.Struct, frozen=True):
    """``ok``; anything else is a problem document."""

    status: str = "ok"


class HealthController(Controller):
    """Probes."""

    path = "/health"
    tags = ("health",)

    @get(
        "/live",
        operation_id="live",
        summary="Is the process alive?",
        description="For liveness probes: answers as long as it runs.",
    )
    async def live(self) -> Health:
        """Is the process alive?"""
        return Health()

    @get(
        "/ready",
        operation_id="ready",
        summary="Can it do its work?",
        description="For readiness probes: 503 with the reasons while something it needs is missing.",
        responses=documented(503),
    )
    async def ready(self, request: Request[Any, Any, Any], advisor: Advisor) -> Response[Health] | Response[Problem]:
        """Can it do its work?"""
        reasons = await advisor.ready()
        if not reasons:
            return Response(Health())
        return problem_response(
            problem(
                503,
                "not-ready",
                "Not ready",
                "; ".join(reasons),
                request_id=request_id_of(request.scope),
                errors=[FieldProblem("service", reason) for reason in reasons],
            )
        )
