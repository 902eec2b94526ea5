"""Answers about compatibility: the verdict of the engine on what the text names, or on the drivers of the clusters."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import msgspec

from rules import words
from rules.answers import Source, Verdict
from rules.compat import check, image_cuda
from rules.compat.check import Verdict as Judgement
from rules.compat.gpus import Gpu, recognise
from rules.compat.nvidia import reported_cuda
from rules.compat.report import document
from rules.compat.versions import key, major, nvidia_driver
from rules.compat.words import headline
from rules.facts.cluster import ClusterFacts
from rules.facts.model import NodeFacts
from rules.findings import Evidence
from rules.language import Language
from rules.questions.composers import Asked, Piece
from rules.questions.state.lines import group, node_names, who
from rules.questions.words import say

MOST_CASES = 6
"""Combinations that one answer judges; a message that names more asks for a table, which ``compat --batch`` gives."""
MOST_GROUPS = 8
"""Groups of nodes told per cluster."""

_SAID: dict[str, Verdict] = {
    "ok": "yes",
    "ok_minor_compat": "yes",
    "needs_forward_compat": "depends",
    "driver_too_old": "no",
    "arch_unsupported": "no",
    "unknown": "unknown",
}


def compose(asked: Asked) -> Piece | None:
    """The verdict; None where the text names neither a driver nor software."""
    named = asked.part.entities
    drivers, software, gpus = _listed(named.get("driver")), _software(named, asked.text), _listed(named.get("gpu"))
    if software and not drivers:
        seen = list(_on_clusters(software, gpus, asked))
        if seen:
            return _piece(asked, [block for block, _, _ in seen], [case for _, cases, _ in seen for case in cases],
                          [item for _, _, evidence in seen for item in evidence])  # fmt: skip
    if not software:
        return _of_driver(drivers, gpus, asked)
    given: list[str | None] = [*drivers] or [None]
    cards: list[str | None] = [*gpus] or [None]
    cases = [check(driver=driver, gpu=gpu, **chosen) for driver, chosen, gpu in product(given, software, cards)][
        :MOST_CASES
    ]
    several = len(cases) > 1
    blocks = ["\n".join(_case(case, named, asked.language, several)) for case in cases]
    if not drivers and any(case.verdict == "unknown" for case in cases):
        blocks.append(_missing("compat.missing_driver", asked.language))
    piece = _piece(asked, blocks, cases, [])
    # The least driver was told: there is nothing to judge, and nothing that is not known.
    if not drivers and gpus and all(case.verdict == "unknown" and case.floor_driver for case in cases):
        told = [_source(card.row.source, card.row.as_of) for gpu in gpus if (card := recognise(gpu))]
        return msgspec.structs.replace(piece, verdict=None, sources=tuple(dict.fromkeys((*piece.sources, *told))))
    return piece


def _piece(asked: Asked, blocks: Sequence[str], cases: Sequence[Judgement], evidence: Sequence[Evidence]) -> Piece:
    verdicts = {_SAID[case.verdict] for case in cases}
    return Piece(
        title=say("compat.title", asked.language),
        blocks=tuple(blocks),
        verdict=verdicts.pop() if len(verdicts) == 1 else "depends",
        evidence=tuple(evidence),
        sources=tuple(dict.fromkeys(_sources(cases))),
        fields={"answer": document(cases[0], asked.language) if len(cases) == 1 else None},
    )


def _listed(value: Any) -> list[str]:
    return [] if value is None else [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _software(named: dict[str, Any], text: str) -> list[dict[str, Any]]:
    """What is to run, as arguments of the engine. Beside an image that tells its CUDA, a version in the text is what
    ``nvidia-smi`` shows of the driver."""
    versions = _listed(named.get("cuda"))
    image = named.get("image")
    if image is None:
        return [{"cuda": version} for version in versions]
    read = image_cuda(str(image))
    if read.cuda or read.rocm:
        smi = versions[0] if versions and "smi" in text.lower() and not named.get("driver") else None
        return [{"image": str(image), "driver_cuda": smi}]
    return [{"image": str(image), "cuda": version} for version in versions] or [{"image": str(image)}]


def _case(case: Judgement, named: dict[str, Any], language: Language, several: bool) -> Iterator[str]:
    limits = _limits(case, language)
    name = f"{_name(case, named, language)}. " if several or not named.get("driver") else ""
    first, *others = case.reasons
    if limits and case.verdict == "unknown" and not named.get("driver"):
        yield f"{name}{limits}"  # what was asked for is the least driver; that it is not known is no news
        others = [reason for reason in others if reason.key != "driver_unknown"]
    else:
        yield f"{name}**{headline(case.verdict).in_(language)}** {first.text.in_(language)}"
        if limits and case.verdict not in ("ok", "arch_unsupported"):
            yield f"- {limits}"
    for reason in others:
        yield f"- {reason.text.in_(language)}"
    for warning in case.warnings:
        yield f"- {say('heading.mind', language)}: {warning.text.in_(language)}"


def _name(case: Judgement, named: dict[str, Any], language: Language) -> str:
    parts = []
    if case.driver:
        parts.append(say("compat.driver", language, value=case.driver))
    if named.get("image"):
        parts.append(say("compat.image", language, value=named["image"]))
    elif case.cuda:
        parts.append(say("compat.cuda", language, value=case.cuda))
    if case.gpu:
        parts.append(say("compat.gpu", language, value=case.gpu))
    return ", ".join(parts)


def _limits(case: Judgement, language: Language) -> str | None:
    if case.floor_driver is None:
        return None
    card = recognise(case.gpu) if case.gpu and not case.driver else None
    told = _of_card(card, language) if card else None
    if case.min_driver is None or case.min_driver == case.floor_driver:
        software = say("compat.floor_only", language, floor=case.floor_driver)
    else:
        software = say("compat.min_driver", language, own=case.min_driver, floor=case.floor_driver)
    if card is None or told is None:
        return software
    least = max(case.floor_driver, _least(card), key=key)
    return f"{software} {told} **{say('compat.together', language, least=least)}**"


def _least(card: Gpu) -> str:
    """The least driver of a card whose branch is known: what is stated for the product, else its first branch."""
    return max(filter(None, (card.product_min_driver, str(card.min_branch))), key=key)


def _of_card(card: Gpu, language: Language) -> str | None:
    """The least driver that knows a card, and the one for MIG on it; None where the facts have none."""
    if card.min_branch is None:
        return None
    parts = [say("compat.card", language, gpu=card.name, least=_least(card))]
    if card.oldest_cuda:
        parts.append(say("compat.card_cuda", language, cuda=card.oldest_cuda))
    if card.mig_min_driver:
        parts.append(say("compat.card_mig", language, least=card.mig_min_driver))
    return " ".join(parts)


def _missing(what: str, language: Language) -> str:
    return say("compat.missing", language, what=say(what, language))


def _of_driver(drivers: Sequence[str], gpus: Sequence[str], asked: Asked) -> Piece | None:
    """What a driver can run, where no software is named."""
    blocks: list[str] = []
    sources: list[Source] = []
    for driver in drivers:
        read = nvidia_driver(driver)
        row = None if read is None else reported_cuda(major(read))
        if row is not None and row.max_cuda:
            blocks.append(say("compat.highest", asked.language, driver=driver, cuda=row.max_cuda))
            sources.append(_source(row.source, row.as_of))
    if not drivers:
        cards = [card for gpu in gpus if (card := recognise(gpu)) and _of_card(card, asked.language)]
        if cards:
            return Piece(
                title=say("compat.title", asked.language),
                blocks=tuple(str(_of_card(card, asked.language)) for card in cards),
                sources=tuple(dict.fromkeys(_source(card.row.source, card.row.as_of) for card in cards)),
            )
    if not blocks and not drivers and not gpus:
        return None
    blocks.append(_missing("compat.missing_software" if drivers else "compat.missing_driver", asked.language))
    return Piece(
        title=say("compat.title", asked.language),
        blocks=tuple(blocks),
        verdict="unknown",
        sources=tuple(dict.fromkeys(sources)),
        clarify=len(blocks) == 1,
    )


def _on_clusters(
    software: Sequence[dict[str, Any]], gpus: Sequence[str], asked: Asked
) -> Iterator[tuple[str, list[Judgement], list[Evidence]]]:
    """What is to run, judged on the GPU nodes of each cluster whose drivers are known."""
    for facts in asked.known.clusters:
        nodes = [node for node in facts.gpu_nodes if node.driver_version and _wanted(node, gpus)]
        if nodes:
            yield _on_cluster(facts, nodes, software[0], asked.language)


def _wanted(node: NodeFacts, gpus: Sequence[str]) -> bool:
    if not gpus:
        return True
    product_name = (node.product or "").lower()
    return any(gpu.lower().split()[0] in product_name.replace("-", " ").split() for gpu in gpus)


def _on_cluster(
    facts: ClusterFacts, nodes: Sequence[NodeFacts], chosen: dict[str, Any], language: Language
) -> tuple[str, list[Judgement], list[Evidence]]:
    when = words.format_value(facts.observed_at.isoformat(), "date", language)
    drivers = sorted({str(node.driver_version) for node in nodes})
    lines = [say("compat.nodes", language, cluster=facts.name, when=when, drivers=words.format_list(drivers, language))]
    cases: list[Judgement] = []
    evidence: list[Evidence] = []
    grouped = group(nodes, lambda node: (node.driver_version, node.product, node.vendor, node.cuda_ceiling))
    for pool, (driver, model, vendor, ceiling), members in grouped[:MOST_GROUPS]:
        case = check(driver=driver, gpu=model, vendor=vendor, **{**chosen, "driver_cuda": ceiling})
        cases.append(case)
        lines.append(
            f"- {who(pool, members, language)} ({say('compat.driver', language, value=driver)}): "
            f"**{headline(case.verdict).in_(language)}** {case.reasons[0].text.in_(language)}"
        )
        evidence.append(Evidence("driver_version", driver, source=f"{facts.name}: {members[0].driver_source}"))
        evidence.append(Evidence("nodes", node_names(members), source=f"{facts.name}: Node"))
    return "\n".join(lines), cases, evidence


def _sources(cases: Sequence[Judgement]) -> Iterator[Source]:
    for case in cases:
        for reason in (*case.reasons, *case.warnings):
            if reason.source:
                yield _source(reason.source, reason.as_of)


def _source(source: str, as_of: str | None) -> Source:
    is_page = source.startswith("https://")
    label = source.removeprefix("https://").split("/")[0] if is_page else source
    return Source(label=label, url=source if is_page else None, as_of=as_of)
