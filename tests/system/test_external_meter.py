#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An external meter beside a recording, both made here in virtual time: the machine idles,
the command works, and the meter sees the means of its periods. What the report says of the
meter's joules is held against what was drawn."""

import csv
import json
import random

from tap import case, main, wattmeter

IDLE_W, BUSY_W = 60, 220
START_NS = 5 * 10**9  # of the recording, by the machine's monotonic clock
START_UNIX = 1795247379  # the same moment, by the time of day
TICK_S = 0.1
RUNS = 60


def steady(_when):
    return 1.0


def alternating(when):
    """Work for 7 s, rest for 4 s."""
    return 1.0 if when % 11 < 7 else 0.1


class Machine:
    """Watts at any time before, in and after a command that lasts so long, from 0 on."""

    def __init__(self, seconds, load=steady):
        self.seconds, self.load = seconds, load

    def use(self, when):
        return self.load(when) if 0 <= when < self.seconds else 0

    def watts(self, when):
        return IDLE_W + (BUSY_W - IDLE_W) * self.use(when)

    def mean(self, what, start, end):
        steps = max(int((end - start) / 0.005), 1)
        width = (end - start) / steps
        return sum(what(start + (k + 0.5) * width) for k in range(steps)) / steps

    def joules(self):
        return self.mean(self.watts, 0, self.seconds) * self.seconds

    def meter(self, period, phase, before=10, after=10, gain=1.0):
        """Rows of a meter that dates the mean of a period at its end."""
        count = int((before + self.seconds + after) / period)
        times = [phase - before + k * period for k in range(count)]
        return [(when, gain * self.mean(self.watts, when - period, when)) for when in times]


def channel(label, kind):
    return {"column": f"{label}_cpu_time_s", "clock_column": f"{label}_time_ns",
            "source": "host" if label == "host" else "tracker", "device": label, "label": label,
            "model": None, "metric": "cpu_time", "unit": "s", "device_kind": kind,
            "kind": "counter", "origin": "measured", "period_ns": 10000000 if kind == "host" else 0}


def write_recording(path, machine):
    """One core at work, as the machine's load has it."""
    run = {"id": "c9b1f1de-6f2c-4a55-9d3b-0d7a3c1f2e11", "version": "0.1.0", "mode": "run",
           "host": "node1", "anchor_ns": START_NS, "anchor_unix_ns": START_UNIX * 10**9,
           "interval_ns": int(TICK_S * 1e9), "core_count": 4, "command": ["work"], "sources": []}
    result = {"end_ns": START_NS + round(machine.seconds * 1e9), "exit_status": 0,
              "exit_signal": None, "cpu_method": "", "memory_note": "", "recording_trouble": ""}
    channels = [channel("tree", "tree"), channel("host", "host")]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ram_unit", "gpu_ram_unit", "time_unit", "ram_system_capacity",
                         "gpu_ram_system_capacity", "system_core_count", "n_expected_cores",
                         "system_gpu_count", "n_expected_gpus", "wattmeter_format", "wattmeter_run", "wattmeter_channels",
                         "wattmeter_gaps_and_result"])
        writer.writerow(["bytes", "bytes", "seconds", 0, 0, 4, 4, 0, 0, 1, json.dumps(run), json.dumps(channels),
                         json.dumps({"gaps": [], "gaps_left_out": 0, "result": result})])
        writer.writerow(["timestamp", "time_ns", "tree_time_ns", "host_time_ns",
                         "tree_cpu_time_s", "host_cpu_time_s"])
        used, ticks = 0.0, round(machine.seconds / TICK_S)
        for k in range(ticks + 1):
            when = min(k * TICK_S, machine.seconds)
            now = START_NS + round(when * 1e9)
            if k > 0:
                used += machine.mean(machine.use, when - TICK_S, when) * TICK_S
            writer.writerow([START_UNIX + when, now, now, now, f"{used:.9f}", f"{100 + used:.2f}"])


def write_meter(path, rows, off=0.0):
    path.write_text("time,plug_W\n" + "".join(f"{START_UNIX + when + off:.6f},{watts:.3f}\n"
                                               for when, watts in rows))


def report(folder, *options):
    done = wattmeter("report", "--json", "--meter", str(folder / "meter.csv"), *options,
                     str(folder / "run.csv"))
    assert done.returncode == 0, done
    found = json.loads(done.stdout)
    meters = [device for device in found["energy"]["other"] if device["source"] == "meter"]
    return found, meters[0]


def covers(meter, truth):
    return abs(meter["energy"] - truth) <= meter["uncertainty_percent"] / 100 * meter["energy"]


@case("a meter of 1 Hz over a command on an idle machine: the truth is inside")
def coverage(folder):
    generator = random.Random(18)
    for seconds in (0.5, 1.5, 2.5, 4, 10, 30):
        machine = Machine(seconds)
        write_recording(folder / "run.csv", machine)
        inside, errors, stated = 0, [], []
        for _ in range(RUNS):
            gain = 1 + max(min(generator.gauss(0, 0.01), 0.02), -0.02)
            write_meter(folder / "meter.csv", machine.meter(1, generator.random(), gain=gain))
            _, meter = report(folder)
            inside += covers(meter, machine.joules())
            errors.append(meter["energy"] / machine.joules() - 1)
            stated.append(meter["uncertainty_percent"])
        print(f"# {seconds} s: inside in {inside} of {RUNS}, mean error "
              f"{100 * sum(errors) / RUNS:.1f} %, stated {sorted(stated)[RUNS // 2]:.1f} %")
        assert inside >= 0.95 * RUNS, (seconds, inside)


if __name__ == "__main__":
    main()
