"""What the configuration says about one cluster. It holds no credential: kubeconfig files and mounted tokens do.

A kubeconfig is named by path in the operator's configuration and never accepted from a request: its ``exec`` entries
run commands on this machine.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from service.clusters.distance import Gzip

Source = Literal["kubeconfig", "in-cluster", "snapshot"]

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")]
"""Letters, digits, ``.``, ``_`` and ``-``, at most 63: it becomes part of URLs, metric labels and fingerprints."""

Namespace = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""A DNS label, as Kubernetes wants it (RFC 1123)."""


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cluster to read.

    Without ``in_cluster`` and ``snapshot`` it is a context of a kubeconfig file.

    Attributes:
        name: how people call the cluster here; stable, because open findings hang on it.
        kubeconfig: path of the file; None for ``$KUBECONFIG``, else ``~/.kube/config``, as kubectl does.
        context: context in that file; None for its current one.
        in_cluster: use the service account of the pod that gpu-advisor runs in.
        snapshot: files of ``kubectl get -o json|yaml`` output (``.json``, ``.yaml``, ``.yml``, each also as ``.gz``),
            folders of them with all folders in them, archives (``.tar``, ``.tar.gz``, ``.tgz``, ``.zip``), also of the
            GPU Operator's must-gather. What makes a kind completely read is told in
            :mod:`rules.facts.completeness`.
        observed_at: when the snapshot was taken, if that is known; with a zone. Only for snapshots.
        page_size: objects per list request. 500 is what kubectl and the controllers use.
        timeout_seconds: for the whole collection, waiting and retrying included.
        max_parallel: kinds read at the same time; the API server counts each as one seat of its flow control.
        gzip: whether large answers come compressed: ``true``, ``false``, or ``auto``: from API servers whose round
            trips take 5 ms or more (why, see :mod:`service.clusters.distance`). A tenth of the bytes, but time of both
            ends; say ``true`` for a narrow line, or where what leaves a data centre is paid for.
        watch: follow the cluster while the service runs, so that an audit costs no request and sees a change within
            seconds. Without it every audit lists everything.
        max_watches: watches at the same time, each of which keeps a connection; further kinds are listed now and then.
        namespaces: read these namespaces only, with the rights of a Role in each (``gpu-advisor rbac --namespace``).
            What is outside of them, and nodes where there is no right to see them, is unknown then: nothing is called
            idle. Empty for the whole cluster. They are named rather than found out, since no API tells a user in which
            namespaces their rights are, and a right that is taken away should be missed, not forgotten.
    """

    name: Name
    kubeconfig: str | None = None
    context: str | None = None
    in_cluster: bool = False
    snapshot: list[str] = []
    observed_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    page_size: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 500
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 120.0
    max_parallel: Annotated[int, msgspec.Meta(ge=1, le=32)] = 4
    gzip: Gzip = "auto"
    watch: bool = True
    max_watches: Annotated[int, msgspec.Meta(ge=2, le=100)] = 12
    namespaces: list[Namespace] = []

    def __post_init__(self) -> None:
        chosen = [
            option
            for option, given in (
                ("kubeconfig/context", self.kubeconfig is not None or self.context is not None),
                ("in_cluster", self.in_cluster),
                ("snapshot", bool(self.snapshot)),
            )
            if given
        ]
        if len(chosen) > 1:
            raise ValueError(f"cluster {self.name!r} names {' and '.join(chosen)}; keep one of them")
        if self.namespaces and self.snapshot:
            raise ValueError(f"cluster {self.name!r}: namespaces are for live clusters; a snapshot holds what it holds")
        if len(set(self.namespaces)) < len(self.namespaces):
            raise ValueError(f"cluster {self.name!r} names a namespace twice")
        if self.observed_at is not None and not self.snapshot:
            raise ValueError(f"cluster {self.name!r}: observed_at is for snapshots; a live cluster is read now")

    @property
    def source(self) -> Source:
        """Which connector reads it."""
        if self.snapshot:
            return "snapshot"
        return "in-cluster" if self.in_cluster else "kubeconfig"
