"""``python -m tests.failures``: every trouble of an API server, and what becomes of it in audit, API and Slack."""

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import structlog

from tests.service.clusters.failures import row, table


def main() -> int:
    """Run every case and print the table."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with tempfile.TemporaryDirectory() as directory:
        for when, name, effect in asyncio.run(table(Path(directory))):
            print(row(when, name, effect))
    return 0


if __name__ == "__main__":
    sys.exit(main())
