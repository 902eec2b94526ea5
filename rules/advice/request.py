"""What advice is asked for: the workload, the wishes and the team, every value checked and a wrong one named."""

import re
from typing import Annotated, Any, Literal

import msgspec

from rules.errors import InputInvalid
from rules.facts.offers import GpuVendor
from rules.facts.providers import BillingUnit
from rules.sharing.model import Isolation, Workload

Kind = Literal["notebook", "fine-tune", "batch", "inference", "training"]
StorageNeed = Literal["none", "block", "shared"]
Latency = Literal["interactive", "relaxed"]

Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Few = Annotated[int, msgspec.Meta(ge=1, le=64)]
Many = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Words = Annotated[tuple[Word, ...], msgspec.Meta(max_length=50)]


class Team(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who would run it. None: not said.

    Attributes:
        platform_engineers: somebody's job is to run clusters.
        kubernetes: the team has worked with it.
        existing_cluster: a cluster runs already, and GPU nodes could join it.
        gitops: what runs is declared in a repository.
    """

    platform_engineers: bool | None = None
    kubernetes: bool | None = None
    existing_cluster: bool | None = None
    gitops: bool | None = None


class AdviceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workload that looks for a place. None: not said, and taken for what `defaults` of the advice state.

    Attributes:
        models: as the sharing planner takes them; replicas are those of one of the workload.
        gpu: models that will do, in any spelling; none named: whatever is cheapest.
        gpus: in one machine; nodes: machines that work together on one workload.
        parallel: how many such workloads at once.
        interruptible: it may be stopped with little notice and started again.
        autoscaling: replicas follow the load; scale_to_zero: nothing is paid while nothing runs.
        storage: ``shared`` is a volume that several nodes write.
        isolation: what the models must not share; tenants: teams or customers that must not see each other.
        managed: True: only a managed control plane; False: only a cluster of one's own.
        marketplace: False: no machines of third parties.
        edge: the machines are one's own, small, and away from a data centre.
        hours_per_month: the machines are on.
    """

    kind: Kind
    models: Annotated[tuple[Workload, ...], msgspec.Meta(max_length=200)] = ()
    gpu: Words = ()
    vendor: GpuVendor | None = None
    gpus: Few | None = None
    nodes: Many | None = None
    parallel: Many | None = None
    interruptible: bool | None = None
    autoscaling: bool | None = None
    scale_to_zero: bool | None = None
    storage: StorageNeed | None = None
    latency: Latency | None = None
    isolation: Isolation | None = None
    tenants: Many | None = None
    budget_usd_month: Positive | None = None
    budget_usd_hour: Positive | None = None
    hours_per_month: Annotated[float, msgspec.Meta(gt=0, le=744)] | None = None
    region: Word | None = None
    managed: bool | None = None
    billing_unit: BillingUnit | None = None
    marketplace: bool | None = None
    edge: bool | None = None
    providers: Words = ()
    exclude: Words = ()
    team: Team = Team()


class AdviceInvalid(InputInvalid):
    """A request for advice cannot be used.

    Args:
        field: of the request, as in ``models[2].memory_gib``.
        problem: what is wrong with it and what would be right.
    """

    code = "advice-invalid"

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field}: {problem}")


def read(document: Any) -> AdviceRequest:
    """A request from plain data (JSON, YAML).

    Raises:
        AdviceInvalid: what does not decode; the field is the path to it.
    """
    try:
        return msgspec.convert(document, AdviceRequest)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        named = re.search(r"field `(\w+)`", problem)
        field = path.strip("`.") or (named[1] if named else "request")
        raise AdviceInvalid(field, problem) from error
