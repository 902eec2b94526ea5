"""The kinds of bins: a GPU that is whole, cut by MIG, or shared by MPS or time-slicing."""

from collections.abc import Hashable, Sequence

import msgspec

from rules.sharing.devices import Device, Profile
from rules.sharing.model import Isolation, Mode, Need, Workload
from rules.sharing.placement import Cut, place, smallest

MIB = 1024
FULL_LOAD = 1000
"""Loads are counted in thousandths."""

_KEEPS: dict[Mode, tuple[Isolation, ...]] = {
    "whole": ("none", "memory", "fault"),
    "mig": ("none", "memory", "fault"),
    "mps": ("none", "memory"),
    "time-slicing": ("none",),
}
"""MPS limits each client's memory, and a fatal fault of one may end all of a server's clients; time-slicing does
neither (https://docs.nvidia.com/deploy/mps/when-to-use-mps.html, NVIDIA/k8s-device-plugin README; 2026-08)."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A workload as the packing sees it: replicas are of one type. Memory in MiB, rounded up; load in thousandths."""

    workload: Workload
    need: Need
    memory: int
    load: int | None

    @property
    def replicas(self) -> int:
        """How many there are."""
        return self.workload.replicas


def item_of(workload: Workload, need: Need, memory_gib: float) -> Item:
    """The item of a workload that takes ``memory_gib``."""
    load = None if workload.load is None else -int(-workload.load * FULL_LOAD // 1)
    return Item(workload=workload, need=need, memory=-int(-memory_gib * MIB // 1), load=load)


def keeps(mode: Mode, workload: Workload) -> bool:
    """Whether a mode gives the isolation and the response that a workload asks for."""
    return workload.isolation in _KEEPS[mode] and not (workload.latency_sensitive and mode == "time-slicing")


class Whole:
    """One item has the GPU for itself."""

    mode: Mode = "whole"
    greedy = True

    def __init__(self, device: Device, items: Sequence[Item], cost: int) -> None:
        self.device, self.cost = device, cost
        room = int(device.memory_gib * MIB)
        self.loads: list[tuple[float, float] | None] = [
            (1.0, 1.0) if item.memory <= room and item.workload.profile is None else None for item in items
        ]

    def leave_to(self, others: Sequence["AnyKind"]) -> None:
        """Take only what none of the other kinds can hold."""
        for item in range(len(self.loads)):
            if any(other.loads[item] for other in others):
                self.loads[item] = None

    def key(self, item: int) -> Hashable:
        """Items of one key are alike here."""
        return self.loads[item] is not None

    def empty(self) -> Hashable:
        """Nothing in it."""
        return 0

    def add(self, state: Hashable, item: int) -> Hashable | None:
        """Only the first one."""
        return 1 if state == 0 and self.loads[item] else None


class TimeSliced:
    """Items take turns; memory is shared, so together they must fit."""

    mode: Mode = "time-slicing"
    greedy = False

    def __init__(self, device: Device, items: Sequence[Item], cost: int) -> None:
        self.device, self.items, self.cost = device, items, cost
        self.room = room = int(device.memory_gib * MIB)
        usable = device.sliceable
        self.loads = [
            (item.memory / room, (item.load or 0) / FULL_LOAD)
            if usable and item.memory <= room and keeps("time-slicing", item.workload) and not item.workload.profile
            else None
            for item in items
        ]

    def key(self, item: int) -> Hashable:
        """Items of one key are alike here."""
        return self.loads[item]

    def empty(self) -> Hashable:
        """No memory, no load."""
        return (0, 0)

    def add(self, state: Hashable, item: int) -> Hashable | None:
        """Memory and known loads may not pass those of the GPU."""
        if self.loads[item] is None:
            return None
        assert isinstance(state, tuple)
        memory, load = state[0] + self.items[item].memory, state[1] + (self.items[item].load or 0)
        return (memory, load) if memory <= self.room and load <= FULL_LOAD else None


class MpsShared:
    """Clients of one server with equal parts of memory and threads, as the device plugin cuts them
    (NVIDIA/k8s-device-plugin cmd/mps-control-daemon/mps/daemon.go): the largest decides how many there can be."""

    mode: Mode = "mps"

    def __init__(self, device: Device, items: Sequence[Item], cost: int) -> None:
        self.device, self.items, self.cost = device, items, cost
        self.room = int(device.memory_gib * MIB)
        self.loads = [self._load(item) for item in items]
        self.greedy = all(item.load is None for item in items) and len({load is None for load in self.loads}) == 1

    def _load(self, item: Item) -> tuple[float, float] | None:
        most = self.most(item.memory, item.load or 0)
        usable = most > 0 and keeps("mps", item.workload) and not item.workload.profile
        return (1 / most, (item.load or 0) / FULL_LOAD) if usable else None

    def most(self, memory: int, load: int) -> int:
        """Clients of that size and load."""
        by_memory = self.room // memory if memory else self.device.mps_clients
        by_load = FULL_LOAD // load if load else self.device.mps_clients
        return min(self.device.mps_clients, by_memory, by_load)

    def key(self, item: int) -> Hashable:
        """Items of one key are alike here."""
        return self.loads[item] and (self.loads[item], self.items[item].memory)

    def empty(self) -> Hashable:
        """No client."""
        return (0, 0, 0)

    def add(self, state: Hashable, item: int) -> Hashable | None:
        """Every client must do with an equal part."""
        if self.loads[item] is None:
            return None
        assert isinstance(state, tuple)
        clients, memory, load = state
        memory, load = max(memory, self.items[item].memory), max(load, self.items[item].load or 0)
        return (clients + 1, memory, load) if clients < self.most(memory, load) else None


class Mig:
    """Each item has a slice of its own: the smallest profile that will do."""

    mode: Mode = "mig"
    greedy = False

    def __init__(self, device: Device, items: Sequence[Item], cost: int) -> None:
        self.device, self.cost = device, cost
        self.profiles = [self._profile(item) for item in items]
        self.loads = [self._load(item) for item in self.profiles]

    def _profile(self, item: Item) -> Profile | None:
        if self.device.geometry is None:
            return None
        return smallest(
            self.device.geometry,
            memory_gib=item.memory / MIB,
            load=item.workload.load,
            media=item.workload.media,
            pinned=item.workload.profile,
        )

    def _load(self, profile: Profile | None) -> tuple[float, float] | None:
        geometry = self.device.geometry
        if profile is None or geometry is None:
            return None
        return profile.size / geometry.slices, max(profile.compute / geometry.compute, 1 / profile.most)

    def key(self, item: int) -> Hashable:
        """Items of one key are alike here."""
        profile = self.profiles[item]
        return profile and profile.name

    def empty(self) -> Hashable:
        """No slice."""
        return (0,) * len(self.device.geometry.profiles if self.device.geometry else ())

    def add(self, state: Hashable, item: int) -> Hashable | None:
        """The slices must have starts."""
        profile, geometry = self.profiles[item], self.device.geometry
        if profile is None or geometry is None:
            return None
        assert isinstance(state, tuple)
        now = list(state)
        now[geometry.profiles.index(profile)] += 1
        return tuple(now) if place(geometry, now) is not None else None

    def cuts(self, counts: Sequence[int]) -> tuple[Cut, ...]:
        """Where the slices of a filled GPU are."""
        found = place(self.device.geometry, counts) if self.device.geometry else None
        return found or ()


AnyKind = Whole | TimeSliced | MpsShared | Mig
_KINDS: dict[Mode, type[Whole] | type[TimeSliced] | type[MpsShared] | type[Mig]] = {
    "whole": Whole,
    "time-slicing": TimeSliced,
    "mps": MpsShared,
    "mig": Mig,
}


def kind(mode: Mode, device: Device, items: Sequence[Item], cost: int) -> AnyKind:
    """The kind of bin that a GPU in a mode is."""
    return _KINDS[mode](device, items, cost)
