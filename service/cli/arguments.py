"""Types of arguments that several commands share."""

import argparse
from datetime import UTC, datetime


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
