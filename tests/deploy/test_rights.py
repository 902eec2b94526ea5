"""The rights in deploy/ are the ones that the collection uses: no more, no less."""

from pathlib import Path

import yaml

from service.cli.rbac import manifests
from service.clusters.kinds import KINDS

RBAC = Path(__file__).parents[2] / "deploy/rbac.yaml"


def test_the_kept_file_is_current() -> None:
    assert RBAC.read_text() == manifests(), "run: gpu-advisor rbac > deploy/rbac.yaml"


def test_the_role_allows_reading_every_kind_and_nothing_else() -> None:
    documents = {document["kind"]: document for document in yaml.safe_load_all(manifests())}
    rules = documents["ClusterRole"]["rules"]
    allowed = {(group, resource) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]}
    assert allowed == {(spec.group, spec.plural) for spec in KINDS}
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert ("", "secrets") not in allowed


def test_config_maps_may_only_be_read_by_name() -> None:
    role = next(item for item in yaml.safe_load_all(manifests()) if item["kind"] == "ClusterRole")
    rules = [rule for rule in role["rules"] if "configmaps" in rule["resources"]]
    assert [rule["resourceNames"] for rule in rules] == [["cluster-autoscaler-status"]]


def test_the_binding_joins_the_role_and_the_service_account_of_the_file() -> None:
    documents = {document["kind"]: document for document in yaml.safe_load_all(manifests())}
    binding = documents["ClusterRoleBinding"]
    account = documents["ServiceAccount"]["metadata"]
    assert binding["roleRef"]["name"] == documents["ClusterRole"]["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]
