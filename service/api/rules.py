"""``/v1/rules``: what is checked, and why."""

from typing import Annotated, Any

import msgspec
from litestar import Controller, Request, get
from litestar.params import PathParameter

from service.api.documents import RuleDetailDocument, RuleDocument, rule_detail_document, rule_document, rule_named
from service.api.languages import Lang, language_of
from service.api.port import Advisor
from service.api.problems import documented


class RuleList(msgspec.Struct, frozen=True):
    """All rules, in the order in which they are evaluated."""

    items: list[RuleDocument]


class RuleController(Controller):
    """Rules."""

    path = "/v1/rules"
    tags = ("rules",)

    @get(
        operation_id="listRules",
        summary="List the rules",
        description="What each audit looks for.",
        responses=documented(400),
    )
    async def list_rules(self, request: Request[Any, Any, Any], advisor: Advisor, lang: Lang = None) -> RuleList:
        """List the rules."""
        language = language_of(request, lang)
        return RuleList([rule_document(rule, language) for rule in advisor.rules()])

    @get(
        "/{rule_id:str}",
        operation_id="readRule",
        summary="Read a rule",
        description="What it finds, why it matters, how to mend it, and where that is known from.",
        responses=documented(400, 404),
    )
    async def read(
        self,
        request: Request[Any, Any, Any],
        advisor: Advisor,
        rule_id: Annotated[str, PathParameter(description="For example `idle-gpu-node`.")],
        lang: Lang = None,
    ) -> RuleDetailDocument:
        """Read a rule."""
        return rule_detail_document(rule_named(advisor.rules(), rule_id), language_of(request, lang))
