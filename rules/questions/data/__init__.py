"""Data of the reading: lexicon, labels, languages, words of the answers. Read once, checked against their types."""

from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeVar

import msgspec
import yaml

T = TypeVar("T")

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str) -> Any:
    """Plain data of a YAML document, by the C parser where there is one."""
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - the safe loader, in C


def load(name: str, kind: type[T]) -> T:
    """A data file of this package as ``kind``; a file that does not fit its type is a bug and raises at once."""
    return msgspec.convert(_plain(name), kind)


def names(prefix: str) -> tuple[str, ...]:
    """Names of the data files that begin with ``prefix``, sorted."""
    return tuple(sorted(file.name for file in files(__name__).iterdir() if file.name.startswith(prefix)))


@lru_cache(maxsize=16)
def _plain(name: str) -> Any:
    return parse_yaml((files(__name__) / name).read_text(encoding="utf-8"))
