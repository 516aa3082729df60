#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Power caps on a driver that is not there and on copies of /sys: set, refused, put back.

What was there before has to come back whatever is killed, and when. WM_CAP_KILLS=1000 kills
so often; without it, it is tried as often as a quick test can.
"""

import contextlib
import json
import os
import pty
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import tap
from tap import case
from terminal import wait_for

KILLS = int(os.environ.get("WM_CAP_KILLS", "36"))
NVML = tap.BUILD / "tests" / "fake" / "libnvidia-ml.so.1"
DRM = tap.SOURCE / "tests" / "data" / "sys-drm"
EARLIER = 320  # What the site has set: neither the default nor what we set.


class Machine:
    """Fake GPUs whose settings all processes share, and where wattmeter keeps its journal."""

    def __init__(self, folder, *gpus, sysfs=DRM / "nvidia-only", **scenario):
        self.settings = folder / "settings"
        self.state = folder / "state"
        gpus = [{"power": 300, "power_limit": EARLIER, "power_limit_default": 350,
                 "power_limit_min": 100, "power_limit_max": 400, **gpu} for gpu in gpus or [{}]]
        self.count = len(gpus)
        file = folder / "scenario.json"
        file.write_text(json.dumps({"gpus": gpus, "settings": str(self.settings), **scenario}))
        self.env = tap.environment(FAKE_NVML_SCENARIO=str(file), WATTMETER_NVML=str(NVML),
                                   WATTMETER_STATE=str(self.state), WATTMETER_SYSFS=str(sysfs))

    def run(self, *arguments, **options):
        return tap.wattmeter(*arguments, env=self.env, **options)

    def start(self, *arguments, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        # A command that outlives a killed session keeps no stream of this test open.
        options.setdefault("stdout", subprocess.DEVNULL)
        options.setdefault("stderr", subprocess.DEVNULL)
        return subprocess.Popen([tap.WATTMETER, *map(str, arguments)], env=self.env, text=True,
                                **options)

    def set(self, value, gpu=0):
        """As another program would."""
        with open(self.settings, "r+b") as file:
            file.seek(16 * gpu)
            file.write(struct.pack("d", value))

    def get(self, gpu=0, clock=False):
        """None: nobody has set it."""
        try:
            data = self.settings.read_bytes()[16 * gpu:16 * gpu + 16]
        except OSError:
            return None
        value = struct.unpack("dd", data)[clock] if len(data) == 16 else float("nan")
        return None if value != value else value

    def is_earlier(self, gpu=0):
        return self.get(gpu) in (None, EARLIER)

    def journal(self):
        return sorted(self.state.glob("*.json")) if self.state.exists() else []


def guardians(owner):
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--cap-guardian" in words and words[6:7] == [str(owner).encode()]:
            found.append(int(entry.name))
    return found


def ready_guardian(owner, after=()):
    """The one that has the lock of a cap, and none of those."""
    for pid in set(guardians(owner)) - set(after):
        with contextlib.suppress(OSError):
            if any("wattmeter-cap-" in os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()):
                return pid
    return None


def is_dead(pid):
    """Its files are closed, and with them its locks."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def fails(done, status, *texts):
    assert done.returncode == status, (done.returncode, done.stderr)
    for text in texts:
        assert text in done.stderr, done.stderr
    return done.stderr


SHOW = "import struct, sys; print(*struct.unpack('d', open(sys.argv[1], 'rb').read()[:8]))"


@case("run --cap: the command runs under the cap, and what was there before comes back")
def _(folder):
    machine = Machine(folder)
    done = machine.run("run", "--cap", "250W", "--", sys.executable, "-c", SHOW, machine.settings)
    assert done.returncode == 0 and done.stdout == "250.0\n", (done.stdout, done.stderr)
    assert f"cap=gpu0 250 W (was {EARLIER} W)" in done.stderr, done.stderr
    assert machine.get() == EARLIER and not machine.journal(), machine.journal()


