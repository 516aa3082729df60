# SPDX-License-Identifier: Apache-2.0
"""test_rapl_permissions.py - contrib/rapl-permissions.sh on trees that stand for the
machine's /sys and /etc: what it does, undoes, refuses, and leaves as it was."""

import grp
import os
import shutil
import subprocess

from tap import SOURCE, Skip, case, main

SCRIPT = SOURCE / "contrib" / "rapl-permissions.sh"
ZONES = "sys/devices/virtual/powercap/intel-rapl"
RULE = "etc/udev/rules.d/70-wattmeter-rapl.rules"


def own_group():
    """A group that we may give files to."""
    try:
        name = grp.getgrgid(os.getgid()).gr_name
    except KeyError:
        raise Skip("our group has no name")
    if name in ("users", "nogroup", "nobody"):
        raise Skip(f"our group, {name}, is one that the script refuses")
    return name


def script(*arguments, **options):
    return subprocess.run(["sh", str(SCRIPT), *map(str, arguments)], capture_output=True,
                          text=True, timeout=300, stdin=subprocess.DEVNULL, **options)


def machine(folder):
    """Two counters and another file, all as the kernel has them."""
    counters = []
    for zone in ("intel-rapl:0", "intel-rapl:0/intel-rapl:0:0"):
        path = folder / ZONES / zone
        path.mkdir(parents=True)
        counters.append(path / "energy_uj")
        counters[-1].write_text("1\n")
        counters[-1].chmod(0o400)
        (path / "name").write_text("package-0\n")
        (path / "name").chmod(0o444)
    return counters


def mode(path):
    return path.stat().st_mode & 0o7777


def state(folder):
    return sorted((str(p), mode(p), p.read_bytes() if p.is_file() else b"")
                  for p in folder.rglob("*"))


@case("--dry-run says what would be done and changes nothing")
def _(folder):
    machine(folder)
    before = state(folder)
    done = script("--dry-run", "--root", folder, "--group", own_group())
    assert done.returncode == 0, done.stderr
    assert state(folder) == before
    zone = folder / ZONES / "intel-rapl:0" / "energy_uj"
    lines = done.stdout.splitlines()
    steps = [lines.index(f"{step} {zone}")
             for step in ("chmod 0400", f"chgrp {own_group()}", "chmod 0440")]
    assert steps == sorted(steps), lines
    assert 'SUBSYSTEM=="powercap"' in done.stdout and "chmod 0440 /sys%p/energy_uj" in done.stdout
    assert not any(f"chmod 0{bits}" in done.stdout for bits in ("444", "644", "666", "755"))


@case("the group may read the counters, others may not; all is put back")
def _(folder):
    counters = machine(folder)
    before = state(folder)
    for again in range(2):
        done = script("--root", folder, "--group", own_group())
        assert done.returncode == 0, done.stderr
        assert [mode(c) for c in counters] == [0o440, 0o440]
        assert counters[0].stat().st_gid == os.getgid()
        assert mode(counters[0].parent / "name") == 0o444
        assert f"chgrp {own_group()} /sys%p/energy_uj" in (folder / RULE).read_text()
    done = script("--undo", "--root", folder)
    assert done.returncode == 0, done.stderr
    assert [mode(c) for c in counters] == [0o400, 0o400]
    assert not (folder / RULE).exists()
    shutil.rmtree(folder / "etc")
    assert state(folder) == before
    assert script("--undo", "--root", folder).returncode == 0


@case("counters that somebody opened to all are closed to them")
def _(folder):
    counters = machine(folder)
    counters[0].chmod(0o444)
    assert script("--root", folder, "--group", own_group()).returncode == 0
    assert mode(counters[0]) == 0o440


