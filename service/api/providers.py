"""``/v1/providers`` and ``/v1/offers``: who rents GPUs, on what terms, at what price."""

import base64
import binascii
import hashlib
from typing import Annotated, Any

import msgspec
from litestar import Controller, Request, Response, get
from litestar.datastructures import ResponseHeader
from litestar.di import NamedDependency, Provide
from litestar.params import PathParameter, QueryParameter, SkipValidation

from rules.facts.offers import Filters
from rules.facts.offers_search import compare, find_offers, search
from rules.facts.providers import find_provider
from service.api.filters import query_filters
from service.api.findings import next_link
from service.api.languages import Lang, language_of
from service.api.port import Advisor
from service.api.problems import documented
from service.catalog.documents import (
    OfferDocument,
    ProviderDocument,
    ProviderSearch,
    RateDocument,
    offer_document,
    provider_document,
    rate_document,
    rate_of,
    search_document,
)
from service.clock import utc_now
from service.errors import CursorInvalid, ProviderUnknown

AskedFilters = NamedDependency[SkipValidation[Filters]]
MOST_COMPARED = 20


class Comparison(msgspec.Struct, frozen=True):
    """Providers side by side, in the order asked for, with all their facts."""

    items: list[ProviderDocument]
    rate: RateDocument | None


class OfferList(msgspec.Struct, frozen=True):
    """One page of offers. ``found`` counts those of all pages; ``next_cursor`` is null on the last one."""

    items: list[OfferDocument]
    found: int
    rate: RateDocument | None
    next_cursor: str | None


class ProviderController(Controller):
    """Providers."""

    path = "/v1/providers"
    tags = ("providers",)
    dependencies = {"filters": Provide(query_filters, sync_to_thread=False)}  # noqa: RUF012 - Litestar reads it so

    @get(
        operation_id="listProviders",
        summary="Find providers",
        description=(
            "All providers under the filters: `items` meet them, or all but what is not documented "
            "(`not_documented`); `unlisted` and `ruled_out` are the others, with the reason. Without an order asked "
            "for, fewest unknowns come first, then the lowest price."
        ),
        responses=documented(400),
        sync_to_thread=True,
    )
    def list_providers(
        self, request: Request[Any, Any, Any], advisor: Advisor, filters: AskedFilters, lang: Lang = None
    ) -> ProviderSearch:
        """Find providers."""
        catalog = advisor.catalog()
        result = search(catalog, filters, advisor.euro_rate())
        return search_document(catalog, result, language_of(request, lang), utc_now().date())

    @get(
        "/compare",
        operation_id="compareProviders",
        summary="Compare providers",
        description="These providers side by side, with all facts, and how each comes out under the filters.",
        responses=documented(400, 404),
        sync_to_thread=True,
    )
    def compare(
        self,
        *,
        request: Request[Any, Any, Any],
        advisor: Advisor,
        filters: AskedFilters,
        ids: Annotated[list[str], QueryParameter(description="Ids, names or aliases; repeated, or with commas.")],
        lang: Lang = None,
    ) -> Comparison:
        """Compare providers."""
        catalog, language, today = advisor.catalog(), language_of(request, lang), utc_now().date()
        names = [name.strip() for value in ids for name in value.split(",") if name.strip()][:MOST_COMPARED]
        for name in names:
            if find_provider(name, catalog.providers) is None:
                raise ProviderUnknown(name, catalog.providers)
        rate = rate_of(filters, advisor.euro_rate())
        matches = compare(catalog, names, filters, advisor.euro_rate())
        return Comparison(
            [provider_document(catalog, match, language, today, rate=rate) for match in matches], rate_document(rate)
        )

    @get(
        "/{provider_id:str}",
        operation_id="readProvider",
        summary="Read a provider",
        description=(
            "All facts of a provider, each with sources, date and confidence; what is not documented says so. With "
            "filters, how it comes out under them."
        ),
        responses=documented(400, 404),
        sync_to_thread=True,
    )
    def read(
        self,
        request: Request[Any, Any, Any],
        advisor: Advisor,
        filters: AskedFilters,
        provider_id: Annotated[str, PathParameter(description="Id, name or alias, such as `coreweave`.")],
        lang: Lang = None,
    ) -> ProviderDocument:
        """Read a provider."""
        catalog = advisor.catalog()
        if find_provider(provider_id, catalog.providers) is None:
            raise ProviderUnknown(provider_id, catalog.providers)
        (match,) = compare(catalog, [provider_id], filters, advisor.euro_rate())
        rate = rate_of(filters, advisor.euro_rate())
        fields = filters.fields or None
        today = utc_now().date()
        return provider_document(catalog, match, language_of(request, lang), today, fields=fields, rate=rate)


class OfferController(Controller):
    """Offers."""

    path = "/v1/offers"
    tags = ("providers",)
    dependencies = {"filters": Provide(query_filters, sync_to_thread=False)}  # noqa: RUF012 - Litestar reads it so

    @get(
        operation_id="listOffers",
        summary="List offers",
        description=(
            "Every machine that fits the filters, of providers that nothing documented rules out; cheapest per GPU "
            "first unless `sort` says otherwise. Pass `next_cursor` as `cursor` for the next page, or follow the "
            '`Link` header (`rel="next"`). A cursor holds for the same filters, and until prices are refreshed.'
        ),
        response_headers=[
            ResponseHeader(
                name="link", description="Address of the next page, where there is one.", documentation_only=True
            )
        ],
        responses=documented(400),
        sync_to_thread=True,
    )
    def list_offers(
        self,
        *,
        request: Request[Any, Any, Any],
        advisor: Advisor,
        filters: AskedFilters,
        limit: Annotated[int, QueryParameter(ge=1, le=500, description="Offers per page.")] = 50,
        cursor: Annotated[str | None, QueryParameter(description="`next_cursor` of the page before.")] = None,
    ) -> Response[OfferList]:
        """List offers."""
        rate, today = rate_of(filters, advisor.euro_rate()), utc_now().date()
        found = find_offers(advisor.catalog(), filters, advisor.euro_rate())
        mark = _mark(filters, len(found))
        start = _start(cursor, mark)
        page = found[start : start + limit]
        following = _cursor(mark, start + limit) if start + limit < len(found) else None
        document = OfferList(
            [offer_document(one, today, rate) for one in page], len(found), rate_document(rate), following
        )
        return Response(document, headers=next_link(request, following))


def _mark(filters: Filters, found: int) -> str:
    """Tells one list from another, so that a cursor is not used for another one."""
    return hashlib.sha256(msgspec.json.encode((filters, found))).hexdigest()[:12]


def _cursor(mark: str, start: int) -> str:
    return base64.urlsafe_b64encode(f"{mark}.{start}".encode()).decode()


def _start(cursor: str | None, mark: str) -> int:
    if cursor is None:
        return 0
    try:
        given, _, start = base64.urlsafe_b64decode(cursor.encode()).decode().partition(".")
    except (ValueError, binascii.Error) as error:
        raise CursorInvalid(cursor) from error
    if given != mark or not start.isdecimal() or len(start) > 9:
        raise CursorInvalid(cursor)
    return int(start)
