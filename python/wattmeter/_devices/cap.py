# SPDX-License-Identifier: Apache-2.0
"""cap(), set_power_cap(), reset_power_cap(): power caps."""

from __future__ import annotations

import numbers
import warnings

from wattmeter import _core
from wattmeter._track import caps_held

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
        amount = f"{caps:.6f}".rstrip("0").rstrip(".")
    if gpu is None:
        return amount
    if "=" in amount:
        raise ValueError("caps that name their GPU leave no room for `gpu`")
    return f"{gpu}={amount}"


def _text(kind: str, number: float) -> str:
    return f"{number / 1e6:.5g} MHz" if kind == "gpu_clock" else f"{number:.5g} W"


def _result(core: _core.Caps, index: int, asked: float) -> str:
    """What holds after a change, as `run --cap` notes it. Warns if it is another cap than
    the one that was asked for."""
    setting = core.settings()[index]
    wanted = _text(setting.kind, asked)
    if setting.enforced is None or _text(setting.kind, setting.enforced) == wanted:
        return f"{setting.device} {wanted}"
    holds = _text(setting.kind, setting.enforced)
    text = f"{setting.device} {wanted} asked for, {holds} enforced"
    warnings.warn(text, RuntimeWarning, stacklevel=3)
    return text


class cap:
    """Power caps for a block of a program; then the previous caps are restored:

        with wattmeter.cap(200):
            train()

    caps    watts; a fraction of the default up to 1; or a text as `wattmeter run --cap`
            has it: "250W", "80%", "0=200W,1=80%", "cpu=90W", "0=1200MHz"
    gpu     which one, a number, identity or label; None: all

    The previous caps are restored however the program ends, even after kill -9. Raises
    ValueError for a cap that cannot be, and Error: "EACCES" where this user may not set it,
    "EEXIST" where another program holds the GPU, "ENODEV" where it cannot be capped;
    nothing has changed then. It warns if the driver enforces another cap. Reports of what is
    measured in the block have the caps as the note "cap". At the end Error "ECANCELED" says
    that somebody else has changed a cap meanwhile, which is left alone.
    """

    def __init__(self, caps: str | float, gpu: int | str | None = None) -> None:
        self._asked = _words(caps, gpu)
        self._core: _core.Caps | None = None

    def __enter__(self) -> cap:
        if self._core is not None:
            raise RuntimeError("these caps are held already")
        core = _core.Caps()
        results: list[str] = []
        try:
            wishes = core.parse(self._asked)
            for index, value in wishes:
                core.hold(index, value)
                results.append(_result(core, index, value))
        except BaseException:
            core.end()
            raise
        self._core = core
        self._indices = [index for index, _ in wishes]
        self._note = ", ".join(results)
        caps_held.append(self._note)
        return self

    def __repr__(self) -> str:
        return f"<wattmeter.cap: {self._note if self._core else f'{self._asked}, not held'}>"

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
        caps_held.remove(self._note)
        assert core is not None
        try:
            core.check()
            core.end()
        except _core.Error as problem:
            if error is None:
                raise
            warnings.warn(str(problem), RuntimeWarning, stacklevel=2)


def set_power_cap(gpu_num: int | str, cap: str | float) -> None:
    """Caps one GPU until somebody sets something else; `cap` is as in cap(). Raises
    and warns as cap() does.
    """
    core = _core.Caps()
    for index, value in core.parse(_words(cap, gpu_num)):
        core.set(index, value)
        _result(core, index, value)


def reset_power_cap(gpu_num: int | str) -> None:
    """Sets the GPU's cap to its default. `wattmeter cap restore` instead restores the value
    from before set_power_cap().
    """
    core = _core.Caps()
    for index, _ in core.parse(f"{gpu_num}=default"):
        core.reset(index)
