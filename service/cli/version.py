"""``gpu-advisor version``."""

import argparse
from typing import Any

from service.cli.exits import Exit


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser("version", help="print the version")
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Print name and version."""
    from importlib.metadata import version

    print(f"gpu-advisor {version('gpu-advisor')}")
    return Exit.FINE
