#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU energy of a machine whose every joule is known: packages that follow a curve of
power, counters that run over, are set back or are dead, and whose the energy was."""

import contextlib
import csv
import json
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import threading
import time

import tap
from tap import case, near, wattmeter

RANGE_J = 262143.32885

CURVES = {
    "constant": lambda t: 50.0 * t,
    # 20 W and 80 W by turns, in step with the ticks and not.
    "square of 100 ms": lambda t: square(t, 0.1),
    "square of 37 ms": lambda t: square(t, 0.037),
    "ramp": lambda t: 10 * t + 20 * t * t,
}


def square(t, period):
    whole, part = divmod(t, period)
    return whole * period * 50 + (20 * part if part < period / 2 else 10 * period + 80 * (part - period / 2))


class Zone:
    """A zone of powercap, whose counter a thread moves on every millisecond."""

    def __init__(self, root, number, name, joules, first=1.0):
        self.path = root / f"class/powercap/intel-rapl:{number}"
        self.path.mkdir(parents=True)
        (self.path / "name").write_text(name + "\n")
        (self.path / "max_energy_range_uj").write_text("262143328850\n")
        self.joules, self.first, self.lost = joules, first, 0.0
        self.counter = open(self.path / "energy_uj", "w", encoding="ascii")
        self.move(0)

    def move(self, seconds):
        value = (self.first + self.joules(seconds) - self.lost) % (RANGE_J + 1e-6)
        self.counter.seek(0)
        self.counter.write(f"{int(value * 1e6):012d}\n")
        self.counter.flush()


class Card:
    """A counter of a GPU in `file`: a number from `offset` on in `form`, in units of `unit` J."""

    def __init__(self, file, watts, unit, form, offset=0):
        self.watts, self.unit, self.form, self.offset = watts, unit, form, offset
        self.counter = open(file, "r+b", buffering=0)
        self.move(0)

    def move(self, seconds):
        self.counter.seek(self.offset)
        self.counter.write(self.form(int((1000 + self.watts * seconds) / self.unit)))


def copy_cards(folder, name):
    """A copy of a captured machine with GPUs, and the folders of their devices on PCI."""
    shutil.copytree(tap.SOURCE / "tests/data/sys-drm" / name, folder / "sys", symlinks=True)
    return {card.parent.name: card.parent for card in (folder / "sys/devices").rglob("0000:*/uevent")}


def microjoules(number):
    return f"{number:015d}\n".encode()


@contextlib.contextmanager
def machine(folder, *zones):
    """The start of the curves, and the environment in which wattmeter sees the zones."""
    start = time.monotonic()

    def move():
        for zone in zones:
            zone.move(time.monotonic() - start)

    try:
        with tap.feeding(move):
            yield start, tap.environment(WATTMETER_SYSFS=str(folder / "sys"), WATTMETER_NVML="/none")
    finally:
        for zone in zones:
            zone.counter.close()


def measure(folder, env, *words, options=()):
    """The report, and the moments of its first and last tick."""
    output, recording = folder / "r.json", folder / "r.sqlite"
    done = wattmeter("run", "--json", "-o", output, "--overwrite", "--record", recording, *options, "--",
                     *words, env=env)
    assert done.returncode == 0, done
    with contextlib.closing(sqlite3.connect(recording)) as db:
        first, last = db.execute("SELECT min(time_ns), max(time_ns) FROM sample").fetchone()
    return tap.json.loads(output.read_text()), first / 1e9, last / 1e9


def with_gpus(scenario, **more):
    """The environment of a command for which the GPUs of a scenario are there."""
    return tap.environment(WATTMETER_NVML=str(tap.BUILD / "tests/fake/libnvidia-ml.so.1"),
                           FAKE_NVML_SCENARIO=str(scenario), **more)


def held(figure, expected, what):
    """Whether the truth is where the report says that it is."""
    most = figure["uncertainty_percent"] / 100 * figure["energy"]
    assert figure["uncertainty_percent"] < 15, (what, figure)
    near(figure["energy"], expected, most, what)


@case("known curves of power give the known joules, within the uncertainty that is told")
def _(folder):
    for number, (name, joules) in enumerate(CURVES.items()):
        place = folder / str(number)
        zone = Zone(place / "sys", 0, "package-0", joules)
        with machine(place, zone) as (start, env):
            time.sleep(0.2)
            r, first, last = measure(place, env, "sleep", "2")
        package = r["energy"]["cpu"]["packages"][0]
        assert package["name"] == "package0" and package["method"] == "counter", package
        held(package, joules(last - start) - joules(first - start), name)
        near(r["energy"]["total"], package["energy"], 1e-9, name)


@case("two dies, measured at the first one: its joules are both's, and nothing is missing")
def _(folder):
    cards = copy_cards(folder, "amd-instinct")
    die = Card(cards["0000:c9:00.0"] / "gpu_metrics", 237, 2**-16, lambda units: struct.pack("<Q", units), 24)
    with machine(folder, die) as (_, env):
        time.sleep(0.1)
        r, first, last = measure(folder, env, "sleep", "1")
    package, second = r["energy"]["gpus"]
    held(package, 237 * (last - first), "the package")
    near(r["energy"]["total"], package["energy"] + r["energy"]["cpu"]["total"], 1e-9)
    assert second["energy"] is None and "energy.total" not in r["why"], r["why"]
    assert r["energy"]["uncertainty_percent"] < 15, r["energy"]
    assert any("card2: its power is in that of card1" in note for note in r["remarks"]), r["remarks"]


@case("a GPU's counter beyond its highest limit: a note, and no figure if it is many times that")
def _(folder):
    for watts, note in ((3868, "card1: the energy counter jumped by more than the device can draw"),
                        (700, "more than the highest limit of its power, 328 W")):
        cards = copy_cards(folder / str(watts), "intel-xe")
        hwmon = next((cards["0000:03:00.0"] / "hwmon").iterdir())
        (hwmon / "power1_max").unlink()
        (hwmon / "power1_crit").write_text("328000000\n")
        with machine(folder / str(watts), Card(hwmon / "energy1_input", watts, 1e-6, microjoules)) as (_, env):
            time.sleep(0.1)
            r, _, _ = measure(folder, env, "sleep", "1")
        assert any(note in remark for remark in r["remarks"]), r["remarks"]
        assert (r["energy"]["gpus"][1]["energy"] is None) == (watts > 1000), r["energy"]


@case("counter and power of a GPU of many times its highest limit: neither is believed")
def _(folder):
    scenario = folder / "much.json"
    scenario.write_text(json.dumps({"gpus": [{"name": "H100", "power": 5000, "energy": {"start": 1000}}]}))
    r = tap.report("sleep", "0.5", env=with_gpus(scenario))
    assert r["energy"]["gpus"][0]["energy"] is None and r["gpus"][0]["power"]["max"] is None, r
    assert "more than the device can draw" in r["why"]["gpus.0.power.max"], r["why"]
    assert "energy.total" in r["why"], r["why"]


@case("more than eight GPUs are folded, and the one that is far off is named")
def _(folder):
    scenario = folder / "many.json"
    scenario.write_text(json.dumps({"gpus": [
        {"name": "H100", "count": 11, "power": {"points": [[0, 300]]}},
        {"name": "T4", "power": {"points": [[0, 40]]}}]}))
    done = wattmeter("run", "--", "sleep", "1", env=with_gpus(scenario))
    lines = {line.split()[0]: line for line in done.stderr.splitlines() if line.split()}
    assert lines["12"].startswith("12 GPUs") and "several models" in lines["12"], done.stderr
    powers = lines["power"].split()[1:]
    assert len(powers) == 6 and powers[1::2] == ["W"] * 3, done.stderr
    for power, true in zip(powers[::2], (40, 278.3, 300)):
        near(float(power), true, 0.01 * true, done.stderr)
    assert "gpu11 about " in lines["far"] and "gpu1 " not in lines["far"], done.stderr
    assert all(len(line) <= 80 for line in done.stderr.splitlines()), done.stderr


@case("a counter that runs over, and two packages")
def _(folder):
    zones = (Zone(folder / "sys", 0, "package-0", CURVES["constant"], first=RANGE_J - 40),
             Zone(folder / "sys", 1, "package-1", CURVES["ramp"]))
    with machine(folder, *zones) as (start, env):
        r, first, last = measure(folder, env, "sleep", "1.5")
    packages = r["energy"]["cpu"]["packages"]
    for package, zone in zip(packages, zones):
        held(package, zone.joules(last - start) - zone.joules(first - start), package["name"])
    near(r["energy"]["cpu"]["total"], sum(p["energy"] for p in packages), 1e-9)
    assert not [x for x in r["remarks"] if "package" in x], r["remarks"]


@case("a counter in steps of 0.7 s, as virtual machines have: joules, and no peak that is none")
def _(folder):
    zone = Zone(folder / "sys", 0, "package-0", lambda t: 70.0 * (t // 0.7))
    with machine(folder, zone) as (_, env):
        r, first, last = measure(folder, env, "sleep", "2")
    package, power = r["energy"]["cpu"]["packages"][0], r["energy"]["power"]
    print(f"# {last - first:.2f} s: {package}, {power}")
    near(package["energy"], 100 * (last - first), package["uncertainty_percent"] / 100 * package["energy"])
    near(package["energy"], 100 * (last - first), 12)
    assert package["uncertainty_percent"] < 50, package
    assert power["max"] <= 120, power
    assert "as measured" in package["sensor"], package


@case("a counter that is set back: no negative and no huge joule, and the report says so")
def _(folder):
    zone = Zone(folder / "sys", 0, "package-0", CURVES["constant"], first=5000.0)
    with machine(folder, zone) as (start, env):
        def reset():
            zone.lost = zone.first + zone.joules(time.monotonic() - start)
        timer = threading.Timer(1.0, reset)
        timer.start()
        r, first, last = measure(folder, env, "sleep", "2")
        timer.join()
    package = r["energy"]["cpu"]["packages"][0]
    whole = 50 * (last - first)
    assert 0.8 * whole < package["energy"] < 1.01 * whole, (whole, package)
    assert any("package0: the energy counter was set back" in x for x in r["remarks"]), r["remarks"]


@case("a counter that jumps beyond the package's limits is told from one that was set back")
def _(folder):
    zone = Zone(folder / "sys", 0, "package-0", CURVES["constant"], first=5000.0)
    (zone.path / "constraint_0_power_limit_uw").write_text("65000000\n")
    (zone.path / "constraint_1_max_power_uw").write_text("90000000\n")
    with machine(folder, zone) as (start, env):
        def jump():
            zone.lost = -2000.0
        timer = threading.Timer(1.0, jump)
        timer.start()
        r, first, last = measure(folder, env, "sleep", "2")
        timer.join()
    package = r["energy"]["cpu"]["packages"][0]
    whole = 50 * (last - first)
    assert 0.8 * whole < package["energy"] < 1.01 * whole, (whole, package)
    assert any("package0: the energy counter jumped by more" in x for x in r["remarks"]), r["remarks"]
    assert not any("set back" in x for x in r["remarks"]), r["remarks"]
    with contextlib.closing(sqlite3.connect(folder / "r.sqlite")) as db:
        states = [x for (x,) in db.execute("SELECT state FROM gap WHERE channel LIKE '%energy%'")]
    assert "jumped" in states, states
    again = wattmeter("report", "--json", folder / "r.sqlite", env=env)
    assert tap.json.loads(again.stdout)["remarks"] == r["remarks"], again


@case("a counter that is dead has no energy")
def _(folder):
    zone = Zone(folder / "sys", 0, "package-0", lambda t: 0.0)
    with machine(folder, zone) as (_, env):
        r, _, _ = measure(folder, env, "sleep", "1.5")
    assert r["energy"]["cpu"]["total"] is None, r["energy"]
    assert "move" in r["why"]["energy.cpu.packages.0.energy"], r["why"]


@case("a counter that says 0 is known to be dead from the start: the estimate stands in for it")
def _(folder):
    zone = Zone(folder / "sys", 0, "package-0", lambda t: 0.0, first=0.0)
    with machine(folder, zone) as (_, env):
        r, _, _ = measure(folder, env, "sleep", "0.3")
    assert "its counters stay at 0: dead" in r["sources"]["rapl"]["why"], r["sources"]
    package, = r["energy"]["cpu"]["packages"]
    assert package["source"] == "estimate" and package["energy"] > 0, package
    assert r["energy"]["estimated"] is True, r["energy"]


@case("parts of a package and the board are shown, and not added")
def _(folder):
    zones = (Zone(folder / "sys", 0, "package-0", CURVES["constant"]),
             Zone(folder / "sys", "0:0", "uncore", lambda t: 30 * t),
             Zone(folder / "sys", "0:1", "dram", lambda t: 4 * t),
             Zone(folder / "sys", 1, "psys", lambda t: 90 * t))
    with machine(folder, *zones) as (start, env):
        r, first, last = measure(folder, env, "sleep", "1")
    energy = r["energy"]
    seconds = last - first
    near(energy["cpu"]["total"], 50 * seconds, 3)
    near(energy["cpu"]["parts"][0]["energy"], 30 * seconds, 3)
    near(energy["cpu"]["dram"][0]["energy"], 4 * seconds, 1)
    near(energy["cpu"]["psys"][0]["energy"], 90 * seconds, 5)
    near(energy["total"], energy["cpu"]["total"] + energy["cpu"]["dram"][0]["energy"], 1e-9)
    assert energy["covers"] == ["cpu", "dram"], energy["covers"]


@case("a baseline: what the machine takes idle is nobody's, and the parts add up")
def _(folder):
    zone = Zone(folder / "sys", 0, "package-0", CURVES["constant"])
    with machine(folder, zone) as (_, env):
        begin = time.monotonic()
        done = wattmeter("run", "--json", "--baseline", "1s", "--baseline-anyway", "--", "sleep", "1",
                         env=env)
        spent = time.monotonic() - begin
    assert 2 < spent < 4, spent
    assert "measuring the idle machine for 1 s" in done.stderr, done.stderr
    energy = tap.json.loads(done.stdout)["energy"]
    parts = energy["attributed"]
    near(sum(parts.values()), energy["total"], 1e-9 * energy["total"])
    near(parts["idle"], energy["total"], 0.05 * energy["total"], "all of it was taken idle, too")

    # The report says what idle was taken to be.
    assert energy["baseline"]["seconds"] >= 0.3, energy["baseline"]
    device = energy["baseline"]["devices"][0]
    assert device["name"] == "package0", device
    near(device["power"], 50, 5, "power of the baseline")

    for number in signal.SIGTERM, signal.SIGINT:
        process = subprocess.Popen([tap.WATTMETER, "run", "--baseline", "30s", "--", "touch", folder / "ran"],
                                   env=env, stderr=subprocess.PIPE, text=True)
        assert "idle machine" in process.stderr.readline()
        time.sleep(0.3)
        process.send_signal(number)
        assert process.wait(10) == -number and not (folder / "ran").exists(), number

    refused = wattmeter("run", "--baseline", "2h", "--", "true", env=env)
    assert refused.returncode == 2 and "baseline" in refused.stderr, refused
    refused = wattmeter("run", "--baseline-anyway", "--", "touch", folder / "ran", env=env)
    assert refused.returncode == 2 and not (folder / "ran").exists(), refused
    assert refused.stderr == "wattmeter run: --baseline-anyway needs --baseline\n", refused


@case("a baseline of a busy machine is not used, unless that is asked for")
def _(folder):
    zone = Zone(folder / "sys", 0, "package-0", CURVES["constant"])
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        with machine(folder, zone) as (_, env):
            for options in (), ("--baseline-anyway",):
                done = wattmeter("run", "--json", "--baseline", "500ms", *options, "--",
                                 "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", env=env)
                found = tap.json.loads(done.stdout)
                said = [text for text in found["remarks"] if text.startswith("baseline: ")]
                assert len(said) == 1 and "the machine was not idle, the CPUs were busy" in said[0], found
                assert ("--baseline-anyway" in said[0]) == (not options), said
                assert bool(found["energy"]["baseline"]["devices"]) == bool(options), found["energy"]
                if not options:
                    # Measured as if there had been none: of all cores' time the command had its part.
                    all_cores = found["cpu_utilization"]["system_core_count"] * found["compute_time"]["time"]
                    part = found["cpu_time"]["total"] / all_cores
                    assert found["energy"]["attributed"]["tree"] > 0.8 * part * found["energy"]["total"], found
    finally:
        busy.kill()
        busy.wait()


@case("a GPU that is lost, in the run or before it: sums are the least they may be, everywhere")
def _(folder):
    for lost_at, gpus in (0, 2), (0.12, 3), (0.6, 3):
        scenario = folder / "lost.json"
        scenario.write_text(json.dumps({"gpus": [{"power": 200}, {"power": 300, "lost_at": lost_at},
                                                 {"power": 400}]}))
        env = with_gpus(scenario)
        recording = str(folder / "run.sqlite")
        done = wattmeter("run", "--record", recording, "--overwrite", "--json", "--", "sleep", "1", env=env)
        live = tap.json.loads(done.stdout)
        stored = tap.json.loads(wattmeter("report", "--json", recording).stdout)
        for found in live, stored:
            energy = found["energy"]
            assert len(energy["gpus"]) == gpus, energy
            known = sum(gpu["energy"] or 0 for gpu in energy["gpus"])
            assert 500 < known < energy["total"] < known + 100, (lost_at, energy)
            assert "GPU is lost" in found["why"]["energy.total"], found["why"]
            assert energy["uncertainty_percent"] is None and "gpus" in energy["covers"], energy
        text = wattmeter("report", recording).stdout
        assert "at least" in next(line for line in text.splitlines() if line.startswith("Energy")), text
        rows = wattmeter("report", "--csv", recording).stdout.splitlines()
        row = dict(zip(rows[0].split(","), next(csv.reader(rows[1:]))))
        assert {"energy", "gpu_energy"} <= set(row["at_least"].split()), row
        near(float(row["gpu_energy"]), known, 1e-9 * known)
        assert row["energy_uncertainty_percent"] == "", row

    # A GPU that is the only one is missing from the sum, too.
    for lost_at in 0, 0.12:
        scenario.write_text(json.dumps({"gpus": [{"power": 200, "lost_at": lost_at}]}))
        text = wattmeter("run", "--", "sleep", "0.5", env=env).stderr
        for line in text.splitlines():
            assert not line.startswith("Energy") or "at least" in line, text


def boards(folder, driver, **watts):
    """A hwmon device of `driver` for each sensor, with its label."""
    for number, (label, value) in enumerate(watts.items()):
        sensor = folder / f"sys/class/hwmon/hwmon{number}"
        sensor.mkdir(parents=True)
        (sensor / "name").write_text(driver + "\n")
        (sensor / "power1_average").write_text(f"{value * 1000000}\n")
        (sensor / "power1_average_interval").write_text("50\n")
        (sensor / ("power1_oem_info" if driver == "power_meter" else "power1_label")).write_text(label + "\n")


GRACE = {"Module Power Socket 0": 520, "Grace Power Socket 0": 220, "CPU Power Socket 0": 150,
         "SysIO Power Socket 0": 30}


def hopper(folder, scopes, count=1):
    """GPUs of which NVML reports power in these scopes; the energy counter is the module's."""
    scenario = folder / "hopper.json"
    gpu = {"name": "SIMULATED NVIDIA GH200 480GB", "power": 300, "power_module": 520, "utilization": 0.9,
           "power_instant_scopes": scopes, "power_average_scopes": scopes}
    scenario.write_text(json.dumps({"gpus": count * [gpu]}))
    return with_gpus(scenario, WATTMETER_SYSFS=str(folder / "sys"))