@case("run --cap: each GPU its own, and a relative one of the default")
def _(folder):
    machine = Machine(folder, {}, {"power_limit_step": 5})
    done = machine.run("run", "--cap", "0=200W,1=81%", "--", "cp", machine.settings, folder / "seen")
    assert done.returncode == 0, done.stderr
    assert struct.unpack("dddd", (folder / "seen").read_bytes())[::2] == (200, 280)
    assert "gpu1 283.5 W asked for, 280 W enforced" in done.stderr, done.stderr
    assert machine.get(0) == machine.get(1) == EARLIER


@case("run --cap: the command's own status, and 1, 2 where there is no cap; it does not start")
def _(folder):
    machine = Machine(folder)
    assert machine.run("run", "-q", "--cap", "0.8", "--", "sh", "-c", "exit 7").returncode == 7
    for words, status, text in [
        ("99W", 2, "gpu0: 99 W is below 100 W, the lowest cap that can be set"),
        ("401W", 2, "gpu0: 401 W is above 400 W, the highest"),
        ("0W", 2, "gpu0: a cap is above 0"),
        ("", 2, "empty word"), ("W", 2, "is no cap"), ("1e3W", 2, "is no cap"),
        ("250X", 2, "is no cap"), ("-5W", 2, "is no cap"), ("nan", 2, "is no cap"),
        ("250W,", 2, "nothing behind the last comma"), ("250W,260W", 2, "each names its GPU"),
        ("0=250W,gpu0=260W", 2, "gpu0 is named twice"), ("7=250W", 2, "7"),
        ("=250W", 2, ""), ("cpu=100W", 1, "no CPU package here"),
        ("cpu9=100W", 1, "no CPU package here"), ("0=9000GHz", 2, "above"),
    ]:
        done = machine.run("run", "--cap", words, "--", "touch", folder / "ran")
        fails(done, status, text)
        assert not (folder / "ran").exists() and machine.is_earlier(), words
    assert machine.run("run", "-q", "--cap", "250W", "--", folder / "none").returncode == 127
    assert machine.get() == EARLIER and not machine.journal()


@case("a driver that refuses: what is missing and what gives it, and nothing has changed")
def _(folder):
    fault = {"call": "nvmlDeviceSetPowerManagementLimit"}
    for error, texts in [
        ("NO_PERMISSION", ("CAP_SYS_ADMIN", "sudo")), ("NOT_SUPPORTED", ("cannot have it set",)),
        ("INVALID_ARGUMENT", ("refuses this value",)), ("UNKNOWN", ("Unknown Error",)),
        ("GPU_IS_LOST", ("GPU is lost",)),
    ]:
        machine = Machine(folder, {}, {}, faults=[{**fault, "gpu": 1, "error": error}])
        for command in ["run", "--cap", "250W", "--", "true"], ["cap", "set", "1=250W"]:
            assert fails(machine.run(*command), 2 if error == "INVALID_ARGUMENT" else 1, "gpu1", *texts)
            assert machine.is_earlier(0) and machine.is_earlier(1)
            assert machine.journal() == [], machine.journal()
    machine = Machine(folder, {"power_limit": None})
    fails(machine.run("run", "--cap", "250W", "--", "true"), 1, "gpu0: Not Supported")


@case("cap set, reset, restore, show")
def _(folder):
    machine = Machine(folder, {"power_limit_step": 5, "persistence": 0})
    done = machine.run("cap", "set", "252")
    assert f"gpu0: 252 W (was {EARLIER} W; drawn now: 300 W)" in done.stdout, done.stderr
    assert "252 W was asked for, 250 W is enforced" in done.stdout, done.stdout
    assert "nvidia-smi -pm 1" in done.stdout, done.stdout
    shown = machine.run("cap", "show")
    assert "it draws 300 W, above its cap of 250 W" in shown.stdout, shown.stdout
    gpu, clock = json.loads(machine.run("cap", "show", "--json").stdout)["caps"]
    assert (gpu["value"], gpu["default"], gpu["minimum"], gpu["maximum"], gpu["drawn_watts"]) == (
        250, 350, 100, 400, 300), gpu
    assert clock["kind"] == "gpu_clock" and clock["value"] is None and clock["why"]["value"]
    assert machine.run("cap", "set", "0=200W").returncode == 0
    assert machine.run("cap", "reset").returncode == 0 and machine.get() == 350
    done = machine.run("cap", "restore")
    assert done.stdout == f"gpu0: {EARLIER} W: put back\n", done.stdout
    assert machine.get() == EARLIER
    assert machine.run("cap", "restore").stdout == "nothing to put back\n"
    assert machine.run("cap", "set", "0=default").returncode == 0 and machine.get() == 350
    machine.set(EARLIER)
    assert "was there again already" in machine.run("cap", "restore").stdout


