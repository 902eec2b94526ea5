"""Block Kit limits as Slack enforces them, for the stand-in of its Web API.

Numbers: https://docs.slack.dev/reference/block-kit/ and the constants of slack_sdk 3.48.0 (``models/blocks``), read in
November 2026. Where Slack's way of counting is not documented, the stricter one is taken: lengths are UTF-16 units.
"""

from collections.abc import Callable, Iterator
from typing import Any

MESSAGE_BLOCKS = 50
MESSAGE_TEXT = 40_000
MESSAGE_BLOCK_TEXT = 13_200
MARKDOWN_TOTAL = 12_000
CHARTS = 2
ATTACHMENTS = 100

IN_MESSAGES = frozenset({
    "actions", "card", "carousel", "container", "context", "context_actions", "data_table", "data_visualization",
    "divider", "file", "header", "image", "input", "markdown", "plan", "rich_text", "section", "table", "task_card",
    "video",
})  # fmt: skip

Problem = tuple[str, str]
"""What is wrong, and the JSON pointer of where."""


def check_message(blocks: Any) -> list[Problem]:
    """Everything that Slack would refuse about the ``blocks`` of a message, except their sum of text."""
    if not isinstance(blocks, list):
        return [("must be an array", "/blocks")]
    problems: list[Problem] = []
    if len(blocks) > MESSAGE_BLOCKS:
        problems.append((f"no more than {MESSAGE_BLOCKS} items allowed", "/blocks"))
    for at, block in enumerate(blocks):
        problems += check_block(block, f"/blocks/{at}")
    dicts = [block for block in blocks if isinstance(block, dict)]
    ids = [block["block_id"] for block in dicts if block.get("block_id")]
    problems += [("`block_id` already exists", "/blocks") for _ in range(len(ids) - len(set(ids)))]
    if sum(length(block.get("text")) for block in dicts if block.get("type") == "markdown") > MARKDOWN_TOTAL:
        problems.append((f"markdown blocks hold more than {MARKDOWN_TOTAL} characters together", "/blocks"))
    if sum(block.get("type") == "table" for block in dicts) > 1:
        problems.append(("only one table allowed", "/blocks"))
    if sum(block.get("type") == "data_visualization" for block in dicts) > CHARTS:
        problems.append((f"no more than {CHARTS} charts allowed", "/blocks"))
    return problems


def text_sum(value: Any) -> int:
    """Length of all text within blocks together."""
    if isinstance(value, dict):
        return sum(length(item) if key in ("text", "title", "label") and isinstance(item, str) else text_sum(item)
                   for key, item in value.items())  # fmt: skip
    if isinstance(value, list):
        return sum(text_sum(item) for item in value)
    return 0


