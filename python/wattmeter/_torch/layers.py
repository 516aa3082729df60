# SPDX-License-Identifier: Apache-2.0
"""Each layer of a PyTorch network is a region while it runs.

While it is measured, a module has a derived class, whose `forward` is a call into C. A hook
would put each call on PyTorch's slow path. The module gets no attribute, so that copies,
pickles and replicas of it are plain. If an instance has a `forward`, or is scripted, that is
wrapped instead.

The backward pass of a layer begins when the gradient of its output is available. It ends when
the gradient of its input is, or when the backward pass of a layer before it begins: the engine
works off the operations of a layer one after the other.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
import time
import weakref
from collections import OrderedDict

from wattmeter._core import region, region_function, region_start, region_stop
from wattmeter._results.figure import Figure, total
from wattmeter._results.report import Region, Report
from wattmeter._torch.device import Clock, Energy, Times, gpu_of
from wattmeter._torch.modules import Layer, Row, Table, layers_of, tensors, torch
from wattmeter._track import track

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from wattmeter._results.report import Path

_FUNCTION = ("__code__", "__globals__", "__closure__", "__defaults__", "__kwdefaults__")
_BACKWARD = " (backward)"

_GPU_REMARK = (
    "note: on a GPU forward, backward and own are the times in which work was handed to "
    "it, and GPU is how long it worked. Its power is taken to be constant between two "
    "samples: layers that follow each other faster share it by time, and profile() tells "
    "them apart"
)

_set_class = vars(object)["__class__"].__set__

_entries: dict[Any, _Entry] = {}  # of each module that is measured
_regions: dict[Any, region] = {}  # the same, for C
_classes: dict[Any, type] = {}  # what is derived for the time of a measurement
_sessions: list[layers] = []
_tracking: track | None = None  # that of all sessions
_starting = _started = 0.0  # time.monotonic() before and after the start of _tracking


class _Entry:
    """The regions of a layer, and what its module had before."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.forward = region(name)
        self.backward = region(name + _BACKWARD)
        self.attributes: dict[str, Any] = {}
        self.original: type | None = (
            None  # its class, and the one that it has meanwhile
        )
        self.derived: type | None = None
        self.clock: Clock | None = None  # of the GPU that it runs on
        self.times = Times()


# What follows is done for each call of a layer, and most of it in caches that the layer's own
# work has filled with something else: each line costs thrice what it does in a loop.


class _Call:
    """A call of a layer in training, within another one; it is what has the gradient of its
    output: its backward pass begins."""

    __slots__ = ("entry", "parent", "thread", "number", "begun")

    def __init__(self, entry: _Entry, parent: _Call | None, thread: _Thread) -> None:
        self.entry = entry
        self.parent = parent
        self.thread = thread
        self.number = 0  # of a region that is not of the thread's stack
        self.begun: Any = None  # the event at the begin of its backward pass

    def __call__(self, gradient: Any) -> None:
        thread = _here.thread
        if self.thread is thread:
            _open(thread.open, self)
        else:
            _start(thread.open, self)

    def is_within(self, other: _Call) -> bool:
        call: _Call | None = self
        while call is not None and call is not other:
            call = call.parent
        return call is not None


class _Thread:
    """call     the innermost layer that runs
    output   the tensor that was marked last, weakly, and `marked` the call that gave it
    open     calls whose backward pass is under way, each within the one before"""

    __slots__ = ("call", "output", "marked", "open")

    def __init__(self) -> None:
        self.call: _Call | None = None
        self.output: Callable[[], Any] = lambda: None
        self.marked: _Call | None = None
        self.open: list[_Call] = []


class _Here(threading.local):
    def __init__(self) -> None:
        self.thread = _Thread()


_here = _Here()


class _End:
    """Has the gradient of what a call was given: its backward pass is over."""

    __slots__ = ("call",)

    def __init__(self, call: _Call) -> None:
        self.call = call

    def __call__(self, gradient: Any) -> None:
        opened = _here.thread.open
        if self.call in opened:
            _close(opened, opened.index(self.call))


def _begin_pass(opened: list[_Call]) -> None:
    """Closes what one that failed has left, and sees to it that this one is closed."""
    _close(opened, 0)
    torch.autograd.Variable._execution_engine.queue_callback(
        functools.partial(_close, opened, 0)
    )


def _is_in_pass() -> bool:
    """Whether this thread is in a backward pass; only there its end can be waited for."""
    try:
        torch.autograd.Variable._execution_engine.queue_callback(bool)
    except RuntimeError:
        return False
    return True


