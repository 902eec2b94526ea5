"""A rule of the team's own, as it is written in YAML."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from rules.findings import Severity, Unit
from rules.language import Text

Scope = Literal["node", "pod", "workload", "cluster"]

Id = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*\Z", max_length=60)]
ValueName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*\Z", max_length=40)]


class Translated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text in English, and in Spanish and Italian where the team has them; otherwise the English one is shown."""

    en: str
    es: str | None = None
    it: str | None = None


Written = str | Translated


def text_of(written: Written) -> Text:
    """The text in all languages, the English one where there is no other."""
    if isinstance(written, str):
        return Text(written, written, written)
    return Text(written.en, written.es or written.en, written.it or written.en)


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something worth showing.

    Attributes:
        value: a CEL expression.
        unit: how to show it; found out from the expression where it is left out.
        label: what people see; the name where it is left out.
    """

    value: str
    unit: Unit | None = None
    label: Written | None = None


class CustomRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule of the team's own.

    Attributes:
        id: kebab-case, says what is wrong; no rule of gpu-advisor may have it. It is part of the fingerprint.
        scope: what the rule is asked about: each ``node``, ``pod`` or ``workload``, or the ``cluster`` once.
        when: a CEL expression; where it is true, the trouble is there.
        title, detail, remedy: what people read; ``{name}`` is replaced by a value. Title: one line of 80 characters.
        name: what the rule finds, for lists of rules; made from the id where it is left out.
        values: expressions that are shown as evidence, by name.
        severity, family: of its findings; the family groups rules in lists.
        why: why it matters, and source: where that is known from; for people who look the rule up.
    """

    id: Id
    scope: Scope
    when: str
    title: Written
    detail: Written
    remedy: Written
    name: Written | None = None
    values: Mapping[ValueName, str | Value] = {}
    severity: Severity = Severity.MEDIUM
    family: Id = "custom"
    why: str | None = None
    source: str | None = None

    @property
    def readable_id(self) -> str:
        """``gpu-node-without-team`` as a few words."""
        return re.sub("-", " ", self.id).capitalize()
