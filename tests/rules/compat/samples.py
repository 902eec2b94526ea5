"""Tables of the compatibility tests, read once."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).parents[2] / "data"


@cache
def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a table in ``tests/data``."""
    loaded = yaml.load((DATA / name).read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert isinstance(loaded, list)
    return loaded
