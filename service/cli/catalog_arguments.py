"""Arguments of the commands about providers and prices, and what they read."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rules.language import LANGUAGES
from service.catalog.filter_words import MEANING

if TYPE_CHECKING:
    from rules.facts.offers import Catalog, Filters
    from service.settings import Settings

_FLAGS = frozenset({"bare_metal", "free_control_plane", "free_egress", "managed", "scale_to_zero", "spot"})
_LISTS = frozenset({"compliance", "exclude", "feature", "fields", "gpu", "providers"})


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the filters: ``--gpu-count 8``, ``--managed`` or ``--no-managed``, ``--gpu h100 --gpu a100``."""
    group = parser.add_argument_group("filters")
    for name, meaning in MEANING.items():
        option = f"--{name.replace('_', '-')}"
        text = meaning.replace("%", "%%")
        if name in _FLAGS:
            group.add_argument(option, action=argparse.BooleanOptionalAction, default=None, help=text)
        elif name in _LISTS:
            group.add_argument(option, action="append", metavar="WORD", help=f"{text} May be repeated.")
        else:
            group.add_argument(option, metavar="VALUE", help=text)


def add_catalog_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the settings, the language and the format."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="settings: contract prices, private providers, database of fetched prices (default: $GPU_ADVISOR_CONFIG)",
    )
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="default: en")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def filters_of(args: argparse.Namespace) -> "Filters":
    """The filters that were given.

    Raises:
        FilterInvalid: a value does not fit; it says which would.
    """
    from rules.facts.offers import Filters

    values: dict[str, Any] = {name: getattr(args, name) for name in MEANING}
    return Filters.of(values)


def catalog_of(args: argparse.Namespace) -> "tuple[Settings, Catalog]":
    """The settings and the catalogue; a warning goes to standard error.

    Raises:
        ConfigInvalid: the settings cannot be used.
    """
    from service.catalog.at_hand import catalog_at_hand
    from service.settings import load

    settings = load(args.config, os.environ)
    found = catalog_at_hand(settings)
    if found.warning:
        print(f"gpu-advisor: {found.warning}", file=sys.stderr)
    return settings, found.catalog
