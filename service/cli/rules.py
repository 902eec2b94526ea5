"""``gpu-advisor rules``: what is checked, and why."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from rules.language import LANGUAGES
from service.cli.exits import EXIT_CODES, Exit
from service.cli.output import Style, write_json


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "rules",
        help="list the rules, or explain one",
        description="Lists what an audit looks for, or explains one rule: what, why, fix, source.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="for example idle-gpu-node")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="settings with rules of your own (default: $GPU_ADVISOR_CONFIG)"
    )
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="of the names (default: en)")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--docs",
        type=Path,
        metavar="DIR",
        help="write the pages rules.md and coverage.md of the documentation into DIR",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the rules, or one of them.

    Raises:
        RuleUnknown: names the rules there are.
        ConfigInvalid: a rule of the settings cannot be used.
        InputInvalid: the folder of ``--docs`` cannot be written to.
    """
    if args.docs is not None:
        from service.manual import write

        for file in write(args.docs):
            print(file)
        return Exit.FINE
    import msgspec

    from service.api.documents import rule_detail_document, rule_document, rule_named
    from service.rulebook import rulebook
    from service.settings import load

    rules = rulebook(load(args.config, os.environ))
    style = Style(sys.stdout)
    if args.id:
        detail = rule_detail_document(rule_named(rules, args.id), args.lang)
        if args.format == "json":
            write_json(msgspec.to_builtins(detail))
        else:
            print(style.bold(detail.id), "·", detail.name)
            print(f"{detail.severity}, {detail.family}, seeds {', '.join(detail.seeds) or '-'}", end="\n\n")
            print(detail.doc.strip())
        return Exit.FINE
    listed = [rule_document(rule, args.lang) for rule in rules]
    if args.format == "json":
        write_json({"items": msgspec.to_builtins(listed)})
        return Exit.FINE
    width = max(len(rule.id) for rule in listed)
    for rule in sorted(listed, key=lambda rule: -rule.severity.rank):
        severity = style.severity(rule.severity, f"{rule.severity:<8}")
        print(f"{severity}  {rule.id:<{width}}  {rule.name}")
    return Exit.FINE
