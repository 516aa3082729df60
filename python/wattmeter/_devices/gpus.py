# SPDX-License-Identifier: Apache-2.0
"""gpus(): properties and live values of the GPUs of the machine."""

from __future__ import annotations

from wattmeter import _core
from wattmeter._devices.gpu_fields import GpuFields, MigFields, ProcessFields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Sequence, Union, overload

    Choice = Union[str, int, Sequence[Union[str, int]], None]


def words_of(gpus: Choice) -> str | None:
    """A choice of GPUs as the library has it: "0,1" of [0, 1]. TypeError: it is none."""
    if gpus is None or isinstance(gpus, str):
        return gpus
    ones = gpus if isinstance(gpus, (list, tuple, range)) else [gpus]
    for one in ones:
        if not isinstance(one, (int, str)) or isinstance(one, bool):
            kind = type(one).__name__
            raise TypeError(
                f"gpus must be numbers and words such as [0, 1] or 'visible', not {kind}"
            )
    return ",".join(map(str, ones)) or "none"


class GpuProcess(ProcessFields):
    """A process on a GPU: pid, name, user, gpu_memory (bytes), type, ..."""

    def __repr__(self) -> str:
        return f"<GpuProcess {self.pid} {self.name}>"


class Mig(MigFields):
    """A part of a partitioned GPU: index, uuid, name, ..."""


class Gpu(GpuFields):
    """A GPU, as it was when it was asked: gpu.name, gpu.power.draw, gpu.memory.used, in SI
    base units. `gpu["power.draw"]` has the state and the reason as well."""

    def __init__(self, core: _core.Gpus, place: int) -> None:
        super().__init__(core.values(place))
        processes, count = core.processes(place)
        self.processes = [GpuProcess(values) for values in processes]
        self.processes_why = count.why
        self.migs = [Mig(values) for values in core.migs(place)]

    def __repr__(self) -> str:
        return f"<Gpu {self.index}: {self.name}>"


class Gpus:
    """The chosen GPUs, in a list-like object; str() is a block for each."""

    def __init__(self, gpus: Choice = None) -> None:
        self._words = words_of(gpus)
        self._open()

    def _open(self) -> None:
        self._core = _core.Gpus(self._words)
        self._list = [Gpu(self._core, i) for i in range(self._core.count)]

    def refresh(self, groups: Iterable[str] | None = None) -> None:
        """Asks them again, for all or for some groups of fields: ["power", "memory"].
        GPUs that have come or gone are seen."""
        if self._core.refresh(groups):
            self._open()
        else:
            self._list = [Gpu(self._core, i) for i in range(self._core.count)]

    @property
    def why(self) -> str | None:
        """Why there are none; None where there are."""
        if self._list:
            return None
        return "; ".join(f"{way.source}: {way.detail}" for way in self._core.looked)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as docs/gpu-info.md has it."""
        import json

        whole: dict[str, Any] = json.loads(self._core.print("json"))
        return whole

    def __len__(self) -> int:
        return len(self._list)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, which: int | str) -> Gpu: ...

        @overload
        def __getitem__(self, which: slice) -> list[Gpu]: ...

    def __getitem__(self, which: int | str | slice) -> Any:
        """By index, by UUID or by label ("gpu0"), like the GPUs of a report."""
        if not isinstance(which, str):
            return self._list[which]
        for gpu in self._list:
            if which in (gpu.label, gpu.uuid):
                return gpu
        raise KeyError(which)

    def __contains__(self, name: str) -> bool:
        return any(name in (gpu.label, gpu.uuid) for gpu in self._list)

    def __iter__(self) -> Iterator[Gpu]:
        return iter(self._list)

    def __str__(self) -> str:
        return self._core.print("text")

    def __repr__(self) -> str:
        from wattmeter._results.listing import head

        return head(self._core.print("brief")) if self._list else f"no GPU: {self.why}"

    def _repr_html_(self) -> str:
        from wattmeter._notebook import as_html

        return as_html(self._core.print("brief") if self._list else repr(self))


def gpus(gpus: Choice = None) -> Gpus:
    """The GPUs that are chosen: "visible", "0,GPU-7c1f", [0, 1] and so on; None: all. A
    machine without one has none, and `.why` says where they were looked for.

    Raises ValueError for a wrong choice, with a list of the GPUs.
    """
    return Gpus(gpus)
