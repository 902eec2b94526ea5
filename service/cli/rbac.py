"""``gpu-advisor rbac``: the read-only rights that the product needs, made from the kinds that it reads."""

import argparse
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from service.clusters.kinds import KindSpec

HEADER = """\
# Read-only rights of gpu-advisor, made by `gpu-advisor rbac`. It lists and watches what its rules read:
# no Secrets, no logs, no exec, no write. A right that you take away makes its kind unknown, and the audit says so.
apiVersion: v1
kind: Namespace
metadata: {name: gpu-advisor}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: gpu-advisor, namespace: gpu-advisor}
---
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


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "rbac",
        help="print the ClusterRole that reading a cluster needs",
        description="Prints namespace, service account and the read-only ClusterRole, ready for kubectl apply -f -.",
    )
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Print the manifests."""
    print(manifests(), end="")
    return 0


def manifests() -> str:
    """Namespace, service account, binding and ClusterRole as YAML; each rule says what it is read for."""
    from service.clusters.kinds import KINDS

    def key(spec: "KindSpec") -> tuple[str, tuple[str, ...]]:
        return spec.group, spec.names

    by_group = groupby(sorted(KINDS, key=key), key=key)
    return HEADER + "".join(_rule(group, names, list(specs)) for (group, names), specs in by_group)


def _rule(group: str, names: tuple[str, ...], specs: "list[KindSpec]") -> str:
    reasons = "".join(f"  # {spec.plural}: {spec.why}\n" for spec in specs)
    resources = ", ".join(f'"{spec.plural}"' for spec in specs)
    listed = ", ".join(f'"{name}"' for name in names)
    only = f"    resourceNames: [{listed}]\n" if listed else ""
    rule = f'  - apiGroups: ["{group}"]\n    resources: [{resources}]\n{only}    verbs: ["get", "list", "watch"]\n'
    return reasons + rule
