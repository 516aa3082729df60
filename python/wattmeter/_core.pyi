# SPDX-License-Identifier: Apache-2.0
# The extension: what libwattmeter offers. Its docstrings say what each does.
from os import PathLike
from types import TracebackType
from typing import (
    Any,
    Callable,
    Coroutine,
    Dict,
    Iterable,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
    final,
    overload,
)

from wattmeter._results.report import Info

_Path = Union[str, bytes, PathLike[str], PathLike[bytes]]
_F = TypeVar("_F", bound=Callable[..., Any])

version: str

def axis_of_time(oldest: float, newest: float, /) -> Tuple[float, float]: ...
def axis_of_values(least: float, greatest: float, /) -> Tuple[float, float]: ...

def figure_text(
    value: Optional[float],
    unit: str,
    low: Optional[float],
    high: Optional[float],
    state: str,
    origin: str,
    why: Optional[str],
    /,
) -> str: ...

_PlotInput = Tuple[Optional[str], _Path, Optional[int]]

def plot(
    inputs: Sequence[_PlotInput],
    channels: Optional[Iterable[str]],
    options: Dict[str, Any],
    /,
) -> bytes: ...
def film(
    inputs: Sequence[_PlotInput],
    path: _Path,
    channels: Optional[Iterable[str]],
    options: Dict[str, Any],
    progress: Optional[Callable[[int, int], object]],
    /,
) -> None: ...

def failure(status: str, text: str, /) -> Error: ...

class Error(Exception):
    status: str

class NotFoundError(Error, FileNotFoundError): ...
class ExistsError(Error, FileExistsError): ...
class AccessError(Error, PermissionError): ...

class Figure(NamedTuple):
    key: str
    path: Optional[str]
    value: Optional[float]
    unit: str
    low: Optional[float]
    high: Optional[float]
    state: str
    origin: str
    why: Optional[str]

class Tracker:
    def __new__(
        cls,
        *,
        interval: float = 0.1,
        gpus: Optional[str] = None,
        channels: Optional[str] = None,
        cores: float = 0.0,
        baseline: float = 0.0,
        cpu_watts: Optional[str] = None,
        visible_to: int = 0,
        wait_all: bool = False,
        baseline_anyway: bool = False,
        silent: bool = False,
        wait_for_drivers: bool = False,
    ) -> Tracker: ...
    @staticmethod
    def as_gpu_tracker(
        sleep_time: str,
        cores: float,
        gpus: Optional[str],
        brand: Optional[str],
        ram_unit: str,
        gpu_ram_unit: str,
        time_unit: str,
        tracking_file: Optional[_Path],
        overwrite: bool,
        /,
    ) -> Tuple[Tracker, str]: ...
    def add(self, source: str, /) -> None: ...
    def add_all(self) -> None: ...
    def note(self, key: str, value: str, /) -> None: ...
    def record(self, target: _Path, mode: str = "new") -> None: ...
    def experiment(
        self,
        target: _Path,
        name: str,
        description: Optional[str] = None,
        model_card: Optional[_Path] = None,
    ) -> None: ...
    def metrics(self, path: _Path, /) -> None: ...
    def log(self, name: str, value: float, when_ns: int = 0, /) -> None: ...
    def start_self(self) -> None: ...
    def start_pid(self, pid: int, /, *more: int) -> None: ...
    def start_command(
        self,
        argv: Iterable[_Path],
        folder: Optional[_Path] = None,
        environment: Optional[Iterable[Union[str, bytes]]] = None,
        /,
    ) -> None: ...
    def run_thread(self) -> None: ...
    def poll(self, timeout: Optional[float] = None) -> bool: ...
    def signal(self, number: int, /) -> None: ...
    def stop(self) -> None: ...
    def report(self) -> Report: ...
    def samples(
        self,
    ) -> Tuple[memoryview, List[memoryview], List[memoryview]]: ...
    @property
    def channels(self) -> List[Channel]: ...
    @property
    def pid(self) -> int: ...
    @property
    def exit_code(self) -> Optional[int]: ...
    @property
    def regions(self) -> Optional[str]: ...
    @property
    def state(self) -> str: ...

