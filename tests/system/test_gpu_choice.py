#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which GPUs are measured: words over the GPUs of all vendors, and what the
variables of a program leave to it, from the fake driver to the report."""

import subprocess
import time

import tap
from tap import case, wattmeter

FAKE = str(tap.BUILD / "tests/fake/libnvidia-ml.so.1")
MASKS = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
         "ZE_AFFINITY_MASK", "ZE_FLAT_DEVICE_HIERARCHY")
UUIDS = ["GPU-9942190a-aa31-4ff1-4aa9-c388d80f85f1", "GPU-9e8d35e3-a134-0fdd-0e01-23811fdbd293",
         "GPU-e429a63e-c61c-4795-b757-5132caeb8e70", "GPU-eee1dfbc-0a0f-6ad8-5ff6-dc942a8b9d98"]
ALIKE = {"gpus": [{"uuid": uuid} for uuid in UUIDS]}


def machine(folder, scenario, sysfs=None, **masks):
    """The environment of a machine with these GPUs of NVIDIA's, and those of the
    captured /sys called `sysfs`."""
    path = folder / "scenario.json"
    path.write_text(tap.json.dumps(scenario))
    env = tap.environment(WATTMETER_NVML=FAKE, FAKE_NVML_SCENARIO=str(path), WATTMETER_SYSFS=str(
        tap.SOURCE / "tests/data/sys-drm" / sysfs if sysfs else folder / "nothing"))
    for name in MASKS:
        env.pop(name, None)
    env.update(masks)
    return env


def measured(env, choice, command=("run",), target=("--", "true")):
    """UUIDs of the GPUs in the report, and its remarks on GPUs."""
    done = wattmeter(*command, "--json", "--gpu", choice, *target, env=env)
    assert done.returncode == 0, done
    report = tap.json.loads(done.stdout)
    remarks = [remark for remark in report["remarks"] if remark.startswith("GPUs: ")]
    return [gpu["uuid"] for gpu in report["gpus"]], remarks


def check(env, choice, expected, remark=None, **how):
    uuids, remarks = measured(env, choice, **how)
    assert uuids == expected, (choice, uuids, expected)
    if remark is None:
        assert remarks == [], (choice, remarks)
    else:
        assert len(remarks) == 1 and remark in remarks[0], (choice, remarks)


# Value of CUDA_VISIBLE_DEVICES, the GPUs it leaves, what the report says of it.
CUDA = [
    (None, [0, 1, 2, 3], None),
    ("", [], None),
    ("1,3", [1, 3], None),
    (" 1, 3", [1, 3], None),
    ("3,1", [1, 3], None),
    ("3,1,1", [], "'1' names a device a second time; GPUs left: 0 of 4"),
    ("0,2,-1,1", [0, 2], "'-1' is negative; GPUs left: 2 of 4"),
    ("7", [], "'7' is past the last device; GPUs left: 0 of 4"),
    (UUIDS[1], [1], None),
    ("GPU-e4,GPU-99", [0, 2], None),
    ("GPU-9e,GPU-e,GPU-99", [1], "'GPU-e' fits several devices; GPUs left: 1 of 4"),
    ("GPU-123", [], "'GPU-123' fits no device"),
    ("GPU-9e,2", [1], "'2' is no UUID"),
    ("MIG-9e8d35e3", [], "'MIG-9e8d35e3' fits no device"),
    ("NoDevFiles", [], "'NoDevFiles' is neither a number nor a UUID"),
    ("2,", [2], None),
    (",2", [], "'' is empty"),
]


@case("--gpu visible is what CUDA makes of CUDA_VISIBLE_DEVICES")
def _(folder):
    for mask, expected, remark in CUDA:
        env = machine(folder, ALIKE, **({} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}))
        check(env, "visible", [UUIDS[i] for i in expected], remark)


@case("with several models the order decides what a number means, and a doubt is told")
def _(folder):
    mixed = {"gpus": [
        {"uuid": "GPU-slow", "name": "SIMULATED P4", "compute_capability": 6.1},
        {"uuid": "GPU-mid", "name": "SIMULATED T4", "compute_capability": 7.5},
        {"uuid": "GPU-fast", "name": "SIMULATED H100", "compute_capability": 9.0}]}
    for order, mask, expected, remark in (
            (None, "0", ["GPU-fast"], "may mean another GPU"),
            ("FASTEST_FIRST", "2", ["GPU-slow"], "may mean another GPU"),
            ("PCI_BUS_ID", "0", ["GPU-slow"], None),
            ("PCI_BUS_ID", "2,1", ["GPU-mid", "GPU-fast"], None),
            (None, "0,1,2", ["GPU-slow", "GPU-mid", "GPU-fast"], None),
            (None, "GPU-mid", ["GPU-mid"], None)):
        masks = {"CUDA_VISIBLE_DEVICES": mask}
        if order:
            masks["CUDA_DEVICE_ORDER"] = order
        check(machine(folder, mixed, **masks), "visible", expected, remark)


@case("a MIG device, named in either way, means its GPU")
def _(folder):
    parts = [{"uuid": "MIG-aa00", "gpu_instance": 1, "compute_instance": 0},
             {"uuid": "MIG-ab00", "gpu_instance": 2, "compute_instance": 0}]
    scenario = {"gpus": [{"uuid": "GPU-1c20", "migs": parts}, {"uuid": "GPU-2e"}]}
    for mask, expected, remark in (
            ("MIG-ab00", ["GPU-1c20"], None),
            ("MIG-aa", ["GPU-1c20"], None),
            ("MIG-GPU-1c20/2/0", ["GPU-1c20"], None),
            ("MIG-GPU-1c20/7/0", [], "'MIG-GPU-1c20/7/0' fits no device"),
            ("MIG-a", [], "'MIG-a' fits several devices"),
            ("GPU-2e", ["GPU-2e"], None)):
        check(machine(folder, scenario, CUDA_VISIBLE_DEVICES=mask), "visible", expected, remark)
    for words, expected in (("MIG-ab", ["GPU-1c20"]), ("MIG-GPU-1c/1/0,1", ["GPU-1c20", "GPU-2e"])):
        check(machine(folder, scenario), words, expected)


@case("a word means one GPU among those of all vendors")
def _(folder):
    env = machine(folder, {"gpus": [{"uuid": "GPU-aa"}, {"uuid": "GPU-bb", "pci_bus_id": "0000:3b:00.0"}]},
                  "amd-discrete")
    every, _ = measured(env, "all")
    assert every[:2] == ["GPU-aa", "GPU-bb"] and len(every) == 3, every
    card = tap.json.loads(wattmeter("run", "--json", "--", "true", env=env).stdout)["gpus"][2]
    for words, expected in (
            ("0", every[:1]), ("1", every[1:2]), ("2", every[2:]), ("2,0", [every[0], every[2]]),
            ("gpu1", every[1:2]), ("3b:00.0", every[1:2]), ("GPU-b", every[1:2]),
            (card["uuid"], every[2:]), (card["uuid"] + ",GPU-aa", [every[0], every[2]]),
            ("visible", every), ("none", [])):
        check(env, words, expected)
    report = tap.json.loads(wattmeter("run", "--json", "--gpu", "0", "--", "true", env=env).stdout)
    assert report["gpu_utilization"]["system_gpu_count"] == 3, report["gpu_utilization"]
    assert report["gpu_utilization"]["n_expected_gpus"] == 1, report["gpu_utilization"]
    env["HIP_VISIBLE_DEVICES"] = "7"
    check(env, "visible", every[:2], "HIP_VISIBLE_DEVICES: '7' is past the last device; GPUs left: 0 of 1")
    env["CUDA_VISIBLE_DEVICES"] = "1"
    del env["HIP_VISIBLE_DEVICES"]
    check(env, "visible", every[1:2], "'1' is past the last device; GPUs left: 0 of 1")


@case("a wrong word is refused before the command begins, in one line with what there is")
def _(folder):
    env = machine(folder, ALIKE, "amd-discrete")
    for words, says in (
            ("5", "'5' is not the number of a GPU; GPUs here: 0 (GPU-9942190a"),
            ("GPU-9", "'GPU-9' fits several GPUs"), ("GPU-nope", "'GPU-nope' is no GPU of this machine"),
            ("card77", "'card77' is no GPU"), ("0,,1", "'' names no GPU"), (",", "'' names no GPU"),
            ("-1", "'-1' is no GPU"), ("0,visible", "'visible' is no GPU"), ("99:00.0", "'99:00.0' is no GPU")):
        done = wattmeter("run", "--gpu", words, "--", "touch", folder / "mark", env=env)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, (words, done)
        assert says in done.stderr, (words, done.stderr)
        done = wattmeter("attach", "-d", "1ms", "--gpu", words, "1", env=env)
        assert done.returncode == 2 and says in done.stderr, (words, done)
    assert not (folder / "mark").exists()


@case("where there is no GPU a list is refused, and nothing is visible")
def _(folder):
    env = machine(folder, ALIKE)
    env["WATTMETER_NVML"] = str(folder / "no-such-library")
    done = wattmeter("run", "--gpu", "0", "--", "touch", folder / "mark", env=env)
    assert done.returncode == 2 and "there is no GPU here (nvml: " in done.stderr, done
    assert len(done.stderr.splitlines()) == 1 and not (folder / "mark").exists(), done
    check(env, "visible", [])


@case("a driver in trouble, and a GPU that does not answer, cost the measurement and not the command")
def _(folder):
    broken = {"gpus": [{}], "faults": [{"call": "nvmlDeviceGetCount*", "error": "UNKNOWN"}]}
    silent = {"gpus": [{}, {}], "faults": [{"call": "nvmlDeviceGetUUID", "gpu": 1, "error": "UNKNOWN"}]}
    for scenario, words in ((broken, "0"), (broken, "GPU-7c"), (silent, "1"), (silent, "gpu1")):
        done = wattmeter("run", "--json", "--gpu", words, "--", "true", env=machine(folder, scenario))
        assert done.returncode == 0, done
        report = tap.json.loads(done.stdout)
        assert report["gpus"] == [] and not report["sources"]["nvml"]["available"], report["sources"]


@case("a GPU that does not answer is left out with a remark, and hides no other one")
def _(folder):
    scenario = {"gpus": [{"uuid": "GPU-aa"}, {"uuid": "GPU-bb"}, {"uuid": "GPU-cc"}],
                "faults": [{"call": "nvmlDeviceGetUUID", "gpu": 2, "error": "GPU_IS_LOST"}]}
    named = "GPU 2 is not measured, as it does not answer: GPU is lost"
    for words, expected, remark in (
            ("all", ["GPU-aa", "GPU-bb"], "gpu2 does not answer (GPU is lost)"),
            ("0,2", ["GPU-aa"], named), ("gpu0,gpu2", ["GPU-aa"], named), ("2", [], named),
            ("GPU-cc", [], named), ("GPU-cc,GPU-aa", ["GPU-aa"], named),
            ("visible", ["GPU-aa", "GPU-bb"], named), ("0,1", ["GPU-aa", "GPU-bb"], None)):
        check(machine(folder, scenario), words, expected, remark)
    env = machine(folder, scenario)
    report = tap.json.loads(wattmeter("run", "--json", "--", "true", env=env).stdout)
    assert any("GPUs: 1 of 3 is not measured" in remark for remark in report["remarks"]), report["remarks"]
    report = tap.json.loads(wattmeter("run", "--json", "--gpu", "2", "--", "true", env=env).stdout)
    assert "GPU 2 does not answer: GPU is lost" in tap.json.dumps(report["sources"]["nvml"]), report["sources"]


@case("info shows a GPU that does not answer, also when it is asked for")
def _(folder):
    scenario = {"gpus": [{}, {}], "faults": [{"call": "nvmlDeviceGetUUID", "gpu": 1, "error": "UNKNOWN"}]}
    for words in (["1"], ["gpu1"], ["0", "1"], []):
        done = wattmeter("info", "--json", *words, env=machine(folder, scenario))
        assert done.returncode == 0, done
        gpu = tap.json.loads(done.stdout)["gpus"][-1]
        assert gpu["index"] == 1 and gpu["uuid"] is None and gpu["why"]["uuid"], gpu


@case("the remark on a mask is in the text, and in the report of the recording")
def _(folder):
    env = machine(folder, ALIKE, CUDA_VISIBLE_DEVICES="0,9")
    for name in ("r.sqlite", "r.csv"):
        done = wattmeter("run", "--gpu", "visible", "--record", folder / name, "--", "true", env=env)
        line = "note: GPUs: CUDA_VISIBLE_DEVICES: '9' is past the last device; GPUs left: 1 of 4"
        assert done.returncode == 0 and line in done.stderr.splitlines(), done.stderr
        assert line in wattmeter("report", folder / name).stdout.splitlines()


@case("attach --gpu visible goes by the environment of the process")
def _(folder):
    env = machine(folder, ALIKE, CUDA_VISIBLE_DEVICES="0")
    target = subprocess.Popen(["sleep", "60"], env={**env, "CUDA_VISIBLE_DEVICES": "3,1"})
    try:
        time.sleep(0.2)  # until it has been executed
        check(env, "visible", [UUIDS[1], UUIDS[3]], command=("attach", "-d", "100ms"), target=(target.pid,))
    finally:
        target.kill()
        target.wait()


@case("info --visible shows the same GPUs")
def _(folder):
    if "--visible" not in wattmeter("info", "--help").stdout:
        raise tap.Skip("this wattmeter has no info --visible")
    for mask, expected, _ in CUDA:
        env = machine(folder, ALIKE, **({} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}))
        done = wattmeter("info", "--visible", "--json", env=env)
        assert done.returncode == 0, done
        gpus = tap.json.loads(done.stdout)["gpus"]
        shown = [gpu["uuid"] for gpu in gpus]
        assert sorted(shown) == sorted(UUIDS[i] for i in expected), (mask, shown)
        assert [gpu["seen_as"] for gpu in gpus] == list(range(len(gpus))), (mask, gpus)


if __name__ == "__main__":
    tap.main()
