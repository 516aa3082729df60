#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signals to us, to the command, to both; terminals; and kill -9 of wattmeter."""

import contextlib
import os
import random
import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import time

import tap
from tap import case, near, wattmeter
from terminal import Terminal, wait_for

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def start(*arguments, **options):
    return subprocess.Popen([tap.WATTMETER, *map(str, arguments)], env=tap.environment(),
                            stdin=subprocess.DEVNULL, text=True, **options)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def samples_of(recording):
    """How many samples another program finds in a recording."""
    if not recording.exists():
        return 0
    if recording.suffix == ".csv":
        return recording.read_bytes().count(b"\n")
    with contextlib.closing(sqlite3.connect(recording, timeout=60)) as base:
        try:
            return base.execute("SELECT count(*) FROM sample").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


@case("kill -9 of wattmeter, 50 times: the recording is good to the last second, the command lives on")
def _(folder):
    rng = random.Random(int(os.environ.get("WM_TEST_SEED", "1")))
    lost = []
    for round_number in range(50):
        suffix = "sqlite" if round_number % 2 else "csv"
        recording = folder / f"{round_number}.{suffix}"
        pid_file = folder / f"{round_number}.pid"
        life = rng.uniform(0.05, 1.6)
        tracker = start("run", "-q", "-i", "10ms", "--record", recording, "--", "sh", "-c",
                        f"echo $$ > {pid_file}; exec sleep 30", stderr=subprocess.PIPE)
        command = int(wait_for(lambda: pid_file.exists() and pid_file.read_text().strip(),
                               "the command"))
        begin = time.monotonic()
        time.sleep(life)
        seen = samples_of(recording)
        lived = time.monotonic() - begin
        tracker.kill()
        tracker.wait()
        assert is_alive(command), f"round {round_number}: the command died with us"
        os.kill(command, signal.SIGKILL)

        done = wattmeter("report", "--json", recording)
        assert done.returncode == 0, f"round {round_number}: {done.stderr}"
        r = tap.json.loads(done.stdout)
        lost.append(lived - (r["compute_time"]["time"] or 0))
        assert samples_of(recording) >= seen, f"round {round_number} ({suffix}): {seen} samples before"
        assert any("killed" in remark for remark in r["remarks"]), r["remarks"]
        text = wattmeter("report", recording)
        assert text.returncode == 0 and "sleep" in text.stdout, text.stderr
        if suffix == "sqlite":
            check = sqlite3.connect(recording).execute("PRAGMA integrity_check").fetchone()
            assert check == ("ok",), check
    # A machine that has no time for us delays some of them, not half.
    print(f"# {statistics.median(lost):.2f} s lost, at most {max(lost):.2f} s")
    assert statistics.median(lost) < 1.1, lost


@case("no process of ours is left behind, whoever was killed")
def _(folder):
    mark = f"wmtest{os.getpid()}"
    tracker = start("run", "-q", "--", "sh", "-c", f": {mark}; sleep 20 & wait")
    # The launcher has the tracker's words, and so has its child until it is the command.
    command = wait_for(lambda: [p for p in tap.has_processes(f": {mark}; sleep")
                                if is_alive(p) and name_of(p) == "sh"], "the command")
    launchers = [int(p) for p in os.listdir("/proc") if p.isdigit() and is_launcher_of(p, tracker.pid)]
    assert len(launchers) == 1, launchers
    tracker.kill()
    tracker.wait()
    assert is_alive(launchers[0])
    os.kill(command[-1], signal.SIGKILL)
    wait_for(lambda: not is_alive(launchers[0]), "the launcher's end")


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return None


def is_launcher_of(pid, tracker):
    try:
        with open(f"/proc/{pid}/stat") as file:
            text = file.read()
    except OSError:
        return False
    return "(wattmeter-run)" in text and int(text.rpartition(")")[2].split()[1]) == tracker


LIVES = """
import os, sys, time
open(sys.argv[1], "w")
while not os.path.exists(sys.argv[2]): time.sleep(0.01)
"""


@case("the launcher killed: the report comes, the end of the command is unknown")
def _(folder):
    output = folder / "r.json"
    began_s, ready, end = time.monotonic(), folder / "ready", folder / "end"
    tracker = start("run", "--json", "-o", output, "--", PYTHON, "-c", LIVES, str(ready), str(end),
                    stderr=subprocess.PIPE)
    wait_for(ready.exists, "the command")
    ready_s = time.monotonic()
    launcher, = [int(p) for p in os.listdir("/proc")
                 if p.isdigit() and is_launcher_of(p, tracker.pid)]
    os.kill(launcher, signal.SIGKILL)
    time.sleep(0.5)
    end_s = time.monotonic()
    end.touch()
    _, err = tracker.communicate(timeout=300)
    r = tap.json.loads(output.read_text())
    assert r["exit"]["status"] is None and r["exit"]["signal"] is None, r["exit"]
    assert end_s - ready_s <= r["compute_time"]["time"] <= time.monotonic() - began_s, r["compute_time"]
    assert tracker.returncode == 1, (tracker.returncode, err)


