# SPDX-License-Identifier: Apache-2.0
"""How long layers keep a GPU busy: by CUDA events at their begin and end, which the GPU
stamps when it gets there. Nothing waits for it but the begin and the end of the
measurement. Their joules are the GPU's between the two, by its samples.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from threading import Lock

from wattmeter._results.figure import Figure
from wattmeter._torch.modules import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque

    from wattmeter._results.report import Report
    from wattmeter._track import track

CAPTURED = "its work was captured in a CUDA graph, where events cannot tell"

# How many spans are added between two looks at which are over: a look costs as much as they.
_BETWEEN_LOOKS = 32


class Times:
    """Seconds of a layer on the GPU, forward and backward, and of the layers inside it; and
    the joules of both, without the layers inside.

    is_captured  some of its work was, and is not in these
    """

    __slots__ = ("forward", "backward", "inner", "joules", "is_captured")

    def __init__(self) -> None:
        self.is_captured = False
        self.forward = self.backward = self.inner = self.joules = 0.0

    @property
    def own(self) -> float:
        return max(0.0, self.forward + self.backward - self.inner)

    def figure(self, key: str, value: float, unit: str, origin: str = "measured") -> Figure:
        """One of these, with what is not in it."""
        if not self.is_captured:
            return Figure(key, value, unit, origin=origin)
        if not self.forward + self.backward:
            return Figure(key, None, unit, state="missing", why=CAPTURED)
        return Figure(key, value, unit, None, None, "at least", origin, CAPTURED)


class Energy:
    """The joules of the GPU since the run began, at its samples.

    started     time.monotonic() when it began
    lock        who has it reads spans and samples
    why         why there are none; None: there are
    """

    def __init__(self, tracking: track, started: float) -> None:
        self._tracking = tracking
        self._interval = float(tracking.report.info["interval_ns"]) / 1e9
        self._next = 0.0
        self.lock = Lock()
        self._times, self._joules = [0.0], [0.0]
        self.started = started
        self.why: str | None = None

    def look(self) -> float:
        """Takes the last sample, if there may be a new one; the time up to which the joules
        are known."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._interval
            self.add(self._tracking.report)
        return self._times[-1]

    def add(self, report: Report) -> None:
        energy = report.gpu_energy
        if len(report.gpus) > 1:
            self.why = "several GPUs are measured: choose the model's with gpus="
        elif energy.value is None:
            self.why = energy.why
        elif float(report.time) > self._times[-1]:
            self.why = None
            self._times.append(float(report.time))
            self._joules.append(energy.value)

    def at(self, seconds: float) -> float:
        i = min(max(bisect_left(self._times, seconds), 1), len(self._times) - 1)
        if i < 1:
            return 0.0
        (t, u), (j, k) = self._times[i - 1 : i + 1], self._joules[i - 1 : i + 1]
        return j + (k - j) * (min(seconds, u) - t) / (u - t)


def gpu_of(model: Any) -> Any:
    """The torch.device of the first GPU that parameters are on; None: of none."""
    for parameter in model.parameters():
        if parameter.is_cuda:
            return parameter.device
    return None


class Clock:
    """Spans between two events of a GPU, which are read once it has passed them."""

    def __init__(self, device: Any, energy: Energy) -> None:
        self.device = device
        self._energy = energy
        self._free: list[Any] = []
        # Of the current one only its handle is asked for at each call: an object of it and
        # of its device takes longer than all the rest.
        self._handle: Callable[[int], int] = torch._C._cuda_getCurrentRawStream
        self._is_capturing: Callable[[], bool] = torch.cuda.is_current_stream_capturing
        self._streams: dict[int, Any] = {}
        self._look_at = _BETWEEN_LOOKS
        self._spans: Deque[tuple[Any, Any, Times, Times | None, bool]] = deque()
        self._read_ones: Deque[tuple[float, float, Times, Times | None]] = deque()
        self._base = self.now()
        self._base.synchronize()
        self._base_s = time.monotonic() - energy.started

    def now(self) -> Any:
        """An event in the GPU's current stream; None: it would become part of a graph."""
        if self._is_capturing():
            return None
        try:
            event = self._free.pop()
        except IndexError:  # asking before would be of no use: other threads take them, too
            event = torch.cuda.Event(enable_timing=True)
        handle = self._handle(self.device.index)
        stream = self._streams.get(handle)
        if stream is None:
            stream = self._streams[handle] = torch.cuda.current_stream(self.device)
        event.record(stream)
        return event

    def add(
        self, begin: Any, end: Any, times: Times, outer: Times | None, back: bool
    ) -> None:
        """A span of a layer, within another; of its backward pass?"""
        if begin is None or end is None:
            times.is_captured = True
            return
        self._spans.append((begin, end, times, outer, back))
        if len(self._spans) < self._look_at or not self._energy.lock.acquire(blocking=False):
            return  # or another thread is at it
        try:
            while self._spans and self._spans[0][1].query():
                self._read()
            self._look_at = len(self._spans) + _BETWEEN_LOOKS
            self._settle(self._energy.look())
        finally:
            self._energy.lock.release()

    def _read(self) -> None:
        begin, end, times, outer, back = self._spans.popleft()
        seconds = begin.elapsed_time(end) / 1000
        if back:
            times.backward += seconds
        else:
            times.forward += seconds
        if outer is not None:
            outer.inner += seconds
        at = self._base_s + self._base.elapsed_time(begin) / 1000
        self._read_ones.append((at, at + seconds, times, outer))
        self._free += (begin, end)

    def _settle(self, known: float) -> None:
        """Of what was over by then the joules are known."""
        while self._read_ones and self._read_ones[0][1] <= known:
            begin, end, times, outer = self._read_ones.popleft()
            joules = self._energy.at(end) - self._energy.at(begin)
            times.joules += joules
            if outer is not None:
                outer.joules -= joules

    def finish(self) -> None:
        """Waits for the GPU."""
        with self._energy.lock:
            while self._spans:
                self._spans[0][1].synchronize()
                self._read()

    def finish_energy(self, report: Report) -> None:
        """With the report of the run, or one that is late enough."""
        with self._energy.lock:
            self._energy.add(report)
            self._settle(float("inf"))