@case("clocks: a highest one, and none again afterwards")
def _(folder):
    machine = Machine(folder)
    done = machine.run("run", "--cap", "1200MHz", "--", "cp", machine.settings, folder / "seen")
    assert struct.unpack("dd", (folder / "seen").read_bytes())[1] == 1.2e9, done.stderr
    assert machine.get(clock=True) is None and not machine.journal()
    assert machine.run("cap", "set", "0=1.2GHz,gpu0=250W").returncode == 0
    assert machine.get(clock=True) == 1.2e9 and machine.get() == 250
    assert "note: gpu0: clocks up to 1200 MHz, set by wattmeter" in machine.run("cap", "show").stdout
    assert json.loads(machine.run("cap", "show", "--json").stdout)["caps"][1]["value"] == 1.2e9
    entry = next(path for path in machine.journal() if "gpu_clock" in path.name)
    good = json.loads(entry.read_text())
    entry.write_text(json.dumps(good | {"boot": "of an earlier start"}))
    assert "clocks" not in machine.run("cap", "show").stdout
    entry.write_text(json.dumps(good))
    left = entry.with_name(entry.name.replace(".json", ".session.json"))
    left.write_text(json.dumps(good | {"session": True, "boot": "of an earlier start", "earlier": 1.5e9}))
    assert machine.run("run", "-q", "--cap", "0=900MHz", "--", "true").returncode == 0
    assert machine.get(clock=True) == 1.2e9
    assert machine.run("cap", "restore", "0").returncode == 0
    assert machine.get(clock=True) is None and machine.get() == EARLIER


@case("what somebody else has set meanwhile is left alone, and said")
def _(folder):
    machine = Machine(folder)
    session = machine.start("run", "-q", "--cap", "250W", "--", "sleep", "0.6", stderr=subprocess.PIPE)
    wait_for(lambda: machine.get() == 250, "the cap")
    time.sleep(0.2)
    machine.set(300)
    _, err = session.communicate(timeout=300)
    assert machine.get() == 300 and session.returncode == 1, (session.returncode, err)
    assert "somebody else has changed it meanwhile" in err, err
    assert machine.run("cap", "set", "200W").returncode == 0
    machine.set(310)
    assert "gpu0: 310 W: somebody else" in machine.run("cap", "restore").stdout
    assert machine.get() == 310 and not machine.journal()


@case("one writer per GPU: the second is told who has it, other GPUs are free")
def _(folder):
    machine = Machine(folder, {}, {})
    session = machine.start("run", "-q", "--cap", "0=250W", "--", "sleep", "200")
    wait_for(lambda: machine.get() == 250, "the cap")
    who = f"gpu0: its cap is held by process {session.pid} (sleep)"
    for command in (["cap", "set", "200W"], ["cap", "reset", "0"], ["cap", "restore", "gpu0"],
                    ["run", "--cap", "0=200W", "--", "true"]):
        fails(machine.run(*command), 1, who)
    assert machine.run("run", "-q", "--cap", "1=200W", "--", "true").returncode == 0
    session.terminate()
    session.wait(10)
    wait_for(lambda: machine.get() == EARLIER, "the earlier cap")
    assert machine.run("cap", "set", "200W").returncode == 0


