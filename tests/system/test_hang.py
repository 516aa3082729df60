#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drivers that hang: wattmeter goes on, and says what it does not know."""

import contextlib
import json
import signal
import sqlite3
import subprocess
import time

import tap
from tap import case, near, wattmeter

LIBRARY = tap.BUILD / "tests" / "fake" / "libnvidia-ml.so.1"
FIRST_WATTS, SECOND_WATTS = 250, 100
ENERGY = "nvmlDeviceGetTotalEnergyConsumption"


def environment(folder, *faults, gpus=None):
    """A driver of two GPUs in which the faults happen."""
    scenario = folder / "scenario.json"
    scenario.write_text(json.dumps({
        "gpus": gpus or [{"power": FIRST_WATTS}, {"power": SECOND_WATTS}],
        "faults": list(faults)}))
    return tap.environment(WATTMETER_NVML=str(LIBRARY), FAKE_NVML_SCENARIO=str(scenario))


def hang(seconds, gpu=None, call=ENERGY, **times):
    """The first call from second `from` on takes so long, and is slow until `to`."""
    fault = {"call": call, "delay_ms": 1000 * seconds, **times}
    if gpu is not None:
        fault["gpu"] = gpu
    return fault


def measure(folder, env, *command, options=()):
    """The report, and for how long wattmeter was there."""
    output = folder / "report.json"
    begin = time.monotonic()
    done = wattmeter("run", "--json", "-o", output, "--overwrite", *options, "--", *command,
                     env=env, timeout=300)
    seconds = time.monotonic() - begin
    assert output.exists(), f"status {done.returncode}: {done.stderr}"
    return json.loads(output.read_text()), seconds


@contextlib.contextmanager
def control(folder, interval=0.1):
    """A run without a driver at the same time; what other programs did to its ticks is in the
    report that it leaves."""
    report = {}
    output = folder / "control.json"
    with subprocess.Popen([tap.WATTMETER, "run", "--json", "-o", output, "--overwrite", "-i", f"{interval}s", "--",
                           "sleep", "1000"], env=tap.environment(WATTMETER_NVML="/nonexistent")) as process:
        try:
            yield report
        finally:
            process.send_signal(signal.SIGINT)
    report.update(json.loads(output.read_text()))


def spoilt(report):
    return report["tool"]["late_ticks"] + report["tool"]["missed_ticks"]


def is_punctual(report, beside, interval=0.1, slack=2):
    """`slack` ticks may be spoilt, and twice as many as without a driver: far fewer than if one
    waited for it."""
    tool, seconds = report["tool"], report["compute_time"]["time"]
    slack += 2 * spoilt(beside)
    assert spoilt(report) <= slack, (tool, beside["tool"])
    near(tool["ticks"], seconds / interval + 2, slack + 1, "ticks")


def joules(report):
    return [gpu["energy"] for gpu in report["energy"]["gpus"]]


def column(recording, name):
    """What the channel showed at each tick; None where it was missing."""
    with sqlite3.connect(recording) as database:
        return [value for value, in
                database.execute(f'SELECT "{name}" FROM sample ORDER BY time_ns')]


def remarks_on(report, label):
    return [r for r in report["remarks"] if r.startswith(label + ":")]


def gpu_remarks(report):
    """What the machine's CPU lacks is not the driver's fault."""
    return [r for r in report["remarks"] if not r.startswith("CPU energy")]


def drew(gpu, watts):
    """A peak is what the counter says where that is more, and a busy machine reads that late."""
    near(gpu["power"]["max"], watts, 0.03 * watts)


