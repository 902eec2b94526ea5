"""``gpu-advisor serve``: the service, until it is told to stop."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.cli.arguments import port
from service.cli.exits import EXIT_CODES

if TYPE_CHECKING:
    from service.settings import Settings


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "serve",
        help="serve REST and Slack, audit on a schedule",
        description="Serves REST and Slack, and audits the clusters of the settings on a schedule.",
        epilog=f"SIGTERM and SIGINT stop it: it answers what it has begun, then gives up running audits. {EXIT_CODES}",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings, YAML (default: $GPU_ADVISOR_CONFIG)")
    parser.add_argument("--host", help="address to serve on (default: 127.0.0.1); another one demands a token")
    parser.add_argument("--port", type=port, help="default: 8000; 0 takes a free one")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve, and return the exit code.

    Raises:
        ConfigInvalid: the settings cannot be used, or would let other machines in without a token.
        AddressInUse: something else listens there.
    """
    from service.cli.server import serve
    from service.settings import load

    return serve(with_address(load(args.config, os.environ), args.host, args.port))


def with_address(settings: "Settings", host: str | None, number: int | None) -> "Settings":
    """``settings`` with the address of the arguments, where they give one."""
    import msgspec

    return msgspec.structs.replace(
        settings,
        host=settings.host if host is None else host,
        port=settings.port if number is None else number,
    )
