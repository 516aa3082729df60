# SPDX-License-Identifier: Apache-2.0
"""read(): a recording as columns."""

from __future__ import annotations

import os

from wattmeter import _core
from wattmeter._results.report import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator, KeysView, overload

    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]
    import polars  # type: ignore[import-untyped,import-not-found,unused-ignore]

    from wattmeter._results.ranks import Ranks
    from wattmeter._results.report import Parts, Path, Region

STATES = ("none", "ok", "unsupported", "denied", "failed", "stale", "jumped")


class Column:
    """A channel and its samples.

    name     "gpu0_power"
    unit     "W", "J", "B", "s", "Hz", "ratio", "celsius", "count"
    channel  what else is known of it: source, device, model, metric, kind, origin, ...
    values   a memoryview of float64, an item per sample, NaN where there is no value
    states   a memoryview of uint8: places in wattmeter.read.STATES
    """

    __slots__ = ("name", "channel", "values", "states")

    def __init__(
        self, name: str, channel: _core.Channel, values: memoryview, states: memoryview
    ) -> None:
        self.name = name
        self.channel = channel
        self.values = values
        self.states = states

    @property
    def unit(self) -> str:
        """Of its values, as above."""
        return self.channel.unit

    def state(self, place: int) -> str:
        """The state of a sample, as a word: "ok", "unsupported", ..."""
        return STATES[self.states[place]]

    def __len__(self) -> int:
        return len(self.values)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, place: int) -> float: ...

        @overload
        def __getitem__(self, place: slice) -> memoryview: ...

    def __getitem__(self, place: int | slice) -> Any:
        """A value, or a memoryview of a slice."""
        return self.values[place]

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)

    def __repr__(self) -> str:
        return f"<Column {self.name} in {self.unit}: {len(self)} samples>"


class Metric:
    """Numbers that the program reported of itself, as track().log() keeps them.

    name    "acc"
    times   their times, nanoseconds since 1970
    values  as many floats
    """

    __slots__ = ("name", "times", "values")

    def __init__(self, name: str, times: list[int], values: list[float]) -> None:
        self.name = name
        self.times = times
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        last = f", the last {self.values[-1]:g}" if self.values else ""
        return f"<Metric {self.name}: {len(self)} values{last}>"


class Metrics:
    """The metrics of a recording, by name."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._by_name = {metric.name: metric for metric in metrics}

    def __getitem__(self, name: str) -> Metric:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        from wattmeter._results.listing import listed

        return listed(map(repr, self._by_name.values()), len(self))

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas.DataFrame with a column for each and the time (UTC) as its index; NaN
        where another one has a value alone. ImportError without pandas."""
        from wattmeter._results.frames import needed

        module = needed("pandas")
        columns = {}
        for name, metric in self._by_name.items():
            times = module.to_datetime(metric.times, unit="ns", utc=True)
            column = module.Series(metric.values, index=times)
            columns[name] = column[~column.index.duplicated(keep="last")]
        frame: pandas.DataFrame = module.DataFrame(columns)
        frame.index.name = "time"
        return frame


def _offset_ns(offset: float | str) -> int | None:
    if offset == "auto":
        return None
    if isinstance(offset, str):
        raise ValueError(f"meter_offset: {offset!r} is neither 'auto' nor seconds")
    return round(offset * 1e9)


