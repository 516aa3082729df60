# SPDX-License-Identifier: Apache-2.0
"""How long layers keep a GPU busy: by CUDA events at their begin and end, which the GPU
stamps when it gets there. Nothing waits for it but the end of the measurement."""

from __future__ import annotations

from collections import deque

from wattmeter._torch_modules import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Deque

# How many spans are looked at when one is added; more than one, so that none pile up.
_LOOKS = 4


class Times:
    """Seconds of a layer on the GPU, forward and backward, and of the layers inside it."""

    __slots__ = ("forward", "backward", "inner")

    def __init__(self) -> None:
        self.forward = self.backward = self.inner = 0.0

    @property
    def own(self) -> float:
        return max(0.0, self.forward + self.backward - self.inner)


def gpu_of(model: Any) -> Any:
    """The torch.device of the first GPU that parameters are on; None: of none."""
    for parameter in model.parameters():
        if parameter.is_cuda:
            return parameter.device
    return None


class Clock:
    """Spans between two events of a GPU, which are read once it has passed them."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self._free: list[Any] = []
        self._spans: Deque[tuple[Any, Any, Times, Times | None, bool]] = deque()

    def now(self) -> Any:
        """An event in the GPU's current stream."""
        event = self._free.pop() if self._free else torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def add(
        self, begin: Any, end: Any, times: Times, outer: Times | None, back: bool
    ) -> None:
        """A span of a layer, within another; of its backward pass?"""
        self._spans.append((begin, end, times, outer, back))
        for _ in range(_LOOKS):
            if not self._spans or not self._spans[0][1].query():
                break
            self._read()

    def _read(self) -> None:
        begin, end, times, outer, back = self._spans.popleft()
        seconds = begin.elapsed_time(end) / 1000
        if back:
            times.backward += seconds
        else:
            times.forward += seconds
        if outer is not None:
            outer.inner += seconds
        self._free += (begin, end)

    def finish(self) -> None:
        """Waits for the GPU."""
        while self._spans:
            self._spans[0][1].synchronize()
            self._read()
