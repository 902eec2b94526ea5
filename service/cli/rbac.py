"""``gpu-advisor rbac``: the read-only rights that the product needs, made from the kinds that it reads."""

import argparse
import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rules.errors import InputInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from service.clusters.kinds import KindSpec

HEADER = """\
# Read-only rights of gpu-advisor, made by `gpu-advisor rbac`. It lists and watches what its rules read:
# no Secrets, no logs, no exec, no write. A right that you take away makes its kind unknown, and the audit says so.
"""
_NAMESPACED_HEADER = """\
# Read-only rights of gpu-advisor in some namespaces, made by `gpu-advisor rbac --namespace`. Nodes and what is outside
# of these namespaces stay unknown: the audit tells what pods alone show, and calls nothing idle.
"""
_ACCOUNT = """\
apiVersion: v1
kind: Namespace
metadata: {name: gpu-advisor}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: gpu-advisor, namespace: gpu-advisor}
---
"""
_CLUSTER_ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gpu-advisor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gpu-advisor}
subjects: [{kind: ServiceAccount, name: gpu-advisor, namespace: gpu-advisor}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gpu-advisor}
rules:
"""
_ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: gpu-advisor, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: gpu-advisor}}
subjects: [{{kind: ServiceAccount, name: gpu-advisor, namespace: gpu-advisor}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: gpu-advisor, namespace: {namespace}}}
rules:
"""
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "rbac",
        help="print the ClusterRole that reading a cluster needs",
        description="Prints namespace, service account and the read-only ClusterRole, ready for kubectl apply -f -.",
    )
    parser.add_argument(
        "--namespace",
        action="append",
        metavar="NAME",
        help="print a Role for this namespace instead of the ClusterRole; may be given several times. Name the same "
        "namespaces in the settings of the cluster (namespaces: [...])",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the manifests.

    Raises:
        InputInvalid: a namespace that cannot be one.
    """
    if args.namespace:
        for name in args.namespace:
            if not _NAMESPACE.fullmatch(name):
                raise InputInvalid(f"--namespace {name!r} is no name of a namespace")
        print(namespaced_manifests(list(dict.fromkeys(args.namespace))), end="")
    else:
        print(manifests(), end="")
    return 0


def manifests() -> str:
    """Namespace, service account, binding and ClusterRole as YAML; each rule says what it is read for."""
    from service.clusters.kinds import KINDS

    return HEADER + _ACCOUNT + _CLUSTER_ROLE + _rules(KINDS)


def namespaced_manifests(namespaces: "Sequence[str]") -> str:
    """Namespace and service account, and in each of ``namespaces`` a Role with its binding, as YAML."""
    from service.clusters.kinds import KINDS

    rules = _rules([spec for spec in KINDS if spec.namespaced])
    return _NAMESPACED_HEADER + _ACCOUNT + "---\n".join(_ROLE.format(namespace=name) + rules for name in namespaces)


def _rules(kinds: "Iterable[KindSpec]") -> str:
    def key(spec: "KindSpec") -> tuple[str, tuple[str, ...]]:
        return spec.group, spec.names

    by_group = groupby(sorted(kinds, key=key), key=key)
    return "".join(_rule(group, names, list(specs)) for (group, names), specs in by_group)


def _rule(group: str, names: tuple[str, ...], specs: "list[KindSpec]") -> str:
    reasons = "".join(f"  # {spec.plural}: {spec.why}\n" for spec in specs)
    resources = ", ".join(f'"{spec.plural}"' for spec in specs)
    listed = ", ".join(f'"{name}"' for name in names)
    only = f"    resourceNames: [{listed}]\n" if listed else ""
    rule = f'  - apiGroups: ["{group}"]\n    resources: [{resources}]\n{only}    verbs: ["get", "list", "watch"]\n'
    return reasons + rule
