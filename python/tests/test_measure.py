# SPDX-License-Identifier: Apache-2.0
"""measure(): the joules of snippets."""

import os
import threading
import time

import pytest

import wattmeter
from wattmeter._results.figure import Figure, total


def test_a_snippet(fake_gpus):
    fake_gpus("constant")
    begun = time.monotonic()
    with wattmeter.measure() as m:
        time.sleep(0.25)
    assert 0.25 <= m.seconds <= time.monotonic() - begun
    assert m.gpu.origin == "simulated" and float(m.gpu) > 0
    assert m.gpu.low <= m.gpu.value <= m.gpu.high
    assert float(m.energy) >= float(m.gpu)
    assert "gpu0" in m.devices
    assert "GPUs" in str(m) and "J" in repr(m)


def test_what_nothing_knows_is_missing_with_a_reason(no_gpus):
    with wattmeter.measure(gpus="none", estimate=False) as m:
        pass
    for figure in (m.energy, m.cpu, m.dram, m.gpu):
        assert figure.value is None and figure.state == "missing" and figure.why
    with pytest.raises(ValueError):
        float(m.energy)


def test_a_reason_is_given_once(no_gpus):
    with wattmeter.measure(gpus="none", estimate=False) as m:
        pass
    if m.cpu.why != m.dram.why:
        pytest.skip("one of them is known here, or missing for another reason")
    assert str(m).count(m.cpu.why) == 1 and "memory n/a (as CPU)" in str(m)
    assert m.energy.why.count(m.cpu.why) == 1 and "without cpu, dram: " in m.energy.why
    assert m.cpu.why not in repr(m)


def test_what_nothing_measures_is_estimated_and_says_so(no_gpus):
    with wattmeter.measure(cpu_watts="10:100") as m:
        time.sleep(0.2)
    assert m.cpu.origin == "estimated" and 1 < float(m.cpu) < 50
    assert m.energy.value == pytest.approx(float(m.cpu) + (m.dram.value or 0))
    assert m.gpu.value is None and "without gpu: " in m.energy.why


def test_snippets_nest_and_end_in_other_threads(no_gpus):
    with wattmeter.measure() as outer:
        inner = wattmeter.measure().start()
        time.sleep(0.02)
        thread = threading.Thread(target=inner.stop)
        thread.start()
        thread.join()
        time.sleep(0.02)
    assert 0.02 <= inner.seconds < outer.seconds


def test_order(no_gpus):
    m = wattmeter.measure()
    assert m.seconds is None and m.energy.value is None and "nothing" in str(m)
    with pytest.raises(ValueError, match="not been started"):
        m.stop()
    assert m.start() is m
    with pytest.raises(ValueError, match="started already"):
        m.start()
    assert m.stop() is m
    with m:
        pass
    assert m.seconds < 1


def test_a_decorated_function_is_a_snippet_each_call(no_gpus):
    m = wattmeter.measure(cpu_watts="10:100")

    @m
    def step(x):
        time.sleep(0.02)
        return 1 / x

    assert m.seconds is None and step(2) == 0.5
    first = m.seconds, m.energy
    assert first[0] >= 0.02 and m.cpu and m.devices
    with pytest.raises(ZeroDivisionError):
        step(0)
    assert m.seconds >= 0.02 and (m.seconds, m.energy) != first


def test_an_exception_goes_through(no_gpus):
    with pytest.raises(KeyError):
        with wattmeter.measure() as m:
            raise KeyError("mine")
    assert m.seconds is not None


@pytest.mark.parametrize("options", [{"gpus": "nonsense"}, {"cpu_watts": "x"}])
def test_wrong_options_are_refused(options):
    with pytest.raises(ValueError):
        wattmeter.measure(**options).start()


def test_a_forked_child_measures_for_itself(no_gpus):
    with wattmeter.measure() as m:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                assert m.stop() is m and m.seconds is None
                with wattmeter.measure() as own:
                    time.sleep(0.02)
                status = 0 if own.seconds >= 0.02 else 2
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
    assert status == 0
    assert m.seconds > 0


def test_no_thread_is_left_waiting(no_gpus):
    for _ in range(20):
        with wattmeter.measure():
            pass
    before = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    for _ in range(500):
        with wattmeter.measure():
            pass
    assert (
        len(os.listdir("/proc/self/task")),
        len(os.listdir("/proc/self/fd")),
    ) == before


def test_a_gpu_within_a_module_is_lacking(fake_gpus, tmp_path, monkeypatch, python):
    """The driver reports the module's power, which has the CPU's in it."""
    fake_gpus("everything")
    scenario = tmp_path / "module.json"
    scenario.write_text(
        '{"gpus": [{"name": "SIMULATED GH200", "power": 300, "power_module": 520,'
        ' "power_instant_scopes": [1], "power_average_scopes": [1]}]}'
    )
    socket = tmp_path / "class/hwmon/hwmon0"
    socket.mkdir(parents=True)
    for name, text in (
        ("name", "power_meter"),
        ("power1_average", "220000000"),
        ("power1_average_interval", "50"),
        ("power1_oem_info", "Grace Power Socket 0"),
    ):
        (socket / name).write_text(text + "\n")
    monkeypatch.setenv("FAKE_NVML_SCENARIO", str(scenario))
    monkeypatch.setenv("WATTMETER_SYSFS", str(tmp_path))
    said = python(
        "import time, wattmeter\n"
        "with wattmeter.measure() as m: time.sleep(0.5)\n"
        "print(m.gpu.why, m.cpu.state, m.energy.state, m.energy.value == m.cpu.value)"
    ).stdout
    assert "the whole module only" in said and said.endswith(" known at least True\n")


