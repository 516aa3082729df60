#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Regions from other languages: the programs in docs/regions.md are compiled against
the library and run, and write what they mark to a file."""

import csv
import re
import shutil
import subprocess

import tap
from tap import Skip, case

PAGE = (tap.SOURCE / "docs" / "regions.md").read_text(encoding="utf-8")


def marks(folder, compiler, language, suffix, *options):
    """What each program of that language on the page writes: (name, position)."""
    if not shutil.which(compiler):
        raise Skip(f"{compiler} is not installed")
    if tap.SANITIZED:
        raise Skip("the library is built with a sanitizer")
    programs = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert programs
    rows = []
    for number, text in enumerate(programs):
        source, program = folder / f"{number}{suffix}", folder / f"program{number}"
        source.write_text(text, encoding="utf-8")
        subprocess.run([compiler, "-o", program, source, *options,
                        f"-I{tap.SOURCE / 'include'}", f"-L{tap.BUILD}", "-lwattmeter",
                        f"-Wl,-rpath,{tap.BUILD}"], check=True, cwd=folder)
        written = folder / f"{number}.csv"
        subprocess.run([program], check=True, timeout=60,
                       env=tap.environment(WATTMETER_REGIONS=str(written)))
        with open(written, encoding="utf-8", newline="") as file:
            rows.append([(row["code_block_name"], row["position"])
                         for row in csv.DictReader(file)])
        subprocess.run([program], check=True, timeout=60, env=tap.environment())
    return rows


@case("C")
def in_c(folder):
    batches = [("batch", "0"), ("batch", "1")] * 100
    assert marks(folder, "gcc", "c", ".c", "-std=c11", "-Wall", "-Wextra", "-Werror") == [
        [("epoch", "0"), *batches, ("epoch", "1")],
        [("GET /", "0"), ("GET /", "1")],
    ]


@case("C++: scopes, which an exception ends")
def in_cpp(folder):
    assert marks(folder, "g++", "cpp", ".cpp", "-std=c++11", "-Wall", "-Wextra", "-Werror") == [
        [("load", "0"), ("parse", "0"), ("parse", "1"), ("load", "1"), ("train", "0"), ("train", "1")],
    ]


@case("Fortran")
def in_fortran(folder):
    assert marks(folder, "gfortran", "fortran", ".f90") == [[("solve", "0"), ("solve", "1")]]


tap.main()
