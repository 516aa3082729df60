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
            "kind": "counter", "origin": "measured", "period_ns": 10000000 if kind == "host" else 0,
            "sensor": {}}


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
        said = remarks(report(folder)[0], "power steps by")
        assert len(said) == 1, (seconds, said)


def remarks(found, about="clock"):
    return [text for text in found["remarks"] if text.startswith("meter: ") and about in text]


@case("a clock that is off is found, and moved where that is asked for")
def wrong_clock(folder):
    generator = random.Random(2)
    for seconds, load in ((4, steady), (60, alternating)):
        machine = Machine(seconds, load)
        write_recording(folder / "run.csv", machine)
        for off in (2, -2, 30):
            rows = machine.meter(1, generator.random(), 40, 40, 1 + generator.gauss(0, 0.005))
            rows = [(when, watts * (1 + generator.gauss(0, 0.02))) for when, watts in rows]
            write_meter(folder / "meter.csv", rows, off)
            found, as_it_is = report(folder)
            assert any("its clock seems to be off" in text and "--meter-offset auto" in text
                       for text in remarks(found)), (seconds, off, found["remarks"])
            found, moved = report(folder, "--meter-offset", "auto")
            note = found["notes"]["meter"]
            offset = float(note.partition("offset of ")[2].split()[0])
            assert "the CPUs' use" in note and abs(offset + off) <= 0.76, (off, note)
            assert not remarks(found), found["remarks"]
            assert covers(moved, machine.joules()), (seconds, off, moved, machine.joules())
            print(f"# {seconds} s, {off} s off: {100 * (as_it_is['energy'] / machine.joules() - 1):.1f} %, "
                  f"moved by {offset} s: {100 * (moved['energy'] / machine.joules() - 1):.1f} %")
            _, given = report(folder, "--meter-offset", f"{-off}s")
            assert abs(given["energy"] / machine.joules() - 1) < 0.16, given


@case("a clock that is right is left alone")
def right_clock(folder):
    generator = random.Random(3)
    for seconds, load in ((2, steady), (4, steady), (10, steady), (60, alternating)):
        machine = Machine(seconds, load)
        write_recording(folder / "run.csv", machine)
        for _ in range(10):
            write_meter(folder / "meter.csv", machine.meter(1, generator.random(), 30, 30))
            found, _ = report(folder)
            assert not remarks(found), found["remarks"]


@case("where no offset stands out auto says so and moves nothing")
def no_peak(folder):
    generator = random.Random(4)
    machine = Machine(40, lambda when: 1.0 if when % 4 < 2 else 0.0)
    busy = [(when / 2, 150 + 100 * (when // 4 % 2)) for when in range(-200, 280)]
    noise = [(when, generator.uniform(60, 220)) for when in range(-40, 80)]
    level = [(when, 150) for when in range(-40, 80)]
    write_recording(folder / "run.csv", machine)
    for rows, why in ((busy, "several offsets fit"), (noise, "at no offset"),
                      (level, "at no offset"), (noise[36:40] + noise[44:47], "too few")):
        write_meter(folder / "meter.csv", rows)
        _, as_it_is = report(folder)
        found, meter = report(folder, "--meter-offset", "auto")
        assert any("no offset of its clock was found" in text for text in remarks(found)), (
            why, found["remarks"], found["notes"])
        assert meter["energy"] == as_it_is["energy"]
        assert found["notes"]["meter"].endswith("joined by the time of day"), found["notes"]


@case("an offset that is none is refused")
def refused(folder):
    write_recording(folder / "run.csv", Machine(4))
    write_meter(folder / "meter.csv", Machine(4).meter(1, 0.5))
    for word in ("", "-", "--2s", "2x", "nan", "25h", "AUTO"):
        done = wattmeter("report", "--meter", str(folder / "meter.csv"),
                         f"--meter-offset={word}", str(folder / "run.csv"))
        assert done.returncode == 2 and len(done.stderr.splitlines()) <= 2, done
    done = wattmeter("report", "--meter-offset", "1s", str(folder / "run.csv"))
    assert done.returncode == 2 and "needs --meter" in done.stderr, done


@case("a hole costs what is inside of it")
def holes(folder):
    machine = Machine(100)
    write_recording(folder / "run.csv", machine)
    for seconds in (4, 9, 20):
        rows = machine.meter(1, 0.43)
        first = next(k for k, (when, _) in enumerate(rows) if when > 30)
        write_meter(folder / "meter.csv", rows[:first + 1] + rows[first + seconds:])
        found, meter = report(folder)
        lost = remarks(found, "does not cover")[0]
        assert f"cover {seconds} s of 100 s" in lost, found["remarks"]
        truth = machine.joules() - seconds * BUSY_W
        assert abs(meter["energy"] / truth - 1) < 0.01, (seconds, meter, truth)
    # Of a hole of two readings the line says as much as it can.
    write_meter(folder / "meter.csv", rows[:first] + rows[first + 2:])
    found, meter = report(folder)
    assert not remarks(found, "cover") and covers(meter, machine.joules()), (found["remarks"], meter)


if __name__ == "__main__":
    main()