def watts(figure, report):
    return figure / report["compute_time"]["time"]


def measured(env, *options):
    done = wattmeter("run", "--json", *options, "--", "sleep", "1", env=env)
    assert done.returncode == 0, done
    return tap.json.loads(done.stdout)


@case("a module contains its GPU and its CPU: whatever scope is known, nothing counts twice", tries=3)
def _(folder):
    for number, (scopes, has_boards, gpus, total, covers, meter) in enumerate((
            ([0, 1], True, 1, 520, ["cpu", "gpus"], None),
            ([1], True, 1, 520, ["module"], "module0"),
            ([], True, 1, 520, ["module"], "module0"),
            # The CPU is an estimate then, and the module's counter has measured it.
            ([0, 1], False, 1, 520, ["module"], "gpu0"),
            ([1], False, 1, 520, ["module"], "gpu0"),
            # Nobody knows whether two GPUs share a module, whose power is then known twice.
            ([1], False, 2, None, ["cpu"], None))):
        place = folder / str(number)
        (place / "sys").mkdir(parents=True)
        if has_boards:
            boards(place, "power_meter", **GRACE)
        env = hopper(place, scopes, gpus)
        r = measured(env, "--record", place / "r.csv")
        stored = tap.json.loads(wattmeter("report", "--json", place / "r.csv").stdout)
        for found in r, stored:
            energy = found["energy"]
            what = (scopes, has_boards, gpus, energy)
            assert energy["covers"] == covers and energy.get("meter") == meter, what
            if total is not None:
                near(watts(energy["total"], found), total, 0.02 * total, str(what))
            for gpu in energy["gpus"]:
                if 0 in scopes:
                    near(watts(gpu["energy"], found), 300, 6, str(what))
                else:
                    assert gpu["energy"] is None, what
                    assert "the whole module only" in found["why"]["energy.gpus.0.energy"], found["why"]
            if has_boards:
                near(watts(energy["cpu"]["total"], found), 220, 4.4, str(what))
                parts = {part["name"] for part in energy["cpu"]["parts"]}
                assert parts == {"socket0_core", "socket0_sysio"}, what
                assert not found["remarks"], found["remarks"]