class Recording:
    """A run of a recording: columns by name, and what was computed of it.

    run_count  how many runs the recording has
    """

    def __init__(
        self,
        path: Path,
        run: int | None = None,
        meter: Path | None = None,
        meter_offset: float | str = 0,
    ) -> None:
        self._path = path
        self._run = run
        self._report: Report | None = None
        core = _core.Recording(path, run)
        self.run_count = core.run_count
        if meter is not None:
            core.join_meter(meter, _offset_ns(meter_offset))
        channels = core.channels
        times, values, states = core.columns()
        self._times = times
        self._metrics = core.metrics()
        self._columns: dict[str, Column] = {}
        self._in_files: dict[str, Column] = {}
        for channel, numbers, codes in zip(channels, values, states):
            name = self._free_name(f"{channel.label}_{channel.metric}")
            self._columns[name] = Column(name, channel, numbers, codes)
            self._in_files[f"{name}_{channel.unit}"] = self._columns[name]

    def _free_name(self, name: str) -> str:
        number, free = 1, name
        while free in self._columns:
            number += 1
            free = f"{name}_{number}"
        return free

    @property
    def report(self) -> Report:
        """The Report of the run."""
        if self._report is None:
            self._report = Report(_core.Report.from_recording(self._path, self._run))
        return self._report

    @property
    def regions(self) -> Parts[Region]:
        """Its regions, as the report has them."""
        return self.report.regions

    @property
    def metrics(self) -> Metrics:
        """What the program reported of itself: track().log(), or its file of metrics."""
        shift = self._unix_ns_at_zero if self._metrics else 0
        return Metrics(
            Metric(name, [time + shift for time in times], values)
            for name, times, values in self._metrics
        )

    @property
    def _unix_ns_at_zero(self) -> int:
        """Of the measured machine's clock."""
        return self.report.info["start_unix_ns"] - int(self._times[0])

    def _shifted(self, code: str, change: Callable[[int], float]) -> memoryview:
        from array import array

        return memoryview(array(code, map(change, self._times)))

    @property
    def times(self) -> memoryview:
        """A memoryview of int64, an item per sample: nanoseconds since 1970."""
        if not self._times:
            return self._times
        shift = self._unix_ns_at_zero
        return self._shifted("q", lambda time: time + shift)

    @property
    def seconds(self) -> memoryview:
        """A memoryview of float64, an item per sample: seconds since the first one."""
        first = self._times[0] if self._times else 0
        return self._shifted("d", lambda time: (time - first) / 1e9)

    @property
    def columns(self) -> dict[str, Column]:
        """All of them by name."""
        from wattmeter._results.listing import Named

        return Named(self._columns)

    def keys(self) -> KeysView[str]:
        """The names of the columns."""
        return self._columns.keys()

    def __getitem__(self, name: str) -> Column:
        """"gpu0_power", or as files have it, "gpu0_power_W"."""
        column = self._columns.get(name, self._in_files.get(name))
        if column is None:
            raise KeyError(f"there is no column {name!r}; there are: {', '.join(self)}")
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns or name in self._in_files

    def __len__(self) -> int:
        """How many samples there are."""
        return len(self._times)

    def __fspath__(self) -> str:
        return os.fspath(self._path)

    def __repr__(self) -> str:
        number = self.run_count - 1 if self._run is None else self._run
        run = f", run {number} of 0 to {self.run_count - 1}" if self.run_count > 1 else ""
        samples = f"{len(self)} samples of {len(self._columns)} columns"
        return f"<Recording {self._path}{run}: {samples}>"

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas.DataFrame, with the time (UTC) as its index and units in
        `frame.attrs["units"]`; what is missing is NaN. ImportError without pandas."""
        from wattmeter._results.frames import needed

        module = needed("pandas")
        import numpy

        data = {c.name: numpy.asarray(c.values) for c in self._columns.values()}
        times = module.to_datetime(numpy.asarray(self.times), unit="ns", utc=True)
        frame: pandas.DataFrame = module.DataFrame(
            data, index=module.Index(times, name="time")
        )
        frame.attrs["units"] = {c.name: c.unit for c in self._columns.values()}
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A polars.DataFrame with a column "time" (UTC); what is missing is null.
        ImportError without polars."""
        from wattmeter._results.frames import needed

        module = needed("polars")
        times = module.Series("time", list(self.times), dtype=module.Int64)
        data = [times.cast(module.Datetime("ns", "UTC"))]
        for column in self._columns.values():
            values = module.Series(
                column.name, list(column.values), dtype=module.Float64
            )
            data.append(values.fill_nan(None))
        frame: polars.DataFrame = module.DataFrame(data)
        return frame

    def export(self, path: Path, mode: str = "new") -> None:
        """Writes the run in the format that the suffix names: .sqlite, .csv, .json,
        .aipm; or to postgresql://...

        mode: "new" leaves a file that is there alone (Error "EEXIST"), "overwrite",
        "append" (SQLite only). ValueError for a suffix that names no format.
        """
        _core.Recording(self._path, self._run).export(path, mode)

    def export_sub_tracking(self, path: Path, mode: str = "new") -> int:
        """Writes its regions as gpu_tracker's sub-tracking file (.csv, .sqlite); how many
        calls without an end are not in it. Error "ENODEV": there are no regions."""
        return _core.Recording(self._path, self._run).export_sub_tracking(path, mode)


def _read_one(
    path: Path, run: int | None, meter: Path | None, meter_offset: float | str
) -> Recording:
    try:
        return Recording(path, run, meter, meter_offset)
    except _core.Error as error:
        from wattmeter._results.saved import is_saved

        if error.status != "EFORMAT" or not is_saved(path):
            raise
    raise ValueError(f"{path}: a saved report: wattmeter.Report.load() reads it")


if TYPE_CHECKING:

    @overload
    def read(
        path: Path,
        run: int | None = None,
        *,
        meter: Path | None = None,
        meter_offset: float | str = 0,
    ) -> Recording: ...

    @overload
    def read(path: list[Path] | tuple[Path, ...]) -> Ranks: ...


def read(
    path: Path | list[Path] | tuple[Path, ...],
    run: int | None = None,
    *,
    meter: Path | None = None,
    meter_offset: float | str = 0,
) -> Any:
    """A recording of any format, or the database postgresql://..., with all its samples; or a
    list of the recordings of a job's ranks.

    run     its number, from 0; None: the newest
    meter   the CSV file of an external power meter, whose columns are added
    meter_offset    seconds to add to its times; "auto": what makes its power follow the
                    machine's

    A list of paths gives Ranks, in which the energy of a node is counted once.

    Raises Error with the status "ENOENT" (no such file), "EFORMAT" (no recording), ...;
    ValueError where there is no such run.
    """
    if not isinstance(path, (list, tuple)):
        return _read_one(path, run, meter, meter_offset)
    if run is not None or meter is not None:
        raise ValueError("run= and meter= are for one recording, not for a list")
    from wattmeter._results.ranks import Ranks

    return Ranks(path)
