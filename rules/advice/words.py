"""Words of an advice in three languages (``advise.yaml``)."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from rules.language import Language, Text
from rules.sharing.model import Remark
from rules.words import format_list, format_money, format_value

_FILE = Path(__file__).parent / "advise.yaml"


class AdviceWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of them, by key."""

    verdicts: Mapping[str, Text]
    short: Mapping[str, Text]
    choices: Mapping[str, Text]
    reasons: Mapping[str, Text]
    changes: Mapping[str, Text]
    remarks: Mapping[str, Text]
    labels: Mapping[str, Text]


@cache
def words() -> AdviceWords:
    """The words; read on first use."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return msgspec.convert(yaml.load(_FILE.read_bytes(), Loader=loader), AdviceWords)  # noqa: S506 - a safe loader, in C


def say(remark: Remark, language: Language) -> str:
    """A remark with its values."""
    said = {name: _value(name, value, language) for name, value in remark.values.items()}
    return words().remarks[remark.key].in_(language).format(**said)


def label(name: str, language: Language) -> str:
    """A heading."""
    return words().labels[name].in_(language)


def _value(name: str, value: str | float | list[str], language: Language) -> str:
    if isinstance(value, list):
        return format_list(value, language)
    if name.startswith("usd") and not isinstance(value, str):
        return format_money(value, language)
    return format_value(value, "", language)
