# SPDX-License-Identifier: Apache-2.0
"""What small pieces of work cost, each replayed back to back for as long as a slow sensor
needs.

A sensor that moves every 100 ms says nothing of a layer that takes 50 µs, but it does of
ten thousand of them in a row. Such a block is one value; blocks of all pieces take turns
in rounds of random order, so that what drifts (temperature, clocks) is in all of them. The
values of a piece give its mean and, by Student's t, the interval of it.

When to stop must not depend on the interval, as it would then stop when the interval
happens to be too small. So the rounds are in two stages, after Stein (1945): the spread of
the first FIRST rounds says how many are needed, and it alone is in the interval. The mean
of all rounds does not depend on that spread, so the interval holds its confidence however
many there are, and also if time runs out before.
"""

from __future__ import annotations

import itertools
import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random
    from typing import Callable, Sequence

FIRST = 8

# Student's t, 97.5 %, for 1 to FIRST - 1 degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365)

# A block for the clock alone: long beside its readings, and beside what interrupts it.
_LEAST = 5e-3
_MOST = 0.05

# Of each block are left out, besides what the sensor needs, the replays in which caches and
# clocks are still those of the piece before.
_LEAD = 1e-3

_WARM = 0.2

# The part of the time that the first stage may take.
_FIRST_PART = 0.6

# The mean may still fall by that after the first stage, and the interval be as asked.
_SPARE = 1.05


