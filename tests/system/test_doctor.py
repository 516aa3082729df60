# SPDX-License-Identifier: Apache-2.0
"""test_doctor.py - what `wattmeter doctor` finds: on this machine, on the fake
driver with sensors of known periods, without permission, with nothing at all."""

import grp
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from tap import (BUILD, SANITIZED, SOURCE, WATTMETER, Skip, case, copy_command, environment, main,
                 near, wattmeter)

FAKE = BUILD / "tests" / "fake" / "libnvidia-ml.so.1"


def scenario(folder, **content):
    path = Path(folder) / "scenario.json"
    path.write_text(json.dumps(content))
    return {"FAKE_NVML_SCENARIO": str(path), "WATTMETER_NVML": str(FAKE)}


def doctor(*arguments, env=None, status=0, timeout=300):
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
    assert all(len(line) <= 80 for line in text.splitlines() if line.startswith((" " * 17, *sources))), text


@case("the CPU clock of a busy core is new every 10 ms or so, as the kernel counts it")
def _(folder):
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        _, sources = doctor("--duration", "2s")
    finally:
        busy.kill()
        busy.wait()
    if sources["host"]["look_seconds"] > 0.004:
        raise Skip("this machine is too busy to look often enough")
    # A core's, as those of several busy ones interleave.
    busiest = max((c for c in channels(sources["host"], "cpu_time") if c["label"] != "host"),
                  key=lambda core: core["changes"])
    near(busiest["period_seconds"], 0.0105, 0.006, "period of a core's CPU time")


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
    told = re.search(r"power +gpu0 to gpu2 \(3\) +new every (\d+) ms(?: to (\d+) ms)?;", text)
    assert told, text
    for period in filter(None, told.groups()):
        near(int(period), 100, 12, "period of the power, in the text")


@case("a counter is dead after a second of looking without a change, and not before")
def _(folder):
    env = environment(**scenario(folder, gpus=[{"energy": {"mode": "stuck", "start": 5}}]))
    for duration, dead in (("900ms", False), ("1s", True)):
        _, sources = doctor("--duration", duration, env=env)
        assert channels(sources["nvml"], "energy")[0]["dead"] is dead, duration
        assert sources["nvml"]["health"] == ("partly" if dead else "good"), duration


@case("a GPU that does not answer makes its source partly, and is named")
def _(folder):
    for lost in ([0], [2], [1, 3], [0, 1, 2, 3]):
        env = environment(**scenario(folder, gpus=[{"count": 4}], faults=[
            {"call": call, "gpu": gpu, "error": "GPU_IS_LOST"} for gpu in lost
            for call in ("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID")]))
        _, sources = doctor("--duration", "20ms", env=env)
        nvml = sources["nvml"]
        text = wattmeter("doctor", "--duration", "20ms", env=env).stdout
        if len(lost) == 4:
            assert nvml["health"] == "broken" and nvml["silent"] == [], nvml
            continue
        assert nvml["health"] == "partly", nvml["health"]
        assert nvml["silent"] == [f"gpu{gpu}" for gpu in lost], nvml["silent"]
        assert re.search(r"^nvml +partly", text, re.M), text
        for gpu in range(4):
            told = f"  ! gpu{gpu} is there, but does not answer\n" in text
            assert told == (gpu in lost), (gpu, text)
    env = environment(**scenario(folder, gpus=[{"count": 2}]))
    _, sources = doctor("--duration", "20ms", env=env)
    assert sources["nvml"]["health"] == "good" and sources["nvml"]["silent"] == []


@case("what is simulated says so, as text and as JSON, beside what is not")
def _(folder):
    env = environment(**scenario(folder, gpus=[{}, {"name": "NVIDIA H100"}]))
    _, sources = doctor("--duration", "20ms", env=env)
    assert {(c["label"], c["origin"]) for c in sources["nvml"]["channels"]} == {
        ("gpu0", "simulated"), ("gpu1", "measured")}
    assert {c["origin"] for c in sources["host"]["channels"]} == {"measured"}
    text = wattmeter("doctor", "--duration", "20ms", env=env).stdout
    for line in text.splitlines():
        assert line.endswith("; SIMULATED") == (" gpu0 " in line), line
    assert " gpu1 " in text


