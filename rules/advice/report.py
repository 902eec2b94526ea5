"""An advice as plain data for JSON: the same for the command line and for HTTP."""

from typing import Any

import msgspec

from rules.advice.model import Advice, Ranked
from rules.advice.words import say, words
from rules.facts.providers_shown import verdict_text
from rules.language import Language
from rules.sharing.model import Remark
from rules.sharing.report import document as plan_document


def document(advice: Advice, language: Language) -> dict[str, Any]:
    """The advice with its sentences in ``language``."""
    budget = advice.budget
    return {
        "kubernetes": _kubernetes(advice, language),
        "control": {
            "choice": advice.control.choice,
            "text": words().choices[advice.control.choice].in_(language),
            "reasons": _said(advice.control.reasons, language),
        },
        "demand": None
        if advice.demand is None
        else {**msgspec.to_builtins(advice.demand), "gpu": list(advice.demand.gpu)},
        "sharing": None if advice.sharing is None else plan_document(advice.sharing, language),
        "hours_per_month": advice.hours_per_month,
        "providers": [_provider(one, language) for one in advice.providers],
        "found": advice.found,
        "ruled_out": [
            {
                "id": one.provider.id,
                "name": one.provider.name,
                "reasons": [f"{check.filter}: {verdict_text(check, language)}" for check in one.failed],
            }
            for one in advice.ruled_out
        ],
        "budget": None
        if budget is None
        else {
            "limit_usd_month": _money(budget.limit_usd_month),
            "best": budget.best,
            "best_usd_month": _money(budget.best_usd_month),
            "unsure": list(budget.unsure),
            "over_usd_month": _money(budget.over_usd_month),
            "ways": _said(budget.ways, language),
        },
        "simpler": _said(advice.simpler, language),
        "remarks": _said(advice.remarks, language),
        "checklist": _said(advice.checklist, language),
        "defaults": _said(advice.defaults, language),
        "needs_more": list(advice.needs_more),
        "optional": list(advice.optional),
        "manifests": [{"file": item.file, "yaml": _yaml(item.body)} for item in advice.manifests],
    }


def _kubernetes(advice: Advice, language: Language) -> dict[str, Any]:
    known = words()
    found = advice.kubernetes
    return {
        "verdict": found.verdict,
        "score": found.score,
        "text": known.verdicts[found.verdict].in_(language),
        "reasons": [
            {
                "key": reason.key,
                "weight": reason.weight,
                "seeds": list(reason.seeds),
                "text": known.reasons[reason.key].in_(language),
            }
            for reason in found.reasons
        ],
        "changes": [
            {"key": each.key, "verdict": each.verdict, "text": known.changes[each.key].in_(language)}
            for each in found.changes
        ],
    }


def _provider(one: Ranked, language: Language) -> dict[str, Any]:
    offer = one.offer.offer if one.offer else None
    return {
        "id": one.provider.id,
        "name": one.provider.name,
        "machines": one.machines,
        "instance_type": offer.instance_type if offer else None,
        "gpu_model": offer.gpu_model if offer else None,
        "region": offer.region if offer else None,
        "purchase": one.offer.purchase if one.offer else None,
        "gpus": one.gpus,
        "usd_hour": _money(one.usd_hour),
        "machines_usd_month": _money(one.machines_usd_month),
        "fee_usd_month": _money(one.fee_usd_month),
        "fee_unknown": one.fee_unknown,
        "usd_month": _money(one.usd_month),
        "doubts": list(one.doubts),
        "over_budget_usd": _money(one.over_budget_usd),
        "price_as_of": offer.as_of if offer else None,
        "price_read": offer.read if offer else None,
        "price_source": offer.source if offer else None,
        "reasons_for": _said(one.reasons_for, language),
        "reasons_against": _said(one.reasons_against, language),
        "checks": [
            {"filter": c.filter, "wanted": c.wanted, "verdict": c.verdict, "text": verdict_text(c, language)}
            for c in one.checks
        ],
        "not_documented": list(one.unknown),
    }


def _said(remarks: tuple[Remark, ...], language: Language) -> list[dict[str, str]]:
    return [{"key": remark.key, "text": say(remark, language)} for remark in remarks]


def _money(amount: float | None) -> float | None:
    return None if amount is None else round(amount, 4)


def _yaml(body: Any) -> str:
    import yaml

    return yaml.safe_dump(dict(body), sort_keys=False, allow_unicode=True)