def joules(value, half=None, state="known", origin="measured", why=None, key="cpu"):
    low, high = (None, None) if half is None else (value - half, value + half)
    value = None if value is None else float(value)
    return Figure(key, value, "J", low, high, state, origin, why)


GONE = joules(None, state="missing", why="no driver", key="gpu")


@pytest.mark.parametrize(
    ("figures", "less", "options", "expected"),
    [
        ([], [], {}, (0.0, None, None, "known", "measured", None)),
        ([joules(2, 1), joules(3, 1)], [], {}, (5, 3, 7, "known", "measured", None)),
        ([joules(9, 3)], [joules(2, 4)], {}, (7, 0, 14, "known", "measured", None)),
        (
            [joules(9, 3)],
            [joules(2, 4)],
            {"independent": True},
            (7, 2, 12, "known", "measured", None),
        ),
        ([joules(2, 1), joules(3)], [], {}, (5, None, None, "known", "measured", None)),
        (
            [joules(2, origin="simulated"), joules(3, origin="estimated")],
            [],
            {},
            (5, None, None, "known", "simulated", None),
        ),
        (
            [joules(2), joules(3, state="at least", why="of 3 s")],
            [],
            {},
            (5, None, None, "at least", "measured", "of 3 s"),
        ),
        (
            [joules(9)],
            [joules(3, state="at least", why="of 3 s")],
            {},
            (None, None, None, "missing", "measured")
            + ("how much less is known as at least so much",),
        ),
        ([joules(2), GONE], [], {}, (None, None, None, "missing", "measured", "no driver")),
        (
            [joules(2, 1), GONE],
            [],
            {"of_known": True},
            (2, 1, 3, "known", "measured", "without gpu: no driver"),
        ),
        (
            [joules(2, 1, "at least", why="of 3 s"), GONE],
            [],
            {"of_known": True},
            (2, 1, 3, "at least", "measured", "without gpu: no driver"),
        ),
        (
            [GONE, GONE],
            [],
            {"of_known": True},
            (None, None, None, "missing", "measured", "without gpu, gpu: no driver"),
        ),
    ],
)
def test_sums_of_figures(figures, less, options, expected):
    assert total("sum", "J", figures, less, **options) == Figure(
        "sum", expected[0], "J", *expected[1:]
    )


def test_figures_calculate_with_their_units_and_ranges():
    ten, five, much = joules(10, 1), joules(5, 1), joules(2543.2)
    assert (ten + five, ten - five) == (joules(15, 2), joules(5, 2))
    assert sum([ten, five]) == ten + five and ten / 4 == joules(2.5, 0.25)
    assert 2 * five == five * 2 == joules(10, 2)
    assert five < ten and ten >= 10 and five <= 5.0 and ten > 9 and round(much, -1) == 2540
    assert [str(one) for one in (ten, five, much)] == ["10.0 J ± 10 %", "5.0 J ± 20 %", "2.54 kJ"]
    assert str(joules(3.913, 2, origin="estimated")) == "about 4 J ± 51 % (estimated)"
    assert (ten - GONE).value is None and (ten - GONE).why == GONE.why
    assert str(five - five) == "about 0 J (-2 J to 2 J)"


SECONDS = Figure("time", 2.0, "s")
NO_TIME = Figure("time", None, "s", state="missing", why="gone")


@pytest.mark.parametrize(
    ("figure", "divisor", "expected"),
    [
        (joules(10, 1, origin="estimated"), SECONDS, (5, "W", 4.5, 5.5, "known", "estimated")),
        (joules(10, 2), joules(5, 1), (2, "ratio", 8 / 6, 3, "known", "measured")),
        (joules(10, 2), joules(-5, 1), (-2, "ratio", -3, -8 / 6, "known", "measured")),
        (joules(10), joules(5, 1), (2, "ratio", None, None, "known", "measured")),
        (joules(10, 1, "at least"), SECONDS, (5, "W", 4.5, 5.5, "at least", "measured")),
        (
            joules(10, 1),
            joules(5, 6),
            (
                2, "ratio", None, None, "known", "measured",
                "cpu may be 0, so cpu / cpu has no limits",
            ),
        ),
        (
            joules(10),
            joules(5, state="at least"),
            (None, "ratio", None, None, "missing", "measured", "cpu is known as at least so much"),
        ),
        (GONE, SECONDS, (None, "W", None, None, "missing", "measured", GONE.why)),
        (SECONDS, NO_TIME, (None, "ratio", None, None, "missing", "measured", "gone")),
    ],
)
def test_a_figure_divided_by_another(figure, divisor, expected):
    quotient = figure / divisor
    assert quotient == Figure(f"{figure.key} / {divisor.key}", *expected)


def test_figures_that_do_not_go_together():
    ten, seconds = joules(10), SECONDS
    assert ten and joules(0) and not GONE
    for wrong in (
        lambda: ten + seconds,
        lambda: ten < seconds,
        lambda: ten + 1,
        lambda: ten * ten,
        lambda: seconds / ten,
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="time is in s, .* in J: .*\\.power"):
        seconds / ten
    with pytest.raises(ZeroDivisionError, match="which is 0"):
        ten / joules(0)
    with pytest.raises(ValueError, match=GONE.why):
        GONE > 1
    with pytest.raises(ValueError, match="negative"):
        ten * -1
