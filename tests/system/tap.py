# SPDX-License-Identifier: Apache-2.0
"""tap.py - what the system tests share: cases in TAP, and the built command.

A case is a function marked with @case("what it shows"); it fails by an
exception, mostly of a plain assert, and skips by raising Skip("reason").
One that holds the clock against us, which a busy machine may spoil, is
given more than one try: @case("what it shows", tries=3).
main() runs them all and prints the Test Anything Protocol.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = Path(os.environ.get("WM_SOURCE_ROOT", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("WM_BUILD_ROOT", SOURCE / "build"))
WATTMETER = str(BUILD / "wattmeter")
HELPERS = BUILD / "tests" / "system"

# A sanitized build is many times as large and slow; budgets are not for it.
SANITIZED = b"__asan_init" in Path(WATTMETER).read_bytes() if os.path.exists(WATTMETER) else False

_cases = []
_ends = threading.local()


class Skip(Exception):
    """Raised by a case that cannot be tried here; the text says why."""


def case(what, tries=1):
    def mark(function):
        _cases.append((what, function, tries))
        return function

    return mark


class _Popen(subprocess.Popen):
    """Knows the processes that were started."""

    pids = set()

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.pids.add(self.pid)


subprocess.Popen = _Popen


def _remove_inboxes():
    """Those of trackers that a case has killed: a day's would fill the memory of a container.
    Only ours are touched: one that another test's tracker is making has yet to be locked."""
    for inbox in Path("/dev/shm").glob(f"wattmeter-{os.geteuid()}-*"):
        try:
            with open(inbox / "control", "rb") as control:
                if struct.unpack_from("=12xi", control.read(16))[0] not in _Popen.pids:
                    continue
                fcntl.flock(control, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (OSError, struct.error):
            continue  # It lives, or is not there any more.
        shutil.rmtree(inbox, ignore_errors=True)


def _take_signals():
    """A shell's job in the background ignores Ctrl-C, and one of nohup its hangup, as would
    the commands we start: those that are sent a signal would not end."""
    for number in signal.SIGINT, signal.SIGQUIT, signal.SIGHUP:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def main(jobs=1):
    """Cases that mostly wait may run several at a time; they are told in their order."""
    _take_signals()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # The case's folder goes with it.
    print(f"1..{len(_cases)}", flush=True)
    if jobs == 1:
        passed = [_show(_try(*one)) for one in enumerate(_cases, 1)]
    else:
        with ThreadPoolExecutor(jobs) as pool:
            passed = [_show(tried) for tried in pool.map(_try, *zip(*enumerate(_cases, 1)))]
        _remove_inboxes()
    sys.exit(0 if all(passed) else 1)


def _show(tried):
    passed, lines = tried
    print("\n".join(lines), flush=True)
    return passed


def _try(number, one):
    """Whether the case passed or was skipped, and what to print."""
    what, function, tries = one
    lines = []
    for left in reversed(range(tries)):
        try:
            _run(function)
            return True, [*lines, f"ok {number} - {what}"]
        except Skip as skip:
            return True, [*lines, f"ok {number} - {what} # SKIP {skip}"]
        except Exception:
            lines.append("# once more:" if left else f"not ok {number} - {what}")
            lines += ["# " + line for line in traceback.format_exc().splitlines()]
    return False, lines


@contextlib.contextmanager
def feeding(move):
    """Calls `move` each millisecond from a thread: a counter that the command reads. Where we
    may, the thread runs before all others, so that no busy machine lets the counter lag."""
    over = threading.Event()

    def run():
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        while not over.wait(0.001):
            move()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def at_end(function):
    """Calls it at the end of the case that runs, also of one that fails."""
    _ends.functions.append(function)


def _run(function):
    folder = Path(tempfile.mkdtemp(prefix="wattmeter-test-"))
    _ends.functions = []
    try:
        function(folder)
    finally:
        for end in _ends.functions:
            end()
        shutil.rmtree(folder, ignore_errors=True)
        # A tracker of a case beside this one may have yet to lock its own.
        if threading.current_thread() is threading.main_thread():
            _remove_inboxes()


def environment(**extra):
    """Ours, without what would change the command's defaults."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("WATTMETER_")}
    clean["XDG_CONFIG_HOME"] = clean["WATTMETER_SHARE"] = "/nonexistent"
    clean["WATTMETER_STATE"] = "/nonexistent"
    clean.update(extra)
    return clean


def wattmeter(*arguments, timeout=300, env=None, **options):
    """Runs the command to its end; the result has returncode, stdout, stderr."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        [WATTMETER, *map(str, arguments)], capture_output=True, text=True,
        timeout=timeout, env=env or environment(), **options)


def copy_command(target):
    """The command in another place, where other users may execute it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(WATTMETER, target)
    shutil.copy(BUILD / "libwattmeter.so.0", target.parent)
    target.chmod(0o755)
    return target


def report(*command, options=(), timeout=300, env=None):
    """The JSON report of a command whose own output does not matter."""
    with tempfile.TemporaryDirectory(prefix="wattmeter-test-") as folder:
        output = Path(folder) / "report.json"
        done = wattmeter("run", "--json", "-o", output, *options, "--", *command,
                         timeout=timeout, env=env)
        if not output.exists() or not output.read_text():
            raise AssertionError(f"no report, status {done.returncode}: {done.stderr}")
        return json.loads(output.read_text())


def await_sample(recording):
    """Until the first one is in the CSV file; it has three lines before them."""
    for _ in range(12000):
        if recording.exists() and recording.read_bytes().count(b"\n") > 3:
            return
        time.sleep(0.01)
    raise AssertionError("no sample within two minutes")


def near(value, expected, tolerance, what=""):
    assert value is not None and abs(value - expected) <= tolerance, (
        f"{what}: {value} is not {expected} ± {tolerance}")


def has_processes(pattern):
    """Pids whose command line contains the text."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            line = Path("/proc", entry, "cmdline").read_bytes()
        except OSError:
            continue
        if pattern.encode() in line.replace(b"\0", b" "):
            found.append(int(entry))
    return found
