"""The Web API methods of the loopback Slack. Error names: https://docs.slack.dev/reference/methods."""

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from aiohttp import web

from tests.fakes.slack_blocks import ATTACHMENTS, MESSAGE_BLOCK_TEXT, MESSAGE_TEXT, check_message, length, text_sum

if TYPE_CHECKING:
    from tests.fakes.slack import Channel, FakeSlack, Fault

Args = dict[str, Any]
HISTORY = {"public": "channels:history", "private": "groups:history", "im": "im:history"}


class Refused(Exception):
    """An answer with ``ok: false``."""

    def __init__(self, error: str, messages: list[str] | None = None, **more: Any) -> None:
        self.document: dict[str, Any] = {"ok": False, "error": error, **more}
        if messages:
            self.document["errors"] = [message.removeprefix("[ERROR] ") for message in messages]
            self.document["response_metadata"] = {"messages": messages}
        super().__init__(error)


class Method(NamedTuple):
    """How a method is called: who does it, any of which scopes it needs, and its required arguments."""

    run: Callable[[Args], dict[str, Any]]
    scopes: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    token: str = "bot"


class WebApi:
    """Reads, checks and answers calls."""

    def __init__(self, slack: "FakeSlack") -> None:
        self._slack = slack
        self._methods = {
            "auth.test": Method(self._auth_test),
            "api.test": Method(lambda args: {"args": args}),
            "chat.postMessage": Method(self._post, ("chat:write",), ("channel",)),
            "chat.postEphemeral": Method(self._post_ephemeral, ("chat:write",), ("channel", "user")),
            "chat.update": Method(self._update, ("chat:write",), ("channel", "ts")),
            "chat.delete": Method(self._delete, ("chat:write",), ("channel", "ts")),
            "conversations.history": Method(self._history, (), ("channel",)),
            "conversations.replies": Method(self._replies, (), ("channel", "ts")),
            "users.info": Method(self._user, ("users:read",), ("user",)),
            "assistant.threads.setStatus": Method(
                self._status, ("chat:write", "assistant:write"), ("channel_id", "thread_ts", "status")
            ),
            "assistant.threads.setSuggestedPrompts": Method(
                self._prompts, ("assistant:write",), ("channel_id", "prompts")
            ),
            "apps.connections.open": Method(self._connect, (), (), "app"),
        }

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One call, with its faults."""
        from tests.fakes.slack import Call

        name = request.match_info["method"]
        args = await _arguments(request)
        call = Call(name, {key: value for key, value in args.items() if key != "token"})
        self._slack.calls.append(call)
        fault = self._slack.next_fault(name)
        try:
            if fault is not None and not fault.applied:
                return await self._fault(fault, request)
            call.answer = self._run(name, _token(request, args), call.args)
            if fault is not None:
                return await self._fault(fault, request)
            call.status = 429 if call.answer.get("error") == "ratelimited" else 200
            headers = {"Retry-After": "1"} if call.status == 429 else {}
            return web.json_response(call.answer, status=call.status, headers=headers)
        finally:
            await self._slack.notify()

    async def _fault(self, fault: "Fault", request: web.Request) -> web.StreamResponse:
        if fault.kind == "hang":
            await self._slack.notify()
            await self._slack.closing.wait()
        if fault.kind == "drop":
            assert request.transport is not None
            request.transport.abort()
            await asyncio.sleep(0)
        headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
        if fault.body is not None:
            return web.Response(text=fault.body, status=fault.status, headers=headers, content_type="text/html")
        return web.json_response({"ok": False, "error": fault.error}, status=fault.status, headers=headers)

    def _run(self, name: str, token: str | None, args: Args) -> dict[str, Any]:
        try:
            return {"ok": True, **self._checked(name, token, args)(args)}
        except Refused as refused:
            return refused.document

    def _checked(self, name: str, token: str | None, args: Args) -> Callable[[Args], dict[str, Any]]:
        method = self._methods.get(name)
        if method is None:
            raise Refused("unknown_method", req_method=name)
        self._authorize(method, token)
        missing = [field for field in method.required if args.get(field) in (None, "") and field != "status"]
        if missing:
            raise Refused("invalid_arguments", [f"[ERROR] missing required field: {field}" for field in missing])
        return method.run

    def _authorize(self, method: Method, token: str | None) -> None:
        slack = self._slack
        if not token:
            raise Refused("not_authed")
        if token not in (slack.bot_token, slack.app_token):
            raise Refused("invalid_auth")
        if token != (slack.app_token if method.token == "app" else slack.bot_token):
            raise Refused("not_allowed_token_type")
        if method.scopes:
            self._need(*method.scopes)

    def _need(self, *any_of: str) -> None:
        slack = self._slack
        granted = [scope for scope in any_of if slack.scopes is None or scope in slack.scopes]
        if not granted:
            raise Refused("missing_scope", needed=any_of[0], provided=",".join(sorted(slack.scopes or ())))
        slack.used_scopes.add(granted[0])

    def _auth_test(self, args: Args) -> dict[str, Any]:
        from tests.fakes.slack import BOT, BOT_USER, TEAM

        return {"url": "https://loopback.slack.com/", "team": "Loopback", "user": "gpu-advisor", "team_id": TEAM,
                "user_id": BOT_USER, "bot_id": BOT, "is_enterprise_install": False}  # fmt: skip

    def _channel(self, args: Args, name: str = "channel") -> "Channel":
        channel = self._slack.find(str(args[name]))
        if channel is None or (channel.kind == "private" and not channel.bot_in):
            raise Refused("channel_not_found")
        return channel

    def _writable(self, args: Args) -> "Channel":
        channel = self._channel(args)
        if channel.archived:
            raise Refused("is_archived")
        if not channel.bot_in:
            if self._slack.scopes is not None and "chat:write.public" not in self._slack.scopes:
                raise Refused("not_in_channel")
            self._slack.used_scopes.add("chat:write.public")
        return channel

    def _content(self, args: Args) -> dict[str, Any]:
        """The checked content of a message."""
        blocks, attachments = args.get("blocks"), args.get("attachments") or []
        problems = [] if blocks is None else check_message(blocks)
        if problems:
            raise Refused("invalid_blocks", [f"[ERROR] {what} [json-pointer:{where}]" for what, where in problems])
        if text_sum(blocks) > MESSAGE_BLOCK_TEXT:
            raise Refused("msg_blocks_too_long")
        if not isinstance(attachments, list) or len(attachments) > ATTACHMENTS:
            raise Refused("too_many_attachments")
        text = args.get("text") or ""
        if not isinstance(text, str):
            raise Refused("invalid_arguments", ["[ERROR] must be a string [json-pointer:/text]"])
        if length(text) > MESSAGE_TEXT:
            raise Refused("msg_too_long")
        if not text.strip() and not blocks and not attachments:
            raise Refused("no_text")
        metadata = args.get("metadata")
        if metadata is not None and not (
            isinstance(metadata, dict)
            and isinstance(metadata.get("event_type"), str)
            and isinstance(metadata.get("event_payload"), dict)
        ):
            raise Refused("invalid_metadata_format")
        content = {"text": text, "blocks": blocks or [], "attachments": attachments}
        return content if metadata is None else {**content, "metadata": metadata}

    def _post(self, args: Args) -> dict[str, Any]:
        from tests.fakes.slack import APP, BOT, BOT_USER, TEAM

        slack = self._slack
        channel = self._writable(args)
        content = self._content(args)
        thread = args.get("thread_ts")
        if thread is not None:
            parent = channel.messages.get(str(thread))
            if parent is None:
                raise Refused("thread_not_found")
            if parent.get("thread_ts", thread) != thread:
                raise Refused("cannot_reply_to_message")
        if slack.too_fast(channel.id):
            raise Refused("ratelimited")
        message = {"type": "message", "subtype": "bot_message", "user": BOT_USER, "bot_id": BOT, "app_id": APP,
                   "team": TEAM, "ts": slack.new_ts(), **content}  # fmt: skip
        del message["subtype"]
        if thread is not None:
            message["thread_ts"] = str(thread)
            channel.messages[str(thread)]["thread_ts"] = str(thread)
        for name in ("unfurl_links", "unfurl_media"):
            message[name] = args.get(name, True)
        slack.store(channel, message)
        return {"channel": channel.id, "ts": message["ts"], "message": message}

    def _post_ephemeral(self, args: Args) -> dict[str, Any]:
        channel = self._writable(args)
        message = {"channel": channel.id, "user": args["user"], **self._content(args)}
        self._slack.ephemerals.append(message)
        return {"message_ts": self._slack.new_ts()}

    def _own(self, args: Args) -> "tuple[Channel, dict[str, Any]]":
        from tests.fakes.slack import BOT_USER

        channel = self._channel(args)
        message = channel.messages.get(str(args["ts"]))
        if message is None:
            raise Refused("message_not_found")
        if message.get("user") != BOT_USER:
            raise Refused("cant_update_message")
        return channel, message

    def _update(self, args: Args) -> dict[str, Any]:
        channel, message = self._own(args)
        # blocks that are not given stay; an empty list takes them away
        kept = {name: message[name] for name in ("text", "blocks") if args.get(name) is None}
        content = self._content({**kept, **args})
        message.update(content)
        message["edited"] = {"user": message["user"], "ts": self._slack.new_ts()}
        return {"channel": channel.id, "ts": message["ts"], "text": message["text"], "message": message}

    def _delete(self, args: Args) -> dict[str, Any]:
        channel, message = self._own(args)
        del channel.messages[message["ts"]]
        return {"channel": channel.id, "ts": message["ts"]}

    def _readable(self, args: Args) -> "Channel":
        channel = self._channel(args)
        self._need(HISTORY[channel.kind])
        if not channel.bot_in and channel.kind != "public":
            raise Refused("not_in_channel")
        if not str(args["channel"]).startswith(("C", "G", "D")) or channel.id != args["channel"]:
            raise Refused("channel_not_found")
        if not channel.bot_in:
            raise Refused("not_in_channel")
        return channel

    def _history(self, args: Args) -> dict[str, Any]:
        found = [
            message
            for message in self._readable(args).messages.values()
            if message.get("thread_ts", message["ts"]) == message["ts"]
        ]
        return _page(sorted(found, key=lambda message: message["ts"], reverse=True), args)

    def _replies(self, args: Args) -> dict[str, Any]:
        channel = self._readable(args)
        root = str(args["ts"])
        if root not in channel.messages:
            raise Refused("thread_not_found")
        found = [item for item in channel.messages.values() if root in (item["ts"], item.get("thread_ts"))]
        return _page(sorted(found, key=lambda message: message["ts"]), args)

    def _user(self, args: Args) -> dict[str, Any]:
        user = self._slack.users.get(str(args["user"]))
        if user is None:
            raise Refused("user_not_found")
        shown = dict(user)
        if str(args.get("include_locale", "0")) not in ("1", "true", "True"):
            shown.pop("locale")
        return {"user": shown}

    def _status(self, args: Args) -> dict[str, Any]:
        channel = self._channel(args, "channel_id")
        loading = args.get("loading_messages") or []
        if len(loading) > 10:
            raise Refused(
                "invalid_arguments", ["[ERROR] no more than 10 items allowed [json-pointer:/loading_messages]"]
            )
        if str(args["thread_ts"]) not in channel.messages:
            raise Refused("thread_not_found")
        self._slack.statuses.append(args)
        return {}

    def _prompts(self, args: Args) -> dict[str, Any]:
        self._channel(args, "channel_id")
        prompts = args["prompts"]
        if not isinstance(prompts, list) or not 1 <= len(prompts) <= 4:
            raise Refused("invalid_arguments", ["[ERROR] no more than 4 items allowed [json-pointer:/prompts]"])
        if not all(isinstance(item, dict) and item.get("title") and item.get("message") for item in prompts):
            raise Refused("invalid_arguments", ["[ERROR] missing required field [json-pointer:/prompts]"])
        self._slack.prompts.append(args)
        return {}

    def _connect(self, args: Args) -> dict[str, Any]:
        return {"url": self._slack.sockets.new_address()}


async def _arguments(request: web.Request) -> Args:
    """Arguments from the query, a form or a JSON body; JSON within a form is read, as Slack does."""
    args: Args = dict(request.query)
    if request.method == "POST":
        if request.content_type == "application/json":
            args.update(json.loads(await request.text() or "{}"))
        else:
            args.update({key: value for key, value in (await request.post()).items() if isinstance(value, str)})
    for name in ("blocks", "attachments", "metadata", "prompts"):
        if isinstance(args.get(name), str):
            args[name] = json.loads(args[name])
    return args


def _token(request: web.Request, args: Args) -> str | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token else args.get("token")


def _page(messages: list[dict[str, Any]], args: Args) -> dict[str, Any]:
    """A page of a history: bounds, limit and cursor."""
    oldest, latest = float(args.get("oldest") or 0), float(args.get("latest") or "inf")
    within = [message for message in messages if oldest < float(message["ts"]) < latest]
    limit = min(int(args.get("limit") or 100), 999)
    start = int(args.get("cursor") or 0)
    everything = str(args.get("include_all_metadata", "0")) in ("1", "true", "True")
    shown = []
    for message in within[start : start + limit]:
        copy = dict(message)
        if "metadata" in copy and not everything:
            copy["metadata"] = {"event_type": copy["metadata"]["event_type"]}
        shown.append(copy)
    more = start + limit < len(within)
    return {
        "messages": shown,
        "has_more": more,
        "response_metadata": {"next_cursor": str(start + limit) if more else ""},
    }
