#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`wattmeter watch` in real terminals."""

import json
import os
import pty
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

import tap
from tap import case
from terminal import Terminal, wait_for

if not (tap.BUILD / "wattmeter-watch.so").exists():
    print("built without ncurses")
    sys.exit(77)

NVML = tap.BUILD / "tests/fake/libnvidia-ml.so.1"
SQUARE = {"shape": "square", "low": 100, "high": 500, "period": 0.7}
BRAILLE = re.compile("[\u2801-\u28ff]")


class Watched(Terminal):
    """`wattmeter watch` in tmux; a shell is there when it has ended."""

    def __init__(self, folder, *arguments, columns=80, rows=24, gpus=None, faults=(),
                 **variables):
        if gpus is not None:
            scenario = folder / "scenario.json"
            scenario.write_text(json.dumps({"gpus": gpus, "faults": faults}))
            variables |= {"WATTMETER_NVML": NVML, "FAKE_NVML_SCENARIO": scenario}
        folder = Path(tempfile.mkdtemp(dir=folder))
        words = shlex.join(map(str, arguments))
        settings = " ".join(f"{name}='{value}'" for name, value in variables.items())
        super().__init__(folder, f"env {settings} {tap.WATTMETER} watch {words}; "
                                 "echo ended with $?; exec cat", columns, rows)

    def wait_chart(self):
        wait_for(lambda: BRAILLE.search(self.screen()), f"a chart:\n{self.screen()}")

    def wait_time(self, seconds):
        """Until the head has that time."""
        wait_for(lambda: int(self.screen().splitlines()[0].rstrip()[-2:]) >= seconds, self.screen)

    def wait_screen(self, text, is_there):
        wait_for(lambda: (text in self.screen()) == is_there, text)

    def wait_end(self, status=0):
        self.wait(f"ended with {status}")


def read_all(terminal):
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass


def gpu(**changes):
    return {"power": 300, "utilization": 0.75, "temperature": 61, "memory_used": 8589934592,
            **changes}


def chart_of(screen):
    """The rows of the chart without what is left of them."""
    return [line[8:] for line in screen.splitlines() if BRAILLE.search(line)]


def lowest_mark(screen):
    """Of the first chart's values."""
    marks = [float(mark) for mark in re.findall(r"^ *(-?[\d.]+) ┤", screen, re.M)]
    return min(marks) if marks else -1


@case("a command: its chart, what it writes kept for the end, its status")
def a_command(folder):
    terminal = Watched(folder, "--", "sh", "-c", "echo $((40 + 2)) said; sleep 4; exit 3")
    terminal.wait_chart()
    screen = terminal.screen()
    assert "42 said" not in screen, screen
    assert " sh -c echo $((40" in screen.splitlines()[0], screen
    for word in "CPU use (% of one core)", "machine", "command", "PID", "sleep", "q quit":
        assert word in screen, (word, screen)
    terminal.wait_end(3)
    after = terminal.screen()
    assert "42 said" in after and "Exit status   3" in after, after
    terminal.close()


@case("GPUs, the CPU and their total")
def gpus_and_their_total(folder):
    terminal = Watched(folder, "--", "sleep", "1000", columns=120,
                       gpus=[gpu(), gpu(power=200, clock_graphics=1.23e9)])
    wait_for(lambda: re.search(r"total [\d.]+ W .*cpu [\d.]+ W", terminal.screen()), "a total")
    screen = terminal.screen()
    assert "gpu0 300 W sim" in screen and "gpu1 200 W sim" in screen, screen
    total = float(re.search(r"total ([\d.]+) W", screen)[1])
    cpu = float(re.search(r"cpu ([\d.]+) W", screen)[1])
    assert abs(total - 500 - cpu) < 2, screen
    assert re.search(r"gpu0 +300 W sim +75 % +8.59 GB of .* 61 °C", screen), screen
    wait_for(lambda: re.search(r"gpu1 .* 61 °C +1.23 GHz", terminal.screen()),
             lambda: f"the clock that `info` has:\n{terminal.screen()}")
    terminal.close()