@case("one GPU of two hangs for 3 s: no tick waits, the other one goes on, all joules are there", tries=3)
def _(folder):
    recording = folder / "r.sqlite"
    env = environment(folder, hang(3, gpu=0, **{"from": 1, "to": 1.2}))
    with control(folder) as beside:
        r, seconds = measure(folder, env, "sleep", "5.5", options=["--record", recording])
    is_punctual(r, beside, slack=5)  # of 55, of which it hangs for 30
    assert seconds < 5.5 + 1.5, seconds  # half of what it hangs for
    first, second = joules(r)
    near(first, FIRST_WATTS * 5.5, FIRST_WATTS * 0.2, "energy of the one that hung")
    near(second, SECOND_WATTS * 5.5, SECOND_WATTS * 0.2, "energy of the other one")
    remark, = remarks_on(r, "gpu0")
    words = remark.split()
    assert "the driver did not answer, for" in remark, remark
    near(float(words[words.index("for") + 1]), 3, 0.3, remark)
    near(float(words[words.index("of") + 1]), 5.5, 0.3, remark)
    assert not remarks_on(r, "gpu1"), r["remarks"]

    power = column(recording, "gpu0_power_W")
    missing = [i for i, value in enumerate(power) if value is None]
    near(len(missing), 25, 3, "ticks without the one that hangs")
    assert missing == list(range(missing[0], missing[-1] + 1)), missing
    assert len(power) - missing[-1] > 10, "it is back afterwards"
    counts = column(recording, "gpu1_energy_J")
    still = sum(a == b for a, b in zip(counts, counts[1:]))
    assert still <= 8, f"the other one stood still for {still} ticks"

    stored = json.loads(wattmeter("report", "--json", recording).stdout)
    for part in "energy", "gpus", "remarks":
        assert stored[part] == r[part], (part, stored[part], r[part])
    text = wattmeter("report", recording).stdout
    assert "gpu0: the driver did not answer, for " in text, text


@case("ticks of 10 ms and of 1 s keep their time as well", tries=3)
def _(folder):
    env = environment(folder, hang(1, gpu=1, **{"from": 0.5, "to": 0.6}))
    for interval, slack in ((0.01, 25), (1, 0)):
        with control(folder, interval) as beside:
            r, _ = measure(folder, env, "sleep", "2.5", options=["-i", f"{interval}s"])
        is_punctual(r, beside, interval, slack)
        near(joules(r)[1], SECOND_WATTS * 2.5, SECOND_WATTS * 0.2)


@case("a driver that is slow does not hang: nothing is missing", tries=3)
def _(folder):
    recording = folder / "r.sqlite"
    env = environment(folder, hang(0.01), gpus=[{"power": 40, "count": 4}])
    with control(folder, 0.02) as beside:
        r, _ = measure(folder, env, "sleep", "3", options=["-i", "20ms", "--record", recording])
    is_punctual(r, beside, 0.02, 20)  # of 150, each of which would be late
    assert not gpu_remarks(r), r["remarks"]
    for energy, gpu in zip(joules(r), r["gpus"]):
        near(energy, 120, 6)
        near(gpu["power"]["mean"], 40, 0.01)
    assert None not in column(recording, "gpu3_power_W")
    counts = column(recording, "gpu3_energy_J")
    assert counts == sorted(counts) and len(set(counts)) > len(counts) / 4, counts


@case("at the end it still hangs: run ends in time, and says what the joules leave out", tries=3)
def _(folder):
    env = environment(folder, hang(10, gpu=0, **{"from": 1}))
    with control(folder) as beside:
        r, seconds = measure(folder, env, "sleep", "2")
    assert seconds < 2 + 1.5, seconds  # it hangs for 10 s
    assert r["exit"]["status"] == 0
    is_punctual(r, beside)
    near(r["compute_time"]["time"], 2, 0.1)
    near(joules(r)[0], FIRST_WATTS, FIRST_WATTS * 0.2)
    near(joules(r)[1], 2 * SECOND_WATTS, SECOND_WATTS * 0.2)
    assert any("energy does not cover" in remark for remark in remarks_on(r, "gpu0"))
    assert not remarks_on(r, "gpu1"), r["remarks"]


@case("all calls hang from the first reading on: the rest of the report is whole")
def _(folder):
    env = environment(folder, hang(10))
    r, seconds = measure(folder, env, "sleep", "0.5")
    assert seconds < 0.5 + 1.5, seconds
    assert joules(r) == [None, None] and r["gpus"][1]["power"]["max"] is None, r["gpus"]
    assert "the driver did not answer" in json.dumps(r), r
    assert r["cpu_time"]["total"] is not None


