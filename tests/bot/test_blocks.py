"""Every message the bot can build passes Slack's limits, says what it must, and cannot be turned into a mention."""

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.blocks.alert import alert_message
from bot.blocks.answer import answer_message, help_message, sentence
from bot.blocks.markup import PIECE, inline, pack, pieces
from bot.blocks.message import MESSAGE_TEXT, Message
from bot.port import AlertView, ClusterHealth
from bot.text import escape, size
from rules.answers import Answer, Source
from rules.checks import RULES
from rules.findings import Cost, Evidence, Finding, Note, ObjectRef, Severity
from rules.language import LANGUAGES, Language
from rules.words import rule_words
from tests.bot.doubles import IDLE, alert, sharing_answer
from tests.fakes.slack_blocks import check_message, length, text_sum

ODD = st.text(
    st.one_of(
        st.sampled_from(list("<>&|@!#*_~`-.:/\\[]()\n \t\"'{}^$0aAñ€😀\u200b\u202e\x00\x1b")),
        st.characters(exclude_categories=[]),
    ),
    max_size=60,
)
HOSTILE = st.sampled_from(
    ["<@U0EVE>", "<!channel>", "<!here>", "<#C1>", "@channel", "```", "`", "**", "<http://e.vil|x>", "&lt;!channel&gt;",
     "x" * 3100, "😀" * 1600, "&" * 800, "a b " * 900, "\n" * 99, "| a | b |\n|---|---|\n" + "| x | y |\n" * 300,
     "- item\n" * 900, "```\n" + "code <line>\n" * 300 + "```", "# head\n\ntext\n\n" * 300, "[" * 3000, ""]
)  # fmt: skip
TEXT = st.lists(st.one_of(ODD, ODD, HOSTILE), max_size=4).map("".join)
VALUE = st.one_of(
    st.none(), TEXT, st.integers(-(10**12), 10**12), st.floats(-1e12, 1e12), st.booleans(), st.lists(TEXT, max_size=6)
)
EVIDENCE = st.builds(Evidence, st.one_of(st.just("idle_since"), TEXT), VALUE, st.sampled_from(["", "date"]), TEXT)
SOURCE = st.builds(Source, TEXT, st.one_of(st.none(), TEXT, TEXT.map("https://{}".format)), st.one_of(st.none(), TEXT))
ANSWER = st.builds(
    Answer,
    language=st.sampled_from(LANGUAGES),
    kind=st.just("faq"),
    text=TEXT,
    verdict=st.sampled_from([None, "yes", "no", "depends", "unknown"]),
    abstain=st.booleans(),
    evidence=st.lists(EVIDENCE, max_size=12).map(tuple),
    sources=st.lists(SOURCE, max_size=12).map(tuple),
    follow_ups=st.lists(TEXT, max_size=10).map(tuple),
)
REF = st.builds(ObjectRef, TEXT, TEXT, TEXT)
MONEY = st.floats(0, 1e9)
FINDING = st.builds(
    Finding,
    rule=st.sampled_from(["rule-of-older-days", *(rule.id for rule in RULES)]),
    severity=st.sampled_from(Severity),
    objects=st.lists(REF, max_size=8).map(tuple),
    evidence=st.lists(EVIDENCE, max_size=14).map(tuple),
    notes=st.just(()),
    cost=st.one_of(st.none(), st.builds(Cost, MONEY, st.one_of(st.none(), MONEY), st.sampled_from(
        ["contract", "list", "other_region", "estimate"]), st.one_of(st.none(), TEXT), TEXT)),
    fingerprint=st.just("f"),
)  # fmt: skip
UNIX = st.floats(0, 4e9)
ALERT = st.builds(AlertView, id=st.just("a"), cluster=TEXT, finding=FINDING, state=st.sampled_from(["open", "resolved"
                  ]), opened_at=UNIX, updated_at=UNIX, resolved_at=st.one_of(st.none(), UNIX))  # fmt: skip

HEALTH = st.builds(ClusterHealth, name=TEXT, state=st.one_of(TEXT, st.sampled_from(["ok", "unreachable"])),
                   gpu_nodes=st.none(), open_findings=st.just({"high": 2}), audited_at=st.none())  # fmt: skip


def assert_sound(message: Message) -> None:
    """Slack takes it, the sum of text stays below the undocumented limit, and nothing in it mentions or links names."""
    blocks = json.loads(json.dumps(message.blocks))
    assert check_message(blocks) == []
    assert text_sum(blocks) <= MESSAGE_TEXT
    assert message.text.strip()
    assert length(message.text) <= 4000
    for text in [message.text, *_texts(blocks)]:
        for inside in re.findall(r"<([^>]*)>?", text):
            assert inside.startswith(("http://", "https://", "!date^")), text[:200]


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["text"]] if isinstance(value.get("text"), str) else []
        if own and value["type"] == "mrkdwn":
            assert value["verbatim"] is True
        return own + [text for item in value.values() for text in _texts(item)]
    return [text for item in value for text in _texts(item)] if isinstance(value, list) else []