@final
class Report:
    @staticmethod
    def from_recording(path: _Path, run: Optional[int] = None) -> Report: ...
    def print(
        self,
        format: str = "text",
        *,
        verbosity: int = 0,
        for_terminal: bool = False,
        ram_unit: Optional[str] = None,
        gpu_ram_unit: Optional[str] = None,
        time_unit: Optional[str] = None,
        price_per_kwh: float = 0.0,
        currency: Optional[str] = None,
        carbon_g_per_kwh: float = 0.0,
        pue: float = 0.0,
    ) -> str: ...
    def figure(
        self, key: str, kind: str = "run", index: int = 0, share: str = "inclusive"
    ) -> Figure: ...
    def figures(
        self, kind: str = "run", index: int = 0, share: str = "inclusive"
    ) -> List[Figure]: ...
    def count(self, kind: str, /) -> int: ...
    def find(self, kind: str, name: str, /) -> int: ...
    def run(self) -> Info: ...
    def region(self, kind: str, index: int, /) -> Dict[str, Any]: ...
    def device(self, kind: str, index: int, /) -> Dict[str, Any]: ...
    def processes(self) -> List[Dict[str, Any]]: ...
    def write_codecarbon(
        self,
        path: _Path,
        mode: str = "new",
        *,
        verbosity: int = 0,
        for_terminal: bool = False,
        ram_unit: Optional[str] = None,
        gpu_ram_unit: Optional[str] = None,
        time_unit: Optional[str] = None,
        price_per_kwh: float = 0.0,
        currency: Optional[str] = None,
        carbon_g_per_kwh: float = 0.0,
        pue: float = 0.0,
    ) -> None: ...
    @property
    def words(self) -> List[str]: ...
    @property
    def remarks(self) -> List[str]: ...
    @property
    def notes(self) -> Dict[str, str]: ...
    @property
    def variables(self) -> Dict[str, str]: ...
    @property
    def sources(self) -> Dict[str, Tuple[bool, Optional[str]]]: ...

@final
class region:
    @overload
    def __new__(cls, name: str) -> region: ...
    @overload
    def __new__(cls, function: _F, /) -> _F: ...  # type: ignore[misc]
    def __enter__(self) -> region: ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
        /,
    ) -> None: ...
    def __aenter__(self) -> Coroutine[Any, Any, region]: ...
    def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
        /,
    ) -> Coroutine[Any, Any, None]: ...
    def __call__(self, function: _F) -> _F: ...
    @property
    def name(self) -> str: ...

@final
class region_function:
    def __new__(
        cls,
        region: Optional[region],
        function: Callable[..., Any],
        regions: Dict[Any, region] = ...,
        is_training: Callable[[], bool] = ...,
        train: Callable[..., Any] = ...,
        /,
    ) -> region_function: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def region_begin(name: str, /) -> None: ...
def region_end() -> None: ...
def region_start(name: str, /) -> int: ...
def region_stop(number: int, /) -> None: ...
def region_is_on() -> bool: ...
def region_enter(region: region, /) -> None: ...
def region_leave(region: region, /) -> None: ...

@final
class region_call: ...

def region_open(region: region, /) -> region_call: ...
def region_open_apart(region: region, /) -> region_call: ...
def region_close(call: region_call, /) -> None: ...

CO_GENERATOR: int
CO_COROUTINE: int
CO_ASYNC_GENERATOR: int

class RegionFile:
    def __new__(cls, path: _Path, mode: str = "new") -> RegionFile: ...
    def write(
        self, name: str, is_stop: bool, unix_seconds: Optional[float] = None
    ) -> None: ...
    def close(self) -> None: ...

class Energy(NamedTuple):
    joules: Optional[float]
    uncertainty: Optional[float]
    method: str
    origin: Optional[str]
    is_short: bool
    state: str
    why: Optional[str]
    low: Optional[float]
    high: Optional[float]

class MeterReading(NamedTuple):
    elapsed: float
    cpu: Energy
    dram: Energy
    gpu: Energy
    devices: List[Energy]

class MeterDevice(NamedTuple):
    label: str
    device: str
    model: Optional[str]
    source: str
    kind: str
    origin: str

class Meter:
    def __new__(
        cls,
        *,
        gpus: Optional[str] = None,
        estimate: bool = False,
        cpu_watts: Optional[str] = None,
        interval: float = 0.0,
        snippets: Optional[_Path] = None,
        mode: str = "new",
        seed_format: bool = False,
    ) -> Meter: ...
    def start(self, name: Optional[str] = None, /) -> int: ...
    def stop(self, number: int, /) -> MeterReading: ...
    def run(self, path: _Path, interval: float) -> None: ...
    def halt(self) -> None: ...
    def close(self) -> int: ...
    @property
    def devices(self) -> List[MeterDevice]: ...
    @property
    def remark(self) -> Optional[str]: ...

class GpuValue(NamedTuple):
    value: Union[str, int, float, bool, None]
    state: str
    why: Optional[str]  # None where there is a value
    code: int  # the driver's number of the failure; -1: it did not answer; 0: none

class GpuField(NamedTuple):
    name: str
    group: str
    key: str
    label: str
    unit: str
    summary: str
    type: str
    asked_with: str
    fixed: bool

class GpuLooked(NamedTuple):
    source: str
    present: int
    status: str
    detail: str
    code: int

