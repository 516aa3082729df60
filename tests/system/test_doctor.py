# SPDX-License-Identifier: Apache-2.0
"""test_doctor.py - what `wattmeter doctor` finds: on this machine, on the fake
driver with sensors of known periods, without permission, with nothing at all."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from tap import BUILD, SANITIZED, WATTMETER, Skip, case, environment, main, near, wattmeter

FAKE = BUILD / "tests" / "fake" / "libnvidia-ml.so.1"


def scenario(folder, **content):
    path = Path(folder) / "scenario.json"
    path.write_text(json.dumps(content))
    return {"FAKE_NVML_SCENARIO": str(path), "WATTMETER_NVML": str(FAKE)}


def doctor(*arguments, env=None, status=0, timeout=60):
    done = wattmeter("doctor", "--json", *arguments, env=env or environment(), timeout=timeout)
    assert done.returncode == status, (done.returncode, done.stderr)
    found = json.loads(done.stdout)
    return found, {source["name"]: source for source in found["sources"]}


def channels(source, metric):
    found = [c for c in source["channels"] if c["metric"] == metric]
    assert found, f"{source['name']} has no {metric}"
    return found


@case("this machine: the host can be read, every source is named, text and JSON agree")
def _(folder):
    found, sources = doctor("--duration", "500ms")
    assert found["can_measure"] is True
    assert set(sources) >= {"host", "tree", "hwmon", "nvml", "drm", "tracker"}, sources.keys()
    assert sources["host"]["health"] == "good", sources["host"]
    for source in sources.values():
        assert source["health"] in ("good", "partly", "absent", "denied", "broken")
        assert source["detail"] or source["health"] in ("good", "partly")
    text = wattmeter("doctor", "--duration", "50ms").stdout
    for name, source in sources.items():
        assert any(line.split()[:2] == [name, source["health"]]
                   for line in text.splitlines()), (name, text)


@case("the CPU clock of a busy machine is new every 10 ms or so, as the kernel counts it")
def _(folder):
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        _, sources = doctor("--duration", "2s")
    finally:
        busy.kill()
        busy.wait()
    host = channels(sources["host"], "cpu_time")[0]
    if sources["host"]["look_seconds"] > 0.004:
        raise Skip("this machine is too busy to look often enough")
    near(host["period_seconds"], 0.0105, 0.006, "period of the host's CPU time")


@case("sensors of 100 ms and 20 ms are found to be that; a dead counter is called dead")
def _(folder):
    gpu = {"power": {"shape": "linear", "points": [[0, 100], [50, 600]]},
           "power_period_ms": 100, "energy": {"period_ms": 20}}
    env = environment(**scenario(folder, gpus=[
        gpu, dict(gpu, energy={"mode": "stuck", "start": 12345}),
        dict(gpu, energy={"mode": "absent"})]))
    _, sources = doctor("--duration", "2s", env=env)
    nvml = sources["nvml"]
    for power in channels(nvml, "power"):
        near(power["period_seconds"], 0.100, 0.012, "period of the power")
    moving, stuck, absent = channels(nvml, "energy")
    near(moving["period_seconds"], 0.020, 0.006, "period of the energy")
    assert not moving["dead"] and stuck["dead"], (moving, stuck)
    assert absent["state"] == "unsupported" and absent["why"] and absent["value"] is None
    assert nvml["health"] == "partly", nvml["health"]
    text = wattmeter("doctor", "--duration", "1200ms", env=env).stdout
    assert "dead: this counter did not move" in text, text
    assert re.search(r"power +gpu0 to gpu2 \(3\) +new every (9[5-9]|100) ms", text), text


@case("what is denied is called denied, and a driver that refuses us is no absent one")
def _(folder):
    env = environment(**scenario(folder, gpus=[{}], faults=[
        {"call": "nvmlDeviceGetTemperature*", "error": "NO_PERMISSION"}]))
    _, sources = doctor("--duration", "50ms", env=env)
    assert channels(sources["nvml"], "temperature")[0]["state"] == "denied"
    assert sources["nvml"]["health"] == "partly"
    env = environment(**scenario(folder, gpus=[{}], faults=[
        {"call": "nvmlInit_v2", "error": "NO_PERMISSION"}]))
    _, sources = doctor("--duration", "50ms", env=env)
    assert sources["nvml"]["health"] == "denied", sources["nvml"]
    assert "nvidiactl" in sources["nvml"]["detail"]


@case("a file that only root may read is named, with the command that opens it")
def _(folder):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("needs root, to become somebody else")
    hwmon = Path(folder) / "sys/class/hwmon/hwmon0"
    hwmon.mkdir(parents=True)
    (hwmon / "name").write_text("coretemp\n")
    for number in (1, 2):
        (hwmon / f"temp{number}_label").write_text(f"Package id {number - 1}\n")
        (hwmon / f"temp{number}_input").write_text("45000\n")
    (hwmon / "temp2_input").chmod(0o400)
    os.chmod(folder, 0o755)
    # The build tree may be out of the other user's reach.
    command = Path(folder) / "wattmeter"
    shutil.copy(WATTMETER, command)
    library = Path(folder) / "libwattmeter.so.0"
    shutil.copy(BUILD / "libwattmeter.so.0", library)
    for path in (command, library):
        path.chmod(0o755)
    env = environment(WATTMETER_SYSFS=str(Path(folder) / "sys"), LD_LIBRARY_PATH=str(folder))
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", command, "doctor",
         "--json", "--duration", "50ms"], capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    hwmon = {s["name"]: s for s in json.loads(done.stdout)["sources"]}["hwmon"]
    assert hwmon["health"] == "partly", hwmon
    advice = hwmon["advice"]
    assert len(advice) == 1 and advice[0]["command"].startswith("sudo chmod o+r "), advice
    subprocess.run(advice[0]["command"].replace("sudo ", ""), shell=True, check=True)
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", command, "doctor",
         "--json", "--duration", "50ms"], capture_output=True, text=True, timeout=60, env=env)
    hwmon = {s["name"]: s for s in json.loads(done.stdout)["sources"]}["hwmon"]
    assert hwmon["health"] == "good" and not hwmon["advice"], hwmon


@case("status 1 when nothing at all can be measured, and only then")
def _(folder):
    env = environment(WATTMETER_PROCFS=folder, WATTMETER_SYSFS=folder,
                      WATTMETER_NVML="/nonexistent")
    found, sources = doctor("--duration", "20ms", env=env, status=1)
    assert found["can_measure"] is False
    env = environment(WATTMETER_PROCFS=folder, WATTMETER_SYSFS=folder,
                      **scenario(folder, gpus=[{}]))
    found, sources = doctor("--duration", "20ms", env=env)
    assert found["can_measure"] is True and sources["nvml"]["health"] == "good"


@case("a driver that hangs does not keep the doctor")
def _(folder):
    env = environment(**scenario(folder, gpus=[{}], faults=[
        {"call": "nvmlDeviceGetTotalEnergyConsumption", "delay_ms": 20000}]))
    begun = time.monotonic()
    _, sources = doctor("--duration", "100ms", env=env)
    assert time.monotonic() - begun < (15 if SANITIZED else 6), time.monotonic() - begun
    assert channels(sources["nvml"], "energy")[0]["state"] == "stale", sources["nvml"]
    assert sources["nvml"]["health"] == "broken", sources["nvml"]["health"]
    assert sources["host"]["health"] == "good"


@case("misuse: unknown words, a duration that is none; a full disk is a failure")
def _(folder):
    assert wattmeter("doctor", "nvml").returncode == 2
    assert wattmeter("doctor", "--duration", "soon").returncode == 2
    assert wattmeter("doctor", "--duration", "0").returncode == 2
    with open("/dev/full", "w") as full:
        done = subprocess.run([WATTMETER, "doctor", "--duration", "20ms"], stdout=full,
                              stderr=subprocess.PIPE, text=True, env=environment(), timeout=60)
    assert done.returncode == 1 and "could not be written" in done.stderr, done


if __name__ == "__main__":
    main()