@case("a GPU that was not chosen is not waited for when the choice is made")
def _(folder):
    for call, words in (("nvmlDeviceGetPersistenceMode", "0"), ("nvmlDeviceGetPowerUsage", "0"),
                        ("nvmlDeviceGetPowerUsage", "gpu0")):
        env = environment(folder, hang(8, gpu=1, call=call))
        r, seconds = measure(folder, env, "sleep", "0.3", options=["--gpu", words])
        assert seconds < 0.3 + 1, (call, words, seconds)
        drew(r["gpus"][0], FIRST_WATTS)
        assert len(r["gpus"]) == 1, r["gpus"]


@case("info: what a GPU told before it hung is there, and a GPU that was not asked for is not waited for")
def _(folder):
    env = environment(folder, hang(8, gpu=1, call="nvmlDeviceGetPowerUsage"))
    begin = time.monotonic()
    shown = json.loads(wattmeter("info", "--json", "0", env=env).stdout)["gpus"]
    assert time.monotonic() - begin < 1 and len(shown) == 1, shown
    gpu = json.loads(wattmeter("info", "--json", env=env).stdout)["gpus"][1]
    for key in "name", "serial", "uuid", "bios", "architecture", "cores":
        assert gpu[key] is not None, (key, gpu["why"].get(key))
    assert gpu["pci"]["bus_id"], gpu["pci"]
    assert gpu["power"]["draw_watts"] is None and "has not answered" in gpu["why"]["power.draw_watts"], gpu


@case("a GPU that hangs when it is asked who it is costs itself, and the others nothing", tries=3)
def _(folder):
    for call in "nvmlDeviceGetUUID", "nvmlDeviceGetHandleByIndex_v2":
        env = environment(folder, hang(20, gpu=1, call=call))
        r, seconds = measure(folder, env, "sleep", "4")
        assert seconds < 5.5, (call, seconds)
        assert r["tool"]["cpu_seconds"] < 0.3, r["tool"]
        assert len(r["gpus"]) == 1, r["gpus"]
        drew(r["gpus"][0], FIRST_WATTS)
        assert "gpu1 does not answer (the driver did not answer)" in json.dumps(r), r["remarks"]
        r, seconds = measure(folder, env, "sleep", "0.3", options=["--gpu", "0"])
        assert seconds < 0.3 + 1.5, (call, seconds)  # the other one hangs for 20 s
        drew(r["gpus"][0], FIRST_WATTS)
    env = environment(folder, hang(20, gpu=0, call="nvmlDeviceGet*"))
    r, seconds = measure(folder, env, "sleep", "0.3", options=["--gpu", "1"])
    assert seconds < 0.3 + 1.5, seconds
    drew(r["gpus"][0], SECOND_WATTS)
    assert "does not answer" not in json.dumps(r), r
    for gpu in 0, 1:
        env = environment(folder, hang(20, gpu=gpu, call="nvmlDeviceGetName"))
        r, seconds = measure(folder, env, "sleep", "2.5")
        assert seconds < 4, seconds
        drew(r["gpus"][0], FIRST_WATTS)
        drew(r["gpus"][1], SECOND_WATTS)


def starts(seconds):
    return hang(seconds, call="nvmlInit*")


def stamped(folder, script):
    """A command that notes when it begins."""
    return "sh", "-c", f"date +%s.%N > {folder}/began; {script}"


def check_recording(recording, report):
    stored = json.loads(wattmeter("report", "--json", recording).stdout)
    for part in "energy", "gpus", "max_gpu_ram", "regions", "remarks", "sources":
        assert stored.get(part) == report.get(part), (part, stored.get(part), report.get(part))


