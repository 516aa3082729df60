# SPDX-License-Identifier: Apache-2.0
"""postgres_server.py - a PostgreSQL server of a test's own: in a folder of its
own, on a Unix socket there and nowhere else, never as root."""

import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from tap import Skip


def find_program(name):
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([*folders, os.environ.get("PATH", "")]))
    if not found:
        raise Skip(f"there is no {name}")
    return found


def plain_user():
    """Arguments before a command that a server may be run with: not as root."""
    if os.geteuid() != 0:
        return []
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if shutil.which("setpriv"):
            return ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}",
                    "--clear-groups", "--no-new-privs"]
    raise Skip("a server is not run as root, and there is no other user for it")


class Server:
    def __init__(self):
        self.folder = None
        self.process = None
        self.stopped = []
        self.postgres, self.initdb = find_program("postgres"), find_program("initdb")
        self.psql_program = find_program("psql")
        self.user = plain_user()
        self.folder = Path(tempfile.mkdtemp(prefix="wattmeter-pg-"))
        if self.user:
            shutil.chown(self.folder, int(self.user[1].split("=")[1]))
        self.data = self.folder / "data"
        self.command(self.initdb, "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                     "--locale=C", "--no-sync")
        (self.data / "pg_hba.conf").write_text(
            "local all locked scram-sha-256\nlocal all all trust\n")
        self.start()

    def command(self, *arguments):
        done = subprocess.run([*self.user, *map(str, arguments)], capture_output=True, text=True,
                              cwd="/", timeout=300)
        if done.returncode != 0:
            raise AssertionError(f"{arguments}: {done.stdout}{done.stderr}")

    def start(self):
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(
                [*self.user, self.postgres, "-D", self.data, "-c", "listen_addresses=", "-c",
                 f"unix_socket_directories={self.folder}", "-c", "fsync=off", "-c",
                 "max_connections=50"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        for _ in range(300):
            if self.process.poll() is not None:  # the one before it is not quite gone
                time.sleep(0.2)
                return self.start()
            if self.sql("SELECT 1", check=False) == "1":
                return None
            time.sleep(0.1)
        raise AssertionError((self.folder / "log").read_text())

    def end(self, number=signal.SIGINT):
        """SIGINT is a fast shutdown; SIGKILL is what it is."""
        self.go_on()
        self.process.send_signal(number)
        self.process.wait(timeout=300)

    def processes(self):
        """The server and all that it has started."""
        tree = [self.process.pid]
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(entry.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == self.process.pid:
                tree.append(int(entry.parent.name))
        return tree

    def hang(self):
        """Stopped as by a debugger: connections stay, and nothing answers."""
        self.stopped = self.processes()
        for pid in self.stopped:  # the server first; one of the others may have ended
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def go_on(self):
        for pid in self.stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.stopped = []

    def remove(self):
        if self.process and self.process.poll() is None:
            self.end()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database="postgres", user="postgres", password=None):
        secret = ":" + quote(password, safe="") if password else ""
        return f"postgresql://{user}{secret}@/{database}?host={quote(str(self.folder), safe='')}"

    def sql(self, text, database="postgres", check=True):
        """Rows as lines, fields separated by '|'."""
        done = subprocess.run(
            [self.psql_program, "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", self.folder,
             "-U", "postgres", "-d", database, "-f", "-"], input=text, capture_output=True,
            text=True, timeout=300, env={**os.environ, "PGOPTIONS": "-c client_min_messages=error"})
        if check and done.returncode != 0:
            raise AssertionError(f"{text}: {done.stderr}")
        return done.stdout.rstrip("\n")

    def new_database(self, name, options=""):
        self.sql(f'CREATE DATABASE "{name}" {options}')
        return self.url(name)
