"""The command line: one module per command, each with ``add_parser(subparsers)`` and ``run(args) -> int``.

Modules import only what parsing needs at their top; ``run`` imports the rest, so that a command pays for nothing that
it does not use.
"""