def _open(opened: list[_Call], call: _Call) -> None:
    """With those that it lies in, where they are not open yet."""
    if opened and opened[-1].parent is call.parent is not None:  # it follows that one
        if opened[-1] is not call:
            _close(opened, len(opened) - 1)
            _push(opened, call)
        return
    if call in opened:
        return
    outer: _Call | None = call
    missing: list[_Call] = []
    while outer is not None and outer not in opened:
        missing.append(outer)
        outer = outer.parent
    if outer is None:
        _begin_pass(opened)
    else:
        _close(opened, opened.index(outer) + 1)
    for inner in reversed(missing):
        _push(opened, inner)


def _push(opened: list[_Call], call: _Call) -> None:
    entry = call.entry
    opened.append(call)
    entry.backward.__enter__()
    if entry.clock:
        call.begun = entry.clock.now()


def _start(opened: list[_Call], call: _Call) -> None:
    """In a thread of the engine, whose pass is seen to end by another."""
    if opened:
        _close(opened, 0)
    else:
        _begin_pass(opened)
    opened.append(call)
    call.number = region_start(call.entry.backward.name)
    if call.entry.clock:
        call.begun = call.entry.clock.now()


def _close(opened: list[_Call], depth: int) -> None:
    """Down to this number. Only its thread can close a region on a stack."""
    while len(opened) > depth:
        call = opened[-1]
        if call.number:
            region_stop(call.number)
            call.number = 0
        elif opened is _here.thread.open:
            call.entry.backward.__exit__(None, None, None)
        else:
            return
        opened.pop()
        if call.entry.clock:
            _add_span(call.entry, call.begun, opened[-1] if opened else None, True)


def _add_span(entry: _Entry, begun: Any, outer: _Call | None, back: bool) -> None:
    clock = entry.clock
    if clock:
        outer_times = outer.entry.times if outer else None
        clock.add(begun, clock.now(), entry.times, outer_times, back)


def _hook(tensor: Any, function: Any) -> None:
    """As Tensor.register_hook(), whose handle to take it away with takes longer than all
    the rest."""
    if type(tensor) is not torch.Tensor:
        tensor.register_hook(function)
        return
    node, hooks = tensor.grad_fn, tensor._backward_hooks
    if hooks is None:
        hooks = tensor._backward_hooks = OrderedDict()
        node._register_hook_dict(tensor)
    hooks[function] = function


def _mark(call: _Call, last: Any, given: list[Any], output: Any) -> None:
    """Calls the call when the gradients of its outputs and inputs are available. `last` is the
    output of the layer before: its end is that one's begin. A layer that passes on the output
    of one inside it is opened by that one."""
    thread = call.thread
    marked, inner = thread.output(), thread.marked
    for tensor in tensors(output):
        if tensor.is_leaf or _is_among(tensor, given):
            continue  # a leaf would keep its hooks for ever
        if tensor is not marked or inner is None or not inner.is_within(call):
            _hook(tensor, call)
            thread.output, thread.marked = weakref.ref(tensor), call
    for tensor in given:
        if tensor is not last and not tensor.is_leaf and tensor is not output:
            _hook(tensor, _End(call))


def _is_among(tensor: Any, others: list[Any]) -> bool:
    """By identity: == of tensors compares their elements."""
    for other in others:
        if other is tensor:
            return True
    return False


def _train(module: Any, function: Any, args: Any, keywords: Any) -> Any:
    """A call while gradients are recorded, or on a GPU."""
    entry = _entries.get(module)
    if entry is None:
        return function(*args, **(keywords or {}))
    thread = _here.thread
    outer, opened, before = thread.call, thread.open, thread.output
    if opened and outer is None and not _is_in_pass():
        _close(opened, 0)  # of a pass that failed
    call = thread.call = _Call(entry, outer, thread)
    thread.open = []
    begun = entry.clock.now() if entry.clock else None
    entry.forward.__enter__()
    try:
        output = function(*args, **keywords) if keywords else function(*args)
    finally:
        if thread.open:
            _close(thread.open, 0)
        entry.forward.__exit__(None, None, None)
        thread.call, thread.open = outer, opened
        if entry.clock:
            _add_span(entry, begun, outer, False)
    given = tensors(args[1:] if args and args[0] is module else args)
    if keywords:
        given += tensors(keywords)
    _mark(call, before(), given, output)
    return output


def _train_method(function: Any, args: Any, keywords: Any) -> Any:
    return _train(args[0], function, args, keywords)


def _always() -> bool:
    return True


