# SPDX-License-Identifier: Apache-2.0
"""Reports: what a run cost, for people and for programs."""

from __future__ import annotations

from wattmeter import _core
from wattmeter._results.figure import Figure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any, Callable, Generic, Iterator, TypeVar, Union, overload

    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]
    from typing_extensions import TypedDict, Unpack

    Path = Union[str, PathLike[str]]
    JSON = Union[None, bool, int, float, str, list["JSON"], dict[str, "JSON"]]
    T = TypeVar("T")

    class Style(TypedDict, total=False):
        """Units, prices and carbon of a text, as _core.Report.print() has them."""

        verbosity: int
        for_terminal: bool
        ram_unit: str | None
        gpu_ram_unit: str | None
        time_unit: str | None
        price_per_kwh: float
        currency: str | None
        carbon_g_per_kwh: float
        pue: float

    class Info(TypedDict):
        """What is known of a run besides its figures."""

        id: str
        mode: str
        version: str | None
        host: str
        cpu_model: str | None
        kernel: str | None
        boot_id: str
        cpu_method: str | None
        trouble: str | None
        start_unix_ns: int
        interval_ns: int
        is_complete: bool
        end: str | None
        exit_status: int
        signal_number: int

    class _Of(Generic[T]): ...

else:
    T = None

    class _Of:
        """typing takes longer to import than all of this."""

        def __class_getitem__(cls, _):
            return cls


class _Part:
    """What has figures: as attributes by their key, and by name in brackets."""

    def __init__(
        self,
        core: _core.Report,
        kind: str = "run",
        index: int = 0,
        share: str = "inclusive",
    ) -> None:
        self._core = core
        self._place = (kind, index, share)

    def __getitem__(self, key: str) -> Figure:
        try:
            return Figure._of(self._core.figure(key, *self._place))
        except KeyError:
            from difflib import get_close_matches

            from wattmeter._results.listing import some_of

            keys = [figure.key for figure in self._core.figures(*self._place)]
            close = get_close_matches(key, keys)
            there = f"there are: {some_of(keys)};"
            if close:
                there = f"did you mean {', '.join(close)}?"
            message = f"there is no figure {key!r}; {there} .figures has all of them"
            raise KeyError(message) from None

    # Figures are declared below, so that a misspelt one is found before the program runs.
    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name)
            try:
                return self[name]
            except KeyError as error:
                raise AttributeError(error.args[0]) from None

    @property
    def figures(self) -> dict[str, Figure]:
        """All of them by their keys."""
        from wattmeter._results.listing import Named

        return Named((f.key, Figure._of(f)) for f in self._core.figures(*self._place))

    def __dir__(self) -> list[str]:
        keys = (figure.key for figure in self._core.figures(*self._place))
        return [*super().__dir__(), *(key for key in keys if key.isidentifier())]


class Spending(_Part):
    """What a region, or what no region has, costs."""

    time: Figure
    cpu_time: Figure
    energy: Figure
    cpu_energy: Figure
    dram_energy: Figure
    gpu_energy: Figure
    tree_energy: Figure


class Device(_Part):
    """A GPU, a CPU package, memory, ...: its figures, and what is known of it.

    label   "gpu0", "package0"
    name    its model; None: not known, as uuid, source, method, sensor, and index, the
            number by which its driver knows it
    kind    "gpu", "cpu", "dram", ...
    origin  "measured", "estimated" or "simulated"

    label, name, uuid and index are as in gpus().
    """

    label: str
    name: str | None
    index: int | None
    uuid: str | None
    source: str | None
    method: str | None
    sensor: str | None
    kind: str
    origin: str
    energy: Figure
    tree_energy: Figure
    idle_energy: Figure
    rest_energy: Figure
    power: Figure
    idle_power: Figure

    def __init__(self, core: _core.Report, kind: str, index: int) -> None:
        super().__init__(core, kind, index)
        self.__dict__.update(core.device(kind, index))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.label}: {self.energy}>"


class GpuDevice(Device):
    """A GPU: its figures, and what is known of it, as of any Device."""

    max_power: Figure
    utilization: Figure
    max_utilization: Figure
    mean_memory: Figure
    max_memory: Figure
    memory_capacity: Figure
    tree_memory: Figure
    temperature: Figure
    max_temperature: Figure


