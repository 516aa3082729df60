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
        subprocess.run([program], check=True, timeout=300,
                       env=tap.environment(WATTMETER_REGIONS=str(written)))
        with open(written, encoding="utf-8", newline="") as file:
            rows.append([(row["code_block_name"], row["position"])
                         for row in csv.DictReader(file)])
        subprocess.run([program], check=True, timeout=300, env=tap.environment())
    return rows


def build(folder, compiler, suffix, text, *options):
    source, program = folder / ("program" + suffix), folder / ("program of " + compiler)
    source.write_text(text, encoding="utf-8")
    subprocess.run([compiler, "-o", program, source, f"-I{tap.SOURCE / 'include'}",
                    f"-L{tap.BUILD}", "-lwattmeter", f"-Wl,-rpath,{tap.BUILD}", *options],
                   check=True, cwd=folder)
    return program


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


BOTH = """
#include <wattmeter/region.h>
int main(void)
{
    WM_REGION("outer"); WM_REGION("inner");
    return 0;
}
"""


@case("two scopes on one line")
def _(folder):
    if tap.SANITIZED:
        raise Skip("the library is built with a sanitizer")
    for compiler, suffix in (("gcc", ".c"), ("g++", ".cpp")):
        if not shutil.which(compiler):
            raise Skip(f"{compiler} is not installed")
        program, written = build(folder, compiler, suffix, BOTH), folder / (compiler + ".csv")
        subprocess.run([program], check=True, timeout=300,
                       env=tap.environment(WATTMETER_REGIONS=str(written)))
        with open(written, encoding="utf-8", newline="") as file:
            assert [(row["code_block_name"], row["position"]) for row in csv.DictReader(file)] == [
                ("outer", "0"), ("inner", "0"), ("inner", "1"), ("outer", "1")]


UNLOADED = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_barrier_t barrier;
static void *library;
static void *mark(void *context)
{
    void (*begin)(const char *) = (void (*)(const char *))dlsym(library, "wm_region_begin");
    begin("a thread's");
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return context;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library)
        return 2;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, mark, NULL);
    pthread_barrier_wait(&barrier);
    dlclose(library);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    return 0;
}
"""


@case("a program that unloads the library while a thread that has used it lives")
def _(folder):
    if tap.SANITIZED:
        raise Skip("the library is built with a sanitizer")
    if not shutil.which("gcc"):
        raise Skip("gcc is not installed")
    program = build(folder, "gcc", ".c", UNLOADED, "-pthread", "-ldl")
    subprocess.run([program, tap.BUILD / "libwattmeter.so"], check=True, timeout=300,
                   env=tap.environment(WATTMETER_REGIONS=str(folder / "r.csv")))


tap.main()
