# SPDX-License-Identifier: Apache-2.0
"""The layers of a PyTorch model, and the table of what they cost."""

from __future__ import annotations

from importlib import import_module

from wattmeter._results.figure import Figure, total

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator

    from wattmeter._results.report import Path

# Its types are not the same in all versions, and those who check ours need not have it.
torch: Any = import_module("torch")


def tensors(value: Any) -> list[Any]:
    """Those in it, and in the lists, tuples and dicts in it."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    found: list[Any] = []
    for one in value:
        if isinstance(one, torch.Tensor):
            found.append(one)
        elif isinstance(one, (list, tuple, dict)):
            found += tensors(one)
    return found


class Layer:
    """A module of a model that does something when it is called.

    path    its name in the model, "" for the model itself
    module  what it is
    also    further paths under which the model has it
    parent  the layer that it lies in; None: it is the model
    is_leaf whether no other layer lies in it
    is_whole    whether what lies in it is not told apart
    note    a note on it; None: no note
    """

    def __init__(self, path: str, module: Any, parent: Layer | None) -> None:
        self.path = path
        self.module = module
        self.also: list[str] = []
        self.parent = parent
        self.is_leaf = True
        self.note = why_whole(module)
        self.is_whole = self.note is not None
        self.why_no_backward = "no backward pass of it was seen"
        if getattr(module, "inplace", False) is True:
            self.why_no_backward = "in place: it is in that of the layer after it"

    @property
    def type(self) -> str:
        return type(self.module).__name__


def why_whole(module: Any) -> str | None:
    """Why the layers in a module cannot be separated; None: they can."""
    if isinstance(module, torch.jit.ScriptModule):
        return "scripted: measured as one"
    if type(module).__name__ == "OptimizedModule":
        return "compiled: measured as one"
    if isinstance(module, torch.nn.DataParallel) and module.device_ids:
        return "runs on several devices: measured as one"
    if "forward" in vars(module):
        return "has a forward of its own: measured as one"
    return None


def _has_forward(module: Any) -> bool:
    forward = getattr(type(module), "forward", None)
    return forward is not torch.nn.Module.forward or "forward" in vars(module)


def layers_of(model: Any) -> list[Layer]:
    """Each before those inside it. ModuleList and the like, which are never called, are
    none. TypeError: it is no module; ValueError: it has no parameters."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"a torch.nn.Module is needed, not {type(model).__name__}")
    if next(model.parameters(), None) is None:
        raise ValueError(f"the model ({type(model).__name__}) has no parameters")
    found: dict[Any, Layer] = {}

    def visit(path: str, module: Any, parent: Layer | None) -> None:
        if module in found:
            found[module].also.append(path)
            return
        layer = parent
        if _has_forward(module):
            layer = found[module] = Layer(path, module, parent)
            if parent:
                parent.is_leaf = False
            if layer.is_whole:
                return
        for name, child in module._modules.items():
            if child is not None:
                visit(f"{path}.{name}" if path else name, child, layer)

    visit("", model, None)
    if not found:
        raise ValueError(f"the model ({type(model).__name__}) has no layers")
    return list(found.values())


class Row:
    """What a layer costs.

    path, also, type, is_leaf, note    as the model has it
    is_pytorchs whether its class is PyTorch's own
    calls       of forward, that ended
    forward     seconds in it, with what lies in it
    backward    the same of the backward pass; missing where there was none
    own         seconds of both without the layers inside: these add up
    energy      joules in that time
    gpu_time    seconds that it kept a GPU busy, without the layers inside
    share       of the whole: of the GPU's time where that is known, or else of the energy,
                or of the time
    """

    def __init__(self, layer: Layer) -> None:
        self.path = layer.path
        self.also = list(layer.also)
        self.type = layer.type
        self.is_pytorchs = layer.module.__class__.__module__.startswith("torch.nn.")
        self.is_leaf = layer.is_leaf
        self.note = layer.note
        self.calls = 0
        self.forward: Figure
        self.backward: Figure
        self.own: Figure
        self.energy: Figure
        self.gpu_time = Figure(
            "gpu_time", None, "s", state="missing", why="it is not on a GPU"
        )
        self.share: float | None = None

    def __repr__(self) -> str:
        return f"<Row {self.path or '(model)'}: {self.own}, {self.energy}>"


