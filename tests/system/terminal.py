# SPDX-License-Identifier: Apache-2.0
"""terminal.py - what is looked at on a terminal, and waiting for it."""

import shutil
import subprocess
import time

import tap


def wait_for(condition, what, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.01)
    raise AssertionError(f"waited {seconds} s for {what() if callable(what) else what}")


class Terminal:
    """A real terminal: tmux, on a socket of its own."""

    def __init__(self, folder, command, columns=100, rows=30):
        if not shutil.which("tmux"):
            raise tap.Skip("tmux is not installed")
        self.socket = str(folder / "tmux")
        for _ in range(10):  # tmux gives up a server that a busy machine lets start late
            done = self.ask("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), command)
            if "server exited unexpectedly" not in done.stderr:
                break
        assert done.returncode == 0, done
        tap.at_end(self.close)

    def ask(self, *arguments):
        # What a shell says, and what it does when a command of its is interrupted, is bash's.
        return subprocess.run(["tmux", "-S", self.socket, *arguments], capture_output=True,
                              text=True, env=tap.environment(TERM="xterm", LC_ALL="C.UTF-8",
                                                  SHELL="/bin/bash"))

    def tmux(self, *arguments):
        return self.ask(*arguments).stdout

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait(self, text):
        wait_for(lambda: text in self.screen(), lambda: f"'{text}' on the screen:\n{self.screen()}")

    def close(self):
        self.tmux("kill-server")
