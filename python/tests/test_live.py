# SPDX-License-Identifier: Apache-2.0
"""live.plot(): what it draws, on which axes, and that it delays no sample."""

import os
import time

import pytest

import wattmeter
import wattmeter.live
from machine import set_counter

pytest.importorskip("matplotlib")
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402


@pytest.fixture
def figure():
    made = Figure(figsize=(8, 6))
    FigureCanvasAgg(made)
    return made


def until(is_so, plot):
    """Draws until `is_so()`."""
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        plot.update()
        time.sleep(0.01)


def test_what_is_not_measured_says_so(fake_gpus, figure):
    fake_gpus("square")
    with wattmeter.live.plot(figure=figure, block=False) as p:
        channels = p.track._tracker.channels
        origins = [channels[series.place].origin for series in p._series]
        assert "simulated" in origins
        for line, origin in zip(p.axes.lines, origins):
            is_real = origin == "measured"
            assert (f"({origin})" in line.get_label()) == (not is_real)
            assert line.get_linestyle() == ("-" if is_real else "--")


def test_lines_and_axes(fake_gpus, figure):
    fake_gpus("square")  # 100 W and 500 W in turns of 100 ms
    with wattmeter.live.plot(
        figure=figure, block=False, interval=0.01, refresh=0.01, window=0.5
    ) as p:
        line = p.axes.lines[0]
        assert line.get_label().startswith("gpu0 ")
        until(lambda: len(line.get_xdata()) > 45, p)
        times, watts = list(line.get_xdata()), list(line.get_ydata())
        assert {100.0, 500.0} == set(watts)
        assert times == sorted(times) and times[-1] - times[0] <= 0.5
        drawn = [x for l in p.axes.lines for x in l.get_xdata()]
        values = [y for l in p.axes.lines for y in l.get_ydata()]
        assert p.axes.get_xlim() == (min(drawn), max(drawn) + 1)
        margin = (max(values) - min(values)) / 10 + 0.1
        assert p.axes.get_ylim() == pytest.approx(
            (min(values) - margin, max(values) + margin)
        )
        assert p.axes.get_ylabel() == "Power (W)"
        assert p.axes.get_xlabel() == "Time (s)"

        # The picture has the line, in its own colour.
        picture = bytes(p.figure.canvas.buffer_rgba())
        assert picture.count(bytes((0x1F, 0x77, 0xB4, 0xFF))) > 100
    assert p.track.report.info["is_complete"]


def test_drawing_delays_no_sample(no_gpus, figure):
    with wattmeter.live.plot(
        "load1", figure=figure, block=False, interval=0.01, refresh=0.01
    ) as p:
        line = p.axes.lines[0]
        until(lambda: len(line.get_xdata()) > 2, p)
        before = len(line.get_xdata())
        end = time.monotonic() + 0.5  # a slow picture
        while time.monotonic() < end:
            pass
        p.update()
        # Samples that waited for the picture would be one.
        assert len(line.get_xdata()) - before > 4


def test_power_of_a_counter(machine):
    counter = machine.add_package(joules=1000)
    out = machine.start("""
        import sys, time, wattmeter.live
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        figure = Figure(); FigureCanvasAgg(figure)
        p = wattmeter.live.plot(figure=figure, block=False, interval=0.02, refresh=0.02)
        line = p.axes.lines[0]
        print(line.get_label(), flush=True)
        while not max(line.get_ydata(), default=0):
            p.update(); time.sleep(0.01)
        times, watts = list(line.get_xdata()), list(line.get_ydata())
        place = watts.index(max(watts))
        print(watts[place] * (times[place] - times[place - 1]))
        p.stop()
        """)
    assert out.stdout.readline().startswith("package0")
    time.sleep(0.2)
    set_counter(counter, 1003)
    text, err = out.communicate(timeout=300)
    assert out.returncode == 0, err
    assert float(text) == pytest.approx(3)


def test_it_ends_by_itself(no_gpus, figure):
    p = wattmeter.live.plot("load1", figure=figure, seconds=0.3, refresh=0.05)
    assert p.track.report.time.value >= 0.3
    assert len(p.axes.lines[0].get_xdata()) > 1


def test_what_cannot_be_drawn(no_gpus, figure):
    with pytest.raises(ValueError, match="nothing here has the metric 'watts'; there"):
        wattmeter.live.plot("watts", figure=figure, block=False)
    with pytest.raises(ValueError, match="refresh must be a number of seconds"):
        wattmeter.live.plot(refresh=0, figure=figure, block=False)
    with pytest.raises(ValueError, match="interval"):
        wattmeter.live.plot(interval=1e-9, figure=figure, block=False)


def test_no_window(machine):
    out = machine.run("""
        import matplotlib, wattmeter.live
        matplotlib.use("Agg")
        try:
            wattmeter.live.plot()
        except ValueError as error:
            print(error)
        """)
    assert out.lower().startswith("matplotlib has no window here (its backend is agg)")


def test_notebook(machine, tmp_path, monkeypatch):
    """A real kernel: the cell shows a picture, which is replaced while the block runs."""
    client_of = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    code = """
import time, wattmeter.live
with wattmeter.live.plot("load1", interval=0.02, refresh=0.05) as p:
    while len(p.axes.lines[0].get_xdata()) < 5:
        time.sleep(0.05)
p.track.report.time.value > 0
"""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    kernel, client = client_of.start_new_kernel(
        env={**os.environ, **machine.variables, "IPYTHONDIR": str(tmp_path)},
    )
    shown = []

    def take(message):
        kind, content = message["header"]["msg_type"], message["content"]
        if kind in ("display_data", "update_display_data"):
            shown.append((kind, content["data"], content["transient"]["display_id"]))
        assert kind != "error", content

    try:
        reply = client.execute_interactive(code, timeout=300, output_hook=take)
        assert reply["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    assert shown[0][0] == "display_data"
    assert shown[-1][0] == "update_display_data"
    assert len({display_id for *_, display_id in shown}) == 1
    assert all("image/png" in data for _, data, _ in shown)
