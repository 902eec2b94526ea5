"""``python -m service.catalog.ask PROVIDER``: asks a provider for its prices through gpuhunt and prints them as JSON.

A process of its own, so that the service can end it: see :mod:`service.catalog.fetch`.
"""

import importlib
import sys

import msgspec

from service.catalog.sources import ASKED_BY_GPUHUNT, offers_from


def main(provider: str) -> int:
    """Print the offers; what goes wrong is one line on standard error and exit code 1."""
    import gpuhunt

    module, kind = ASKED_BY_GPUHUNT[provider]
    try:
        asked = getattr(importlib.import_module(f"gpuhunt.providers.{module}"), kind).from_env()
        catalog = gpuhunt.Catalog(balance_resources=False, auto_reload=False)
        catalog.add_provider(asked)
        items = catalog.query(provider=module)
    except Exception as error:
        print(f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000], file=sys.stderr)  # noqa: T201
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(offers_from(items, provider=provider, as_of="", source="")))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
