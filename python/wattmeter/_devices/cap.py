# SPDX-License-Identifier: Apache-2.0
"""cap(), set_power_cap(), reset_power_cap(): power caps."""

from __future__ import annotations

import numbers
import warnings

from wattmeter import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


def _words(caps: str | float, gpu: int | str | None) -> str:
    """As the command line has them."""
    if isinstance(caps, str):
        amount = caps
    elif isinstance(caps, bool) or not isinstance(caps, numbers.Real) or not caps > 0:
        raise ValueError(f"a cap is watts, a fraction of the default, or a text, not {caps!r}")
    else:
        amount = f"{caps:.6f}"
    if gpu is None:
        return amount
    if "=" in amount:
        raise ValueError("caps that name their GPU leave no room for `gpu`")
    return f"{gpu}={amount}"


class cap:
    """Power caps for a block of a program; then the previous caps are restored:

        with wattmeter.cap(200):
            train()

    caps    watts; a fraction of the default up to 1; or a text as `wattmeter run --cap`
            has it: "250W", "80%", "0=200W,1=80%", "cpu=90W", "0=1200MHz"
    gpu     which one, a number, identity or label; None: all

    The previous caps are restored however the program ends, even after kill -9. Raises
    ValueError for an impossible cap, and Error if nothing was changed: "EACCES": this user
    may not set it; "EEXIST": another program holds the GPU; "ENODEV": it cannot be capped.
    At the end Error "ECANCELED": another program has changed the cap meanwhile; its value
    is left alone.
    """

    def __init__(self, caps: str | float, gpu: int | str | None = None) -> None:
        self._asked = _words(caps, gpu)
        self._core: _core.Caps | None = None

    def __enter__(self) -> cap:
        if self._core is not None:
            raise RuntimeError("these caps are held already")
        core = _core.Caps()
        try:
            wishes = core.parse(self._asked)
            for index, value in wishes:
                core.hold(index, value)
        except BaseException:
            core.end()
            raise
        self._core = core
        self._indices = [index for index, _ in wishes]
        return self

    @property
    def settings(self) -> list[_core.CapSetting]:
        """What is capped, as it was read when that was set."""
        if self._core is None:
            return []
        settings = self._core.settings()
        return [settings[index] for index in self._indices]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        core, self._core = self._core, None
        assert core is not None
        try:
            core.check()
            core.end()
        except _core.Error as problem:
            if error is None:
                raise
            warnings.warn(str(problem), RuntimeWarning, stacklevel=2)


def set_power_cap(gpu_num: int | str, cap: str | float) -> None:
    """Caps one GPU until the cap is set again; `cap` is as in cap(). Raises as cap() does.
    """
    core = _core.Caps()
    for index, value in core.parse(_words(cap, gpu_num)):
        core.set(index, value)


def reset_power_cap(gpu_num: int | str) -> None:
    """Sets the GPU's cap to its default. `wattmeter cap restore` instead restores the value
    from before set_power_cap().
    """
    core = _core.Caps()
    for index, _ in core.parse(f"{gpu_num}=default"):
        core.reset(index)
