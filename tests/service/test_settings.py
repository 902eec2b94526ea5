"""Settings: what they accept, and that every mistake names its place."""

import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import msgspec
import pytest

from rules.checks import RULES
from rules.custom import CustomRule
from rules.facts.prices import Price
from rules.findings import Severity
from rules.policy import Policy
from service.errors import ConfigInvalid
from service.prices import price_book
from service.rulebook import rulebook
from service.settings import ContractPrice, Settings, check_rules, database_url, load, redacted_url

FULL = """\
database_url: postgres://advisor:pa55word@db.example/advisor
host: 0.0.0.0
port: 9000
api_token: very-secret-token
language: es
clusters:
  - name: prod
    kubeconfig: keys/prod.yaml
    context: admin
  - name: sample
    snapshot: [nodes.json, /abs/pods.json]
    observed_at: 2026-11-30T10:00:00Z
audit:
  interval_seconds: 120
alerts:
  rules: [idle-gpu-node]
  min_severity: high
policy:
  idle_grace_seconds: 3600
  disabled_rules: [gpu-pod-pending]
slack:
  bot_token: xoxb-1
  signing_secret: shhh-signing
  alert_channel: C0ALERTS
  alert_language: it
prices:
  - {provider: aws, instance_type: p5.48xlarge, region: us-east-1, usd_hour: 40, note: reserved until 2027-06}
log: {level: debug, format: json}
"""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "gpu-advisor.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_without_anything_it_serves_on_loopback_with_sqlite_and_no_cluster() -> None:
    settings = load(None, {})
    assert settings.database_url == "sqlite+aiosqlite:///gpu-advisor.db"
    assert (settings.host, settings.port, settings.api_token, settings.clusters) == ("127.0.0.1", 8000, None, ())
    assert settings.slack.mode == "off"
    settings.check_binding()


def test_a_full_file_is_read_with_paths_relative_to_it(tmp_path: Path) -> None:
    settings = load(written(tmp_path, FULL), {})
    assert settings.database_url == "postgresql+psycopg://advisor:pa55word@db.example/advisor"
    prod, sample = settings.clusters
    assert (prod.kubeconfig, prod.context) == (str(tmp_path / "keys/prod.yaml"), "admin")
    assert sample.snapshot == [str(tmp_path / "nodes.json"), "/abs/pods.json"]
    assert settings.audit.interval_seconds == 120
    assert (settings.alerts.rules, settings.alerts.min_severity) == (frozenset({"idle-gpu-node"}), Severity.HIGH)
    assert settings.policy.disabled_rules == frozenset({"gpu-pod-pending"})
    assert (settings.slack.alert_language, settings.slack.default_language) == ("it", "es")
    assert settings.prices[0].usd_hour == 40
    assert (settings.log.level, settings.log.format) == ("debug", "json")
    settings.check_binding()


def test_the_environment_wins_and_empty_variables_count_as_unset(tmp_path: Path) -> None:
    env = {
        "DATABASE_URL": "postgresql://other/db",
        "GPU_ADVISOR_PORT": "7000",
        "GPU_ADVISOR_API_TOKEN": "",
        "GPU_ADVISOR_LOG_LEVEL": "error",
        "SLACK_APP_TOKEN": "xapp-1",
        "SLACK_API_URL": "http://127.0.0.1:1/api/",
    }
    settings = load(written(tmp_path, FULL), env)
    assert settings.database_url == "postgresql+psycopg://other/db"
    assert (settings.port, settings.api_token, settings.log.level) == (7000, "very-secret-token", "error")
    assert (settings.slack.mode, settings.slack.base_url) == ("socket", "http://127.0.0.1:1/api/")


def test_the_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    assert load(None, {"GPU_ADVISOR_CONFIG": str(written(tmp_path, "port: 1234\n"))}).port == 1234


def test_an_empty_file_is_as_good_as_none(tmp_path: Path) -> None:
    assert load(written(tmp_path, "# nothing yet\n"), {}) == load(None, {})


