"""Typed settings: one YAML file, overlaid by the environment (the environment wins; an empty variable counts as unset).

Reading them is light: nothing of the database, the cluster client or the web framework is imported here, since
``gpu-advisor ask`` passes through.
"""

import difflib
import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec

from bot.settings import SlackSettings, SlackSettingsInvalid
from rules.custom import CustomRule
from rules.findings import Severity
from rules.language import Language
from rules.policy import Policy, matching
from service.catalog.settings import CatalogSettings, PrivateProvider
from service.clusters.config import ClusterSettings
from service.config_file import Document, Steps, spelled
from service.errors import ConfigInvalid
from service.reader.settings import ReaderSettings
from service.registry.settings import RegistrySettings

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]

DEFAULT_DATABASE = "sqlite:///gpu-advisor.db"


class AuditSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When clusters are audited, and how long the record is kept.

    Attributes:
        interval_seconds: between two audits of one cluster.
        deadline_seconds: hard end of one audit, whatever the connector does; an audit past it counts as failed.
        parallel: audits that run at the same time.
        keep_days: age at which finished audits, closed findings and delivered notifications are deleted.
        keep_reports: newest reports kept in full per cluster; older audits keep their line without the report.
        react_seconds: a followed cluster that changes is looked at within two seconds, and while it goes on changing
            once in so many seconds; only what makes a difference goes on record. 0 leaves changes to the interval.
    """

    interval_seconds: Annotated[int, msgspec.Meta(ge=10, le=86400)] = 300
    deadline_seconds: Annotated[int, msgspec.Meta(ge=1, le=3600)] = 300
    parallel: Annotated[int, msgspec.Meta(ge=1, le=64)] = 2
    keep_days: Annotated[int, msgspec.Meta(ge=1, le=3650)] = 30
    keep_reports: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 20
    react_seconds: Annotated[int, msgspec.Meta(ge=0, le=3600)] = 15


class AlertSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which findings people are told about.

    Attributes:
        rules: ids of rules; an empty list means all.
        min_severity: lighter findings are listed, not announced.
        unreadable: also say when a cluster, or a part of it, cannot be read, and when it can be read again.
        give_up_hours: how long a notification is retried before it is recorded as failed.
    """

    rules: frozenset[str] = frozenset({"idle-gpu-node", "driver-cuda-mismatch"})
    min_severity: Severity = Severity.LOW
    unreadable: bool = True
    give_up_hours: Annotated[int, msgspec.Meta(ge=1, le=168)] = 24


class QuestionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of questions, so that the team sees what stays unanswered.

    Attributes:
        record: whether questions are recorded at all; without it there is no feedback, no list of unanswered questions
            and no memory of a conversation.
        keep_days: age at which they are deleted.
    """

    record: bool = True
    keep_days: Annotated[int, msgspec.Meta(ge=1, le=3650)] = 90


class LogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``text`` for people at a terminal, ``json`` for a log collector."""

    level: LogLevel = "info"
    format: LogFormat = "text"


class ContractPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the team really pays, in US dollars. The row that says most about a node holds for it.

    Attributes:
        provider, instance_type, region, product: which nodes, at least one of them; what is left out fits every node.
            ``product`` is a GPU model in any spelling, such as ``H100``.
        spot: True for spot nodes; a contract rarely holds for them.
        usd_hour: per hour and whole node; or usd_gpu_hour: per hour and GPU. One of the two.
        as_of: date of the price.
        note: shown beside the price, for example "reserved until 2027-06".
    """

    provider: str | None = None
    instance_type: str | None = None
    region: str | None = None
    product: str | None = None
    spot: bool = False
    usd_hour: Annotated[float, msgspec.Meta(ge=0)] | None = None
    usd_gpu_hour: Annotated[float, msgspec.Meta(ge=0)] | None = None
    as_of: date | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        if (self.usd_hour is None) == (self.usd_gpu_hour is None):
            raise ValueError("a price needs either usd_hour (whole node) or usd_gpu_hour (per GPU)")
        if not (self.provider or self.instance_type or self.region or self.product):
            raise ValueError("a price needs to say for which nodes: provider, instance_type, region or product")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything an operator may set. Secrets never appear in its ``repr``.

    Attributes:
        database_url: as SQLAlchemy reads it, with the driver that fits: ``sqlite+aiosqlite`` or ``postgresql+psycopg``.
        host, port: where HTTP is served; anything but loopback demands ``api_token``.
        api_token: bearer token of the REST API.
        language: of people who have not shown theirs; also the bot's, where ``slack`` does not say otherwise.
        prices: contract prices; they go before every other price.
        providers: private providers, beside those of the catalogue.
        catalog: how prices of the catalogue are kept fresh.
        rules: rules of the team's own, or names of files and folders that hold some; :func:`load` reads those, so that
            only rules are left.
        registry: whether image registries are asked which CUDA an image holds.
        questions: what is kept of the questions that people ask.
        reader: a language model that reads the questions that the rules are not sure of; none unless it is named.
    """

    database_url: str = DEFAULT_DATABASE
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8000
    api_token: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    language: Language = "en"
    clusters: tuple[ClusterSettings, ...] = ()
    audit: AuditSettings = AuditSettings()
    alerts: AlertSettings = AlertSettings()
    policy: Policy = Policy()
    prices: tuple[ContractPrice, ...] = ()
    providers: tuple[PrivateProvider, ...] = ()
    catalog: CatalogSettings = CatalogSettings()
    rules: tuple[str | CustomRule, ...] = ()
    slack: SlackSettings = SlackSettings()
    log: LogSettings = LogSettings()
    registry: RegistrySettings = RegistrySettings()
    questions: QuestionSettings = QuestionSettings()
    reader: ReaderSettings = ReaderSettings()

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        shown["database_url"] = redacted_url(self.database_url)
        shown["api_token"] = "***" if self.api_token else None
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def check_binding(self) -> None:
        """Refuse to be reachable from other machines without a token.

        Raises:
            ConfigInvalid: the host is not loopback and there is no ``api_token``.
        """
        if self.api_token is None and not _is_loopback(self.host):
            raise ConfigInvalid(
                "settings",
                None,
                f"serving on {self.host!r} is reachable from other machines: set GPU_ADVISOR_API_TOKEN, "
                "or serve on 127.0.0.1",
            )


_ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    "DATABASE_URL": ("database_url",),
    "GPU_ADVISOR_HOST": ("host",),
    "GPU_ADVISOR_PORT": ("port",),
    "GPU_ADVISOR_API_TOKEN": ("api_token",),
    "GPU_ADVISOR_LANGUAGE": ("language",),
    "GPU_ADVISOR_LOG_LEVEL": ("log", "level"),
    "GPU_ADVISOR_LOG_FORMAT": ("log", "format"),
    "SLACK_BOT_TOKEN": ("slack", "bot_token"),
    "SLACK_SIGNING_SECRET": ("slack", "signing_secret"),
    "SLACK_APP_TOKEN": ("slack", "app_token"),
    "SLACK_ALERT_CHANNEL": ("slack", "alert_channel"),
    "SLACK_API_URL": ("slack", "base_url"),
    "GPU_ADVISOR_REGISTRY_AUTH": ("registry", "auth"),
    "GPU_ADVISOR_READER_API_KEY": ("reader", "api_key"),
}


def load(config: Path | None, env: Mapping[str, str]) -> Settings:
    """Read the settings.

    Args:
        config: the YAML file; None takes the one that ``GPU_ADVISOR_CONFIG`` names, or none at all. Relative paths of
            clusters in it are relative to the file.
        env: the environment.

    Raises:
        ConfigInvalid: names the file (or variable), the line and the path of what is wrong.
    """
    if config is None and env.get("GPU_ADVISOR_CONFIG"):
        config = Path(env["GPU_ADVISOR_CONFIG"])
    document = Document.read(config) if config is not None else Document.empty()
    data = document.data
    given: dict[tuple[str, ...], str] = {}
    for variable, path in _ENVIRONMENT.items():
        if not env.get(variable):
            continue
        section: Any = data
        for key in path[:-1]:
            section = section.setdefault(key, {}) if isinstance(section, dict) else {}
        if isinstance(section, dict):
            section[path[-1]] = env[variable]
            given[path] = variable
    if isinstance(data.get("port"), str) and ("port",) in given and data["port"].isdecimal():
        data["port"] = int(data["port"])
    settings: Settings = document.convert(Settings, given)
    try:
        settings.slack.check()
        settings = _settled(settings, data, config)
    except SlackSettingsInvalid as error:
        raise document.error(("slack", error.setting), str(error).split(": ", 1)[-1], given) from error
    except _InvalidError as error:
        raise document.error(error.path, error.problem, given) from error
    return _with_rules(settings, document)


