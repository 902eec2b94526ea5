"""``gpu-advisor advise``: is Kubernetes worth it, how many GPUs, which provider, what does it cost?"""

import argparse
from typing import Any

from rules.errors import InputInvalid
from service.cli.catalog_arguments import add_catalog_arguments, catalog_of
from service.cli.exits import Exit
from service.cli.output import write_json

_EPILOG = """a model is [NAME=]SIZE[xREPLICAS], as for plan: 3GiBx12, llm=70B@fp8.

--file takes what POST /v1/advise takes, as YAML or JSON: {"kind", "models", "gpu", "gpus", "nodes", "parallel",
"interruptible", "storage", "budget_usd_month", "region", "team": {"platform_engineers", "kubernetes",
"existing_cluster", "gitops"}, ...}.

prices: of a month, in US dollars, without tax. A fee that is not documented is said, never taken for 0.

exit code: 0 advice was given, 1 something must be known first (needs_more), 2 bad input."""
_WORDS = {
    "vendor": "maker of the GPU: nvidia, amd",
    "storage": "none, block or shared (a volume that several nodes write)",
    "latency": "interactive or relaxed",
    "isolation": "what models must not share: none, memory or fault",
    "region": "country code, eu, us, latam, or a provider's region",
    "billing_unit": "the coarsest that will do: second, minute or hour",
}
_NUMBERS = {
    "gpus": (int, "GPUs in one machine"),
    "nodes": (int, "machines that work together"),
    "parallel": (int, "such workloads at once"),
    "tenants": (int, "teams or customers that must not see each other"),
    "budget_usd_month": (float, "dollars a month"),
    "budget_usd_hour": (float, "dollars an hour"),
    "hours_per_month": (float, "hours the machines are on"),
}
_FLAGS = {
    "interruptible": "it may be stopped and started again",
    "autoscaling": "replicas follow the load",
    "scale_to_zero": "nothing is paid while nothing runs",
    "managed": "only a managed control plane; --no-managed: only a cluster of your own",
    "marketplace": "--no-marketplace: no machines of third parties",
    "edge": "the machines are your own, away from a data centre",
}
_TEAM = {
    "platform_engineers": "somebody's job is to run clusters",
    "kubernetes": "the team has worked with Kubernetes",
    "existing_cluster": "a cluster runs already",
    "gitops": "what runs is declared in a repository",
}
_LISTS = {"gpu": "a GPU model that will do", "providers": "only this provider", "exclude": "not this provider"}


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "advise",
        help="say whether Kubernetes is worth it, how many GPUs it takes, where, and for how much",
        description="Weighs Kubernetes for a workload, plans its GPUs, ranks providers, and lists what to check.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kind", metavar="KIND", help="notebook, fine-tune, batch, inference or training")
    parser.add_argument("--model", action="append", metavar="MODEL", help="a model; may be repeated")
    for name, text in _LISTS.items():
        parser.add_argument(_option(name), action="append", metavar="NAME", help=f"{text}; may be repeated")
    for name, text in _WORDS.items():
        parser.add_argument(_option(name), metavar="WORD", help=text)
    for name, (kind, text) in _NUMBERS.items():
        parser.add_argument(_option(name), type=kind, metavar="N", help=text)
    for name, text in {**_FLAGS, **_TEAM}.items():
        parser.add_argument(_option(name), action=argparse.BooleanOptionalAction, default=None, help=text)
    parser.add_argument("--file", metavar="FILE", help="the whole request as YAML or JSON; - reads standard input")
    parser.add_argument("--manifests", action="store_true", help="print the manifests to start from and nothing else")
    add_catalog_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Advise, and return the exit code.

    Raises:
        InputInvalid, AdviceInvalid, ConfigInvalid: the arguments, the request or the settings cannot be used.
    """
    from rules.advice.advise import advise
    from rules.advice.lines import lines
    from rules.advice.report import document
    from rules.advice.request import read
    from service.cli.text import width, wrapped

    request = read(_from_file(args) if args.file else _from_arguments(args))
    _, catalog = catalog_of(args)
    found = advise(request, catalog)
    answer = document(found, args.lang)
    if args.manifests:
        print("".join(f"---\n# {item['file']}\n{item['yaml']}" for item in answer["manifests"]), end="")
    elif args.format == "json":
        write_json(answer)
    else:
        for line in wrapped("\n".join(lines(answer, args.lang)), width()):
            print(line)
    return Exit.FINDINGS if found.needs_more else Exit.FINE


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _given(args: argparse.Namespace, names: Any) -> dict[str, Any]:
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def _from_file(args: argparse.Namespace) -> Any:
    from service.cli.plan import read_request

    names = ("kind", "model", *_LISTS, *_WORDS, *_NUMBERS, *_FLAGS, *_TEAM)
    if beside := [_option(name) for name in _given(args, names)]:
        raise InputInvalid(f"--file holds the whole request; leave out {', '.join(beside)}")
    return read_request(args.file)


def _from_arguments(args: argparse.Namespace) -> dict[str, Any]:
    from service.cli.plan import model_of

    if not args.kind:
        raise InputInvalid("advise needs --kind KIND (notebook, fine-tune, batch, inference, training) or --file FILE")
    request = _given(args, ("kind", *_LISTS, *_WORDS, *_NUMBERS, *_FLAGS))
    if args.model:
        request["models"] = [model_of(text, number) for number, text in enumerate(args.model, start=1)]
    if team := _given(args, _TEAM):
        request["team"] = team
    return request
