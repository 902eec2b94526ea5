"""The filters of providers and offers as query parameters, declared once for every route that takes them."""

from typing import Annotated

from litestar.params import QueryParameter

from rules.facts.offers import Filters
from service.catalog.filter_words import MEANING


def _said(name: str) -> QueryParameter:
    return QueryParameter(description=MEANING[name], required=False)


Text = str | None
Texts = list[str] | None
Number = float | None
Whole = int | None
Flag = bool | None


def query_filters(
    *,
    arch: Annotated[Text, _said("arch")] = None,
    bare_metal: Annotated[Flag, _said("bare_metal")] = None,
    billing_unit: Annotated[Text, _said("billing_unit")] = None,
    commitment: Annotated[Text, _said("commitment")] = None,
    compliance: Annotated[Texts, _said("compliance")] = None,
    currency: Annotated[Text, _said("currency")] = None,
    exclude: Annotated[Texts, _said("exclude")] = None,
    feature: Annotated[Texts, _said("feature")] = None,
    fields: Annotated[Texts, _said("fields")] = None,
    free_control_plane: Annotated[Flag, _said("free_control_plane")] = None,
    free_egress: Annotated[Flag, _said("free_egress")] = None,
    gpu: Annotated[Texts, _said("gpu")] = None,
    gpu_count: Annotated[Whole, _said("gpu_count")] = None,
    hours_per_month: Annotated[Number, _said("hours_per_month")] = None,
    interconnect: Annotated[Text, _said("interconnect")] = None,
    k8s_version: Annotated[Text, _said("k8s_version")] = None,
    managed: Annotated[Flag, _said("managed")] = None,
    max_price_eur_hour: Annotated[Number, _said("max_price_eur_hour")] = None,
    max_price_usd_hour: Annotated[Number, _said("max_price_usd_hour")] = None,
    max_total_usd_hour: Annotated[Number, _said("max_total_usd_hour")] = None,
    min_nodes: Annotated[Whole, _said("min_nodes")] = None,
    min_vram_gb: Annotated[Number, _said("min_vram_gb")] = None,
    nodes: Annotated[Whole, _said("nodes")] = None,
    providers: Annotated[Texts, _said("providers")] = None,
    region: Annotated[Text, _said("region")] = None,
    scale_to_zero: Annotated[Flag, _said("scale_to_zero")] = None,
    shared_storage: Annotated[Text, _said("shared_storage")] = None,
    sharing: Annotated[Text, _said("sharing")] = None,
    sort: Annotated[Text, _said("sort")] = None,
    spot: Annotated[Flag, _said("spot")] = None,
    vendor: Annotated[Text, _said("vendor")] = None,
) -> Filters:
    """The filters of a request.

    Raises:
        FilterInvalid: a value does not fit; it says which would.
    """
    return Filters.of(locals())
