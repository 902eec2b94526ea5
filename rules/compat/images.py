"""What an image reference tells about the CUDA or ROCm inside.

Repositories are matched by path, never by host: a mirror keeps the path. A tag that moves, a digest alone or a
repository that is not known tells nothing, and then the answer is unknown, never a default.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Literal

import msgspec

from rules.compat import data
from rules.compat.data import ImageFamily, MonthRow, Row
from rules.compat.versions import Precision, key, line_text, toolkit, wheel_version

Platform = Literal["cuda", "rocm", "cpu", "jetson", "other", "none", "unknown"]


class ImageCuda(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the GPU software of an image.

    Attributes:
        cuda, rocm: version as exact as it is known (``12.4.1``, ``12.4``, ``12``); None: not known.
        family: the family of images whose tag grammar was used.
        how: how it was found: ``config``, ``tag`` (a number in the tag or name), ``month`` (NGC month table),
            ``version`` (table of product versions), ``exception`` (a tag known to be wrong), ``word`` (only
            the platform is named); or why it was not: ``no-tag``, ``moving-tag``, ``digest-only``, ``not-in-table``,
            ``not-in-tag``, ``contradictory``, ``unknown-repository``, ``unreadable``.
        platform: ``cuda``, ``rocm``, ``cpu`` and ``none`` (no GPU software), ``jetson``, ``other`` (another maker's
            accelerator), ``unknown``.
        precision: how much of the version is known; None without a version.
        vendor: whose GPU it needs, where that is certain even without a version.
        product_version: version of the product (PyTorch 2.9.1, vLLM 0.20.2 ...) for lists of built kernels.
        arch: CPU architecture that the tag names.
        compat: True when the image carries the cuda-compat package, False when not, None when not known.
        source, as_of: where the rule that was used comes from.
        note: what to know about this image.
        require: values of ``NVIDIA_REQUIRE_*`` of its configuration.
    """

    cuda: str | None = None
    rocm: str | None = None
    family: str | None = None
    how: str = "unknown-repository"
    platform: Platform = "unknown"
    precision: Precision | None = None
    vendor: Literal["nvidia", "amd", "other"] | None = None
    product_version: str | None = None
    arch: Literal["amd64", "arm64"] | None = None
    compat: bool | None = None
    source: str | None = None
    as_of: str | None = None
    note: str | None = None
    require: tuple[tuple[str, str], ...] = ()


class Reference(msgspec.Struct, frozen=True):
    """An image reference: registry host, path, tag and digest as far as they are there."""

    host: str | None
    path: str
    tag: str | None
    digest: str | None