def test_secrets_are_not_in_the_repr(tmp_path: Path) -> None:
    shown = repr(load(written(tmp_path, FULL), {"SLACK_APP_TOKEN": "xapp-hidden"}))
    for secret in ("pa55word", "very-secret-token", "xoxb-1", "shhh-signing", "xapp-hidden"):
        assert secret not in shown
    assert "db.example" in shown


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("port: 1\npolici: {}\n", 2, "unknown setting 'polici'; did you mean 'policy'?"),
        ("policy:\n\n  idle_grace_secs: 3\n", 3, "did you mean 'idle_grace_seconds'? (at `policy.idle_grace_secs`)"),
        ("clusters:\n  - name: a\n  - name: b\n    snapshots: [x]\n", 4, "did you mean 'snapshot'? (at `clusters[1]."),
        ("slack:\n  zzzz: 1\n", 2, "unknown setting 'zzzz'; known here: alert_channel, "),
        ("clusters:\n  - name: a\n  - kubeconfig: x\n", 3, "missing required field `name` (at `clusters[1]`)"),
        ("audit:\n  interval_seconds: 3\n", 2, "Expected `int` >= 10 (at `audit.interval_seconds`)"),
        ("log:\n  level: loud\n", 2, "'loud' (at `log.level`)"),
        ("clusters:\n  name: a\n", 1, "Expected `array`, got `object` (at `clusters`)"),
        ("clusters:\n  - name: a\n  - name: a\n", 3, "'a' is already the name of another cluster"),
        ("clusters:\n  - name: a\n    in_cluster: true\n    context: b\n", 2, "keep one of them"),
        ("port: 1\nhost: x\nport: 2\n", 3, "`port` stands twice"),
        ("slack:\n  bot_token: 'nope'\n", 2, "xoxb-"),
        ("language: es\ndatabase_url: mysql://a/b\n", 2, "'mysql' is not supported"),
        ("prices:\n  - provider: aws\n    usd_hour: 1\n    usd_gpu_hour: 1\n", 2, "either usd_hour"),
        ("prices:\n  - usd_hour: 1\n", 2, "for which nodes"),
        ("prices:\n  - provider: aws\n    usd_hour: -1\n", 3, "Expected `float` >= 0"),
        ("host: [\n", 2, "not valid YAML"),
        ("host: x\n  port: 1\n", 2, "not valid YAML"),
        ("- a\n", 1, "expected settings such as `clusters:`"),
        ("clusters: !!python/object/apply:os.system ['true']\n", 1, "not valid YAML"),
        ("a: 1\n---\nb: 1\n", 2, "not valid YAML"),
    ],
)
def test_a_mistake_in_the_file_names_file_line_and_path(tmp_path: Path, text: str, line: int, expected: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigInvalid) as caught:
        load(file, {})
    assert caught.value.source == str(file)
    assert caught.value.line == line
    assert expected in str(caught.value)
    assert str(caught.value).startswith(f"{file}, line {line}: ")


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("GPU_ADVISOR_PORT", "eighty", "Expected `int`"),
        ("GPU_ADVISOR_PORT", "70000", "65535"),
        ("DATABASE_URL", "db.example", "expected a URL"),
        ("SLACK_BOT_TOKEN", "token", "xoxb-"),
        ("GPU_ADVISOR_LANGUAGE", "fr", "'fr'"),
    ],
)
def test_a_mistake_in_a_variable_names_the_variable(variable: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        load(None, {variable: value})
    assert f"environment variable {variable}: " in str(caught.value)
    assert expected in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="No such file"):
        load(tmp_path / "missing.yaml", {})
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigInvalid, match="not UTF-8"):
        load(binary, {})
    with pytest.raises(ConfigInvalid, match=r"missing\.yaml"):
        load(None, {"GPU_ADVISOR_CONFIG": str(tmp_path / "missing.yaml")})


