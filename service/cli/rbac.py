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

    by_group = groupby(sorted(KINDS, key=lambda spec: spec.group), key=lambda spec: spec.group)
    return HEADER + "".join(_rule(group, list(specs)) for group, specs in by_group)


def _rule(group: str, specs: "list[KindSpec]") -> str:
    reasons = "".join(f"  # {spec.plural}: {spec.why}\n" for spec in specs)
    resources = ", ".join(f'"{spec.plural}"' for spec in specs)
    rule = f'  - apiGroups: ["{group}"]\n    resources: [{resources}]\n    verbs: ["get", "list", "watch"]\n'
    return reasons + rule
