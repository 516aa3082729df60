# SPDX-License-Identifier: Apache-2.0
"""Blocks of code as gpu_tracker has them: `SubTracker` and `sub_track` write when each
call began and ended, `SubTrackingAnalyzer` puts that together with a tracking file, and
`TrackingComparison` compares the results of several sessions.

Tables and series are pandas objects where it is installed: a `DataFrame` with a row per
measurement, and a `Series`. Otherwise they are dictionaries: of rows, which are
dictionaries, and of values. What is not known is NaN in the former and None in the
latter.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
import json
import logging
import os
import sys
import threading
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, TypeVar

from wattmeter import _core

from . import _files, _pickles

_Function = TypeVar("_Function", bound=Callable[..., Any])

_TIMESTAMP = "timestamp"


class _Files:
    """The sub-tracking files that this process writes, by their names. The first one to
    write decides, with its `overwrite`, what becomes of a file that is there; all others
    add to it, forked children included."""

    _MOST_OPEN = 16

    def __init__(self) -> None:
        self._files: dict[str, Optional[_core.RegionFile]] = {}
        self._make_lock()
        os.register_at_fork(after_in_child=self._make_lock)

    def _make_lock(self) -> None:
        self._lock = threading.Lock()

    def write(self, path: str, overwrite: bool, name: str, is_stop: bool) -> None:
        """`path` is absolute, as the working directory may change."""
        file = self._files.get(path)
        if file is not None and not os.path.isfile(path):
            raise FileNotFoundError(
                f"The file {path} was removed in the middle of writing data to it."
            )
        try:
            (file or self._open(path, overwrite)).write(name, is_stop)
        except FileExistsError:
            raise FileExistsError(
                f"File {path} already exists. Set overwrite to True to overwrite the "
                "existing file."
            ) from None
        except _core.Error as error:
            raise _files.builtin_error(error) from None

    def _open(self, path: str, overwrite: bool) -> _core.RegionFile:
        with self._lock:
            mode = "overwrite" if overwrite else "new"
            if path in self._files:
                mode = "append"
            self._files[path] = file = _core.RegionFile(path, mode)
            is_open = [path for path, file in self._files.items() if file]
            if len(is_open) > self._MOST_OPEN:
                self._files[is_open[0]] = None  # closed once nobody writes to it
            return file


_written = _Files()


class SubTracker:
    """Writes the begin and the end of its `with` block to a sub-tracking file, also
    where an exception ends it. The row is there when the block goes on.

    Blocks may nest, recur and run in several threads, and several processes may write
    to one file.

    :ivar code_block_name: what the block is called
    :ivar sub_tracking_file: the path of the file
    :ivar process_id: the process that made it
    """

    def __init__(
        self,
        code_block_name: Optional[str] = None,
        code_block_attribute: Optional[str] = None,
        sub_tracking_file: Optional[_files.Path] = None,
        overwrite: bool = False,
    ) -> None:
        """
        :param code_block_name: None is "FILE:ATTRIBUTE", with the path of the caller's
            source file relative to the working directory
        :param code_block_attribute: what stands behind the colon then; None is the
            line
        :param sub_tracking_file: ends in .csv or .sqlite; None is the process ID and
            ".csv" in the working directory
        :param overwrite: whether the file may be replaced where it was there before
            this process wrote to it
        :raises ValueError: the file ends in something else
        :raises FileExistsError: in the `with` statement: the file exists
        """
        if code_block_name is None:
            frame = sys._getframe(1)
            if code_block_attribute is None:
                code_block_attribute = str(frame.f_lineno)
            code_block_name = _name_in(frame.f_code.co_filename, code_block_attribute)
        self.code_block_name = code_block_name
        self.process_id = os.getpid()
        if sub_tracking_file is None:
            sub_tracking_file = f"{self.process_id}.csv"
        _files.check_name(sub_tracking_file)
        self.sub_tracking_file = sub_tracking_file
        self._path = os.path.abspath(sub_tracking_file)
        self._overwrite = overwrite

    def __enter__(self) -> SubTracker:
        self._write(False)
        return self

    def __exit__(self, *_: object) -> None:
        self._write(True)

    def _write(self, is_stop: bool) -> None:
        _written.write(self._path, self._overwrite, self.code_block_name, is_stop)


def _name_in(path: str, attribute: str) -> str:
    return f"{os.path.relpath(path)}:{attribute}"


def sub_track(
    code_block_name: Optional[str] = None,
    code_block_attribute: Optional[str] = None,
    sub_tracking_file: Optional[_files.Path] = None,
    overwrite: bool = False,
) -> Callable[[_Function], _Function]:
    """A decorator: each call of the function is in a `SubTracker`.

    The call of an `async` function counts until what it awaits is done. (The original
    ends it when the coroutine is made.)

    :param code_block_name: None is "FILE:ATTRIBUTE", with the path of the source file
        relative to the working directory, as gpu_tracker's documents have it (its
        program takes the absolute path, so that no two machines' results match)
    :param code_block_attribute: what stands behind the colon then; None is the name of
        the function
    :param sub_tracking_file: as of `SubTracker`
    :param overwrite: as of `SubTracker`
    """

    def decorate(function: _Function) -> _Function:
        name = code_block_name
        if name is None:
            path = sys._getframe(1).f_code.co_filename
            name = _name_in(path, code_block_attribute or function.__name__)

        def block() -> SubTracker:
            return SubTracker(name, None, sub_tracking_file, overwrite)

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            with block():
                return function(*args, **keywords)

        @functools.wraps(function)
        async def call_async(*args: Any, **keywords: Any) -> Any:
            with block():
                return await function(*args, **keywords)

        is_async = inspect.iscoroutinefunction(function)
        return call_async if is_async else call  # type: ignore[return-value]

    return decorate


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        return None


def _table(rows: Mapping[str, Mapping[str, Any]]) -> Any:
    pandas = _pandas()
    if not pandas or not isinstance(rows, dict):
        return rows
    return pandas.DataFrame.from_dict(rows, orient="index", dtype=float)


def _series(values: Mapping[str, Any], **traits: Any) -> Any:
    pandas = _pandas()
    if not pandas or not isinstance(values, dict):
        return values
    return pandas.Series(values, **(traits or {"dtype": float}))


def _plain(value: Any) -> Any:
    """Without pandas, NumPy and NaN."""
    if hasattr(value, "columns"):
        value = value.to_dict("index")
    elif hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if value != value else value


@dataclasses.dataclass
class CodeBlockResults:
    """What the calls of one block came to.

    :param name: of the block
    :param num_timepoints: samples inside its calls; one inside several counts once
    :param num_calls: calls that ended
    :param num_non_empty_calls: those with at least one sample inside
    :param compute_time: series: min, max, mean, std (n - 1) and total of the calls'
        times, in seconds
    :param resource_usage: table: min, max, mean, std (n - 1) of each measurement over
        the samples inside
    """

    name: str
    num_timepoints: int
    num_calls: int
    num_non_empty_calls: int
    compute_time: Any
    resource_usage: Any

    def __post_init__(self) -> None:
        self.compute_time = _series(self.compute_time)
        self.resource_usage = _table(self.resource_usage)

    def __getstate__(self) -> dict[str, Any]:
        return {name: _plain(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()


@dataclasses.dataclass
class SubTrackingResults:
    """What a session came to, overall and block by block.

    The standard deviations are the sample's (n - 1), as gpu_tracker's documents
    print them; its program 5.0.1 divides by n. Pickles hold no pandas objects, so they
    are read with any version of it, and without.

    :param overall: table: min, max, mean, std of each measurement over all samples
    :param static_data: series: units, capacities and counts
    :param code_block_results: a list of `CodeBlockResults`, in the order of the names
    """

    overall: Any
    static_data: Any
    code_block_results: list[CodeBlockResults]

    def __post_init__(self) -> None:
        self.overall = _table(self.overall)
        self.static_data = _series(self.static_data, name=0, dtype=object)

    def to_json(self) -> dict[str, Any]:
        """As dictionaries and lists. What is not known is None, where the original has
        NaN, which is no JSON."""
        return {
            "overall": _plain(self.overall),
            "static_data": _plain(self.static_data),
            "code_block_results": [_plain(vars(b)) for b in self.code_block_results],
        }

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> SubTrackingResults:
        """From what `to_json()` gives."""
        return cls(
            tree["overall"],
            tree["static_data"],
            [CodeBlockResults(**block) for block in tree["code_block_results"]],
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.to_json(), "code_block_results": self.code_block_results}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def __str__(self) -> str:
        with _file_of(self) as path:
            return _core.analyze(path, (), "gpu-tracker-api")[0]


@contextlib.contextmanager
def _file_of(results: SubTrackingResults) -> Iterator[str]:
    """A path at which the library finds them; there is no such file on any disk."""
    with open(os.memfd_create("results"), "w", encoding="utf-8") as file:
        json.dump(results.to_json(), file)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


class SubTrackingAnalyzer:
    """What a session did inside each block of code: a tracking file of `Tracker`, or a
    recording, and the calls in a sub-tracking file.

    Calls are paired process by process as they nest or follow each other. Stops that
    nothing had started, and calls that never stopped, are left out with a warning; the
    original fails at the former and pairs recursive calls wrongly.
    """

    def __init__(
        self, tracking_file: Optional[_files.Path], sub_tracking_file: _files.Path
    ) -> None:
        """
        :param tracking_file: its path; None where files are to be combined only
        :param sub_tracking_file: its path, or the path of the combined file to be
        :raises ValueError: a file ends neither in .csv nor in .sqlite
        """
        if tracking_file is not None:
            _files.check_name(tracking_file)
        _files.check_name(sub_tracking_file)
        self._tracking_file = tracking_file
        self._sub_tracking_file = sub_tracking_file

    def _analyze(
        self, *sub_tracking_files: _files.Path
    ) -> tuple[dict[str, Any], list[str], tuple[int, int]]:
        if self._tracking_file is None:
            raise ValueError("there is no tracking file to analyze")
        with _files.errors():
            text, remarks, unpaired = _core.analyze(
                self._tracking_file, sub_tracking_files, "gpu-tracker-json"
            )
            return json.loads(text), remarks, unpaired

    def sub_tracking_results(self) -> SubTrackingResults:
        """All that is to be known of the session and its blocks.

        :raises FileNotFoundError: a file is not there
        :raises ValueError: a file is not what it should be
        """
        tree, remarks, (stray, unfinished) = self._analyze(self._sub_tracking_file)
        for remark in remarks:
            logging.warning(remark)
        for count, what in (
            (stray, "stops that nothing had started"),
            (unfinished, "calls that never stopped"),
        ):
            if count:
                logging.warning(
                    "%s: left out: %s: %d", self._sub_tracking_file, what, count
                )
        return SubTrackingResults.from_json(tree)

    def read_static_data(self) -> Any:
        """Series: units, capacities and counts of the session."""
        return SubTrackingResults.from_json(self._analyze()[0]).static_data

    def overall_timepoint_results(self) -> Any:
        """Table: min, max, mean, std of each measurement over all samples."""
        return SubTrackingResults.from_json(self._analyze()[0]).overall

    def combine_sub_tracking_files(self, files: Iterable[str]) -> None:
        """Joins sub-tracking files into the one that the constructor was given.

        :param files: their paths, in the order of their rows in the new file. All end
            as the new one does. A folder stands for such files in it.
        :raises ValueError: the new file exists, or one of the others is none of these
        :raises FileNotFoundError: one of them is not there
        """
        target = self._sub_tracking_file
        files = list(files)
        extension = os.path.splitext(target)[1]
        if os.path.exists(target):
            raise ValueError(
                f"Cannot create sub-tracking file {target}. File already exists."
            )
        for file in files:
            if not file.endswith(extension) and not os.path.isdir(file):
                raise ValueError(
                    f"File {file} does not end with the same extension as {target}. "
                    f'Must end in "{extension}".'
                )
        with _files.errors():
            for remark in _core.combine_sub_tracking(files, target):
                logging.warning(remark)

    def load_code_block_names(self) -> list[str]:
        """The names of the blocks in the sub-tracking file, sorted."""
        return sorted({row["code_block_name"] for row in self._calls()})

    def load_timestamp_pairs(self, code_block_name: str) -> list[tuple[float, float]]:
        """When each call of a block began and ended, in seconds since 1970."""
        rows = [r for r in self._calls() if r["code_block_name"] == code_block_name]
        rows.sort(key=lambda row: (row["process_id"], row[_TIMESTAMP]))
        pairs = []
        open_calls: dict[int, list[float]] = {}
        for row in rows:
            starts = open_calls.setdefault(row["process_id"], [])
            if not row["position"]:
                starts.append(row[_TIMESTAMP])
            elif starts:
                pairs.append((starts.pop(), row[_TIMESTAMP]))
        return pairs

    def load_timepoints(self, timestamp_pairs: Iterable[tuple[float, float]]) -> Any:
        """The samples inside any of these spans: a table with a row for each, or a list
        of dictionaries."""
        pairs = list(timestamp_pairs)
        timepoints = [
            row
            for row in _rows(self._tracking_file, skipped=2)
            if any(start <= row[_TIMESTAMP] <= stop for start, stop in pairs)
        ]
        pandas = _pandas()
        return pandas.DataFrame(timepoints) if pandas else timepoints

    def _calls(self) -> list[dict[str, Any]]:
        return list(_rows(self._sub_tracking_file))


def _number(column: str, text: str) -> Any:
    if column == "code_block_name":
        return text
    return json.loads(text) if text else None


def _rows(
    path: Optional[_files.Path], skipped: int = 0
) -> Iterator[dict[str, Any]]:
    """Of a CSV file without its first lines, or of the table "data"; with numbers."""
    if path is None or not os.path.exists(path):
        raise FileNotFoundError(f"{path}: No such file or directory")
    if os.fspath(path).endswith(".csv"):
        import csv

        with open(path, newline="", encoding="utf-8") as file:
            for _ in range(skipped):
                next(file, None)
            for row in csv.DictReader(file):
                yield {name: _number(name, text) for name, text in row.items()}
        return
    import sqlite3

    with contextlib.closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        yield from map(dict, database.execute("SELECT * FROM data"))


@dataclasses.dataclass
class ComparisonResults:
    """Sessions side by side. Each series has a value per session, ascending; what is
    not known comes last.

    :param overall_resource_usage: a series per measurement, of all samples
    :param code_block_resource_usage: per measurement a series per block
    :param code_block_compute_time: a series per block, in seconds
    """

    overall_resource_usage: dict[str, Any]
    code_block_resource_usage: dict[str, dict[str, Any]]
    code_block_compute_time: dict[str, Any]

    def __post_init__(self) -> None:
        self.overall_resource_usage = _all_series(self.overall_resource_usage)
        self.code_block_resource_usage = {
            name: _all_series(blocks)
            for name, blocks in self.code_block_resource_usage.items()
        }
        self.code_block_compute_time = _all_series(self.code_block_compute_time)

    def to_json(self) -> dict[str, Any]:
        """As dictionaries. What is not known is None."""
        return {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)
        }

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), **self.to_json()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def __str__(self) -> str:
        return getattr(self, "_text", "") or json.dumps(self.to_json(), indent=1)


def _all_series(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _series(series) for name, series in values.items()}


class TrackingComparison:
    """Compares sessions by what `SubTrackingAnalyzer` made of them, overall and block
    by block. Blocks belong together by their names, or, with a warning, where these
    differ by the line number behind their last colon alone.

    Memory is converted to the units of the first session (the original compares
    gigabytes with bytes).

    :ivar results_map: the `SubTrackingResults` of each session by its name
    """

    def __init__(self, file_path_map: Mapping[str, str]) -> None:
        """
        :param file_path_map: by the name of each session a file with its results: a
            pickle of `SubTrackingResults`, also one that the original wrote (which is
            read without running what it may hold), their JSON, or a recording or
            tracking file
        :raises FileNotFoundError: a file is not there
        :raises pickle.UnpicklingError: a pickle holds something else
        :raises ValueError: a file is none of these, or the blocks do not match
        """
        if not file_path_map:
            raise ValueError("there is no tracking session to compare")
        self.results_map = {
            name: _load_results(path) for name, path in file_path_map.items()
        }
        for remark in self._run("mean", "gpu-tracker-json").remarks:
            logging.warning(remark)

    def _run(self, statistic: str, format: str) -> _core.Comparison:
        names = sorted(self.results_map)
        with _files.errors(), contextlib.ExitStack() as files:
            paths = [files.enter_context(_file_of(self.results_map[n])) for n in names]
            return _core.compare(names, paths, statistic, format, 0.01, ())

    def printed(self, statistic: str, format: str) -> str:
        """In gpu_tracker's layouts: "gpu-tracker-api", "gpu-tracker-json", or
        "gpu-tracker", the text as the documents of its command have it."""
        return self._run(statistic, format).text

    def compare(self, statistic: str = "mean") -> ComparisonResults:
        """The sessions side by side.

        :param statistic: of each measurement: min, max, mean or std
        :raises ValueError: it is none of these
        """
        tree = json.loads(self.printed(statistic, "gpu-tracker-json"))
        results = ComparisonResults(**tree)
        vars(results)["_text"] = self.printed(statistic, "gpu-tracker-api")
        return results


def _load_results(path: str) -> SubTrackingResults:
    if _pickles.is_pickle(path):
        return _pickles.load(path)
    with _files.errors():
        text = _core.analyze(path, (), "gpu-tracker-json")[0]
    return SubTrackingResults.from_json(json.loads(text))