def length(text: Any) -> int:
    """UTF-16 units of a string; 0 for anything else."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 if isinstance(text, str) else 0


def check_block(block: Any, at: str) -> Iterator[Problem]:
    """What is wrong with one block of a message."""
    if not isinstance(block, dict):
        yield "must be an object", at
        return
    kind = block.get("type")
    if kind not in IN_MESSAGES:
        yield f"unsupported type: {kind}", f"{at}/type"
        return
    yield from _string(block, "block_id", at, 255, required=False)
    allowed = _FIELDS.get(kind)
    if allowed is not None:
        yield from (
            (f"invalid additional property: {name}", at) for name in block if name not in {*allowed, "type", "block_id"}
        )
    yield from _CHECKS[kind](block, at)


def _string(block: dict[str, Any], name: str, at: str, longest: int, *, required: bool = True) -> Iterator[Problem]:
    value = block.get(name)
    if value is None:
        if required:
            yield f"missing required field: {name}", at
    elif not isinstance(value, str):
        yield "must be a string", f"{at}/{name}"
    elif length(value) > longest:
        yield f"must be less than {longest + 1} characters", f"{at}/{name}"
    elif required and not value:
        yield "must be more than 0 characters", f"{at}/{name}"


def _text(value: Any, at: str, longest: int, *kinds: str) -> Iterator[Problem]:
    """A text object of one of ``kinds``."""
    kinds = kinds or ("mrkdwn", "plain_text")
    if not isinstance(value, dict):
        yield "must provide an object", at
        return
    if value.get("type") not in kinds:
        yield f"must be one of {', '.join(kinds)}", f"{at}/type"
    yield from _string(value, "text", at, longest)
    if value.get("type") == "mrkdwn" and "emoji" in value:
        yield "invalid additional property: emoji", at
    if value.get("type") == "plain_text" and "verbatim" in value:
        yield "invalid additional property: verbatim", at
    for name in value:
        if name not in ("type", "text", "emoji", "verbatim"):
            yield f"invalid additional property: {name}", at
    for name in ("emoji", "verbatim"):
        if not isinstance(value.get(name, False), bool):
            yield "must be a boolean", f"{at}/{name}"


def _items(
    block: dict[str, Any], name: str, at: str, most: int, *, required: bool = True, least: int = 1
) -> Iterator[Problem]:
    value = block.get(name)
    if value is None:
        if required:
            yield f"missing required field: {name}", at
    elif not isinstance(value, list):
        yield "must be an array", f"{at}/{name}"
    elif len(value) > most:
        yield f"no more than {most} items allowed", f"{at}/{name}"
    elif len(value) < least:
        yield f"no fewer than {least} items allowed", f"{at}/{name}"


def _each(block: dict[str, Any], name: str, at: str) -> Iterator[tuple[str, Any]]:
    value = block.get(name)
    for number, item in enumerate(value if isinstance(value, list) else ()):
        yield f"{at}/{name}/{number}", item


def _section(block: dict[str, Any], at: str) -> Iterator[Problem]:
    if "text" not in block and "fields" not in block:
        yield "missing required field: text", at
    if "text" in block:
        yield from _text(block["text"], f"{at}/text", 3000)
    if "fields" in block:
        yield from _items(block, "fields", at, 10)
        for where, field in _each(block, "fields", at):
            yield from _text(field, where, 2000)
    if "accessory" in block:
        yield from _element(block["accessory"], f"{at}/accessory")
    if not isinstance(block.get("expand", False), bool):
        yield "must be a boolean", f"{at}/expand"


def _header(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _text(block.get("text"), f"{at}/text", 150, "plain_text")


def _context(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _items(block, "elements", at, 10)
    for where, item in _each(block, "elements", at):
        if isinstance(item, dict) and item.get("type") == "image":
            yield from _image(item, where)
        else:
            yield from _text(item, where, 3000)


def _actions(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _items(block, "elements", at, 25)
    ids = []
    for where, item in _each(block, "elements", at):
        yield from _element(item, where)
        ids += [item["action_id"]] if isinstance(item, dict) and item.get("action_id") else []
    if len(ids) != len(set(ids)):
        yield "`action_id` already exists", f"{at}/elements"


def _context_actions(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _items(block, "elements", at, 5)
    for where, item in _each(block, "elements", at):
        if not isinstance(item, dict) or item.get("type") not in ("feedback_buttons", "icon_button"):
            yield "unsupported element", where
            continue
        yield from _string(item, "action_id", where, 255, required=False)
        for name in ("positive_button", "negative_button"):
            if item["type"] == "feedback_buttons":
                button = item.get(name)
                yield from _text((button or {}).get("text"), f"{where}/{name}/text", 75, "plain_text")
                yield from _string(button or {}, "value", f"{where}/{name}", 2000)


def _image(block: dict[str, Any], at: str) -> Iterator[Problem]:
    if "slack_file" not in block:
        yield from _string(block, "image_url", at, 3000)
    yield from _string(block, "alt_text", at, 2000)
    if "title" in block:
        yield from _text(block["title"], f"{at}/title", 2000, "plain_text")


def _markdown(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _string(block, "text", at, 12_000)


def _input(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _text(block.get("label"), f"{at}/label", 2000, "plain_text")
    if "element" not in block:
        yield "missing required field: element", at
    if "hint" in block:
        yield from _text(block["hint"], f"{at}/hint", 2000, "plain_text")


def _table(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _items(block, "rows", at, 100)
    for where, row in _each(block, "rows", at):
        if not isinstance(row, list) or not 1 <= len(row) <= 20:
            yield "no more than 20 items allowed", where


def _data_table(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _items(block, "rows", at, 201, least=2)
    yield from _string(block, "caption", at, 2000)
    for where, row in _each(block, "rows", at):
        if not isinstance(row, list) or not 1 <= len(row) <= 20:
            yield "no more than 20 items allowed", where
    if text_sum(block.get("rows")) > 20_000:
        yield "no more than 20000 characters allowed", f"{at}/rows"


def _chart(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _string(block, "title", at, 50)
    chart = block.get("chart")
    if not isinstance(chart, dict):
        yield "missing required field: chart", at
        return
    if chart.get("type") == "pie":
        yield from _items(chart, "segments", f"{at}/chart", 12)
        for where, segment in _each(chart, "segments", f"{at}/chart"):
            yield from _string(segment, "label", where, 20)
            if not segment.get("value", 0) > 0:
                yield "must be more than 0", f"{where}/value"
    else:
        yield from _items(chart, "series", f"{at}/chart", 12)
        for where, series in _each(chart, "series", f"{at}/chart"):
            yield from _items(series, "data", where, 20)


def _card(block: dict[str, Any], at: str) -> Iterator[Problem]:
    for name, longest in (("title", 150), ("subtitle", 150), ("body", 200)):
        if name in block:
            yield from _text(block[name], f"{at}/{name}", longest)
    yield from _items(block, "actions", at, 3, required=False)


def _carousel(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _items(block, "elements", at, 10)


def _container(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _items(block, "child_blocks", at, 10)


def _plan(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _items(block, "tasks", at, 50, required=False)


def _rich_text(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from _items(block, "elements", at, 1000)
    for where, item in _each(block, "elements", at):
        kinds = ("rich_text_section", "rich_text_list", "rich_text_preformatted", "rich_text_quote")
        if not isinstance(item, dict) or item.get("type") not in kinds:
            yield "unsupported element", where


def _nothing(block: dict[str, Any], at: str) -> Iterator[Problem]:
    yield from ()


def _element(element: Any, at: str) -> Iterator[Problem]:
    """An interactive element of an actions or section block."""
    if not isinstance(element, dict):
        yield "must be an object", at
        return
    yield from _string(element, "action_id", at, 255, required=False)
    kind = str(element.get("type"))
    if kind == "button":
        yield from _text(element.get("text"), f"{at}/text", 75, "plain_text")
        yield from _string(element, "value", at, 2000, required=False)
        yield from _string(element, "url", at, 3000, required=False)
        if element.get("style", "primary") not in ("primary", "danger"):
            yield "must be one of primary, danger", f"{at}/style"
        if "confirm" in element:
            yield from _confirm(element["confirm"], f"{at}/confirm")
    elif kind in _OPTIONS:
        most = _OPTIONS[kind]
        yield from _items(element, "options", at, most, required="option_groups" not in element)
        yield from _items(element, "option_groups", at, 100, required=False)
        for where, option in _each(element, "options", at):
            yield from _option(option, where)
        if "placeholder" in element:
            yield from _text(element["placeholder"], f"{at}/placeholder", 150, "plain_text")
    elif kind == "image":
        yield from _image(element, at)
    elif kind not in _OTHER_ELEMENTS:
        yield f"unsupported type: {kind}", f"{at}/type"


def _option(option: Any, at: str) -> Iterator[Problem]:
    if not isinstance(option, dict):
        yield "must be an object", at
        return
    yield from _text(option.get("text"), f"{at}/text", 75)
    yield from _string(option, "value", at, 150)
    if "description" in option:
        yield from _text(option["description"], f"{at}/description", 75)


def _confirm(confirm: Any, at: str) -> Iterator[Problem]:
    if not isinstance(confirm, dict):
        yield "must be an object", at
        return
    for name, longest in (("title", 100), ("text", 300), ("confirm", 30), ("deny", 30)):
        yield from _text(confirm.get(name), f"{at}/{name}", longest)


_OPTIONS = {
    "static_select": 100, "multi_static_select": 100, "overflow": 5, "checkboxes": 10, "radio_buttons": 10,
}  # fmt: skip
_OTHER_ELEMENTS = frozenset({
    "datepicker", "timepicker", "datetimepicker", "users_select", "multi_users_select", "conversations_select",
    "channels_select", "multi_conversations_select", "multi_channels_select", "external_select",
    "multi_external_select", "workflow_button",
})  # fmt: skip
_FIELDS: dict[str, tuple[str, ...]] = {
    "section": ("text", "fields", "accessory", "expand"),
    "header": ("text",),
    "context": ("elements",),
    "divider": (),
    "actions": ("elements",),
    "markdown": ("text",),
}
_CHECKS: dict[str, Callable[[dict[str, Any], str], Iterator[Problem]]] = {
    "section": _section, "header": _header, "context": _context, "actions": _actions, "divider": _nothing,
    "context_actions": _context_actions, "image": _image, "markdown": _markdown, "input": _input, "table": _table,
    "data_table": _data_table, "data_visualization": _chart, "card": _card, "carousel": _carousel,
    "container": _container, "plan": _plan, "task_card": _nothing, "rich_text": _rich_text, "file": _nothing,
    "video": _nothing,
}  # fmt: skip
