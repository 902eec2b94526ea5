"""What people type in Slack, as the advisor gets it, and text that cannot turn into markup."""

import pytest

from bot.text import escape, fit, question, size, unescape


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ("<@U0BOT> can I share a GPU?", "can I share a GPU?"),
        ("hey <@U0BOT|gpu-advisor>, *can* _I_ share ~one~ GPU?", "hey , can I share one GPU?"),
        ("<@U0BOT>", ""),
        ("", ""),
        ("see <#C1|gpu-ops> and <#C2>", "see #gpu-ops and"),
        ("<!here> <!channel> what is MIG?", "what is MIG?"),
        ("ask <!subteam^S1|@ml-team>", "ask @ml-team"),
        ("since <!date^1392734382^{date}|Feb 18, 2014>", "since Feb 18, 2014"),
        ("is <http://nvcr.io/nvidia/cuda:12.4|nvcr.io/nvidia/cuda:12.4> ok?", "is nvcr.io/nvidia/cuda:12.4 ok?"),
        ("<https://docs.nvidia.com/cuda>", "https://docs.nvidia.com/cuda"),
        ("<mailto:a@b.c|a@b.c> <mailto:d@e.f>", "a@b.c d@e.f"),
        ("5 &lt; 6 &amp;&amp; 7 &gt; 6", "5 < 6 && 7 > 6"),
        ("&amp;lt; stays an entity", "&lt; stays an entity"),
        ("`nvidia-smi` says *no*", "nvidia-smi says no"),
        ("`*not bold*` and `a_b_c`", "*not bold* and a_b_c"),
        ("my_pod_name and 2*3*4 stay", "my_pod_name and 2*3*4 stay"),
        (
            "why?\n```\nFailed: 3 &gt; 2\n  at <http://x.io|x.io>\n```\nthanks",
            "why?\n\nFailed: 3 > 2\n  at x.io\n\nthanks",
        ),
        (":wave: hi :+1::skin-tone-2: node:rtx:1", "hi node:rtx:1"),
        ("can’t “run” this\u00a0now", 'can\'t "run" this now'),
        ("¿Qué GPU?", "¿Qué GPU?"),
    ],
)
def test_slack_markup_becomes_plain_text(typed: str, plain: str) -> None:
    assert question(typed) == plain


def test_escaped_text_comes_back() -> None:
    assert escape("<!channel> & co") == "&lt;!channel&gt; &amp; co"
    assert unescape(escape("<!channel> & co &amp;")) == "<!channel> & co &amp;"
    assert escape("a\x00b\x1b[31m\ud800") == "ab[31m?"


@pytest.mark.parametrize("limit", [1, 5, 6, 7, 20])
def test_cut_text_keeps_its_limit_and_whole_entities(limit: int) -> None:
    cut = fit("a<b&c>😀d" * 5, limit)
    assert size(cut) <= limit
    assert cut.endswith("…")
    assert unescape(cut[:-1]) in "a<b&c>😀d" * 5


def test_text_that_fits_is_not_cut() -> None:
    assert fit("a < b", 8) == "a &lt; b"