class Region(Spending):
    """All calls of a name, or (in `paths`) those at one place of the tree of calls.

    name, calls, unfinished; clocked_calls (with the CPU time of their thread's clock; the
    CPU time of the others is attributed by time)
    total_s, min_s, max_s, mean_s, std_s   in seconds
    histogram  pairs of (largest duration in seconds, calls)
    usage      what the samples inside say of memory, threads and utilization
    Figures are inclusive; `.exclusive` has those without the regions inside.
    """

    name: str
    parent: int | None
    depth: int
    children: int
    by_itself: bool
    is_short: bool
    calls: int
    unfinished: int
    clocked_calls: int
    timepoints: int
    calls_with_timepoints: int
    total_s: float
    min_s: float | None
    max_s: float | None
    mean_s: float | None
    std_s: float | None
    histogram: list[tuple[float, int]]
    usage: dict[str, dict[str, float]]

    def __init__(self, core: _core.Report, kind: str, index: int) -> None:
        super().__init__(core, kind, index)
        self.__dict__.update(core.region(kind, index))

    @property
    def exclusive(self) -> Spending:
        """Its figures without the regions inside."""
        return Spending(self._core, self._place[0], self._place[1], "exclusive")

    def __repr__(self) -> str:
        return f"<Region {self.name}: {self.calls} calls, {self.time}, {self.energy}>"


class Process:
    """A process of the measured tree: pid, parent, name, max_threads, and the Figures
    cpu_time, cpu_energy, max_memory, max_private_memory."""

    pid: int
    parent: int
    name: str
    max_threads: int
    cpu_time: Figure
    cpu_energy: Figure
    max_memory: Figure
    max_private_memory: Figure

    def __init__(self, facts: dict[str, Any]) -> None:
        for name, value in facts.items():
            is_figure = isinstance(value, _core.Figure)
            setattr(self, name, Figure._of(value) if is_figure else value)

    def __repr__(self) -> str:
        return f"<Process {self.pid} {self.name}: {self.cpu_time}>"


