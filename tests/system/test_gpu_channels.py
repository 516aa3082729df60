#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is sampled of GPUs: in every run, and with --channels; the same as `info` shows, and
nothing is asked twice."""

import collections
import json
import math
import re
import sqlite3

import tap
from tap import case, wattmeter

FAKE = str(tap.BUILD / "tests/fake/libnvidia-ml.so.1")
SCENARIOS = tap.SOURCE / "tests/fake/scenarios"
CAPTURED = sorted(path for path in (tap.SOURCE / "tests/data/sys-drm").iterdir() if path.is_dir())

# Where `info --json` has what a channel samples. NVML's power is the first that is known; the
# kernel's is the average that info shows as "draw", if there is one.
SHOWN = {
    "energy": ["power.energy_joules"],
    "power": ["power.instant_watts", "power.draw_watts"],
    "power_average": ["power.average_watts"],
    "utilization": ["utilization.gpu_ratio"],
    "memory_used": ["memory.used_bytes"],
    "memory_total": ["memory.total_bytes"],
    "temperature": ["utilization.temperature_celsius"],
    "memory_utilization": ["utilization.memory_ratio"],
    "encoder": ["utilization.encoder_ratio"],
    "decoder": ["utilization.decoder_ratio"],
    "fan": ["utilization.fan_ratio"],
    "fan_speed": ["utilization.fan_speed_rpm"],
    "memory_temperature": ["utilization.temperature_memory_celsius"],
    "hotspot_temperature": ["utilization.temperature_hotspot_celsius"],
    "pci_link_gen": ["pci.current_link_gen"],
    "pci_link_width": ["pci.current_link_width"],
    "pci_replays": ["pci.replays"],
    "clock_graphics": ["clocks.graphics_hertz"],
    "clock_sm": ["clocks.sm_hertz"],
    "clock_memory": ["clocks.memory_hertz"],
    "clock_video": ["clocks.video_hertz"],
    "power_limit": ["power.limit_watts"],
    "power_limit_enforced": ["power.enforced_limit_watts"],
    "ecc_corrected": ["ecc.corrected"],
    "ecc_uncorrected": ["ecc.uncorrected"],
    "nvlink_sent": ["nvlink.sent_bytes"],
    "nvlink_received": ["nvlink.received_bytes"],
    "pci_sent": ["pci.sent_bytes_per_second"],
    "pci_received": ["pci.received_bytes_per_second"],
}
# As bits in a recording, in words in `info`.
REASONS = {"gpu_idle": 1, "sw_power_cap": 4, "hw_thermal_slowdown": 8, "none": 0}
USUAL = list(SHOWN)[:7]
GPU = "GPU-e0e0e0e0-1111-2222-3333-444444444444"


def fake(scenario, **extra):
    return tap.environment(WATTMETER_NVML=FAKE, WATTMETER_SYSFS="/nonexistent",
                           FAKE_NVML_SCENARIO=str(scenario), **extra)


def sampled(folder, env, *options, command=("true",)):
    """By GPU and metric the last sample: its value, and what it is."""
    path = folder / "run.sqlite"
    done = wattmeter("run", "-q", "--overwrite", *options, "--record", path, "--", *command, env=env)
    assert done.returncode == 0, done
    found = collections.defaultdict(dict)
    with sqlite3.connect(path) as recording:
        recording.row_factory = sqlite3.Row
        last = recording.execute("SELECT * FROM sample ORDER BY rowid DESC LIMIT 1").fetchone()
        for channel in recording.execute("SELECT * FROM channel WHERE source IN ('nvml', 'drm')"):
            found[channel["device"]][channel["metric"]] = (last[channel["column_name"]], dict(channel))
    return found


def shown(env):
    done = wattmeter("info", "--json", env=env)
    assert done.returncode == 0, done
    return {gpu["uuid"]: gpu for gpu in json.loads(done.stdout)["gpus"]}


def leaf(gpu, path):
    for key in path.split("."):
        gpu = gpu[key]
    return gpu


def first_known(gpu, paths):
    return next((leaf(gpu, path) for path in paths if leaf(gpu, path) is not None), None)


@case("--channels all records all that there is to sample of a GPU, as info shows it")
def _(folder):
    env = fake(SCENARIOS / "everything.json")
    gpu = shown(env)[GPU]
    run = sampled(folder, env, "-i", "20ms", "--channels", "all", command=("sleep", "1"))[GPU]
    assert set(SHOWN) - {"hotspot_temperature"} == set(run) - {"throttle"}, run.keys()
    for metric, (value, channel) in run.items():
        if metric == "throttle":
            reasons = sum(REASONS[word] for word in gpu["clocks"]["throttle"].split(", "))
            assert value == reasons and channel["unit"] == "bits", (value, gpu["clocks"])
        else:
            assert value == first_known(gpu, SHOWN[metric]), (metric, value)


@case("a run samples the usual, and what is named; a wrong name is refused before anything starts")
def _(folder):
    env = fake(SCENARIOS / "everything.json")
    assert list(sampled(folder, env)[GPU]) == USUAL
    named = sampled(folder, env, "--channels", "fan,throttle,power")[GPU]
    assert list(named) == [*USUAL, "fan", "throttle"], named.keys()
    done = wattmeter("run", "--channels", "fan,fans", "--", "touch", folder / "begun", env=env)
    assert done.returncode != 0 and "'fans' is no channel" in done.stderr and not (folder / "begun").exists()


@case("info and a run say the same of all captured machines")
def _(folder):
    compared = collections.Counter()
    for machine in CAPTURED:
        env = tap.environment(WATTMETER_NVML="/none", WATTMETER_SYSFS=str(machine))
        runs = sampled(folder, env, "--channels", "all")
        for device, gpu in shown(env).items():
            for metric, (value, channel) in runs[device].items():
                assert channel["label"] == gpu["label"], (machine, channel, gpu["label"])
                if metric == "throttle":
                    assert (value == 0) == (gpu["clocks"]["throttle"] == "none"), (machine, device, value)
                    continue
                # The sum over those who have it open, which info shows one by one.
                if channel["origin"] == "estimated" or (metric == "utilization" and value is None):
                    continue
                told = first_known(gpu, SHOWN[metric] if metric != "power" else ["power.draw_watts"])
                is_same = value == told or math.isclose(value, told, rel_tol=1e-12)
                assert is_same, (machine.name, device, metric, value, told)
                compared[metric] += value is not None
    assert len(compared) > 12, compared
    assert min(compared[metric] for metric in ("fan_speed", "clock_graphics", "power_limit")) > 0, compared


def ticks(trace):
    """The calls about the first GPU, from one reading of its power to the next, behind those of
    the opening. A call with lines for its parts may be made once for each."""
    calls = [line.split()[0] for line in trace.read_text().splitlines() if line.endswith(" 0")]
    parted = {call.split(":")[0] for call in calls if ":" in call}
    rounds = [[]]
    for call in calls:
        if call == "nvmlDeviceGetFieldValues:186":
            rounds.append([])
        if call not in parted:
            rounds[-1].append(call)
    while "nvmlDeviceGetUtilizationRates" not in rounds[0]:
        rounds.pop(0)
    return rounds


@case("NVML is asked nothing twice in a tick")
def _(folder):
    for options in (), ("--channels", "all"):
        trace = folder / f"trace{len(options)}"
        sampled(folder, fake(SCENARIOS / "everything.json", FAKE_NVML_TRACE=str(trace)), "-i", "50ms", *options,
                command=("sleep", "0.5"))
        rounds = ticks(trace)
        assert len(rounds) >= 5, rounds
        for calls in rounds:
            twice = [call for call, count in collections.Counter(calls).items() if count > 1]
            assert not twice and "nvmlDeviceGetUtilizationRates" in calls, (twice, calls)


@case("what is recorded on demand is in the report: text, JSON")
def _(folder):
    path = folder / "run.csv"
    done = wattmeter("run", "-q", "--channels", "fan,nvlink_sent", "--record", path, "--", "sleep", "0.3",
                     env=fake(SCENARIOS / "everything.json"))
    assert done.returncode == 0, done
    text = wattmeter("report", "-v", path).stdout
    assert re.search(r"^ +fan 36 %; nvlink_sent 0 B$", text, re.MULTILINE), text
    gpu = json.loads(wattmeter("report", "--json", path).stdout)["gpus"][0]
    assert gpu["channels"] == {"fan": {"unit": "ratio", "mean": 0.36, "max": 0.36},
                               "nvlink_sent": {"unit": "B", "total": 0}}, gpu["channels"]


if __name__ == "__main__":
    tap.main()