@case("drivers that are late: a picture until they answer, and keys")
def late_drivers(folder):
    terminal = Watched(folder, "--", "sleep", "1000", gpus=[gpu()],
                       faults=[{"call": "nvmlInit*", "delay_ms": 8000}])
    terminal.wait("waiting for the drivers")
    terminal.type("h")
    terminal.wait("sort by the next column")
    terminal.type("h")
    terminal.wait("gpu0 300 W sim")
    terminal.close()


@case("a process that goes on when the view ends")
def a_process(folder):
    with subprocess.Popen(["sleep", "1000"]) as target:
        try:
            terminal = Watched(folder, target.pid)
            terminal.wait_chart()
            assert f"process {target.pid}: sleep 1000" in terminal.screen()
            terminal.type("q")
            terminal.wait_end()
            assert "Process" in terminal.screen() and target.poll() is None
            terminal.close()
        finally:
            target.kill()


@case("all processes where nothing is named, also in list and report of a recording")
def all_processes(folder):
    path = folder / "all.sqlite"
    terminal = Watched(folder, "--record", path)
    terminal.wait_chart()
    assert terminal.screen().count("all processes") >= 2
    terminal.type("q")
    terminal.wait_end()
    terminal.close()
    for command in "list", "report":
        done = tap.wattmeter(command, path)
        assert "all processes" in done.stdout and "Process " not in done.stdout, done


@case("without a GPU: the use of the CPUs first, the estimated watts as a number below the maximum")
def without_gpu(folder):
    terminal = Watched(folder, "--cpu-watts", "1:4", "--", "sh", "-c", "while :; do :; done",
                       columns=120, rows=40)
    terminal.wait_chart()
    terminal.wait_time(2)
    screen = terminal.screen()
    assert "CPU use (% of one core)" in screen.splitlines()[3], screen
    assert "Memory (GB)" in screen or "Memory (MB)" in screen, screen
    assert lowest_mark(screen) == 0, screen
    wait_for(lambda: re.search(
        r"^command  ESTIMATED +[\d.]+ m?W \(mean of 1 s\)  [\d.]+ m?J ± .*\n"
        r"machine  ESTIMATED +[\d.]+ W \(mean of 1 s\)", terminal.screen(), re.M), terminal.screen)
    terminal.type("Tab")
    terminal.type("Tab")
    terminal.wait("● cpu")
    watts = float(re.search(r"cpu ([\d.]+) W est", terminal.screen())[1])
    assert 1 <= watts <= 4, terminal.screen()
    terminal.close()


@case("many GPUs are drawn as mean and range, with the chosen one; rows fold")
def many_gpus(folder):
    for count in 8, 64:
        terminal = Watched(folder, "--", "sleep", "1000",
                           gpus=[gpu(power=100 + 5 * i, temperature=91 if i == count - 2 else 61)
                                 for i in range(count)])
        terminal.wait_chart()
        highest = 100 + 5 * (count - 1)
        wait_for(lambda: re.search(rf"● {count} GPUs: mean {(100 + highest) / 2:.3g} W, 100 W "
                                   rf"to {highest} W sim ● gpu0 100 W", terminal.screen()),
                 terminal.screen)
        screen = terminal.screen()
        row = re.search(rf"\+(\d+), highest: gpu{count - 1} {highest} W sim, gpu\d+ 75 %, "
                        rf"gpu\d+ 8.59 GB, gpu{count - 2} 91 °C$", screen, re.M)
        assert row and int(row[1]) + len(re.findall("^gpu", screen, re.M)) == count, screen
        assert not re.search(r"…|total", screen.splitlines()[3]), screen
        assert re.search(r"^gpu0 +100 W sim", screen, re.M), screen
        # The chosen one has a row wherever it is, also where it is the first that had none.
        for chosen in range(1, 6):
            terminal.type("Right")
            watts = 100 + 5 * chosen
            wait_for(lambda chosen=chosen, watts=watts: f"● gpu{chosen} {watts} W" in terminal.screen()
                     and re.search(rf"^gpu{chosen} +{watts} W sim", terminal.screen(), re.M),
                     terminal.screen)
        terminal.type("x")
        wait_for(lambda: f"● {count - 1} GPUs" in terminal.screen() and
                 "○ gpu5" in terminal.screen(), terminal.screen)
        terminal.type("Tab")
        wait_for(lambda: re.search(r"^GPU use.* ● gpu5 75 %", terminal.screen(), re.M),
                 terminal.screen)
        for _ in range(3):
            terminal.type("Tab")
        terminal.wait("Total power")
        terminal.close()


