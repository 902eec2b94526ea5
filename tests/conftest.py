"""Fixtures for all tests: databases. PostgreSQL is a real server, started once and only when a test asks for it."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

USER = "advisor"


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """URL of a PostgreSQL server on loopback, without a database name: ``postgresql://advisor@127.0.0.1:PORT``."""
    programs = _postgresql_programs()
    account = _account()
    home = Path(tempfile.mkdtemp(prefix="gpu-advisor-postgresql-"))
    if account:
        os.chown(home, account["user"], account["group"])
    data, log = home / "data", home / "log"

    def run(program: str, *arguments: str) -> None:
        with (home / "out").open("ab") as out:
            done = subprocess.run(
                [programs / program, *arguments],
                cwd=home,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=90,
                **account,
            )
        if done.returncode:
            said = "\n".join(file.read_text(errors="replace") for file in (home / "out", log) if file.exists())
            pytest.fail(f"{program} failed ({done.returncode}):\n{said}", pytrace=False)

    try:
        run("initdb", "-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        port = _free_port()
        quick = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=200"
        options = f"-h 127.0.0.1 -p {port} -c unix_socket_directories='' {quick}"
        run("pg_ctl", "start", "-w", "-D", str(data), "-l", str(log), "-o", options)
        try:
            yield f"postgresql://{USER}@127.0.0.1:{port}"
        finally:
            run("pg_ctl", "stop", "-w", "-D", str(data), "-m", "immediate")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of an empty database of the test's own, once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite+aiosqlite:///{tmp_path}/gpu-advisor.db"
        return
    yield from _postgresql_database(request.getfixturevalue("postgresql_server"))


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """URL of an empty database on PostgreSQL, for what only several processes on one server can show."""
    yield from _postgresql_database(postgresql_server)


def _postgresql_database(server: str) -> Iterator[str]:
    """A schema stands for a database: a tenth of the time to make, and as empty."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        try:
            yield f"{server}/postgres?options=-csearch_path%3D{name}".replace("postgresql:", "postgresql+psycopg:", 1)
        finally:
            connection.execute("SET lock_timeout = '10s'")
            connection.execute(f"DROP SCHEMA {name} CASCADE")


def _postgresql_programs() -> Path:
    """Folder of ``initdb`` and ``pg_ctl``: the newest Debian version, else what is on the path."""
    versions = sorted(
        (path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()),
        key=lambda path: float(path.parent.name),
    )
    if versions:
        return versions[-1]
    found = shutil.which("pg_ctl", path=f"{os.environ.get('PATH', '')}:/usr/local/bin:/usr/pgsql/bin")
    if found is None:
        pytest.fail(
            "PostgreSQL is not installed: the tests need its server programs (initdb, pg_ctl). "
            "On Debian and Ubuntu: apt-get install postgresql; on macOS: brew install postgresql",
            pytrace=False,
        )
    return Path(found).resolve().parent


def _account() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: then another account does."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    pytest.fail(
        "the tests run as root and there is no account 'postgres' or 'nobody' to run PostgreSQL as", pytrace=False
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
