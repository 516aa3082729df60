#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks for real GPUs (tests/hardware), tried on the fake driver beside a made
nvidia-smi: they pass where both say the same, and fail where they do not."""

import copy
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import tap
from tap import case, near

SCENARIOS = tap.SOURCE / "tests" / "fake" / "scenarios"
LIBRARY = tap.BUILD / "tests" / "fake" / "libnvidia-ml.so.1"
RUN = tap.SOURCE / "tests" / "hardware" / "run.py"

if not LIBRARY.exists():
    print("the fake driver is not built")
    sys.exit(77)
if b"__asan_init" in LIBRARY.read_bytes():
    print("the fake driver is built with a sanitizer, which Python cannot load")
    sys.exit(77)


def power(kind, draw, limits):
    """As drivers to 530, from 535 on and from 570 on write it."""
    names = dict(zip(("default_power_limit", "min_power_limit", "max_power_limit"), limits[2:]))
    if kind == "old":
        return {"power_readings": {"power_management": "Supported", "power_draw": draw[0],
                                   "power_limit": limits[0], "enforced_power_limit": limits[1],
                                   **names}}
    draws = ({"power_draw": draw[0]} if kind == "middle" else
             {"average_power_draw": draw[1], "instant_power_draw": draw[0]})
    return {"gpu_power_readings": {**draws, "requested_power_limit": limits[0],
                                   "current_power_limit": limits[1], **names},
            "module_power_readings": {"power_draw": "N/A", "current_power_limit": "N/A"}}


def reasons(kind, active):
    word = "throttle" if kind == "old" else "event"
    names = ("gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown",
             "hw_thermal_slowdown", "hw_power_brake_slowdown", "sync_boost",
             "sw_thermal_slowdown", "display_clocks_setting")
    return {f"clocks_{word}_reasons": {
        f"clocks_{word}_reason_{name}": "Active" if name in active else "Not Active"
        for name in names}}


def first_of_everything(kind):
    return {
        "product_name": "SIMULATED everything", "product_architecture": "Hopper",
        "display_active": "Enabled", "persistence_mode": "Enabled",
        "mig_mode": {"current_mig": "Disabled", "pending_mig": "Enabled"}, "mig_devices": "None",
        "serial": "1323023000001", "uuid": "GPU-e0e0e0e0-1111-2222-3333-444444444444",
        "vbios_version": "96.00.74.00.02",
        "pci": {"pci_bus": "5E", "pci_device": "0A", "pci_domain": "0001",
                "pci_device_id": "233010DE", "pci_bus_id": "00000001:5E:0A.0",
                "pci_sub_system_id": "16C110DF",
                "pci_gpu_link_info": {
                    "pcie_gen": {"max_link_gen": "5", "current_link_gen": "4"},
                    "link_widths": {"max_link_width": "16x", "current_link_width": "8x"}},
                "replay_counter": "7", "tx_util": "123456 KB/s", "rx_util": "654321 KB/s"},
        "fan_speed": "36 %", "performance_state": "P2",
        **reasons(kind, ("sw_power_cap", "hw_thermal_slowdown")),
        "fb_memory_usage": {"total": "81920 MiB", "reserved": "520 MiB", "used": "20480 MiB",
                            "free": "60920 MiB"},
        "bar1_memory_usage": {"total": "131072 MiB", "used": "17 MiB", "free": "131055 MiB"},
        "compute_mode": "Exclusive_Process",
        "utilization": {"gpu_util": "87 %", "memory_util": "43 %", "encoder_util": "11 %",
                        "decoder_util": "22 %"},
        "ecc_mode": {"current_ecc": "Enabled", "pending_ecc": "Disabled"},
        "temperature": {"gpu_temp": "61 C", "gpu_temp_max_threshold": "94 C",
                        "gpu_temp_slow_threshold": "89 C", "memory_temp": "73 C"},
        **power(kind, ("340.00 W", "330.00 W"),
                ("650.00 W", "640.00 W", "700.00 W", "200.00 W", "710.00 W")),
        "clocks": {"graphics_clock": "1755 MHz", "sm_clock": "1740 MHz", "mem_clock": "2619 MHz",
                   "video_clock": "1395 MHz"},
        "max_clocks": {"graphics_clock": "1980 MHz", "sm_clock": "1965 MHz",
                       "mem_clock": "2634 MHz", "video_clock": "1545 MHz"},
        "processes": [("process_info", {"pid": pid, "used_memory": memory}) for pid, memory in (
            ("4190001", "12288 MiB"), ("4190002", "1024 MiB"), ("4190003", "512 MiB"),
            ("4190004", "256 MiB"), ("4190005", "N/A"))],
    }


def second_of_everything():
    """Says little, and that it is partitioned."""
    return {
        "product_name": "SIMULATED partitioned", "uuid": "GPU-e1e1e1e1-1111-2222-3333-444444444444",
        "mig_mode": {"current_mig": "Enabled", "pending_mig": "Enabled"},
        "mig_devices": [("mig_device", {
            "gpu_instance_id": gi, "compute_instance_id": ci,
            "device_attributes": {"shared": {"multiprocessor_count": count}},
            "fb_memory_usage": {"total": total}}) for gi, ci, count, total in (
                ("2", "1", "60", "40960 MiB"), ("9", "0", "16", "10240 MiB"))],
        **reasons("new", ()),
        "processes": [("process_info", {"pid": pid, "used_memory": memory}) for pid, memory in (
            ("4190011", "2048 MiB"), ("4190012", "70 MiB"))],
    }


def seed_gpu(uuid, bus, memory, use, heat, clocks, watts, processes=()):
    """One of the seed's GTX 1080 Ti, which cannot say much."""
    return {
        "product_name": "GeForce GTX 1080 Ti", "display_active": "Disabled",
        "persistence_mode": "Disabled", "serial": "N/A", "uuid": uuid,
        "vbios_version": "86.02.39.00.01",
        "pci": {"pci_bus_id": f"00000000:{bus}:00.0", "pci_device_id": "1B0610DE",
                "pci_sub_system_id": "1210196E"},
        "fan_speed": heat[1], **reasons("old", ()),
        "fb_memory_usage": {"total": "11178 MiB", "used": memory},
        "utilization": {"gpu_util": use[0], "memory_util": use[1]},
        "ecc_mode": {"current_ecc": "N/A", "pending_ecc": "N/A"},
        "temperature": {"gpu_temp": heat[0], "memory_temp": "N/A"},
        **power("old", (watts,), ("250.00 W", "250.00 W", "250.00 W", "125.00 W", "300.00 W")),
        "clocks": {"graphics_clock": clocks[0], "mem_clock": clocks[1]},
        "processes": [("process_info", {"pid": pid, "used_memory": size})
                      for pid, size in processes],
    }