@case("equal GPUs: all, lost ones, and their mean before the chosen one's line; colours differ")
def equal_gpus(folder):
    terminal = Watched(folder, "--", "sleep", "1000", TERM="tmux-256color",
                       gpus=[gpu()] * 6 + [gpu(lost_at=3)])
    terminal.wait("● 6 GPUs: all 300 W sim, 1 lost ● gpu0 300 W sim")
    screen = terminal.tmux("capture-pane", "-p", "-e")
    legend, *rows = screen[screen.index("Power (W)"):].splitlines()
    inks = dict(re.findall("\x1b\\[(38;5;\\d+)m● (gpu0|cpu) ", legend)[::-1])
    assert len(inks) == 2, legend
    blue = next(ink for ink, name in inks.items() if name == "gpu0")
    assert not any(re.search(f"\x1b\\[{blue}m[\u2801-\u28ff]", row) for row in rows), screen
    assert re.search("\x1b\\[1;4mgpu0 ", screen), screen
    terminal.resize(40, 10)
    wait_for(lambda: re.search(r"^machine  SIMULATED  ≥ [\d.]+ k?W  ≥ [\d.]+ kJ\n"
                               r"Power \(W\) +● gpu0 300 W sim", terminal.screen(), re.M), terminal.screen)
    terminal.close()


@case("large terminals have panels side by side, which move as they would be drawn")
def side_by_side(folder):
    terminal = Watched(folder, "--window", "2s", "--refresh", "50ms", "--interval", "20ms",
                       "--", "sleep", "1000", columns=200, rows=50,
                       gpus=[gpu(power=SQUARE)])
    terminal.wait("Temperature (°C)")
    screen = terminal.screen()
    assert "Power (W)" in screen and "Memory (GB)" in screen, screen
    assert re.search("Power .* GPU use ", screen), screen
    terminal.wait_time(4)
    terminal.type(" ")
    terminal.wait("PAUSED")
    moved = terminal.screen()
    assert re.search(r"^ +0:00:\d\d\.\d +0:00:\d\d\.\d ", moved, re.M), moved
    terminal.resize(199, 50)
    wait_for(lambda: chart_of(terminal.screen()) != chart_of(moved), "other charts")
    terminal.resize(200, 50)
    wait_for(lambda: chart_of(terminal.screen()) == chart_of(moved),
             lambda: f"the same charts:\n{moved}\n{terminal.screen()}")
    terminal.close()


@case("a chart that was moved is the one that would be drawn")
def what_has_moved_is_what_would_be_drawn(folder):
    terminal = Watched(folder, "--window", "2s", "--refresh", "50ms", "--interval", "20ms",
                       "--", "sleep", "1000", columns=100, rows=30,
                       gpus=[gpu(power=SQUARE)])
    terminal.wait("gpu0")
    terminal.wait_time(4)
    terminal.type(" ")
    terminal.wait("PAUSED")
    moved = terminal.screen()
    terminal.resize(101, 30)
    wait_for(lambda: chart_of(terminal.screen()) != chart_of(moved), "a wider chart")
    terminal.resize(100, 30)
    wait_for(lambda: chart_of(terminal.screen()) == chart_of(moved),
             f"the same chart:\n{moved}\n{terminal.screen()}")
    terminal.close()