def signalled(number, program, expected, folder, to_group=False):
    output, ready = folder / "r.json", folder / "ready"
    tracker = start("run", "--json", "-o", output, "--", PYTHON, "-c", program, str(ready),
                    start_new_session=True, stderr=subprocess.PIPE)
    wait_for(ready.exists, "the command")
    if to_group:
        os.killpg(tracker.pid, number)
    else:
        tracker.send_signal(number)
    _, err = tracker.communicate(timeout=300)
    assert tracker.returncode == expected, (tracker.returncode, err)
    return tap.json.loads(output.read_text())


DEFAULT = """
import signal, sys, time
for number in (signal.SIGPIPE, signal.SIGXFSZ): signal.signal(number, signal.SIG_DFL)
open(sys.argv[1], "w").close()
time.sleep(20)
"""

CATCH = """
import signal, sys, time
caught = []
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, lambda n, frame: caught.append(n))
open(sys.argv[1], "w").close()
end = time.monotonic() + 10
while not caught and time.monotonic() < end: time.sleep(0.01)
time.sleep(0.3)
sys.exit(40 + len(caught))
"""


@case("SIGTERM to us reaches the command, the report comes, and we die of it too")
def _(folder):
    r = signalled(signal.SIGTERM, DEFAULT, -signal.SIGTERM, folder)
    assert r["exit"] == {"status": None, "signal": signal.SIGTERM}, r["exit"]


@case("a command that catches it ends as it likes")
def _(folder):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        r = signalled(number, CATCH, 41, folder)
        assert r["exit"] == {"status": 41, "signal": None}, r["exit"]
        shutil.rmtree(folder)
        folder.mkdir()


@case("so does every other signal that ends a process")
def _(folder):
    for number in (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU, signal.SIGXFSZ,
                   signal.SIGPIPE, signal.SIGIO, signal.SIGPWR, signal.SIGUSR1, signal.SIGUSR2,
                   signal.SIGRTMIN, signal.SIGRTMAX):
        r = signalled(number, DEFAULT, 128 + number, folder)
        assert r["exit"] == {"status": None, "signal": number}, (number, r["exit"])
        shutil.rmtree(folder)
        folder.mkdir()


@case("an alarm that was set before us is the command's")
def _(folder):
    output = folder / "r.json"
    script = "import os, signal, sys; signal.setitimer(signal.ITIMER_REAL, 0.5); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run([PYTHON, "-c", script, tap.WATTMETER, "run", "--json", "-o", output, "--", "sleep", "5"],
                          env=tap.environment(), timeout=300)
    assert done.returncode == 128 + signal.SIGALRM, done
    near(tap.json.loads(output.read_text())["compute_time"]["time"], 0.5, 0.2)


@case("attach: a signal ends it with its report, and the process goes on")
def _(folder):
    target = subprocess.Popen(["sleep", "20"])
    try:
        for number in (signal.SIGALRM, signal.SIGXCPU, signal.SIGIO, signal.SIGRTMIN):
            output = folder / f"{int(number)}.json"
            tracker = start("attach", "--json", "-o", output, target.pid, stderr=subprocess.PIPE)
            time.sleep(0.5)
            tracker.send_signal(number)
            _, err = tracker.communicate(timeout=300)
            assert tracker.returncode == 0 and output.read_text(), (number, tracker.returncode, err)
        assert is_alive(target.pid)
    finally:
        target.kill()
        target.wait()


@case("a command that signals its process group gets that signal once")
def _(folder):
    program = CATCH.replace("end =", "import os; os.killpg(0, signal.SIGTERM); end =")
    done = wattmeter("run", "-q", "--", PYTHON, "-c", program, folder / "ready", start_new_session=True)
    assert done.returncode == 41, done


