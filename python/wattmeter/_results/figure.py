# SPDX-License-Identifier: Apache-2.0
"""Figures: numbers with their unit, and what is known of them."""

from __future__ import annotations

import math

from wattmeter import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable


class Figure:
    """A number with what is known of it.

    key     its name: "energy", "max_ram.main.total_rss"
    value   a float in SI base units, but for percentages; None: it is missing
    unit    "s", "J", "W", "B", "percent", "ratio", "celsius", "count"
    low, high  the truth lies between them with 95 % confidence; None: not known
    state   "known", "missing", or "at least": it may have been higher
    origin  "measured", "estimated" or "simulated"
    why     why it is missing, or another reason; None: no reason

    A figure that is missing is false, every other one is true, also 0. float() and comparing
    raise ValueError with the reason where it is missing. Figures of one unit are compared by
    value, added and subtracted; TypeError: of another unit. A figure is multiplied and
    divided by a number that is not negative. Joules by seconds are watts, and two figures of
    one unit have a ratio. The range of a sum or a quotient is as wide as all errors together.
    It is missing if one of the two is missing.
    """

    __slots__ = ("key", "value", "unit", "low", "high", "state", "origin", "why")

    def __init__(
        self,
        key: str,
        value: float | None,
        unit: str,
        low: float | None = None,
        high: float | None = None,
        state: str = "known",
        origin: str = "measured",
        why: str | None = None,
    ) -> None:
        self.key = key
        self.value = value
        self.unit = unit
        self.low = low
        self.high = high
        self.state = state
        self.origin = origin
        self.why = why

    @classmethod
    def _of(cls, figure: _core.Figure) -> Figure:
        return cls(
            figure.key,
            figure.value,
            figure.unit,
            figure.low,
            figure.high,
            figure.state,
            figure.origin,
            figure.why,
        )

    @property
    def uncertainty(self) -> float | None:
        """Half of the range from low to high, in the unit; None: not known."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2

    def __float__(self) -> float:
        if self.value is None:
            raise ValueError(
                f"{self.key} is missing: {self.why or 'no reason is known'}"
            )
        return float(self.value)

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self), digits)

    def __bool__(self) -> bool:
        return self.value is not None

    def __str__(self) -> str:
        return _core.figure_text(
            self.value,
            self.unit,
            self.low,
            self.high,
            self.state,
            self.origin,
            self.why,
        )

    def _check_unit(self, other: Figure) -> None:
        if other.unit != self.unit:
            raise TypeError(f"{self.key} is in {self.unit}, {other.key} in {other.unit}")

    def _same(self, other: Figure | float) -> float:
        """The other value, if it can be set beside this one."""
        if isinstance(other, Figure):
            self._check_unit(other)
        return float(other)

    def __lt__(self, other: Figure | float) -> bool:
        return float(self) < self._same(other)

    def __le__(self, other: Figure | float) -> bool:
        return float(self) <= self._same(other)

    def __gt__(self, other: Figure | float) -> bool:
        return float(self) > self._same(other)

    def __ge__(self, other: Figure | float) -> bool:
        return float(self) >= self._same(other)

    def __add__(self, other: Figure) -> Figure:
        return self._total(other, [self, other], [])

    def __radd__(self, other: object) -> Figure:
        """sum() begins with 0."""
        return self if other == 0 and not isinstance(other, Figure) else NotImplemented

    def __sub__(self, other: Figure) -> Figure:
        return self._total(other, [self], [other])

    def _total(self, other: Figure, more: list[Figure], less: list[Figure]) -> Figure:
        if not isinstance(other, Figure):
            return NotImplemented
        self._check_unit(other)
        return total(self.key, self.unit, more, less)

    def __mul__(self, factor: float) -> Figure:
        if isinstance(factor, Figure):
            return NotImplemented
        if factor < 0:
            raise ValueError(f"{self.key} is multiplied by {factor}, which is negative")
        value, low, high = (
            None if number is None else number * factor
            for number in (self.value, self.low, self.high)
        )
        return Figure(
            self.key, value, self.unit, low, high, self.state, self.origin, self.why
        )

    __rmul__ = __mul__

    def __truediv__(self, divisor: float | Figure) -> Figure:
        return _quotient(self, divisor) if isinstance(divisor, Figure) else self * (1 / divisor)

    def __format__(self, spec: str) -> str:
        """As a float's; of a missing one "n/a", in the same width."""
        if spec and self.value is None:
            import re

            place = re.match(r"(?:.?[<>=^])?[^.1-9]*(\d*)", spec)
            return "n/a".rjust(int(place[1] or 0) if place else 0)
        return format(float(self), spec) if spec else str(self)

    def __repr__(self) -> str:
        return f"<Figure {self.key}: {self}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Figure):
            return NotImplemented
        return all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]


