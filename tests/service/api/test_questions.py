"""Feedback and unanswered questions over real HTTP."""

import httpx

from tests.service.api.doubles import DoubleAdvisor


async def test_feedback_is_passed_on_and_answered_with_nothing(
    client: httpx.AsyncClient, advisor: DoubleAdvisor
) -> None:
    response = await client.post("/v1/answers/answer-1/feedback", json={"helped": False, "comment": "no price"})
    assert (response.status_code, response.content) == (204, b"")
    assert advisor.said == [("answer-1", False, "no price")]


async def test_feedback_on_an_unknown_answer_is_not_found(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/answers/other/feedback", json={"helped": True})
    assert response.status_code == 404
    assert "other" in response.json()["detail"]


async def test_feedback_needs_a_yes_or_no(client: httpx.AsyncClient) -> None:
    for body in ({}, {"helped": "maybe"}, {"helped": True, "who": "anna"}):
        response = await client.post("/v1/answers/answer-1/feedback", json=body)
        assert response.status_code == 400, body
        assert response.headers["content-type"].startswith("application/problem+json")


async def test_unanswered_questions_are_listed_page_by_page(client: httpx.AsyncClient) -> None:
    first = await client.get("/v1/questions/unanswered", params={"language": "it", "limit": 1})
    assert first.status_code == 200
    assert first.json()["items"][0]["why"] == "abstained"
    assert first.headers["link"] == '</v1/questions/unanswered?language=it&limit=1&cursor=next>; rel="next"'
    last = await client.get("/v1/questions/unanswered", params={"cursor": "next"})
    assert last.json()["next_cursor"] is None
    assert "link" not in last.headers
    assert (await client.get("/v1/questions/unanswered", params={"cursor": "wrong"})).status_code == 400
    assert (await client.get("/v1/questions/unanswered", params={"language": "fr"})).status_code == 400


async def test_a_reviewed_question_is_deleted(client: httpx.AsyncClient) -> None:
    assert (await client.delete("/v1/questions/answer-1")).status_code == 204
    assert (await client.delete("/v1/questions/other")).status_code == 404