@case("every key does what the help says")
def keys(folder):
    terminal = Watched(folder, "--", "sleep", "1000", columns=100, gpus=[gpu()])
    terminal.wait_chart()
    for panel in ("GPU use (%)", "Memory (GB)", "Temperature (°C)", "CPU use (% of one core)",
                  "Clocks (GHz)", "Power (W)"):
        terminal.type("Tab")
        terminal.wait(panel)
    for _ in range(3):
        terminal.type("Tab")
    terminal.wait("Temperature (°C)")
    terminal.type("z")
    terminal.wait("the axis of this panel always fits its values")
    terminal.type("z")
    for _ in range(3):
        terminal.type("Tab")
    terminal.wait("Power (W)")
    assert "always fits" not in terminal.screen(), terminal.screen()
    terminal.type("+")
    terminal.wait("window 10 s")
    terminal.type("-")
    terminal.wait("window 20 s")
    terminal.type(*"---")
    terminal.wait("the window is a quarter to four times 20 s")
    assert "window 80 s" in terminal.screen(), terminal.screen()
    wait_for(lambda: re.search(r"^ +0:00:\d\d +0:00:\d\d.*\n +power", terminal.screen(), re.M),
             terminal.screen)
    terminal.type(*"++")
    terminal.wait("window 20 s")
    assert lowest_mark(terminal.screen()) == 0, terminal.screen()
    terminal.type("x")  # GPU 0, which was chosen in the panels before
    terminal.type("Right")
    terminal.type("x")
    terminal.wait("○ cpu")
    terminal.type("z")
    wait_for(lambda: lowest_mark(terminal.screen()) > 100, "an axis that fits")
    terminal.type("z")
    wait_for(lambda: lowest_mark(terminal.screen()) == 0, "an axis from 0")
    terminal.type("a")
    terminal.wait("● cpu")
    terminal.type("Left")
    terminal.type("Left")
    terminal.type("Right")
    terminal.type("x")
    terminal.wait("○ gpu0")
    terminal.type("a")
    terminal.wait("● gpu0")
    for heading in ("energy▼", "CPU▼", "GPU▼", "GPUmem▼", "memory▼", "CPU time▼", "PID▲",
                    "power▼"):
        terminal.type("s")
        terminal.wait(heading)
    for key, heading in {"P": "CPU▼", "M": "memory▼", "T": "CPU time▼", "N": "PID▲",
                         "I": "PID▼", "W": "power▼", "F6": "energy▼"}.items():
        terminal.type(key)
        terminal.wait(heading)
    for key, back in ("h", "h"), ("F1", "Escape"):
        terminal.type(key)
        terminal.wait("sort by the next column")
        terminal.wait("the next panel of: Power, GPU use, Memory, Temperature, CPU use, Clocks")
        terminal.type(back)
        terminal.wait_chart()
    terminal.type("c")
    wait_for(lambda: not BRAILLE.search(terminal.screen()), "no chart")
    terminal.type("c")
    terminal.wait_chart()
    terminal.type("F10")
    terminal.wait_screen("sleep 1000", False)
    terminal.close()


# Two busy processes of one program, one of which says when it gets a signal.
FAMILY = """import os, signal, sys, time
def heard(number, frame):
    open(sys.argv[1], "w").write(str(number))
    os._exit(0)
if os.fork() == 0:
    signal.signal(signal.SIGUSR1, heard)
    signal.signal(signal.SIGTERM, heard)
    sys.argv[0] = "child"
    while True: pass
os.wait()
while True: time.sleep(1)
"""


class Family:
    """A parent that waits for a child that is busy, watched."""

    def __init__(self, folder, **options):
        script = folder / "family.py"
        script.write_text(FAMILY)
        self.heard = folder / "heard"
        self.terminal = Watched(folder, "--", sys.executable, script, self.heard, **options)
        wait_for(lambda: len(self.rows()) == 2, lambda: self.terminal.screen())

    def rows(self, screen=None):
        """Of the processes on the screen, their cells."""
        return [line.split() for line in (screen or self.terminal.screen()).splitlines()
                if re.match(r" +\d+ ", line) and "family.py" in line]

    def is_busiest_first(self):
        rows = self.rows()
        return len(rows) == 2 and rows[0][2] == "R" and rows[0][3] != "-" and rows[1][2] == "S"


