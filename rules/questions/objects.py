"""Names of Kubernetes objects in a text: which node, pod, namespace or cluster people speak of."""

import re
from typing import Any

_NAME = r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?"
_PLAIN = """
    own proprio propio existing same whole entire new second managed gestito gestionado another otro otra altro shared
    main
    a affinity al all an and any are as at autoscaler be been being by called che chiamato cluster clusters con cost
    costs count cpu da de del della di did do does driver drivers e each ed el en es esta estan every for free from
    gli gpu gpus group groups ha had hanno has have hay here how i idle il image images in inference is it its k8s
    kubernetes la las le level libre like llamada llamado lo los mi mia mio mis my name named names namespace
    namespaces nei nel nella no node nodes nodi nodo nodos non nostro not now nuestro nvidia o of on one ones or our
    para pending per plugin pod pods pool pools por port price que ready right running se security selector si size
    spec sta state status still su sul template than that the there they this tiene tienen to training type types un
    una usa uses using version was we what when where which who why wide with y ya you
"""
_STOP = frozenset(_PLAIN.split())
"""Words that follow "node" or "namespace" and are no names."""
_PREFIXED = {
    "namespace": re.compile(
        rf"(?:\b(?:namespaces?|ns|espacio de nombres)|(?<!\S)-n\s|--namespace[ =])\s*[:=]?\s*(?:is |called |named "
        rf"|llamado |de "
        rf"|del |di |chiamato )?[\"'`]?({_NAME})"
    ),
    "pod": re.compile(rf"\b(?:pods?|podname)\s*[:=/]?\s*(?:called |named |llamado |chiamato )?[\"'`]?({_NAME})"),
    "node": re.compile(
        rf"\b(?:nodes?|nodos?|nodi|nodo|host|maquina|macchina|machine)\s*[:=/]?\s*(?:called |named |llamado "
        rf"|chiamato )?[\"'`]?({_NAME})"
    ),
    "cluster": re.compile(rf"\b(?:cluster|clusters)\s+(?:called |named |llamado |chiamato |de |di )?[\"'`]?({_NAME})"),
    "pool": re.compile(rf"\b(?:node ?pool|nodepool|node ?group|pool|grupo|gruppo)\s+[\"'`]?({_NAME})"),
}
_SUFFIXED = {
    "namespace": re.compile(rf"\b({_NAME})[\"'`]? (?:namespace|ns)\b"),
    "cluster": re.compile(rf"\b({_NAME})[\"'`]? cluster\b"),
}
_NODE_SHAPES = re.compile(
    r"(?<![\w.-])(ip-\d+-\d+-\d+-\d+[\w.-]*|gke-[\w-]+|aks-[\w-]+|ske-[\w-]+|(?:gpu|node|worker|nodo|dgx|h100|a100|h200|b200|t4|l4|l40s)-[\w.-]*\d[\w.-]*)"
)
_POD_SHAPE = re.compile(
    r"(?<![\w./-])([a-z][a-z0-9]*(?:-[a-z0-9]+)*-(?:[a-f0-9]{8,10}-[a-z0-9]{5}|[a-z0-9]{5}|\d{1,3}))(?![\w./-])"
)
_CLUSTER_SHAPE = re.compile(
    r"(?<![\w./-])((?:prod|staging|stage|dev|lab|test|research)(?:-[a-z0-9-]+)?|[a-z]+-(?:prod|staging|dev|lab|test))(?![\w./-])"
)


def objects(folded: str) -> dict[str, Any]:
    """``node``, ``pod``, ``namespace``, ``cluster``, ``pool`` as far as a folded text names one."""
    found: dict[str, Any] = {}
    for patterns in (_PREFIXED, _SUFFIXED):
        for sort, pattern in patterns.items():
            names = (match[1].rstrip(".-") for match in pattern.finditer(folded))
            name = next((name for name in names if _is_name(name, sort)), None)
            if name:
                found.setdefault(sort, name)
    shape = _NODE_SHAPES.search(folded)
    if shape and "node" not in found and found.get("pod") != shape[1]:
        found["node"] = shape[1].rstrip(".-")
    pod = _POD_SHAPE.search(folded)
    if pod and "pod" not in found and pod[1] not in found.values() and re.search(r"\d", pod[1]):
        found["pod"] = pod[1]
    cluster = _CLUSTER_SHAPE.search(folded)
    if cluster and "cluster" not in found and cluster[1] not in found.values():
        found["cluster"] = cluster[1]
    return found


def _is_name(name: str, sort: str) -> bool:
    if name in _STOP or len(name) < 2 or name.isdigit():
        return False
    # A plain word after "pod" or "node" is most often a verb; an object's name has a digit or a hyphen in it.
    return bool(re.search(r"[\d-]", name)) if sort in ("pod", "node", "pool") else True
