"""The rules of this installation: those of gpu-advisor, then the team's own."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from rules.checks import RULES
from rules.custom import CustomRule, CustomRuleInvalid
from rules.custom.rule import compile_rule, compile_rules
from rules.engine import Rule
from service.config_file import Document, Steps
from service.errors import ConfigInvalid
from service.settings import Settings

MAX_RULES = 500
MAX_FILE_BYTES = 1_000_000
_ENDINGS = (".yaml", ".yml")


class RuleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that holds rules and nothing else."""

    rules: tuple[CustomRule, ...]


def rulebook(settings: Settings) -> tuple[Rule, ...]:
    """All rules, in the order of evaluation.

    Raises:
        ConfigInvalid: a rule of the team cannot be used. Settings that :func:`service.settings.load` has read hold no
            such rule.
    """
    if not settings.rules:
        return RULES
    try:
        return (*RULES, *compile_rules(_own(settings), [rule.id for rule in RULES]))
    except CustomRuleInvalid as error:
        raise ConfigInvalid("settings", None, str(error)) from error


def known_ids(settings: Settings) -> list[str]:
    """Ids of all rules."""
    return [*(rule.id for rule in RULES), *(rule.id for rule in _own(settings))]


def _own(settings: Settings) -> list[CustomRule]:
    return [rule for rule in settings.rules if isinstance(rule, CustomRule)]


def read_rules(document: Document, written: Iterable[str | CustomRule]) -> tuple[CustomRule, ...]:
    """The team's rules, each of which can be compiled.

    Args:
        document: the settings that they are written in.
        written: the rules, or names of files and folders, relative to the file of the settings.

    Raises:
        ConfigInvalid: names the file, the line, the rule, and the place in its expression.
    """
    taken = [rule.id for rule in RULES]
    found: list[CustomRule] = []
    for place, path, rule in _all(document, written):
        if len(found) == MAX_RULES:
            raise place.error(path, f"more than {MAX_RULES} rules")
        try:
            compile_rule(rule, taken)
        except CustomRuleInvalid as error:
            raise _located(place, path, error) from error
        taken.append(rule.id)
        found.append(rule)
    return tuple(found)


def _all(document: Document, written: Iterable[str | CustomRule]) -> Iterator[tuple[Document, Steps, CustomRule]]:
    base = Path(document.source).parent
    for index, entry in enumerate(written):
        if isinstance(entry, CustomRule):
            yield document, ("rules", index), entry
            continue
        for file in _files(document, ("rules", index), base / Path(entry).expanduser()):
            inner = Document.read(file, "`rules:`")
            held: RuleFile = inner.convert(RuleFile)
            for number, rule in enumerate(held.rules):
                yield inner, ("rules", number), rule


def _files(document: Document, path: Steps, named: Path) -> list[Path]:
    """The file, or the YAML files of the folder in order of their names."""
    try:
        files = sorted(file for file in named.iterdir() if file.suffix in _ENDINGS) if named.is_dir() else [named]
        if not files:
            raise document.error(path, f"the folder {named} holds no file that ends in {' or '.join(_ENDINGS)}")
        for file in files:
            if file.stat().st_size > MAX_FILE_BYTES:
                raise document.error(path, f"{file} is larger than {MAX_FILE_BYTES} bytes")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise document.error(path, f"the rules of {str(named)!r} cannot be read: {reason}") from error
    return files


def _located(document: Document, path: Steps, error: CustomRuleInvalid) -> ConfigInvalid:
    where = f"rule {error.rule!r}, `{'.'.join(map(str, error.path))}`"
    cause = error.cause
    if cause is None:
        return ConfigInvalid(document.source, document.line((*path, *error.path)), f"{where}: {error.problem}")
    line = document.line_in_text((*path, *error.path), cause.line)
    return ConfigInvalid(document.source, line, f"{where}, {cause.place}: {cause.problem}\n{cause.excerpt}")
