"""The console script in a process of its own, away from the settings and kubeconfigs of whoever runs the tests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "service/samples"
IDLE = SAMPLES / "eks-managed-spot-ondemand.json"
MISMATCH = SAMPLES / "oke-a10-a100-pools.json"
COMMAND = [sys.executable, "-m", "service.main"]


def environment(home: Path, **more: str) -> dict[str, str]:
    """Only what a process needs, with ``more`` on top."""
    kept = {key: os.environ[key] for key in ("PATH", "SYSTEMROOT", "TMPDIR") if key in os.environ}
    return {**kept, "HOME": str(home), "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "PYTHONWARNINGS": "error", **more}


class Cli:
    """Runs commands in ``home``."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(
        self, *arguments: str | bytes | Path, stdin: bytes = b"", **env: str
    ) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [*COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            cwd=self.home,
            env=environment(self.home, **env),
            timeout=100,
            check=False,
        )

    def start(self, *arguments: str | Path, **env: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.home,
            env=environment(self.home, **env),
        )
