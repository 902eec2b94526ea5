"""The filters of providers and offers as query parameters, declared once for every route that takes them."""

from typing import Annotated

from litestar.params import QueryParameter

from rules.facts.offers import Filters


def _said(description: str) -> QueryParameter:
    return QueryParameter(description=description, required=False)


Text = str | None
Texts = list[str] | None
Number = float | None
Whole = int | None
Flag = bool | None


def query_filters(
    *,
    arch: Annotated[Text, _said("CPU: amd64 or arm64.")] = None,
    bare_metal: Annotated[Flag, _said("Bare metal, or not.")] = None,
    billing_unit: Annotated[Text, _said("Coarsest unit that will do: second, minute or hour.")] = None,
    commitment: Annotated[Text, _said("none (by the hour), monthly, 1y or 3y.")] = None,
    compliance: Annotated[Texts, _said("Such as soc2. Nothing is known on it: it rules nothing out.")] = None,
    currency: Annotated[Text, _said("usd or eur; eur adds amounts in euro and the rate.")] = None,
    exclude: Annotated[Texts, _said("Providers to leave out.")] = None,
    feature: Annotated[Texts, _said("Such as kueue, slurm, gang_scheduling, drivers_preinstalled, mig.")] = None,
    fields: Annotated[Texts, _said("Facts to show, such as spot_notice; they rule nothing out.")] = None,
    free_control_plane: Annotated[Flag, _said("A control plane without a fee.")] = None,
    free_egress: Annotated[Flag, _said("Nothing is known on it: it rules nothing out.")] = None,
    gpu: Annotated[Texts, _said("Models in any spelling, one of which is enough: h100, A100 80GB, L40S.")] = None,
    gpu_count: Annotated[Whole, _said("GPUs in one machine, at least.")] = None,
    hours_per_month: Annotated[Number, _said("For monthly prices; 730 without it.")] = None,
    interconnect: Annotated[Text, _said("infiniband, roce, rdma, efa, ethernet or nvlink.")] = None,
    k8s_version: Annotated[Text, _said("Nothing is known on it: it rules nothing out.")] = None,
    managed: Annotated[Flag, _said("A managed service; false: machines for a cluster of your own.")] = None,
    max_price_eur_hour: Annotated[Number, _said("Per GPU and hour, in euro.")] = None,
    max_price_usd_hour: Annotated[Number, _said("Per GPU and hour, in US dollars.")] = None,
    max_total_usd_hour: Annotated[Number, _said("Per hour, of all machines together.")] = None,
    min_nodes: Annotated[Whole, _said("Machines needed at once; see nodes.")] = None,
    min_vram_gb: Annotated[Number, _said("Memory per GPU, at least.")] = None,
    nodes: Annotated[Whole, _said("Machines that the total price is for.")] = None,
    providers: Annotated[Texts, _said("Only these: ids, names or aliases.")] = None,
    region: Annotated[Text, _said("Country code (de), eu, us, latam, or a provider's own region.")] = None,
    scale_to_zero: Annotated[Flag, _said("GPU pools that scale to zero and back.")] = None,
    shared_storage: Annotated[Text, _said("any, rwx, or part of a file system's name.")] = None,
    sharing: Annotated[Text, _said("mig, mps or time_slicing.")] = None,
    sort: Annotated[Text, _said("price_asc, price_desc or name.")] = None,
    spot: Annotated[Flag, _said("Interruptible capacity; false: only what can be kept.")] = None,
    vendor: Annotated[Text, _said("nvidia, amd, intel or qualcomm.")] = None,
) -> Filters:
    """The filters of a request.

    Raises:
        FilterInvalid: a value does not fit; it says which would.
    """
    return Filters.of(locals())