@case("so with all that ask a process to end, sent to us or to the group; there is no core")
def _(folder):
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        r = signalled(number, DEFAULT.replace("SIG_DFL)\n", "SIG_DFL)\nsignal.signal(2, signal.SIG_DFL)\n", 1),
                      -number, folder, to_group=number == signal.SIGQUIT)
        assert r["exit"] == {"status": None, "signal": number}, (number, r["exit"])
        shutil.rmtree(folder)
        folder.mkdir()

    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    tracker = start("run", "-q", "--", "sh", "-c", "ulimit -c 0; touch ready; exec sleep 20", cwd=folder,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (most, most)))
    wait_for((folder / "ready").exists, "the command")
    tracker.send_signal(signal.SIGQUIT)
    _, status = os.waitpid(tracker.pid, 0)
    assert os.WTERMSIG(status) == signal.SIGQUIT and not os.WCOREDUMP(status), status


@case("a signal that came to us but did not end the command, or not by itself, does not end us")
def _(folder):
    r = signalled(signal.SIGINT, CATCH.replace("sys.exit(40 + len(caught))", "sys.exit(130)"), 130, folder)
    assert r["exit"] == {"status": 130, "signal": None}, r["exit"]
    (folder / "ready").unlink()
    (folder / "r.json").unlink()
    killed = CATCH.replace("sys.exit(40 + len(caught))", "import os; os.kill(os.getpid(), signal.SIGKILL)")
    r = signalled(signal.SIGTERM, killed, 128 + signal.SIGKILL, folder)
    assert r["exit"]["signal"] == signal.SIGKILL, r["exit"]


@case("a signal that kills the command alone gives 128 + N")
def _(folder):
    for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR2, signal.SIGINT, signal.SIGTERM):
        done = wattmeter("run", "-q", "--", "sh", "-c", f"kill -{int(number)} $$")
        assert done.returncode == 128 + number, (number, done)


@case("signals that were ignored stay ignored for the command, as under nohup")
def _(folder):
    script = ('import signal, subprocess, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN);'
              'sys.exit(subprocess.call(sys.argv[1:], env=None, restore_signals=False))')
    show = 'import signal; print(*(signal.getsignal(n).name for n in (signal.SIGHUP, signal.SIGTERM)))'
    done = subprocess.run([PYTHON, "-c", script, tap.WATTMETER, "run", "-q", "--", PYTHON, "-c", show],
                          capture_output=True, text=True, env=tap.environment())
    assert done.stdout == "SIG_IGN SIG_DFL\n", done


@case("the command's signal mask and descriptors are as without us")
def _(folder):
    show = "grep -E 'Sig(Blk|Ign)' /proc/self/status; ls -l /proc/self/fd | awk '{print $9}' | tr '\\n' ' '"
    bare = subprocess.run(["sh", "-c", show], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    ours = wattmeter("run", "-q", "--", "sh", "-c", show)
    assert bare.stdout == ours.stdout, (bare.stdout, ours.stdout)


@case("a pipe that the command closes ends for its reader")
def _(folder):
    begin = time.monotonic()
    tracker = start("run", "-q", "--", "sh", "-c", "echo one; exec >&- 2>&-; exec sleep 300",
                    stdout=subprocess.PIPE)
    assert tracker.stdout.read() == "one\n"
    assert time.monotonic() - begin < 150
    tracker.terminate()
    tracker.wait()


@case("standard input goes to the command, also through a pipe that ends early")
def _(folder):
    done = subprocess.run(["sh", "-c", f"yes | {tap.WATTMETER} run -q -- head -n 2"],
                          capture_output=True, text=True, timeout=300, env=tap.environment())
    assert done.stdout == "y\ny\n", done


@case("Ctrl-C in a terminal reaches the command once, and the report comes")
def _(folder):
    program = folder / "p.py"
    program.write_text(CATCH)
    terminal = Terminal(folder, "sh")
    try:
        terminal.type(f"{tap.WATTMETER} run -- {PYTHON} {program} {folder}/ready; echo status=$?",
                      "Enter")
        wait_for((folder / "ready").exists, "the command")
        terminal.type("C-c")
        terminal.wait("status=41")
        assert "CPU" in terminal.screen(), terminal.screen()
    finally:
        terminal.close()


def wait_for_prompt(terminal, is_alone=False):
    """What is typed before it is there may be lost, or shown twice."""
    def is_there():
        screen = terminal.screen().strip()
        return screen == "$" if is_alone else screen.endswith(("$", "#"))
    wait_for(is_there, lambda: f"the prompt: {terminal.ask('capture-pane', '-p')}")


@case("Ctrl-C in a shell's loop ends the loop", tries=3)
def _(folder):
    for shell in ("bash --norc", "sh"):
        if not shutil.which(shell.split()[0]):
            continue
        terminal = Terminal(folder, shell)
        try:
            wait_for_prompt(terminal)
            terminal.type("PS1='$ '; clear", "Enter")
            wait_for_prompt(terminal, is_alone=True)
            command = f"sh -c 'echo >>{folder}/begun; exec sleep 100'"
            terminal.type(f"for i in 1 2 3; do {tap.WATTMETER} run -q -- {command}; done", "Enter")
            wait_for((folder / "begun").exists, "the command")
            terminal.type("C-c")
            wait_for_prompt(terminal)
            terminal.type("echo status=$?", "Enter")
            terminal.wait("status=130")
            assert (folder / "begun").read_text() == "\n"
        finally:
            terminal.close()
        (folder / "begun").unlink()


@case("after Ctrl-C the report begins on a line of its own, and without one nothing is printed")
def _(folder):
    terminal = Terminal(folder, "sh")
    try:
        for number, (setting, options, before) in enumerate((
                ("echoctl", "", "^C\nCommand "), ("-echoctl", "", "sleep 7\nCommand "),
                ("echoctl", "-q", "^C\nstatus="),
                ("echoctl", f"-o {folder}/report", "^C\nstatus="))):
            wait_for_prompt(terminal)
            terminal.type(f"stty {setting}; clear; PS1='$ '", "Enter")
            wait_for_prompt(terminal, is_alone=True)
            terminal.type(f"{tap.WATTMETER} run {options} -- sleep 7", "Enter")
            time.sleep(0.7)
            terminal.type("C-c")
            wait_for_prompt(terminal)
            terminal.type(f"echo status={number}=$?", "Enter")
            terminal.wait(f"status={number}=130")
            screen = terminal.screen().replace("\n\n", "\n").replace(f"$ echo status={number}=$?\n", "")
            assert before in screen, (setting, options, screen)
    finally:
        terminal.close()


@case("timeout(1) around us and below us: its own status, and the report")
def _(folder):
    for command in (["timeout", "1", tap.WATTMETER, "run", "--", "sleep", "300"],
                    [tap.WATTMETER, "run", "--", "timeout", "1", "sleep", "300"]):
        begin = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=tap.environment())
        assert done.returncode == 124 and "CPU time" in done.stderr, done
        assert time.monotonic() - begin < 150


