"""The nouns of an advice. Money is US dollars; a month has 730 hours unless the request says how many are used."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from rules.facts.offers_checks import Check
from rules.facts.offers_match import PricedOffer
from rules.facts.providers import Provider
from rules.sharing.model import Remark, SharingPlan

Verdict = Literal["yes", "no", "depends"]
Choice = Literal["managed", "own", "existing", "none"]


class Reason(msgspec.Struct, frozen=True):
    """Why Kubernetes, or why not.

    Attributes:
        weight: above 0 speaks for it, below against it.
        seeds: statements of the subject that it rests on (``rules/data/statements.yaml``).
    """

    key: str
    weight: int
    seeds: tuple[str, ...] = ()


class Change(msgspec.Struct, frozen=True):
    """What would change the verdict, and to what."""

    key: str
    verdict: Verdict


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """Whether Kubernetes is worth it.

    Attributes:
        score: the sum of the weights; 2 and more is yes, -2 and less is no.
    """

    verdict: Verdict
    score: int
    reasons: tuple[Reason, ...]
    changes: tuple[Change, ...]


class Control(msgspec.Struct, frozen=True):
    """Who runs the control plane; ``none`` where Kubernetes is not advised."""

    choice: Choice
    reasons: tuple[Remark, ...]


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """The machines that are looked for.

    Attributes:
        gpu: models that will do.
        gpus: in all; per_machine: that must be in one machine; machines: that work together, where that was asked for.
    """

    gpu: tuple[str, ...]
    gpus: int
    per_machine: int
    machines: int | None = None


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """A provider with its price.

    Attributes:
        offer: the cheapest that will do; None where no price is known.
        machines: of that offer; None for a price per GPU in a list. gpus: that are paid, more than asked for where
            machines only come larger; None: unknown.
        usd_hour: of all machines. machines_usd_month: over the hours used.
        fee_usd_month: of the control plane over a whole month; None: not documented, or there is none to pay.
        fee_unknown: a fee may come on top, and is not documented.
        usd_month: machines and fee as far as known.
        doubts: why the price is not to be taken at its word (:mod:`rules.advice.doubt`).
        over_budget_usd: above the budget; None within it or without one.
        reasons_for, reasons_against: what sets it apart.
    """

    provider: Provider
    checks: tuple[Check, ...]
    offer: PricedOffer | None
    machines: int | None
    gpus: float | None
    usd_hour: float | None
    machines_usd_month: float | None
    fee_usd_month: float | None
    fee_unknown: bool
    usd_month: float | None
    doubts: tuple[str, ...]
    over_budget_usd: float | None
    reasons_for: tuple[Remark, ...]
    reasons_against: tuple[Remark, ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Wishes that nothing is documented on, of the provider or of the offer."""
        of_checks = [_named(check) for check in self.checks if check.verdict == "unknown"]
        return tuple(dict.fromkeys([*of_checks, *(self.offer.unknown if self.offer else ())]))

    @property
    def failed(self) -> tuple[Check, ...]:
        """Wishes that it does not meet."""
        return tuple(check for check in self.checks if check.verdict == "fails")


def _named(check: Check) -> str:
    return check.wanted if check.filter == "feature" else check.filter


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Money there is, and what the cheapest takes.

    Attributes:
        best_usd_month: None where no price is known; best: whose it is. over_usd_month: by how much it is missed; None
            when it is met or unknown.
        unsure: of the cheapest: wishes that are not documented, doubts about its price, and ``fee`` where its control
            plane may cost more.
        ways: what would fit, worked out; empty within the budget.
    """

    limit_usd_month: float
    best: str | None
    best_usd_month: float | None
    unsure: tuple[str, ...]
    over_usd_month: float | None
    ways: tuple[Remark, ...]


class ManifestFile(msgspec.Struct, frozen=True):
    """An object to start from; ``body`` is plain data."""

    file: str
    body: Mapping[str, Any]


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """The advice.

    Attributes:
        sharing: None where no model tells its memory.
        demand: None where the number or kind of GPUs is not known (`needs_more`).
        providers: that nothing rules out, those with fewest unknowns first, then the cheapest; at most 20.
        found: how many there are.
        ruled_out: with the wish that they fail.
        simpler: what to do instead of Kubernetes; empty where it is advised.
        defaults: what was taken because it was not said.
        needs_more: fields to ask for; optional: fields that would make the advice surer.
    """

    kubernetes: Worth
    control: Control
    sharing: SharingPlan | None
    demand: Demand | None
    hours_per_month: float
    providers: tuple[Ranked, ...]
    found: int
    ruled_out: tuple[Ranked, ...]
    budget: Budget | None
    simpler: tuple[Remark, ...]
    remarks: tuple[Remark, ...]
    checklist: tuple[Remark, ...]
    defaults: tuple[Remark, ...]
    needs_more: tuple[str, ...]
    optional: tuple[str, ...]
    manifests: tuple[ManifestFile, ...]
