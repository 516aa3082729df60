# SPDX-License-Identifier: Apache-2.0
"""A report without the library's object: what a Report that was pickled or saved has.

It answers as _core.Report does, from plain values that JSON has as well.
"""

from __future__ import annotations

import os

from wattmeter import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wattmeter._results.report import Path

FORMAT = 1
_KINDS = ("run", "region", "path", "rest", "gpu", "device")
_SHARES = ("inclusive", "exclusive")
_VERBOSITIES = (0, 1, 2)


def _figures(core: _core.Report, kind: str) -> list[dict[str, list[list[Any]]]]:
    """Of each part of the kind, by share."""
    shares = _SHARES if kind in ("region", "path") else _SHARES[:1]
    count = 1 if kind == "run" else core.count(kind)
    return [
        {share: [list(one) for one in core.figures(kind, i, share)] for share in shares}
        for i in range(count)
    ]


def state_of(core: _core.Report) -> dict[str, Any]:
    """All that a report says, in lists, dicts, texts and numbers."""
    import json

    if isinstance(core, Saved):
        return core.state
    facts = {
        kind: [core.region(kind, i) for i in range(core.count(kind))]
        for kind in ("region", "path")
    }
    for kind in ("gpu", "device"):
        facts[kind] = [core.device(kind, i) for i in range(core.count(kind))]
    return {
        "format": FORMAT,
        "figures": {kind: _figures(core, kind) for kind in _KINDS},
        "facts": facts,
        "run": core.run(),
        "processes": [
            {k: list(v) if isinstance(v, _core.Figure) else v for k, v in facts.items()}
            for facts in core.processes()
        ],
        "words": core.words,
        "remarks": core.remarks,
        "notes": core.notes,
        "variables": core.variables,
        "sources": core.sources,
        "texts": [core.print("text", verbosity=level) for level in _VERBOSITIES],
        "json": json.loads(core.print("json")),
    }


def is_name(path: Path) -> bool:
    """Whether save() takes the name."""
    return os.fsdecode(path).lower().endswith(".json")


def is_saved(path: Path) -> bool:
    """Whether save() has written the file."""
    return is_name(path) and state_in(path) is not None


def state_in(path: Path) -> dict[str, Any] | None:
    """The report in a file; None if save() has not written it."""
    import json

    from wattmeter._files import read_file

    try:
        state = json.loads(read_file(path, "Report.save()"))
    except ValueError:
        return None
    return state if isinstance(state, dict) and state.get("format") == FORMAT else None


def _figure(values: Any) -> _core.Figure:
    make: Any = _core.Figure  # a struct sequence, made of a list
    made: _core.Figure = make(values)
    return made


class Saved:
    """Made of such a state; the methods are the same as of _core.Report."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state
        self.words: list[str] = state["words"]
        self.remarks: list[str] = state["remarks"]
        self.notes: dict[str, str] = state["notes"]
        self.variables: dict[str, str] = state["variables"]
        self.sources = {name: tuple(what) for name, what in state["sources"].items()}

    def figures(
        self, kind: str = "run", index: int = 0, share: str = "inclusive"
    ) -> list[_core.Figure]:
        parts = self.state["figures"][kind]
        return [_figure(one) for one in parts[index].get(share, ())]

    def figure(
        self, key: str, kind: str = "run", index: int = 0, share: str = "inclusive"
    ) -> _core.Figure:
        for figure in self.figures(kind, index, share):
            if key == figure.key or (kind == "run" and key == figure.path):
                return figure
        raise KeyError(key)

    def count(self, kind: str) -> int:
        return len(self.state["figures"][kind])

    def find(self, kind: str, name: str) -> int:
        for i, facts in enumerate(self.state["facts"][kind]):
            if name in (facts.get("label", facts["name"]), facts.get("uuid")):
                return i
        raise KeyError(name)

    def run(self) -> Any:
        return dict(self.state["run"])

    def region(self, kind: str, index: int) -> dict[str, Any]:
        facts = dict(self.state["facts"][kind][index])
        return {**facts, "histogram": [tuple(pair) for pair in facts["histogram"]]}

    def device(self, kind: str, index: int) -> dict[str, Any]:
        return dict(self.state["facts"][kind][index])

    def processes(self) -> list[dict[str, Any]]:
        return [
            {k: _figure(v) if isinstance(v, (list, tuple)) else v for k, v in one.items()}
            for one in self.state["processes"]
        ]

    def print(self, format: str = "text", *, verbosity: int = 0, **style: Any) -> str:
        if any(style.values()):
            raise ValueError(
                "a report that was saved has no other units, prices or carbon: "
                "print these before, or from its recording"
            )
        if format == "json":
            import json

            return json.dumps(self.state["json"], indent=2) + "\n"
        text: str = self.state["texts"][min(max(verbosity, 0), len(_VERBOSITIES) - 1)]
        return text

    def write_codecarbon(self, *_: object, **__: object) -> None:
        raise ValueError("a report that was saved writes no CSV: its recording does")
