"""The wire format: bodies of lists to trimmed objects. JSON now; another one takes its place here."""

from rules.errors import SnapshotInvalid
from rules.facts.decode import decode_page
from service.clusters.collect import Page, PageInvalid
from service.clusters.kinds import KindSpec


def decode_json(spec: KindSpec, body: bytes) -> Page:
    """One page as JSON.

    Raises:
        PageInvalid: it is not a list of that kind.
    """
    try:
        page = decode_page(body, spec.kind)
    except SnapshotInvalid as error:
        where = f"{error.position}: " if error.position else ""
        raise PageInvalid(f"{where}{error.expected}") from error
    return Page(page.items, page.continue_)