SEED = [
    seed_gpu("GPU-115dafb8-26db-32ba-d729-f21b29fc001f", "88", "10799 MiB", ("44 %", "35 %"),
             ("61 C", "36 %"), ("1911 MHz", "5005 MHz"), "122.23 W",
             (("4276", "4284 MiB"), ("5764", "6515 MiB"))),
    seed_gpu("GPU-d9bf777c-e49e-e609-f873-d05b3208970b", "89", "6525 MiB", ("65 %", "58 %"),
             ("62 C", "36 %"), ("1885 MHz", "5005 MHz"), "55.75 W"),
    seed_gpu("GPU-5f3c1a52-6a0e-b7e2-9d0c-3b7f0c6e1d22", "B1", "4350 MiB", ("38 %", "33 %"),
             ("63 C", "37 %"), ("1885 MHz", "5005 MHz"), "93.06 W"),
    seed_gpu("GPU-8e4b2d63-7b1f-c8f3-ae1d-4c801d7f2e33", "B2", "0 MiB", ("0 %", "0 %"),
             ("28 C", "23 %"), ("139 MHz", "405 MHz"), "8.70 W"),
]


def build(parent, content):
    """A dictionary, a list of (name, content) where names repeat, or a text."""
    if isinstance(content, str):
        parent.text = content
        return
    for name, inner in content.items() if isinstance(content, dict) else content:
        build(ElementTree.SubElement(parent, name), inner)