def _with_rules(settings: Settings, document: Document) -> Settings:
    """``settings`` with the team's rules read from the files that they name, and every name of a rule looked up."""
    named = bool(settings.rules) or bool({"policy", "alerts"} & document.data.keys())
    if not named:
        return settings  # the rules are not even imported
    from service.rulebook import known_ids, read_rules

    settings = msgspec.structs.replace(settings, rules=read_rules(document, settings.rules))
    for path, problem in _unknown_rules(settings, known_ids(settings)):
        raise document.error(path, problem)
    return settings


def check_rules(settings: Settings, known: Sequence[str]) -> None:
    """Refuse ids of rules that do not exist; a misspelt one would silently switch nothing off.

    Raises:
        ConfigInvalid: names the setting and the id.
    """
    for path, problem in _unknown_rules(settings, known):
        setting = spelled(path[:2])
        raise ConfigInvalid("settings", None, f"{problem} (at `{setting}`)")


def _unknown_rules(settings: Settings, known: Sequence[str]) -> Iterator[tuple[Steps, str]]:
    """Where a rule is named that does not exist, and what to say of it."""
    named: list[tuple[Steps, Iterable[str]]] = [
        (("policy", "disabled_rules"), settings.policy.disabled_rules),
        (("policy", "severity"), settings.policy.severity),
        (("alerts", "rules"), settings.alerts.rules),
    ]
    for path, ids in named:
        for rule in sorted(set(ids) - set(known)):
            yield (*path, rule), f"there is no rule {rule!r}; {_near(rule, known)}"
    for index, exemption in enumerate(settings.policy.exemptions):
        for pattern in exemption.rules:
            if not matching([pattern], known):
                yield (
                    ("policy", "exemptions", index, "rules", pattern),
                    f"no rule is called {pattern!r}; {_near(pattern, known)}",
                )


def _near(rule: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(rule, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"


def database_url(text: str) -> str:
    """The URL with the driver that the store uses: psycopg 3 for PostgreSQL, aiosqlite for SQLite.

    Accepts ``postgres://`` and ``postgresql://`` as hosting services write them, and ``sqlite:///path``.

    Raises:
        ValueError: another kind of database or no URL at all.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        raise ValueError("expected a URL such as postgresql://user:password@host/name or sqlite:///gpu-advisor.db")
    if scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        return f"postgresql+psycopg://{rest}"
    if scheme in ("sqlite", "sqlite+aiosqlite"):
        return f"sqlite+aiosqlite://{rest}"
    raise ValueError(f"{scheme!r} is not supported; use postgresql:// or sqlite:///")


def redacted_url(url: str) -> str:
    """``url`` without its password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username}:***@{host}"))


class _InvalidError(Exception):
    def __init__(self, path: tuple[str | int, ...], problem: str) -> None:
        self.path = path
        self.problem = problem


def _settled(settings: Settings, data: Mapping[str, Any], config: Path | None) -> Settings:
    """``settings`` with what follows from other settings or from the place of the file."""
    try:
        url = database_url(settings.database_url)
    except ValueError as error:
        raise _InvalidError(("database_url",), str(error)) from error
    base = config.parent if config is not None else Path()
    seen: set[str] = set()
    clusters: list[ClusterSettings] = []
    for index, cluster in enumerate(settings.clusters):
        if cluster.name in seen:
            raise _InvalidError(("clusters", index, "name"), f"{cluster.name!r} is already the name of another cluster")
        seen.add(cluster.name)
        clusters.append(
            msgspec.structs.replace(
                cluster,
                kubeconfig=_resolved(base, cluster.kubeconfig) if cluster.kubeconfig else None,
                snapshot=[_resolved(base, path) for path in cluster.snapshot],
            )
        )
    spoken = {
        name: settings.language for name in ("default_language", "alert_language") if name not in data.get("slack", {})
    }
    slack = msgspec.structs.replace(settings.slack, **spoken)
    registry = settings.registry
    if registry.docker_config:
        registry = msgspec.structs.replace(registry, docker_config=_resolved(base, registry.docker_config))
    return msgspec.structs.replace(settings, database_url=url, clusters=tuple(clusters), slack=slack, registry=registry)


def _resolved(base: Path, path: str) -> str:
    return str(base / Path(path).expanduser())


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
