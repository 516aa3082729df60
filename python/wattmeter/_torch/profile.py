# SPDX-License-Identifier: Apache-2.0
"""What each layer of a PyTorch network costs, as exactly as is asked for.

One pass of the model shows what each layer is called with. After that the layers are
replayed with these inputs, one after the other, and the whole network among them.
"""

from __future__ import annotations

import copy
import functools
import random
import sys
import time
from collections.abc import Mapping

from wattmeter import _core
from wattmeter._devices.gpus import words_of
from wattmeter._measure import _figure
from wattmeter._results.figure import Figure, total
from wattmeter._torch.modules import Layer, Records, exact_text, layers_of, tensors, torch
from wattmeter._torch.replay import Piece, Replays, interval

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Union

    from wattmeter._devices.gpus import Choice

    Backward = Union[bool, Callable[[Any], Any]]

# Of a sensor whose period nobody knows.
_PERIOD = 0.1


def _map(function: Callable[[Any], Any], value: Any) -> Any:
    """The same with `function` of each tensor in it."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict):
        made = copy.copy(value)
        for key, item in value.items():
            made[key] = _map(function, item)
        return made
    if isinstance(value, list):
        return [_map(function, item) for item in value]
    if isinstance(value, tuple) and not isinstance(value, torch.Size):
        items = [_map(function, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def _detached(tensor: Any) -> Any:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _version(tensor: Any) -> int:
    return 0 if tensor.is_inference() else tensor._version


class _Call:
    """What a module was called with, as it was then, to be called with it again.

    gradients   of each tensor that it gave; None: no gradient came to it
    loss        what a gradient begins with, of what the whole network gave
    copies      it changes what it is given, which is copied before each call
    """

    def __init__(self, module: Any, args: Any, keywords: Any) -> None:
        self.module = module
        self.given = _map(_detached, (args, keywords))
        self.gradients: list[Any] = []
        self.loss: Callable[[Any], Any] | None = None
        self.copies = False
        self._wanted: list[Any] = []

    def keep_gradients(self, output: Any) -> None:
        for number, tensor in enumerate(tensors(output)):
            self.gradients.append(None)
            if tensor.requires_grad:
                tensor.register_hook(functools.partial(self._keep, number))

    def _keep(self, number: int, gradient: Any) -> None:
        self.gradients[number] = gradient.detach().clone()

    @property
    def has_backward(self) -> bool:
        return self.loss is not None or any(g is not None for g in self.gradients)

    def prepare(self) -> None:
        """Before the first replay."""
        if self.has_backward:
            self._wanted = [
                tensor
                for tensor in [*tensors(self.given), *self.module.parameters()]
                if tensor.requires_grad
            ]
        elif self.copies:
            # What leaves its own result as it is (ReLU) needs no copies.
            self._forward(self.given)
            again = _map(torch.clone, self.given)
            self._forward(again)
            pairs = zip(tensors(again), tensors(self.given))
            self.copies = not all(torch.equal(one, other) for one, other in pairs)

    def _forward(self, given: Any) -> Any:
        return self.module(*given[0], **given[1])

    def run(self) -> None:
        output = self._forward(
            _map(torch.clone, self.given) if self.copies else self.given
        )
        if not self.has_backward:
            return
        if self.loss is not None:
            outputs, gradients = [self.loss(output)], None
        else:
            pairs = [p for p in zip(tensors(output), self.gradients) if p[1] is not None]
            outputs, gradients = [p[0] for p in pairs], [p[1] for p in pairs]
        # Into nothing: no gradient of the model's is touched.
        torch.autograd.grad(outputs, self._wanted, gradients, allow_unused=True)


class _Capture:
    """One pass of the model, in which each layer keeps what it is called with."""

    def __init__(self, layers: list[Layer], loss: Callable[[Any], Any] | None) -> None:
        self._layers = layers
        self._loss = loss
        self._open: list[Layer] = []
        self._has_inner: set[Layer] = set()
        self.calls: dict[Layer, list[_Call]] = {}

    def run(self, network: _Call) -> None:
        before = [
            (vars(layer.module), vars(layer.module).get("forward"))
            for layer in self._layers
        ]
        try:
            for layer in self._layers:
                forward = functools.partial(self._forward, layer, layer.module.forward)
                vars(layer.module)["forward"] = forward
            network.run()
        finally:
            for names, forward in before:
                names.pop("forward", None)
                if forward is not None:
                    names["forward"] = forward
        # A module whose parts were not called did their work itself (attention).
        for layer in self._has_inner:
            del self.calls[layer]

    def _forward(self, layer: Layer, forward: Any, *args: Any, **keywords: Any) -> Any:
        self._has_inner.update(self._open)
        call = _Call(layer.module, args, keywords)
        self.calls.setdefault(layer, []).append(call)
        given = tensors((args, keywords))
        before = [_version(tensor) for tensor in given]
        self._open.append(layer)
        try:
            output = forward(*args, **keywords)
        finally:
            self._open.pop()
        call.copies = before != [_version(tensor) for tensor in given]
        if self._loss is not None and layer not in self._has_inner:
            call.keep_gradients(output)
        return output


class State:
    """What replays may change in a model and in the process, to be put back."""

    def __init__(self, model: Any) -> None:
        self._modules = [
            (
                vars(module),
                dict(vars(module)),
                [(d, dict(d)) for d in vars(module).values() if isinstance(d, dict)],
            )
            for module in model.modules()
        ]
        self._gradients = [(p, p.grad) for p in model.parameters()]
        tensors = [*model.parameters(), *model.buffers()]
        tensors += [grad for _, grad in self._gradients if grad is not None]
        # Not on the device, whose memory is short.
        self._tensors = [
            (tensor, _version(tensor), tensor.detach().to("cpu", copy=True))
            for tensor in tensors
        ]
        self._random = random.getstate()
        self._torch = torch.get_rng_state()
        self._cuda = None
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            self._cuda = torch.cuda.get_rng_state_all()
        numpy = sys.modules.get("numpy")
        self._numpy = numpy.random.get_state() if numpy else None

    def put_back(self) -> None:
        for names, before, inner in self._modules:
            for one, was in [(names, before), *inner]:
                one.clear()
                one.update(was)
        for parameter, grad in self._gradients:
            if parameter.grad is not grad:
                parameter.grad = grad
        with torch.no_grad():
            for tensor, version, was in self._tensors:
                if _version(tensor) != version or not torch.equal(tensor.cpu(), was):
                    tensor.copy_(was)
        random.setstate(self._random)
        torch.set_rng_state(self._torch)
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)


def _prepare(calls: list[_Call]) -> Exception | None:
    """What they cannot be replayed for; None: they can."""
    try:
        for call in calls:
            call.prepare()
            call.run()
    except Exception as error:
        return error
    return None


class _Joules:
    """The joules since it was asked last, of all that is measured.

    period      seconds between two new values of the slowest sensor; 0: there is none
    resolution  seconds: how exactly the time of a new value is known
    figure      of the first asking: says which parts are known, their origin, and why
                others are not; the same parts are in each sum
    """

    def __init__(self, gpus: Choice) -> None:
        words = words_of(gpus)
        self._meter = _core.Meter(gpus=words)
        self.period = self.resolution = self._find_period(words)
        if self.period >= 0.02:
            self.resolution = self.period / 10
            self._meter = _core.Meter(gpus=words, interval=self.resolution)
        self.figure: Figure | None = None
        self._whole = self._meter.start()
        self._since = self._meter.start()

    def _find_period(self, gpus: str | None) -> float:
        devices = {device.device for device in self._meter.devices}
        periods = [0.0]
        for source in {device.source for device in self._meter.devices}:
            periods += [
                channel.period or _PERIOD
                for channel in _core.Source(source, gpus).channels
                if channel.device in devices and channel.metric in ("energy", "power")
            ]
        return max(periods)

    def _sum(self, reading: _core.MeterReading) -> Figure:
        parts = ("cpu", "dram", "gpu")
        figures = [_figure(part, getattr(reading, part)) for part in parts]
        return total("energy", "J", figures, of_known=True)

    def __call__(self) -> tuple[float | None, float]:
        reading = self._meter.stop(self._since)
        self._since = self._meter.start()
        figure = self._sum(reading)
        if self.figure is None:
            self.figure = figure
        is_whole = figure.why == self.figure.why
        return figure.value if is_whole else None, reading.elapsed

    def sensors_error(self) -> float | None:
        """Relative: what all figures may be off by together."""
        figure = self._sum(self._meter.stop(self._whole))
        if not figure.value or figure.uncertainty is None:
            return None
        return figure.uncertainty / figure.value


class Row:
    """What a layer costs in one pass of the network.

    path, also, type    as the model has it; of the network itself the path is ""
    calls       in one pass
    time        seconds, of all calls together
    energy      joules, likewise
    share       of the network's energy; where that is not known, of its time
    note        a note on it, or why it has no figures; None: no note
    """

    def __init__(self, layer: Layer, calls: int) -> None:
        self.path = layer.path
        self.also = list(layer.also)
        self.type = layer.type
        self.calls = calls
        self.note = layer.note
        self.time = self.energy = Figure("time", None, "s", state="missing")
        self.share: float | None = None

    def miss(self, why: str) -> None:
        self.note = why
        self.time = Figure("time", None, "s", state="missing", why=why)
        self.energy = Figure("energy", None, "J", state="missing", why=why)

    def __repr__(self) -> str:
        return f"<Row {self.path or '(network)'}: {self.time}, {self.energy}>"


def _difference(whole: Figure, parts: list[Figure]) -> Figure:
    """Each is measured alone; what is missing is in the rest."""
    known = [part for part in parts if part.value is not None]
    return total(whole.key, whole.unit, [whole], known, independent=True)


class Profile(Records):
    """Rows of layers, and how they compare to the whole network.

    rows        a Row for each layer that does work itself
    network     the Row of the whole network
    time_between, energy_between    Figures: what the network takes beyond the sum of its
                layers; less than 0 where layers by themselves take longer
    remarks     what a reader has to know of the figures
    """

    columns = (
        *("path", "type", "calls", "time_s", "time_low_s", "time_high_s", "energy_J"),
        *("energy_low_J", "energy_high_J", "share", "note"),
    )

    def __init__(self, rows: list[Row], network: Row, remarks: list[str]) -> None:
        self.rows = rows
        self.network = network
        self.remarks = remarks
        self.time_between = _difference(network.time, [row.time for row in rows])
        self.energy_between = _difference(network.energy, [row.energy for row in rows])
        for row in [*rows, network]:
            row.share = self._share(row.time, row.energy)

    def _share(self, time: Figure, energy: Figure) -> float | None:
        whole = self.network.energy
        part = energy if whole.value else time
        whole = whole if whole.value else self.network.time
        return part.value / whole.value if part.value is not None and whole.value else None

    def _lines(self) -> list[tuple[str, str, str, Figure, Figure, float | None, str]]:
        lines = [
            (row.path, row.type, str(row.calls), row.time, row.energy, row.share)
            + ((row.note or ""),)
            for row in self.rows
        ]
        between = self.time_between, self.energy_between
        lines.append(
            ("(between the layers)", "", "", *between, self._share(*between), "")
        )
        whole = self.network
        lines.append(
            ("(network)", whole.type, str(whole.calls), whole.time, whole.energy)
            + (whole.share, whole.note or "")
        )
        return lines

    def records(self) -> list[dict[str, Any]]:
        """Plain dicts, None for what is missing: path, type, calls, time_s, ..."""
        return [
            dict(
                zip(
                    self.columns,
                    (path, kind, int(calls) if calls else None)
                    + (spent.value, spent.low, spent.high)
                    + (joules.value, joules.low, joules.high, share, note or None),
                )
            )
            for path, kind, calls, spent, joules, share, note in self._lines()
        ]

    def to_json(self, path: Any = None) -> str:
        """The records and the remarks as a JSON text; also written into a file, if one is
        given."""
        return self._write_json({"layers": self.records(), "remarks": self.remarks}, path)

    def __str__(self) -> str:
        cells: list[tuple[str, ...]] = [
            ("calls", "time", "J", "share", "type", "layer")
        ]
        for path, kind, calls, spent, joules, share, note in self._lines():
            cells.append(
                (
                    calls,
                    exact_text(spent),
                    exact_text(joules),
                    "-" if share is None else f"{100 * share:.1f} %",
                    kind,
                    (path or "(model)") + (f" ({note})" if note else ""),
                )
            )
        lines = self._aligned(cells)
        if self.network.energy.value is None:
            why = self.network.energy.why
            lines.append(f"Energy is not measured: {why}. layers() estimates that of the CPUs.")
        return "\n".join([*lines, *self.remarks])


def _figure_of(
    values: list[float],
    bounds: tuple[float, float],
    key: str,
    unit: str,
    origin: str,
    why: str,
) -> Figure:
    if not values:
        return Figure(key, None, unit, state="missing", why=why)
    mean, low, high = interval(values, *bounds)
    if low is None or high is None:
        why = "measured once: its interval is not known"
        return Figure(key, mean, unit, origin=origin, why=why)
    return Figure(key, mean, unit, low, high, origin=origin)


_TOO_SHORT = "the time given was over before it was measured"


def _fill(row: Row, piece: Piece, joules: _Joules) -> None:
    if piece.why is not None:
        row.miss(piece.why)
        return
    row.time = _figure_of(piece.seconds, (0.0, 0.0), "time", "s", "measured", _TOO_SHORT)
    known = joules.figure
    why = _TOO_SHORT
    if known is not None and known.value is None:
        why = known.why or "no reason is known"
    origin = known.origin if known is not None else "measured"
    bounds = piece.floor, piece.doubt
    row.energy = _figure_of(piece.joules, bounds, "energy", "J", origin, why)


def _wait_for(devices: set[Any]) -> None:
    """Until they have done what is queued."""
    for device in devices:
        getattr(torch, device.type).synchronize()


def _check(model: Any, uncertainty: float, seconds: float) -> None:
    parallel = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    if isinstance(model, parallel):
        raise ValueError(f"profile what is in the {type(model).__name__}: model.module")
    lazy = torch.nn.parameter.UninitializedTensorMixin
    if any(isinstance(parameter, lazy) for parameter in model.parameters()):
        raise ValueError("the model has lazy layers: call it once before")
    if not 0 < uncertainty < 1:
        raise ValueError(f"an uncertainty lies between 0 and 1, not {uncertainty!r}")
    if not seconds > 0:
        raise ValueError(f"seconds are more than 0, not {seconds!r}")


def _sum_of_outputs(output: Any) -> Any:
    """A loss where none is given."""
    parts = [t.float().sum() for t in tensors(output) if t.requires_grad]
    if not parts:
        raise ValueError("nothing that the model gives needs a gradient")
    return sum(parts[1:], parts[0])


def _given(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, tuple):
        return inputs, {}
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return (inputs,), {}


def _leaves(layers: list[Layer], calls: dict[Layer, list[_Call]]) -> list[Layer]:
    """Called layers without another called layer inside, and layers without any call."""

    def is_inside(layer: Layer) -> bool:
        parent = layer.parent
        return parent is not None and (parent in calls or is_inside(parent))

    return [
        layer
        for layer in layers
        if not is_inside(layer) and (layer in calls or layer.is_leaf)
    ]


def profile(
    model: Any,
    inputs: Any,
    uncertainty: float = 0.05,
    seconds: float = 60.0,
    backward: Backward = False,
    *,
    gpus: Choice = None,
) -> Profile:
    """The joules and the time of each layer of a network, as exactly as is asked for.

        print(wattmeter.torch.profile(model, images, uncertainty=0.02))

    inputs      what the model is called with: a tuple of arguments, a dict of keywords, or
                the one argument
    uncertainty how far from the mean the interval of each layer's joules may reach, as a
                part of the mean, at 95 % confidence
    seconds     when to end at the latest, be the intervals as narrow or not
    backward    True: the backward passes, too, with the sum of the outputs as the loss;
                or a function that makes a loss of what the model gives
    gpus        which GPUs are measured, "visible", [0, 1] and so on; None: all

    Each layer is replayed with what it was called with in one pass of the model. Joules are
    all that the sensors measured meanwhile, of the whole machine. The model is as it was
    afterwards, and so is the random state.

    Raises TypeError for what is no torch.nn.Module, ValueError for one without layers, for
    inputs that it does not take, and other wrong arguments.
    """
    layers = layers_of(model)
    _check(model, uncertainty, seconds)
    loss = _sum_of_outputs if backward is True else (backward or None)
    joules = _Joules(gpus)
    state = State(model)
    try:
        with torch.set_grad_enabled(loss is not None):
            return _profile(model, layers, inputs, loss, joules, uncertainty, seconds)
    finally:
        state.put_back()


def _profile(
    model: Any,
    layers: list[Layer],
    inputs: Any,
    loss: Callable[[Any], Any] | None,
    joules: _Joules,
    uncertainty: float,
    seconds: float,
) -> Profile:
    capture = _Capture(layers, loss)
    first, network = (_Call(model, *_given(inputs)) for _ in range(2))
    first.loss = network.loss = loss
    first.prepare()
    try:
        capture.run(first)
    except Exception as error:
        text = f"the model cannot be called with these inputs: {error}"
        raise ValueError(text) from error
    network.copies = any(_version(tensor) for tensor in tensors(first.given))
    leaves = _leaves(layers, capture.calls)
    called = [layer for layer in leaves if layer in capture.calls]
    work = [*(capture.calls[layer] for layer in called), [network]]
    failed = [_prepare(calls) for calls in work]
    places = [*model.parameters(), *tensors(network.given)]
    devices = {tensor.device for tensor in places if tensor.device.type != "cpu"}

    def run(number: int, count: int) -> None:
        error = failed[number]
        if error is not None:
            raise error
        calls = work[number]
        for _ in range(count):
            for call in calls:
                call.run()
        _wait_for(devices)

    replays = Replays(
        *(len(work), run, time.perf_counter, joules, random.Random(0)),
        period=joules.period,
        resolution=joules.resolution,
        settle=2.0,
    )
    replays.measure(uncertainty, seconds)
    return _make(leaves, called, work, replays, joules, uncertainty)


def _make(
    leaves: list[Layer],
    called: list[Layer],
    work: list[list[_Call]],
    replays: Replays,
    joules: _Joules,
    uncertainty: float,
) -> Profile:
    places = {layer: number for number, layer in enumerate(called)}
    rows = []
    for layer in leaves:
        number = places.get(layer)
        if number is None:
            row = Row(layer, 0)
            row.miss("not called in this pass")
        else:
            row = _row(layer, work[number], replays.pieces[number], joules)
        rows.append(row)
    top = called[0] if called else leaves[0]
    while top.parent is not None:
        top = top.parent
    network = _row(top, work[-1], replays.pieces[-1], joules)
    network.path = ""
    return Profile(rows, network, _remarks(rows, network, replays, joules, uncertainty))


def _row(layer: Layer, calls: list[_Call], piece: Piece, joules: _Joules) -> Row:
    row = Row(layer, len(calls))
    _fill(row, piece, joules)
    notes = [row.note] if row.note else []
    if piece.why is None and any(call.copies for call in calls):
        notes.append("with copies of what it changes in place")
    backward = calls[0].loss is not None or any(call.has_backward for call in calls)
    if piece.why is None and torch.is_grad_enabled() and not backward:
        notes.append("forward alone: no gradient comes to it")
    row.note = ", ".join(notes) or None
    return row


def _remarks(
    rows: list[Row], network: Row, replays: Replays, joules: _Joules, uncertainty: float
) -> list[str]:
    remarks = []
    late = replays.missing(uncertainty)
    if late:
        remarks.append(
            f"{late} of {len(replays.pieces)} are less exact than the "
            f"{100 * uncertainty:.3g} % asked for: give it more seconds"
        )
    failed = sum(row.time.value is None and row.calls > 0 for row in rows)
    if failed:
        remarks.append(f"what {failed} layers without figures take is between the layers")
    if network.energy.value is None:
        return remarks
    error = joules.sensors_error()
    if error:
        remarks.append(
            f"the sensors' own error, {100 * error:.2g} %, is the same in all and is not "
            "in the intervals"
        )
    if joules.figure is not None and joules.figure.why:
        remarks.append(f"energy {joules.figure.why}")
    return remarks
