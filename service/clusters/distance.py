"""How far away an API server is, and whether its answers are worth compressing on the way.

Compressed, a page of 500 pods has a tenth of its 3 MB, or less. That costs up to 40 ms: the API server compresses
answers of more than 128 KiB at gzip's level 1 (k8s.io/apiserver, endpoints/handlers/responsewriters; zlib takes 10 ms
for such a page, and we allow Go's three times that), and we unpack them (7 ms). What it saves grows with the way. With
one packet of 100,000 lost, a connection carries 110 MB/s over round trips of 5 ms and less over longer ones (Mathis et
al. 1997, MSS 1460): 27 ms for the page, and 3 without the nine tenths. One that begins anew, with 14 KB and twice as
much after each round trip (RFC 6928), needs 8 of them for it instead of 5. Together that is 40 ms at
:data:`FAR_SECONDS`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

Gzip = bool | Literal["auto"]
"""Compress: always, never, or by distance."""

FAR_SECONDS = 0.005
"""Within a data centre and between zones of a region, round trips take up to 2 ms; between regions, and from an office,
10 and more."""


class Distance:
    """Times the answers of one server.

    The shortest time until an answer begins is the round trip and what the server needs at least. The first answer does
    not count, as a connection is made for it.

    Args:
        gzip: what is configured.
        clock: seconds that only grow.
    """

    def __init__(self, gzip: Gzip, clock: Callable[[], float] = time.perf_counter) -> None:
        self._gzip, self._clock = gzip, clock
        self._first = True
        self.round_trip: float | None = None

    @property
    def compressed(self) -> bool:
        """Whether the next answer should be compressed. Not before anything is known, unless it is configured."""
        if self._gzip == "auto":
            return self.round_trip is not None and self.round_trip >= FAR_SECONDS
        return self._gzip

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Around a request, until its answer begins; one that fails does not count."""
        begin = self._clock()
        yield
        took = self._clock() - begin
        if self._first:
            self._first = False
        elif self.round_trip is None or took < self.round_trip:
            self.round_trip = took