@case("a socket's own sensor is the CPU's energy, and a meter of all goes before an estimate", tries=3)
def _(folder):
    cases = {
        "hsmp": ("amd_hsmp_hwmon", {"": 180}, 180, ["cpu"], False),
        "apple": ("macsmc_hwmon", {"Total System Power": 14, "3.8 V Rail Power": 3}, 14, ["platform"], True),
        "jetson": ("ina3221", {"VDD_IN": 6, "VDD_CPU_GPU_CV": 2}, 6, ["platform"], True),
        "server": ("power_meter", {"power1": 312}, 312, ["platform"], True),
        "two that nobody can tell apart": ("power_meter", {"a": 312, "b": 300}, None, ["cpu"], True),
    }
    for name, (driver, sensors, total, covers, has_estimate) in cases.items():
        place = folder / name
        boards(place, driver, **sensors)
        env = tap.environment(WATTMETER_SYSFS=str(place / "sys"), WATTMETER_NVML="/none")
        r = measured(env)
        energy = r["energy"]
        assert energy["covers"] == covers, (name, energy)
        assert ("estimated" in energy) == (total is None), (name, energy)
        if total is not None:
            near(watts(energy["total"], r), total, 0.05 * total, name)
        estimates = [p for p in energy["cpu"]["packages"] if p["source"] == "estimate"]
        assert bool(estimates) == has_estimate, (name, energy)
        parts = energy["attributed"]
        near(sum(parts.values()), energy["total"], 1e-9 * energy["total"], name)