def make_smi(folder, driver, cuda, gpus):
    """A nvidia-smi that says this, found first."""
    root = ElementTree.Element("nvidia_smi_log")
    build(root, [("driver_version", driver), ("cuda_version", cuda),
                 *(("gpu", gpu) for gpu in gpus)])
    ElementTree.ElementTree(root).write(folder / "told.xml")
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nexec cat '{folder}/told.xml'\n")
    program.chmod(0o755)


def check(folder, scenario, *options, **extra):
    return subprocess.run(
        [sys.executable, str(RUN), *options], capture_output=True, text=True, timeout=300,
        check=False, env=tap.environment(
            PATH=f"{folder}:{os.environ['PATH']}", WATTMETER_NVML=str(LIBRARY),
            FAKE_NVML_SCENARIO=str(scenario), PYTHONDONTWRITEBYTECODE="1", **extra))


@case("info agrees with what nvidia-smi says of each generation")
def _(folder):
    for kind in ("old", "middle", "new"):
        make_smi(folder, "550.54.15", "12.4", [first_of_everything(kind), second_of_everything()])
        done = check(folder, SCENARIOS / "everything.json", "--only", "info")
        assert done.returncode == 0, (kind, done.stdout + done.stderr)
        for said in ("'SIMULATED everything'", "memory of process 4190001", "same"):
            assert said in done.stdout, (kind, said, done.stdout)
        assert "DIFFERENT" not in done.stdout


@case("info agrees where both have no answer: the seed's GPUs")
def _(folder):
    make_smi(folder, "430.34", "10.1", SEED)
    done = check(folder, SCENARIOS / "igpu.json", "--only", "info", "--markdown",
                 str(folder / "told.md"))
    assert done.returncode == 0, done.stdout + done.stderr
    page = (folder / "told.md").read_text()
    assert page.startswith("# geforce gtx 1080 ti, driver 430.34\n"), page[:200]
    assert page.count("\n## info: GPU ") == 4 and "| ecc.mode | n/a: " in page, page


@case("each value that differs is found, and named")
def _(folder):
    def change(gpu, path, value):
        *groups, last = path.split("/")
        for group in groups:
            gpu = gpu[group]
        assert last in gpu
        gpu[last] = value

    for path, value, named in (
        ("serial", "1323023000002", "serial"),
        ("serial", "N/A", "serial"),
        ("compute_mode", "Default", "compute_mode"),
        ("fb_memory_usage/total", "81918 MiB", "memory.total_bytes"),
        ("temperature/gpu_temp", "67 C", "utilization.temperature_celsius"),
        ("temperature/memory_temp", "N/A", "utilization.temperature_memory_celsius"),
        ("pci/pci_bus_id", "00000000:5E:0A.0", "pci.bus_id"),
        ("pci/pci_gpu_link_info/link_widths/current_link_width", "4x", "pci.current_link_width"),
        ("clocks/mem_clock", "1619 MHz", "clocks.memory_hertz"),
        ("gpu_power_readings/requested_power_limit", "640.00 W", "power.limit_watts"),
        ("gpu_power_readings/instant_power_draw", "140.00 W", "power.instant_watts"),
        ("clocks_event_reasons/clocks_event_reason_gpu_idle", "Active", "clocks.throttle"),
        ("processes", [("process_info", {"pid": "4190001", "used_memory": "12000 MiB"})],
         "memory of process 4190001"),
        ("processes", [("process_info", {"pid": "4190099", "used_memory": "1 MiB"})],
         "memory of process 4190099"),
    ):
        gpu = copy.deepcopy(first_of_everything("new"))
        change(gpu, path, value)
        make_smi(folder, "550.54.15", "12.4", [gpu, second_of_everything()])
        done = check(folder, SCENARIOS / "everything.json", "--only", "info")
        assert done.returncode == 1, (path, value, done.stdout + done.stderr)
        assert done.stdout.count("DIFFERENT") == 1, (path, value, done.stdout)
        assert f"{named}: " in done.stdout, (path, value, done.stdout)


