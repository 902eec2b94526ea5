"""Errors of the runtime, hung on the branches of :mod:`rules.errors`.

The tree (``*`` is declared there)::

    AdvisorError *
    ├── InputInvalid *                  wrong input or configuration: mend it, then try again
    │   ├── SnapshotInvalid *           a snapshot file cannot be read
    │   ├── ConfigInvalid               the settings cannot be used: file, line, what was expected
    │   ├── ClusterUnknown              no cluster of that name is configured
    │   ├── AnswerUnknown               no answer on record has that id
    │   ├── AuditUnknown                no audit has that id
    │   ├── RuleUnknown                 no rule has that id
    │   ├── ProviderUnknown             no provider has that id, or no prices can be fetched for it
    │   └── CursorInvalid               a paging cursor that was not given out here
    ├── PermissionMissing *             a credential or a right is missing
    │   ├── ClusterUnauthorized         the API server does not accept the credentials (401), or there are none
    │   └── ClusterForbidden            a right without which nothing can be said is missing (403)
    ├── RemoteTrouble *                 another system did not answer as it should; trying later may help
    │   ├── ClusterUnreachable          no connection: refused, name, route, TLS
    │   ├── ClusterTimeout              no complete answer in time
    │   ├── ClusterUnavailable          the API server answers, but with 429 or 5xx, also after retries
    │   ├── ClusterAnswerInvalid        an answer that is not what an API server says: cut, malformed, another service
    │   ├── RegistryTrouble             an image's configuration could not be read from its registry
    │   ├── CatalogSourceTrouble        the prices of a provider could not be fetched
    │   └── StoreUnavailable            the database does not answer
    └── InternalFault *                 our own bug

All ``Cluster...`` errors but ClusterUnknown are also :class:`ClusterTrouble`: one cluster's trouble, which never stops
the audit of another one.

Every error carries ``code`` (stable, for machines and for translations) and the values its sentence is made of; the
sentence says what happened, where, and what to do. ``str()`` never shows a secret.
"""

import re
from collections.abc import Iterable

from rules.errors import AdvisorError, InputInvalid, PermissionMissing, RemoteTrouble

_SECRETS = (
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
        "<private key>",
    ),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{6,}", re.IGNORECASE), r"\1 <redacted>"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), "<redacted>"),
    (re.compile(r"\bx(?:ox[a-z]|app)-[\w-]+"), "<redacted>"),
    (re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"), "<redacted>"),
    (
        re.compile(
            r"(?i)([\"']?\b[\w-]*(?:password|passwd|secret|token|api[_-]?key|client-key-data)[\"']?\s*)"
            r"(?:([=:]\s*)(?:\"[^\"]*\"|'[^']*')|(=\s*)[^\s,;&\"']+|(:\s*)[^\s,;&\"']{16,})"
        ),
        r"\1\2\3\4<redacted>",
    ),
)


