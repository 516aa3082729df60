#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cap profile and cap fit: the best cap of a card whose best cap is known, and what goes wrong.

The card is one that is not there; what it draws and how fast it is follows from its cap
(bench/made_card.h), and cap_work does units of work at that speed.
"""

import json
import os
import re
import signal
import struct
import subprocess
import time

import tap
from tap import case
from terminal import wait_for

NVML = tap.BUILD / "tests" / "fake" / "libnvidia-ml.so.1"
DRM = tap.SOURCE / "tests" / "data" / "sys-drm"
WORK = tap.BUILD / "tests" / "system" / "cap_work"
EARLIER = 280  # What the site has set.
LOWEST, DEFAULT = 100, 300
NAN = float("nan")


class Card:
    def __init__(self, folder, idle=40, linear=30, cubic=230, fixed=0.001, work=0.004, **gpu):
        self.idle, self.linear, self.cubic, self.fixed, self.work = idle, linear, cubic, fixed, work
        self.settings = folder / "settings"
        self.state = folder / "state"
        scenario = folder / "scenario.json"
        scenario.write_text(json.dumps({"settings": str(self.settings), "gpus": [{
            "power_limit": EARLIER, "power_limit_default": DEFAULT, "power_limit_min": LOWEST,
            "power_limit_max": 320, "physics_idle": idle, "physics_linear": linear,
            "physics_cubic": cubic, "physics_leak": 0.01, "physics_noise": 0.01, **gpu}]}))
        self.env = tap.environment(
            FAKE_NVML_SCENARIO=str(scenario), WATTMETER_NVML=str(NVML),
            WATTMETER_STATE=str(self.state), WATTMETER_SYSFS=str(DRM / "nvidia-only"))

    def command(self, units):
        return [WORK, self.settings, EARLIER, self.idle, self.linear, self.cubic, self.fixed,
                self.work, units]

    def profile(self, *words, command):
        return tap.wattmeter("cap", "profile", *words, "--", *command, env=self.env, timeout=300)

    def truth(self, cap, clock=1):
        low, high = 0.1, 1
        if self.power(1) > cap:
            for _ in range(60):
                middle = (low + high) / 2
                low, high = (middle, high) if self.power(middle) <= cap else (low, middle)
            clock = min(clock, low)
        seconds = self.fixed + self.work / clock
        return seconds, seconds * self.power(clock)

    def power(self, clock):
        return self.idle + self.linear * clock + self.cubic * clock ** 3

    def best(self, exponent, slower=1e9):
        usual = self.truth(DEFAULT)[0]
        tried = [self.truth(cap) for cap in range(LOWEST, DEFAULT + 1)]
        return min(e * t ** exponent for t, e in tried if t <= usual * (1 + slower))

    def is_put_back(self):
        cap, clock = EARLIER, NAN
        if self.settings.exists():
            cap, clock = struct.unpack("dd", self.settings.read_bytes())
        journal = list(self.state.glob("*.json")) if self.state.exists() else []
        return (cap == EARLIER or cap != cap) and clock != clock and not journal


def answer(done):
    assert done.returncode == 0, (done.returncode, done.stderr)
    return json.loads(done.stdout)


@case("cap profile --unit: the best cap by energy x time, and what was there before is back", tries=5)
def _(folder):
    card = Card(folder)
    found = answer(card.profile("--unit", "unit", "--objective", "edp", "--window", "800ms",
                                "--json", command=card.command(100000)))
    cap = found["choice"]["cap"]
    seconds, joules = card.truth(cap)
    assert LOWEST <= cap <= DEFAULT and seconds * joules < 1.03 * card.best(1), found["choice"]
    saved = 1 - joules / card.truth(DEFAULT)[1]
    assert abs(found["choice"]["energy_saved"]["value"] - saved) < 0.05, (found["choice"], saved)
    assert set(found["by_objective"]) == {"energy", "edp", "ed2p", "cost"}
    assert sum(point["windows"] > 0 for point in found["curve"]) <= 8
    assert card.is_put_back()


@case("cap profile: the whole command again and again, no slower than asked for", tries=5)
def _(folder):
    card = Card(folder, fixed=0.002, work=0.008)
    found = answer(card.profile("--max-slowdown", "15", "--window", "500ms", "--probes", "5",
                                "--json", command=card.command(40)))
    seconds, joules = card.truth(found["choice"]["cap"])
    if not tap.SANITIZED:  # whose own work is most of the command's time
        assert seconds / card.truth(DEFAULT)[0] < 1.18, found["choice"]
        assert joules < 1.06 * card.best(0, 0.15), found["choice"]
    assert card.is_put_back()


@case("cap profile: a cap that never binds is told at once, and nothing is proposed", tries=5)
def _(folder):
    card = Card(folder, idle=50, linear=10, cubic=20)
    done = card.profile("--unit", "unit", "--window", "1s", command=card.command(100000))
    assert done.returncode == 0 and "none; no cap has an effect" in done.stderr, done.stderr
    assert done.stderr.count("window ") == 2, done.stderr
    assert card.is_put_back()


@case("cap profile --knob clock: clocks in place of watts", tries=5)
def _(folder):
    card = Card(folder)
    done = card.profile("--knob", "clock", "--unit", "unit", "--window", "500ms", "--probes", "4",
                        "--json", command=card.command(100000))
    found = answer(done)
    assert found["cap_unit"] == "Hz" and 1e8 <= found["choice"]["cap"] < 1.98e9, found["choice"]
    assert found["choice"]["energy_saved"]["value"] > 0.1, found["choice"]
    assert card.is_put_back()


@case("cap profile: a command that fails, ends too early, or is not there")
def _(folder):
    card = Card(folder)
    for command, words, status, text in [
            (["false"], [], 1, "the command failed (status 1)"),
            (["true"], ["--unit", "unit"], 1, "before one call of the region 'unit'"),
            (card.command(3), ["--unit", "unit", "--window", "2s"], 1, "the command ended (status 0)"),
            (["/no/such"], [], 127, "/no/such"),
            (["/no/such"], ["--unit", "unit"], 127, "/no/such")]:
        done = card.profile(*words, command=command)
        assert done.returncode == status and text in done.stderr, (command, done)
        assert card.is_put_back(), command


@case("cap profile: a command that ends after some windows still gets an answer", tries=5)
def _(folder):
    card = Card(folder)
    done = card.profile("--unit", "unit", "--window", "500ms", "--probes", "8",
                        command=card.command(800))
    assert done.returncode == 0 and "note: the command ended" in done.stderr, done.stderr
    assert "best for energy" in done.stderr, done.stderr
    assert card.is_put_back()


@case("cap profile: Ctrl-C in a window ends the command, and the cap is put back")
def _(folder):
    for words in ["--unit", "unit"], []:
        card = Card(folder)
        log = folder / "log"
        with open(log, "w") as file:
            process = subprocess.Popen(
                [tap.WATTMETER, "cap", "profile", *words, "--window", "2s", "--",
                 *map(str, card.command(100000))], env=card.env, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=file, start_new_session=True)
            wait_for(lambda: "window 1" in log.read_text(), "the first window", 20)
            time.sleep(0.5)
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(20) == -signal.SIGINT, process.returncode
        assert "interrupted" in log.read_text(), log.read_text()
        assert card.is_put_back(), words


@case("cap profile: a GPU that is lost in the middle")
def _(folder):
    card = Card(folder, lost_at=2)
    done = card.profile("--unit", "unit", "--window", "1s", command=card.command(100000))
    assert done.returncode == 1 and "gpu0" in done.stderr, done.stderr


@case("cap profile: a window of a GPU that is slowed down, or gets hotter, is measured again")
def _(folder):
    hot = 1 << 6  # NVML's bit of a slowdown by heat; 1 << 2 is that of the cap
    words = ["--window", "500ms", "--caps", "150,300"]
    for gpu, command, text, times in [
            ({"throttle": {"shape": "step", "points": [[0, hot], [2, 0]]}}, 100000,
             "slowed down (hw_thermal_slowdown): once more", 1),
            ({"throttle": 1 << 2}, 100000, "once more", 0),
            ({"throttle": hot}, 100, "(hw_thermal_slowdown); it counts", 4),
            ({"temperature": [[0, 40], [10, 160]]}, 100000,
             "has got warmer; it counts", 4)]:
        card = Card(folder, **gpu)
        unit = ["--unit", "unit"] if command == 100000 else []
        done = card.profile(*unit, *words, command=card.command(command))
        assert done.returncode == 0 and "best for energy" in done.stderr, done.stderr
        assert (done.stderr.count(text) >= times) if times else text not in done.stderr, (gpu, done.stderr)
        counting = re.findall(r"note: in (\d+) windows the GPU was slowed down or got warmer", done.stderr)
        assert counting == [str(done.stderr.count("; it counts"))] or "; it counts" not in done.stderr, done.stderr
        assert card.is_put_back()


@case("cap profile: each run reads a file on its standard input; the answer is on the screen, too")
def _(folder):
    data, out = folder / "in", folder / "out.json"
    data.write_text("a\nb\n")
    card = Card(folder)
    with open(data) as file:
        done = tap.wattmeter("cap", "profile", "--caps", "2", "--window", "100ms", "-o", out, "--json",
                             "--", "sh", "-c", "wc -l; sleep 0.05", env=card.env, stdin=file)
    lines = done.stdout.split()
    assert done.returncode == 0 and len(lines) > 4 and set(lines) == {"2"}, done
    assert "best for energy" in done.stderr and json.loads(out.read_text())["curve"], done.stderr


@case("cap profile --unit: a region that is not called is told of while the command runs")
def _(folder):
    card = Card(folder)
    done = card.profile("--unit", "nosuch", "--window", "200ms", command=card.command(200))
    assert done.returncode == 1, done
    assert done.stderr.count("no call of the region 'nosuch' has ended yet") == 1, done.stderr


@case("cap profile, cap fit: what is misused is refused in one line")
def _(folder):
    card = Card(folder)
    table = folder / "table.csv"
    table.write_text("cap_w,seconds,joules\n100,2,200\n200,1,180\n")
    for words, status, text in [
            (["profile"], 2, "usage: wattmeter cap profile"),
            (["fit"], 2, "usage: wattmeter cap fit TABLE"),
            (["fit", table, "more"], 2, "usage"),
            (["profile", "--objective", "speed", "--", "true"], 2, "--objective is energy, edp"),
            (["profile", "--probes", "1", "--", "true"], 2, "--probes is 2 to"),
            (["profile", "--caps", "100,x", "--", "true"], 2, "--caps is a number"),
            (["profile", "--caps", "300," * 64 + "100", "--", "true"], 2, "of 64 at most"),
            (["profile", "--caps", "50,100", "--", "true"], 2, "cap 50 is not between 100 and 300"),
            (["profile", "--unit", "a", "--repeat", "--", "true"], 2, "exclude each other"),
            (["profile", "--knob", "fan", "--", "true"], 2, "--knob is power or clock"),
            (["profile", "--devices", "7", "--", "true"], 2, "7"),
            (["profile", "--price", "0.3", "--", "true"], 2, "--price and --hourly"),
            (["profile", "--replay", table, "--caps", "3"], 2, "are for a command"),
            (["fit", table, "--probes", "3"], 2, "there is no --probes with fit"),
            (["show", "--objective", "edp"], 2, "no --objective with show")]:
        done = tap.wattmeter("cap", *words, env=card.env)
        assert done.returncode == status and text in done.stderr, (words, done)
        assert done.stderr.count("\n") == 1, done.stderr
    assert card.is_put_back()


@case("cap fit: the cost of time is that of the power at the default limit, of clocks as of caps")
def _(folder):
    card, saved = Card(folder), {}
    for column, scale in ("cap_w", 1), ("cap_hz", 6.6e6):
        rows = [f"{cap * scale},{card.truth(cap)[0]},{card.truth(cap)[1]}" for cap in range(100, 301, 25)]
        table = folder / f"{column}.csv"
        table.write_text("\n".join([f"{column},seconds,joules", *rows, ""]))
        found = answer(tap.wattmeter("cap", "fit", table, "--objective", "cost", "--json"))
        saved[column] = found["choice"]["energy_saved"]["value"]
    assert saved["cap_w"] > 0.1 and abs(saved["cap_hz"] - saved["cap_w"]) < 0.03, saved


@case("cap fit, cap profile --replay: tables that are none")
def _(folder):
    table = folder / "table.csv"
    for text, why in [("", "sweep of caps"), ("cap_w,seconds\n1,2\n", "joules"),
                      ("cap_w,seconds,joules\n", "two caps or more"),
                      ("cap_w,seconds,joules\n100,1,1\n", "two caps or more"),
                      ("cap_w,seconds,joules\n100,1,1\n200,0,1\n", "seconds is no number above 0"),
                      ("cap_w,seconds,joules\n100,1,1\n200,nan,1\n", "seconds is no number above 0"),
                      ("cap_w,seconds,joules\n100,1,1\n-2,1,1\n", "cap_w is no number above 0"),
                      ("cap_w,seconds,joules\n100,1,1\n200,1\n", "a column is missing"),
                      ("cap_w,seconds,joules\n100,1,1\n200,1,2,500\n", "more cells than the header")]:
        table.write_text(text)
        for words in ["fit", table], ["profile", "--replay", table]:
            done = tap.wattmeter("cap", *words)
            assert done.returncode == 1 and why in done.stderr, (text, done)
            assert done.stderr.count("\n") == 1, done.stderr
    done = tap.wattmeter("cap", "fit", folder / "none.csv")
    assert done.returncode == 1 and "none.csv" in done.stderr, done


if __name__ == "__main__":
    tap.main(jobs=3)