@case("of batteries, of psys and of what other meters measured less than the parts a note speaks")
def _(folder):
    zones = [Zone(folder / "sys", 0, "package-0", lambda t: 50 * t), Zone(folder / "sys", 1, "psys", lambda t: 30 * t)]
    with machine(folder, *zones) as (_, env):
        r, _, _ = measure(folder, env, "sleep", "1")
        note = [text for text in r["remarks"] if "more than the" in text]
        assert len(note) == 1 and "psys measured of the platform" in note[0], r["remarks"]
        near(watts(r["energy"]["total"], r), 50, 2)
        assert r["energy"]["covers"] == ["cpu"], r["energy"]


def as_other_user(folder, env, *words, denied=()):
    """What the report is for a user who may not read these files."""
    if os.geteuid() != 0:
        raise tap.Skip("only root can become somebody else")
    command = tap.copy_command(folder / "bin" / "wattmeter")
    for path in folder, *folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.parent == command.parent else 0o644)
    for path in denied:
        path.chmod(0o400)
    return subprocess.run([command, *words], env={**env, "LD_LIBRARY_PATH": str(command.parent)}, cwd="/",
                          capture_output=True, text=True, timeout=300, user=65534, group=65534, extra_groups=[])


@case("a package that may not be read: at least, which one, and the command that opens it", tries=3)
def _(folder):
    zones = [Zone(folder / "sys", 0, "package-0", lambda t: 150 * t), Zone(folder / "sys", 1, "package-1", lambda t: 150 * t),
             Zone(folder / "sys", "0:0", "dram", lambda t: 4 * t), Zone(folder / "sys", "1:0", "dram", lambda t: 4 * t)]
    with machine(folder, *zones) as (_, env):
        closed = zones[1].path / "energy_uj"
        done = as_other_user(folder, env, "run", "--price", "0.3", "--", "sleep", "1", denied=[closed])
        lines = done.stderr.splitlines()
        for label in "CPU   ", "Energy", "Cost":
            line = next(line for line in lines if line.startswith(label))
            assert "at least" in line, done.stderr
        assert "intel-rapl:1/energy_uj: Permission denied" in done.stderr.replace("\n        ", " "), done.stderr
        assert any(line.startswith("Denied: rapl:") for line in lines) and "sudo chown nobody" in done.stderr, done.stderr
        assert "CPU energy lacks package1" in done.stderr and "an estimate for all CPUs is" in done.stderr, done.stderr

        done = as_other_user(folder, env, "run", "--json", "--price", "0.3", "--", "sleep", "1", denied=[closed])
        r = tap.json.loads(done.stdout)
        near(watts(r["energy"]["cpu"]["total"], r), 150, 8)
        near(watts(r["energy"]["total"], r), 158, 8)
        for path in "energy.total", "energy.cpu.total", "energy.power.mean", "energy.power.max", "energy.cost.amount":
            assert r["why"][path].startswith("package1: "), (path, r["why"])
        assert r["energy"]["uncertainty_percent"] is None, r["energy"]

        both = [zone.path / "energy_uj" for zone in zones[:2]]
        done = as_other_user(folder, env, "run", "--json", "--", "sleep", "1", denied=both)
        energy = tap.json.loads(done.stdout)["energy"]
        assert energy["cpu"]["total"] > 0 and energy["estimated"] is True, energy