class Parts(_Of[T]):
    """The parts of a kind: by their place, or by their name."""

    def __init__(self, core: _core.Report, kind: str, make: Callable[..., T]) -> None:
        self._core = core
        self._kind = kind
        self._make = make

    def __len__(self) -> int:
        return self._core.count(self._kind)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, which: int | str) -> T: ...

        @overload
        def __getitem__(self, which: slice) -> list[T]: ...

    def __getitem__(self, which: int | str | slice) -> Any:
        if isinstance(which, str):
            return self._make(self._core, self._kind, self._find(which))
        if isinstance(which, slice):
            return [self[i] for i in range(*which.indices(len(self)))]
        place = which + len(self) if which < 0 else which
        if not 0 <= place < len(self):
            raise IndexError(f"there is no {which} among {len(self)}")
        return self._make(self._core, self._kind, place)

    def _find(self, name: str) -> int:
        try:
            return self._core.find(self._kind, name)
        except KeyError:
            from wattmeter._results.listing import some_of

            names = [getattr(one, "label", None) or getattr(one, "name") for one in self]
            message = f"there is no {self._kind} {name!r}; there are: {some_of(names)}"
            raise KeyError(message) from None

    def __iter__(self) -> Iterator[T]:
        return (self[i] for i in range(len(self)))

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas.DataFrame with a row for each by name, and columns "energy", "energy_low",
        "energy_high", ... and for regions "calls", "exclusive_energy", ...; units are in
        `frame.attrs["units"]`; what is missing is NaN. ImportError without pandas."""
        from wattmeter._results.frames import frame_of_parts

        return frame_of_parts(self)

    def __contains__(self, name: str) -> bool:
        try:
            self._core.find(self._kind, name)
        except KeyError:
            return False
        return True

    def __repr__(self) -> str:
        from wattmeter._results.listing import listed

        return listed(map(repr, self), len(self))


class Report(Spending):
    """What a run cost.

    Figures are attributes (`report.energy`, `report.time`, `report.memory`), and by any
    key or path of the JSON report in brackets (`report["max_ram.main.total_rss"]`);
    `report.figures` has all of them. str() is the report for people.
    """

    memory: Figure
    gpu_memory: Figure
    cpu_use: Figure
    threads: Figure
    gpu_use: Figure
    user_time: Figure
    system_time: Figure
    voluntary_switches: Figure
    involuntary_switches: Figure
    minor_faults: Figure
    major_faults: Figure
    read_bytes: Figure
    written_bytes: Figure
    storage_read_bytes: Figure
    storage_written_bytes: Figure
    cycles: Figure
    instructions: Figure
    branches: Figure
    idle_energy: Figure
    rest_energy: Figure
    power: Figure
    max_power: Figure
    temperature: Figure
    max_temperature: Figure
    region_threads: Figure
    region_processes: Figure
    lost_calls: Figure
    stray_ends: Figure
    dropped_events: Figure

    @property
    def regions(self) -> Parts[Region]:
        """The regions by name, in the order in which they were first seen."""
        return Parts(self._core, "region", Region)

    @property
    def paths(self) -> Parts[Region]:
        """The tree of calls, each place before those inside it."""
        return Parts(self._core, "path", Region)

    @property
    def rest(self) -> Spending | None:
        """What no region has; None where there are no regions."""
        return Spending(self._core, "rest") if self._core.count("rest") else None

    @property
    def gpus(self) -> Parts[GpuDevice]:
        """The GPUs, by place, UUID or label ("gpu0")."""
        return Parts(self._core, "gpu", GpuDevice)

    @property
    def devices(self) -> Parts[Device]:
        """What is no GPU and has figures: CPU packages, memory, ..."""
        return Parts(self._core, "device", Device)

    @property
    def processes(self) -> list[Process]:
        """Those that used most CPU time, in that order."""
        return [Process(facts) for facts in self._core.processes()]

    @property
    def remarks(self) -> list[str]:
        """What a reader has to know of the figures."""
        return self._core.remarks

    @property
    def notes(self) -> dict[str, str]:
        """The notes of the run, as a dict."""
        return self._core.notes

    @property
    def variables(self) -> dict[str, str]:
        """What Slurm, MPI or torchrun had set (RANK, WORLD_SIZE, ...), and which devices
        were visible, as a dict."""
        return self._core.variables

    @property
    def command(self) -> list[str]:
        """The command line, as a list."""
        return self._core.words

    @property
    def sources(self) -> dict[str, tuple[bool, str | None]]:
        """By name: (whether it was there, what it read or why there is nothing)."""
        return self._core.sources

    @property
    def info(self) -> Info:
        """What is known of the run besides figures: id, host, start, end, ..."""
        return self._core.run()

    @property
    def exit_code(self) -> int | None:
        """Of a command: its exit status, or 128 plus the signal that killed it; None where
        it was not seen to end."""
        run = self._core.run()
        if run["end"] == "killed":
            return 128 + int(run["signal_number"])
        return int(run["exit_status"]) if run["end"] == "exited" else None

    def to_text(self, **style: Unpack[Style]) -> str:
        """The report for people. verbosity=1 has every figure; see _core.Report.print for
        units, prices and carbon."""
        return self._core.print("text", **style)

    def to_json(self, **style: Unpack[Style]) -> str:
        """The whole report as a JSON text, as docs/report.md has it."""
        return self._core.print("json", **style)

    def to_dict(self, **style: Unpack[Style]) -> dict[str, JSON]:
        """The same as a dict."""
        import json

        whole: dict[str, JSON] = json.loads(self.to_json(**style))
        return whole

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Writes the report as a JSON file: "figures" has each with what is known of it,
        "json" is to_dict(). load() reads it. Error "EEXIST" if there is such a file, unless
        `overwrite`; ValueError: the name does not end in .json."""
        import json

        from wattmeter._files import write_file
        from wattmeter._results.saved import is_name, state_of

        if not is_name(path):
            raise ValueError(f"{path}: a report is saved as JSON: end the name in .json")
        write_file(path, json.dumps(state_of(self._core)).encode(), overwrite)

    @classmethod
    def load(cls, path: Path) -> Report:
        """The report that save() has written. It is as it was, but for units, prices and
        carbon, which it had before. Error "ENOENT": there is no such file; ValueError: the
        file is no saved report."""
        from wattmeter._results.saved import state_in

        state = state_in(path)
        if state is None:
            raise ValueError(
                f"{path}: not written by Report.save(); to_json() keeps less, "
                "and cannot be read back"
            )
        return _from_state(cls, state)

    def __reduce__(self) -> tuple[Any, ...]:
        from wattmeter._results.saved import state_of

        return _from_state, (type(self), state_of(self._core))

    def __copy__(self) -> Report:
        return type(self)(self._core)

    def __deepcopy__(self, memo: object) -> Report:
        return type(self)(self._core)

    def write_codecarbon(self, path: Path, mode: str = "new", **style: Unpack[Style]) -> None:
        """Adds a row to what CodeCarbon calls emissions.csv: kWh, and kg of CO2e with
        carbon_g_per_kwh=. mode: "new" leaves a file that is there alone (Error
        "EEXIST"), "overwrite", "append" (ValueError for other columns)."""
        self._core.write_codecarbon(path, mode, **style)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Report: {self.time}, {self.energy}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """IPython in a terminal: the text."""
        from wattmeter._results.listing import head

        printer.text(head(str(self).rstrip()))

    def _repr_html_(self) -> str:
        from wattmeter._notebook import as_html

        return as_html(str(self))


def _from_state(kind: type[Report], state: dict[str, Any]) -> Report:
    from wattmeter._results.saved import Saved

    core: Any = Saved(state)
    return kind(core)