@settings(max_examples=100, deadline=None)
@given(ANSWER)
def test_every_answer_passes_slacks_limits(answer: Answer) -> None:
    assert_sound(answer_message(answer))


@settings(max_examples=100, deadline=None)
@given(ALERT, st.sampled_from(LANGUAGES))
def test_every_alert_passes_slacks_limits(view: AlertView, language: Language) -> None:
    assert_sound(alert_message(view, language))


@settings(max_examples=60, deadline=None)
@given(TEXT, st.lists(HEALTH, max_size=20))
def test_every_sentence_and_help_passes_slacks_limits(text: str, clusters: list[ClusterHealth]) -> None:
    assert_sound(sentence(text))
    assert_sound(help_message((), clusters))


@settings(max_examples=100, deadline=None)
@given(TEXT)
def test_pieces_of_any_markdown_fit_a_section(text: str) -> None:
    parts = list(pieces(text))
    assert all(size(part.text) <= PIECE for part in parts)
    sections, left = pack(parts, 7000)
    assert sum(size(section) for section in sections) <= 7000
    assert left == 0 or sum(size(part.text) + 2 for part in parts) > 7000


def _finding_of(rule_id: str, remedy: str) -> Finding:
    """A finding of a rule with a value for each of its evidence, and all its notes."""
    words = rule_words(rule_id)
    values = tuple(Evidence(name, f"<{name}> & co") for name in words.evidence)
    return Finding(
        rule=rule_id,
        severity=Severity.MEDIUM,
        objects=(ObjectRef("Node", "", "gpu-1"),),
        evidence=values,
        notes=tuple(Note(key, values) for key in words.notes),
        cost=Cost(2.5, None, "estimate", None, "x"),
        remedy=remedy,
        fingerprint="f",
    )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("rule_id", [rule.id for rule in RULES])
def test_every_rule_and_remedy_makes_a_sound_alert(rule_id: str, language: Language) -> None:
    for remedy in rule_words(rule_id).remedies:
        view = alert(finding=_finding_of(rule_id, remedy))
        message = alert_message(view, language)
        assert_sound(message)
        assert "{" not in message.text.replace("{date_short_pretty} {time}", "").replace("{{", "")[:300]
        assert_sound(
            alert_message(msgspec.structs.replace(view, state="resolved", resolved_at=view.opened_at), language)
        )


def shown(message: Message) -> str:
    return "\n".join(_texts(json.loads(json.dumps(message.blocks))))


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        (
            "en",
            [
                "🟠 High",
                "*Cluster*\n`prod-eu`",
                "*Node*\n`gpu-a100-1`",
                "8 GPUs",
                "$852.02",
                "*What to do*",
                "$32.77\n_list",
            ],
        ),
        (
            "es",
            ["🟠 Alta", "*Clúster*\n`prod-eu`", "8 GPU", "*Qué hacer*", "32,77 US$\n_precio"],
        ),
        (
            "it",
            [
                "🟠 Alta",
                "*Nodo*\n`gpu-a100-1`",
                "*Che cosa fare*",
                "32,77 USD\n_prezzo di listino, prezzo del 1 ago 2026_",
            ],
        ),
    ],
)
def test_an_alert_says_what_where_how_much_and_what_to_do(language: Language, expected: list[str]) -> None:
    message = alert_message(alert(), language)
    for text in expected:
        assert text in shown(message)
    assert message.blocks[0]["text"]["text"].split()[:2] == expected[0].split()
    assert "<!date^1795935600^{date_short_pretty} {time}|" in shown(message)
    assert re.search(r"```\nkubectl [^`]*gpu-a100-1[^`]*\n```", shown(message))


def test_evidence_that_repeats_the_objects_is_left_out() -> None:
    more = (Evidence("pods", ["ml/train-0"]), Evidence("pod_namespace", "ml"), Evidence("reason", "CrashLoopBackOff"))
    objects = (ObjectRef("Pod", "ml", "train-0"), ObjectRef("Node", "", "gpu-a100-1"))
    finding = msgspec.structs.replace(IDLE, rule="older-rule", objects=objects, evidence=more, notes=())
    labels = [field["text"].split("\n")[0] for field in alert_message(alert(finding=finding), "en").blocks[1]["fields"]]
    assert labels == ["*Cluster*", "*Pod*", "*Affected*", "*reason*", "*Cost per hour*", "*Cost so far, at most*",
                      "*Alert opened*"]  # fmt: skip


def test_a_cost_whose_beginning_is_unknown_is_said_to_be_unknown() -> None:
    finding = msgspec.structs.replace(IDLE, cost=Cost(2.0, None, "estimate", None, "x"))
    text = shown(alert_message(alert(finding=finding), "en"))
    assert "*Cost so far, at most*\nunknown" in text
    assert "age of the price unknown" in text


def test_no_price_shows_no_cost() -> None:
    text = shown(alert_message(alert(finding=msgspec.structs.replace(IDLE, cost=None)), "en"))
    assert "Cost per hour" not in text