@case("a GPU that is lost, or hangs, does not keep the others from being put back")
def _(folder):
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    machine = Machine(folder, {"lost_at": 1.2}, {}, start_monotonic_ns=now)
    done = machine.run("run", "-q", "--cap", "250W", "--", "sleep", "1.5")
    fails(done, 1, "gpu0", "lost")
    assert machine.get(1) == EARLIER and len(machine.journal()) == 1, machine.journal()

    for call in "nvmlDeviceGetPowerManagementLimit", "nvmlDeviceSetPowerManagementLimit":
        own = folder / call
        own.mkdir()
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        machine = Machine(own, {}, {}, {}, start_monotonic_ns=now, faults=[
            {"call": call, "gpu": 0, "from": 1.2, "to": 3, "delay_ms": 2500}])
        session = machine.start("run", "-q", "--cap", "250W", "--", "sleep", "200")
        wait_for(lambda: machine.get(2) == 250, "the caps")
        time.sleep(max(0, (now + 1.6e9 - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) / 1e9))
        session.kill()
        session.wait()
        first = wait_for(lambda: [gpu for gpu in range(3) if machine.get(gpu) == EARLIER], "the first of the caps")
        assert 0 not in first or len(first) == 3, (call, first)
        wait_for(lambda: all(machine.get(gpu) == EARLIER for gpu in range(3)), "all of them")

    own = folder / "changed"
    own.mkdir()
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    machine = Machine(own, {}, {}, start_monotonic_ns=now, faults=[
        {"call": "nvmlDeviceSetPowerManagementLimit", "gpu": 1, "from": 1.2, "to": 3, "delay_ms": 2500}])
    session = machine.start("run", "-q", "--cap", "250W", "--", "sleep", "1.5", stderr=subprocess.PIPE)
    wait_for(lambda: machine.get(1) == 250, "the caps")
    machine.set(300, gpu=0)
    _, err = session.communicate(timeout=300)
    assert machine.get(0) == 300 and machine.get(1) == EARLIER, (machine.get(0), machine.get(1), err)
    assert session.returncode == 1 and "gpu0: somebody else" in err and not machine.journal(), err


@case("a guardian on a kernel without pidfd waits, and ends with its session")
def _(folder):
    machine = Machine(folder, {})
    version = machine.run("--version").stdout.split()[-1]
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    os.dup2(its.fileno(), 103)
    its.close()
    started = subprocess.run(
        ["bash", "-c", 'exec "$@" 3<&103 103<&-', "bash", tap.WATTMETER, "--cap-guardian", version,
         machine.env["WATTMETER_SYSFS"], str(NVML), "test", str(os.getpid())],
        env=machine.env, pass_fds=[103], stdin=subprocess.DEVNULL)
    assert started.returncode == 0
    os.close(103)
    assert ours.recv(4096), "not ready"
    [guardian] = guardians(os.getpid())
    time.sleep(1)
    ticks = sum(map(int, Path(f"/proc/{guardian}/stat").read_text().rpartition(")")[2].split()[11:13]))
    assert ticks < 0.3 * os.sysconf("SC_CLK_TCK"), ticks
    ours.close()
    wait_for(lambda: is_dead(guardian), "the end of the guardian")


@case("a killed guardian is started again, and puts back what the first one knew")
def _(folder):
    machine, ready = Machine(folder), folder / "ready"
    session = machine.start("run", "-q", "--cap", "250W", "--", "sh", "-c", f": >{ready}; exec sleep 200")
    wait_for(ready.exists, "the command, whose cap is set")
    for _ in range(3):
        # With the process that forks it, which is called the same.
        old = wait_for(lambda: guardians(session.pid), "a guardian")
        for pid in old:
            kill(pid)
        wait_for(lambda: ready_guardian(session.pid, old), "another one")
        assert machine.get() == 250
    time.sleep(0.2)
    session.kill()
    session.wait()
    wait_for(lambda: machine.get() == EARLIER, "the earlier cap")
    wait_for(lambda: not machine.journal(), "an empty journal")