@case("a driver that is slow to start joins the run when it answers", tries=3)
def _(folder):
    recording = folder / "r.sqlite"
    env = environment(folder, starts(3))
    for options in ((), ("--gpu", "visible")):
        begin = time.time()
        with control(folder) as beside:
            r, seconds = measure(folder, env, *stamped(folder, "sleep 5"),
                                 options=["--record", recording, *options])
        start = float((folder / "began").read_text()) - begin
        wait = 3 - start if not options else 3
        if not options:
            assert start < 1.1, start
            assert seconds < 5 + 1.3, seconds
        is_punctual(r, beside)
        for watts, label, used in zip((FIRST_WATTS, SECOND_WATTS), ("gpu0", "gpu1"), joules(r)):
            near(used, watts * (5 - wait), watts * 0.3, label)
            gap, = remarks_on(r, label)
            words = gap.split()
            assert gap.endswith("the driver was still starting"), gap
            near(float(words[words.index("cover") + 1]), wait, 0.4, gap)
            power = column(recording, f"{label}_power_W")
            missing = [i for i, value in enumerate(power) if value is None]
            assert missing == list(range(len(missing))), missing
            near(len(missing), 10 * wait, 3, "ticks before it joined")
        assert None not in column(recording, "tree_cpu_time_s")
        check_recording(recording, r)
        recording.unlink()


@case("a slow driver and a short command: the command does not wait, nor does anybody at its end", tries=3)
def _(folder):
    for seconds, options in (3, ()), (60, ()), (60, ("--record", folder / "r.sqlite")), (60, ("-i", "1h")):
        env = environment(folder, starts(seconds))
        r, taken = measure(folder, env, "sleep", "0.3", options=options)
        if "--record" in options:
            check_recording(folder / "r.sqlite", r)
            (folder / "r.sqlite").unlink()
        assert taken < 1.6, (seconds, taken)
        near(r["compute_time"]["time"], 0.3, 0.1)
        near(r["tool"]["ticks"], 2 if "-i" in options else 5, 1)
        why = r["sources"]["nvml"]["why"]
        assert why.startswith("the driver had not answered when the run ended, after 1."), why
        assert f"GPUs: those of nvml are not measured: {why}" in r["remarks"], r["remarks"]
        assert r["gpus"] is None or r["gpus"] == [], r["gpus"]


@case("a driver that does not even start is given up after 10 s")
def _(folder):
    recording = folder / "r.csv"
    env = environment(folder, starts(60))
    r, seconds = measure(folder, env, "sleep", "11", options=["-i", "10ms", "--record", recording])
    # It waits for the driver neither before the command nor after it.
    assert 11 <= r["compute_time"]["time"] <= seconds < 11 + 9, (r["compute_time"], seconds)
    assert r["sources"]["nvml"]["why"] == "the driver has not answered for 10 s", r["sources"]
    assert r["cpu_time"]["total"] is not None
    ticks = recording.read_text().count("\n") + r["tool"]["missed_ticks"]
    near(ticks, r["compute_time"]["time"] / 0.01, 200, "ticks of the recording")
    check_recording(recording, r)


@case("with a long interval a slow driver joins when it answers, not with the next sample", tries=3)
def _(folder):
    r, _ = measure(folder, environment(folder, starts(2)), "sleep", "4", options=["-i", "1h"])
    near(joules(r)[0], FIRST_WATTS * 2.85, FIRST_WATTS * 0.3)
    assert r["tool"]["ticks"] == 3, r["tool"]


@case("with a short interval no sample and no reason of the wait is lost", tries=3)
def _(folder):
    recording = folder / "r.sqlite"
    forks = "i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i + 1)); done"  # each is a gap of memory
    r, _ = measure(folder, environment(folder, starts(4)), "sh", "-c", f"{forks}; sleep 2",
                   options=["-i", "1ms", "--record", recording])
    assert len(column(recording, "tree_cpu_time_s")) == r["tool"]["ticks"], r["tool"]
    assert not any("recorded" in remark or "written" in remark for remark in r["remarks"]), r["remarks"]
    check_recording(recording, r)


