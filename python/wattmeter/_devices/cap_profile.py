# SPDX-License-Identifier: Apache-2.0
"""power_cap_profiler(): the power cap that is best for a step of a program."""

from __future__ import annotations

import json
from typing import NamedTuple

from wattmeter import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


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


def _triple(estimate: dict[str, float]) -> tuple[float, float, float]:
    return estimate["value"], estimate["low"], estimate["high"]


def _choice(profile: _core.CapProfile, objective: str) -> CapChoice:
    details = json.loads(profile.answer())
    found = details["by_objective"][objective]
    return CapChoice(
        cap=found["cap"],
        is_gain=details["choice"] is not None,
        saving=_triple(found["energy_saved"]),
        slowdown=_triple(found["slowdown"]),
        details=details,
        text=profile.answer("text"),
        csv=profile.answer("csv"),
    )


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
    gpu           which one, a number, identity or label; "0,1": all of these
    objective     what to minimize for a unit: "energy", "edp" (energy x time), "ed2p"
                  (energy x time squared), "cost" (energy, and the time at the default limit)
    max_slowdown  0.05: a unit may take 5 % longer; None: as long as it likes
    probes        caps that are tried at most
    window        seconds of each measurement
    synchronize   waits until the GPU has done what step() has queued
    progress      is called with a text before each measurement, and when one is repeated as
                  the GPU got hotter or was slowed down by other causes than its cap; print, say

    The previous cap is restored however the program ends. Raises as cap() does, and
    Error "ENODEV" if the energy of the GPU is unknown.
    """
    if not window > 0:
        raise ValueError(f"a window takes more than 0 s, not {window!r}")
    profile = _core.CapProfile(str(gpu), objective, max_slowdown or 0.0, probes, window)
    try:
        said = profile.step(0)
        while said is not None:
            if said and progress is not None:
                progress(said)
            step()
            if synchronize is not None:
                synchronize()
            said = profile.step(1)
        return _choice(profile, objective)
    finally:
        profile.close()
