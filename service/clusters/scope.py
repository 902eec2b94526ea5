"""Reading some namespaces only: what is asked where, and what cannot be seen then."""

from collections.abc import Sequence

from rules.findings import Unreadable
from service.clusters.kinds import KindSpec


def scopes(spec: KindSpec, namespaces: Sequence[str]) -> tuple[str | None, ...]:
    """Where a kind is asked for: in each of the namespaces, or (None) in the whole cluster.

    Kinds that are not in namespaces are asked for all the same: a team may have the right to see nodes, and whoever
    has not is told so.
    """
    return tuple(namespaces) if namespaces and spec.namespaced else (None,)


def right_to_add(spec: KindSpec, namespace: str | None) -> str:
    """What to add where, as a sentence, so that a kind can be read."""
    role = f"the Role of that user in the namespace {namespace}" if namespace else "the ClusterRole of that user"
    return f"Add to {role}: {spec.rbac_rule}"


def outside_of(spec: KindSpec, namespaces: Sequence[str]) -> Unreadable | None:
    """Why a kind is not known completely although all that was asked for was read."""
    if not namespaces or not spec.namespaced:
        return None
    listed = ", ".join(namespaces)
    detail = f"only {spec.plural} of {listed} are read (namespaces of this cluster's settings); others may be there"
    return Unreadable(spec.kind, "outside", detail, tuple(namespaces))
