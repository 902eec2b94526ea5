"""The configuration that carries a plan out: GPU Operator, device plugin, MIG manager, and what pods ask for.

Formats: device plugin NVIDIA/k8s-device-plugin api/config/v1 (config.go, replicas.go); MIG layouts NVIDIA/mig-parted
api/spec/v1 (spec.go); ClusterPolicy and node labels NVIDIA/gpu-operator (all read 2026-11). GPUs of one node share one
sharing method, so alike GPUs are laid out together as a pool of nodes with one label value.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rules.sharing.devices import device
from rules.sharing.model import GpuUse, Mode, Remark, SharingPlan

NAMESPACE = "gpu-operator"
PLUGIN_CONFIG = "gpu-advisor-device-plugin"
MIG_CONFIG = "gpu-advisor-mig-parted"
NODE = 8
_DEFAULT = "default"
_POINT_OPERATOR = (
    "kubectl patch clusterpolicies.nvidia.com/cluster-policy --type merge --patch-file cluster-policy-patch.yaml"
)
_WAIT_MIG = (
    "kubectl wait node/NODE --for=jsonpath='{.metadata.labels.nvidia\\.com/mig\\.config\\.state}'=success --timeout=15m"
)


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """An object to apply; ``file`` is a name for it, ``body`` plain data."""

    file: str
    body: Mapping[str, Any]


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs that are laid out alike.

    Attributes:
        name: value of the node labels, and key of the ConfigMaps.
        gpus: how many; ``of`` which kind.
        replicas: shares per GPU under time-slicing and MPS.
        slices: MIG devices per GPU by profile.
        resources: what pods ask for there, by workload.
    """

    name: str
    mode: Mode
    of: str
    gpus: int
    replicas: int | None = None
    slices: Mapping[str, int] = {}
    resources: Mapping[str, str] = {}


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """All of it.

    Attributes:
        layouts: pools of nodes.
        manifests: to apply, in order.
        pods: an example of a pod per workload.
        steps: what to do, in order; ``command`` values are ready to run but for the node's name.
    """

    layouts: tuple[Layout, ...]
    manifests: tuple[Manifest, ...]
    pods: tuple[Manifest, ...]
    steps: tuple[Remark, ...]


def configuration(plan: SharingPlan) -> Configuration:
    """The configuration of a plan. Without GPUs in it, everything is empty."""
    layouts = _layouts(plan.uses)
    cut = any(layout.mode == "mig" for layout in layouts)
    shared = any(layout.mode in ("mps", "time-slicing") for layout in layouts)
    manifests = []
    if cut:
        manifests.append(_mig_config(layouts))
    if shared:
        manifests.append(_plugin_config(layouts, cut=cut))
    if cut or shared:
        manifests.append(_cluster_policy(cut=cut, shared=shared))
    return Configuration(
        layouts=layouts,
        manifests=tuple(manifests),
        pods=tuple(_pod(model, layouts, plan) for model in _models(plan)),
        steps=_steps(layouts, cut=cut, shared=shared),
    )


def _models(plan: SharingPlan) -> list[str]:
    return list(dict.fromkeys(item.model for use in plan.uses for item in use.placed))


def _layouts(uses: Sequence[GpuUse]) -> tuple[Layout, ...]:
    groups: dict[tuple[Any, ...], list[GpuUse]] = {}
    for use in sorted(uses, key=lambda use: -len(use.placed) if use.mode == "mig" else 0):
        shape = _shape(use)
        # A layout with slices to spare does for a GPU that needs fewer, and keeps its nodes alike.
        wider = next((other for other in groups if _covers(other, shape)), shape)
        groups.setdefault(wider, []).append(use)
    names: dict[str, int] = {}
    layouts = []
    for group in groups.values():
        first = group[0]
        base = f"{first.gpu}-{first.mode}".lower().replace("_", "-")
        names[base] = names.get(base, 0) + 1
        name = base if names[base] == 1 else f"{base}-{names[base]}"
        layouts.append(
            Layout(
                name=name,
                mode=first.mode,
                of=first.gpu,
                gpus=len(group),
                replicas=max(use.shares for use in group) if first.mode in ("mps", "time-slicing") else None,
                slices=_slices(first),
                resources={item.model: _resource(use, item.profile) for use in group for item in use.placed},
            )
        )
    return tuple(layouts)


