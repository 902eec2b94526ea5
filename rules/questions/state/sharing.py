"""How the GPUs of a cluster are shared now: mode, replicas or profiles, free units."""

from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Evidence
from rules.language import Language
from rules.questions.state.lines import Line, group, node_names, say_slots, slots, who
from rules.questions.words import say


def _mode(node: NodeFacts) -> tuple[str | None, int | None, tuple[str, ...], bool]:
    sharing = node.sharing
    advertised = any(resource.allocatable is not None for resource in node.resources)
    return sharing.mode, sharing.replicas, tuple(sorted(sharing.profiles)), advertised


def lines(facts: ClusterFacts, language: Language) -> list[Line]:
    """A line per pool and way of sharing."""
    found: list[Line] = []
    for pool, (mode, replicas, profiles, advertised), nodes in group(facts.gpu_nodes, _mode):
        count = slots(facts, nodes) if advertised else None
        free = say_slots(count, language) if count else say("sharing.nothing_advertised", language)
        times = f"×{replicas}" if replicas else say("sharing.replicas_unknown", language)
        if not advertised:
            text = free
        elif mode is None:
            text = say("sharing.unknown", language, free=free)
        elif mode in ("mig-single", "mig-mixed"):
            text = say("sharing.mig", language, free=_with_profiles(free, profiles))
        elif mode == "partitioned":
            text = say("sharing.partitioned", language, free=_with_profiles(free, profiles))
        elif mode in ("time-slicing", "mps"):
            text = say(f"sharing.{mode}", language, replicas=times, free=free)
        elif mode == "hami":
            text = say("sharing.hami", language)
        else:
            text = say("sharing.none", language, free=free)
        read = nodes[0].sharing.source
        source = f"{facts.name}: {read or 'Node'}"
        evidence = [Evidence("sharing_mode", mode, source=source), Evidence("nodes", node_names(nodes), source=source)]
        if replicas is not None:
            evidence.append(Evidence("replicas", replicas, source=source))
        if profiles:
            evidence.append(Evidence("profiles", list(profiles), source=source))
        if count:
            evidence.append(
                Evidence("free_units", count.free, source=f"{facts.name}: status.allocatable minus requests of pods")
            )
            evidence.append(Evidence("total_units", count.total, source=f"{facts.name}: status.allocatable"))
        found.append(Line(f"{who(pool, nodes, language)}: {text}", tuple(evidence)))
    return found


def _with_profiles(free: str, profiles: tuple[str, ...]) -> str:
    return f"{free} ({', '.join(f'`{profile}`' for profile in profiles)})" if profiles else free
