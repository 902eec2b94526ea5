"""``gpu-advisor demo``: the service on two sample clusters, nothing to set up."""

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.cli.arguments import port
from service.cli.exits import EXIT_CODES

if TYPE_CHECKING:
    from litestar import Litestar

_GUIDE = """
gpu-advisor serves two sample clusters on {base}

Ask, in English, Spanish or Italian:
  curl -s {base}/v1/ask -d '{{"text": "Can I run more than one workload per GPU?"}}'
  curl -s {base}/v1/ask -d '{{"text": "¿Puedo ejecutar más de una carga por GPU?"}}'
  curl -s {base}/v1/ask -d '{{"text": "Posso eseguire più di un carico di lavoro per GPU?"}}'
or on the command line:
  {command} ask "Is Kubernetes worth it for a single GPU?"

Look:
  {base}/v1/findings?state=open          what is wrong now (add &lang=es or &lang=it)
  {base}/v1/findings?rule=idle-gpu-node  idle nodes, with what they cost
  {base}/v1/clusters                     the sample clusters
  {base}/v1/rules                        what is checked, and why
  {base}/schema/openapi.json             all of the API

Then your own cluster:
  {command} audit    audits the current context of your kubeconfig, read only

Ctrl+C stops it; nothing is kept.
"""


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "demo",
        help="serve two sample clusters on 127.0.0.1",
        description="Serves two sample clusters on 127.0.0.1 and prints what to try. Needs no settings, keeps nothing.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--port", type=port, default=8000, help="default: 8000; 0 takes a free one")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve the samples, and return the exit code.

    Raises:
        AddressUnusable: something else listens on the port.
    """
    from tempfile import TemporaryDirectory

    from service.catalog.settings import CatalogSettings
    from service.cli.server import serve
    from service.samples import sample_clusters
    from service.settings import LogSettings, Settings, database_url

    with TemporaryDirectory(prefix="gpu-advisor-demo-") as folder:
        settings = Settings(
            database_url=database_url(f"sqlite:///{Path(folder) / 'demo.db'}"),
            host="127.0.0.1",
            port=args.port,
            clusters=sample_clusters(),
            log=LogSettings(level="warning"),
            catalog=CatalogSettings(refresh=False),
        )
        return serve(settings, started=_started)


async def _started(address: str, app: "Litestar") -> None:
    """Print what the first audits found (samples are audited before the service starts), then what to try."""
    for line in await _found(app):
        print(line)
    print(_GUIDE.format(base=address.replace("127.0.0.1", "localhost"), command=_command()), flush=True)


def _command() -> str:
    """How this program was called, as a person in the same folder would type it."""
    called = Path(sys.argv[0])
    if called.suffix == ".py":
        return "gpu-advisor"
    with contextlib.suppress(ValueError):
        return str(called.absolute().relative_to(Path.cwd()))
    return str(called)


async def _found(app: "Litestar") -> list[str]:
    from rules import words
    from service.cli.labels import SEVERITY
    from service.cli.output import Style
    from service.cli.report import cost_text
    from service.cli.text import plain

    advisor = app.state.advisor
    style = Style(sys.stdout)
    page = await advisor.findings(state="open", limit=200)
    lines = [f"The first audits found {len(page.items)} troubles:"]
    for view in page.items:
        finding = view.finding
        cost = f" · {cost_text(finding.cost, 'en')}" if finding.cost else ""
        tag = style.severity(finding.severity, f"{SEVERITY[finding.severity].en:<8}")
        lines.append(f"  {tag} {view.cluster}: {plain(words.render(finding, 'en').title)}{cost}")
    return lines
