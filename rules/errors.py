"""Errors of the brain.

The tree (service and bot hang their own branches on it)::

    AdvisorError
    ├── InputInvalid        the caller sent something that cannot be read: say what, where, how to fix it
    │   └── SnapshotInvalid a file of Kubernetes objects cannot be read
    ├── PermissionMissing   a right is missing: say which one
    ├── RemoteTrouble       a cluster, Slack or a price source did not answer as it should
    └── InternalFault       our own bug

At the edge each branch becomes a problem document, a Slack sentence or an exit code; nowhere else.
"""


class AdvisorError(Exception):
    """Anything gpu-advisor reports on purpose. ``code`` is a stable kebab-case name for machines."""

    code = "error"


class InputInvalid(AdvisorError):
    """The caller's input cannot be used; the message says what is wrong, where, and how to mend it."""

    code = "input-invalid"


class PermissionMissing(AdvisorError):
    """A credential or a right is missing; the message names it."""

    code = "permission-missing"


class RemoteTrouble(AdvisorError):
    """Another system did not answer as it should."""

    code = "remote-trouble"


class InternalFault(AdvisorError):
    """A fault of gpu-advisor itself."""

    code = "internal-fault"


class SnapshotInvalid(InputInvalid):
    """A snapshot file does not hold Kubernetes objects as ``kubectl get -o json|yaml`` prints them.

    Args:
        source: the file's name as the user gave it.
        position: where in the file, for example ``line 3, column 7`` or ``items[4].metadata``; None for the whole file.
        expected: what should be there instead.
    """

    code = "snapshot-invalid"

    def __init__(self, source: str, position: str | None, expected: str) -> None:
        self.source = source
        self.position = position
        self.expected = expected
        where = f"{source}, {position}" if position else source
        super().__init__(f"{where}: {expected}")
