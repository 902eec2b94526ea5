"""Socket Mode: addresses that are good for one connection, hello, envelopes, acknowledgements, disconnect.

Source: https://docs.slack.dev/apis/events-api/using-socket-mode/
"""

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web

from tests.fakes.slack_events import Attempt, Delivery

if TYPE_CHECKING:
    from tests.fakes.slack import FakeSlack

MOST_CONNECTIONS = 10


class Sockets:
    """The WebSocket side of the loopback Slack."""

    def __init__(self, slack: "FakeSlack", ack_seconds: float) -> None:
        self._slack = slack
        self._ack_seconds = ack_seconds
        self._numbers = itertools.count(1)
        self._tickets: set[str] = set()
        self._acks: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.open: list[web.WebSocketResponse] = []
        self.connected = 0
        self.refuse = 0

    def new_address(self) -> str:
        """An address for one connection."""
        ticket = f"ticket-{next(self._numbers)}"
        self._tickets.add(ticket)
        return f"ws://127.0.0.1:{self._slack.port}/link/?ticket={ticket}".replace("/link/", "/link")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One connection, from handshake to end."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets or len(self.open) >= MOST_CONNECTIONS:
            return web.Response(status=404)
        self._tickets.discard(ticket)
        if self.refuse:
            self.refuse -= 1
            return web.Response(status=503)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.open.append(socket)
        self.connected += 1
        await socket.send_json(
            {
                "type": "hello",
                "num_connections": len(self.open),
                "debug_info": {"host": "loopback", "build_number": 1, "approximate_connection_time": 18060},
                "connection_info": {"app_id": "A0APP"},
            }
        )
        await self._slack.notify()
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    answer = message.json()
                    future = self._acks.pop(str(answer.get("envelope_id")), None)
                    if future is not None and not future.done():
                        future.set_result(answer)
        finally:
            if socket in self.open:
                self.open.remove(socket)
            await self._slack.notify()
        return socket

    async def deliver(self, payload: dict[str, Any]) -> Delivery:
        """Send an event in an envelope, again with another connection or the same when it is not acknowledged."""
        delivery = Delivery(str(payload["event_id"]), [])
        for number in range(4):
            started = time.monotonic()
            envelope = f"envelope-{next(self._numbers)}"
            self._acks[envelope] = asyncio.get_running_loop().create_future()
            future = self._acks[envelope]
            socket = self.open[number % len(self.open)]
            await socket.send_json(
                {
                    "envelope_id": envelope,
                    "type": "events_api",
                    "payload": payload,
                    "accepts_response_payload": False,
                    "retry_attempt": number,
                    "retry_reason": "timeout" if number else "",
                }
            )
            try:
                async with asyncio.timeout(self._ack_seconds):
                    await future
            except TimeoutError:
                self._acks.pop(envelope, None)
                delivery.attempts.append(Attempt(0, "", time.monotonic() - started))
                continue
            delivery.attempts.append(Attempt(200, "", time.monotonic() - started))
            break
        await self._slack.notify()
        return delivery

    async def click(self, payload: dict[str, Any]) -> Delivery:
        """Send an interaction in an envelope, once."""
        envelope = f"envelope-{next(self._numbers)}"
        future = self._acks[envelope] = asyncio.get_running_loop().create_future()
        started = time.monotonic()
        await self.open[0].send_json(
            {"envelope_id": envelope, "type": "interactive", "payload": payload, "accepts_response_payload": True}
        )
        try:
            async with asyncio.timeout(self._ack_seconds):
                await future
        except TimeoutError:
            self._acks.pop(envelope, None)
            return Delivery("", [Attempt(0, "", time.monotonic() - started)])
        await self._slack.notify()
        return Delivery("", [Attempt(200, "", time.monotonic() - started)])

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Tell every connection to come again, as Slack does every few hours."""
        for socket in list(self.open):
            await socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "loopback"}})

    async def close(self) -> None:
        """End all connections."""
        for socket in list(self.open):
            await socket.close()
