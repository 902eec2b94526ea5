"""Writing the generated pages of ``docs``: ``gpu-advisor rules --docs docs``, or ``python -m service.manual docs``."""

import sys
from collections.abc import Mapping
from pathlib import Path

from rules.errors import InputInvalid
from rules.manual import coverage_page, rules_page


def pages() -> Mapping[str, str]:
    """The pages by the names of their files."""
    from rules.checks import RULES

    return {"rules.md": rules_page(RULES), "coverage.md": coverage_page(RULES)}


def write(folder: Path) -> list[Path]:
    """Write all pages into ``folder``; answer which ones.

    Raises:
        InputInvalid: the folder cannot be written to.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages().items():
            (folder / name).write_text(text, encoding="utf-8")
            written.append(folder / name)
    except OSError as error:
        raise InputInvalid(f"{folder}: the pages cannot be written: {error.strerror}") from error
    return written


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
