"""Reading CUDA and requirements out of an image's configuration, which decides over the tag.

The configuration is the OCI image config (``{"config": {"Env": [...], "Labels": {...}}}``), Docker's spelling of it, or
just that inner part. Nothing here raises on any shape.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from rules.compat import data
from rules.compat.images import ImageCuda
from rules.compat.requirement import lowest_cuda, requirements_of
from rules.compat.versions import toolkit

_ROCM_VARIABLES = ("ROCM_VERSION", "ROCM_RELEASE")
_CUDA_LABELS = ("com.nvidia.cuda.version", "cuda.version")
_ROCM_LABELS = ("com.amd.rocm.version", "rocm.version")


def environment(image_config: Mapping[str, Any]) -> dict[str, str]:
    """The environment of an image configuration."""
    inner = _inner(image_config)
    env = inner.get("Env", inner.get("env"))
    if isinstance(env, Mapping):
        return {str(name): str(value) for name, value in env.items()}
    if not isinstance(env, (list, tuple)):
        return {}
    pairs = (str(item).partition("=") for item in env)
    return {name: value for name, sign, value in pairs if sign}


def apply(image_config: Mapping[str, Any], found: ImageCuda) -> ImageCuda:
    """``found`` corrected by the configuration: ``CUDA_VERSION``, then ``NVIDIA_REQUIRE_CUDA``, then labels."""
    env = environment(image_config)
    labels = _inner(image_config).get("Labels", _inner(image_config).get("labels"))
    labels = {str(name): str(value) for name, value in labels.items()} if isinstance(labels, Mapping) else {}
    require = requirements_of(env)
    cuda = (
        _version(env.get("CUDA_VERSION"))
        or _version(lowest_cuda(env.get("NVIDIA_REQUIRE_CUDA", "")))
        or next((version for label in _CUDA_LABELS if (version := _version(labels.get(label)))), None)
    )
    rocm = next((version for name in _ROCM_VARIABLES if (version := _version(env.get(name)))), None)
    rocm = rocm or next((version for label in _ROCM_LABELS if (version := _version(labels.get(label)))), None)
    arch = image_config.get("architecture")
    found = msgspec.structs.replace(found, require=require, arch=arch if arch in ("amd64", "arm64") else found.arch)
    if (cuda is None) is (rocm is None):
        return found
    rule = next(family for family in data.images().families if family.id == "env_first")
    read = toolkit(cuda or rocm)
    return msgspec.structs.replace(
        found,
        cuda=cuda,
        rocm=rocm,
        how="config",
        platform="cuda" if cuda else "rocm",
        precision=read.precision if read else None,
        vendor="nvidia" if cuda else "amd",
        source=rule.source,
        as_of=rule.as_of,
        note=None,
    )


def _inner(image_config: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in ("config", "Config", "container_config", "ContainerConfig"):
        inner = image_config.get(name)
        if isinstance(inner, Mapping):
            return inner
    return image_config


def _version(text: str | None) -> str | None:
    read = toolkit(text)
    return read.version if read is not None and "Update" not in read.version else None
