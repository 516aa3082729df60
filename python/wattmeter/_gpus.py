# SPDX-License-Identifier: Apache-2.0
"""gpus(): what the GPUs of the machine say of themselves."""

from __future__ import annotations

from wattmeter import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, Sequence, Union

    Values = Dict[str, _core.GpuValue]
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


class _Group:
    """The fields of a group as attributes: gpu.power.limit."""

    def __init__(self, values: Values, group: str) -> None:
        self._values = values
        self._group = group

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[f"{self._group}.{name}"].value
        except KeyError:
            raise AttributeError(f"there is no {self._group}.{name}") from None

    def __dir__(self) -> list[str]:
        start = self._group + "."
        return [name[len(start) :] for name in self._values if name.startswith(start)]

    def __repr__(self) -> str:
        return repr({name: getattr(self, name) for name in dir(self)})


class _Fields:
    """Values as attributes, None where one is missing; in brackets with the reason."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._values:
            return self._values[name].value
        if any(key.startswith(name + ".") for key in self._values):
            return _Group(self._values, name)
        raise AttributeError(f"there is no {name}; .values has all")

    def __getitem__(self, name: str) -> _core.GpuValue:
        return self._values[name]

    def why(self, name: str) -> str | None:
        """Why that value is missing: "not supported by this GPU"; None where it is not."""
        why: str | None = self._values[name].why
        return why

    @property
    def values(self) -> Values:
        """All of them by name: GpuValue with value, state and why."""
        return dict(self._values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *{name.split(".")[0] for name in self._values}]


class GpuProcess(_Fields):
    """A process on a GPU: pid, name, user, gpu_memory (bytes), type, ..."""

    def __repr__(self) -> str:
        return f"<GpuProcess {self.pid} {self.name}>"


class Mig(_Fields):
    """A part of a partitioned GPU: index, uuid, name, ..."""


class Gpu(_Fields):
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

    def to_dict(self) -> Any:
        """Everything, as docs/gpu-info.md has it."""
        import json

        return json.loads(self._core.print("json"))

    def __len__(self) -> int:
        return len(self._list)

    def __getitem__(self, place: int) -> Gpu:
        return self._list[place]

    def __iter__(self) -> Iterator[Gpu]:
        return iter(self._list)

    def __str__(self) -> str:
        return self._core.print("text")

    def __repr__(self) -> str:
        return self._core.print("brief") if self._list else f"no GPU: {self.why}"

    def _repr_html_(self) -> str:
        from wattmeter._notebook import as_html

        return as_html(repr(self))


def gpus(gpus: Choice = None) -> Gpus:
    """The GPUs that are chosen: "visible", "0,GPU-7c1f", [0, 1] and so on; None: all. A
    machine without one has none, and `.why` says where they were looked for.

    Raises ValueError for a wrong choice, with a list of what there is.
    """
    return Gpus(gpus)
