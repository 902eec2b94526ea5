"""A plan in words, from ``words.yaml``."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from rules.language import Language, Text
from rules.sharing.model import Mode, Remark, SharingPlan
from rules.words import format_list, format_money, format_value


class PlanWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All words of plans."""

    modes: dict[Mode, Text]
    labels: dict[str, Text]
    summary: dict[str, Text]
    remarks: dict[str, Text]
    steps: dict[str, Text]


@cache
def words() -> PlanWords:
    """``words.yaml``, read on first use."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data = Path(__file__).with_name("words.yaml").read_bytes()
    return msgspec.convert(yaml.load(data, Loader=loader), PlanWords)  # noqa: S506 - a safe loader, in C


def say(remark: Remark, language: Language, *, step: bool = False) -> str:
    """A remark (or a step) in ``language``."""
    known = words().steps if step else words().remarks
    return _filled(known[remark.key], remark.values, language)


def label(name: str, language: Language) -> str:
    """A heading or unit of the text."""
    return words().labels[name].in_(language)


def mode_name(mode: Mode, language: Language) -> str:
    """A mode as people say it."""
    return words().modes[mode].in_(language)


def summary(plan: SharingPlan, language: Language) -> str:
    """The plan in a few sentences."""
    known = words().summary
    said = []
    if plan.uses:
        counts: dict[tuple[str, Mode], int] = {}
        for use in plan.uses:
            counts[use.gpu, use.mode] = counts.get((use.gpu, use.mode), 0) + 1
        kinds = [f"{n}x {gpu} {mode_name(mode, language)}" for (gpu, mode), n in counts.items()]
        key = "plan" if plan.saved_gpus else "plan_whole"
        values: dict[str, str | int | float | list[str]] = {
            "gpus": plan.gpus, "kinds": kinds, "whole": plan.whole_gpus or 0
        }  # fmt: skip
        said.append(_filled(known[key], values, language))
        if plan.usd_hour is not None and plan.whole_usd_hour is not None and plan.saved_usd_hour is not None:
            money: dict[str, str | int | float | list[str]] = {
                "usd": format_money(plan.usd_hour, language),
                "whole": format_money(plan.whole_usd_hour, language),
                "saved": format_money(plan.saved_usd_hour, language),
            }
            said.append(_filled(known["price" if plan.saved_usd_hour > 0 else "price_only"], money, language))
        if plan.optimal and plan.complete:
            said.append(known["proven"].in_(language))
    else:
        said.append(known["nothing"].in_(language))
    if plan.unplaced:
        said.append(_filled(known["unplaced"], {"models": list(plan.unplaced)}, language))
    if plan.needs_more:
        said.append(_filled(known["needs_more"], {"fields": list(plan.needs_more)}, language))
    return " ".join(said)


def _filled(text: Text, values: Mapping[str, str | int | float | list[str]], language: Language) -> str:
    said = {
        name: format_list(value, language) if isinstance(value, list) else format_value(value, "", language)
        for name, value in values.items()
    }
    return text.in_(language).format(**said)
