# SPDX-License-Identifier: Apache-2.0
"""plot(): recordings as a figure; and what it has in common with live.animate()."""

from __future__ import annotations

import os

from wattmeter import _core
from wattmeter._results.recording import Recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Union

    from wattmeter._core import _PlotInput
    from wattmeter._results.report import Path

    One = Union[Path, Recording]
    Recordings = Union[One, Iterable[One], Mapping[str, One]]
    Size = Union[str, "tuple[float, float]"]

_FIGURES = ("svg", "png", "pdf")


def inputs_of(recordings: Recordings, run: int | None) -> list[_PlotInput]:
    """Of one, several, or a dict of names and recordings."""

    def one(name: str | None, recording: One) -> _PlotInput:
        if isinstance(recording, Recording):
            return name, recording._path, recording._run if run is None else run
        return name, recording, run

    if isinstance(recordings, (str, bytes, os.PathLike, Recording)):
        return [one(None, recordings)]
    if hasattr(recordings, "items"):
        return [one(name, recording) for name, recording in recordings.items()]
    return [one(None, recording) for recording in recordings]


def listed(channels: Iterable[str] | None) -> list[str] | None:
    """A list of words. A single text is refused, although it is iterable."""
    if isinstance(channels, str):
        raise TypeError("channels must be a list, not one text")
    return None if channels is None else list(channels)


def time_of(moment: float | str | None) -> str | None:
    """As the command takes it."""
    return moment if moment is None or isinstance(moment, str) else f"{moment:.9f}"


def size_of(size: Size | None) -> str | None:
    """As the command takes it."""
    return size if size is None or isinstance(size, str) else f"{size[0]:g}x{size[1]:g}"


def format_of(path: Path, formats: tuple[str, ...], what: str) -> str:
    """By the suffix."""
    suffix = os.path.splitext(os.fsdecode(path))[1][1:]
    if suffix not in formats:
        raise ValueError(f"the suffix of a {what} is one of .{', .'.join(formats)}")
    return suffix


class Picture:
    """A figure, which a notebook shows where it is the last line of a cell.

    svg           its text
    png(), pdf()  its bytes
    save()        writes it to a file
    """

    def __init__(
        self,
        inputs: list[_PlotInput],
        channels: list[str] | None,
        options: dict[str, Any],
    ) -> None:
        self._inputs = inputs
        self._channels = channels
        self._options = options
        self.svg = self._draw("svg").decode()

    def _draw(self, format: str, dpi: float = 0.0) -> bytes:
        options = {**self._options, "format": format, "dpi": dpi}
        return _core.plot(self._inputs, self._channels, options)

    def png(self, dpi: float | None = None) -> bytes:
        """As PNG; None: 96 dpi, or 300 if the size is in millimetres."""
        return self._draw("png", dpi or 0.0)

    def pdf(self) -> bytes:
        """As PDF."""
        return self._draw("pdf")

    def save(self, path: Path, *, dpi: float | None = None, overwrite: bool = False) -> None:
        """Writes it to a .svg, .png or .pdf. Error "EEXIST" if there is such a file, unless
        `overwrite`."""
        from wattmeter._files import write_file

        form = format_of(path, _FIGURES, "figure")
        drawn = self.svg.encode() if form == "svg" else self._draw(form, dpi or 0.0)
        write_file(path, drawn, overwrite)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_png_(self) -> bytes:
        return self.png()

    def __repr__(self) -> str:
        names = ", ".join(name or os.fsdecode(path) for name, path, _ in self._inputs)
        return f"<Picture of {names}>"


def plot(
    recordings: Recordings,
    *,
    kind: str = "time",
    channels: Iterable[str] | None = None,
    layout: str | None = None,
    start: float | str | None = None,
    end: float | str | None = None,
    run: int | None = None,
    title: str | None = None,
    regions: bool = True,
    fit: bool = False,
    legend: bool = True,
    size: Size | None = None,
    font: str | None = None,
    style: str = "light",
    by: str = "energy",
) -> Picture:
    """Draws recordings, as `wattmeter plot` does.

        wattmeter.plot("run.sqlite")                                    # in a notebook
        wattmeter.plot("run.sqlite", channels=["power"]).save("run.svg")
        wattmeter.plot({"700 W": "a.sqlite", "430 W": "b.sqlite"}, kind="energy")

    recordings  a path, what wattmeter.read() gave, several of these, or a dict of names
                and recordings
    kind        "time": panels over one time axis; "energy": energy over time, a point for
                each recording; "regions": a bar for each region; "caps": energy over time
                by power cap, of CSV tables with cap_w, seconds and joules; "repeats": a box
                for each command and metric, a point for each run; "flame": regions above
                those around them, as wide as their energy
    channels    panels, devices, metrics, columns, or metrics of the program:
                ["power", "gpu0", "accuracy"]; None: all panels
    layout      which panels, and where: "power,memory/clocks"
    start, end  seconds since the start of the recording, or "2026-11-21T08:48:21Z"
    run         of a recording with several: its number, the last unless given
    title       instead of the command that was measured; "": none
    regions     False: without the bands of regions
    fit         True: axes of power, use and memory fit their values; False: from 0
    legend      False: without a legend
    size        (960, 720) in pixels at 96 dpi, "column" or "page" of a journal, "89x60mm"
    font        "NAME,POINTS", or one of them; None: DejaVu Sans of 9 points, of 7 if the
                size is in millimetres
    style       "light" or "dark"
    by          "energy" or "time" of regions and flames

    Raises Error without cairo and pango, or where a recording cannot be read or has nothing
    to draw, ValueError for what it does not have.
    """
    options = {
        "kind": kind,
        "layout": layout,
        "start": time_of(start),
        "end": time_of(end),
        "title": title,
        "without_regions": not regions,
        "fits": fit,
        "without_legend": not legend,
        "size": size_of(size),
        "font": font,
        "style": style,
        "by": by,
    }
    return Picture(inputs_of(recordings, run), listed(channels), options)
