# SPDX-License-Identifier: Apache-2.0
"""plot(): power, or any other metric, over the last seconds, while it is measured; in a
window of matplotlib's or in a notebook. animate(): a film of a recording."""

from __future__ import annotations

import time
from collections import deque

from wattmeter import _core
from wattmeter._track import track

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    from wattmeter._devices.gpus import Choice
    from wattmeter._plot import Recordings, Size
    from wattmeter._results.report import Path, Report

# Of the metrics whose own unit is not what people read: the label, and the factor.
_READ_AS = {"B": ("GB", 1e-9), "ratio": ("%", 100.0), "celsius": ("°C", 1.0)}
_OK = 1  # of the states of samples()
_LINES_MAX = 12  # with a name each in the legend


class _Series:
    """A line: what a channel was in the last seconds. A counter is shown by its growth in
    a second."""

    def __init__(self, place: int, channel: _core.Channel) -> None:
        self.place = place
        self.label = channel.label
        if channel.model:
            self.label += f" {channel.model}"
        self.style = "-"
        if channel.origin != "measured":
            self.label += f" ({channel.origin})"
            self.style = "--"
        self._is_counter = channel.kind == "counter"
        self._before: tuple[float, float] | None = None
        unit = "W" if self._is_counter and channel.unit == "J" else channel.unit
        self.unit, self._factor = _READ_AS.get(unit, (unit, 1.0))
        self.times: deque[float] = deque()
        self.values: deque[float] = deque()

    def add(self, seconds: float, value: float) -> None:
        if self._is_counter:
            before, self._before = self._before, (seconds, value)
            if before is None or value < before[1]:
                return
            value = (value - before[1]) / (seconds - before[0])
        self.times.append(seconds)
        self.values.append(value * self._factor)

    def forget(self, oldest: float) -> None:
        while self.times and self.times[0] < oldest:
            self.times.popleft()
            self.values.popleft()


def _choose(channels: list[_core.Channel], metric: str) -> list[_Series]:
    """The channels of that metric, GPUs and CPUs first. The power of a device comes from its
    power channel or from its energy."""
    of_metric = [_Series(i, c) for i, c in enumerate(channels) if c.metric == metric]
    if metric != "power":
        return of_metric
    known = {channels[series.place].device for series in of_metric}
    return of_metric + [
        _Series(i, c)
        for i, c in enumerate(channels)
        if c.metric == "energy"
        and c.device_kind in ("cpu", "gpu")
        and c.device not in known
    ]


class Plot:
    """What plot() gives.

    figure, axes  matplotlib's, to be changed as any other
    track         the wattmeter.track whose samples these are
    """

    def __init__(
        self, tracking: track, metric: str, window: float, refresh: float, figure: Any
    ) -> None:
        self.track = tracking
        self.figure = figure
        self._window = window
        self._refresh = refresh
        self._next = 0.0
        self._begin: int | None = None
        self._background: Any = None
        core = tracking._tracker
        self._series = _choose(core.channels, metric)
        if not self._series:
            names = sorted({channel.metric for channel in core.channels})
            raise ValueError(
                f"nothing here has the metric {metric!r}; there are {', '.join(names)}"
                + (" (wattmeter doctor says why)" if metric == "power" else "")
            )
        self._draw_first(metric)

    def _draw_first(self, metric: str) -> None:
        self.axes = self.figure.add_subplot()
        name = metric.replace("_", " ").capitalize()
        self.axes.set_xlabel("Time (s)")
        self.axes.set_ylabel(f"{name} ({self._series[0].unit})")
        self._lines = [
            self.axes.plot(
                [], [], series.style, linewidth=2, label=series.label, animated=True
            )[0]
            for series in self._series
        ]
        if len(self._lines) <= _LINES_MAX:
            above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0}
            self.axes.legend(frameon=False, ncol=3, **above)
        # What changes with each sample is drawn alone, over a picture of all the rest.
        self._moving = [self.axes.xaxis, self.axes.yaxis, *self._lines]
        for axis in self._moving[:2]:
            axis.set_animated(True)
        self._has_picture = self.figure.canvas.supports_blit
        if self._has_picture:
            self.figure.canvas.mpl_connect("draw_event", self._on_draw)

    def _on_draw(self, event: object = None) -> None:
        """All was drawn anew: the window has another size, say."""
        self._background = self.figure.canvas.copy_from_bbox(self.figure.bbox)
        self._draw_moving()

    def _draw_moving(self) -> None:
        for artist in self._moving:
            self.axes.draw_artist(artist)

    def _take(self) -> bool:
        """The samples since the last time; whether there are any."""
        times, values, states = self.track._tracker.samples()
        if not len(times):
            return False
        if self._begin is None:
            self._begin = times[0]
        seconds = [(when - self._begin) / 1e9 for when in times]
        for series in self._series:
            numbers, codes = values[series.place], states[series.place]
            for i, second in enumerate(seconds):
                if codes[i] == _OK:
                    series.add(second, numbers[i])
            series.forget(seconds[-1] - self._window)
        return True

    def _follow(self) -> None:
        """Lines and axes show the samples so far."""
        for series, line in zip(self._series, self._lines):
            line.set_data(list(series.times), list(series.values))
        drawn = [series for series in self._series if series.times]
        if drawn:
            self.axes.set_xlim(
                _core.axis_of_time(
                    min(series.times[0] for series in drawn),
                    max(series.times[-1] for series in drawn),
                )
            )
            self.axes.set_ylim(
                _core.axis_of_values(
                    min(min(series.values) for series in drawn),
                    max(max(series.values) for series in drawn),
                )
            )

    def update(self) -> bool:
        """Draws what was measured since the last time, where it is time to; whether it
        did. In a loop of one's own; plot() has one."""
        now = time.monotonic()
        if now < self._next or not self._take():
            return False
        self._next = now + self._refresh
        self._follow()
        canvas = self.figure.canvas
        if self._background is None:
            canvas.draw()
        else:
            canvas.restore_region(self._background)
            self._draw_moving()
            canvas.blit(self.figure.bbox)
        canvas.flush_events()
        return True

    def stop(self) -> Report | None:
        """Ends the measurement; its Report."""
        return self.track.stop()

    def __enter__(self) -> Plot:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