@case("what is denied is called denied, and a driver that refuses us is no absent one")
def _(folder):
    env = environment(**scenario(folder, gpus=[{}], faults=[
        {"call": "nvmlDeviceGetTemperature*", "error": "NO_PERMISSION"}]))
    _, sources = doctor("--duration", "50ms", env=env)
    assert channels(sources["nvml"], "temperature")[0]["state"] == "denied"
    assert sources["nvml"]["health"] == "partly"
    for call, words in (("nvmlInit_v2", "nvidiactl"), ("nvmlDeviceGetCount_v2", "count")):
        env = environment(**scenario(folder, gpus=[{}], faults=[
            {"call": call, "error": "NO_PERMISSION"}]))
        _, sources = doctor("--duration", "50ms", env=env)
        nvml = sources["nvml"]
        assert nvml["health"] == "denied" and words in nvml["detail"], nvml
        assert len(nvml["advice"]) == 1 and nvml["advice"][0]["command"], nvml["advice"]


def doctor_as_nobody(command, **extra):
    env = environment(LD_LIBRARY_PATH=str(command.parent), **extra)
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", command, "doctor",
         "--json", "--duration", "50ms"], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    return {source["name"]: source for source in json.loads(done.stdout)["sources"]}


@case("a file that only root may read is named, with the command that opens it")
def _(folder):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("needs root, to become somebody else")
    sysfs = folder / "with a blank" / "sys"
    hwmon = sysfs / "class/hwmon/hwmon0"
    hwmon.mkdir(parents=True)
    (hwmon / "name").write_text("coretemp\n")
    for number in (1, 2):
        (hwmon / f"temp{number}_label").write_text(f"Package id {number - 1}\n")
        (hwmon / f"temp{number}_input").write_text("45000\n")
    (hwmon / "temp2_input").chmod(0o400)
    folder.chmod(0o755)
    command = copy_command(folder / "wattmeter")
    found = doctor_as_nobody(command, WATTMETER_SYSFS=str(sysfs))["hwmon"]
    assert found["health"] == "partly", found
    advice = found["advice"]
    assert len(advice) == 1 and advice[0]["command"].startswith("sudo chmod o+r "), advice
    subprocess.run(advice[0]["command"].replace("sudo ", ""), shell=True, check=True)
    found = doctor_as_nobody(command, WATTMETER_SYSFS=str(sysfs))["hwmon"]
    assert found["health"] == "good" and not found["advice"], found


def counter_tree(folder):
    """A machine of two packages with counters as the kernel has them: for root."""
    sysfs = folder / "with a blank" / "sys"
    for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "dram"),
                       ("intel-rapl:1", "package-1")):
        path = sysfs / "class/powercap" / zone
        path.mkdir(parents=True)
        (path / "name").write_text(f"{name}\n")
        (path / "max_energy_range_uj").write_text("262143328850\n")
        (path / "energy_uj").write_text("1000\n")
        (path / "energy_uj").chmod(0o400)
    return sysfs


def is_open_to_all(folder):
    counters = [*folder.rglob("energy_uj"), *folder.rglob("energy*_input")]
    assert counters
    return any(path.stat().st_mode & 0o007 for path in counters)


@case("counters of energy are given to one user, by the letter, and never to all")
def _(folder):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("needs root, to become somebody else")
    sysfs = counter_tree(folder)
    hwmon = sysfs / "class/hwmon/hwmon0"
    hwmon.mkdir(parents=True)
    (hwmon / "name").write_text("amd_energy\n")
    (hwmon / "energy1_label").write_text("Esocket0\n")
    (hwmon / "energy1_input").write_text("1000000\n")
    (hwmon / "energy1_input").chmod(0o400)
    folder.chmod(0o755)
    command = copy_command(folder / "wattmeter")
    sources = doctor_as_nobody(command, WATTMETER_SYSFS=str(sysfs))
    rapl = sources["rapl"]
    assert rapl["health"] == "denied" and "rapl-permissions.sh" in rapl["detail"], rapl
    assert sources["hwmon"]["advice"], sources["hwmon"]
    for name in "rapl", "hwmon":
        for advice in sources[name]["advice"]:
            assert advice["command"].startswith("sudo chown "), advice
            subprocess.run(advice["command"].replace("sudo ", ""), shell=True, check=True)
    assert not is_open_to_all(sysfs)
    sources = doctor_as_nobody(command, WATTMETER_SYSFS=str(sysfs))
    assert sources["rapl"]["health"] == "good" and not sources["rapl"]["advice"], sources["rapl"]
    assert len(sources["rapl"]["channels"]) == 3
    assert not sources["hwmon"]["advice"], sources["hwmon"]
    assert channels(sources["hwmon"], "energy")[0]["state"] == "ok"