@case("a package of the machine that has no counter makes the sum the least it may be", tries=3)
def _(folder):
    cpus = folder / "sys/devices/system/cpu"
    for cpu in 0, 1:
        (cpus / f"cpu{cpu}/topology").mkdir(parents=True)
        (cpus / f"cpu{cpu}/topology/physical_package_id").write_text(f"{cpu}\n")
    (cpus / "online").write_text("0-1\n")
    with machine(folder, Zone(folder / "sys", 0, "package-0", lambda t: 50 * t)) as (_, env):
        r, _, _ = measure(folder, env, "sleep", "1")
        near(watts(r["energy"]["total"], r), 50, 2.5)
        assert r["why"]["energy.total"] == "package1: it has no counter here", r["why"]


@case("the estimate is there only where nothing measures, or where it is asked for; and says so", tries=3)
def _(folder):
    zone = Zone(folder / "sys", 0, "package-0", CURVES["constant"])
    with machine(folder, zone) as (_, env):
        r, _, _ = measure(folder, env, "sleep", "0.3")
        assert [p["source"] for p in r["energy"]["cpu"]["packages"]] == ["rapl"], r["energy"]
        r, _, _ = measure(folder / "sys", env, "sleep", "0.3", options=("--cpu-watts", "10:40"))
        packages = r["energy"]["cpu"]["packages"]
        assert sorted(p["source"] for p in packages) == ["estimate", "rapl"], packages
        near(r["energy"]["cpu"]["total"], 50 * r["compute_time"]["time"], 2)
        assert "origin" not in r["energy"], r["energy"]

    (folder / "empty").mkdir()
    alone = tap.environment(WATTMETER_SYSFS=str(folder / "empty"), WATTMETER_NVML="/none")
    r, _, _ = measure(folder / "empty", alone, "sleep", "0.3", options=("--cpu-watts", "10:40"))
    seconds = r["compute_time"]["time"]
    package = r["energy"]["cpu"]["packages"][0]
    assert package["origin"] == "estimated" and package["method"] == "model", package
    assert 9 * seconds < package["energy"] < 41 * seconds, (seconds, package)
    assert r["energy"]["estimated"] is True, r["energy"]

    # A model's joules have no steps: those of a millisecond are right, but whose they were
    # cannot be told from the kernel's 10 ms.
    for _ in range(5):
        r, first, last = measure(folder / "empty", alone, "sleep", "0.001", options=("--cpu-watts", "20:20"))
        cpu = r["energy"]["cpu"]
        assert cpu["low"] <= 20 * (last - first) <= cpu["high"], (cpu, first, last)
        if last - first > 0.025:
            continue  # the machine was busy
        assert cpu["packages"][0]["attributed"]["tree"] is None, cpu
        assert "three updates" in r["why"]["energy.cpu.packages.0.attributed.tree"], r["why"]
        assert r["processes"]["peaks"][0]["cpu_energy"] is None, r["processes"]

    for wrong in ("10", "40:10", "-1:5", "a:b", "1:1e9", ""):
        refused = wattmeter("run", "--cpu-watts", wrong, "--", "touch", folder / "ran", env=alone)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1, (wrong, refused)
    assert not (folder / "ran").exists()