def _derive(cls: type, is_marked: Callable[[], bool]) -> type:
    """What a module of this class is of while it is measured; its calls are marked in
    Python where `is_marked` says so."""
    derived = _classes.get((cls, is_marked))
    if derived is not None:
        return derived
    original = cls.forward  # type: ignore[attr-defined]
    forward = region_function(None, original, _regions, is_marked, _train_method)
    functools.update_wrapper(forward, original)
    for name in _FUNCTION:
        if hasattr(original, name):
            setattr(forward, name, getattr(original, name))

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        reduced = super(derived, self).__reduce_ex__(protocol)  # type: ignore
        if not isinstance(reduced, tuple) or not reduced[1]:
            return reduced
        first = cls if reduced[1][0] is derived else reduced[1][0]
        return (reduced[0], (first, *reduced[1][1:]), *reduced[2:])

    body = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__slots__": (),
        "__class__": property(lambda self: cls, _set_class),
        "__reduce_ex__": __reduce_ex__,
        "forward": forward,
    }
    derived = type(cls)(cls.__name__, (cls,), body)
    _classes[cls, is_marked] = derived
    return derived


def _change_class(module: Any, entry: _Entry) -> None:
    try:
        entry.derived = _derive(type(module), _is_marked(entry))
    except Exception:  # its class does not like to be derived from
        _wrap_forward(module, entry)
    else:
        entry.original = type(module)
        _set_class(module, entry.derived)


def _is_marked(entry: _Entry) -> Callable[[], bool]:
    return _always if entry.clock else torch.is_grad_enabled


def _wrap_forward(module: Any, entry: _Entry) -> None:
    """The one of the module itself."""
    if "forward" in vars(module):
        entry.attributes["forward"] = vars(module)["forward"]
    original = module.forward
    wrapped = region_function(
        entry.forward,
        original,
        _regions,
        _is_marked(entry),
        functools.partial(_train, module),
    )
    with contextlib.suppress(AttributeError):
        functools.update_wrapper(wrapped, original)
    vars(wrapped)["__deepcopy__"] = functools.partial(copy.deepcopy, original)
    vars(module)["forward"] = wrapped


def _put_back(module: Any, entry: _Entry) -> None:
    if entry.derived is None:
        vars(module).pop("forward", None)
        vars(module).update(entry.attributes)
    elif type(module) is entry.derived:  # nobody has changed it since
        _set_class(module, entry.original)


class layers:
    """Measures each layer of a model, from start to stop.

        with wattmeter.torch.layers(model) as m:
            train(model)
        print(m)

    Forward and backward passes are separate; a call without gradients (torch.no_grad()) is
    inference and has no backward pass. Layers that contain others have a separate own part,
    so that all of them and the rest add up to the whole run. Nothing in the
    model changes: afterwards it is as it was, and copies that were made meanwhile are plain.

    A layer whose parameters are on a GPU has the time that it kept the GPU busy, by CUDA
    events, which nothing waits for but begin and end, and the joules of that time.

    m.table     a Table: rows by layer, sums, `to_csv`, `to_json`, `to_pandas`
    m.report    the wattmeter.Report of the run
    While it runs both are as of the last sample. The arguments are the same as of
    wattmeter.track(). Models that are measured at the same time share the run of the first.

    Raises TypeError for what is no torch.nn.Module, ValueError for a model without
    parameters, and for one that is measured already.
    """

    def __init__(self, model: Any, record: Path | None = None, **options: Any) -> None:
        self._layers = layers_of(model)
        self._name = type(model).__name__
        self._record = record
        self._options = options
        self._names: list[str] = []
        self._clocks: dict[Any, Clock] = {}
        self._energy: Energy | None = None
        self._times: dict[str, Times] = {}  # by path, of those on a GPU
        self._report: Report | None = None
        self._table: Table | None = None

    def start(self) -> layers:
        """Begins. ValueError: a layer of it is measured already."""
        global _tracking, _starting, _started
        if any(layer.module in _entries for layer in self._layers):
            raise ValueError(f"the model ({self._name}) is measured already")
        if self._report is not None:
            raise ValueError("a measurement is started once")
        if _tracking is not None and (self._record is not None or self._options):
            raise ValueError(
                "another model is measured already, whose run this one shares"
            )
        if _tracking is None:
            _starting = time.monotonic()
            _tracking = track(self._record, **self._options).start()
            _started = time.monotonic()
        self._tracking = _tracking
        _sessions.append(self)
        taken = {name for one in _sessions for name in one._names}
        prefix, number = self._name, 2
        while prefix in taken:
            prefix, number = f"{self._name} {number}", number + 1
        try:
            for layer in self._layers:
                self._begin(layer, f"{prefix}.{layer.path}" if layer.path else prefix)
        except BaseException:
            self.stop()
            raise
        return self

    def _begin(self, layer: Layer, name: str) -> None:
        self._names.append(name)
        entry = _Entry(name)
        outer = _entries.get(layer.parent.module) if layer.parent else None
        gpu = gpu_of(layer.module)
        if gpu is not None:
            if self._energy is None:
                self._energy = Energy(self._tracking, _started)
            if gpu not in self._clocks:
                self._clocks[gpu] = Clock(gpu, self._energy)
            entry.clock = self._clocks[gpu]
        elif outer is not None:
            entry.clock = outer.clock  # without parameters it runs where that does
        if entry.clock is not None:
            self._times[layer.path] = entry.times
        change = _wrap_forward if layer.is_whole else _change_class
        change(layer.module, entry)
        _entries[layer.module] = entry
        _regions[layer.module] = entry.forward

    def stop(self) -> Table:
        """Puts everything back; the result is the table. Once more it changes nothing."""
        global _tracking
        if self not in _sessions:
            return self.table
        _close(_here.thread.open, 0)
        for layer in self._layers:
            _regions.pop(layer.module, None)
            entry = _entries.pop(layer.module, None)
            if entry is not None:
                _put_back(layer.module, entry)
        for clock in self._clocks.values():
            clock.finish()
        _sessions.remove(self)
        if not _sessions:
            _tracking = None
            _classes.clear()  # what they call may be replaced before the next one
            self._tracking.stop()
        self._table = None
        self._report = _report_until(self._tracking, time.monotonic() - _starting)
        for clock in self._clocks.values():
            clock.finish_energy(self._report)
        return self.table

    def _check_start(self) -> None:
        if not self._names:
            raise ValueError("the measurement has not been started: with layers(model) as m:")

    @property
    def report(self) -> Report:
        """The Report of the run; while it runs, as of its last sample. Before the start it is
        a ValueError."""
        self._check_start()
        return self._report if self._report is not None else self._tracking.report

    @property
    def table(self) -> Table:
        """The Table; while it runs, as of the last sample. Before the start it is a
        ValueError."""
        self._check_start()
        if self._table is None or self._report is None:
            self._table = _make_table(
                self._layers, self._names, self.report, self._times, self._energy
            )
        return self._table

    def __enter__(self) -> layers:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __str__(self) -> str:
        return str(self.table)

    def __repr__(self) -> str:
        return f"<wattmeter.torch.layers: {self._name}, {len(self._layers)} layers>"

    def _repr_html_(self) -> str | None:
        return self.table._repr_html_() if self._names else None


