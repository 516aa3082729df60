# SPDX-License-Identifier: Apache-2.0
"""power_cap_profiler(): the power cap that is best for a step of a program."""

from __future__ import annotations

import json
import time
from typing import NamedTuple

from wattmeter import _core
from wattmeter._measure import measure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# After a change of the cap: clocks follow in a fraction of a second, and sensors that
# average do so over one second.
_SETTLE = 0.2
_SETTLE_MAX = 2.0
_ATTEMPTS = 3


class CapChoice(NamedTuple):
    """What power_cap_profiler() has found.

    cap         watts; the default limit where none is better
    is_gain     whether it is better than the default limit
    saving      of the GPU's energy, a ratio: (value, low, high), with 95 % confidence
    slowdown    the same of the time
    details     all that was measured, the model and the choice by each objective, as
                `wattmeter cap profile --json` prints it
    text        the same for people
    csv         the curve, a line for each cap
    """

    cap: float
    is_gain: bool
    saving: tuple[float, float, float]
    slowdown: tuple[float, float, float]
    details: dict[str, Any]
    text: str
    csv: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        found = "better than the default limit" if self.is_gain else "the default limit"
        saved, slower = self.saving[0], self.slowdown[0]
        return f"<CapChoice: {self.cap:g} W, {found}; {saved:+.1%} energy saved, {slower:+.1%} time>"


class _Gpu:
    """The GPU that is capped, for as long as a `with` block takes."""

    def __init__(self, gpu: int | str) -> None:
        self._core = _core.Caps()
        (self._index, _), *more = self._core.parse(f"{gpu}=default")
        if more:
            raise ValueError(f"{gpu!r} are several GPUs; one at a time is profiled")
        setting = self._core.settings()[self._index]
        if setting.minimum is None or setting.default is None:
            text = f"{setting.device}: its power limit cannot be set"
            raise _core.failure("ENODEV", text)
        self.minimum, self.default = setting.minimum, setting.default
        self.identity = setting.identity

    def cap(self, watts: float) -> None:
        self._core.check()
        self._core.hold(self._index, watts)

    def __enter__(self) -> _Gpu:
        return self

    def __exit__(self, *exception: object) -> None:
        self._core.end()


def _run(step: Callable[[], Any], wait: Callable[[], Any], seconds: float) -> int:
    """Whole steps for so long; how many."""
    end = time.monotonic() + seconds
    steps = 0
    while steps == 0 or time.monotonic() < end:
        step()
        steps += 1
        wait()
    return steps


def _triple(estimate: dict[str, float]) -> tuple[float, float, float]:
    return estimate["value"], estimate["low"], estimate["high"]


def _choice(search: _core.CapSearch, objective: str) -> CapChoice:
    details = json.loads(search.answer())
    found = details["by_objective"][objective]
    return CapChoice(
        cap=found["cap"],
        is_gain=details["choice"] is not None,
        saving=_triple(found["energy_saved"]),
        slowdown=_triple(found["slowdown"]),
        details=details,
        text=search.answer("text"),
        csv=search.answer("csv"),
    )


def _of_one_step(
    step: Callable[[], Any], wait: Callable[[], Any], window: float, identity: str
) -> tuple[float, float]:
    """Seconds and joules. On a busy machine a driver may answer too late for a window."""
    for _ in range(_ATTEMPTS):
        with measure(gpus=identity) as taken:
            steps = _run(step, wait, window)
        if taken.gpu.value is not None and taken.seconds is not None:
            return taken.seconds / steps, taken.gpu.value / steps
    raise _core.failure("ENODEV", f"the GPU's energy is not known: {taken.gpu.why}")


def power_cap_profiler(
    step: Callable[[], Any],
    *,
    gpu: int | str = 0,
    objective: str = "energy",
    max_slowdown: float | None = None,
    probes: int = 8,
    window: float = 10.0,
    synchronize: Callable[[], Any] | None = None,
    progress: Callable[[str], Any] | None = None,
) -> CapChoice:
    """Finds the power cap of a GPU that is best for what `step()` does.

        choice = wattmeter.power_cap_profiler(train_step, objective="edp")
        with wattmeter.cap(choice.cap, gpu=0):
            train()

    step          does one unit of work; is called for some minutes
    gpu           which one, a number, identity or label
    objective     what to minimize for a unit: "energy", "edp" (energy x time), "ed2p"
                  (energy x time squared), "cost" (energy, and the time at the default limit)
    max_slowdown  0.05: a unit may take 5 % longer; None: as long as it likes
    probes        caps that are tried at most
    window        seconds of each measurement
    synchronize   waits until the GPU has done what step() has queued
    progress      is called with a line of text before each measurement; print, say

    The previous cap is restored however the program ends. Raises as cap() does, and
    Error "ENODEV" if the energy of the GPU is unknown.
    """
    if not window > 0:
        raise ValueError(f"a window takes more than 0 s, not {window!r}")
    wait = synchronize or (lambda: None)
    with _Gpu(gpu) as card:
        search = _core.CapSearch(
            card.minimum, card.default, objective, max_slowdown or 0.0, probes
        )
        begun = False
        while (watts := search.next()) is not None:
            if progress is not None:
                progress(f"{watts:g} W; about {search.left() - 1} measurements more")
            card.cap(watts)
            # The first one also warms the GPU up.
            _run(step, wait, min(_SETTLE * window, _SETTLE_MAX) if begun else window)
            begun = True
            search.add(watts, *_of_one_step(step, wait, window, card.identity))
    return _choice(search, objective)