@case("each process has user, state, watts and joules, the busiest first")
def process_table(folder):
    family = Family(folder, columns=150)
    wait_for(family.is_busiest_first, lambda: family.terminal.screen())
    pid, user, _, watts, unit = family.rows()[0][:5]
    assert Path(f"/proc/{pid}").owner().startswith(user), user
    assert float(watts) > 0 and unit in ("W", "mW"), watts
    family.terminal.type("I")
    wait_for(lambda: family.rows() and family.rows()[0][2] == "S", "the other way round")
    family.terminal.type("I")
    family.terminal.close()


@case("a process on GPUs has their use, memory and watts")
def process_on_gpus(folder):
    family = Family(folder, columns=160, gpus=[gpu(power=400, processes=["tree"])] * 2)
    on_gpus = r"\d+ W +[\d.]+ kJ .* \d+ % +\d+ % +[\d.]+ GB "
    wait_for(lambda: re.search(on_gpus, family.terminal.screen()),
             lambda: family.terminal.screen())
    watts = [float(row[3]) for row in family.rows() if row[4] == "W"]
    assert sum(watts) <= 840, family.terminal.screen()
    family.terminal.close()


def watts_in(text):
    factors = {"mW": 1e-3, "W": 1, "kW": 1e3}
    return [float(number) * factors[unit]
            for number, unit in re.findall(r"([\d.]+) (m?W|kW)\b", text)]


@case("head and rows are of one window: '-' until it is known, never more than the machine")
def one_window(folder):
    family = Family(folder, columns=160,
                    gpus=[gpu(power={**SQUARE, "period": 2.6}, processes=["tree"])] * 8)
    heads = set()

    def has_seen_enough():
        screen = family.terminal.screen()
        time.sleep(0.02)
        if family.terminal.screen() != screen:  # half of it may be of the second before
            return False
        head = re.search("^(command  .*)\n(machine  .*)$", screen, re.M)
        rows = family.rows(screen)
        assert head and not any(row[3] == "0" and row[6] == "kJ" for row in rows), screen
        power = [watts for row in rows for watts in watts_in(" ".join(row[3:5]))]
        if len(power) == len(rows) == 2:
            command, machine = watts_in(head[1]), watts_in(head[2])
            assert abs(sum(power) - command[0]) <= 0.011 * command[0], screen
            assert command[0] <= machine[0], screen
            use = float(re.search(r"^command +[\d.]+ k?W +([\d.]+) %", screen, re.M)[1])
            # A sample may come in between the two that the second of a row ends with.
            is_known = all(row[8] == "%" for row in rows)
            if is_known and abs(use - sum(float(row[7]) for row in rows)) <= 2:
                heads.add(head[0])
        return len(heads) >= 5

    wait_for(has_seen_enough, lambda: family.terminal.screen())
    # Where there is least room, figures still say that they are simulated.
    family.terminal.resize(40, 10)
    wait_for(lambda: re.search(r"^command  SIMULATED +[\d.]+ k?W  [\d.]+ kJ\n"
                               r"machine  SIMULATED +[\d.]+ k?W  [\d.]+ kJ\n.* sim\b",
                               family.terminal.screen(), re.M), family.terminal.screen)
    family.terminal.close()


@case("filter, tree, selection and Esc")
def filter_and_tree(folder):
    family = Family(folder, columns=150)
    terminal = family.terminal
    wait_for(family.is_busiest_first, lambda: terminal.screen())
    terminal.type("t")
    wait_for(lambda: "\u2514" in terminal.screen() and family.rows()[0][2] == "S",
             lambda: terminal.screen())
    terminal.type("/")
    terminal.wait("Filter: _")
    terminal.type(*"FAMX", "BSpace", *"ily")
    terminal.wait("2 of 2: FAMily")
    terminal.type(*"none")
    terminal.wait("0 of 2: FAMilynone")
    terminal.type("Enter")
    terminal.wait("h help")
    assert "0 of 2" in terminal.screen()
    terminal.type("/", *"x" * 200, *"END")
    terminal.resize(80, 24)  # the end of a long text, with count and keys
    wait_for(lambda: re.search("^Filter: x+END_  0 of 2  Esc: remove  Enter: keep$",
                               terminal.screen(), re.M), terminal.screen)
    assert re.search(" command +0 of 2$", terminal.screen(), re.M), terminal.screen()
    terminal.type("Escape")
    terminal.wait("2 processes")
    assert "\u2514" in terminal.screen()
    terminal.type("Escape")
    wait_for(lambda: "\u2514" not in terminal.screen(), "no tree")
    terminal.close()


