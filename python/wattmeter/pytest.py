# SPDX-License-Identifier: Apache-2.0
"""pytest with energy: budgets for tests, and a table of what they cost.

    import pytest, wattmeter.pytest

    @pytest.mark.energy(max_joules=5, max_seconds=0.1)
    def test_step():
        step()

    def test_inference(energy):
        model = load()
        cost = energy(model.infer, image, max_joules=2, repeats=20)
        print(cost.time, cost.energy)

`@pytest.mark.energy(max_joules=None, max_seconds=None, repeats=6)`, with one limit or both,
calls the test again and again with the same fixtures, and takes the median of the runs; a run
of a short test has many calls. The test fails only where the whole 95 % interval of a median
lies above its limit. The fixture does so with a function instead of the test.
`pytest --wattmeter` also measures the tests that have neither, in one run each. Joules are
the machine's, so tests that run side by side (pytest-xdist) pay for each other.

The plugin is there where wattmeter was installed by pip; elsewhere `-p wattmeter.pytest`.
"""

from __future__ import annotations

import inspect
import numbers
import unittest

import pytest

from wattmeter._repeat import cost_of_call
from wattmeter._results.figure import Figure
from wattmeter._track import track

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

# Of fewer runs there is no interval of the median.
LEAST_REPEATS = 6
LIMITS = {"max_seconds": "time", "max_joules": "energy"}


class Cost:
    """What a call costs: Figures `time` and `energy`, of `runs` runs."""

    def __init__(self, figures: dict[str, Figure], runs: int) -> None:
        self.time, self.energy = figures["time"], figures["energy"]
        self.runs = runs

    def __repr__(self) -> str:
        return f"<Cost: {self.time}, {self.energy}>"


class _Budget:
    """The limits of a test, and how often it runs."""

    def __init__(
        self,
        max_joules: float | None = None,
        max_seconds: float | None = None,
        repeats: int = LEAST_REPEATS,
    ) -> None:
        for name, limit in (("max_joules", max_joules), ("max_seconds", max_seconds)):
            is_number = isinstance(limit, numbers.Real) and not isinstance(limit, bool)
            if limit is not None and not (is_number and limit > 0):
                raise ValueError(f"{name}={limit!r} is not a number above 0")
        if not isinstance(repeats, int) or repeats < LEAST_REPEATS:
            raise ValueError(
                f"repeats={repeats!r} is not a whole number from {LEAST_REPEATS} on: "
                "fewer runs have no interval"
            )
        self.limits = {"energy": max_joules, "time": max_seconds}
        self.repeats = repeats

    def check(self, cost: Cost) -> list[str]:
        """What lies above its limit."""
        found = []
        for key, limit in self.limits.items():
            figure: Figure = getattr(cost, key)
            if limit is not None and figure.low is not None and figure.low > limit:
                most = Figure(key, limit, figure.unit)
                found.append(
                    f"{key} of a call: {_with_range(figure)}, {cost.runs} runs; "
                    f"at most {most} wanted"
                )
        return found