@case("all killed, the guardian too: the next call offers to repair, cap restore does it")
def _(folder):
    machine = Machine(folder)
    session = machine.start("run", "-q", "--cap", "250W", "--", "sleep", "200")
    wait_for(lambda: machine.get() == 250 and guardians(session.pid), "the cap")
    keepers = guardians(session.pid)
    for pid in [session.pid, *keepers]:
        os.kill(pid, signal.SIGSTOP)
    for pid in [*keepers, session.pid]:
        os.kill(pid, signal.SIGKILL)
    session.wait()
    wait_for(lambda: all(map(is_dead, keepers)), "the end of the guardian")
    assert machine.get() == 250
    [lock] = machine.state.glob("*.lock")
    os.link(lock, machine.state / "link")
    fails(machine.run("cap", "restore"), 1, "gpu0: its lock", "Too many links")
    (machine.state / "link").unlink()
    lock.unlink()
    os.mkfifo(lock)  # which must not be waited for
    done = machine.run("info", "--brief")
    assert "a session that was killed has left gpu0 at 250 W (before: 320 W)" in done.stderr, done.stderr
    assert "cap restore" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    for options in [], ["--repeat", "2"]:
        done = machine.run("run", "-q", *options, "--", "true")
        assert done.stderr.count("a session that was killed has left gpu0 at 250 W (before: 320 W)") == 1, done.stderr
    done = machine.run("cap", "restore")
    assert done.stdout == "gpu0: 320 W: put back\n", (done.stdout, done.stderr)
    assert machine.get() == EARLIER and machine.run("info", "--brief").stderr == ""


@case("after a restart the limits are what they were: the journal is cleared")
def _(folder):
    machine = Machine(folder)
    assert machine.run("cap", "set", "250W").returncode == 0
    machine.settings.unlink()
    assert "gpu0: 320 W: was there again already" in machine.run("cap", "restore").stdout
    assert not machine.journal()


@case("a journal that is none is refused, and nothing is changed")
def _(folder):
    machine = Machine(folder)
    assert machine.run("cap", "set", "250W").returncode == 0
    [entry] = machine.journal()
    good = entry.read_text()
    for text in ["", "{", "[]", "{}", good.replace('"version": 1', '"version": 2'),
                 good.replace("gpu_power", "gpu_weight"), good.replace("320.0", "null"),
                 good.replace("320.0", '"320"'), good.replace('"owner": 0', '"owner": -1'),
                 "x" * 70000]:
        entry.write_text(text)
        fails(machine.run("cap", "restore"), 1, "gpu_power.json")
        assert machine.get() == 250, text
    entry.write_text(good)
    assert machine.run("cap", "restore").returncode == 0 and machine.get() == EARLIER


@case("a GPU that is gone stays in the journal, and is named")
def _(folder):
    machine = Machine(folder)
    session = machine.start("run", "-q", "--cap", "250W", "--", "sleep", "200")
    wait_for(lambda: machine.get() == 250 and guardians(session.pid), "the cap")
    kill_everything(session)
    session.wait()
    [entry] = machine.journal()
    entry.rename(entry.with_name("GPU-gone.gpu_power.session.json"))
    gone = machine.state / "GPU-gone.gpu_power.session.json"
    gone.write_text(gone.read_text().replace("GPU-00000000-51a1-4ed0-8000-000000000000", "GPU-gone"))
    fails(machine.run("cap", "restore"), 1, "still in the journal: gpu0 at 250 W (before: 320 W)")
    assert machine.journal() == [gone]


@case("AMD: the files of hwmon, and of a GPU without")
def _(folder):
    copy = folder / "sys"
    shutil.copytree(DRM / "amd-discrete", copy, symlinks=True)
    machine = Machine(folder, sysfs=copy)
    machine.env["WATTMETER_NVML"] = "/nonexistent.so"
    [cap] = copy.glob("devices/**/hwmon*/power1_cap")
    before = cap.read_text()
    done = machine.run("cap", "show", "--json")
    [gpu] = [c for c in json.loads(done.stdout)["caps"] if c["kind"] == "gpu_power"]
    wanted = round(gpu["default"] * 0.9)
    done = machine.run("run", "--cap", f"{wanted}W", "--", "cp", cap, folder / "seen")
    assert int((folder / "seen").read_text()) == wanted * 10**6, done.stderr
    assert int(cap.read_text()) == int(before), (cap.read_text(), before)
    assert machine.run("cap", "set", f"{wanted}W").returncode == 0
    assert int(cap.read_text()) == wanted * 10**6
    assert machine.run("cap", "restore").returncode == 0 and int(cap.read_text()) == int(before)
    fails(machine.run("cap", "set", "0=1200MHz"), 1, "only the clocks of NVIDIA GPUs")
    fails(machine.run("cap", "set", "0=100000W"), 2, "above")