_PATH = re.compile(r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*\Z")
_MOVING = re.compile(
    r"(?:latest|main|master|nightly|dev|develop|edge|stable|head|canary|release|prod)\b", re.IGNORECASE
)
_CUDA = re.compile(
    r"(?<![a-z0-9])cuda[-_]?v?([1-9][0-9]?)(?:\.([0-9]{1,2})(?:\.([0-9]{1,2}))?)?(?![0-9a-z])", re.IGNORECASE
)
_CU = re.compile(r"(?<![a-z0-9])cu(?:da)?([0-9]{3,4}|[1-9][0-9])(?![0-9a-z])", re.IGNORECASE)
_ROCM = re.compile(r"(?<![a-z0-9])rocm[-_]?v?([4-9])\.([0-9]{1,2})(?:\.([0-9]{1,2}))?(?![0-9a-z])", re.IGNORECASE)
_ROCM_DIGITS = re.compile(r"(?<![a-z0-9])rocm([4-9])([0-9])([0-9])(?![0-9a-z])", re.IGNORECASE)
_CUDA_WORD = re.compile(r"(?<![a-z0-9])cuda(?![a-z])", re.IGNORECASE)
_ROCM_WORD = re.compile(r"(?<![a-z0-9])rocm(?![a-z])", re.IGNORECASE)
_OTHER_WORD = re.compile(r"(?<![a-z0-9])(?:gaudi[23]?|hpu|neuronx?|xpu|tpu|intel)(?![a-z0-9])", re.IGNORECASE)
_VERSION = re.compile(r"v?([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})(?:\.?post[0-9]{1,3})?(?![0-9.a-z])", re.IGNORECASE)
_ARM = re.compile(r"(?<![a-z0-9])(?:arm64|aarch64|sbsa)(?![a-z0-9])", re.IGNORECASE)
_PLAIN_REST = re.compile(
    r"(?:[-_](?:amd64|arm64|aarch64|x86_64|runtime|ubuntu[0-9.]*|py3[0-9.]*|openai))*\Z", re.IGNORECASE
)


@lru_cache(maxsize=4096)
def parse(ref: str | None) -> Reference | None:
    """Take an image reference apart; None for a text that is none."""
    text = (ref or "").strip().removeprefix("docker://").removeprefix("docker-pullable://")
    if not text or len(text) > 600 or text.split(maxsplit=1) != [text]:
        return None
    text, _, digest = text.partition("@")
    host = None
    first, slash, rest = text.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        host, text = first, rest
    path, colon, tag = text.partition(":")
    if not _PATH.match(path.lower()) or "/" in tag or (colon and not tag):
        return None
    return Reference(host, path.lower(), tag or None, digest or None)


@lru_cache(maxsize=4096)
def image_cuda(ref: str | None) -> ImageCuda:
    """What ``ref`` tells about the CUDA or ROCm of the image; never raises."""
    parsed = parse(ref)
    if parsed is None:
        return ImageCuda(how="unreadable")
    family = _family(parsed.path)
    found = _READERS[family.id](parsed, family) if family is not None else _any(parsed)
    if family is not None:
        found = msgspec.structs.replace(
            found,
            family=found.family or family.id,
            vendor=found.vendor or (None if found.platform in ("cpu", "jetson", "other") else family.vendor),
            source=found.source or family.source,
            as_of=found.as_of or family.as_of,
            compat=found.compat if found.compat is not None else family.compat,
        )
    vendor = {"cuda": "nvidia", "rocm": "amd", "other": "other"}.get(found.platform)
    return msgspec.structs.replace(
        found,
        vendor=vendor or found.vendor,
        arch="arm64" if parsed.tag and _ARM.search(parsed.tag) else None,
    )


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], ImageFamily], ...]:
    patterns = []
    for family in data.images().families:
        for path in family.paths:
            regex = re.escape(path).replace(r"\*", "[^/]*")
            patterns.append((re.compile(rf"(?:.*/)?{regex}\Z"), family))
    return tuple(patterns)


@cache
def _family_row(ident: str) -> ImageFamily:
    return next(family for family in data.images().families if family.id == ident)


def _family(path: str) -> ImageFamily | None:
    for pattern, family in _patterns():
        if pattern.match(path):
            return family
    if re.search(r"(?:^|/)nim/[^/]+/[^/]+", path):
        return _family_row("nim")
    if re.search(r"(?:^|/)nvidia/l4t-", path):
        return _family_row("ngc_monthly")
    return None


def _cuda(version: str, how: str, row: Row | None = None, **more: object) -> ImageCuda:
    read = toolkit(version)
    return ImageCuda(
        cuda=version,
        how=how,
        platform="cuda",
        precision=read.precision if read else None,
        source=row.source if row else None,
        as_of=row.as_of if row else None,
        note=row.note if row else None,
        **more,  # type: ignore[arg-type]
    )


def _unknown(parsed: Reference, how: str = "not-in-tag") -> ImageCuda:
    if parsed.tag is None:
        how = "digest-only" if parsed.digest else "no-tag"
    elif _MOVING.match(parsed.tag):
        how = "moving-tag"
    return ImageCuda(how=how)


def _hints(text: str) -> ImageCuda | None:
    """A CUDA or ROCm number that stands in a tag or name, whatever the product."""
    found = {".".join(part for part in match.groups() if part) for match in _CUDA.finditer(text)}
    found = {version for version in found if not (version.isdigit() and len(version) != 2) and key(version)[0] >= 7}
    found |= {wheel_version(match[1]) for match in _CU.finditer(text)}
    found = {version for version in found if 7 <= key(version)[0] <= 29}
    rocm = {".".join(part for part in match.groups() if part) for match in _ROCM.finditer(text)}
    rocm |= {".".join(match.groups()) for match in _ROCM_DIGITS.finditer(text)}
    exact = _most_exact(found)
    exact_rocm = _most_exact(rocm)
    if (found and exact is None) or (rocm and exact_rocm is None) or (found and rocm):
        return ImageCuda(how="contradictory")
    if exact:
        return _cuda(exact, "tag")
    if exact_rocm:
        read = toolkit(exact_rocm)
        return ImageCuda(rocm=exact_rocm, how="tag", platform="rocm", precision=read.precision if read else None)
    return None


def _most_exact(versions: set[str]) -> str | None:
    """The longest version, if all others are beginnings of it."""
    longest = max(versions, key=len, default=None)
    if longest is None or all(longest == other or longest.startswith(f"{other}.") for other in versions):
        return longest
    return None