def test_an_alert_of_a_rule_that_is_gone_still_speaks() -> None:
    gone = msgspec.structs.replace(IDLE, rule="removed-rule", notes=())
    text = shown(alert_message(alert(finding=gone), "it"))
    assert "removed-rule: Node/gpu-a100-1" in text
    assert_sound(alert_message(alert(finding=gone), "it"))


def test_the_resolved_form_shows_duration_and_cost_and_nothing_to_do() -> None:
    text = shown(alert_message(alert(resolved_after=26 * 3600), "es"))
    assert "✅ Resuelta" in text
    assert "26 horas" in text
    assert "Coste al verla por última vez, como máximo*\n852,02 US$" in text
    assert "~" not in text
    assert "kubectl" not in text


def test_an_answer_begins_with_its_verdict_once() -> None:
    answer = sharing_answer("es")
    assert shown(answer_message(answer)).startswith("Sí: con")
    without = msgspec.structs.replace(answer, text="Con MIG.")
    assert shown(answer_message(without)).startswith("*Sí.* Con MIG.")
    usually = msgspec.structs.replace(answer, language="it", verdict="no", text="Di solito no: per un notebook.")
    assert shown(answer_message(usually)).startswith("Di solito no")
    normally = msgspec.structs.replace(answer, language="en", verdict="no", text="Not always.")
    assert shown(answer_message(normally)).startswith("*No.* Not always.")
    unknown = msgspec.structs.replace(answer, verdict="unknown", text="Con MIG.")
    assert shown(answer_message(unknown)).startswith("Con MIG.")


def test_an_answer_shows_evidence_sources_with_dates_and_follow_ups() -> None:
    text = shown(answer_message(sharing_answer("it")))
    assert "• idle: 2 ore" in text
    assert "`nvidia.com/gpu.replicas`" in text
    assert "<https://docs.nvidia.com/mig/?a=1&amp;b=2|MIG User Guide> (1 ago 2026)" in text
    assert "*Puoi anche chiedere*\n• MIG or MPS?" in text


def test_a_follow_up_that_the_text_offers_is_not_offered_again() -> None:
    answer = msgspec.structs.replace(sharing_answer("en"), text="Not yet. Ask me:\n- MIG or MPS?", abstain=True)
    assert shown(answer_message(answer)).count("MIG or MPS?") == 1


def test_a_long_answer_is_cut_between_paragraphs_and_says_so() -> None:
    answer = msgspec.structs.replace(
        sharing_answer("en"), text="\n\n".join(f"Paragraph {n}. " + "x" * 500 for n in range(40))
    )
    text = shown(answer_message(answer))
    kept = len(re.findall(r"Paragraph \d+\. x{500}", text))
    assert f"… and {40 - kept} more" in text
    assert "shortened" in text


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("**No.** It is `a<b` & *so* ~~not~~", "*No.* It is `a&lt;b` &amp; _so_ ~not~"),
        ("see [the docs](https://x.y/z?a=1&b=2).", "see <https://x.y/z?a=1&amp;b=2|the docs>."),
        ("at https://x.y/z, too", "at <https://x.y/z>, too"),
        ("[run](javascript:alert(1))", "[run](javascript:alert(1))"),
        ("2 * 3 * 4 and my_pod_name", "2 * 3 * 4 and my_pod_name"),
        ("<!channel> <@U1>", "&lt;!channel&gt; &lt;@U1&gt;"),
        (r"\*plain\*", "*plain*"),
    ],
)
def test_markdown_spans_become_mrkdwn(markdown: str, expected: str) -> None:
    assert inline(markdown) == expected


def test_markdown_blocks_become_pieces() -> None:
    markdown = (
        "# Why\n- one\n  more\n  - two\n\n1. first\n\n| a | b |\n|---|---|\n| x | y |\n\n```sh\nls <x>\n```\n> said"
    )
    sections, left = pack(list(pieces(markdown)), 5000)
    assert left == 0
    assert sections == [
        "*Why*\n• one more\n    ◦ two\n1. first\n\n```\na  b\n-  -\nx  y\n```\n\n```\nls &lt;x&gt;\n```\n\n> said"
    ]


def test_a_wide_table_becomes_a_list() -> None:
    head = "| provider | " + " | ".join(f"column {n}" for n in range(6)) + " |"
    rows = "|---" * 7 + "|\n| **CoreWeave** | " + " | ".join(f"value {n} & more" for n in range(6)) + " |"
    [section], _ = pack(list(pieces(f"{head}\n{rows}")), 5000)
    assert section.startswith("• *CoreWeave*: column 0: value 0 &amp; more; column 1:")


@given(st.text())
def test_escaped_text_holds_no_markup(text: str) -> None:
    escaped = escape(text)
    assert "<" not in escaped
    assert ">" not in escaped
    assert re.sub(r"&(lt|gt|amp);", "", escaped).count("&") == 0
