"""``/v1/ask``: a question in, an answer out."""

from typing import Annotated

from litestar import Controller, post
from litestar.openapi.spec import Example
from litestar.params import Body

from rules.answers import Answer
from service.api.documents import AskRequest
from service.api.port import Advisor
from service.api.problems import documented

_EXAMPLES = [
    Example(summary="English", value={"text": "Can I run more than one workload per GPU?"}),
    Example(summary="Spanish", value={"text": "¿Puedo ejecutar más de una carga por GPU?"}),
    Example(summary="Italian", value={"text": "Posso eseguire più di un carico di lavoro per GPU?"}),
    Example(summary="Too short to tell the language", value={"text": "MIG?", "language": "es"}),
]


class AskController(Controller):
    """Questions."""

    path = "/v1/ask"
    tags = ("questions",)

    @post(
        status_code=200,
        operation_id="ask",
        summary="Ask a question",
        description=(
            "A question about GPU nodes on Kubernetes, in English, Spanish or Italian, or a pasted error message. The "
            "answer speaks the language of the text; `language` helps where that is too short to tell. It shows what "
            "it rests on; what gpu-advisor does not know it says (`abstain`). The body is read as JSON whatever its "
            "content type, so that `curl -d` needs no header."
        ),
        responses=documented(400, 413),
    )
    async def ask(
        self, advisor: Advisor, data: Annotated[AskRequest, Body(title="Question", examples=_EXAMPLES)]
    ) -> Answer:
        """Answer a question."""
        return await advisor.ask(data.text, language=data.language, conversation=data.conversation)