# A call that costs what those of an H100 cost four times over, so that a run of seconds shows it.
COSTLY = {
    "gpus": [{"name": "SIMULATED H100", "energy": {"period_ms": 100}, "power_period_ms": 100,
              "power": {"shape": "square", "low": 50, "high": 450, "period": 1.7, "duty": 0.5},
              "utilization": {"shape": "square", "low": 0, "high": 1, "period": 1.7, "duty": 0.5},
              "processes": "tree"}],
    "faults": [{"call": "nvmlDeviceGetTotalEnergyConsumption", "cpu_ms": 10},
               {"call": "nvmlDeviceGetProcessUtilization", "cpu_ms": 8}],
}


def joules_of_square(t):
    """Of the first t seconds of that square."""
    whole, part = divmod(t, 1.7)
    return whole * 1.7 * 250 + 450 * min(part, 0.85) + 50 * max(part - 0.85, 0)


@case("a GPU's counter whose reading costs is read at the ends, and seldom between: nothing else is missed")
def _(folder):
    start_ns = time.monotonic_ns()
    (folder / "costly.json").write_text(json.dumps({**COSTLY, "start_monotonic_ns": start_ns}))
    env = with_gpus(folder / "costly.json", WATTMETER_SYSFS="/none")
    r, first, last = measure(folder, env, "sleep", "3")
    assert tap.json.loads(wattmeter("report", "--json", folder / "r.sqlite").stdout) == r
    gpu = r["energy"]["gpus"][0]
    assert gpu["method"] == "counter", gpu
    with contextlib.closing(sqlite3.connect(folder / "r.sqlite")) as db:
        rows = db.execute("SELECT time_ns, gpu0_energy_time_ns, gpu0_energy_J, gpu0_power_W FROM sample").fetchall()
        gaps = db.execute("SELECT * FROM gap").fetchall()
    rows = [row for row in rows if row[1] is not None]  # those that the driver answered in time
    read = sorted({row[1] for row in rows})
    assert not gaps, gaps
    # At both ends and once in the first second, which says what it costs: 10 ms, of which
    # 0.125 % of a core makes 8 s.
    assert len(rows) >= 10 and 2 <= len(read) <= 4, (len(rows), read)
    assert rows[0][1] == read[0] and rows[-1][1] == read[-1] and all(row[3] for row in rows), rows
    begin, end = (joules_of_square(moment - start_ns / 1e9) for moment in (first, last))
    near(gpu["energy"], end - begin, 2 * 0.1 * 400, "joules, but for a period at each end")
    # All that is used is the tree's, whenever the driver was asked last.
    assert gpu["attributed"]["tree"] > 0.85 * gpu["energy"], gpu