@case("regions of the wait are all there, also of a program that has ended by then", tries=3)
def _(folder):
    recording = folder / "r.sqlite"
    program = tap.HELPERS / "regions"
    script = f"{program} threads 4 20000; {program} nested; sleep 3; {program} nested"
    for options in ((), ("-i", "5ms")):
        r, seconds = measure(folder, environment(folder, starts(3)), *stamped(folder, script),
                             options=["--record", recording, *options])
        calls = {row["name"]: row["calls"] for row in r["regions"]["by_name"]}
        assert calls == {"outer": 80002, "inner": 80008}, calls
        drew(r["gpus"][0], FIRST_WATTS)
        drew(r["gpus"][1], SECOND_WATTS)
        check_recording(recording, r)
        recording.unlink()


@case("what is measured before the start waits for a slow driver")
def _(folder):
    r, seconds = measure(folder, environment(folder, starts(2)), "sleep", "0.3",
                         options=["--baseline", "200ms"])
    near(seconds, 2.5, 0.4)
    drew(r["gpus"][0], FIRST_WATTS)
    assert "still starting" not in json.dumps(r), r["remarks"]


@case("a recording that cannot be opened when the driver has answered: the report comes, and says so")
def _(folder):
    place = folder / "place"
    place.mkdir()
    r, _ = measure(folder, environment(folder, starts(1.5)), "sh", "-c", f"rmdir {place}; sleep 1.5",
                   options=["--record", place / "r.sqlite"])
    drew(r["gpus"][0], FIRST_WATTS)
    assert any(str(place) in remark for remark in r["remarks"]), r["remarks"]


@case("a process that is attached to is measured before a slow driver has answered", tries=3)
def _(folder):
    target = subprocess.Popen(["sleep", "30"])
    output = folder / "r.json"
    begin = time.monotonic()
    done = wattmeter("attach", "--json", "-o", output, "-d", "3", str(target.pid),
                     env=environment(folder, starts(2)))
    target.kill()
    target.wait()
    r = json.loads(output.read_text())
    assert done.returncode == 0, done
    near(r["compute_time"]["time"], 3, 0.1)
    near(joules(r)[0], FIRST_WATTS * 1.85, FIRST_WATTS * 0.3)


@case("SIGTERM while a driver starts: the command gets it, and the report comes")
def _(folder):
    output = folder / "r.json"
    tracker = subprocess.Popen(
        [tap.WATTMETER, "run", "--json", "-o", output, "--", "sleep", "30"],
        env=environment(folder, starts(60)), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    begin = time.monotonic()
    tracker.send_signal(signal.SIGTERM)
    _, err = tracker.communicate(timeout=300)
    assert time.monotonic() - begin < 30, err
    assert tracker.returncode == -signal.SIGTERM, (tracker.returncode, err)
    assert json.loads(output.read_text())["exit"]["signal"] == signal.SIGTERM


@case("a driver that does not shut down holds nobody up for more than a second")
def _(folder):
    env = environment(folder, hang(10, call="nvmlShutdown"))
    r, seconds = measure(folder, env, "sleep", "0.3")
    assert seconds < 0.3 + 1.3, seconds
    assert all("short" in remark for remark in gpu_remarks(r)), r["remarks"]


@case("SIGTERM while it hangs: the command gets it, and the report comes")
def _(folder):
    output = folder / "r.json"
    env = environment(folder, hang(10, **{"from": 0.5}))
    tracker = subprocess.Popen(
        [tap.WATTMETER, "run", "--json", "-o", output, "--", "sleep", "30"], env=env,
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    begin = time.monotonic()
    tracker.send_signal(signal.SIGTERM)
    _, err = tracker.communicate(timeout=300)
    seconds = time.monotonic() - begin
    assert seconds < 1.5, seconds  # it hangs for 10 s
    assert tracker.returncode == -signal.SIGTERM, (tracker.returncode, err)
    assert json.loads(output.read_text())["exit"]["signal"] == signal.SIGTERM


if __name__ == "__main__":
    tap.main()