def _time_of(one: Region | None, why: str) -> Figure:
    if one is None:
        return Figure("time", None, "s", state="missing", why=why)
    return one["time"]


def _sum_of(passes: list[Region], key: str, whole: Figure) -> Figure:
    """Without the layers inside. What was never called used nothing."""
    if passes:
        return total(key, whole.unit, (one.exclusive[key] for one in passes))
    if whole.value is None:
        return Figure(key, None, whole.unit, state="missing", why=whole.why)
    return Figure(key, 0.0, whole.unit, 0.0, 0.0, origin=whole.origin)


def _report_until(tracking: track, seconds: float) -> Report:
    """While it runs, as of the first sample that has all calls until that time: one lacks
    those that ended less than a quarter of a millisecond before it."""
    report = tracking.report
    while float(report.time) < seconds + 0.001 and not report.info["is_complete"]:
        time.sleep(0.005)
        report = tracking.report
    return report


def _energy_on_gpu(
    times: Times, energy: Energy | None, passes: list[Region], report: Report
) -> Figure:
    """Of the GPU while the layer kept it busy, and of the CPUs while it was handed over."""
    why = energy.why if energy else "it has not been measured"
    if why:
        return Figure("energy", None, "J", state="missing", why=why)
    value, origin = times.joules, report.gpu_energy.origin
    if report.cpu_energy.value is not None:
        cpu = _sum_of(passes, "cpu_energy", report.cpu_energy)
        value += cpu.value or 0.0
        origin = origin if cpu.origin == "measured" else cpu.origin
    return times.figure("energy", value, "J", origin)


def _make_table(
    layers: list[Layer],
    names: list[str],
    report: Report,
    gpu_times: dict[str, Times],
    gpu_energy: Energy | None,
) -> Table:
    regions = {one.name: one for one in report.regions}
    rows = []
    for layer, name in zip(layers, names):
        row = Row(layer)
        forward, backward = regions.get(name), regions.get(name + _BACKWARD)
        row.calls = forward.calls if forward else 0
        row.forward = _time_of(forward, "it was not called")
        row.backward = _time_of(backward, layer.why_no_backward)
        passes = [one for one in (forward, backward) if one is not None]
        row.own = _sum_of(passes, "time", report.time)
        row.energy = _sum_of(passes, "energy", report.energy)
        if layer.path in gpu_times:
            times = gpu_times[layer.path]
            row.gpu_time = times.figure("gpu_time", times.own, "s")
            row.energy = _energy_on_gpu(times, gpu_energy, passes, report)
        rows.append(row)
    remarks = [_GPU_REMARK] if gpu_times else []
    remarks += [f"note: {one}" for one in report.remarks if "another tracker" in one]
    return Table(rows, report.time, report.energy, remarks)