class _NotebookPlot(Plot):
    """A picture in the cell's output that a thread replaces. Its figure is not pyplot's,
    which is for one thread."""

    def __init__(
        self, tracking: track, metric: str, window: float, refresh: float, figure: Any
    ) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        if figure is None:
            figure = Figure(figsize=(8, 4))
        FigureCanvasAgg(figure)
        super().__init__(tracking, metric, window, refresh, figure)

    def show(self) -> None:
        from threading import Event, Thread

        from IPython.display import display

        self._stopping = Event()
        self._handle = display(self._picture(), display_id=True)
        self._thread = Thread(target=self._run, name="wattmeter.live", daemon=True)
        self._thread.start()

    def _picture(self) -> Any:
        from io import BytesIO

        from IPython.display import Image

        out = BytesIO()
        self.figure.canvas.print_png(out)
        return Image(out.getvalue())

    def _run(self) -> None:
        while not self._stopping.wait(self._refresh):
            if self.update():
                self._handle.update(self._picture())

    def stop(self) -> Report | None:
        """Ends the measurement and the drawing; its Report."""
        self._stopping.set()
        self._thread.join()
        return super().stop()


def _is_notebook() -> bool:
    import sys

    shell = sys.modules.get("IPython")
    shell = shell and shell.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _is_open(figure: Any) -> bool:
    """A figure that is not pyplot's has no window that could be closed."""
    from matplotlib import pyplot

    return not hasattr(figure, "number") or pyplot.fignum_exists(figure.number)


def _loop(plot: Plot, seconds: float) -> None:
    """Until the window is closed, the time is over, or Ctrl-C."""
    end = time.monotonic() + seconds
    try:
        while _is_open(plot.figure) and time.monotonic() < end:
            plot.update()
            plot.figure.canvas.start_event_loop(plot._refresh / 4)
        if _is_open(plot.figure):
            plot._next = 0.0
            plot.update()  # What came since the last picture.
    except KeyboardInterrupt:
        pass
    finally:
        plot.stop()


def _make_window() -> Any:
    from matplotlib import get_backend, pyplot
    from matplotlib.backend_bases import FigureCanvasBase

    figure = pyplot.figure(figsize=(8, 6))
    # That of a window has an event loop of its own.
    if type(figure.canvas).start_event_loop is FigureCanvasBase.start_event_loop:
        pyplot.close(figure)
        raise ValueError(
            f"matplotlib has no window here (its backend is {get_backend()}): install "
            "one (python3-tk), or use wattmeter watch; with figure= and block=False it "
            "is drawn on a figure of yours"
        )
    figure.show()
    return figure


