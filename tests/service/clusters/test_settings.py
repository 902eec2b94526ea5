"""What may be configured, what is asked of a cluster, and the errors that speak of it."""

import subprocess
import sys
from typing import Any

import msgspec
import pytest
import yaml

from rules.checks import RULES
from rules.errors import AdvisorError, InputInvalid, PermissionMissing, RemoteTrouble
from service import errors
from service.clusters import ClusterSettings
from service.clusters.kinds import BY_KIND, KINDS


def convert(**fields: Any) -> ClusterSettings:
    return msgspec.convert(fields, ClusterSettings)


def test_source_follows_from_what_is_given() -> None:
    assert convert(name="a").source == "kubeconfig"
    assert convert(name="a", context="prod").source == "kubeconfig"
    assert convert(name="a", in_cluster=True).source == "in-cluster"
    assert convert(name="a", snapshot=["x.json"]).source == "snapshot"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": "a", "snapshot": ["x"], "context": "prod"}, "keep one of them"),
        ({"name": "a", "snapshot": ["x"], "in_cluster": True}, "keep one of them"),
        ({"name": "a", "observed_at": "2026-11-30T00:00:00Z"}, "observed_at is for snapshots"),
        ({"name": "a", "snapshot": ["x"], "observed_at": "2026-11-30T00:00:00"}, "observed_at"),
        ({"name": "a/b"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "a", "page_size": 0}, "page_size"),
        ({"name": "a", "timeout_seconds": 0}, "timeout_seconds"),
        ({"name": "a", "kube_config": "x"}, "kube_config"),
    ],
)
def test_refuses_what_makes_no_sense(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=says):
        convert(**fields)


def test_every_kind_that_a_rule_needs_is_read() -> None:
    needed = {kind for rule in RULES for kind in rule.needs}
    assert needed
    assert needed <= set(BY_KIND)


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.kind)
def test_rights_are_valid_rules_that_only_read(spec: Any) -> None:
    [rule] = yaml.safe_load(spec.rbac_rule)
    only = {"resourceNames": list(spec.names)} if spec.names else {}
    assert rule == {"apiGroups": [spec.group], "resources": [spec.plural], "verbs": ["get", "list", "watch"], **only}


def test_secrets_are_never_read() -> None:
    assert not {"secrets", "configmaps"} & {spec.plural for spec in KINDS if not spec.names}


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("Authorization: Bearer abcdefgh.ijkl", "abcdefgh"),
        ("token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln expired", "c2ln"),
        ("postgresql+psycopg://advisor:pa$$word@db/gpu", "pa$$word"),
        ("slack said no to xoxb-12-34-abc", "xoxb-12-34-abc"),
        ('{"client-key-data": "LS0tLS1"}', "LS0tLS1"),
        ("password=hunter2 was refused", "hunter2"),
        ("-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\n-----END EC PRIVATE KEY-----", "MHcCAQ"),
    ],
)
def test_errors_hide_secrets(text: str, hidden: str) -> None:
    assert hidden not in errors.redact(text)
    assert hidden not in str(errors.ClusterUnreachable("lab", text, "Try again."))
    assert hidden not in str(errors.ConfigInvalid("config.yaml", 3, text))
    assert hidden not in str(errors.StoreUnavailable(text))


def test_errors_keep_ordinary_words() -> None:
    text = 'invalid continue token: continue key is not valid; secrets is forbidden: User "reader" cannot list'
    assert errors.redact(text) == text


def test_every_error_has_its_own_code_and_a_branch() -> None:
    own = [
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, AdvisorError) and item.__module__ == errors.__name__
    ]
    assert len({error.code for error in own}) == len(own)
    for error in own:
        if error is not errors.ClusterTrouble:
            assert issubclass(error, InputInvalid | PermissionMissing | RemoteTrouble)
        assert error.__name__ in (errors.__doc__ or "")


def test_an_error_says_what_happened_where_and_what_to_do() -> None:
    error = errors.ClusterTimeout("lab", "no answer within 5 seconds", "Raise timeout_seconds.")
    assert str(error) == "cluster lab: no answer within 5 seconds. Raise timeout_seconds."
    assert str(errors.ConfigInvalid("config.yaml", 7, "expected a number")) == "config.yaml, line 7: expected a number"
    assert "configured are: a, b" in str(errors.ClusterUnknown("c", ["a", "b"]))


def test_snapshots_need_neither_the_official_client_nor_http() -> None:
    """Importing the official client takes about a second."""
    program = (
        "import sys; from service.clusters import ClusterSettings, connect;"
        "connect(ClusterSettings(name='a', snapshot=['x']));"
        "sys.exit(', '.join({'kubernetes', 'aiohttp', 'stamina'} & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