@case("under nohup a closed terminal ends nothing")
def _(folder):
    output, ready = folder / "r.json", folder / "ready"
    terminal = Terminal(folder, f"nohup {tap.WATTMETER} run --json -o {output} -- sh -c "
                                f"'touch {ready}; sleep 1; exit 3' >{folder}/log 2>&1")
    try:
        wait_for(ready.exists, "the command")
    finally:
        terminal.close()
    wait_for(lambda: output.exists() and output.read_text(), "the report")
    assert tap.json.loads(output.read_text())["exit"] == {"status": 3, "signal": None}


@case("Ctrl-C reaches a command that has left our process group, as timeout(1) does")
def _(folder):
    program = folder / "p.py"
    program.write_text("import os; os.setpgid(0, 0)\n" + CATCH)
    terminal = Terminal(folder, "sh")
    try:
        terminal.type(f"{tap.WATTMETER} run -q -- {PYTHON} {program} {folder}/ready; echo status=$?",
                      "Enter")
        wait_for((folder / "ready").exists, "the command")
        terminal.type("C-c")
        terminal.wait("status=41")
    finally:
        terminal.close()


@case("a terminal that is closed ends the command, where we lead its session")
def _(folder):
    output = folder / "r.json"
    terminal = Terminal(folder, f"{tap.WATTMETER} run --json -o {output} -- sh -c "
                                f"'touch {folder}/ready; exec sleep 20'")
    try:
        wait_for((folder / "ready").exists, "the command")
    finally:
        terminal.close()
    wait_for(lambda: output.exists() and output.read_text().endswith("}\n"), "the report")
    assert tap.json.loads(output.read_text())["exit"]["signal"] == signal.SIGHUP


@case("less and vim behave in a terminal as without us")
def _(folder):
    text = folder / "text"
    text.write_text("".join(f"line {i}\n" for i in range(200)))
    terminal = Terminal(folder, "sh")
    try:
        if shutil.which("less"):
            terminal.type(f"{tap.WATTMETER} run -q -- less {text}; echo status=$?", "Enter")
            terminal.wait("line 20")
            terminal.type("G")
            terminal.wait("line 199")
            terminal.type("q")
            terminal.wait("status=0")
        if shutil.which("vim"):
            terminal.type(f"clear; {tap.WATTMETER} run -q -- vim -u NONE {text}; echo status=$?",
                          "Enter")
            terminal.wait("line 20")
            terminal.type("dd", ":wq", "Enter")
            terminal.wait("status=0")
            assert text.read_text().startswith("line 1\n")
    finally:
        terminal.close()