@pytest.mark.parametrize(
    ("host", "token", "refused"),
    [
        ("127.0.0.1", None, False),
        ("::1", None, False),
        ("[::1]", None, False),
        ("localhost", None, False),
        ("127.8.8.8", None, False),
        ("0.0.0.0", None, True),
        ("::", None, True),
        ("10.0.0.7", None, True),
        ("advisor.example", None, True),
        ("", None, True),
        ("0.0.0.0", "token", False),
    ],
)
def test_only_loopback_is_served_without_a_token(host: str, token: str | None, refused: bool) -> None:
    settings = Settings(host=host, api_token=token)
    if not refused:
        settings.check_binding()
        return
    with pytest.raises(ConfigInvalid, match="GPU_ADVISOR_API_TOKEN"):
        settings.check_binding()


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("postgres://u:p@h/d", "postgresql+psycopg://u:p@h/d"),
        ("postgresql://h:5433/d?sslmode=require", "postgresql+psycopg://h:5433/d?sslmode=require"),
        ("postgresql+psycopg://h/d", "postgresql+psycopg://h/d"),
        ("sqlite:////var/lib/a.db", "sqlite+aiosqlite:////var/lib/a.db"),
        ("sqlite+aiosqlite:///a.db", "sqlite+aiosqlite:///a.db"),
    ],
)
def test_database_urls_get_the_driver_that_the_store_uses(given: str, used: str) -> None:
    assert database_url(given) == used


def test_a_url_is_shown_without_its_password() -> None:
    assert redacted_url("postgresql+psycopg://u:p%40ss@h:5432/d") == "postgresql+psycopg://u:***@h:5432/d"
    assert redacted_url("sqlite+aiosqlite:///a.db") == "sqlite+aiosqlite:///a.db"


def test_the_rules_that_are_announced_by_default_exist() -> None:
    check_rules(Settings(), [rule.id for rule in RULES])


def test_contract_prices_go_before_list_prices_but_not_for_spot_nodes() -> None:
    book = price_book([ContractPrice(provider="aws", instance_type="p5.48xlarge", usd_hour=40.0, note="until 2027")])

    def price(region: str, *, spot: bool | None = None) -> Price | None:
        return book.find(
            provider="aws", instance_type="p5.48xlarge", region=region, spot=spot, product="NVIDIA-H100", gpus=8
        )

    own = price("us-east-1")
    assert own is not None
    assert (own.usd_hour, own.basis) == (40.0, "contract")
    assert "until 2027" in own.source
    spot = price("us-east-1", spot=True)
    assert spot is None or spot.basis != "contract"


def test_reading_settings_loads_neither_database_nor_web_framework_nor_cluster_client() -> None:
    heavy = {"sqlalchemy", "sqlmodel", "alembic", "litestar", "kubernetes", "slack_bolt", "apscheduler", "psycopg"}
    code = f"import sys; import service.settings; print({heavy!r} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


RULE = """\
rules:
  - id: gpu-node-without-team
    scope: node
    when: {when}
    title: "GPU node {{node}} belongs to no team"
    detail: Nobody is asked about its cost.
    remedy: "`kubectl label node {{node}} team=TEAM`"
"""


def ids(settings: Settings) -> list[str]:
    return [rule.id for rule in settings.rules if isinstance(rule, CustomRule)]


def test_rules_of_the_team_are_read_from_the_settings_and_from_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "folder.d").mkdir()
    for name, file in (("b", "folder.d/2.yml"), ("a", "folder.d/1.yaml"), ("c", "one.yaml")):
        (tmp_path / file).write_text(RULE.format(when="node.ready").replace("gpu-node-without-team", name))
    (tmp_path / "folder.d/README.md").write_text("no rule")
    text = RULE.format(when="node.ready").replace("rules:\n", "rules:\n  - one.yaml\n  - folder.d/\n")
    settings = load(written(tmp_path, text), {})
    assert ids(settings) == ["c", "a", "b", "gpu-node-without-team"]
    book = rulebook(settings)
    assert [rule.id for rule in book[-4:]] == ["c", "a", "b", "gpu-node-without-team"]
    assert len(book) == len(RULES) + 4