def _any(parsed: Reference) -> ImageCuda:
    """Repositories without a grammar of their own."""
    names = parsed.path.split("/")
    if parsed.host in (None, "docker.io", "index.docker.io", "registry-1.docker.io") and (
        len(names) == 1 or (len(names) == 2 and names[0] == "library")
    ):
        plain = next((row for row in data.images().plain if names[-1] in row.names), None)
        if plain is not None:
            return ImageCuda(how="word", platform="none", source=plain.source, as_of=plain.as_of)
    rule = _family_row("suffix_cu")
    for text in (parsed.tag or "", names[-1]):
        hint = _hints(text)
        if hint is not None:
            return msgspec.structs.replace(hint, family=rule.id, source=rule.source, as_of=rule.as_of)
    words = f"{names[-1]}:{parsed.tag or ''}"
    cuda, rocm = bool(_CUDA_WORD.search(words)), bool(_ROCM_WORD.search(words))
    if cuda != rocm:
        return ImageCuda(how="word", platform="cuda" if cuda else "rocm")
    return _unknown(parsed, "unknown-repository")


def _nvidia_cuda(parsed: Reference, _: ImageFamily) -> ImageCuda:
    match = re.match(r"([0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,2})?)(?:-|\Z)", parsed.tag or "")
    return _cuda(match[1], "tag") if match else _unknown(parsed)


def _pytorch_hub(parsed: Reference, _: ImageFamily) -> ImageCuda:
    hint = _hints(parsed.tag or "")
    if hint is None:
        return _unknown(parsed, "moving-tag")
    product = _VERSION.match(parsed.tag or "")
    # the devel image stands on nvidia/cuda with its compat package, the runtime image has CUDA from wheels only
    compat = (
        True if (parsed.tag or "").endswith("-devel") else False if (parsed.tag or "").endswith("-runtime") else None
    )
    return msgspec.structs.replace(hint, product_version=product[1] if product else None, compat=compat)


def _month(rows: tuple[MonthRow, ...], month: str) -> ImageCuda | None:
    row = next((row for row in rows if row.month == month), None)
    return _cuda(row.cuda, "month", row, product_version=month) if row is not None and row.cuda else None


def _ngc(parsed: Reference, family: ImageFamily) -> ImageCuda:
    tag = parsed.tag or ""
    name = parsed.path.rsplit("/", 1)[-1]
    if name.startswith("l4t-") or re.search(r"-(?:igpu|l4t)(?:-|\Z)", tag):
        return ImageCuda(how="word", platform="jetson")
    match = re.match(r"([0-9]{2}\.[0-9]{2})(?![0-9])", tag)
    if not match:
        return _unknown(parsed)
    tables = data.images()
    if name == "tritonserver" and "trtllm" in tag:
        trtllm = _family_row("triton_trtllm")
        found = _month(tables.triton_trtllm, match[1]) or ImageCuda(how="not-in-table")
        return msgspec.structs.replace(found, family=trtllm.id, source=found.source or trtllm.source)
    variant = _month(tables.triton_vllm, match[1]) if name == "tritonserver" and "-vllm" in tag else None
    return variant or _month(tables.ngc, match[1]) or ImageCuda(how="not-in-table")


def _tensorflow(parsed: Reference, _: ImageFamily) -> ImageCuda:
    tag = parsed.tag or ""
    if not tag:
        return _unknown(parsed)
    if not re.search(r"(?:^|-)gpu(?:-|\Z)", tag):
        return ImageCuda(how="word", platform="cpu")
    product = _VERSION.match(tag)
    row = next((row for row in data.images().tensorflow if product and row.version == line_text(product[1])), None)
    if row is None:
        return msgspec.structs.replace(_unknown(parsed, "not-in-table"), vendor="nvidia")
    return _cuda(row.cuda, "version", row)


def _in_range(parsed: Reference, family: str) -> ImageCuda:
    """CUDA of a product version that stands alone in the tag."""
    product = _VERSION.match(parsed.tag or "")
    if product is None or not _PLAIN_REST.match((parsed.tag or "")[product.end() :]):
        return _unknown(parsed)
    version = key(product[1])
    for row in data.images().ranges:
        if row.family == family and key(row.first) <= version and (row.below is None or version < key(row.below)):
            return _cuda(row.cuda, "version", row, product_version=product[1])
    return ImageCuda(how="not-in-table", product_version=product[1])


