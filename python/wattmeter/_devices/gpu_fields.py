# SPDX-License-Identifier: Apache-2.0
"""The fields of a GPU, its processes and its parts, declared so that a misspelt one is found
before the program runs. `wattmeter info` shows them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wattmeter._core import GpuValue


class Fields:
    """Values as attributes, None where one is missing; in brackets with the reason."""

    def __init__(self, values: dict[str, GpuValue], group: str = "") -> None:
        self._values = values
        self._group = group

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name)
            full = self._group + name
            if full in self._values:
                return self._values[full].value
            if any(key.startswith(full + ".") for key in self._values):
                return _GROUPS.get(name, Fields)(self._values, full + ".")
            raise AttributeError(f"there is no {full}; .values has all")

    def __getitem__(self, name: str) -> GpuValue:
        return self._values[self._group + name]

    def why(self, name: str) -> str | None:
        """Why that value is missing: "not supported by this GPU"; None where it is not."""
        return self[name].why

    @property
    def values(self) -> dict[str, GpuValue]:
        """All of them by name: GpuValue with value, state and why."""
        from wattmeter._results.listing import Named

        start = len(self._group)
        return Named(
            (name[start:], value)
            for name, value in self._values.items()
            if name.startswith(self._group)
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *{name.split(".")[0] for name in self.values}]

    def __repr__(self) -> str:
        from wattmeter._results.listing import Named

        return repr(Named((name, value.value) for name, value in self.values.items()))


class GpuMemory(Fields):
    """gpu.memory: what `wattmeter info` has under that name."""

    total: int | None
    used: int | None
    free: int | None
    reserved: int | None
    bar1_total: int | None
    bar1_used: int | None
    shared_total: int | None
    shared_used: int | None


class GpuUtilization(Fields):
    """gpu.utilization: what `wattmeter info` has under that name."""

    gpu: float | None
    memory: float | None
    encoder: float | None
    decoder: float | None
    fan: float | None
    fan_speed: int | None
    temperature: float | None
    temperature_memory: float | None
    temperature_hotspot: float | None
    temperature_slowdown: float | None
    temperature_shutdown: float | None
    performance: str | None


class GpuPci(Fields):
    """gpu.pci: what `wattmeter info` has under that name."""

    bus: str | None
    bus_id: str | None
    device: str | None
    device_id: str | None
    sub_system_id: str | None
    current_link_gen: int | None
    max_link_gen: int | None
    current_link_width: int | None
    max_link_width: int | None
    replays: int | None
    sent: float | None
    received: float | None


class GpuClocks(Fields):
    """gpu.clocks: what `wattmeter info` has under that name."""

    graphics: float | None
    sm: float | None
    memory: float | None
    video: float | None
    max_graphics: float | None
    max_sm: float | None
    max_memory: float | None
    max_video: float | None
    throttle: str | None


class GpuPower(Fields):
    """gpu.power: what `wattmeter info` has under that name."""

    management: str | None
    draw: float | None
    instant: float | None
    average: float | None
    scope: str | None
    limit: float | None
    default_limit: float | None
    enforced_limit: float | None
    min_limit: float | None
    max_limit: float | None
    energy: float | None


class GpuEcc(Fields):
    """gpu.ecc: what `wattmeter info` has under that name."""

    mode: str | None
    mode_pending: str | None
    corrected: int | None
    uncorrected: int | None
    corrected_lifetime: int | None
    uncorrected_lifetime: int | None


class GpuNvlink(Fields):
    """gpu.nvlink: what `wattmeter info` has under that name."""

    links: int | None
    sent: int | None
    received: int | None


_GROUPS: dict[str, type[Fields]] = {
    "memory": GpuMemory,
    "utilization": GpuUtilization,
    "pci": GpuPci,
    "clocks": GpuClocks,
    "power": GpuPower,
    "ecc": GpuEcc,
    "nvlink": GpuNvlink,
}


class GpuFields(Fields):
    """The values of a GPU."""

    index: int
    name: str | None
    serial: str | None
    uuid: str | None
    bios: str | None
    label: str | None
    vendor: str | None
    source: str | None
    architecture: str | None
    compute_capability: str | None
    cores: int | None
    multiprocessors: int | None
    kernel_driver: str | None
    driver_version: str | None
    nvml_version: str | None
    cuda_version: str | None
    compute_mode: str | None
    persistence: str | None
    mig_mode: str | None
    mig_mode_pending: str | None
    display_active: bool | None
    simulated: bool | None
    memory: GpuMemory
    utilization: GpuUtilization
    pci: GpuPci
    clocks: GpuClocks
    power: GpuPower
    ecc: GpuEcc
    nvlink: GpuNvlink


class ProcessFields(Fields):
    """The values of a process on a GPU."""

    pid: int
    name: str | None
    user: str | None
    parent_pid: int | None
    parent_name: str | None
    create_time: float | None
    gpu_memory: int | None
    type: str | None
    driver_pid: int | None
    sm: float | None
    memory_utilization: float | None
    encoder: float | None
    decoder: float | None
    gpu_time: float | None
    gpu_instance: int | None
    compute_instance: int | None


class MigFields(Fields):
    """The values of a part of a partitioned GPU."""

    index: int
    uuid: str | None
    name: str | None
    gpu_instance: int | None
    compute_instance: int | None
    multiprocessors: int | None
    memory_total: int | None
    memory_used: int | None
