"""What an operator may set about registries."""

from typing import Annotated

import msgspec


class RegistrySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether and how image registries are asked. Credentials never appear in its ``repr``.

    Attributes:
        enabled: off unless the operator says otherwise: reading makes requests to other systems.
        hosts: the registries that may be asked, such as ``nvcr.io`` or ``*.example.com``; none named: those of the
            images that run in the clusters. Loopback and link-local addresses only when they are named here; a loopback
            registry is spoken to over plain HTTP, as Docker does.
        docker_config: file with credentials in the format of ``~/.docker/config.json`` (also of a pull secret's
            ``.dockerconfigjson``). Credential helpers are not run.
        auth: the same as text; set it by GPU_ADVISOR_REGISTRY_AUTH.
        token_hosts: hosts that may get credentials because a registry names them as its token service. The registry's
            own host, Docker Hub's and GitLab's token services need no entry.
        request_seconds: whole time of one request.
        wait_seconds: how long an audit waits for all of its images. What is not there then is unknown in this audit;
            reading goes on, and the next audit has it.
        parallel: requests at the same time.
        tag_seconds: how long a tag counts as pointing to the same image.
    """

    enabled: bool = False
    hosts: tuple[str, ...] = ()
    docker_config: str | None = None
    auth: str | None = None
    token_hosts: tuple[str, ...] = ()
    request_seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 5.0
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=120)] = 10.0
    parallel: Annotated[int, msgspec.Meta(ge=1, le=16)] = 4
    tag_seconds: Annotated[int, msgspec.Meta(ge=1, le=604_800)] = 3600

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        shown["auth"] = "***" if self.auth else None
        return f"RegistrySettings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"
