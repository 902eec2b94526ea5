"""Arguments that several commands share, and their types."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from rules.language import LANGUAGES


def moment(text: str) -> datetime:
    """A time of an argument (RFC 3339, with a zone).

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        value = None
    if value is None or value.tzinfo is None:
        problem = f"{text!r} is no time with a zone, such as 2026-11-30T09:00:00Z"
        raise argparse.ArgumentTypeError(problem)
    return value.astimezone(UTC)


def port(text: str) -> int:
    """A port number of an argument.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if text.isdecimal() and int(text) <= 65535:
        return int(text)
    problem = f"{text!r} is no port (0 to 65535)"
    raise argparse.ArgumentTypeError(problem)


def add_target_arguments(parser: argparse.ArgumentParser, *, settings: str) -> None:
    """Declare which cluster is read and how the result is shown; :func:`service.cli.targets.targets` reads the former.

    Args:
        parser: of a command that reads clusters.
        settings: what the command takes from the settings.
    """
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig")
    parser.add_argument("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")
    parser.add_argument(
        "--snapshot",
        metavar="FILE",
        nargs="+",
        action="extend",
        help="files, folders or archives (.gz, .tar, .tar.gz, .zip; also of a must-gather) of "
        "`kubectl get nodes,pods,events,... -A -o json` (or yaml) output of one cluster",
    )
    parser.add_argument("--observed-at", type=moment, metavar="TIME", help="when the snapshot was taken (RFC 3339)")
    parser.add_argument("--config", type=Path, metavar="FILE", help=settings)
    parser.add_argument(
        "--cluster", metavar="NAME", help="one cluster of the settings, or a name for the one that is read"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="default: en")
