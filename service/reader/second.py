"""From a question to its reading, with the second opinion of the configured model where the rules are not sure."""

import asyncio
from collections.abc import Sequence

from rules.answers import Previous
from rules.facts.cluster import ClusterFacts
from rules.language import Language
from rules.questions import Reading, understand
from rules.questions.outside import accept, unsure
from service.reader.client import ModelReader
from service.reader.discreet import Known, discreet
from service.reader.settings import ReaderSettings

NAME_CHARACTERS = frozenset("0123456789-.")
"""A namespace or workload without any of them may be an everyday word; beside "namespace" it is found all the same."""


class SecondReader:
    """Reads questions; asks the model only where a second opinion may help.

    Args:
        settings: of the operator, with ``base_url``.
        model: what is asked; made of the settings when None.
    """

    def __init__(self, settings: ReaderSettings, *, model: ModelReader | None = None) -> None:
        self.model = model or ModelReader(settings)

    async def understand(
        self, text: str, *, language: Language | None, previous: Previous | None, facts: Sequence[ClusterFacts],
        clusters: Sequence[str],
    ) -> Reading:  # fmt: skip
        """The reading of a question; our own wherever the model adds nothing that holds.

        Args:
            facts: what is known of the clusters; clusters: names of all of them. Neither leaves: it tells which words
                of the question are names.
        """
        reading = await asyncio.to_thread(understand, text, language=language, previous=previous)
        if not unsure(reading):
            return reading
        question = await asyncio.to_thread(lambda: discreet(text, names(facts, clusters)))
        said = await self.model.read(question)
        if said is None:
            return reading
        return await asyncio.to_thread(accept, reading, said) or reading

    async def close(self) -> None:
        """Close all connections."""
        await self.model.close()


def names(facts: Sequence[ClusterFacts], clusters: Sequence[str]) -> Known:
    """Which words are names in the clusters."""
    sorts = [_sorts(cluster) for cluster in facts]
    configured = {name.lower() for name in clusters}

    def known(word: str) -> str | None:
        if word in configured:
            return "cluster"
        return next((sort for found in sorts if (sort := found.get(word))), None)

    return known


def _sorts(facts: ClusterFacts) -> dict[str, str]:
    """Sort by name of what a cluster has; kept with its facts."""
    return facts.remember("reader.names", lambda: _collected(facts))


def _collected(facts: ClusterFacts) -> dict[str, str]:
    found: dict[str, str] = {}
    for pod in facts.pods:
        owners = (("namespace", pod.ref.namespace), ("workload", pod.controller and pod.controller.name))
        found |= {name: sort for sort, name in owners if name and not NAME_CHARACTERS.isdisjoint(name)}
        found[pod.ref.name] = "pod"
    return found | {node.name: "node" for node in facts.nodes}
