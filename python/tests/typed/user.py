# SPDX-License-Identifier: Apache-2.0
"""A program that uses every public class, for the type checkers and to be run."""

from __future__ import annotations

import sys

import wattmeter
from wattmeter import Comparison, Figure, Gpu, Recording, Region, Report


@wattmeter.region
def load(count: int) -> list[int]:
    return list(range(count))


@wattmeter.region("train")
def train(rows: list[int]) -> float:
    with wattmeter.region("epoch"):
        return sum(row * 0.5 for row in rows)


m = wattmeter.measure()
tracking = wattmeter.track(mode="append")


@m
def step(rows: list[int]) -> float:
    return train(rows)


@tracking
async def serve(count: int) -> float:
    async with wattmeter.region("request"):
        return train(load(count))


def joules(report: Report) -> tuple[float, str]:
    energy: Figure = report.energy
    per_core = energy / 4 if energy else energy
    mean: Figure = energy / report.time
    memory = [report.memory, report["max_ram.main.total_rss"]]
    text = f"{per_core} {mean} {energy.why} {report.exit_code}"
    return (energy.value or 0.0) + len(memory), text


def slowest(regions: list[Region]) -> str:
    region = max(regions, key=lambda one: one.time)
    return f"{region.name.upper()} {region.calls + 1} {region.exclusive.cpu_time.unit}"


def watts(gpus: list[Gpu]) -> float:
    return sum(gpu.power.draw or 0.0 for gpu in gpus if gpu.label == "gpu0")


def describe(path: str, other: str) -> str:
    recording: Recording = wattmeter.read(path)
    column = recording[next(iter(recording))]
    result: Comparison = wattmeter.compare(recording, other)
    start = recording.report.info["start_unix_ns"] // 10**9
    names = [device.label for device in recording.report.devices if device.energy]
    return f"{column.unit} {column[0] + start} {result.worst:+.1%} {names} {result.remarks}"


with wattmeter.track(sys.argv[1], mode="overwrite", notes={"batch": 32}) as t:
    step(load(1000))
print(joules(t.report), slowest(list(t.report.regions)), slowest(t.report.paths[:2]))
print(t.report.regions["train"].time, [gpu.utilization for gpu in t.report.gpus])
print(watts(list(wattmeter.gpus())), m.energy, m.seconds)
print(wattmeter.run(["true"], sys.argv[2], mode="overwrite").time)
print(describe(sys.argv[1], sys.argv[2]))
