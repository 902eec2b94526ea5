"""Running the HTTP application until a signal stops it."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

import structlog
import uvicorn
from litestar import Litestar

from rules.errors import AdvisorError, InputInvalid
from service.app import build
from service.cli.exits import Exit
from service.cli.logs import configure
from service.settings import Settings

ANSWER_SECONDS = 5
"""How long requests that are being answered may take once the service is told to stop."""

Started = Callable[[str, Litestar], Coroutine[None, None, None]]

log = structlog.get_logger(__name__)


class AddressUnusable(InputInvalid):
    """The service cannot listen where it is told to; the message says how to choose another address."""

    code = "address-unusable"


class _Server(uvicorn.Server):
    """Leaves signals to :func:`_stoppable`: uvicorn would raise them again before the application has stopped."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(
    settings: Settings,
    *,
    started: Started | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT; a second signal does not wait for anything.

    Args:
        settings: of the operator.
        started: called with the service's address and the application once it answers.

    Raises:
        ConfigInvalid: the settings would let other machines in without a token.
        AddressUnusable: something else listens there, or the address is not of this machine.
        AdvisorError: what the start failed on, for example the database.
    """
    configure(settings.log)
    settings.check_binding()
    with listen(settings.host, settings.port) as listener:
        app = build(settings)
        try:
            return asyncio.run(_serve(app, listener, started))
        except asyncio.CancelledError:
            return Exit.INTERRUPTED
        except BaseExceptionGroup as group:
            # Litestar runs the application inside a task group, which wraps what the start failed on.
            raise _cause(group) from group


def _cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error of ours in ``group``, else the group itself."""
    ours = group.subgroup(AdvisorError)
    if ours is None:
        return group
    first = ours.exceptions[0]
    return _cause(first) if isinstance(first, BaseExceptionGroup) else first


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        AddressUnusable: says why and what to do.
    """
    listener: socket.socket | None = None
    try:
        family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        if listener is not None:
            listener.close()
        problem = (
            f"cannot serve on {host} port {port}: {error.strerror or error}. "
            "Choose another port with --port (0 takes a free one), or stop what listens there."
        )
        raise AddressUnusable(problem) from error
    return listener


async def _serve(app: Litestar, listener: socket.socket, started: Started | None) -> int:
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=ANSWER_SECONDS,
    )
    server = _Server(config)
    with _stoppable(server):
        async with app.lifespan(), _after_start(server, listener, app, started):
            await server.serve(sockets=[listener])
            log.info("stopping")
    return Exit.FINE


@contextlib.contextmanager
def _stoppable(server: _Server) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    serving = asyncio.current_task()

    def stop() -> None:
        if server.started and not server.should_exit:
            server.should_exit = True
        else:
            server.force_exit = True
            if serving is not None:
                serving.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@contextlib.asynccontextmanager
async def _after_start(
    server: _Server,
    listener: socket.socket,
    app: Litestar,
    started: Started | None,
) -> AsyncIterator[None]:
    """Tell where it serves; the socket listens already, so that a request sent now is answered."""
    host, port = listener.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    log.info("serving", address=address)
    telling = asyncio.create_task(started(address, app)) if started else None
    try:
        yield
    finally:
        if telling is not None:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
