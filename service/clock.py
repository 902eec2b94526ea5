"""Time and ids, which come in as arguments everywhere, and the real ones for the composition root."""

import secrets
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

Clock = Callable[[], datetime]
"""Gives the present moment, timezone-aware UTC."""

Ids = Callable[[], str]
"""Gives a new id; ids made later sort later."""


def utc_now() -> datetime:
    """The real clock."""
    return datetime.now(UTC)


class SortableIds:
    """UUIDs of version 7 (RFC 9562): 48 bits of milliseconds, then 74 bits that count up within a millisecond.

    Two ids of one process always sort in the order of their making, also when the clock stands still or goes back;
    ids of two processes sort by their clocks.
    """

    def __init__(self, clock: Clock, bits: Callable[[int], int] = secrets.randbits) -> None:
        self._clock = clock
        self._bits = bits
        self._lock = threading.Lock()
        self._millisecond = -1
        self._tail = 0

    def __call__(self) -> str:
        """A new id in the usual spelling of 36 characters."""
        with self._lock:
            millisecond = int(self._clock().timestamp() * 1000)
            if millisecond > self._millisecond:
                self._millisecond = millisecond
                self._tail = self._bits(73)  # the top bit stays free, so that counting up has room
            else:
                self._tail += 1 + self._bits(32)
            high, low = self._tail >> 62, self._tail & (1 << 62) - 1
            return str(UUID(int=self._millisecond << 80 | 7 << 76 | (high & 0xFFF) << 64 | 2 << 62 | low))