class Gpus:
    def __new__(cls, words: Optional[str] = None) -> Gpus: ...
    def refresh(self, groups: Optional[Iterable[str]] = None) -> bool: ...
    def get(self, gpu: int, name: str, /) -> GpuValue: ...
    def values(self, gpu: int, /) -> Dict[str, GpuValue]: ...
    def processes(self, gpu: int, /) -> Tuple[List[Dict[str, GpuValue]], GpuValue]: ...
    def migs(self, gpu: int, /) -> List[Dict[str, GpuValue]]: ...
    def select(
        self, words: Optional[str], environment: Optional[Iterable[str]] = None
    ) -> Tuple[List[int], Optional[str]]: ...
    def print(self, format: str = "text", /) -> str: ...
    @staticmethod
    def fields(kind: str = "gpu", /) -> List[GpuField]: ...
    @property
    def count(self) -> int: ...
    @property
    def present(self) -> int: ...
    @property
    def looked(self) -> List[GpuLooked]: ...

class Channel(NamedTuple):
    source: str
    device: str
    label: str
    model: Optional[str]
    metric: str
    unit: str
    device_kind: str
    kind: str
    origin: str
    period: Optional[float]
    sensor: Optional[str]

class SourceReading(NamedTuple):
    value: Optional[float]
    state: str
    why: Optional[str]
    when_ns: int

class Source:
    def __new__(cls, name: str, gpus: Optional[str] = None) -> Source: ...
    def read(self) -> List[SourceReading]: ...
    @property
    def channels(self) -> List[Channel]: ...
    @property
    def detail(self) -> Optional[str]: ...

class Recording:
    def __new__(cls, path: _Path, run: Optional[int] = None) -> Recording: ...
    def columns(self) -> Tuple[memoryview, List[memoryview], List[memoryview]]: ...
    def metrics(self) -> List[Tuple[str, List[int], List[float]]]: ...
    def join_meter(
        self, path: _Path, offset_ns: int | None = 0, /
    ) -> None: ...
    def export(self, path: _Path, mode: str = "new") -> None: ...
    def export_sub_tracking(self, path: _Path, mode: str = "new") -> int: ...
    @property
    def channels(self) -> List[Channel]: ...
    @property
    def run_count(self) -> int: ...

def analyze(
    tracking: _Path, sub_tracking: Iterable[_Path], format: str, /
) -> Tuple[str, List[str], Tuple[int, int]]: ...

class Comparison(NamedTuple):
    text: str
    json: str
    worst: float
    worst_figure: Optional[str]
    untested: Optional[str]
    remarks: List[str]

def compare(
    names: Iterable[str],
    paths: Iterable[_Path],
    statistic: str,
    format: str,
    threshold: float,
    watched: Iterable[str],
    /,
) -> Comparison: ...
def repeat_json(name: str, reports: Sequence[Report], /) -> str: ...
def repeat_order(seed: int, commands: int, turn: int, /) -> List[int]: ...
def combine_sub_tracking(paths: Iterable[_Path], target: _Path, /) -> List[str]: ...
def print_list(path: _Path, format: str = "text", /) -> str: ...

class SeriesFigure(NamedTuple):
    value: float
    unit: str
    seconds: float
    uncertainty: Optional[float]
    is_short: bool
    missing_s: float
    unfinished: int

@final
class Series:
    def figure(
        self, kind: str = "total", from_ns: int = 0, to_ns: int = 0
    ) -> SeriesFigure: ...
    def segments(self) -> List[Tuple[memoryview, memoryview, int]]: ...

class Experiment:
    def __new__(cls, target: _Path, name: str) -> Experiment: ...
    def json(self) -> str: ...
    def series(self, metric: str, /) -> Series: ...

def doctor(duration: float, /) -> Tuple[str, str, bool]: ...

class CapSetting(NamedTuple):
    kind: str
    device: str
    name: str
    identity: str
    value: Optional[float]
    enforced: Optional[float]
    default: Optional[float]
    minimum: Optional[float]
    maximum: Optional[float]
    drawn: Optional[float]
    why: Optional[str]

@final
class Caps:
    def __new__(cls) -> Caps: ...
    def settings(self) -> List[CapSetting]: ...
    def refresh(self) -> None: ...
    def parse(self, words: str, /) -> List[Tuple[int, float]]: ...
    def set(self, index: int, value: float, /) -> None: ...
    def reset(self, index: int, /) -> None: ...
    def restore(self, index: int, /) -> str: ...
    def hold(self, index: int, value: float, /) -> None: ...
    def check(self) -> None: ...
    def end(self) -> None: ...

@final
class CapProfile:
    def __new__(
        cls,
        gpus: str,
        objective: str = "energy",
        max_slowdown: float = 0.0,
        probes: int = 0,
        window: float = 0.0,
    ) -> CapProfile: ...
    def step(self, units: int, /) -> Optional[str]: ...
    def answer(self, format: str = "json", /) -> str: ...
    def close(self) -> None: ...
