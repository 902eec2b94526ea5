"""Exit codes, and how errors become them."""

from enum import IntEnum

from rules.errors import AdvisorError, InputInvalid, PermissionMissing, RemoteTrouble


class Exit(IntEnum):
    """What a command says to the shell. Where several things happened, the greatest number wins."""

    FINE = 0
    FINDINGS = 1
    """``audit --fail-on``: findings at or above that severity."""
    BAD_INPUT = 2
    """Arguments, settings, snapshot files or a line of a batch cannot be used."""
    UNREACHABLE = 3
    """A cluster could not be read: no connection, no answer in time, no right to read it."""
    FAULT = 4
    """A fault of gpu-advisor itself."""
    INTERRUPTED = 130
    BROKEN_PIPE = 141


EXIT_CODES = "exit code: 0 fine, 2 bad input, 4 a fault of gpu-advisor itself"
AUDIT_EXIT_CODES = (
    "exit code: 0 fine, 1 findings at or above --fail-on, 2 bad input, 3 a cluster could not be read, "
    "4 a fault of gpu-advisor itself (also a rule that failed); where several apply, the greatest"
)


def exit_of(error: AdvisorError) -> Exit:
    """The exit code of ``error``."""
    if isinstance(error, InputInvalid):
        return Exit.BAD_INPUT
    if isinstance(error, PermissionMissing | RemoteTrouble):
        return Exit.UNREACHABLE
    return Exit.FAULT
