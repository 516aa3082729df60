# SPDX-License-Identifier: Apache-2.0
"""measure(): the joules of a snippet."""

from __future__ import annotations

import os
from threading import Lock

from wattmeter import _core
from wattmeter._devices.gpus import words_of
from wattmeter._results.figure import Figure, total

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, TypeVar

    from wattmeter._devices.gpus import Choice

    Function = TypeVar("Function", bound=Callable[..., Any])

# The devices stay open from one snippet to the next, as a training step is short; those
# of a parent are not a child's.
_meters: dict[tuple[Any, ...], _core.Meter] = {}
_lock = Lock()


def _meter(options: tuple[str | None, bool, str | None]) -> _core.Meter:
    key = (os.getpid(), *options)
    with _lock:
        if key not in _meters:
            for other in [k for k in _meters if k[0] != key[0]]:
                del _meters[other]
            gpus, estimate, cpu_watts = options
            _meters[key] = _core.Meter(
                gpus=gpus, estimate=estimate, cpu_watts=cpu_watts
            )
        return _meters[key]


def _forget_parent() -> None:
    global _lock
    _lock = Lock()


os.register_at_fork(after_in_child=_forget_parent)


def _figure(key: str, energy: _core.Energy) -> Figure:
    if energy.joules is None:
        return Figure(key, None, "J", state="missing", why=energy.why)
    return Figure(
        key, energy.joules, "J", energy.low, energy.high, "known", str(energy.origin)
    )


def _remake(arguments: dict[str, Any]) -> measure:
    return measure(**arguments)


class measure:
    """What a piece of a program takes: seconds, and the joules of the whole machine.

        with wattmeter.measure() as m:
            step()
        print(m.seconds, m.energy, m.gpu)

        @wattmeter.measure()
        def step(): ...

    It is a decorator as well, which has the figures of the last call that has ended, and
    `async with` does as `with`.

    gpus        which GPUs, "visible", "0,GPU-7c1f", [0, 1] and so on; None: all
    estimate    estimates CPUs and memory without a sensor, and marks the estimate
    cpu_watts   "IDLE:MAX" of all CPUs for that

    seconds     from start to stop; None before
    energy, cpu, dram, gpu   Figures: all that is known together, and each
    devices     Figures of each device, by its label

    Wait for the GPU before the end: work that is only queued is not in it. Snippets may
    be nested, overlap, and end in another thread. The devices are opened by the first one
    and stay open; one object measures one snippet at a time.
    """

    def __init__(
        self,
        *,
        gpus: Choice = None,
        estimate: bool = True,
        cpu_watts: str | None = None,
    ) -> None:
        self._arguments = {"gpus": gpus, "estimate": estimate, "cpu_watts": cpu_watts}
        self._options = (words_of(gpus), bool(estimate), cpu_watts)
        self._number: int | None = None
        self._pid = 0
        self.seconds: float | None = None
        self.cpu = self.dram = self.gpu = self.energy = Figure(
            "energy", None, "J", state="missing", why="nothing has been measured yet"
        )
        self.devices: dict[str, Figure] = {}

    def start(self) -> measure:
        """Starts the snippet. The result is this object."""
        if self._number is not None and self._pid == os.getpid():
            raise ValueError("this snippet has been started already")
        self._meter = _meter(self._options)
        self._number = self._meter.start()
        self._pid = os.getpid()
        return self

    def stop(self) -> measure:
        """Ends the snippet. The result is this object, which has the figures. In a forked
        child, whose parent it belongs to, it does nothing."""
        if self._number is None:
            raise ValueError("this snippet has not been started")
        if self._pid != os.getpid():
            return self
        number, self._number = self._number, None
        reading = self._meter.stop(number)
        self.seconds = reading.elapsed
        self.cpu = _figure("cpu", reading.cpu)
        self.dram = _figure("dram", reading.dram)
        self.gpu = _figure("gpu", reading.gpu)
        parts = (self.cpu, self.dram, self.gpu)
        self.energy = total("energy", "J", parts, of_known=True)
        # What is there and has no figure is lacking; what is not there is not.
        lacking = [
            part
            for part in (reading.cpu, reading.gpu)
            if part.joules is None and part.state != "unsupported"
        ]
        if lacking and self.energy.value is not None:
            self.energy = Figure(
                "energy", float(self.energy), "J", state="at least",
                origin=self.energy.origin, why=self.energy.why,
            )
        self.devices = {
            device.label: _figure(device.label, energy)
            for device, energy in zip(self._meter.devices, reading.devices)
        }
        return self

    def __enter__(self) -> measure:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    async def __aenter__(self) -> measure:
        return self.start()

    async def __aexit__(self, *exception: object) -> None:
        self.stop()

    def __call__(self, function: Function) -> Function:
        """The function, each call of which is a snippet."""
        from contextlib import contextmanager

        from wattmeter._decorate import measured

        @contextmanager
        def snippet() -> Iterator[None]:
            taken = _remake(self._arguments)
            try:
                with taken:
                    yield
            finally:
                if taken.seconds is not None:
                    self._take(taken)

        decorated: Function = measured(function, snippet, "measure")
        return decorated

    def _take(self, other: measure) -> None:
        self.seconds, self.energy, self.devices = other.seconds, other.energy, other.devices
        self.cpu, self.dram, self.gpu = other.cpu, other.dram, other.gpu

    def __reduce__(self) -> tuple[Any, ...]:
        """One with the same arguments, as a decorated function takes it to workers."""
        return _remake, (self._arguments,)

    def __str__(self) -> str:
        if self.seconds is None:
            return "nothing has been measured yet"
        lines = [f"time {Figure('time', self.seconds, 's')}, energy {self._energy}"]
        named: dict[str, str] = {}  # what a reason has been given for
        for name, figure in (
            ("CPU", self.cpu), ("memory", self.dram), ("GPUs", self.gpu)
        ):
            if figure.why and figure.value is None and figure.why in named:
                lines.append(f"  {name} n/a (as {named[figure.why]})")
            else:
                lines.append(f"  {name} {figure}")
                named[figure.why or ""] = name
        return "\n".join(lines)

    @property
    def _energy(self) -> str:
        """Without the reasons, which the parts have."""
        return "n/a" if self.energy.value is None else str(self.energy)

    def __repr__(self) -> str:
        return f"<wattmeter.measure: {self.seconds} s, {self._energy}>"
