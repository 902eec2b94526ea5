"""Errors as RFC 9457 problem details: the one place where an error becomes a status code."""

from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import ClientException, HTTPException, ValidationException
from litestar.openapi.datastructures import ResponseSpec

from rules.advice.request import AdviceInvalid
from rules.errors import AdvisorError, InputInvalid, PermissionMissing, RemoteTrouble
from rules.sharing.errors import PlanInvalid
from service.errors import AnswerUnknown, AuditUnknown, ClusterUnknown, ProviderUnknown, RuleUnknown, StoreUnavailable

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:gpu-advisor:problem:"

log = structlog.get_logger(__name__)


class FieldProblem(msgspec.Struct, frozen=True):
    """One wrong value of a request.

    Attributes:
        path: of the value, as in ``body.text`` or ``query.limit``.
        detail: what is wrong with it.
    """

    path: str
    detail: str


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem document.

    Attributes:
        type: ``urn:gpu-advisor:problem:`` and a stable kebab-case name.
        title: the kind of problem, the same for all of its type.
        status: the HTTP status code.
        detail: what happened this time and what to do.
        instance: names this one occurrence; the log lines of the request carry the same id.
        errors: the wrong values of the request, where it is about those.
        known: the names that would have been right, where an unknown one was given.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FieldProblem] | None = None
    known: list[str] | None = None


def problem(
    status: int,
    code: str,
    title: str,
    detail: str,
    *,
    request_id: str,
    errors: list[FieldProblem] | None = None,
    known: list[str] | None = None,
) -> Problem:
    """A problem document whose type is ``code`` and whose instance is the request."""
    return Problem(
        type=TYPE_PREFIX + code,
        title=title,
        status=status,
        detail=detail,
        instance=f"urn:gpu-advisor:request:{request_id}",
        errors=errors,
        known=known,
    )


def request_id_of(scope: Any) -> str:
    """The id that :mod:`service.api.front` gave the request."""
    return str(scope["state"].get("request_id", "unknown"))


def from_advisor_error(request: Request[Any, Any, Any], error: AdvisorError) -> Response[Problem]:
    """Each branch of the error tree to its status; faults of our own say nothing but their instance."""
    match error:
        case ClusterUnknown() | AnswerUnknown() | AuditUnknown() | RuleUnknown() | ProviderUnknown():
            status, title = 404, "There is no such thing here"
        case InputInvalid():
            status, title = 400, "The request cannot be used"
        case PermissionMissing():
            status, title = 502, "A right is missing on another system"
        case StoreUnavailable():
            status, title = 503, "The database does not answer"
        case RemoteTrouble():
            status, title = 502, "Another system did not answer as it should"
        case _:
            return from_fault(request, error)
    known = list(error.known) if isinstance(error, ClusterUnknown | ProviderUnknown | RuleUnknown) else None
    errors = None
    if isinstance(error, PlanInvalid | AdviceInvalid):
        errors = [FieldProblem(f"body.{error.field}", error.problem)]
    return problem_response(
        problem(
            status, error.code, title, str(error), request_id=request_id_of(request.scope), errors=errors, known=known
        )
    )


def from_http_exception(request: Request[Any, Any, Any], error: HTTPException) -> Response[Problem]:
    """Litestar's own errors: unknown route, wrong method, body that does not decode, body too large ..."""
    status = error.status_code
    if status >= 500:
        return from_fault(request, error)
    phrase = HTTPStatus(status).phrase
    code = phrase.lower().replace(" ", "-")
    detail, errors = error.detail or phrase, None
    if isinstance(error, ValidationException):
        code, errors = "request-invalid", _field_problems(request, error.extra)
        if errors:
            detail = "; ".join(f"{item.path}: {item.detail}" for item in errors)
    elif status == 400:
        code = "body-invalid"
    elif status == 404:
        code, detail = "route-unknown", f"Nothing is served at {request.url.path}. GET / lists what is."
    elif status == 405:
        allowed = (error.headers or {}).get("allow", "")
        detail = f"{request.url.path} does not answer {request.method}; it answers {allowed}."
    elif status == 413:
        limit = request.route_handler.resolve_request_max_body_size()
        code, detail = "body-too-large", f"The body is larger than {limit} bytes."
    return problem_response(
        problem(status, code, phrase, detail, request_id=request_id_of(request.scope), errors=errors),
        headers=error.headers,
    )


def from_fault(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """Our own bug: the trace goes to the log under the instance's id, nothing of it to the caller."""
    if isinstance(error, RecursionError) and _in_decoder(error):
        return from_http_exception(request, ClientException("The body is nested too deeply to be JSON of use here."))
    request_id = request_id_of(request.scope)
    log.error("request failed", path=request.url.path, method=request.method, exc_info=error)
    return problem_response(
        problem(
            500,
            "internal-fault",
            "Internal fault",
            f"gpu-advisor failed on this request. Its log says why under request_id {request_id}.",
            request_id=request_id,
        )
    )


def problem_response(document: Problem, headers: dict[str, str] | None = None) -> Response[Problem]:
    """``document`` as a response of its own media type."""
    return Response(document, status_code=document.status, media_type=MEDIA_TYPE, headers=headers)


def _in_decoder(error: Exception) -> bool:
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and str(last.tb_frame.f_globals.get("__name__", "")).startswith("litestar.serialization")


def _field_problems(request: Request[Any, Any, Any], extra: Any) -> list[FieldProblem] | None:
    if not isinstance(extra, list):
        return None
    found = []
    for item in extra:
        source = item.get("source", "")
        key = "" if item.get("key") == "data" else _as_sent(request, item.get("key", ""))
        found.append(
            FieldProblem(".".join(filter(None, (str(getattr(source, "value", source)), key))), item["message"])
        )
    return found


def _as_sent(request: Request[Any, Any, Any], key: str) -> str:
    """The caller's name of a parameter whose name in the code is ``key``."""
    field = request.route_handler.parsed_fn_signature.parameters.get(key)
    return getattr(field and field.kwarg_definition, "name", None) or key


HANDLERS: dict[int | type[Exception], Any] = {
    AdvisorError: from_advisor_error,
    HTTPException: from_http_exception,
    Exception: from_fault,
}

_DESCRIPTIONS = {
    400: "The request cannot be used; `errors` names the wrong values.",
    401: "The bearer token is missing or wrong.",
    404: "There is no such thing; `known` names what there is, where that helps.",
    413: "The body is too large.",
    500: "A fault of gpu-advisor itself; the log has the details under the id in `instance`.",
    502: "A cluster could not be read; `detail` says why and what to do.",
    503: "Not ready; `errors` says why.",
}


def documented(*statuses: int) -> dict[int, ResponseSpec]:
    """Problem responses of a handler, for the OpenAPI document; 401 and 500 may happen anywhere."""
    return {
        status: ResponseSpec(Problem, generate_examples=False, description=_DESCRIPTIONS[status], media_type=MEDIA_TYPE)
        for status in sorted({401, 500, *statuses})
    }
