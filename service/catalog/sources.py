"""Whose prices gpuhunt can fetch, and how its names lead to ours."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rules.facts.prices import Offer

if TYPE_CHECKING:
    from gpuhunt import CatalogItem

PUBLISHED_BY_GPUHUNT: dict[str, str] = {
    "aws": "aws",
    "azure": "azure",
    "cloudrift": "cloudrift",
    "gcp": "gcp",
    "lambda": "lambdalabs",
    "nebius": "nebius",
    "oci": "oci",
    "runpod": "runpod",
    "verda": "verda",
}
"""Provider -> gpuhunt's name, where a catalogue is published that needs no account."""

ASKED_BY_GPUHUNT: dict[str, tuple[str, str]] = {
    "crusoe": ("crusoe", "CrusoeProvider"),
    "digitalocean": ("digitalocean", "DigitalOceanProvider"),
    "hotaisle": ("hotaisle", "HotAisleProvider"),
    "jarvislabs": ("jarvislabs", "JarvisLabsProvider"),
    "seeweb": ("seeweb", "SeewebProvider"),
    "vast": ("vastai", "VastAIProvider"),
    "vultr": ("vultr", "VultrProvider"),
}
"""Provider -> gpuhunt's module and class that ask the provider itself; all but Vast and Vultr need a key in the
environment (gpuhunt 0.1.34, ``ONLINE_PROVIDER_MODULES``)."""


def known_sources() -> list[str]:
    """Ids of the providers whose prices can be fetched."""
    return sorted({**PUBLISHED_BY_GPUHUNT, **ASKED_BY_GPUHUNT})


def offers_from(items: "Iterable[CatalogItem]", *, provider: str, as_of: str, source: str) -> tuple[Offer, ...]:
    """GPU machines of gpuhunt's rows, one per type and region: zones are one region, at their lowest price, and spot
    stands beside on-demand. Rows without GPU, of TPUs, or without a price are left out.

    Where one name has several GPUs (Google's N1 takes any, Runpod names the GPU only), they become part of it.
    """
    prices: dict[tuple[str, str, str], dict[bool, float]] = {}
    shapes: dict[tuple[str, str, str], CatalogItem] = {}
    forms: dict[str, set[str]] = {}
    for item in items:
        if not item.gpu_count or not item.gpu_name or item.price <= 0:
            continue
        if item.gpu_vendor is None or item.gpu_vendor.value not in ("nvidia", "amd", "intel"):
            continue
        name, gpus = _machine(provider, item.instance_name), _gpus(item)
        forms.setdefault(name, set()).add(gpus)
        key = (name, _region(provider, item.location), gpus)
        shapes.setdefault(key, item)
        known = prices.setdefault(key, {})
        known[item.spot] = min(item.price, known.get(item.spot, item.price))
    return tuple(
        Offer(
            provider=provider,
            instance_type=name if len(forms[name]) == 1 else f"{name} [{gpus}]",
            region=region or None,
            gpu_model=gpu_name(item.gpu_name or "", item.gpu_memory),
            gpu_count=float(item.gpu_count),
            gpu_memory_gib=item.gpu_memory,
            vcpus=float(item.cpu) if item.cpu else None,
            memory_gib=float(item.memory) if item.memory else None,
            price_usd_hour=prices[name, region, gpus].get(False),
            spot_price_usd_hour=prices[name, region, gpus].get(True),
            as_of=as_of,
            source=source,
            arch="arm64" if item.cpu_arch.value == "arm" else "amd64",
        )
        for (name, region, gpus), item in sorted(shapes.items(), key=lambda pair: pair[0])
    )


def _gpus(item: "CatalogItem") -> str:
    return f"{item.gpu_count} x {gpu_name(item.gpu_name or '', item.gpu_memory)}"


def _machine(provider: str, name: str) -> str:
    """The name as nodes carry it: Nebius has two labels, which :mod:`rules.facts.identity` joins with an underscore."""
    return name.replace(" ", "_") if provider == "nebius" else name


def _region(provider: str, location: str) -> str:
    return re.sub(r"(?<=\d)-[a-z]$", "", location) if provider == "gcp" else location


def gpu_name(name: str, memory_gib: float | None) -> str:
    """Our spelling of a GPU that gpuhunt names (``RTX6000Ada``, ``A6000``, ``H100NVL``), with the memory where one
    model has several."""
    if name in ("A100", "A800", "V100") and memory_gib:
        return f"{name}-{memory_gib:g}GB"
    if re.fullmatch(r"A[2456]\d00", name):
        return f"RTX {name}"
    if name == "RTX6000":
        return "Quadro RTX 6000"
    nvl = re.fullmatch(r"(H[12]00)NVL", name)
    if nvl:
        return f"{nvl[1]}-NVL"
    rtx = re.fullmatch(r"RTX(PRO)?(\d{4})(Ada)?(Ti)?(SUPER)?", name)
    if rtx is None:
        return name
    words = ("RTX", rtx[1], rtx[2], rtx[3], rtx[4], rtx[5] and "Super")
    return " ".join(filter(None, words))
