from pathlib import Path

import pytest

from tests.service.cli.running import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)