@case("a signal is asked for first, and goes to the chosen process alone")
def signals(folder):
    family = Family(folder, columns=150)
    terminal = family.terminal
    wait_for(family.is_busiest_first, lambda: terminal.screen())
    terminal.type("k")
    terminal.wait("choose a process first")
    terminal.type("Down")
    pid = family.rows()[0][0]
    terminal.type("k")
    terminal.wait(f"Send SIGTERM (15) to {pid}")
    terminal.type("Escape")
    terminal.wait("h help")
    assert not family.heard.exists()
    terminal.type("Space")  # the picture is held, and goes on: what was chosen may have ended
    terminal.wait("PAUSED")
    terminal.type("Space")
    terminal.type("k")
    terminal.wait("choose a process first")
    terminal.type("Down")
    pid = family.rows()[0][0]
    terminal.type("F9")
    terminal.type("1", "0", "7")
    terminal.wait("There is no signal 107.")
    terminal.type("Enter")
    terminal.type("9")  # too many digits
    terminal.type("BSpace")
    terminal.wait(f"Send SIGUSR1 (10) to {pid}")
    assert not family.heard.exists()
    terminal.type("Enter")
    wait_for(family.heard.exists, "the signal")
    wait_for(lambda: family.heard.read_text() == str(int(signal.SIGUSR1)), "SIGUSR1")
    wait_for(lambda: len(family.rows()) == 1, lambda: terminal.screen())
    terminal.close()


def click(terminal, row, column, button=0):
    """As a terminal tells it to a program in tmux."""
    for what in (button, 3) if button == 0 else (button,):  # 3: it is released
        sent = [0x1b, ord("["), ord("M"), 32 + what, 33 + column, 33 + row]
        terminal.tmux("send-keys", "-H", *(f"{byte:x}" for byte in sent))


def heading_of(terminal, column):
    """The line of the table's heading, and where a column of it begins."""
    for number, line in enumerate(terminal.screen().splitlines()):
        if re.search(" PID▲? .* command", line):
            return number, line.index(column)
    return None


@case("the mouse chooses a process, sorts and scrolls")
def with_the_mouse(folder):
    family = Family(folder, columns=150)
    terminal = family.terminal
    wait_for(family.is_busiest_first, lambda: terminal.screen())

    def sorts_by(column):
        # Lines move while the view takes its shape: a click that met nothing is repeated.
        heading = heading_of(terminal, column)
        if heading and f"{column}▼" not in terminal.screen():
            click(terminal, heading[0], heading[1] + 1)
            time.sleep(0.5)
        return f"{column}▼" in terminal.screen()

    def chooses(pid, row, button=0):
        heading = heading_of(terminal, "power")
        if heading:
            click(terminal, heading[0] + row, 10, button=button)
            terminal.type("k")
            answers = f"to {pid} ", "choose a process first", "Send SIGTERM"
            wait_for(lambda: any(answer in terminal.screen() for answer in answers), terminal.screen)
            if answers[0] in terminal.screen():
                return True
            terminal.type("Escape")
        return False

    wait_for(lambda: sorts_by("memory"), terminal.screen)
    wait_for(lambda: sorts_by("power"), terminal.screen)
    wait_for(family.is_busiest_first, lambda: terminal.screen())
    busy, idle = (row[0] for row in family.rows())
    wait_for(lambda: chooses(idle, 2), terminal.screen)
    terminal.type("Escape")
    wait_for(lambda: chooses(busy, 1, button=64), terminal.screen)
    terminal.close()


