# SPDX-License-Identifier: Apache-2.0
"""The measurement tools of the thesis "Towards Sustainable Machine Learning Through GPU
Power Capping", over wattmeter's meter.

    from wattmeter.compat.measurement import EnergyMeasurementTool

    tool = EnergyMeasurementTool(out_file="epochs.csv", gpu_num=0)
    for epoch in range(3):
        tool.start()
        train()
        tool.stop()

The CSV files have the columns and units that their documentation names, and no header. A
row is in the file as soon as it is made; the original writes them at its end. An empty
cell is a value that is not known, and never 0: a machine without a GPU, or whose CPU
has no counter that may be read, is measured without it, and a warning says why. CPU
energy is of all packages, whose counters may run over any number of times; the
original's is of the first.
"""

from __future__ import annotations

import csv
import functools
import os
import warnings
import weakref
from typing import Any, Callable, Dict, List, Optional, Union

from wattmeter import _core


def _open_meter(gpu_num: int, snippets: Optional[str]) -> _core.Meter:
    """A meter of the CPUs and that GPU, and a warning for what it cannot measure.

    ValueError: there are GPUs, but not that one.
    """
    Meter = functools.partial(
        _core.Meter, snippets=snippets, mode="append", seed_format=True
    )
    try:
        meter = Meter(gpus=str(gpu_num))
    except ValueError:
        if _core.Gpus().present:
            raise
        meter = Meter()
    kinds = {device.kind for device in meter.devices}
    for kind in {"cpu", "gpu"} - kinds:
        why = meter.remark if kind == "gpu" else None
        sentence = f"{kind.upper()} energy is not measured: {why or _why_missing(kind)}"
        warnings.warn(sentence, stacklevel=3)
    return meter


def _why_missing(kind: str) -> str:
    meter = _core.Meter()
    energy = getattr(meter.stop(meter.start()), kind)
    return str(energy.why)


class _Tool:
    """A meter that ends with the tool or the program, and its file, which is empty."""

    _writers: Dict[str, Callable[[], object]] = {}
    _has_snippets: bool

    def __init__(
        self, out_file: Union[str, "os.PathLike[str]"], gpu_num: int = 0
    ) -> None:
        self.out_file = os.path.abspath(out_file)
        self._open: List[int] = []
        # In a notebook the tool of the cell's last run still has the file.
        self._writers.pop(self.out_file, lambda: None)()
        with open(out_file, "w"):
            pass
        self._meter = _open_meter(
            gpu_num, self.out_file if self._has_snippets else None
        )
        self._writers[self.out_file] = weakref.finalize(self, self._meter.close)


class EnergyMeasurementTool(_Tool):
    """The time and the energy of pieces of a program.

    out_file: a CSV file, which is overwritten, with a row for each stop(): elapsed time
    (s), CPU energy (kWh), GPU energy (kWh). gpu_num: which GPU, by its number in
    nvidia-smi.

    Pieces may be nested: stop() ends the one that was started last. A piece that is not
    stopped has no row. Work that a GPU still has to do at stop() is not in it. A new tool
    with the same file ends this one.
    """

    _has_snippets = True

    def start(self) -> None:
        """Begins a piece."""
        self._open.append(self._meter.start())

    def stop(self) -> None:
        """Ends it and writes its row. ValueError: nothing was started.

        wattmeter.Error: the row could not be written.
        """
        if not self._open:
            raise ValueError("nothing was started")
        self._meter.stop(self._open.pop())

    def flush(self) -> None:
        """Does nothing: each row is in the file already."""


class AsynchronousMeasurementTool(_Tool):
    """A table of energy, use, temperature and power while a program runs.

    out_file: a CSV file, which is overwritten, with a row every so often: elapsed time
    (s), CPU energy (kWh), CPU utilization (%), CPU temperature (degrees Celsius), GPU
    energy (kWh), GPU utilization (%), GPU temperature (degrees Celsius), GPU power (W).
    Energies are since start(). gpu_num: which GPU, by its number in nvidia-smi.

    A thread of the library makes the rows. It needs no other process and ends with the
    program if stop() is not called; the original keeps the program from
    ending then. GPU energy is in kWh, as the original's documentation says; the original
    writes millijoules. The temperature is the hottest CPU package's, not of
    thermal_zone3, which is something else on most machines.
    """

    _has_snippets = False

    def start(self, interval: float = 1) -> None:
        """Begins; a row every `interval` seconds, 0.001 to 3600.

        ValueError: another interval, or it runs already.
        """
        self._meter.run(self.out_file, interval)

    def stop(self) -> None:
        """Adds the last row; the file is complete then. ValueError: nothing runs.

        wattmeter.Error: rows could not be written.
        """
        self._meter.halt()


class LayerwiseMeasurementTool:
    """The energy of each layer of a PyTorch network, in training and inference.

    out_file: a CSV file, which is overwritten at once and written by stop(), with a row for
    each layer: the name of its class, and the joules of one call of it on average, forward
    and backward. gpu_num: which GPU, by its number in nvidia-smi.

    Layers are those that PyTorch defines, but for Sequential. One in which others lie, such
    as MultiheadAttention, has the energy that it takes itself; the original counts the energy
    of the inner ones twice. The energy comes from all sensors while the layer runs; the
    original takes the run's mean power. A layer that is not called has no energy, and an
    empty cell is not known. The model is as before after stop(), and training may be mixed
    with inference.
    """

    def __init__(
        self, out_file: Union[str, "os.PathLike[str]"], gpu_num: int = 0
    ) -> None:
        self.out_file = os.path.abspath(out_file)
        self._gpu = gpu_num
        self._layers: Any = None
        with open(out_file, "w"):
            pass

    def start(self, model: Any) -> Any:
        """Begins; the result is the model.

        TypeError: it is no torch.nn.Module. ValueError: it has no parameters, is measured
        already, or there are GPUs but not that one.
        """
        from wattmeter.torch import layers

        if self._layers is not None:
            raise ValueError("it runs already")
        measured = layers(model, gpus=str(self._gpu) if _core.Gpus().present else None)
        self._layers = measured.start()
        return model

    def stop(self) -> None:
        """Ends it and writes the file. ValueError: nothing was started."""
        if self._layers is None:
            raise ValueError("nothing was started")
        table, self._layers = self._layers.stop(), None
        if table.energy.value is None:
            warnings.warn(f"energy is not measured: {table.energy.why}", stacklevel=2)
        with open(self.out_file, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            for row in table:
                if row.path and row.type != "Sequential" and row.is_pytorchs:
                    joules = row.energy.value
                    known = joules is not None and row.calls > 0
                    writer.writerow([row.type, joules / row.calls if known else ""])
