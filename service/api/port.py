"""The use cases that the API calls; :class:`service.advisor.GpuAdvisor` has them."""

from collections.abc import Sequence
from typing import Protocol

from litestar.di import NamedDependency
from litestar.params import SkipValidation

from bot.port import ClusterHealth
from rules.advice.readiness import Readiness
from rules.answers import Answer
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.offers import Catalog, EuroRate
from rules.findings import Severity
from rules.language import Language
from service.views import AuditView, FindingPage, FindingState, UnansweredPage


class UseCases(Protocol):
    """What a controller may ask for."""

    async def start(self) -> None:
        """Open the database, start the schedule."""
        ...

    async def stop(self) -> None:
        """Finish or abandon what is running, within a bound."""
        ...

    async def ask(self, text: str, *, language: Language | None = None, conversation: str | None = None) -> Answer:
        """Answer a question; ``conversation`` names the thread it belongs to."""
        ...

    async def feedback(self, answer_id: str, *, helped: bool, comment: str | None = None) -> None:
        """Record whether an answer helped.

        Raises:
            AnswerUnknown: no answer on record has that id.
        """
        ...

    async def unanswered(
        self, *, language: Language | None = None, limit: int = 50, cursor: str | None = None
    ) -> UnansweredPage:
        """Questions for the team to review, newest first.

        Raises:
            CursorInvalid: the cursor is not one that was given out.
        """
        ...

    async def forget_question(self, question_id: str) -> None:
        """Delete a question that was reviewed.

        Raises:
            AnswerUnknown: no question on record has that id.
        """
        ...

    async def clusters(self) -> Sequence[ClusterHealth]:
        """Connected clusters, in the order of the settings."""
        ...

    async def claim_event(self, event_id: str) -> bool:
        """True the first time an event id is seen."""
        ...

    async def start_audit(self, cluster: str, *, trigger: str) -> AuditView:
        """Start an audit in the background, or return the one that is running.

        Raises:
            ClusterUnknown: names the clusters there are.
        """
        ...

    async def readiness(self, cluster: str) -> Readiness:
        """Whether a cluster is ready for training over several nodes, as it was last read.

        Raises:
            ClusterUnknown: names the clusters there are.
            ClusterTrouble: it was never read, and cannot be read now.
        """
        ...

    async def cluster_facts(self, cluster: str) -> ClusterFacts:
        """What is known of a cluster, as it was last read.

        Raises:
            ClusterUnknown: names the clusters there are.
            ClusterTrouble: it was never read, and cannot be read now.
        """
        ...

    async def audit(self, audit_id: str) -> AuditView:
        """An audit.

        Raises:
            AuditUnknown: no audit has that id.
        """
        ...

    async def findings(
        self,
        *,
        cluster: str | None = None,
        rule: str | None = None,
        severity: Severity | None = None,
        state: FindingState | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> FindingPage:
        """A page of findings, heaviest first.

        Raises:
            ClusterUnknown: names the clusters there are.
            CursorInvalid: the cursor is not one that was given out.
        """
        ...

    async def ready(self) -> Sequence[str]:
        """What keeps it from working; empty when nothing does."""
        ...

    def catalog(self) -> Catalog:
        """Providers and prices, as they stand."""
        ...

    def euro_rate(self) -> EuroRate:
        """US dollars per euro."""
        ...

    def rules(self) -> Sequence[Rule]:
        """The rules, in the order of evaluation."""
        ...


Advisor = NamedDependency[SkipValidation[UseCases]]
"""The injected use cases, as handlers name them."""
