"""How big a connected cluster is, for the question whether one is worth it."""

from rules.facts.cluster import ClusterFacts
from rules.findings import Evidence
from rules.language import Language
from rules.questions.state.lines import Line
from rules.questions.words import say


def lines(facts: ClusterFacts, language: Language) -> list[Line]:
    """GPUs, nodes and pods that use them, and that the cluster is there already."""
    nodes = facts.gpu_nodes
    counted = [node.physical_gpus for node in nodes if node.physical_gpus is not None]
    gpus = sum(counted) if counted else None
    where = say("single.nodes", language, count=len(nodes))
    if gpus is None:
        size = say("single.gpus_unknown", language, nodes=where)
    elif len(counted) < len(nodes):
        size = say("single.gpus_at_least", language, count=gpus, nodes=where)
    else:
        size = say("single.gpus", language, count=gpus, nodes=where)
    pods = sum(len(node.gpu_pods) for node in nodes) if facts.knows("Pod") else None
    use = say("single.pods_unknown", language) if pods is None else say("single.pods", language, count=pods)
    evidence = (
        Evidence("gpus", gpus, "GPU", f"{facts.name}: Node"),
        Evidence("gpu_nodes", len(nodes), source=f"{facts.name}: Node"),
        Evidence("gpu_pods", pods, source=f"{facts.name}: Pod"),
    )
    return [Line(f"{size}; {use}", evidence), Line(say("single.already", language), ())]