@case("what makes no sense is refused, with its name, and nothing is changed")
def _(folder):
    machine(folder)
    program = folder / "wattmeter"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    elf = folder / "program"
    shutil.copy("/bin/sh", elf)
    link = folder / "link"
    link.symlink_to("/bin/sh")
    before = state(folder)
    root = ("--dry-run", "--root", folder)
    refusals = [
        (2, "'--frobnicate' is no option", "--frobnicate"),
        (2, "'wattmeter' is no option", "wattmeter"),
        (2, "--group needs a value", "--group"),
        (2, "--user needs a value", "--user", ""),
        (2, "is no name", *root, "--group", "two words"),
        (2, "is no name", *root, "--group", "$(id)"),
        (2, "is no name", *root, "--group", "a'b"),
        (2, "is no name", *root, "--group", "-x"),
        (2, "is no name", *root, "--user", "a;b"),
        (2, "is everybody", *root, "--group", "users"),
        (2, "is everybody", *root, "--group", "nogroup"),
        (2, "leaves the group's members", "--dry-run", "--undo", "--user", "root"),
        (2, "for the counters alone", *root, "--binary", "/bin/sh"),
        (1, "there is no /nonexistent/sys", "--dry-run", "--root", "/nonexistent"),
        (1, "there is no group 'no-such-group'", *root, "--group", "no-such-group"),
        (1, "the whole path", "--dry-run", "--binary", "wattmeter"),
        (1, "no program", "--dry-run", "--binary", "/nonexistent/wattmeter"),
        (1, "no program", "--dry-run", "--binary", folder),
        (1, "or a link to one", "--dry-run", "--binary", link),
        (1, "a script", "--dry-run", "--binary", program),
        (1, "not called wattmeter", "--dry-run", "--binary", elf),
    ]
    for status, text, *arguments in refusals:
        done = script(*arguments)
        assert done.returncode == status and text in done.stderr, (arguments, done)
        assert not done.stdout, done.stdout
    assert state(folder) == before


@case("a program that others may change gets no capability")
def _(folder):
    program = folder / "wattmeter"
    shutil.copy("/bin/sh", program)
    program.chmod(0o777)
    done = script("--dry-run", "--binary", program)
    text = "others may write to it" if os.getuid() == 0 else "does not belong to root"
    assert done.returncode == 1 and text in done.stderr, done


@case("a program of root's: only the group may run it, and it alone may open perf events")
def _(folder):
    if os.getuid() != 0:
        raise Skip("needs a file of root's")
    if not shutil.which("setcap"):
        raise Skip("there is no setcap")
    program = folder / "wattmeter"
    shutil.copy("/bin/sh", program)
    program.chmod(0o755)
    done = script("--dry-run", "--group", own_group(), "--binary", program)
    assert done.stdout.splitlines() == [
        f"chgrp {own_group()} {program}", f"chmod 0750 {program}",
        f"setcap cap_perfmon+ep {program}"], done
    done = script("--dry-run", "--undo", "--binary", program)
    assert done.stdout.splitlines()[0] == f"setcap -r {program}", done
    assert mode(program) == 0o755


@case("a rule that is not ours is left alone; a machine without counters is told so")
def _(folder):
    machine(folder)
    rule = folder / RULE
    rule.parent.mkdir(parents=True)
    rule.write_text("# of the administrator\n")
    before = state(folder)
    for arguments in ((), ("--undo",)):
        done = script("--root", folder, "--group", own_group(), *arguments)
        assert done.returncode == 1 and "ours" in done.stderr, done
    assert state(folder) == before
    shutil.rmtree(folder / "sys")
    (folder / "sys").mkdir()
    done = script("--root", folder, "--group", own_group())
    assert done.returncode == 1 and "there is no counter" in done.stderr, done


@case("who is not root is told so")
def _(folder):
    options = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    text = SCRIPT.read_text()
    done = subprocess.run(["sh", "-s"], input=text, capture_output=True, text=True,
                          timeout=300, cwd="/", **options)
    assert done.returncode == 1 and "must be run as root" in done.stderr, done


main()