@case("a package and a platform whose counters stand still are shown as dead")
def _(folder):
    sysfs = counter_tree(folder)
    psys = sysfs / "class/powercap/intel-rapl:2"
    psys.mkdir()
    (psys / "name").write_text("psys\n")
    (psys / "energy_uj").write_text("7\n")
    for path in sysfs.rglob("energy_uj"):
        path.chmod(0o444)
    env = environment(WATTMETER_SYSFS=str(sysfs))
    found, sources = doctor("--duration", "1300ms", env=env)
    rapl = sources["rapl"]
    assert rapl["health"] == "broken", rapl
    assert {c["label"] for c in rapl["channels"]} == {"package0", "dram0", "package1", "psys"}
    for channel in rapl["channels"]:
        assert channel["dead"] or "does not move: dead" in channel["why"], channel
    text = wattmeter("doctor", "--duration", "1300ms", env=env).stdout
    for label in "package0, package1", "dram0", "psys":
        assert re.search(rf"^  energy +{label} .*dead", text, re.M), text


@case("a capability is advised for the command itself, quoted, and for nothing else")
def _(folder):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("needs root, to become somebody else")
    shutil.copytree(SOURCE / "tests/data/sys-drm/intel-integrated", folder / "sys", symlinks=True)
    shutil.copytree(SOURCE / "tests/data/proc-drm/intel-integrated", folder / "proc", symlinks=True)
    for private in (folder / "proc").glob("*/fdinfo"):
        private.chmod(0o700)
    folder.chmod(0o755)
    deep = Path(*["d" * 100] * 6)
    for place, quoted in (("bin/wattmeter", "{}/bin/wattmeter"),
                          ("my bin/wattmeter", "'{}/my bin/wattmeter'"),
                          ("bin/python3", None), (deep / "wattmeter", None)):
        command = copy_command(folder / place)
        drm = doctor_as_nobody(command, WATTMETER_SYSFS=str(folder / "sys"),
                               WATTMETER_PROCFS=str(folder / "proc"))["drm"]
        assert any(c["state"] == "denied" for c in drm["channels"]), drm
        advice = [a for a in drm["advice"] if "belong to others" in a["problem"]]
        word = quoted and quoted.format(folder)
        expected = word and (f"sudo chgrp {grp.getgrgid(65534).gr_name} {word} && "
                             f"sudo chmod o= {word} && sudo setcap cap_sys_ptrace+ep {word}")
        assert len(advice) == 1 and advice[0]["command"] == expected, (place, advice)


