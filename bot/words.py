"""The bot's own sentences, in three languages, read once from ``words.yaml``."""

from functools import cache
from importlib import resources
from typing import Literal

import msgspec
import yaml

from rules.language import Text

FieldName = Literal[
    "severity", "cluster", "objects", "cost_hour", "cost_so_far", "cost_last", "opened", "resolved", "duration"
]


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A suggested prompt: what the button says and what it asks."""

    title: Text
    message: Text


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Shape of ``words.yaml``; a missing text or language is a decoding error.

    Placeholders: ``more`` {count}; ``error_input`` {detail}; ``price_as_of`` {date}; ``rule_line`` {rule} {time};
    ``open_findings`` {count}.
    """

    status: Text
    loading: tuple[Text, ...]
    prompts_title: Text
    prompts: tuple[Prompt, ...]
    help_title: Text
    help_how: Text
    help_clusters: Text
    files_unread: Text
    helped: Text
    not_helped: Text
    feedback_thanks: Text
    feedback_gone: Text
    error: Text
    error_input: Text
    error_remote: Text
    verdict: dict[Literal["yes", "no", "depends", "unknown"], Text]
    evidence: Text
    sources: Text
    follow_ups: Text
    more: Text
    cut: Text
    severity: dict[Literal["info", "low", "medium", "high", "critical"], Text]
    resolved: Text
    fields: dict[FieldName, Text]
    price_as_of: Text
    price_age_unknown: Text
    remedy: Text
    resolved_line: Text
    rule_line: Text
    health: dict[Literal["ok", "unreachable", "never-audited"], Text]
    open_findings: Text


@cache
def words() -> Words:
    """All sentences."""
    content = yaml.safe_load(resources.files("bot").joinpath("words.yaml").read_text("utf-8"))
    return msgspec.convert(content, Words)