@case("Ctrl-Z stops both, fg goes on")
def _(folder):
    if not shutil.which("bash"):
        raise tap.Skip("bash is not installed")
    terminal = Terminal(folder, "bash --norc")
    try:
        terminal.type(f"{tap.WATTMETER} run -q -- sh -c 'read x; echo got $x; exit 5'; "
                      "echo status=$?", "Enter")
        time.sleep(0.5)
        terminal.type("C-z")
        terminal.wait("Stopped")
        terminal.type("fg", "Enter")
        time.sleep(0.3)
        terminal.type("word", "Enter")
        terminal.wait("got word")
    finally:
        terminal.close()


@case("a command that is stopped is measured on when it goes on, and ends as it would")
def _(folder):
    if not shutil.which("bash"):
        raise tap.Skip("bash is not installed")
    output, ready = folder / "r.json", folder / "ready"
    terminal = Terminal(folder, "bash --norc")
    try:
        terminal.type(f"{tap.WATTMETER} run --json -o {output} -- sh -c 'touch {ready}; sleep 1; exit 5'", "Enter")
        wait_for(ready.exists, "the command")
        terminal.type("C-z")
        terminal.wait("Stopped")
        time.sleep(1.5)
        terminal.type("fg", "Enter")
        terminal.type("echo status=$?", "Enter")
        terminal.wait("status=5")
        r = tap.json.loads(output.read_text())
        assert r["exit"] == {"status": 5, "signal": None}, r["exit"]
        assert r["compute_time"]["time"] > 1.5, r["compute_time"]
    finally:
        terminal.close()


@case("--output-fd: the report goes to an open descriptor, and the command does not get it")
def _(folder):
    shell = (f"{tap.WATTMETER} run --json --output-fd 3 -- sh -c 'echo mine; echo lost >&3' "
             f"3>{folder}/r.json 2>{folder}/err")
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, env=tap.environment())
    assert done.stdout == "mine\n" and done.returncode == 2, done
    assert tap.json.loads((folder / "r.json").read_text())["exit"]["status"] == 2
    assert "3" in (folder / "err").read_text(), "it is the shell that found it closed"

    reader, writer = os.pipe()
    done = subprocess.run([tap.WATTMETER, "run", "-q", "--output-fd", str(writer), "--", "sh", "-c",
                           f"sleep 300 >/dev/null 2>&1 & echo $! >{folder}/left; exit 0"],
                          pass_fds=[writer], env=tap.environment())
    os.close(writer)
    begin = time.monotonic()
    with os.fdopen(reader) as file:
        assert "CPU time" in file.read(), "text is written too, and -q is about the screen"
    os.kill(int((folder / "left").read_text()), signal.SIGKILL)
    assert done.returncode == 0 and time.monotonic() - begin < 150, "what the command left behind holds it open"


@case("--output-fd: what cannot be written to is refused in one line before anything is started")
def _(folder):
    ran = folder / "ran"
    for shell, message in (("--output-fd 7", "descriptor 7 is not open"),
                           ("--output-fd 99999999999", "descriptor 99999999999 is not open"),
                           ("--output-fd 18446744073709551615", "is not open"),
                           ("--output-fd 3 3</dev/null", "descriptor 3 is not open for writing"),
                           ("--output-fd 0 </dev/null", "descriptor 0 is not open for writing"),
                           (f"--output-fd 3 -o {folder}/r 3>/dev/null", "exclude each other"),
                           ("--output-fd -1", "is not a whole number"),
                           ("--output-fd 1x", "is not a whole number"),
                           ("--output-fd ''", "empty")):
        words, _, redirection = shell.partition(" 3<") if " 3<" in shell else shell.partition(" 3>")
        redirection = shell[len(words):]
        done = subprocess.run(["sh", "-c", f"{tap.WATTMETER} run {words} -- touch {ran} {redirection}"],
                              capture_output=True, text=True, env=tap.environment())
        assert done.returncode == 2 and message in done.stderr, (shell, done)
        assert len(done.stderr.splitlines()) == 1 and not ran.exists(), (shell, done)
    full = subprocess.run(["sh", "-c", f"{tap.WATTMETER} run --output-fd 3 -- true 3>/dev/full"],
                          capture_output=True, text=True, env=tap.environment())
    assert full.returncode == 1 and "this is the report" in full.stderr, full


if __name__ == "__main__":
    tap.main()