def _suffix_or_range(parsed: Reference, family: ImageFamily) -> ImageCuda:
    """vLLM and SGLang: a ``-cuNNN`` suffix wins, else the version tells."""
    tag = parsed.tag or ""
    product = _VERSION.match(tag)
    version = product[1] if product else None
    for row in data.images().exceptions:
        if parsed.path.endswith(row.path) and tag.startswith(row.tag):
            return _cuda(row.cuda, "exception", row, product_version=version)
    hint = _hints(tag)
    if hint is not None:
        return msgspec.structs.replace(hint, product_version=version)
    if parsed.path.endswith("-rocm") or _ROCM_WORD.search(tag):
        return ImageCuda(how="word", platform="rocm", product_version=version)
    if re.search(r"-cpu(?:-|\Z)", tag):
        return ImageCuda(how="word", platform="cpu")
    if _OTHER_WORD.search(tag):
        return ImageCuda(how="word", platform="other")
    return _in_range(parsed, family.id)


def _vllm(parsed: Reference, family: ImageFamily) -> ImageCuda:
    found = _suffix_or_range(parsed, family)
    # this repository has CUDA images only, so that much is certain of a moving tag as well
    return found if found.platform != "unknown" else msgspec.structs.replace(found, vendor="nvidia")


def _tgi(parsed: Reference, family: ImageFamily) -> ImageCuda:
    tag = parsed.tag or ""
    if re.search(r"-trtllm\Z", tag):
        return _cuda("12.8", "tag")
    if tag.endswith("-rocm"):
        of_3_3 = re.match(r"v?3\.3\.", tag)
        return ImageCuda(
            rocm="6.3" if of_3_3 else None, how="version" if of_3_3 else "word", platform="rocm",
            precision="major.minor" if of_3_3 else None,
        )  # fmt: skip
    if _OTHER_WORD.search(tag):
        return ImageCuda(how="word", platform="other")
    return _in_range(parsed, family.id)


def _ray(parsed: Reference, _: ImageFamily) -> ImageCuda:
    tag = parsed.tag or ""
    hint = _hints(tag)
    if hint is not None:
        return hint
    if re.search(r"(?:^|-)gpu(?:-|\Z)", tag):
        return msgspec.structs.replace(_unknown(parsed), vendor="nvidia")
    if re.search(r"-cpu(?:-|\Z)", tag):
        return ImageCuda(how="word", platform="cpu")
    if _VERSION.match(tag) and parsed.path.endswith("/ray"):
        return ImageCuda(how="word", platform="cpu")
    return _unknown(parsed)


def _jupyter(parsed: Reference, _: ImageFamily) -> ImageCuda:
    hint = _hints(parsed.tag or "")
    if hint is not None:
        return hint
    if (parsed.tag or "").startswith("cuda"):
        return ImageCuda(how="word", platform="cuda")
    return ImageCuda(how="word", platform="cpu")


def _kubeflow(parsed: Reference, _: ImageFamily) -> ImageCuda:
    name = parsed.path.rsplit("/", 1)[-1]
    return ImageCuda(how="not-in-tag", platform="cuda" if _CUDA_WORD.search(name) else "cpu")


def _nim(_: Reference, __: ImageFamily) -> ImageCuda:
    return ImageCuda(how="not-in-tag", platform="cuda")


def _rocm(parsed: Reference, _: ImageFamily) -> ImageCuda:
    name = parsed.path.rsplit("/", 1)[-1]
    tag = parsed.tag or ""
    hint = _hints(tag)
    if hint is not None:
        return hint
    leading = re.match(r"([4-9]\.[0-9]{1,2}(?:\.[0-9]{1,2})?)(?![0-9.])", tag)
    if leading and name.startswith(("dev-", "rocm-")):
        read = toolkit(leading[1])
        return ImageCuda(rocm=leading[1], how="tag", platform="rocm", precision=read.precision if read else None)
    return _unknown(parsed)


def _generic(parsed: Reference, _: ImageFamily) -> ImageCuda:
    return _hints(parsed.tag or "") or _unknown(parsed)


_READERS: dict[str, Callable[[Reference, ImageFamily], ImageCuda]] = {
    "nvidia_cuda": _nvidia_cuda,
    "pytorch_hub": _pytorch_hub,
    "ngc_monthly": _ngc,
    "tensorflow_hub": _tensorflow,
    "vllm_openai": _vllm,
    "sglang": _suffix_or_range,
    "tgi": _tgi,
    "ray": _ray,
    "jupyter_stacks": _jupyter,
    "kubeflow_notebooks": _kubeflow,
    "nim": _nim,
    "rocm_pytorch": _rocm,
    "rocm_vllm": _rocm,
    "rapids": _generic,
}