def _shape(use: GpuUse) -> tuple[Any, ...]:
    """What must be equal for one configuration: MIG slices, MPS parts. Time-slicing limits nothing, so that GPUs with
    fewer clients can advertise as many as the fullest."""
    if use.mode == "mig":
        return (use.gpu, use.mode, tuple(sorted(_slices(use).items())))
    return (use.gpu, use.mode, use.shares if use.mode == "mps" else 0)


def _covers(other: tuple[Any, ...], shape: tuple[Any, ...]) -> bool:
    if other[:2] != shape[:2] or shape[1] != "mig":
        return other == shape
    offered = dict(other[2])
    return all(offered.get(profile, 0) >= n for profile, n in shape[2])


def _slices(use: GpuUse) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in use.placed:
        if item.profile is not None:
            found[item.profile] = found.get(item.profile, 0) + 1
    return found


def _resource(use: GpuUse, profile: str | None) -> str:
    if profile is not None:
        return "nvidia.com/mig-" + profile.replace("+", ".")
    if use.mode in ("mps", "time-slicing"):
        return "nvidia.com/gpu.shared"
    return "amd.com/gpu" if any(row.vendor == "amd" for row in device(use.gpu).rows) else "nvidia.com/gpu"


def _mig_config(layouts: Sequence[Layout]) -> Manifest:
    configs: dict[str, Any] = {"all-disabled": [{"devices": "all", "mig-enabled": False}]}
    for layout in layouts:
        if layout.mode == "mig":
            configs[layout.name] = [_entry(layout, "all")]
    for name in dict.fromkeys(layout.of for layout in layouts if layout.mode == "mig"):
        if together := _together(layouts, name):
            configs[_one_node(name)] = _entries_by_index(together)
    body = _config_map(MIG_CONFIG, {"config.yaml": _yaml({"version": "v1", "mig-configs": configs})})
    return Manifest(file="mig-parted-config.yaml", body=body)


def _entry(layout: Layout, devices: str | list[int]) -> dict[str, Any]:
    if layout.mode != "mig":
        return {"devices": devices, "mig-enabled": False}
    entry = {"devices": devices, "mig-enabled": True, "mig-devices": dict(layout.slices)}
    geometry = device(layout.of).geometry
    ids = geometry.row.device_ids if geometry else ()
    return {"device-filter": list(ids), **entry} if ids else entry


def _together(layouts: Sequence[Layout], name: str) -> list[Layout]:
    """Layouts of a kind of GPU that could all be in one node: several of them, on no more GPUs than a node has."""
    found = [layout for layout in layouts if layout.of == name and layout.mode in ("mig", "whole")]
    return found if len(found) > 1 and sum(layout.gpus for layout in found) <= NODE else []


def _one_node(name: str) -> str:
    return f"{name}-one-node".lower()


def _entries_by_index(together: Sequence[Layout]) -> list[dict[str, Any]]:
    """For a single node that holds all GPUs of a kind: layouts by the index of the GPU."""
    entries, first = [], 0
    for layout in together:
        entries.append(_entry(layout, list(range(first, first + layout.gpus))))
        first += layout.gpus
    return entries


def _plugin_config(layouts: Sequence[Layout], *, cut: bool) -> Manifest:
    strategy = "mixed" if cut else "none"
    plain = {"version": "v1", "flags": {"migStrategy": strategy}}
    data = {_DEFAULT: _yaml(plain)}
    for layout in layouts:
        if layout.mode in ("mps", "time-slicing"):
            method = "mps" if layout.mode == "mps" else "timeSlicing"
            sharing = {
                method: {
                    "renameByDefault": True,
                    "failRequestsGreaterThanOne": True,
                    "resources": [{"name": "nvidia.com/gpu", "replicas": layout.replicas}],
                }
            }
            data[layout.name] = _yaml({**plain, "sharing": sharing})
    return Manifest(file="device-plugin-config.yaml", body=_config_map(PLUGIN_CONFIG, data))


