"""Questions on record: feedback, what stays unanswered, and the memory of a conversation."""

from typing import Any

import pytest

from rules.answers import Answer, Previous
from service.errors import AnswerUnknown, CursorInvalid
from service.settings import QuestionSettings
from tests.service.state.conftest import Advisors, only

SECRET = "xoxb-" + "1234-abcdef"


class Answers:
    """Abstains from weather, asks back for "that", answers the rest as one about GKE's sharing."""

    def __init__(self) -> None:
        self.previous: list[Previous | None] = []

    def __call__(self, text: str, **known: Any) -> Answer:
        self.previous.append(known.get("previous"))
        return Answer(
            language="it" if "tempo" in text else "en",
            kind="out_of_scope" if "tempo" in text else "provider",
            text="...",
            provider="gcp",
            field="sharing",
            filters={"region": "it"},
            abstain="tempo" in text,
            clarify=text.startswith("that"),
        )


async def test_an_answer_on_record_takes_feedback_and_is_listed_when_it_did_not_help(advisors: Advisors) -> None:
    advisor = await advisors.open(answer=Answers())
    first = await advisor.ask("does GKE do MIG?")
    second = await advisor.ask("does EKS do MIG?")
    assert first.id
    assert second.id
    assert first.id != second.id
    await advisor.feedback(first.id, helped=True)
    assert (await advisor.unanswered()).items == []
    await advisor.feedback(first.id, helped=False, comment="anna@example.org wants a date")
    item = only((await advisor.unanswered()).items)
    assert (item.id, item.why, item.text, item.helped, item.not_helped) == (
        first.id,
        "not-helped",
        "does GKE do MIG?",
        1,
        1,
    )
    assert item.comments == ["<address> wants a date"]
    assert item.read == Previous(
        language="en", kind="provider", provider="gcp", field="sharing", filters={"region": "it"}
    )


async def test_feedback_on_an_answer_that_is_not_there_is_an_error_that_names_it(advisors: Advisors) -> None:
    advisor = await advisors.open(answer=Answers())
    for unknown in ("no-such", "nul\x00"):
        with pytest.raises(AnswerUnknown):
            await advisor.feedback(unknown, helped=True)
        with pytest.raises(AnswerUnknown):
            await advisor.forget_question(unknown)


async def test_unanswered_questions_are_kept_without_people_and_secrets(advisors: Advisors) -> None:
    advisor = await advisors.open(answer=Answers())
    await advisor.ask(f"<@U07ABC123|anna> che tempo fa a Roma? {SECRET} scrivi a <mailto:anna@example.org|Anna>")
    await advisor.ask("that one?")
    await advisor.ask("does GKE do MIG?")
    asked_back, abstained = (await advisor.unanswered()).items
    assert (asked_back.why, asked_back.text) == ("asked-back", "that one?")
    assert (abstained.why, abstained.language) == ("abstained", "it")
    assert abstained.text == "@someone che tempo fa a Roma? <redacted> scrivi a <address>"
    assert [item.id for item in (await advisor.unanswered(language="it")).items] == [abstained.id]


async def test_the_list_is_paged_and_a_cursor_of_someone_else_is_refused(advisors: Advisors) -> None:
    advisor = await advisors.open(answer=Answers())
    for number in range(5):
        await advisor.ask(f"that {number}?")
    seen: list[str | None] = []
    cursor: str | None = None
    while True:
        page = await advisor.unanswered(limit=2, cursor=cursor)
        seen += [item.text for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [f"that {number}?" for number in (4, 3, 2, 1, 0)]
    for wrong in ("nonsense", "W10"):
        with pytest.raises(CursorInvalid):
            await advisor.unanswered(cursor=wrong)


async def test_a_reviewed_question_is_gone_with_its_feedback(advisors: Advisors) -> None:
    advisor = await advisors.open(answer=Answers())
    answer = await advisor.ask("that?")
    assert answer.id
    await advisor.feedback(answer.id, helped=False)
    await advisor.forget_question(answer.id)
    assert (await advisor.unanswered()).items == []
    with pytest.raises(AnswerUnknown):
        await advisor.feedback(answer.id, helped=True)


async def test_texts_of_answered_questions_go_after_a_day_and_questions_after_their_time(advisors: Advisors) -> None:
    advisor = await advisors.open(answer=Answers())
    fine = await advisor.ask("does GKE do MIG?")
    bad = await advisor.ask("does EKS do MIG?")
    assert fine.id
    assert bad.id
    await advisor.ask("che tempo fa?")
    await advisor.feedback(bad.id, helped=False)
    advisors.clock.advance(86_401)
    assert (await advisor.clean())["question_texts"] == 1
    await advisor.feedback(fine.id, helped=False)
    assert [item.text for item in (await advisor.unanswered()).items] == ["che tempo fa?", "does EKS do MIG?", None]
    advisors.clock.advance(90 * 86_400)
    cleaned = await advisor.clean()
    assert (cleaned["feedback"], cleaned["questions"]) == (2, 3)
    assert (await advisor.unanswered()).items == []


async def test_a_conversation_is_taken_up_again_for_a_day_and_by_another_replica(replicas: Advisors) -> None:
    answers, others = Answers(), Answers()
    one = await replicas.open(answer=answers)
    other = await replicas.open(answer=others)
    await one.ask("does GKE do MIG in Italy?", conversation="C1:17.1")
    await other.ask("and L4s?", conversation="C1:17.1")
    await other.ask("and L4s?", conversation="C1:99.9")
    await other.ask("and L4s?")
    assert answers.previous == [None]
    expected = Previous(language="en", kind="provider", provider="gcp", field="sharing", filters={"region": "it"})
    assert others.previous == [expected, None, None]
    replicas.clock.advance(86_401)
    await one.ask("and L40S?", conversation="C1:17.1")
    assert answers.previous[-1] is None


async def test_nothing_is_recorded_where_the_settings_say_so(advisors: Advisors) -> None:
    answers = Answers()
    advisor = await advisors.open(answer=answers, questions=QuestionSettings(record=False))
    answer = await advisor.ask("that?", conversation="C1")
    await advisor.ask("that?", conversation="C1")
    assert answer.id is None
    assert answers.previous == [None, None]
    assert (await advisor.unanswered()).items == []