def plot(
    metric: str = "power",
    *,
    interval: float = 0.1,
    refresh: float = 0.2,
    window: float = 20.0,
    seconds: float | None = None,
    gpus: Choice = None,
    pid: int | None = None,
    figure: Any = None,
    block: bool | None = None,
) -> Plot:
    """Shows a metric of every device of this machine over time while it is measured.

        wattmeter.live.plot()                    # a script: until the window is closed
        with wattmeter.live.plot():              # a notebook: while the block runs
            train()

    metric    "power" of GPUs and CPUs in watts, or the metric of any channel:
              "utilization", "memory_used", "temperature", ...; a counter is shown by its
              growth in a second
    interval  seconds between two samples
    refresh   seconds between two pictures
    window    how many seconds are shown: from the oldest sample to a second past the
              newest, values with a tenth of their range and 0.1 as margin
    seconds   ends after this time; None: when the window is closed, or at Ctrl-C.
              In a notebook the block or stop() ends it.
    gpus      which GPUs, as track() has it
    pid       of another process, of which metrics of processes are then
    figure    a matplotlib figure to draw on instead of a new one
    block     False: plot() returns at once, and update() draws; None: in a script it
              returns at the end, in a notebook at once

    The samples are taken in a thread that never waits for the drawing. The Plot has the
    session as `track`, and so its report.

    Raises ImportError without matplotlib, ValueError where nothing has that metric or
    there is no window to draw in.
    """
    for name, value in (("refresh", refresh), ("window", window)):
        if not 0 < value < 1e9:
            raise ValueError(f"{name} must be a number of seconds, not {value!r}")
    in_notebook = _is_notebook() and not block
    if not in_notebook and figure is None:
        figure = _make_window()
    tracking = track(interval=interval, gpus=gpus, pid=pid).start()
    try:
        made = (_NotebookPlot if in_notebook else Plot)(
            tracking, metric, window, refresh, figure
        )
    except BaseException:
        tracking.stop()
        raise
    if isinstance(made, _NotebookPlot):
        made.show()
    elif block is not False:
        _loop(made, float("inf") if seconds is None else seconds)
    return made


def animate(
    recordings: Recordings,
    path: Path,
    fps: float = 30,
    dpi: float = 150,
    *,
    speed: float = 1,
    window: float | None = None,
    channels: Iterable[str] | None = None,
    layout: str | None = None,
    start: float | str | None = None,
    end: float | str | None = None,
    run: int | None = None,
    title: str | None = None,
    regions: bool = True,
    legend: bool = True,
    size: Size | None = None,
    font: str | None = None,
    style: str = "light",
    overwrite: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> None:
    """Makes a film of a recording, in which the window of plot() follows the samples.

        wattmeter.live.animate("run.sqlite", "run.mp4", channels=["power"])

    recordings  what is filmed, as wattmeter.plot() has it; so are channels, layout, start,
                end, run, title, regions, legend, font and style
    path        of the film: .mp4 or .gif
    fps         pictures in a second
    dpi         how large text and lines are in a picture of that size
    speed       seconds of the recording in one of the film
    window      seconds of the recording that are seen at once; None: 20 times speed
    size        (960, 720) in pixels, or in millimetres as plot() has it, at that dpi
    overwrite   replaces a file that is there
    progress    a function that is called with the pictures made and all of them

    Raises Error without ffmpeg, cairo and pango, before anything is done, where `path`
    exists, or the recording cannot be read; ValueError for what it does not have.
    """
    from wattmeter._plot import format_of, inputs_of, listed, size_of, time_of

    for name, value in (("fps", fps), ("dpi", dpi), ("speed", speed)):
        if not 0 < value < 1e9:
            raise ValueError(f"{name} must be a number above 0, not {value!r}")
    options = {
        "format": format_of(path, ("mp4", "gif"), "film"),
        "layout": layout,
        "start": time_of(start),
        "end": time_of(end),
        "title": title,
        "without_regions": not regions,
        "without_legend": not legend,
        "size": size_of(size),
        "font": font,
        "style": style,
        "dpi": dpi,
        "fps": fps,
        "speed": speed,
        "window": 0.0 if window is None else window,
        "overwrite": overwrite,
    }
    inputs = inputs_of(recordings, run)
    _core.film(inputs, path, listed(channels), options, progress)