def test_rules_of_the_team_may_be_named_wherever_rules_are(tmp_path: Path) -> None:
    text = RULE.format(when="node.ready") + (
        "alerts: {rules: [gpu-node-without-team]}\n"
        "policy:\n"
        "  severity: {gpu-node-without-team: low, idle-gpu-node: info}\n"
        "  exemptions:\n"
        "    - {rules: [gpu-node-*, idle-gpu-node], namespace: 'dev-*', reason: ours, until: 2026-12-31}\n"
    )
    settings = load(written(tmp_path, text), {})
    assert settings.policy.severity == {"gpu-node-without-team": Severity.LOW, "idle-gpu-node": Severity.INFO}
    assert settings.policy.exemptions[0].until == date(2026, 12, 31)
    check_rules(settings, [rule.id for rule in rulebook(settings)])


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        (
            RULE.format(when="node.lables.team == 'x'"),
            4,
            "rule 'gpu-node-without-team', `when`, column 6: there is no fact 'lables'; did you mean 'labels'?",
        ),
        (
            RULE.format(when="|\n      node.ready &&\n      node.lables.team == 'x'"),
            6,
            "`when`, line 2, column 6: there",
        ),
        (RULE.format(when=">\n      node.ready &&\n      node.lables.team == 'x'"), 4, "`when`, column 20: there"),
        (RULE.format(when="node.ready").replace("{node} belongs", "{nod} belongs"), 5, "no value 'nod'"),
        (RULE.format(when="node.ready") + "    values:\n      price: node.prise\n", 9, "`values.price`, column 6: "),
        (RULE.format(when="node.ready") + "    values:\n      p:\n        value: node.x\n", 10, "`values.p.value`, c"),
        (RULE.format(when="node.ready") + "    value: {}\n", 8, "unknown setting 'value'; did you mean 'values'?"),
        (
            RULE.format(when="node.ready") + "    values:\n      p: {value: x}\n      q:\n        valeu: x\n",
            11,
            "'valeu'; did you mean 'value'?",
        ),
        (RULE.format(when="node.ready") + "    values: {p: {unit: GPU}}\n", 8, "missing required field `value`"),
        (RULE.format(when="node.ready").replace("scope: node", "scope: nodes"), 3, "Invalid enum value 'nodes'"),
        (RULE.format(when="node.ready").replace("gpu-node-without-team", "idle-gpu-node"), 2, "already a rule 'idle-"),
        (RULE.format(when="node.ready").replace("gpu-node-without-team", "Team"), 2, "matching regex"),
        ("rules:\n  - id: x\n    scope: node\n", 2, "missing required field `when`"),
        ("rules:\n  - missing.yaml\n", 2, "missing.yaml' cannot be read: No such file or directory"),
        ("port: 1\nrules:\n  - .\n  - 3\n", 4, "Expected `str | object`, got `int`"),
        ("rules: rules.yaml\n", 1, "Expected `array`, got `str` (at `rules`)"),
        ("policy:\n  disabled_rules:\n    - idle-gpu-node\n    - idle-gpu-nod\n", 4, "did you mean 'idle-gpu-node'?"),
        ("policy:\n  severity:\n    idle-gpu-nod: low\n", 3, "did you mean 'idle-gpu-node'?"),
        ("policy:\n  severity:\n    idle-gpu-node: mild\n", 3, "Invalid enum value 'mild'"),
        ("alerts:\n  rules: [idle-gpu-node,\n    zzz]\n", 3, "there is no rule 'zzz'; there are: "),
        (
            "policy:\n  exemptions:\n    - rules: [idle-*]\n      reason: x\n      until: 2026-12-31\n"
            "    - rules: [spot-nothing-*]\n      reason: x\n      until: 2026-12-31\n",
            6,
            "no rule is called 'spot-nothing-*'",
        ),
        ("policy:\n  exemptions:\n    - rules: [a]\n      until: 2026-12-31\n", 3, "missing required field `reason`"),
        ("policy:\n  exemptions:\n    - rules: [a]\n      reason: x\n", 3, "missing required field `until`"),
        ("policy:\n  exemptions:\n    - {rules: ['*'], reason: x, until: 2026-12-31}\n", 3, "exempt everything"),
        ("policy:\n  exemptions:\n    - {rules: [a], reason: x, until: soon}\n", 3, "Invalid RFC3339"),
        ("policy:\n  exemptions:\n    - {rule: [a], reason: x, until: 2026-12-31}\n", 3, "did you mean 'rules'?"),
    ],
)
def test_a_mistake_in_a_rule_names_its_place(tmp_path: Path, text: str, line: int, expected: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigInvalid) as caught:
        load(file, {})
    assert expected in str(caught.value)
    assert (caught.value.source, caught.value.line) == (str(file), line)