@case("with more rights than its user no variable chooses what the command loads or reads")
def _(folder):
    if os.geteuid() != 0 or not shutil.which("setpriv") or not shutil.which("setcap"):
        raise Skip("needs root, setpriv and setcap")
    folder.chmod(0o755)
    library = folder / "evil.so"
    (folder / "evil.c").write_text("""
#include <fcntl.h>
#include <stdlib.h>
__attribute__((constructor)) static void run(void) { creat(getenv("LOADED"), 0600); }
""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, folder / "evil.c"], check=True)
    for name in "sys", "proc", "state":
        (folder / name).mkdir(mode=0o777)
    (folder / "state").chmod(0o777)
    loaded = folder / "state" / "loaded"
    command = shutil.copy(WATTMETER, folder / "wattmeter")
    variables = environment(
        LD_LIBRARY_PATH=str(BUILD), WATTMETER_NVML=str(library), LOADED=str(loaded),
        WATTMETER_SYSFS=str(folder / "sys"), WATTMETER_PROCFS=str(folder / "proc"),
        XDG_STATE_HOME=str(folder / "state"))

    def as_nobody(*words):
        return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                               command, *words], capture_output=True, text=True, timeout=300,
                              env=variables)

    as_nobody("info", "--brief")
    loaded.unlink()
    subprocess.run(["setcap", "cap_sys_ptrace+ep", command], check=True)
    done = as_nobody("info", "--brief")
    assert not loaded.exists() and str(library) not in done.stderr, done
    done = as_nobody("doctor", "--duration", "50ms")
    assert not loaded.exists() and str(folder / "sys") not in done.stdout, done
    assert re.search(r"^host +(good|partly)", done.stdout, re.M), done  # /proc, not the empty folder
    for bit in 0o4755, 0o2755:
        os.chmod(command, bit)
        done = as_nobody("run", "--", "touch", loaded)
        assert done.returncode == 1 and "set-user-ID" in done.stderr and not loaded.exists(), done


@case("status 1 when nothing at all can be measured, and only then")
def _(folder):
    def fault(call, **what):
        return {"call": call, **what}

    stuck = {"energy": {"mode": "stuck", "start": 1}}
    rows = [
        # a machine with this NVML and nothing else; its health; the status
        (None, "absent", 1),
        ({"gpus": [{}], "faults": [fault("nvmlInit_v2", error="NO_PERMISSION")]}, "denied", 1),
        ({"gpus": [{}], "faults": [fault("nvmlInit_v2", error="UNKNOWN")]}, "broken", 1),
        ({"gpus": [{}], "faults": [fault("nvmlDeviceGetUUID", error="UNKNOWN")]}, "broken", 1),
        ({"gpus": [{}, {}], "faults": [fault("nvmlDeviceGetUUID", error="NO_PERMISSION")]},
         "denied", 1),
        ({"gpus": []}, "absent", 1),
        ({"gpus": [{}]}, "good", 0),
        ({"gpus": [{}, {}], "faults": [fault("nvmlDeviceGetUUID", gpu=0, error="UNKNOWN")]},
         "partly", 0),
        ({"gpus": [{}], "faults": [fault("nvmlDeviceGetTemperature", error="NO_PERMISSION")]},
         "partly", 0),
        ({"gpus": [stuck]}, "partly", 0),
    ]
    # All that a GPU has to say, after it has been counted and named.
    said = ["nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPower*",
            "nvmlDeviceGetFieldValues", "nvmlDeviceGetUtilizationRates",
            "nvmlDeviceGetMemoryInfo*", "nvmlDeviceGetTemperature*"]
    for error, health in (("NO_PERMISSION", "denied"), ("UNKNOWN", "broken"),
                          ("NOT_SUPPORTED", "absent")):
        rows.append(({"gpus": [stuck], "faults": [fault(call, error=error) for call in said]},
                     health, 1))
    # Nothing but a counter that is dead.
    rows.append(({"gpus": [stuck], "faults": [
        fault(call, error="NOT_SUPPORTED") for call in said[1:]]}, "broken", 1))
    for content, health, status in rows:
        nvml = scenario(folder, **content) if content else {"WATTMETER_NVML": "/nonexistent"}
        env = environment(WATTMETER_PROCFS=str(folder), WATTMETER_SYSFS=str(folder), **nvml)
        found, sources = doctor("--duration", "1s", env=env, status=status)
        assert sources["nvml"]["health"] == health, (content, sources["nvml"])
        assert found["can_measure"] is (status == 0), content
        text = wattmeter("doctor", "--duration", "20ms", env=env)
        told = "Nothing at all can be measured here." in text.stdout
        assert told == (text.returncode == 1), (content, text)


@case("a driver that hangs does not keep the doctor")
def _(folder):
    env = environment(**scenario(folder, gpus=[{}], faults=[
        {"call": "nvmlDeviceGetTotalEnergyConsumption", "delay_ms": 300000}]))
    begun = time.monotonic()
    _, sources = doctor("--duration", "100ms", env=env)
    assert time.monotonic() - begun < 150, time.monotonic() - begun
    assert channels(sources["nvml"], "energy")[0]["state"] == "stale", sources["nvml"]
    assert sources["nvml"]["health"] == "broken", sources["nvml"]["health"]
    assert sources["host"]["health"] == "good"


@case("a GPU that hangs when it is asked who it is keeps neither the doctor nor its neighbour")
def _(folder):
    env = environment(**scenario(folder, gpus=[{}, {}], faults=[
        {"call": "nvmlDeviceGetUUID", "gpu": 0, "delay_ms": 60000}]))
    _, sources = doctor("--duration", "100ms", env=env)
    nvml = sources["nvml"]
    assert nvml["health"] == "partly" and nvml["silent"] == ["gpu0"], nvml
    assert {c["label"] for c in nvml["channels"]} == {"gpu1"}
    assert "gpu0 does not answer (the driver did not answer)" in nvml["detail"], nvml["detail"]


@case("a driver that does not even start is given up after 4 s, and called broken once")
def _(folder):
    for call in ("nvmlInit_v2", "nvmlDeviceGetCount_v2"):
        env = environment(**scenario(folder, gpus=[{}], faults=[
            {"call": call, "delay_ms": 300000}]))
        begun = time.monotonic()
        _, sources = doctor("--duration", "200ms", env=env)
        assert 3.9 < time.monotonic() - begun < 150
        assert sources["nvml"]["health"] == "broken", sources["nvml"]
        assert sources["nvml"]["detail"] == "the driver has not answered for 4 s"
        assert sources["host"]["health"] == "good"
        assert sources["host"]["look_seconds"] < 0.1


@case("misuse: unknown words, a duration that is none; a full disk is a failure")
def _(folder):
    assert wattmeter("doctor", "nvml").returncode == 2
    assert wattmeter("doctor", "--duration", "soon").returncode == 2
    assert wattmeter("doctor", "--duration", "0").returncode == 2
    with open("/dev/full", "w") as full:
        done = subprocess.run([WATTMETER, "doctor", "--duration", "20ms"], stdout=full,
                              stderr=subprocess.PIPE, text=True, env=environment(), timeout=300)
    assert done.returncode == 1 and "could not be written" in done.stderr, done


if __name__ == "__main__":
    main()
