# SPDX-License-Identifier: Apache-2.0
"""The recordings of a job's ranks, together.

Each rank measures the whole node that it runs on, so that the ranks of a node have the same
joules, each of them all.
"""

from __future__ import annotations

from wattmeter._results.figure import Figure, total
from wattmeter._results.recording import Recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator

    from wattmeter._results.report import Path, Report

# What a node's longest recording may leave out of the time of all: a part of it, or so
# many samples, as ranks do not begin in the same moment.
_LEFT_OUT = 0.01
_SAMPLES = 5


class Node:
    """A machine on which ranks ran.

    host        its name
    recordings  of its ranks
    energy      Figure: the joules of the machine, counted once
    time        Figure: of the recording that it is from, the longest one
    """

    def __init__(self, recordings: list[Recording]) -> None:
        self.recordings = recordings
        reports = [recording.report for recording in recordings]
        longest = max(reports, key=lambda report: report.time.value or 0.0)
        self.host = longest.info["host"]
        self.time = longest.time
        self.energy = _energy(longest, reports)
        starts = [report.info["start_unix_ns"] / 1e9 for report in reports]
        ends = [start + (r.time.value or 0.0) for start, r in zip(starts, reports)]
        taken = max(ends) - min(starts)
        left = _SAMPLES * longest.info["interval_ns"] / 1e9
        is_short = taken - (self.time.value or 0.0) > max(left, _LEFT_OUT * taken)
        if is_short and self.energy.value is not None:
            self.energy.state = "at least"
            self.energy.why = f"of {float(self.time):.3g} s of {taken:.3g} s"

    def __repr__(self) -> str:
        return f"<Node {self.host}: {len(self.recordings)} ranks, {self.energy}>"


def _gpus(report: Report) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for gpu in report.gpus:
        joules = gpu.energy
        joules.key = gpu.label  # to be named by where it is not known
        found[gpu.uuid or gpu.label] = joules
    return found


def _energy(longest: Report, reports: list[Report]) -> Figure:
    """The GPUs of all ranks, if ranks measured different GPUs."""
    known = _gpus(longest)
    more: dict[str, Figure] = {}
    for report in sorted(reports, key=lambda report: -(report.time.value or 0.0)):
        for name, joules in _gpus(report).items():
            if name not in known:
                more.setdefault(name, joules)
    energy = longest.energy
    if not more:
        return energy
    return total("energy", "J", [energy, *more.values()], of_known=True)


def _rank_of(recording: Recording) -> int | None:
    """What the launcher, or else the callback of a framework, has said."""
    report = recording.report
    rank = report.variables.get("RANK") or report.notes.get("rank", "")
    return int(rank) if rank.isdigit() else None


class Ranks:
    """The recordings of a job, by rank: recordings of one node are counted once.

        ranks = wattmeter.read(["run-rank0.sqlite", "run-rank1.sqlite"])
        print(ranks.energy, ranks[1].report)

    ranks[1] is the Recording of the rank whose RANK was 1, or the second one where none
    has a RANK.

    recordings  all of them, in that order
    nodes       a Node for each machine
    energy      Figure: the joules of all nodes
    time        Figure: of the longest recording
    cpu_time    Figure: of all ranks, each with its processes
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self.recordings = [Recording(path) for path in paths]
        if not self.recordings:
            raise ValueError("there is no recording to read")
        ids = [recording.report.info["id"] for recording in self.recordings]
        if len(set(ids)) < len(ids):
            raise ValueError("a recording is given twice")
        self._by_rank = self._find_ranks()
        self.recordings = [self._by_rank[rank] for rank in sorted(self._by_rank)]
        machines: dict[str, list[Recording]] = {}
        for recording in self.recordings:
            machines.setdefault(recording.report.info["boot_id"], []).append(recording)
        self.nodes = [Node(recordings) for recordings in machines.values()]

    def _find_ranks(self) -> dict[int, Recording]:
        ranks = [_rank_of(recording) for recording in self.recordings]
        if all(rank is None for rank in ranks):
            return dict(enumerate(self.recordings))
        found: dict[int, Recording] = {}
        for rank, recording in zip(ranks, self.recordings):
            if rank is None:
                raise ValueError("some recordings have a RANK, and some have none")
            if rank in found:
                raise ValueError(f"rank {rank} is given twice")
            found[rank] = recording
        return found

    @property
    def energy(self) -> Figure:
        return total("energy", "J", (node.energy for node in self.nodes))

    @property
    def time(self) -> Figure:
        times = (node.time for node in self.nodes)
        return max(times, key=lambda time: time.value or 0.0)

    @property
    def cpu_time(self) -> Figure:
        return total("cpu_time", "s", (one.report.cpu_time for one in self.recordings))

    def __len__(self) -> int:
        return len(self.recordings)

    def __getitem__(self, rank: int) -> Recording:
        if rank not in self._by_rank:
            there = ", ".join(map(str, sorted(self._by_rank)))
            raise KeyError(f"there is no rank {rank}, but {there}")
        return self._by_rank[rank]

    def __iter__(self) -> Iterator[Recording]:
        return iter(self.recordings)

    def __repr__(self) -> str:
        return f"<Ranks: {len(self)} on {len(self.nodes)} nodes, {self.energy}>"
