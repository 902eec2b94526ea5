"""The HTTP application: routes, problems, documentation and the life of what runs behind them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import structlog
from litestar import Litestar
from litestar.di import Provide
from litestar.plugins.prometheus import PrometheusConfig, PrometheusController
from litestar.types import ControllerRouterHandler

from service.api.advice import AdviceController
from service.api.ask import AskController
from service.api.audits import AuditController
from service.api.clusters import ClusterController
from service.api.compat import CompatController
from service.api.findings import FindingController
from service.api.front import Front, Gate
from service.api.health import HealthController
from service.api.home import home
from service.api.openapi import openapi_config
from service.api.port import UseCases
from service.api.problems import HANDLERS
from service.api.providers import OfferController, ProviderController
from service.api.questions import FeedbackController, QuestionController
from service.api.rules import RuleController
from service.api.sharing import SharingController
from service.settings import Settings

BODY_LIMIT_BYTES = 1_000_000
"""Of any request; Slack's largest deliveries stay far below it, and a question is at most 20,000 characters."""

STOP_SECONDS = 15.0
"""How long running work may take to finish when the service stops; after that it is abandoned."""

Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]

log = structlog.get_logger(__name__)


class Metrics(PrometheusController):
    """Prometheus metrics; demands the token as everything else does."""

    include_in_schema = False


def build(settings: Settings, *, advisor: UseCases | None = None) -> Litestar:
    """The application.

    Args:
        settings: of the operator.
        advisor: the use cases; None makes the real ones of ``settings``.

    Raises:
        ConfigInvalid: it would be reachable from other machines without a token.
    """
    settings.check_binding()
    if advisor is None:
        from service.advisor import GpuAdvisor

        advisor = GpuAdvisor(settings)
    served = advisor
    handlers: list[ControllerRouterHandler] = [
        home,
        AskController,
        FeedbackController,
        QuestionController,
        ClusterController,
        AuditController,
        FindingController,
        RuleController,
        CompatController,
        ProviderController,
        OfferController,
        SharingController,
        AdviceController,
        HealthController,
        Metrics,
    ]
    lifespan: list[Lifespan] = [_running(served)]
    if settings.slack.mode != "off":
        from service.api.slack import SlackSide

        slack = SlackSide(settings.slack, served)
        handlers += slack.handlers
        lifespan.append(slack.lifespan)
    app = Litestar(
        route_handlers=handlers,
        dependencies={"advisor": Provide(lambda: served, sync_to_thread=False)},
        exception_handlers=HANDLERS,
        lifespan=lifespan,
        openapi_config=openapi_config(token_needed=settings.api_token is not None),
        middleware=[PrometheusConfig(app_name="gpu-advisor", prefix="gpu_advisor_http", group_path=True).middleware],
        request_max_body_size=BODY_LIMIT_BYTES,
        logging_config=None,
    )
    app.state.advisor = served
    app.asgi_handler = Front(Gate(app.asgi_handler, token=settings.api_token))
    return app


def _running(advisor: UseCases) -> Lifespan:
    @asynccontextmanager
    async def running(_: Litestar) -> AsyncIterator[None]:
        await advisor.start()
        try:
            yield
        finally:
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await advisor.stop()
            except TimeoutError:
                log.warning("stopped with work abandoned", seconds=STOP_SECONDS)

    return running
