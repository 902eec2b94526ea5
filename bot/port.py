"""What the bot needs of the rest of the house. The service implements it; tests may too."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from rules.answers import Answer
from rules.findings import Finding
from rules.language import Language


class AlertView(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that people are told about, ready to be shown.

    Attributes:
        id: of the alert, stable over its life.
        cluster: name of the cluster.
        finding: what was found, with the numbers of the latest audit.
        state: ``open`` or ``resolved``.
        opened_at, updated_at, resolved_at: Unix seconds; resolved_at None while open.
    """

    id: str
    cluster: str
    finding: Finding
    state: str
    opened_at: float
    updated_at: float
    resolved_at: float | None = None


class ClusterHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One line about a connected cluster.

    Attributes:
        state: ``ok``, ``unreachable`` or ``never-audited``.
        gpu_nodes: None when unknown.
        open_findings: number of open findings by severity name.
        audited_at: Unix seconds of the last complete audit.
        error: why it is unreachable, in one sentence.
        unreadable: kinds that could not be read, or only in part, as far as the API server has them.
        notes: what is less than it should be although it can be read, for people, in English.
    """

    name: str
    state: str
    gpu_nodes: int | None
    open_findings: dict[str, int]
    audited_at: float | None
    error: str | None = None
    unreadable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class MessageRef(msgspec.Struct, frozen=True):
    """A posted Slack message: channel id and timestamp."""

    channel: str
    ts: str


class Advisor(Protocol):
    """The use cases that the bot calls."""

    async def ask(self, text: str, *, language: Language | None = None, conversation: str | None = None) -> Answer:
        """Answer a question. ``language`` is a hint for texts too short to tell (the user's Slack locale);
        ``conversation`` names the thread, so that a follow-up is read in the light of what came before."""
        ...

    async def feedback(self, answer_id: str, *, helped: bool, comment: str | None = None) -> None:
        """Record whether an answer helped.

        Raises:
            InputInvalid: no answer on record has that id.
        """
        ...

    async def clusters(self) -> Sequence[ClusterHealth]:
        """Connected clusters, in the order of the configuration."""
        ...

    async def claim_event(self, event_id: str) -> bool:
        """True the first time an event id is seen (by any replica), False for a repeated delivery."""
        ...
