"""An advisor for the bot's tests: real types, fixed content, and a memory of what it was asked."""

from collections.abc import Sequence

from bot.port import AlertView, ClusterHealth
from rules.answers import Answer, Source
from rules.errors import InputInvalid
from rules.findings import Cost, Evidence, Finding, Note, ObjectRef, Severity
from rules.language import Language

SHARING: dict[Language, str] = {
    "en": "Yes: with **time-slicing**, MPS or MIG.\n\n- time-slicing: `nvidia.com/gpu.shared`, no memory isolation",
    "es": "Sí: con **time-slicing**, MPS o MIG.\n\n- time-slicing: `nvidia.com/gpu.shared`, sin aislamiento de memoria",
    "it": "Sì: con **time-slicing**, MPS o MIG.\n\n- time-slicing: `nvidia.com/gpu.shared`, memoria non isolata",
}


class FixedAdvisor:
    """Answers every question as that about sharing, in the language of a few words it knows."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Language | None]] = []
        self.conversations: list[str | None] = []
        self.feedbacks: list[tuple[str, bool]] = []
        self.claimed: list[str] = []
        self.error: Exception | None = None
        self.claim_error: Exception | None = None
        self.answer: Answer | None = None
        self.healths: list[ClusterHealth] = []

    async def ask(self, text: str, *, language: Language | None = None, conversation: str | None = None) -> Answer:
        self.asked.append((text, language))
        self.conversations.append(conversation)
        if self.error is not None:
            raise self.error
        if self.answer is not None:
            return self.answer
        return sharing_answer(_language(text) or language or "en")

    async def feedback(self, answer_id: str, *, helped: bool, comment: str | None = None) -> None:
        if answer_id == "gone":
            raise InputInvalid("there is no such answer")
        if self.error is not None:
            raise self.error
        self.feedbacks.append((answer_id, helped))

    async def clusters(self) -> Sequence[ClusterHealth]:
        return self.healths

    async def claim_event(self, event_id: str) -> bool:
        if self.claim_error is not None:
            raise self.claim_error
        first = event_id not in self.claimed
        self.claimed.append(event_id)
        return first


def _language(text: str) -> Language | None:
    if "¿" in text or "puedo" in text:
        return "es"
    if "posso" in text.lower() or "più" in text:
        return "it"
    return "en" if "can i" in text.lower() else None


def sharing_answer(language: Language) -> Answer:
    """The answer about sharing a GPU."""
    return Answer(
        language=language,
        kind="faq",
        topic="sharing",
        verdict="yes",
        text=SHARING[language],
        evidence=(Evidence("replicas", 4, "", "nvidia.com/gpu.replicas"), Evidence("idle", 7200, "s")),
        sources=(
            Source("MIG User Guide", "https://docs.nvidia.com/mig/?a=1&b=2", "2026-08-01"),
            Source("prod-eu"),
        ),
        follow_ups=("MIG or MPS?",),
    )


IDLE = Finding(
    rule="idle-gpu-node",
    severity=Severity.HIGH,
    objects=(ObjectRef("Node", "", "gpu-a100-1"),),
    evidence=(
        Evidence("node", "gpu-a100-1"),
        Evidence("idle", 93600, "s"),
        Evidence("idle_since", "2026-11-29T07:00:00Z", "date"),
        Evidence("gpus", 8, "GPU"),
        Evidence("gpu", "NVIDIA-A100-SXM4-80GB"),
        Evidence("offered", ["nvidia.com/gpu=8"]),
        Evidence("provider", None),
        Evidence("pool", None),
        Evidence("instance_id", None),
        Evidence("cpu_pods", []),
    ),
    notes=(Note("since_creation"),),
    cost=Cost(32.77, 852.02, "list", "2026-08-01", "offers.csv"),
    fingerprint="0123456789abcdef",
)
OPENED = 1_795_992_000.0


def alert(
    alert_id: str = "alert-1", *, finding: Finding = IDLE, resolved_after: float | None = None, opened: float = OPENED
) -> AlertView:
    """The alert of an idle node, open or resolved."""
    return AlertView(
        id=alert_id,
        cluster="prod-eu",
        finding=finding,
        state="open" if resolved_after is None else "resolved",
        opened_at=opened,
        updated_at=opened,
        resolved_at=None if resolved_after is None else opened + resolved_after,
    )
