"""The command line ``gpu-advisor``."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from rules.errors import AdvisorError
from service.cli import (
    advise,
    ask,
    audit,
    catalog,
    compare,
    compat,
    demo,
    elsewhere,
    offers,
    plan,
    providers,
    rbac,
    readiness,
    rules,
    serve,
    version,
)
from service.cli.exits import EXIT_CODES, Exit, exit_of
from service.cli.output import make_safe

_COMMANDS = (
    *(serve, demo, ask, audit, readiness, compat, plan, advise, elsewhere, providers, compare, offers, catalog),
    *(rules, rbac, version),
)


class _VersionAction(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        version.run(argparse.Namespace())
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; each sets ``run``, a function from its arguments to the exit code."""
    top = argparse.ArgumentParser(
        prog="gpu-advisor",
        description="Answers questions about GPU nodes on Kubernetes, finds idle ones and CUDA/driver mismatches.",
        epilog=EXIT_CODES,
    )
    top.add_argument("--version", action=_VersionAction, nargs=0, help="print the version")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code (:class:`service.cli.exits.Exit`)."""
    make_safe(sys.stdout)
    make_safe(sys.stderr)
    args = parser().parse_args(argv)
    try:
        code = int(args.run(args))
        sys.stdout.flush()
    except AdvisorError as error:
        print(f"gpu-advisor: {error}", file=sys.stderr)
        return exit_of(error)
    except BrokenPipeError:
        # The reader went away (`| head`). Python would complain again while it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.BROKEN_PIPE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception:
        import traceback

        traceback.print_exc()
        print("gpu-advisor: a fault of gpu-advisor itself; please report the lines above", file=sys.stderr)
        return Exit.FAULT
    return code


if __name__ == "__main__":
    sys.exit(main())
