"""Two sample clusters for ``gpu-advisor demo``: self-made, true to what real ones print.

``eks-managed-spot-ondemand``: EKS with an idle on-demand GPU node that web pods keep alive, and a GPU pod that waits.
``oke-a10-a100-pools``: OKE with two driver versions in one pool; an image needs a newer driver than one node has.
"""

from datetime import UTC, datetime
from importlib.resources import as_file, files

from service.clusters.config import ClusterSettings

OBSERVED_AT = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
"""The "now" of the samples: ages and costs in them are counted to this moment."""

NAMES = ("eks-managed-spot-ondemand", "oke-a10-a100-pools")


def sample_clusters() -> tuple[ClusterSettings, ...]:
    """The samples as clusters to connect."""
    return tuple(ClusterSettings(name=name, snapshot=[_path(name)], observed_at=OBSERVED_AT) for name in NAMES)


def _path(name: str) -> str:
    with as_file(files(__name__) / f"{name}.json") as path:
        return str(path)