def packages(folder):
    for number, watts in enumerate((120, 150)):
        zone = folder / "sys" / "class" / "powercap" / f"intel-rapl:{number}"
        zone.mkdir(parents=True)
        for name, text in [("name", f"package-{number}"), ("energy_uj", "5000000"), ("enabled", "1"),
                           ("constraint_0_name", "long_term"), ("constraint_1_name", "short_term"),
                           ("constraint_0_power_limit_uw", watts * 10**6),
                           ("constraint_1_power_limit_uw", 200 * 10**6),
                           ("constraint_0_max_power_uw", 165 * 10**6)]:
            (zone / name).write_text(f"{text}\n")
    return folder / "sys"


@case("CPU packages: powercap's limit over seconds")
def _(folder):
    machine = Machine(folder, sysfs=packages(folder))
    machine.env["WATTMETER_NVML"] = "/nonexistent.so"
    limits = [folder / "sys/class/powercap" / f"intel-rapl:{n}/constraint_0_power_limit_uw" for n in (0, 1)]

    def watts():
        return [int(limit.read_text()) / 1e6 for limit in limits]

    assert "cpu_package0  120 W" in machine.run("cap", "show").stdout
    done = machine.run("run", "--cap", "cpu=90W", "--", "cat", *limits)
    assert done.stdout == "90000000" * 2, (done.stdout, done.stderr)
    assert watts() == [120, 150]
    assert machine.run("cap", "set", "cpu_package1=100W").returncode == 0 and watts() == [120, 100]
    assert machine.run("cap", "restore", "cpu").returncode == 0 and watts() == [120, 150]
    fails(machine.run("cap", "set", "cpu=80%"), 2, "default is not known")
    fails(machine.run("cap", "reset", "cpu"), 1, "default is not known")
    fails(machine.run("cap", "set", "cpu=166W"), 2, "above 165 W")
    fails(machine.run("cap", "set", "cpu=1GHz"), 2, "only GPUs have clocks to set")
    fails(machine.run("cap", "set", "cpu7=90W"), 2, "no such CPU package")
    fails(machine.run("cap", "set", "90W"), 1, "no GPU here")


@case("a file in /sys that may not be written: which, and what to do")
def _(folder):
    if os.geteuid() != 0:
        raise tap.Skip("only root can become somebody else")
    machine = Machine(folder, sysfs=packages(folder))
    machine.env["WATTMETER_NVML"] = "/nonexistent.so"
    machine.state.mkdir()
    for path in folder, *folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    machine.state.chmod(0o777)
    command = tap.copy_command(folder / "bin" / "wattmeter")
    env = {**machine.env, "LD_LIBRARY_PATH": str(command.parent)}
    done = subprocess.run([command, "run", "--cap", "cpu=90W", "--", "true"], env=env, cwd="/",
                          capture_output=True, text=True, timeout=300, user=65534, group=65534,
                          extra_groups=[])
    text = fails(done, 1, "constraint_0_power_limit_uw", "sudo")
    assert "cpu_package0: setting this takes the right to write" in text, text
    assert not machine.journal(), machine.journal()