def command_column(screen):
    heading = next(line for line in screen.splitlines() if re.search(" PID▲? ", line))
    return heading.index(" command") + 1


@case("commands have 24 columns, names stay in the tree, help is wrapped, keys are whole")
def small_terminals(folder):
    script = folder / "nested.sh"
    script.write_text('[ "$1" -gt 0 ] && { sh "$0" $(($1 - 1)); : ; } || exec sleep 1000\n')
    terminal = Watched(folder, "--", "sh", script, "12", gpus=[gpu()] * 2)
    terminal.wait_chart()
    assert 80 - command_column(terminal.screen()) >= 24, terminal.screen()
    assert "GPUmem" not in terminal.screen(), terminal.screen()
    terminal.resize(120, 60)
    terminal.type("t")
    wait_for(lambda: re.search(r"└ .*sleep 1000", terminal.screen()), terminal.screen)
    terminal.resize(80, 60)
    wait_for(lambda: re.search(r"└ +sleep 1000", terminal.screen()) and
             all(len(line) <= 80 for line in terminal.screen().splitlines()), terminal.screen)
    terminal.type("h")
    for columns, rows in (80, 24), (60, 40):
        terminal.resize(columns, rows)
        wait_for(lambda: "wattmeter doctor says why" in " ".join(terminal.screen().split()), terminal.screen)
        assert "samples go on" in " ".join(terminal.screen().split()), terminal.screen()
    terminal.type("h")
    for columns, rows, last in (60, 15, "/ filter"), (40, 10, "+- zoom"):
        terminal.resize(columns, rows)
        # No heading without a row.
        wait_for(lambda: bool(re.search(r"^ +power +use +memory$\n^CPU ", terminal.screen(), re.M))
                 == (" PID " in terminal.screen()) == (rows > 10) and
                 terminal.screen().rstrip().endswith(last), terminal.screen)
    terminal.close()


@case("wide and combining characters of a name shift no column")
def wide_names(folder):
    script = folder / "計算-e\u0301te\u0301.sh"
    script.write_text("exec sleep 1000\n")
    terminal = Watched(folder, "--", "bash", "-c", f"bash {script}; :", columns=120)
    terminal.wait("計算-e\u0301te\u0301")
    terminal.type("Down")
    wait_for(lambda: re.search(r"計算-e\u0301te\u0301.sh; : +CPU: % of one core  window 20 s",
                               terminal.screen().splitlines()[0]), terminal.screen)
    terminal.close()


@case("each core has its bar and percent, all of them one bar each in a small terminal")
def cores(folder):
    count = os.cpu_count()
    terminal = Watched(folder, columns=200, rows=60)
    terminal.wait_chart()
    if count == 1:
        raise tap.Skip("one core")
    wait_for(lambda: re.search(rf"^cores +0 .* {count - 1} +[▏▎▍▌▋▊▉█]* +\d+ %", terminal.screen(),
                               re.M | re.S), terminal.screen)
    terminal.close()


@case("any size of terminal, while it goes on")
def any_size(folder):
    terminal = Watched(folder, "--", "sleep", "1000", gpus=[gpu()] * 10)
    terminal.wait_chart()
    for columns, rows in (200, 50), (40, 10), (79, 11), (20, 5), (80, 24):
        terminal.resize(columns, rows)
        if columns >= 40:
            wait_for(lambda: any(BRAILLE.search(line) for line in
                                 terminal.screen().splitlines()[:rows]) and
                     len(terminal.screen().splitlines()) == rows, f"{columns} x {rows}")
        else:
            terminal.wait("40 x 10")
    terminal.close()


@case("Ctrl-C is the command's")
def ctrl_c_is_the_commands(folder):
    ready = folder / "ready"
    terminal = Watched(folder, "--", "sh", "-c", "trap 'echo got $((40 + 2)); exit 7' INT; "
                       f": >{ready}; while :; do sleep 0.1; done")
    terminal.wait_chart()
    wait_for(ready.exists, "the trap")
    terminal.type("C-c")
    terminal.wait_end(7)
    assert "got 42" in terminal.screen()
    terminal.close()