def test_a_mistake_in_another_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("# ours\n" + RULE.format(when="|\n      node.ready &\n      true"))
    with pytest.raises(ConfigInvalid) as caught:
        load(written(tmp_path, "rules: [team.yaml]\n"), {})
    assert (caught.value.source, caught.value.line) == (str(tmp_path / "team.yaml"), 6)
    assert str(caught.value).endswith(
        "column 12: '&' means nothing here; and is &&\n    node.ready &\n               ^"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- id: x\n", "expected `rules:` at the top"),
        ("rules:\n  - other.yaml\n", "Expected `object`, got `str`"),
        ("port: 3\n", "unknown setting 'port'"),
        ("", "missing required field `rules`"),
        (RULE.format(when="node.ready") + RULE.format(when="node.ready").removeprefix("rules:\n"), "already a rule"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_a_file_of_rules_holds_rules_and_nothing_else(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "team.yaml").write_text(text)
    with pytest.raises(ConfigInvalid, match=re.escape(expected)) as caught:
        load(written(tmp_path, "rules: [team.yaml]\n"), {})
    assert caught.value.source == str(tmp_path / "team.yaml")


def test_a_folder_without_rules_and_a_file_too_large_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigInvalid, match=r"holds no file that ends in \.yaml or \.yml"):
        load(written(tmp_path, "rules: [empty]\n"), {})
    (tmp_path / "large.yaml").write_text("#" * 1_000_001)
    with pytest.raises(ConfigInvalid, match="larger than"):
        load(written(tmp_path, "rules: [large.yaml]\n"), {})


def test_rules_that_were_put_together_in_code_are_checked_as_well() -> None:
    broken = msgspec.convert(
        {"id": "x", "scope": "node", "when": "node.x", "title": "t", "detail": "d", "remedy": "r"}, CustomRule
    )
    with pytest.raises(ConfigInvalid, match="there is no fact 'x'"):
        rulebook(Settings(rules=(broken,)))
    with pytest.raises(ConfigInvalid, match=r"did you mean 'idle-gpu-node'\? \(at `policy.severity`\)"):
        check_rules(Settings(policy=Policy(severity={"idle-gpu-nod": Severity.LOW})), ["idle-gpu-node"])


def test_settings_without_rules_load_neither_the_rules_nor_the_expression_engine(tmp_path: Path) -> None:
    file = written(tmp_path, "language: es\nclusters: [{name: a, in_cluster: true}]\n")
    code = (
        "import sys; from pathlib import Path; from service.settings import load; "
        f"load(Path({str(file)!r}), {{}}); print({{'cel', 'rules.checks', 'rules.engine'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


EXAMPLE = Path(__file__).parents[2] / "deploy/config.example.yaml"


def test_the_example_is_read_as_it_is_and_with_its_commented_rules(tmp_path: Path) -> None:
    assert load(EXAMPLE, {}).rules == ()
    text = EXAMPLE.read_text()
    wishes, _, own = text[text.index("  # disabled_rules") :].partition("rules: []\n")
    wanted = re.sub(r"^  # ", "  ", wishes, flags=re.MULTILINE)
    rules = "\n".join(line[1:] for line in own.splitlines() if line.startswith("#") and ".yaml" not in line)
    settings = load(written(tmp_path, f"policy:\n{wanted}rules:\n{rules}\n"), {})
    assert ids(settings) == ["gpu-node-without-team"]
    assert settings.policy.exemptions[0].labels == {"pool": "warm"}
    assert settings.policy.disabled_rules == {"gpu-pod-pending"}