@case("a journal is put back by its own user, and the others are told who that is")
def _(folder):
    if os.geteuid() != 0:
        raise tap.Skip("only root can become somebody else")
    own = " && ".join(f"mount -t tmpfs -o mode={mode} none {place}"
                      for place, mode in (("/var/tmp", 1777), ("/var/lib", 755), ("/dev/shm", 1777)))
    inside = subprocess.Popen(["unshare", "-m", "sh", "-c", f"{own} && echo ready && exec sleep 100"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        if inside.stdout.readline() != "ready\n":
            raise tap.Skip("no mount namespace of its own")
        machine = Machine(folder, sysfs=packages(folder))
        machine.env.update(WATTMETER_NVML="/nonexistent.so")
        del machine.env["WATTMETER_STATE"]
        limit = folder / "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw"
        for path in folder, *folder.rglob("*"):
            path.chmod(0o777 if path.is_dir() else 0o666)
        root = ["nsenter", "-m", "-t", str(inside.pid)]
        nobody = [*root, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

        def run(who, *words):
            return subprocess.run([*who, tap.WATTMETER, *words], env=machine.env, text=True, capture_output=True)

        for user, other, command in (nobody, root, "sudo -u '#65534' wattmeter"), (root, nobody, "sudo wattmeter"):
            session = subprocess.Popen([*user, tap.WATTMETER, "run", "-q", "--cap", "cpu=90W", "--", "sleep", "200"],
                                       stdout=subprocess.DEVNULL, env=machine.env)
            wait_for(lambda: limit.read_text().strip() == "90000000" and guardians(session.pid), "the cap")
            keepers = guardians(session.pid)
            kill_everything(session)
            session.wait()
            wait_for(lambda: all(map(is_dead, keepers)), "the end of the guardian")
            left = "cpu_package0 at 90 W (before: 120 W"
            told = run(user, "info", "--brief").stderr
            assert f"{left})" in told and "; wattmeter cap restore puts it back" in told, told
            told = run(other, "info", "--brief").stderr
            assert f"{left}; {command} cap restore puts it back)" in told and "another user's" in told, told
            done = run(other, "cap", "restore")
            assert done.returncode == 0 and done.stdout == "nothing to put back\n", done
            done = run(user, "cap", "restore")
            assert done.returncode == 0 and "cpu_package0: 120 W: put back" in done.stdout, done
            assert int(limit.read_text()) == 120e6 and not run(other, "info", "--brief").stderr
        place = "/var/tmp/wattmeter-caps-65534"
        subprocess.run([*nobody, "sh", "-c", f"cd {place} && mkfifo a.json && ln -s /dev/zero b.json && echo {{ >c.json"],
                       check=True)
        done = run(root, "info", "--brief")
        assert done.returncode == 0 and not done.stderr, done
        subprocess.run([*root, "chown", "1", place], check=True)
        fails(run(nobody, "run", "--cap", "cpu=90W", "--", "true"), 1, "wattmeter-caps-65534", "somebody else's")
        assert int(limit.read_text()) == 120e6
    finally:
        inside.kill()
        inside.wait()


@case("usage: each wrong word is named, with status 2")
def _(folder):
    machine = Machine(folder)
    fails(machine.run("cap", "raise"), 2, "not raise")
    fails(machine.run("cap", "set"), 2, "usage: wattmeter cap set CAPS")
    fails(machine.run("cap", "show", "0"), 2, "usage: wattmeter cap show")
    fails(machine.run("cap", "set", "--price", "1", "250W"), 2, "there is no --price with set")
    machine.env["WATTMETER_PRICE"] = "0.3"
    assert machine.run("cap", "show").returncode == 0
    fails(machine.run("cap", "reset", "9"), 2, "9")
    assert machine.run("--cap-guardian").returncode == 2
    machine.env["WATTMETER_STATE"] = "/proc/nope"
    fails(machine.run("cap", "set", "250W"), 1, "gpu0: its lock /proc/nope/", "WATTMETER_STATE")


@case("a full disk: what cannot be in the journal is not set")
def _(folder):
    machine = Machine(folder)
    machine.state.mkdir()
    full = f"mount -t tmpfs -o size=4k none {machine.state} && head -c 4096 /dev/zero >{machine.state}/fill"
    if subprocess.run(["unshare", "-m", "sh", "-c", full], stderr=subprocess.DEVNULL).returncode != 0:
        raise tap.Skip("no mount namespace of its own")
    for words in ["run", "--cap", "250W", "--", "true"], ["cap", "set", "250W"]:
        done = subprocess.run(["unshare", "-m", "sh", "-c", f'{full} && exec "$@"', "sh", tap.WATTMETER, *words],
                              env=machine.env, text=True, capture_output=True)
        fails(done, 1, "the journal of caps", "No space left on device", "WATTMETER_STATE")
        assert machine.is_earlier()


# Who is killed: a way to do it, given the session, its process group, and its guardians.
def kill_us(session):
    kill(session.pid)


def terminate_us(session):
    kill(session.pid, signal.SIGTERM)


def kill_group(session):
    os.killpg(session.pid, signal.SIGKILL)


def kill_all_but_the_guardian(session):
    """Us, the launcher and the command."""
    spared = set(guardians(session.pid))
    for pid in [session.pid, *descendants(session.pid)]:
        if pid not in spared:
            kill(pid)


def kill_guardian_then_us(session):
    for pid in guardians(session.pid):
        kill(pid)
    time.sleep(random.random() * 0.05)
    kill(session.pid)


def kill_everything(session):
    """Nobody is left to put anything back."""
    for pid in [session.pid, *descendants(session.pid)]:
        kill(pid, signal.SIGSTOP)
    for pid in [*guardians(session.pid), session.pid, *descendants(session.pid)]:
        kill(pid)


def descendants(pid):
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, left = [], [pid]
    while left:
        for child in children.get(left.pop(), []):
            found.append(child)
            left.append(child)
    return found


WAYS = [kill_us, terminate_us, kill_group, kill_all_but_the_guardian, kill_guardian_then_us,
        kill_everything]


def is_back(machine, session):
    return machine.is_earlier() and not guardians(session.pid)


@case(f"{KILLS} kills at random moments: what was there before is back within a second")
def _(folder):
    rng = random.Random(int(os.environ.get("WM_TEST_SEED", "1")))
    longest, under_cap, repaired = 0, 0, 0
    for number in range(KILLS):
        home = folder / str(number)
        home.mkdir()
        machine = Machine(home)
        # The search for leaks has a process of its own, which must not be killed.
        machine.env["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        way = WAYS[number % len(WAYS)]
        session = machine.start("run", "-q", "--cap", "250W", "--", "sleep", "3", start_new_session=True)
        time.sleep(rng.uniform(0.0, 0.5))
        under_cap += machine.get() == 250
        # The clock starts once the last of them was sent its signal.
        way(session)
        killed = time.monotonic()
        session.wait(300)
        # A guardian that is killed with us, or before another has begun, leaves the journal.
        may_be_left = way in (kill_everything, kill_guardian_then_us)
        while not (is_back(machine, session) or may_be_left and not guardians(session.pid)) and \
                time.monotonic() < killed + 30:
            time.sleep(0.002)
        took = time.monotonic() - killed
        if may_be_left and machine.journal():
            repaired += len(machine.journal()) > 0
            done = machine.run("cap", "restore")
            assert done.returncode == 0, (way.__name__, done.stderr)
        else:
            assert took < 30, f"kill {number}, {way.__name__}: {took:.2f} s"
            longest = max(longest, took)
        # A guardian that was about to begin finds nobody, and ends.
        wait_for(lambda: is_back(machine, session), f"kill {number}, {way.__name__}: {machine.get()} W")
        assert not machine.journal(), (number, way.__name__, machine.journal())
        shutil.rmtree(home)
    print(f"# {under_cap} of {KILLS} under the cap; at most {longest:.3f} s until it was back; "
          f"{repaired} repaired from the journal")


@case("the parent killed, and a terminal closed: what was there before is back")
def _(folder):
    machine = Machine(folder)
    parent = subprocess.Popen(["sh", "-c", f"{tap.WATTMETER} run -q --cap 250W -- sleep 20; :"],
                              env=machine.env, start_new_session=True)
    wait_for(lambda: machine.get() == 250, "the cap")
    parent.kill()
    parent.wait()
    assert machine.get() == 250  # The session goes on without its parent.
    os.killpg(parent.pid, signal.SIGKILL)
    wait_for(lambda: machine.get() == EARLIER, "the earlier cap")

    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(tap.WATTMETER, [tap.WATTMETER, "run", "-q", "--cap", "250W", "--", "sleep", "200"],
                  machine.env)
    wait_for(lambda: machine.get() == 250, "the cap")
    os.close(terminal)
    wait_for(lambda: machine.get() == EARLIER, "the earlier cap")
    os.waitpid(pid, 0)


if __name__ == "__main__":
    tap.main(jobs=3)