_ORIGINS = ("measured", "estimated", "simulated")


def _reasons(missing: list[Figure]) -> str:
    """Each once: "without cpu, dram: no permission; without gpu: no driver"."""
    keys: dict[str | None, list[str]] = {}
    for figure in missing:
        keys.setdefault(figure.why, []).append(figure.key)
    return "; ".join(f"without {', '.join(k)}: {why}" for why, k in keys.items())


def total(
    key: str,
    unit: str,
    figures: Iterable[Figure],
    less: Iterable[Figure] = (),
    *,
    of_known: bool = False,
    independent: bool = False,
) -> Figure:
    """The sum of figures, less others, by the rules of the report: missing where one of
    them is, at least so much where one is, and of the origin that is worst.

    of_known     as the energy of CPUs, memory and GPUs together: what is missing is left
                 out, and `why` has it
    independent  their errors are, and add up in quadrature
    """
    signed = [*((1, figure) for figure in figures), *((-1, figure) for figure in less)]
    missing = [figure for _, figure in signed if figure.value is None]
    known = [pair for pair in signed if pair[1].value is not None]
    lacking = [pair for pair in known if pair[1].state == "at least"]
    why = _reasons(missing) if of_known else next((one.why for one in missing), None)
    if missing and not (of_known and known):
        return Figure(key, None, unit, state="missing", why=why)
    if any(sign < 0 for sign, _ in lacking):
        why = "how much less is known as at least so much"
        return Figure(key, None, unit, state="missing", why=why)
    value = sum((sign * float(figure) for sign, figure in known), 0.0)
    low: float | None = None
    high: float | None = None
    halves = [half for _, one in known if (half := one.uncertainty) is not None]
    if independent and halves and len(halves) == len(known):
        half = math.sqrt(sum(half**2 for half in halves))
        low, high = value - half, value + half
    elif halves and len(halves) == len(known):
        ends = [(s * (f.low or 0.0), s * (f.high or 0.0)) for s, f in known]
        low, high = sum(map(min, ends)), sum(map(max, ends))
    return Figure(
        key,
        value,
        unit,
        low,
        high,
        "at least" if lacking else "known",
        max((figure.origin for _, figure in known), key=_ORIGINS.index, default="measured"),
        why or next((figure.why for _, figure in lacking), None),
    )


def _unit_of_quotient(figure: Figure, divisor: Figure) -> str:
    if figure.unit == divisor.unit:
        return "ratio"
    if (figure.unit, divisor.unit) == ("J", "s"):
        return "W"
    raise TypeError(
        f"{figure.key} is in {figure.unit}, {divisor.key} in {divisor.unit}: only joules by "
        "seconds and two figures of one unit are divided; a report has its mean watts as .power"
    )


def _ends(figure: Figure) -> tuple[float, float] | None:
    """The range; clocks are exact where theirs is not known."""
    if figure.low is not None and figure.high is not None:
        return figure.low, figure.high
    return (float(figure), float(figure)) if figure.unit == "s" else None


def _quotient(figure: Figure, divisor: Figure) -> Figure:
    key, unit = f"{figure.key} / {divisor.key}", _unit_of_quotient(figure, divisor)
    lacking = divisor.state == "at least"
    if figure.value is None or divisor.value is None or lacking:
        why = f"{divisor.key} is known as at least so much" if lacking else None
        why = figure.why if figure.value is None else why or divisor.why
        return Figure(key, None, unit, state="missing", why=why)
    if not divisor.value:
        raise ZeroDivisionError(f"{figure.key} is divided by {divisor.key}, which is 0")
    of, by = _ends(figure), _ends(divisor)
    low: float | None = None
    high: float | None = None
    why = figure.why
    if of and by and (by[0] > 0 or by[1] < 0):
        ends = [end / other for end in of for other in by]
        low, high = min(ends), max(ends)
    elif of and by:
        why = why or f"{divisor.key} may be 0, so {key} has no limits"
    origin = max(figure.origin, divisor.origin, key=_ORIGINS.index)
    value = figure.value / divisor.value
    return Figure(key, value, unit, low, high, figure.state, origin, why)