def _with_range(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return str(figure)
    ends = [str(Figure(figure.key, end, figure.unit)) for end in (figure.low, figure.high)]
    origin = "" if figure.origin == "measured" else f", {figure.origin}"
    return f"{Figure(figure.key, figure.value, figure.unit)} (95 %: {ends[0]} to {ends[1]}{origin})"


def _budget_of(item: pytest.Item) -> _Budget | None:
    mark = item.get_closest_marker("energy")
    return _Budget(*mark.args, **mark.kwargs) if mark else None


def _arguments_of(item: pytest.Item) -> str:
    mark = item.get_closest_marker("energy")
    named = [f"{name}={value!r}" for name, value in mark.kwargs.items()] if mark else []
    return ", ".join([*map(repr, mark.args if mark else ()), *named])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("wattmeter").addoption(
        "--wattmeter",
        action="store_true",
        help="show the time and the energy of each test, in a table at the end",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "energy(max_joules=None, max_seconds=None, repeats=6): repeat the test, and fail where "
        "the 95 % interval of what it costs lies above a limit (wattmeter)",
    )


def _mistake_in(item: pytest.Item) -> str | None:
    """What is wrong with the mark of a test."""
    try:
        budget = _budget_of(item)
    except TypeError:
        return f"it takes max_joules, max_seconds and repeats, not {_arguments_of(item)}"
    except ValueError as error:
        return str(error)
    if budget and not any(budget.limits.values()):
        return "give max_joules or max_seconds; `pytest --wattmeter` measures without a limit"
    if budget and not _can_repeat(item):
        return (
            "only plain test functions are repeated, not coroutines or methods of "
            "unittest.TestCase"
        )
    return None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Here a mistake is the error of one test, and the others run."""
    mistake = _mistake_in(item)
    if mistake:
        pytest.fail(f"@pytest.mark.energy: {mistake}", pytrace=False)


def _can_repeat(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function) or inspect.iscoroutinefunction(item.obj):
        return False
    return not (item.cls and issubclass(item.cls, unittest.TestCase))


def _keep(item: pytest.Item, cost: Cost, limits: dict[str, float | None]) -> None:
    """With the test's report, which other processes of pytest pass on."""
    row: dict[str, object] = {"runs": cost.runs}
    for key, limit in limits.items():
        figure: Figure = getattr(cost, key)
        row[key] = {name: getattr(figure, name) for name in Figure.__slots__}
        row[f"{key}_limit"] = limit
    item.user_properties.append(("wattmeter", row))


def _measure(item: pytest.Item, budget: _Budget, work: Callable[[], object]) -> Cost:
    cost = Cost(cost_of_call(work, budget.repeats), budget.repeats)
    _keep(item, cost, budget.limits)
    above = budget.check(cost)
    if above:
        pytest.fail("\n".join(above), pytrace=False)
    return cost


@pytest.fixture
def energy(request: pytest.FixtureRequest) -> Callable[..., Cost]:
    """energy(function, *arguments, max_joules=None, max_seconds=None, repeats=6, **keywords)
    measures calls of the function, and fails the test where a limit is exceeded; the result
    is their Cost."""

    def measure(
        function: Callable[..., object],
        *arguments: Any,
        max_joules: float | None = None,
        max_seconds: float | None = None,
        repeats: int = LEAST_REPEATS,
        **keywords: Any,
    ) -> Cost:
        try:
            budget = _Budget(max_joules, max_seconds, repeats)
        except ValueError as error:
            pytest.fail(f"energy(): {error}", pytrace=False)
        return _measure(request.node, budget, lambda: function(*arguments, **keywords))

    return measure


@pytest.hookimpl(hookwrapper=True, tryfirst=True)  # type: ignore[untyped-decorator, unused-ignore]
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    budget, test = _budget_of(pyfuncitem), pyfuncitem.obj
    if budget:
        pyfuncitem.obj = lambda **fixtures: _measure(
            pyfuncitem, budget, lambda: test(**fixtures)
        ) and None
    try:
        yield
    finally:
        pyfuncitem.obj = test


@pytest.hookimpl(hookwrapper=True)  # type: ignore[untyped-decorator, unused-ignore]
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    names = getattr(item, "fixturenames", ())
    if not item.config.getoption("--wattmeter") or _budget_of(item) or "energy" in names:
        yield
        return
    with track() as tracking:
        yield
    report = tracking.report
    figures = {"time": report["compute_time.time"], "energy": report["energy"]}
    _keep(item, Cost(figures, 1), {"energy": None, "time": None})


def pytest_terminal_summary(terminalreporter: Any) -> None:
    rows = [
        (report.nodeid, row)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, row in report.user_properties
        if name == "wattmeter"
    ]
    if not rows:
        return
    terminalreporter.section("time and energy of a call")
    width = max(len(nodeid) for nodeid, _ in rows)
    for nodeid, row in rows:
        cells = [_cell(row, key) for key in ("time", "energy")]
        runs = f"{row['runs']} run{'s' if row['runs'] > 1 else ''}"
        terminalreporter.write_line(f"{nodeid:{width}}  {runs:>7}  {';  '.join(cells)}")
    if any(row["energy"]["origin"] == "estimated" for _, row in rows):
        terminalreporter.write_line("estimated: nothing here measures the energy of the CPUs")


def _cell(row: dict[str, Any], key: str) -> str:
    figure, limit = Figure(**row[key]), row[f"{key}_limit"]
    if limit is None:
        return _with_range(figure)
    if figure.high is None or figure.low is None:
        verdict = "not tested"
    else:
        verdict = "ok" if figure.high <= limit else "above" if figure.low > limit else "near"
    return f"{_with_range(figure)}, {verdict}: at most {Figure(key, limit, figure.unit)}"