def redact(text: str) -> str:
    """``text`` without bearer tokens, passwords in URLs and settings, Slack tokens and private keys."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


class ConfigInvalid(InputInvalid):
    """The settings cannot be used.

    Args:
        source: file name or environment variable.
        line: line in the file, counted from 1; None for the whole file or a variable.
        expected: what is wrong and what should be there.
    """

    code = "config-invalid"

    def __init__(self, source: str, line: int | None, expected: str) -> None:
        self.source = source
        self.line = line
        self.expected = redact(expected)
        where = source if line is None else f"{source}, line {line}"
        super().__init__(f"{where}: {self.expected}")


class ClusterUnknown(InputInvalid):
    """No cluster of that name is configured; ``known`` are those that are."""

    code = "cluster-unknown"

    def __init__(self, cluster: str, known: Iterable[str] = ()) -> None:
        self.cluster = cluster
        self.known = tuple(known)
        configured = f"configured are: {', '.join(self.known)}" if self.known else "no cluster is configured"
        super().__init__(f"there is no cluster named {cluster!r}; {configured}")


class AuditUnknown(InputInvalid):
    """No audit has that id."""

    code = "audit-unknown"

    def __init__(self, audit_id: str) -> None:
        self.audit_id = audit_id
        super().__init__(f"there is no audit with the id {audit_id!r}; old audits are removed after a while")


class AnswerUnknown(InputInvalid):
    """No answer on record has that id."""

    code = "answer-unknown"

    def __init__(self, answer_id: str) -> None:
        self.answer_id = answer_id
        super().__init__(f"there is no answer with the id {answer_id!r}; old answers are removed after a while")


class RuleUnknown(InputInvalid):
    """No rule has that id; ``known`` are those that there are."""

    code = "rule-unknown"

    def __init__(self, rule: str, known: Iterable[str] = ()) -> None:
        self.rule = rule
        self.known = tuple(known)
        super().__init__(f"there is no rule {rule!r}; there are: {', '.join(self.known)}")


class ProviderUnknown(InputInvalid):
    """No provider has that id, or no prices can be fetched for it; ``known`` are those that have."""

    code = "provider-unknown"

    def __init__(self, provider: str, known: Iterable[str] = ()) -> None:
        self.provider = provider
        self.known = tuple(known)
        super().__init__(f"there is no provider {provider!r} here; there are: {', '.join(self.known)}")


class CursorInvalid(InputInvalid):
    """A paging cursor that was not given out here, or not for this query."""

    code = "cursor-invalid"

    def __init__(self, cursor: str) -> None:
        self.cursor = cursor
        super().__init__("the cursor is not one of ours; start again without it, and pass next_cursor on unchanged")


class ClusterTrouble(AdvisorError):
    """One cluster could not be read.

    Args:
        cluster: its configured name.
        detail: what happened and where, without a full stop.
        remedy: what to do, as a sentence.
    """

    code = "cluster-trouble"

    def __init__(self, cluster: str, detail: str, remedy: str) -> None:
        self.cluster = cluster
        self.detail = redact(detail)
        self.remedy = redact(remedy)
        super().__init__(f"cluster {cluster}: {self.detail}. {self.remedy}")


class ClusterUnauthorized(ClusterTrouble, PermissionMissing):
    """The API server does not accept the credentials, or there are none."""

    code = "cluster-unauthorized"


class ClusterForbidden(ClusterTrouble, PermissionMissing):
    """A right without which nothing can be said is missing; ``rule`` is the RBAC rule to add."""

    code = "cluster-forbidden"

    def __init__(self, cluster: str, detail: str, remedy: str, rule: str) -> None:
        self.rule = rule
        super().__init__(cluster, detail, remedy)


class ClusterUnreachable(ClusterTrouble, RemoteTrouble):
    """No connection to the API server: refused, unknown name, no route, TLS."""

    code = "cluster-unreachable"


class ClusterTimeout(ClusterTrouble, RemoteTrouble):
    """The API server did not answer completely in time."""

    code = "cluster-timeout"


class ClusterUnavailable(ClusterTrouble, RemoteTrouble):
    """The API server answers, but only with 429 or 5xx, also after retries; ``status`` is the last one."""

    code = "cluster-unavailable"

    def __init__(self, cluster: str, detail: str, remedy: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(cluster, detail, remedy)


class ClusterAnswerInvalid(ClusterTrouble, RemoteTrouble):
    """An answer that is not what a Kubernetes API server says: cut, malformed, or from another service."""

    code = "cluster-answer-invalid"


class CatalogSourceTrouble(RemoteTrouble):
    """The prices of a provider could not be fetched; those before stay.

    Args:
        reason: ``unreachable``, ``timeout``, ``unavailable``, ``too-large`` or ``invalid``.
        provider: its id.
        detail: what happened, without a full stop.
    """

    code = "catalog-source-trouble"

    def __init__(self, reason: str, provider: str, detail: str) -> None:
        self.reason = reason
        self.provider = provider
        self.detail = redact(detail)
        super().__init__(f"{provider}: {self.detail}")


class RegistryTrouble(RemoteTrouble):
    """The configuration of an image could not be read from its registry; the image is left to its tag.

    Args:
        reason: ``not-allowed`` (a registry or address that may not be asked), ``unauthorized``, ``not-found``,
            ``rate-limited``, ``unavailable`` (5xx), ``unreachable``, ``timeout``, ``too-large`` or ``invalid``.
        where: the registry or the image.
        detail: what happened, without a full stop.
        retry_after: seconds after which the registry says to come back.
    """

    code = "registry-trouble"

    def __init__(self, reason: str, where: str, detail: str, retry_after: float | None = None) -> None:
        self.reason = reason
        self.where = where
        self.detail = redact(detail)
        self.retry_after = retry_after
        super().__init__(f"{where}: {self.detail}")


class StoreUnavailable(RemoteTrouble):
    """The database does not answer; ``detail`` says why."""

    code = "store-unavailable"

    def __init__(self, detail: str) -> None:
        self.detail = redact(detail)
        super().__init__(f"the database does not answer: {self.detail}")