class Records:
    """A table: rows to look up by their path, and `records()` to write."""

    columns: tuple[str, ...] = ()
    rows: list[Any]

    def __getitem__(self, path: str) -> Any:
        for row in self.rows:
            if path == row.path or path in row.also:
                return row
        raise KeyError(path)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def records(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of the records."""
        import pandas

        return pandas.DataFrame(self.records(), columns=list(self.columns))

    def to_csv(self, path: Path) -> None:
        """Writes the records, with their names first; an empty cell is missing."""
        import csv

        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.records())

    def _write_json(self, content: dict[str, Any], path: Path | None) -> str:
        import json

        text = json.dumps(content, indent=2)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + "\n")
        return text

    def _aligned(self, cells: list[tuple[str, ...]]) -> list[str]:
        """The lines of a table, whose last two columns are left-aligned."""
        last = len(cells[0]) - 2
        width = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
        lines = []
        for row in cells:
            right = (row[i].rjust(width[i]) for i in range(last))
            lines.append("  ".join([*right, row[last].ljust(width[last]), row[-1]]))
        return [line.rstrip() for line in lines]

    def _repr_html_(self) -> str:
        from wattmeter._notebook import as_html

        return as_html(str(self))


class Table(Records):
    """Rows of layers, in the order of the model, and what they come to.

    rows        a Row for each layer
    total       Figures of the whole run: `time`, `energy`
    leaves, containers, rest    of these: what layers without others inside did, what the
                others did themselves, and what lies in no layer; pairs of Figures
    remarks     what a reader has to know of the figures
    """

    columns = (
        *("path", "type", "calls", "forward_s", "backward_s", "own_s", "gpu_s", "energy_J"),
        *("energy_low_J", "energy_high_J", "share", "is_leaf", "note"),
    )

    def __init__(
        self, rows: list[Row], time: Figure, energy: Figure, remarks: list[str]
    ) -> None:
        self.rows = rows
        self.time, self.energy = time, energy
        self.remarks = remarks
        self.has_gpu = any(row.gpu_time.value is not None for row in rows)
        if self.has_gpu:
            parts = [row.gpu_time for row in rows]
            whole = sum(part.value or 0.0 for part in parts)
        else:
            parts = [row.energy if energy.value else row.own for row in rows]
            whole = energy.value or time.value or 0.0
        for row, part in zip(rows, parts):
            if part.value is not None and whole:
                row.share = part.value / whole

    def _sum(self, rows: Iterable[Row], name: str) -> tuple[Figure, Figure]:
        given = list(rows)
        return (
            total(name, "s", (row.own for row in given)),
            total(name, "J", (row.energy for row in given)),
        )

    @property
    def leaves(self) -> tuple[Figure, Figure]:
        return self._sum((row for row in self.rows if row.is_leaf), "leaves")

    @property
    def containers(self) -> tuple[Figure, Figure]:
        return self._sum((row for row in self.rows if not row.is_leaf), "containers")

    @property
    def rest(self) -> tuple[Figure, Figure]:
        time, joules = self._sum(self.rows, "rest")
        return (
            total("rest", "s", [self.time], [time]),
            total("rest", "J", [self.energy], [joules]),
        )

    @property
    def coverage(self) -> float | None:
        """The part of the whole that the layers account for, 0 to 1."""
        covered, whole = self._sum(self.rows, "all")[0].value, self.time.value
        return covered / whole if covered is not None and whole else None

    def records(self) -> list[dict[str, Any]]:
        """Plain dicts, None for what is missing: path, type, calls, forward_s, ..."""
        return [
            dict(
                zip(
                    self.columns,
                    (
                        row.path,
                        row.type,
                        row.calls,
                        row.forward.value,
                        row.backward.value,
                        row.own.value,
                        row.gpu_time.value,
                        row.energy.value,
                        row.energy.low,
                        row.energy.high,
                        row.share,
                        row.is_leaf,
                        row.note,
                    ),
                )
            )
            for row in self.rows
        ]

    def to_json(self, path: Path | None = None) -> str:
        """The records, what they come to, and the remarks, as a JSON text; also written
        into a file, if one is given."""
        sums = {
            name: {"time_s": time.value, "energy_J": energy.value, "why": energy.why}
            for name, (time, energy) in self._sums()
        }
        content = {
            "layers": self.records(),
            **sums,
            "coverage": self.coverage,
            "remarks": self.remarks,
        }
        return self._write_json(content, path)

    def _sums(self) -> list[tuple[str, tuple[Figure, Figure]]]:
        return [
            ("leaves", self.leaves),
            ("containers", self.containers),
            ("rest", self.rest),
            ("total", (self.time, self.energy)),
        ]

    def lines(self) -> list[tuple[str, ...]]:
        """The table for people, its heading first."""
        has_backward = any(row.backward.value is not None for row in self.rows)
        cells: list[tuple[str, ...]] = [
            (
                "calls",
                "forward",
                "backward",
                "own",
                "GPU",
                "J",
                "share",
                "type",
                "layer",
            )
        ]
        for row in self.rows:
            path = ", ".join([row.path or "(model)", *row.also])
            cells.append(
                (
                    str(row.calls),
                    _time(row.forward),
                    _time(row.backward),
                    _time(row.own),
                    _time(row.gpu_time),
                    exact_text(row.energy),
                    "-" if row.share is None else f"{100 * row.share:.1f} %",
                    row.type,
                    path + (f" ({row.note})" if row.note else ""),
                )
            )
        names = {"leaves": "(layers)", "containers": "(what containers do themselves)"}
        names.update(rest="(outside of all layers)", total="(total)")
        for name, (time, joules) in self._sums():
            cells.append(
                ("", "", "", _time(time), "", exact_text(joules), "", "", names[name])
            )
        left_out = {2} if not has_backward else set()
        left_out |= {4} if not self.has_gpu else set()
        return [
            tuple(cell for i, cell in enumerate(row) if i not in left_out)
            for row in cells
        ]

    def __str__(self) -> str:
        lines = self._aligned(self.lines())
        if self.energy.value is None:
            lines.append(f"Energy is not measured: {self.energy.why}")
        return "\n".join([*lines, *self.remarks])


def _time(figure: Figure) -> str:
    return "-" if figure.value is None else str(Figure("time", figure.value, "s"))


def exact_text(figure: Figure) -> str:
    """With its uncertainty, and as reports have it: nothing where that is larger."""
    error = figure.uncertainty
    if figure.value is None or (error is not None and error > abs(figure.value)):
        return "-"
    return str(Figure(figure.key, figure.value, figure.unit, figure.low, figure.high))
