# SPDX-License-Identifier: Apache-2.0
"""check_sensor.py - how often the power and energy that NVML tells are renewed, and
how long they take to follow a load that begins at once."""

import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import nvml
import tables
import tap
from tap import Skip, case

SECONDS = float(os.environ.get("SENSOR_SECONDS", "20"))
HZ = 1000
SENSORS = {
    "instant power (field 186)": lambda driver, device: driver.field(device, nvml.POWER_INSTANT),
    "average power (field 185)": lambda driver, device: driver.field(device, nvml.POWER_AVERAGE),
    "nvmlDeviceGetPowerUsage": lambda driver, device: driver.power(device),
    "energy counter": lambda driver, device: driver.energy(device),
}


def answering(driver, device):
    """The sensors that this GPU has."""
    found = {}
    for name, read in SENSORS.items():
        try:
            read(driver, device)
            found[name] = read
        except nvml.Failed:
            pass
    return found


def sample(driver, device, sensors, until):
    """(time, value) of each sensor, HZ times a second until until() is true."""
    series = {name: [] for name in sensors}
    due = time.monotonic()
    while not until():
        for name, read in sensors.items():
            series[name].append((time.monotonic(), read(driver, device)))
        due = max(due + 1 / HZ, time.monotonic())
        time.sleep(max(0, due - time.monotonic()))
    return series


def changes(series):
    """When the value was another one than before."""
    return [later[0] for earlier, later in zip(series, series[1:]) if later[1] != earlier[1]]


def period(series):
    """(median, shortest decile, longest decile) of the seconds between changes, or
    None where there were too few of them."""
    times = changes(series)
    gaps = sorted(later - earlier for earlier, later in zip(times, times[1:]))
    if len(gaps) < 8:
        return None
    return statistics.median(gaps), gaps[len(gaps) // 10], gaps[len(gaps) * 9 // 10]


def rise(series, began, ended):
    """Seconds from the begin of a load until 10 % and 90 % of its rise are shown, or
    None where there is none to speak of. The rise is from the last second before
    to the last half second of the load."""
    low = [value for when, value in series if began - 1 <= when < began]
    high = [value for when, value in series if ended - 0.5 <= when < ended]
    if not low or not high:
        return None
    floor, top = statistics.median(low), statistics.median(high)
    if top < 1.2 * floor:
        return None
    return tuple(
        next(when for when, value in series
             if when >= began and value >= floor + share * (top - floor)) - began
        for share in (0.1, 0.9))


@case(f"sensor: how often it is renewed, sampled for {SECONDS:g} s at {HZ} Hz")
def _(folder):
    with nvml.Nvml() as driver:
        for index in range(driver.count()):
            device = driver.device(index)
            sensors = answering(driver, device)
            end = time.monotonic() + SECONDS
            series = sample(driver, device, sensors, lambda: time.monotonic() >= end)
            rows = []
            for name in SENSORS:
                found = period(series[name]) if name in sensors else None
                if name not in sensors:
                    rows.append((name, "not supported", "", ""))
                elif not found:
                    rows.append((name, "too few changes", "", ""))
                else:
                    rows.append((name, *(f"{1e3 * value:.1f}" for value in found)))
            tables.show(
                f"sensor: milliseconds between new values of GPU {index}, "
                f"{driver.text('nvmlDeviceGetName', device)}",
                ("sensor", "median", "a tenth is below", "a tenth is above"), rows,
                "of a GPU at rest, which may repeat a value; then the shortest are the period")
            assert sensors, "no sensor answers"


def start_load(uuid):
    """A program on that GPU that waits to be told."""
    load = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("cuda.py")), uuid],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if load.stdout.readline().strip() != "ready":
        load.stdin.close()
        why = load.stderr.read().strip().splitlines() or ["it ended"]
        load.wait()
        raise Skip(f"no load on the GPU: {why[-1]}")
    return load


def tell(load, request):
    """What it answers, as words."""
    load.stdin.write(request + "\n")
    load.stdin.flush()
    answer = load.stdout.readline().split()
    if not answer:
        why = load.stderr.read().strip().splitlines() or ["it ended"]
        raise Skip(f"no load on the GPU: {why[-1]}")
    return answer


@case("sensor: how long it takes to follow a load of 4 s")
def _(folder):
    with nvml.Nvml() as driver:
        device = driver.device(0)
        sensors = answering(driver, device)
        load = start_load(driver.text("nvmlDeviceGetUUID", device))
        try:
            tell(load, "burn 0.5")  # compiles, and raises the clocks
            time.sleep(5)
            answers = []

            def burn():
                time.sleep(1.5)
                answers.extend(tell(load, "burn 4"))

            thread = threading.Thread(target=burn)
            thread.start()
            series = sample(driver, device, sensors, lambda: not thread.is_alive())
            thread.join()
        finally:
            load.stdin.close()
            load.wait()
        if len(answers) != 3:
            raise Skip("no load on the GPU: it ended early")
        began, ended = map(float, answers[1:])
        rows = []
        for name in sensors:
            found = None if name == "energy counter" else rise(series[name], began, ended)
            if found:
                rows.append((name, *(f"{1e3 * value:.0f}" for value in found),
                             f"{1e3 * (found[1] - found[0]) / 0.8:.0f}"))
        tables.show("sensor: milliseconds from the begin of a load, GPU 0",
                    ("sensor", "10 % of the rise", "90 %", "window"), rows,
                    "window: the length of an average that would take so long from 10 to 90 %")
        assert rows, "no sensor follows the load"
