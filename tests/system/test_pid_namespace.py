#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes of another pid namespace on a GPU: found by our numbers where that is
possible, and declared where it is not, with real namespaces made by unshare."""

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

import tap
from tap import Skip, case, near

FAKE = str(tap.BUILD / "tests/fake/libnvidia-ml.so.1")
MEMORY = 3_000_000_000

# Root needs no user namespace, which some kernels refuse to everybody.
USER = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
ENTER_USER = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]


def environment(folder, processes, **extra):
    """With the fake driver, which tells these processes of one GPU."""
    scenario = folder / "scenario.json"
    scenario.write_text(json.dumps({"gpus": [{"processes": processes}]}))
    return tap.environment(WATTMETER_NVML=FAKE, FAKE_NVML_SCENARIO=str(scenario),
                           WATTMETER_SYSFS="/nonexistent", **extra)


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def name_of(pid):
    return Path(f"/proc/{pid}/comm").read_text().strip()


def wait_for_child(pid, name):
    for _ in range(200):
        with contextlib.suppress(OSError):
            for child in children(pid):
                if name_of(child) == name:
                    return child
        time.sleep(0.02)
    raise AssertionError(f"process {pid} has no child {name}")


class Inner:
    """A pid namespace in which a sleep runs, with the outer /proc under `proc`."""

    def __init__(self, folder):
        self.proc = folder / "outer"
        self.proc.mkdir()

    def __enter__(self):
        # The shell stays there as the first process; sleep gets a number of its own.
        self.unshare = subprocess.Popen(
            ["unshare", *USER, "--mount", "sh", "-c",
             f"mount --rbind /proc '{self.proc}' && exec unshare --pid --fork"
             " --mount-proc --kill-child sh -c 'sleep 300; :'"],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.2)
        if self.unshare.poll() is not None:
            raise Skip("no namespaces here: " + self.unshare.stderr.read().strip())
        self.init = wait_for_child(self.unshare.pid, "sh")
        self.outside = wait_for_child(self.init, "sleep")
        status = Path(f"/proc/{self.outside}/status").read_text()
        self.inside = int(status.split("NSpid:")[1].splitlines()[0].split()[-1])
        assert self.inside != self.outside
        return self

    def __exit__(self, *_):
        self.unshare.kill()  # and with it all that is in there
        self.unshare.wait()
        self.unshare.stderr.close()

    def run(self, *command, env=None):
        return subprocess.run(
            ["nsenter", "--target", str(self.init), *ENTER_USER, "--pid", "--mount", "--",
             *map(str, command)],
            capture_output=True, text=True, timeout=300, env=env or tap.environment())


def read_info(done):
    assert done.returncode == 0, (done.returncode, done.stderr)
    return json.loads(done.stdout)["gpus"][0]


@case("from outside: a process of an inner namespace, by our number")
def _(folder):
    with Inner(folder) as inner:
        env = environment(folder, [{"pid": inner.outside, "memory": MEMORY}])
        gpu = read_info(tap.wattmeter("info", "--json", env=env))
        process = gpu["processes"][0]
        assert process["pid"] == inner.outside, process
        assert process["name"] == "sleep", process
        assert process["parent_pid"] == inner.init, process
        assert process["parent_name"] == "sh", process
        assert process["gpu_memory_bytes"] == MEMORY, process
        near(process["create_time_seconds"], time.time(), 60, "begin")


@case("from outside: `run` finds the memory of what goes into a namespace")
def _(folder):
    with Inner(folder):  # which is skipped where the kernel refuses
        pass
    env = environment(folder, [{"pid": 1, "memory": 5e9}, "tree"])
    report = tap.report("unshare", *USER, "--pid", "--fork", "--mount-proc", "sleep", "1",
                        options=("-i", "100ms"), env=env)
    assert report["max_gpu_ram"]["combined"] > 0, report["max_gpu_ram"]


@case("from inside, with the outer /proc: found by what it says")
def _(folder):
    with Inner(folder) as inner:
        env = environment(folder, [{"pid": inner.outside, "memory": MEMORY},
                                   {"pid": os.getpid(), "memory": 1000}],
                          WATTMETER_PROCFS=str(inner.proc))
        gpu = read_info(inner.run(tap.WATTMETER, "info", "--json", env=env))
        ours = {p["driver_pid"]: p for p in gpu["processes"]}[inner.outside]
        assert ours["pid"] == inner.inside, ours
        assert ours["name"] == "sleep", ours
        assert ours["parent_pid"] == 1 and ours["parent_name"] == "sh", ours
        assert ours["gpu_memory_bytes"] == MEMORY, ours
        near(ours["create_time_seconds"], time.time(), 60, "begin")

        index = next(i for i, p in enumerate(gpu["processes"])
                     if p["driver_pid"] == os.getpid())
        stranger = gpu["processes"][index]
        assert stranger["pid"] is None, stranger
        assert "pid namespace" in gpu["why"][f"processes.{index}.pid"], gpu["why"]
        assert stranger["name"] == name_of(os.getpid()), stranger


@case("from inside, with the outer /proc: a number of both namespaces is not guessed at")
def _(folder):
    with Inner(folder) as inner:
        if not Path(f"/proc/{inner.inside}").exists():
            raise Skip(f"there is no process {inner.inside} outside")
        env = environment(folder, [{"pid": inner.inside, "memory": MEMORY}],
                          WATTMETER_PROCFS=str(inner.proc))
        gpu = read_info(inner.run(tap.WATTMETER, "info", "--json", env=env))
        assert gpu["processes"][0]["pid"] is None, gpu["processes"]
        assert gpu["processes"][0]["name"] is None, gpu["processes"]
        assert "one process here" in gpu["why"]["processes.0.pid"], gpu["why"]


@case("from inside, without the outer /proc: declared, not guessed")
def _(folder):
    with Inner(folder) as inner:
        if inner.run("test", "-e", f"/proc/{inner.outside}").returncode == 0:
            raise Skip("the outer number exists inside by chance")
        env = environment(folder, [{"pid": inner.outside, "memory": MEMORY}])
        gpu = read_info(inner.run(tap.WATTMETER, "info", "--json", env=env))
        process = gpu["processes"][0]
        assert process["driver_pid"] == inner.outside, process
        assert process["gpu_memory_bytes"] == MEMORY, process
        for key in ("pid", "name", "user", "parent_pid", "parent_name"):
            assert process[key] is None, (key, process)
            assert "another pid namespace" in gpu["why"][f"processes.0.{key}"], gpu["why"]

        output = folder / "report.json"
        done = inner.run(tap.WATTMETER, "run", "--json", "-i", "50ms", "-o", output, "--",
                         "sleep", "0.3", env=env)
        assert done.returncode == 0, done.stderr
        assert json.loads(output.read_text())["max_gpu_ram"]["combined"] is None


@case("from inside, with the outer /proc: `attach` finds the memory by what it says")
def _(folder):
    with Inner(folder) as inner:
        env = environment(folder, [{"pid": inner.outside, "memory": MEMORY}])
        output = folder / "report.json"
        done = inner.run("sh", "-c", f"mount --bind {inner.proc} /mnt && "
                         f"WATTMETER_PROCFS=/mnt exec {tap.WATTMETER} attach --json -i 50ms "
                         f"--duration 300ms -o {output} {inner.outside}", env=env)
        assert done.returncode == 0, done.stderr
        assert json.loads(output.read_text())["max_gpu_ram"]["combined"] == MEMORY


@case("from inside, with the outer /proc: `run` knows a stranger for one, by its outer number")
def _(folder):
    with Inner(folder) as inner:
        env = environment(folder, [{"pid": inner.outside, "memory": MEMORY}],
                          WATTMETER_PROCFS=str(inner.proc))
        output = folder / "report.json"
        done = inner.run(tap.WATTMETER, "run", "--json", "-i", "50ms", "-o", output, "--",
                         "sleep", "0.3", env=env)
        assert done.returncode == 0, done.stderr
        assert json.loads(output.read_text())["max_gpu_ram"]["combined"] == 0


@case("from inside: a driver that translates tells our numbers")
def _(folder):
    with Inner(folder) as inner:
        env = environment(folder, [{"pid": inner.inside, "memory": MEMORY}])
        gpu = read_info(inner.run(tap.WATTMETER, "info", "--json", env=env))
        assert gpu["processes"][0]["pid"] == inner.inside, gpu["processes"]
        assert gpu["processes"][0]["name"] == "sleep", gpu["processes"]


@case("a /proc of another pid namespace: no figure is taken from it, and the others stay")
def _(folder):
    output = folder / "r.json"
    if subprocess.run(["unshare", *USER, "--pid", "--fork", "true"], check=False,
                      capture_output=True).returncode != 0:
        raise Skip("no pid namespace can be made here")
    command = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"
    subprocess.run(["unshare", *USER, "--pid", "--fork", tap.WATTMETER, "run", "--json", "-o",
                    str(output), "--", "sh", "-c", command], check=True, timeout=300,
                   stdin=subprocess.DEVNULL, env=tap.environment())
    r = json.loads(output.read_text())
    assert 0 < r["cpu_time"]["total"] < 1.1 * os.cpu_count() * r["compute_time"]["time"], r["cpu_time"]
    # Two clocks: without /proc it is not known that there were none.
    assert r["cpu_time"]["descendants"] < 0.01 * r["cpu_time"]["total"], r["cpu_time"]
    assert r["processes"]["seen"] is None and r["processes"]["peaks"] == [], r["processes"]
    assert r["max_ram"]["main"]["private_rss"] is None, r["max_ram"]
    assert "another pid namespace" in r["why"]["max_ram.main.private_rss"], r["why"]
    attached = subprocess.run(["unshare", *USER, "--pid", "--fork", tap.WATTMETER, "attach", "1"],
                              capture_output=True, text=True, check=False, timeout=300,
                              stdin=subprocess.DEVNULL, env=tap.environment())
    assert attached.returncode == 2 and "another pid namespace" in attached.stderr, attached


if __name__ == "__main__":
    tap.main()
