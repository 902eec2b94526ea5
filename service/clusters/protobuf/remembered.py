"""What was made of bytes before, kept by these bytes."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from service.clusters.protobuf import kubernetes_pb2 as pb

Key = TypeVar("Key")
Made = TypeVar("Made")


class Remembered(dict[Key, Made]):
    """What ``make`` makes of a key, made once. Forgets everything when there are more than ``limit`` keys."""

    def __init__(self, make: Callable[[Key], Made], limit: int = 20_000) -> None:
        super().__init__()
        self._make, self._limit = make, limit

    def __missing__(self, key: Key) -> Made:
        if len(self) >= self._limit:
            self.clear()
        made = self[key] = self._make(key)
        return made


_NO_TIME = bytes(8)


class Times(dict[bytes, datetime | None]):
    """Times by their bytes; most are those of one pod alone, so making one has to be quick."""

    def __missing__(self, raw: bytes) -> datetime | None:
        made: datetime | None
        if len(self) >= 1_000:
            self.clear()
        tag, a, b, c, d, e, nanos, none = raw if len(raw) == 8 else _NO_TIME
        if tag == 0x08 and a > 127 and b > 127 and c > 127 and d > 127 and e < 128 and nanos == 0x10 and not none:
            # A whole number of seconds, in five bytes of seven bits each.
            made = datetime.fromtimestamp(a + (b << 7) + (c << 14) + (d << 21) + (e << 28) - 0x10204080, UTC)
        else:
            made = _read_time(raw)
        self[raw] = made
        return made


def _read_time(raw: bytes) -> datetime | None:
    if not raw:
        return None
    time = pb.Time.FromString(raw)
    moment = datetime.fromtimestamp(time.seconds, UTC)
    return moment.replace(microsecond=time.nanos // 1000) if time.nanos else moment