def _config_map(name: str, data: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": dict(data),
    }


def _cluster_policy(*, cut: bool, shared: bool) -> Manifest:
    spec: dict[str, Any] = {}
    if cut:
        spec["mig"] = {"strategy": "mixed"}
        spec["migManager"] = {"config": {"name": MIG_CONFIG, "default": "all-disabled"}}
    if shared:
        spec["devicePlugin"] = {"config": {"name": PLUGIN_CONFIG, "default": _DEFAULT}}
    return Manifest(file="cluster-policy-patch.yaml", body={"spec": spec})


def _pod(model: str, layouts: Sequence[Layout], plan: SharingPlan) -> Manifest:
    layout = next(item for item in layouts if model in item.resources)
    name = _dns(model)
    amount = next((item.gpus_per_replica or 1 for item in plan.sizings if item.name == model), 1)
    selector = {}
    if layout.mode == "mig":
        selector = {"nvidia.com/mig.config": layout.name}
    elif layout.mode in ("mps", "time-slicing"):
        selector = {"nvidia.com/device-plugin.config": layout.name}
    spec: dict[str, Any] = {
        "containers": [
            {
                "name": "model",
                "image": "registry.example.com/model:1.0.0",
                "resources": {"limits": {layout.resources[model]: min(amount, 8)}},
            }
        ],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }
    if selector:
        spec = {"nodeSelector": selector, **spec}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    return Manifest(file=f"pod-{name}.yaml", body=body)


def _dns(name: str) -> str:
    """A name as Kubernetes takes it (RFC 1123 label)."""
    clean = "".join(char if char.isascii() and char.isalnum() else "-" for char in name.lower())
    return clean.strip("-")[:50].strip("-") or "model"


def _steps(layouts: Sequence[Layout], *, cut: bool, shared: bool) -> tuple[Remark, ...]:
    steps = [
        Remark(key="make_pool", values={"layout": layout.name, "gpus": layout.gpus, "gpu": layout.of})
        for layout in layouts
    ]
    steps += [
        Remark(key="one_node", values={"gpu": name, "layout": _one_node(name)})
        for name in dict.fromkeys(layout.of for layout in layouts if layout.mode == "mig")
        if _together(layouts, name)
    ]
    if cut:
        steps.append(_step("apply", "kubectl apply -f mig-parted-config.yaml"))
    if shared:
        steps.append(_step("apply", "kubectl apply -f device-plugin-config.yaml"))
    if cut or shared:
        steps.append(
            _step(
                "point_operator",
                _POINT_OPERATOR,
            )
        )
    for layout in layouts:
        if layout.mode == "mig":
            steps.append(_step("drain", "kubectl drain NODE --ignore-daemonsets --delete-emptydir-data"))
            steps.append(_step("label_mig", f"kubectl label node NODE nvidia.com/mig.config={layout.name} --overwrite"))
            steps.append(
                _step(
                    "wait_mig",
                    _WAIT_MIG,
                )
            )
            steps.append(_step("uncordon", "kubectl uncordon NODE"))
        elif layout.mode in ("mps", "time-slicing"):
            steps.append(
                _step(
                    "label_plugin", f"kubectl label node NODE nvidia.com/device-plugin.config={layout.name} --overwrite"
                )
            )
    if cut or shared:
        steps.append(_step("check", "kubectl get node NODE -o jsonpath='{.status.allocatable}'"))
    return tuple(steps)


def _step(key: str, command: str) -> Remark:
    return Remark(key=key, values={"command": command})


def _yaml(data: Any) -> str:
    import yaml

    return yaml.safe_dump(data, sort_keys=False, default_flow_style=False)
