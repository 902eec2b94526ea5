"""Which driver the GPU nodes run, as far as their labels tell, and where the GPU is not advertised."""

from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Evidence
from rules.language import Language
from rules.questions.state.lines import Line, group, node_names, who
from rules.questions.words import say


def _stack(node: NodeFacts) -> tuple[str | None, str | None, str]:
    return node.driver_version, node.driver_source, _advertised(node)


def _advertised(node: NodeFacts) -> str:
    listed = [resource for resource in node.resources if resource.capacity or resource.allocatable]
    if not listed:
        return "no"
    return "yes" if any(resource.allocatable for resource in listed) else "none-allocatable"


def lines(facts: ClusterFacts, language: Language) -> list[Line]:
    """A line per pool and driver."""
    found: list[Line] = []
    for pool, (driver, label, advertised), nodes in group(facts.gpu_nodes, _stack):
        text = (
            say("driver.known", language, driver=driver, source=label or "?")
            if driver
            else say("driver.unknown", language)
        )
        if advertised == "no":
            text = f"{text}; {say('driver.not_advertised', language)}"
        elif advertised == "none-allocatable":
            text = f"{text}; {say('driver.none_allocatable', language)}"
        source = f"{facts.name}: {label}" if label else f"{facts.name}: metadata.labels"
        evidence = (
            Evidence("driver_version", driver, source=source),
            Evidence("nodes", node_names(nodes), source=f"{facts.name}: Node"),
            Evidence("gpu_advertised", advertised, source=f"{facts.name}: status.allocatable"),
        )
        found.append(Line(f"{who(pool, nodes, language)}: {text}", evidence))
    return found