SLOW_CALLS = {"counter": "nvmlDeviceGetTotalEnergyConsumption", "power": "nvmlDeviceGetFieldValues*",
              "processes": "nvmlDeviceGet*RunningProcesses*", "all": "nvmlDeviceGet*"}


@case("joules are of the run, however slowly a driver answers, and of the GPU beside it, too")
def _(folder):
    kinds = {"both": {}, "a counter": {"power_management": False}, "power": {"energy": {"mode": "absent"}}}
    for kind, of_gpu in kinds.items():
        for call, ms in (("counter", 40), ("power", 40), ("processes", 40), ("all", 20)):
            scenario = {
                "gpus": [{"power": 100, "count": 2, **of_gpu}],
                "faults": [{"call": SLOW_CALLS[call], "gpu": 0, "from": 0.4 if call == "all" else 0,
                            "to": 1000, "delay_ms": ms}],
            }
            (folder / "scenario.json").write_text(json.dumps(scenario))
            env = with_gpus(folder / "scenario.json")
            r, _, _ = measure(folder, env, "sleep", "1")
            again = json.loads(wattmeter("report", "--json", folder / "r.sqlite").stdout)
            assert again["energy"] == r["energy"], (again["energy"], r["energy"])
            truth = 100 * r["compute_time"]["time"]
            for gpu in r["energy"]["gpus"]:
                what = f"{kind}, calls of {ms} ms: {call}"
                assert gpu["low"] <= truth <= gpu["high"], (what, truth, gpu)
                near(gpu["energy"], truth, 0.03 * truth, what)