def interval(
    values: Sequence[float], floor: float = 0.0, doubt: float = 0.0
) -> tuple[float, float | None, float | None]:
    """The mean, and between which values the true one lies with 95 % confidence; one value
    has no interval. `floor` is the least standard deviation that they can have, relative to
    the mean; `doubt` is what all of them may be off by in one direction."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, None, None
    half = _half(values, floor, len(values)) + doubt
    return mean, mean - half, mean + half


def _half(values: Sequence[float], floor: float, count: int) -> float:
    first = values[:FIRST]
    mean = sum(first) / len(first)
    variance = sum((value - mean) ** 2 for value in first) / (len(first) - 1)
    return _STUDENT[len(first) - 2] * math.sqrt(max(variance, (floor * mean) ** 2) / count)


class Piece:
    """What is known of a piece of work: seconds and joules of one replay, by block.

    each    what one takes, about
    floor   the least standard deviation of `joules`, from the sensor's steps, relative to
            their mean
    doubts  joules, by block: half of what the device may have taken while it was read
    goal    how many rounds it needs; 0: not known yet
    why     what it failed with; None: it did not
    """

    def __init__(self) -> None:
        self.each = 0.0
        self.seconds: list[float] = []
        self.joules: list[float] = []
        self.floor = 0.0
        self.doubts: list[float] = []
        self.goal = 0
        self.why: str | None = None

    @property
    def doubt(self) -> float:
        return sum(self.doubts) / len(self.doubts) if self.doubts else 0.0

    @property
    def decisive(self) -> tuple[list[float], float, float]:
        """The values that are to be exact, their floor and their doubt."""
        if self.joules:
            return self.joules, self.floor, self.doubt
        return self.seconds, 0.0, 0.0


class Replays:
    """Measures pieces of work by replaying them.

    run(piece, count)   runs piece number `piece` `count` times; an exception ends that
                piece alone
    clock       seconds
    energy      joules since it was called last, None where not known, and of how many
                seconds they are
    period      seconds between two new values of the slowest sensor; 0: there is none
    resolution  seconds: how exactly `energy` has the two ends of a block
    settle      periods until the sensor shows nothing of the piece before
    random      for the order, and for where in a period a block begins
    """

    def __init__(
        self,
        count: int,
        run: Callable[[int, int], None],
        clock: Callable[[], float],
        energy: Callable[[], tuple[float | None, float]],
        random: Random,
        *,
        period: float = 0.0,
        resolution: float = 0.0,
        settle: float = 1.0,
    ) -> None:
        self.pieces = [Piece() for _ in range(count)]
        self._run, self._clock, self._energy = run, clock, energy
        self._period, self._resolution = period, resolution
        self._settle = settle
        self._random = random

    def measure(self, uncertainty: float, seconds: float) -> None:
        """Until the interval of each piece is within this ratio of its mean on either side, or
        the given seconds are over."""
        self._end = self._clock() + seconds
        for number in range(len(self.pieces)):
            self._guard(number, self._calibrate)
        self._warm_up()
        self._length = self._choose_length(seconds)
        rounds = 0
        while self._round(rounds):
            rounds += 1
            if rounds == FIRST:
                for piece in self.pieces:
                    self._plan(piece, uncertainty)

    def _guard(self, number: int, step: Callable[[int], None]) -> None:
        try:
            step(number)
        except Exception as error:
            self.pieces[number].why = f"{type(error).__name__}: {error}"

    def _calibrate(self, number: int) -> None:
        self._run(number, 1)
        count, taken = 1, 0.0
        while True:
            begin = self._clock()
            self._run(number, count)
            taken = self._clock() - begin
            if taken >= _LEAST / 2:
                break
            count *= 2
        self.pieces[number].each = taken / count

    def _warm_up(self) -> None:
        """So long that each sensor is seen to move, and clocks have risen."""
        end = min(self._clock() + max(_WARM, 4 * self._period), self._end)
        for number in itertools.cycle(range(len(self.pieces))):
            if self._clock() >= end or all(one.why for one in self.pieces):
                break
            count = max(1, round(_LEAST / max(self.pieces[number].each, 1e-9)))
            if self.pieces[number].why is None:
                self._guard(number, lambda i: self._run(i, count))
        self._energy()

    def _choose_length(self, seconds: float) -> float:
        """Of a block: as long as the first stage leaves time for, within bounds."""
        lead = _LEAD + (self._settle + 0.5) * self._period
        length = _FIRST_PART * seconds / FIRST / max(1, len(self.pieces)) - lead
        most = max(_MOST, 10 * self._period)
        return max(_LEAST, 2 * self._period, min(length, most))

    def _round(self, number: int) -> bool:
        """One block of each piece that needs it; whether there is another round."""
        order = [
            i
            for i, piece in enumerate(self.pieces)
            if piece.why is None and (number < FIRST or number < piece.goal)
        ]
        self._random.shuffle(order)
        # Where in the sensor's period they begin is spread evenly over the rounds, as a
        # load in step with the sensor would show the same part of itself each time.
        self._phase = (number % FIRST + self._random.random()) / FIRST
        for i in order:
            lead, count = self._counts(self.pieces[i])
            if self._clock() + (lead + count) * self.pieces[i].each > self._end:
                return False
            self._guard(i, self._block)
        return bool(order)

    def _counts(self, piece: Piece) -> tuple[int, int]:
        """How many replays lead in a block, and how many it has."""
        lead = _LEAD + (self._settle + self._phase) * self._period
        return math.ceil(lead / piece.each), max(1, round(self._length / piece.each))

    def _block(self, number: int) -> None:
        piece = self.pieces[number]
        lead, count = self._counts(piece)
        self._run(number, lead)
        self._energy()
        begin = self._clock()
        self._run(number, count)
        taken = self._clock() - begin
        joules, elapsed = self._energy()
        piece.each = taken / count
        piece.seconds.append(taken / count)
        if joules is None:
            return
        # While devices are read the piece does not run, and a GPU draws no more than it
        # did and no less than nothing.
        lost = joules * max(0.0, 1 - taken / elapsed) / 2 if elapsed > 0 else 0.0
        piece.joules.append((joules - lost) / count)
        piece.doubts.append(lost / count)
        # Two ends, each off by anything up to the resolution.
        if len(piece.joules) <= FIRST:
            piece.floor = max(piece.floor, self._resolution / taken / math.sqrt(6))

    def missing(self, uncertainty: float) -> int:
        """How many pieces are less exact than that."""
        count = 0
        for piece in self.pieces:
            values, *bounds = piece.decisive
            if piece.why is not None:
                continue
            mean, low, high = interval(values, *bounds) if values else (0.0, None, None)
            if low is None or high is None or high - low > 2 * uncertainty * abs(mean):
                count += 1
        return count

    def _plan(self, piece: Piece, uncertainty: float) -> None:
        values, floor, doubt = piece.decisive
        if piece.why is not None or len(values) < 2:
            return
        asked = uncertainty * abs(sum(values) / len(values)) / _SPARE - doubt
        if asked > 0:
            piece.goal = math.ceil((_half(values, floor, 1) / asked) ** 2)
