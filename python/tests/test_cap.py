# SPDX-License-Identifier: Apache-2.0
"""cap(), set_power_cap(), reset_power_cap(): set, refused, and put back whatever happens."""

import os
import signal
import struct
import time

import pytest

import wattmeter
from machine import Machine

EARLIER = 320.0  # what the site has set: neither the default nor what we set


class Capped(Machine):
    def __init__(self, folder, *gpus, **scenario):
        super().__init__(folder)
        self.settings = folder / "settings"
        gpus = [
            {
                "power": 300,
                "power_limit": EARLIER,
                "power_limit_default": 350,
                "power_limit_min": 100,
                "power_limit_max": 400,
                **gpu,
            }
            for gpu in gpus or [{}]
        ]
        self.add_gpus({"gpus": gpus, "settings": str(self.settings), **scenario})

    def watts(self, gpu=0):
        data = self.settings.read_bytes() if self.settings.exists() else b""
        data = data[16 * gpu : 16 * gpu + 8]
        value = struct.unpack("d", data)[0] if len(data) == 8 else EARLIER
        return EARLIER if value != value else value

    def wait(self, watts, seconds=5.0):
        end = time.monotonic() + seconds
        while self.watts() != watts and time.monotonic() < end:
            time.sleep(0.005)
        assert self.watts() == watts


@pytest.fixture
def capped(tmp_path):
    return Capped(tmp_path)


HELD = """
    import os, sys, time, wattmeter
    with wattmeter.cap(200) as held:
        print(held.settings[0].value, flush=True)
        {}
"""


def test_a_block_is_capped_and_no_more(capped):
    assert capped.run(HELD.format("pass")) == "200.0\n"
    assert capped.watts() == EARLIER
    assert not list((capped.folder / "state").glob("*.json"))


@pytest.mark.parametrize("line", ["raise KeyError", "sys.exit(3)", "os._exit(3)", "os.abort()"])
def test_whatever_ends_it(capped, line):
    process = capped.start(HELD.format(line))
    process.communicate(timeout=300)
    assert process.returncode != 0
    capped.wait(EARLIER, 1)


def test_killed_while_a_forked_child_lives_on(capped):
    process = capped.start(
        HELD.format("os.fork() or (print(os.getpid(), flush=True), time.sleep(5)); time.sleep(20)")
    )
    assert process.stdout.readline() == "200.0\n"
    child = int(process.stdout.readline())
    process.kill()
    capped.wait(EARLIER, 1)
    os.kill(child, signal.SIGKILL)
    process.communicate(timeout=300)


def test_the_end_in_a_forked_child_changes_nothing(capped):
    said = capped.run(
        HELD.format("pid = os.fork(); pid or sys.exit(); os.waitpid(pid, 0); time.sleep(0.1)\n"
                    "        held._core.refresh(); print(held.settings[0].value)")
    )
    assert said == "200.0\n200.0\n"
    assert capped.watts() == EARLIER


def test_it_leaves_no_child_to_wait_for(capped):
    program = HELD.format(
        "children = open(f'/proc/self/task/{os.getpid()}/children').read(); print(repr(children))"
    )
    assert capped.run(program).splitlines()[1] == "''"


def test_set_and_reset(capped):
    capped.run("import wattmeter; wattmeter.set_power_cap(gpu_num=0, cap=200)")
    assert capped.watts() == 200
    capped.run("import wattmeter; wattmeter.set_power_cap(0, 0.8)")
    assert capped.watts() == 280
    capped.run("import wattmeter; wattmeter.reset_power_cap(gpu_num=0)")
    assert capped.watts() == 350


NOTED = """
    import sys, warnings, wattmeter
    warnings.simplefilter("always")
    warnings.showwarning = lambda message, *_: print("warning:", message)
    held = wattmeter.cap(200)
    print(held)
    with held:
        print(held)
        with wattmeter.track(notes={"batch": 32}) as t:
            pass
        report = wattmeter.run(["true"], notes={"cap": "mine"})
    print(t.report.notes, report.notes, wattmeter.run(["true"]).notes)
    wattmeter.set_power_cap(0, 200)
"""


def test_a_cap_that_holds_is_noted(capped):
    assert capped.run(NOTED).splitlines() == [
        "<wattmeter.cap: 200, not held>",
        "<wattmeter.cap: gpu0 200 W>",
        "{'cap': 'gpu0 200 W', 'batch': '32'} {'cap': 'mine'} {}",
    ]


def test_a_cap_that_is_not_enforced_warns(tmp_path):
    text = "gpu0 200 W asked for, 150 W enforced"
    assert Capped(tmp_path, {"power_limit_enforced": 150}).run(NOTED).splitlines() == [
        "<wattmeter.cap: 200, not held>",
        f"warning: {text}",
        f"<wattmeter.cap: {text}>",
        f"{{'cap': '{text}', 'batch': '32'}} {{'cap': 'mine'}} {{}}",
        f"warning: {text}",
    ]


def test_the_ways_to_say_it(tmp_path):
    machine = Capped(tmp_path, {}, {})
    program = """
        import sys, wattmeter
        caps = eval(sys.argv[1])
        with wattmeter.cap(*caps) as held:
            print(*(f"{s.device}={s.value:g}" for s in held.settings))
    """
    for caps, expected in [
        ("(200,)", "gpu0=200 gpu1=200"),
        ("(200.5, 1)", "gpu1=200.5"),
        ("('80%', 'gpu0')", "gpu0=280"),
        ("('0=150W,1=0.5',)", "gpu0=150 gpu1=175"),
    ]:
        assert machine.run(program, caps) == expected + "\n"
    assert machine.watts(0) == machine.watts(1) == EARLIER


@pytest.mark.parametrize("caps", [None, [], 0, -5, True, float("nan"), "fast", "", 90, 401, "7=200W"])
def test_wrong_caps(capped, monkeypatch, caps):
    for name, value in capped.variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError):
        with wattmeter.cap(caps):
            pass
    assert capped.watts() == EARLIER


def test_no_gpu(no_gpus):
    with pytest.raises(wattmeter.Error, match="no GPU") as caught:
        wattmeter.set_power_cap(0, 200)
    assert caught.value.status == "ENODEV"


def test_no_permission(tmp_path, monkeypatch):
    fault = {"call": "nvmlDeviceSetPowerManagementLimit", "error": "NO_PERMISSION"}
    machine = Capped(tmp_path, faults=[fault])
    for name, value in machine.variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(wattmeter.Error, match="CAP_SYS_ADMIN") as caught:
        with wattmeter.cap(200):
            pass
    assert caught.value.status == "EACCES"


# The fake driver of this process keeps the settings of its first scenario.
OTHER_SETTINGS = pytest.mark.filterwarnings("ignore:gpu0 200 W asked for")


@OTHER_SETTINGS
def test_somebody_else_has_changed_it(capped, monkeypatch):
    for name, value in capped.variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(wattmeter.Error, match="somebody else") as caught:
        with wattmeter.cap(200):
            capped.settings.write_bytes(struct.pack("dd", 300, float("nan")))
    assert caught.value.status == "ECANCELED" and capped.watts() == 300


@OTHER_SETTINGS
def test_held_by_another(capped, monkeypatch):
    for name, value in capped.variables.items():
        monkeypatch.setenv(name, value)
    with wattmeter.cap(200):
        with pytest.raises(wattmeter.Error, match=f"held by process {os.getpid()}") as caught:
            wattmeter.set_power_cap(0, 150)
        assert caught.value.status == "EEXIST" and capped.watts() == 200
    assert capped.watts() == EARLIER
