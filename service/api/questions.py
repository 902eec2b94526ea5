"""``/v1/answers`` and ``/v1/questions``: whether answers helped, and what stays unanswered."""

from typing import Annotated, Any

from litestar import Controller, Request, Response, delete, get, post
from litestar.datastructures import ResponseHeader
from litestar.params import Body, PathParameter, QueryParameter

from rules.language import Language
from service.api.documents import FeedbackRequest
from service.api.findings import next_link
from service.api.port import Advisor
from service.api.problems import documented
from service.views import UnansweredPage


class FeedbackController(Controller):
    """Feedback."""

    path = "/v1/answers"
    tags = ("questions",)

    @post(
        "/{answer_id:str}/feedback",
        status_code=204,
        operation_id="giveFeedback",
        summary="Say whether an answer helped",
        description=(
            "`answer_id` is the `id` of an answer of `POST /v1/ask`. Nothing is kept of who says it. An answer that "
            "did not help is listed for the team with its question."
        ),
        responses=documented(400, 404, 413),
    )
    async def give(
        self,
        answer_id: Annotated[str, PathParameter(description="The `id` of the answer.")],
        advisor: Advisor,
        data: Annotated[FeedbackRequest, Body(title="Feedback")],
    ) -> None:
        """Say whether an answer helped."""
        await advisor.feedback(answer_id, helped=data.helped, comment=data.comment)


class QuestionController(Controller):
    """Questions on record."""

    path = "/v1/questions"
    tags = ("questions",)

    @get(
        "/unanswered",
        operation_id="listUnanswered",
        summary="List unanswered questions",
        description=(
            "What was not answered (`abstained`), not clear enough (`asked-back`), or answered without help "
            "(`not-helped`), newest first, for the team to review. Texts are kept without people and secrets. Page as "
            "with findings."
        ),
        response_headers=[
            ResponseHeader(
                name="link", description="Address of the next page, where there is one.", documentation_only=True
            )
        ],
        responses=documented(400),
    )
    async def unanswered(
        self,
        *,
        request: Request[Any, Any, Any],
        advisor: Advisor,
        language: Annotated[Language | None, QueryParameter(description="Only in this language.")] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=200, description="Questions per page.")] = 50,
        cursor: Annotated[str | None, QueryParameter(description="`next_cursor` of the page before.")] = None,
    ) -> Response[UnansweredPage]:
        """List unanswered questions."""
        page = await advisor.unanswered(language=language, limit=limit, cursor=cursor)
        return Response(page, headers=next_link(request, page.next_cursor))

    @delete(
        "/{question_id:str}",
        status_code=204,
        operation_id="forgetQuestion",
        summary="Delete a question that was reviewed",
        description="Takes it off the list and deletes what was kept of it.",
        responses=documented(400, 404),
    )
    async def forget(
        self,
        question_id: Annotated[str, PathParameter(description="The `id` of the question, as listed.")],
        advisor: Advisor,
    ) -> None:
        """Delete a question that was reviewed."""
        await advisor.forget_question(question_id)