@case("an integrated GPU without a sensor of power does not stand for the CPU, which is estimated")
def _(folder):
    for machine, origin in (("intel-integrated", "estimated"), ("intel-xe", "estimated"), ("amd-apu", None)):
        sysfs = tap.SOURCE / "tests/data/sys-drm" / machine
        env = tap.environment(WATTMETER_SYSFS=str(sysfs), WATTMETER_NVML="/nonexistent")
        r, _, _ = measure(folder, env, "sleep", "0.3")
        packages = [part for part in r["energy"]["cpu"]["packages"] if part["energy"] is not None]
        assert [part.get("origin") for part in packages] == [origin], (machine, r["energy"]["cpu"])


@case("of two meters of the platform none is the total, and a note says that they measured more")
def _(folder):
    for number, (name, values) in enumerate((
            ("ina3221", {"in1_label": "VDD_IN", "in1_input": "19000", "curr1_input": "9000"}),
            ("corsairpsu", {"power1_label": "power total", "power1_input": "350000000"}))):
        sensor = folder / f"sys/class/hwmon/hwmon{number}"
        sensor.mkdir(parents=True)
        for file, text in {"name": name, **values}.items():
            (sensor / file).write_text(text + "\n")
    env = tap.environment(WATTMETER_SYSFS=str(folder / "sys"), WATTMETER_NVML="/nonexistent")
    r, _, _ = measure(folder, env, "sleep", "0.5")
    assert r["energy"]["origin"] == "estimated", r["energy"]
    assert any("measured more" in note for note in r["remarks"]), r["remarks"]


if __name__ == "__main__":
    tap.main()