@case("a run agrees with nvidia-smi; without a load the rest is skipped")
def _(folder):
    gpu = json.loads((SCENARIOS / "everything.json").read_text())["gpus"][0]
    scenario = folder / "scenario.json"
    scenario.write_text(json.dumps({"gpus": [{**gpu, "energy": {"start": 1000}}]}))
    told = first_of_everything("new")
    make_smi(folder, "550.54.15", "12.4", [told])
    done = check(folder, scenario, "--only", "run,memory")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# gpu0 power: 340" in done.stdout, done.stdout
    assert "# SKIP no load on the GPU" in done.stdout, done.stdout

    told["gpu_power_readings"]["average_power_draw"] = "100.00 W"
    make_smi(folder, "550.54.15", "12.4", [told])
    done = check(folder, scenario, "--only", "run")
    assert done.returncode == 1 and "AssertionError: ('power', 340" in done.stdout, done.stdout


@case("the cost of each call: all of them are there, the slow one is slow")
def _(folder):
    make_smi(folder, "550.54.15", "12.4", [first_of_everything("new"), second_of_everything()])
    done = check(folder, SCENARIOS / "everything.json", "--only", "cost", COST_SECONDS="5")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("#   nvml")]
    assert len(rows) > 40 and not [row for row in rows if "error" in row or "no" in row], rows
    throughput = next(row for row in rows if "Throughput" in row[1])
    assert float(throughput[-2]) >= 20000, throughput
    overhead = [line for line in done.stdout.splitlines() if line.endswith(" ms") and " 0.7 " in line]
    assert len(overhead) == 1, done.stdout


@case("the period of the sensors")
def _(folder):
    scenario = folder / "scenario.json"
    scenario.write_text("""{"gpus": [{
        "power": [[0, 100], [1000, 300]], "power_period_ms": 100,
        "energy": {"period_ms": 20}, "power_average_scopes": []}]}""")
    make_smi(folder, "550.54.15", "12.4", [first_of_everything("new")])
    done = check(folder, scenario, "--only", "sensor", SENSOR_SECONDS="2")
    assert done.returncode == 0, done.stdout + done.stderr
    told = {line[4:30].strip(): line[30:].split()
            for line in done.stdout.splitlines() if line.startswith("#   ")}
    near(float(told["instant power (field 186)"][0]), 100, 10, "instant")
    near(float(told["nvmlDeviceGetPowerUsage"][0]), 100, 10, "power usage")
    near(float(told["energy counter"][0]), 20, 5, "energy")
    assert told["average power (field 185)"] == ["not", "supported"], told
    assert "# SKIP no load on the GPU" in done.stdout, done.stdout


@case("the window of the sensors, from a step of the fake's own")
def _(folder):
    began = time.monotonic() + 1.2
    scenario = folder / "scenario.json"
    scenario.write_text(f"""{{"start_monotonic_ns": {int((began - 10) * 1e9)},
        "gpus": [{{"power": [[0, 100], [10, 100], [10, 500]], "power_period_ms": 20}}]}}""")
    script = """
import sys, time
sys.path[:0] = sys.argv[2:]
import nvml, check_sensor
began = float(sys.argv[1])
with nvml.Nvml() as driver:
    device = driver.device(0)
    sensors = check_sensor.answering(driver, device)
    series = check_sensor.sample(driver, device, sensors, lambda: time.monotonic() > began + 2)
for name in sensors:
    print(name, check_sensor.rise(series[name], began, began + 2), sep="|")
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(began), str(RUN.parent),
         str(tap.SOURCE / "tests" / "system")],
        env=tap.environment(WATTMETER_NVML=str(LIBRARY), FAKE_NVML_SCENARIO=str(scenario),
                            PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told = dict(line.split("|") for line in done.stdout.splitlines())
    instant = eval(told["instant power (field 186)"])
    average = eval(told["average power (field 185)"])
    assert 0 <= instant[0] <= instant[1] <= 0.1, told
    near(average[0], 0.1, 0.05, "10 % of the average")
    near(average[1], 0.9, 0.05, "90 % of the average")


@case("without a GPU all of it is skipped, with the reason")
def _(folder):
    done = subprocess.run([sys.executable, str(RUN)], env={"PATH": str(folder)},
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 77 and "# SKIP nvidia-smi does not work here" in done.stdout
    make_smi(folder, "550.54.15", "12.4", [first_of_everything("new")])
    done = check(folder, folder / "missing.json")
    assert done.returncode == 77 and "# SKIP NVML does not start here" in done.stdout, done.stdout


tap.main()