@case("the view ends alone, and the command's output is seen from there on")
def the_view_ends_alone(folder):
    go = folder / "go"
    terminal = Watched(folder, "--", "sh", "-c", f"echo bef$((1))ore; until [ -e {go} ]; do "
                       "sleep 0.1; done; echo aft$((1))er")
    terminal.wait_chart()
    terminal.type("q")
    terminal.wait("bef1ore")
    wait_for(lambda: re.search(r"still measuring process \d+; Ctrl-C ends it", terminal.screen()),
             terminal.screen)
    go.touch()
    terminal.wait("aft1er")
    terminal.wait_end()
    assert terminal.screen().count("still measuring") == 1, terminal.screen()
    terminal.close()


@case("a recording at the same time")
def recording(folder):
    path, go = folder / "run.sqlite", folder / "go"
    terminal = Watched(folder, "--record", path, "--", "sh", "-c",
                       f"until [ -e {go} ]; do sleep 0.1; done", columns=150)
    terminal.wait(f"recorded to {path}")
    terminal.wait_chart()
    go.touch()
    terminal.wait_end()
    terminal.close()
    assert sqlite3.connect(path).execute("SELECT count(*) > 3 FROM sample").fetchone()[0]


@case("a terminal that takes nothing delays no sample")
def stopped_terminal(folder):
    path = folder / "run.sqlite"

    def count():
        try:
            database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            return database.execute("SELECT count(*) FROM sample").fetchone()[0]
        except sqlite3.Error:
            return 0

    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(tap.WATTMETER, ["wattmeter", "watch", "--record", str(path), "--", "sleep",
                                  "1000"], tap.environment(TERM="xterm"))
    drain = threading.Thread(target=lambda: read_all(terminal))
    drain.start()
    wait_for(count, "a sample")
    termios.tcflow(terminal, termios.TCOOFF)
    before = count()
    wait_for(lambda: count() > before + 20, "20 samples more", 30)
    termios.tcflow(terminal, termios.TCOON)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    drain.join()
    os.close(terminal)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, status


@case("NO_COLOR")
def without_colour(folder):
    terminal = Watched(folder, "--", "sleep", "1000", gpus=[gpu()], NO_COLOR=1)
    terminal.wait_chart()
    screen = terminal.tmux("capture-pane", "-p", "-e")
    assert not re.search(r"\x1b\[[0-9;]*3[0-8]", screen), screen
    # A mark in the legend, and at the end of the line.
    wait_for(lambda: re.search("^Power .* ■ gpu0 300 W sim ▲ cpu ", terminal.screen(), re.M) and
             re.search("[\u2801-\u28ff] *■$", terminal.screen(), re.M) and
             re.search("[\u2801-\u28ff] *▲$", terminal.screen(), re.M), terminal.screen)
    terminal.close()


@case("no terminal, or one that cannot show it: a line, and nothing runs")
def no_terminal(folder):
    def refused(*words, **variables):
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env=tap.environment(**variables), timeout=300, check=False)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
        return done.stderr

    ran = folder / "ran"
    said = refused("setsid", tap.WATTMETER, "watch", "--", "touch", ran)
    assert "there is no terminal" in said and not ran.exists(), said
    terminal = Watched(folder, "--", "touch", ran, TERM="dumb")
    terminal.wait("cannot place the cursor")
    terminal.wait_end(1)
    terminal.close()
    terminal = Watched(folder, "--", "touch", ran, TERM="none-such")
    terminal.wait("'none-such' is not known")
    terminal.close()
    assert not ran.exists()


@case("commands and processes that are not there")
def wrong_words(folder):
    terminal = Watched(folder, "--", "/nonexistent/command")
    terminal.wait_end(127)
    terminal.close()
    terminal = Watched(folder, "4194304999")
    terminal.wait("is not the number of a process")
    terminal.wait_end(2)
    terminal.close()


tap.main()
