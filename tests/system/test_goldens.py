#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the command prints and writes, to the letter: of stored recordings of every format
and version, on captured machines, and when it is misused.

A row is a part of a file of tests/data/goldens/, of which there is one for each kind, and the
command lines that it holds the output of, written as for a shell. A word that names something in tests/data or tests/fake is copied
beside the command, so that no golden has a path of the machine it was made on; what is
written under a name that begins with "out" is in the golden as well. After a change that is
meant, `test_goldens.py --write` writes them anew, and `git diff` says what has changed.
"""

import contextlib
import csv
import difflib
import functools
import math
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import tap

GOLDENS = tap.SOURCE / "tests/data/goldens"
PLACES = (tap.SOURCE / "tests/data", tap.SOURCE / "tests/fake")
DRIVER = tap.BUILD / "tests/fake/libnvidia-ml.so.1"
LIMIT = 40  # lines of a difference that are shown

FORMATS = {
    "v1-csv": "recordings/v1.csv",
    "v1-sqlite": "recordings/v1.sqlite",
    "v1-regions": "recordings/v1-regions.sqlite",
    "v2-csv": "recordings/v2.csv",
    "tree-sqlite": "recordings/v1-tree.sqlite",
    "tree-csv": "recordings/v2-tree.csv",
    "three-runs": "recordings/v1-three-runs.sqlite",
    "faults": "recordings/v1-faults.sqlite",
    "load-aipm": "recordings/v1-load.aipm",
    "aipm-2021": "aipm/2021",
    "aipm-generation1": "aipm/generation1",
    "aipm-head": "aipm/head",
    "meter-plain": "meter/plain.csv",
    "meter-omegawatt": "meter/omegawatt.csv",
}
# Ways in which a recording comes about and ends, in the formats above.
ENDS = {
    "attach-sqlite": "recordings/v1-attach.sqlite",
    "attach-csv": "recordings/v1-attach.csv",
    "killed-tracker-sqlite": "recordings/v1-killed-tracker.sqlite",
    "killed-tracker-csv": "recordings/v2-killed-tracker.csv",
    "killed-program-sqlite": "recordings/v1-killed-program.sqlite",
    "killed-program-csv": "recordings/v2-killed-program.csv",
    "killed-in-region": "recordings/v1-killed-in-region.sqlite",
    "estimate": "recordings/v1-estimate.csv",
    "amd": "recordings/v1-amd.csv",
    "short": "recordings/v1-short.csv",
    "usage": "recordings/v2-usage.csv",
    "experiment-sqlite": "recordings/v1-experiment.sqlite",
    "experiment-aipm": "recordings/v1-experiment/resnet",
    "meter-dates": "meter/dates.csv",
    "meter-tree": "meter/tree.csv",
}
# Those that are held in all forms; of the others only what most people read, while all must
# come to the same in the further forms.
WHOLE = ("v1-sqlite", "v2-csv", "faults", "aipm-2021", "meter-omegawatt")
UNITS = "--ram-unit megabytes --gpu-ram-unit gigabytes --time-unit minutes"
PRICE = "--price 0.3 --currency EUR --carbon 400 --pue 1.5"
OF_EACH = {
    "report": "report -v {0}",
    "report-brief": "report {0}",
    "report-json": "report --json {0}",
    "analyze": "analyze {0}",
    "list": ("list {0}", "list --json {0}"),
}
OF_WHOLE = {
    "report-units": f"report -v {UNITS} {PRICE} {{0}}",
    "analyze-json": "analyze --json {0}",
    "analyze-gpu-tracker": "analyze --format gpu-tracker {0}",
    "export-csv": "export {0} -o out.csv",
    "report-csv": "report --csv {0}",
    "export-codecarbon": "export {0} --carbon 400 --pue 1.5 --codecarbon out.csv",
    "analyze-gpu-tracker-json": "analyze --format gpu-tracker-json {0}",
    "export-sqlite": "export {0} -o out.sqlite",
    "export-json": "export {0} -o out.json",
    "export-aipm": "export {0} -o out.aipm",
    "export-sub-tracking-csv": "export {0} --sub-tracking out.csv",
    "export-sub-tracking-sqlite": "export {0} --sub-tracking out.sqlite",
}

# gpu_tracker's files, and blocks of code from a file.
REAL = "gpu_tracker/tracking/real"
SUB = "gpu_tracker/sub-tracking"
ANALYSES = {
    "real-csv": f"{REAL}.csv",
    "real-sqlite": f"{REAL}.sqlite",
    "last-before-first": "gpu_tracker/tracking/last-before-first.sqlite",
    "ours-csv": "recordings/gpu-tracker.csv",
    "ours-sqlite": "recordings/gpu-tracker.sqlite",
    "real-csv-main": f"{REAL}.csv --regions {SUB}/main.csv",
    "real-csv-several": f"{REAL}.csv --regions {SUB}/main.csv --regions {SUB}/child.csv",
    "real-csv-combined": f"{REAL}.csv --regions {SUB}/combined.csv",
    "real-sqlite-combined": f"{REAL}.sqlite --regions {SUB}/combined.sqlite",
    "run-0": "--run 0 recordings/v1-three-runs.sqlite",
    "run-1": "--run 1 recordings/v1-three-runs.sqlite",
}
ANALYSIS_FORMS = {"": "", "-json": "--json"}
WHOLE_ANALYSES = ("real-sqlite-combined", "run-1")
WHOLE_ANALYSIS_FORMS = {
    "-gpu-tracker": "--format gpu-tracker", "-gpu-tracker-json": "--format gpu-tracker-json",
    "-file": "-o out.txt",
}

THEIRS = "A=gpu_tracker/analysis_a.json B=gpu_tracker/analysis.json"
COMPARISONS = {
    "theirs": THEIRS,
    "theirs-three": f"{THEIRS} C=gpu_tracker/analysis_a.json",
    "recordings": "old=recordings/v1.csv new=recordings/v2.csv",
    "recordings-unnamed": "recordings/v1.sqlite recordings/v1-regions.sqlite",
    "tree": "sqlite=recordings/v1-tree.sqlite csv=recordings/v2-tree.csv",
    "runs": "a=recordings/v1-three-runs.sqlite b=recordings/v1-three-runs.sqlite"
            " --run a=0 --run b=2",
    "repeats": "a=recordings/v1-eight-runs.sqlite b=recordings/v1-eight-runs.sqlite",
    "failed": "a=recordings/v1-attach.sqlite b=recordings/v1-killed-tracker.sqlite"
              " c=recordings/v1-killed-program.sqlite d=recordings/v1-faults.sqlite",
    "regions": f"a={REAL}.csv b={REAL}.sqlite --regions a={SUB}/combined.csv"
               f" --regions b={SUB}/combined.sqlite",
    "blocks-differ": f"a={REAL}.csv b={REAL}.csv --regions a={SUB}/main.csv"
                     f" --regions b={SUB}/child.csv",
    "every-kind": f"ours=recordings/v1-faults.sqlite theirs={REAL}.csv aipm=aipm/generation1"
                  " meter=meter/plain.csv analysis=gpu_tracker/analysis.json",
    "aipm": "aipm/2021 aipm/generation1 aipm/head",
}
COMPARISON_FORMS = {"": "", "-json": "--json"}
WHOLE_COMPARISONS = ("theirs", "recordings", "every-kind")
WHOLE_COMPARISON_FORMS = {
    "-gpu-tracker": "--format gpu-tracker",
    "-gpu-tracker-api": "--format gpu-tracker-api --stat max",
    "-gpu-tracker-json": "--format gpu-tracker-json --stat std",
    "-min": "--stat min", "-max": "--stat max", "-std": "--stat std",
    "-total": "--stat total",
}

EXPERIMENTS = {
    "sqlite": ("recordings/v1-experiment.sqlite", "resnet"),
    "folder": ("recordings/v1-experiment/", "resnet"),
    "aipm": ("aipm/", "generation1"),
}
QUESTIONS = {
    "list": "list {0}",
    "show": "show {0} {1}",
    "show-all": f"show {{0}} {{1}} --per epoch --idle-watts 100 {PRICE}",
    "show-part": "show {0} {1} --from 0.2 --to 0.9",
    "total": "total {0} {1} energy",
    "total-part": "total {0} {1} cpu_energy --from 0.1 --to 0.5",
    "average": "average {0} {1} power",
    "max": "max {0} {1} gpu0_energy",
    "max-metric": "max {0} {1} accuracy",
    "curve": "curve {0} {1} power",
    "curve-metric": "curve {0} {1} epoch",
    "interpolate": "interpolate {0} {1} accuracy energy",
}

# A /proc that is there and empty: with none at all, processes are looked up in that of the
# machine, which may have some of the same numbers.
GPUS = {name: f"WATTMETER_NVML=./nvml.so FAKE_NVML_SCENARIO=scenarios/{name}.json"
              " WATTMETER_SYSFS=none WATTMETER_PROCFS=made/empty"
        for name in ("everything", "igpu", "lost", "errors", "constant", "no_energy")}
GPUS |= {name: f"WATTMETER_NVML=none WATTMETER_SYSFS=sys-drm/{name}"
              f" WATTMETER_PROCFS=proc-drm/{name}"
         for name in ("amd-apu", "amd-discrete", "amd-instinct", "intel-discrete",
                      "intel-integrated", "intel-xe", "nvidia-only", "virtual")}
GPUS |= {"both": "WATTMETER_NVML=./nvml.so FAKE_NVML_SCENARIO=scenarios/constant.json"
                 " WATTMETER_SYSFS=sys-drm/amd-discrete WATTMETER_PROCFS=proc-drm/amd-discrete",
         "none": "WATTMETER_NVML=none WATTMETER_SYSFS=none WATTMETER_PROCFS=none"}
IGPU = GPUS["igpu"]
MACHINES = {name: f"WATTMETER_NVML=none WATTMETER_SYSFS=sys/{name} WATTMETER_PROCFS=none"
            for name in ("amd-threadripper", "intel-2-sockets", "raspberry-pi", "thermal-zones")}

TRACKER = "gpu-tracker sub-track"
OTHERS = {
    "help/help": "--help",
    "help/version": "--version",
    **{f"help/{command}": f"{command} --help"
       for command in ("run", "attach", "info", "doctor", "list", "report", "export", "analyze", "compare",
                       "combine", "experiment", "gpu-tracker")},
    "help/cap": ("cap --help", *(f"cap {verb} --help" for verb in ("show", "set", "profile", "fit"))),
    "report/csv": ("report --csv recordings/v1-three-runs.sqlite recordings/v1.csv",
                   "report --csv --run 0 recordings/v1-three-runs.sqlite recordings/v1.csv -o out.csv"),
    "run/no-command": ("run --json --", "run"),
    "doctor/vm": "WATTMETER_NVML=none WATTMETER_SYSFS=sys/intel-2-sockets"
                 " WATTMETER_PROCFS=proc/vm-2-cores doctor --duration 20ms",
    "doctor/dead": GPUS["everything"] + " doctor --duration 1100ms",
    "cap/show": tuple(f"{GPUS[name]} cap show{option}" for name in ("everything", "both", "intel-xe")
                      for option in ("", " --json")),
    "cap/none": ("cap show", "cap show --json", "cap restore", "cap reset", "run --cap 250W -- true"),
    "gpu-info/igpu-some": f"{IGPU} info 3 0,1",
    "gpu-info/igpu-uuid": f"{IGPU} info --brief GPU-d9bf",
    "gpu-info/igpu-none": f"{IGPU} info none",
    "gpu-info/igpu-visible": f"{IGPU} CUDA_VISIBLE_DEVICES=2,nonsense,0 info --visible --brief",
    "gpu-info/igpu-file": f"{IGPU} info --json -o out.json",
    "gpu-info/igpu-wrong": tuple(f"{IGPU} info {words}" for words in
                                 ("7", "0 x", "0,,1", "''", "GPU-zz", "--visible 0")),
    "gpu-info/names": tuple(f"{GPUS[name]} WATTMETER_SHARE=share info --brief"
                            for name in ("amd-discrete", "amd-apu", "intel-discrete")),
    "gpu-info/cluster-brief": IGPU.replace("igpu", "cluster") + " info --brief",
    "report/runs": tuple(f"report --run {run} recordings/v1-three-runs.sqlite" for run in range(4)),
    "report/segments": tuple(f"report --run {run} aipm/generation1" for run in range(3)),
    "report/units-json": tuple(f"report --json {UNITS} {PRICE} {path}" for path in (
        "recordings/v1-amd.csv", "aipm/generation1", "meter/plain.csv")),
    "compare/total-json": "compare --json --stat total aipm/generation1 aipm/head",
    "compare/max-json": f"compare --json --stat max {THEIRS}",
    "gpu-info/many-brief": IGPU.replace("igpu", "many") + " info --brief",
    "report/aipm-file": "report aipm/head/power_metrics.json",
    "report/aipm-zone": "TZ=XYZ-05:30 report aipm/generation1",
    "report/aipm-zone-json": "TZ=XYZ5 report --json aipm/head",
    "report/zone": "TZ=XYZ-05:30 report recordings/v1-tree.sqlite",
    "report/file": ("report recordings/v1.csv -o out.txt", "report recordings/v2.csv -o out.txt",
                    "report recordings/v2.csv -o out.txt --overwrite"),
    "report/reasons": "report -vv recordings/v1.csv",
    "report/environment": "WATTMETER_PRICE=0.5 WATTMETER_CURRENCY=CHF WATTMETER_JSON=no"
                          " report recordings/v1.csv",
    "report/meter-tree": "report --meter meter/tree.csv recordings/v1-tree.sqlite",
    "report/meter-tree-json": "report --json --meter meter/tree.csv recordings/v1-tree.sqlite",
    "report/meter-aipm": "report --meter meter/plain.csv aipm/generation1",
    "report/meter-omegawatt": "report --meter meter/omegawatt.csv aipm/head",
    "report/meter-dates": "report --meter meter/dates.csv aipm/head",
    "report/meter-elsewhere": "report --meter meter/plain.csv recordings/v1.csv",
    "export/append": ("export recordings/v1.csv -o out.sqlite",
                      "export recordings/v1-three-runs.sqlite --run 0 -o out.sqlite --append",
                      "export recordings/v1.csv -o out.sqlite"),
    "export/append-aipm": ("export recordings/v1.csv -o out.aipm",
                           "export recordings/v2.csv -o out.aipm --append",
                           "export recordings/v2.csv -o out.aipm"),
    "export/run-0": "export recordings/v1-three-runs.sqlite --run 0 -o out.csv",
    "export/run-1": "export recordings/v1-three-runs.sqlite --run 1 -o out.json",
    "export/segment": "export aipm/generation1 --run 1 -o out.csv",
    "export/chain": ("export recordings/v1-tree.sqlite -o a.csv", "export a.csv -o b.sqlite",
                     "export b.sqlite -o out.csv"),
    "export/codecarbon-append": tuple(
        f"export recordings/v1-tree.sqlite {words} --codecarbon made/out-{version}.csv"
        for version in ("2.1", "2.8", "3.3") for words in ("", "--append")),
    "combine/csv": f"combine {SUB}/main.csv {SUB}/child.csv -o out.csv",
    "combine/sqlite": ("export recordings/v1-tree.sqlite --sub-tracking a.sqlite",
                       f"combine {SUB}/combined.sqlite a.sqlite -o out.sqlite"),
    "combine/folder": "combine made/folder -o out.csv",
    "combine/there": f"combine {SUB}/main.csv -o {SUB}/child.csv",
    "combine/mixed": f"combine {SUB}/main.csv {SUB}/combined.sqlite -o out.csv",
    "compare/incomplete": ("compare recordings/v1-experiment.sqlite recordings/v1-faults.sqlite",
                           "compare --json recordings/v1-faults.sqlite recordings/v1-experiment.sqlite"),
    "experiment/incomplete": "experiment show recordings/v1-faults.sqlite - --price 1 --carbon 400",
    "compare/fail-above": (
        f"compare {THEIRS} --fail-above 1%",
        "compare old=recordings/v1.csv new=recordings/v2.csv --fail-above 0.1% --metric cpu_time",
        "compare old=recordings/v1.csv new=recordings/v2.csv --fail-above 5% --metric none",
        "compare a=recordings/v1-eight-runs.sqlite b=recordings/v1-eight-runs.sqlite --fail-above 5%",
        "compare a=recordings/v1-killed-in-region.sqlite b=recordings/v1-tree.sqlite"
        " --fail-above 5% --metric time"),
    "gpu-tracker/combine": f"{TRACKER} combine --stf=out.csv -p {SUB}/main.csv -p {SUB}/child.csv",
    "gpu-tracker/combine-folder": f"{TRACKER} combine --stf=out.csv -p made/folder",
    "gpu-tracker/analyze": f"{TRACKER} analyze --tf={REAL}.csv --stf={SUB}/combined.csv",
    "gpu-tracker/analyze-sqlite": f"{TRACKER} analyze --tf={REAL}.sqlite"
                                  f" --stf={SUB}/combined.sqlite",
    "gpu-tracker/analyze-json": f"{TRACKER} analyze --tf={REAL}.csv --stf={SUB}/main.csv -f json",
    "gpu-tracker/analyze-ours": ("export recordings/v1-tree.sqlite --sub-tracking a.csv",
                                 f"{TRACKER} analyze --tf=recordings/v1-tree.sqlite --stf=a.csv"),
    **{f"gpu-tracker/compare-{statistic}": f"{TRACKER} compare --stat={statistic}"
       " -m A=gpu_tracker/analysis_a.json -m B=gpu_tracker/analysis.json"
       for statistic in ("mean", "max", "min", "std")},
    "gpu-tracker/compare-json": f"{TRACKER} compare -f json -o out.json"
                                " -m A=gpu_tracker/analysis_a.json -m B=gpu_tracker/analysis.json",
    "gpu-tracker/compare-config": (f"{TRACKER} compare --cconfig=made/compare.json",
                                   f"{TRACKER} compare --cconfig=made/compare.json --stat=min"),
    "gpu-tracker/wrong": tuple(f"gpu-tracker {words}" for words in (
        "", "-x", "-e", "-e a b", "--st=1", "sub-track", "sub-track combine",
        "sub-track combine --stf=x.csv", "sub-track analyze --tf=a", "-v extra",
        "sub-track analyze --tf=none.csv --stf=none.csv",
        f"sub-track analyze --tf={SUB}/main.csv --stf={REAL}.csv",
        f"sub-track analyze --tf={REAL}.csv --stf={SUB}/main.csv -f yaml",
        "sub-track compare", "sub-track compare -m A=none.json", "sub-track compare -m A",
        "sub-track compare --cconfig=none.json", "sub-track compare --cconfig=made/text",
        f"sub-track compare -m A=gpu_tracker/analysis.json --stat=median",
        "-e true --ru=pounds", "-e true --st=0", "-e true --nec=x", "-e true --tf=x.txt",
        "-e true --tconfig=none.json", "-e true --tconfig=made/text")),
}

# What is misused, or is not what it is taken for: each is in one golden of its command.
READERS = ("report {0}", "list {0}", "analyze {0}", "export {0} -o out.csv", "compare a={0} b={0}",
           "experiment list {0}", "combine {0} -o out2.csv")
BAD_FILES = {
    "missing": "none.sqlite", "folder": "made/folder", "empty-folder": "made/empty",
    "empty": "made/nothing.csv", "text": "made/text", "json": "recordings/v1.json",
    "cut-sqlite": "made/cut.sqlite", "cut-header": "made/cut-header.csv",
    "cut-row": "made/cut-row.csv", "cut-channels": "made/cut-channels.csv",
    "damaged-row": "made/damaged-row.csv", "damaged-sqlite": "made/damaged.sqlite",
    "other-database": "made/other.sqlite", "newer-csv": "made/newer.csv",
    "newer-sqlite": "made/newer.sqlite", "no-runs": "made/no-runs.sqlite",
    "cut-aipm": "made/cut.aipm", "damaged-aipm": "made/damaged.aipm",
    "no-power": "made/no-power.csv", "sub-tracking": f"{SUB}/main.csv",
    "sub-tracking-sqlite": f"{SUB}/combined.sqlite", "tracking": f"{REAL}.csv",
    "tracking-sqlite": f"{REAL}.sqlite", "analysis": "gpu_tracker/analysis.json",
    "url": "postgresq://user:sesame@host/db", "dash": "-",
}
MISUSES = {
    "cap": ("cap", "cap raise", "cap set", "cap set 250W 300W", "cap show 0", "cap reset 0 1",
            "cap fit t.csv --max-slowdown 0.05", "cap fit t.csv --max-slowdown 5.5.5%"),
    "command": ("", "none", "--none", "--verson", "help none", "help run extra", "-h extra"),
    "report": ("report", "report --none x", "report a b", "report --run", "report --run x a",
               "report --run -1 recordings/v1.csv", "report --run 9 recordings/v1.csv",
               "report --price x recordings/v1.csv", "report --price -1 recordings/v1.csv",
               "report --pue 0.5 recordings/v1.csv", "report --ram-unit pounds recordings/v1.csv",
               "report --time-unit years recordings/v1.csv", "report -o",
               "report -o none/x recordings/v1.csv", "report --json=yes recordings/v1.csv",
               "report --csv --json recordings/v1.csv", "report --csv --ram-unit bytes recordings/v1.csv",
               "report --csv --price 1 recordings/v1.csv", "report --csv -o recordings/v1.csv recordings/v1.csv",
               "report --csv recordings/v1.csv recordings/v1.csv", "report --csv none.csv recordings/v1.csv",
               "report --csv --run 1 recordings/v1.csv", "report --csv --meter none.csv recordings/v1.csv",
               "report --meter none.csv recordings/v1.csv",
               "report --meter recordings/v1.csv recordings/v1.csv",
               f"report --meter {SUB}/main.csv recordings/v1.csv",
               "report --r recordings/v1.csv", "WATTMETER_PRICE=x report recordings/v1.csv"),
    "list": ("list", "list a b", "list --run 1 recordings/v1.csv", "list -o none/x recordings/v1.csv",
             "list -o recordings/v1.csv recordings/v1.csv", "list --jsn recordings/v1.csv"),
    "export": ("export", "export recordings/v1.csv", "export recordings/v1.csv -o out.txt",
               "export recordings/v1.csv -o out", "export recordings/v1.csv -o none/out.csv",
               "export recordings/v1.csv -o recordings/v1.csv",
               "export recordings/v1.csv -o recordings/v1.csv --overwrite",
               "export recordings/v1.csv -o recordings/v2.csv",
               "export recordings/v1.csv -o recordings/v2.csv --append",
               "export recordings/v1.csv -o made/other.sqlite --append",
               "export recordings/v1.csv -o made/text --overwrite",
               "export recordings/v1.csv -o out.csv --append --overwrite",
               "export recordings/v1.csv --codecarbon made/text",
               "export recordings/v1.csv --codecarbon out.csv --sub-tracking out2.csv",
               "export recordings/v1.csv --sub-tracking out.txt",
               "export recordings/v1.csv --sub-tracking -", "export recordings/v1.csv -o -",
               "export recordings/v1.csv --run 3 -o out.csv"),
    "analyze": ("analyze", "analyze a b", "analyze --format yaml recordings/v1.csv",
                f"analyze {REAL}.csv --regions none.csv",
                f"analyze {REAL}.csv --regions {REAL}.csv",
                f"analyze {REAL}.csv --regions recordings/v1.sqlite",
                f"analyze {SUB}/main.csv --regions {REAL}.csv",
                f"analyze {REAL}.csv --regions made/cut-sub.csv",
                f"analyze {REAL}.csv --regions made/wrong-sub.csv",
                f"analyze recordings/v1.csv --regions {SUB}/main.csv",
                f"analyze --run 1 {REAL}.csv", "analyze --json --format text recordings/v1.csv"),
    "compare": ("compare", "compare recordings/v1.csv",
                "compare a=recordings/v1.csv a=recordings/v2.csv",
                "compare a=none.csv b=recordings/v1.csv", f"compare {THEIRS} --stat median",
                f"compare {THEIRS} --format yaml", f"compare {THEIRS} --fail-above 5",
                f"compare {THEIRS} --fail-above 5% --stat max", f"compare {THEIRS} --metric time",
                f"compare {THEIRS} --fail-above 5% --metric cpu",
                f"compare {THEIRS} --regions C={SUB}/main.csv", f"compare {THEIRS} --regions x",
                f"compare {THEIRS} --run A=1", f"compare {THEIRS} --run A",
                f"compare {THEIRS} --run C=1",
                "compare a=made/text b=made/text"),
    "combine": ("combine", f"combine {SUB}/main.csv", f"combine {SUB}/main.csv -o out.txt",
                f"combine {SUB}/main.csv {SUB}/main.csv -o out.csv", "combine none.csv -o out.csv",
                f"combine {SUB}/main.csv -o out.sqlite", "combine made/wrong-sub.csv -o out.csv",
                f"combine {SUB}/main.csv -o none/out.csv"),
    "experiment": ("experiment", "experiment list", "experiment lists x", "experiment show x",
                   "experiment list none.sqlite",
                   "experiment show recordings/v1-experiment.sqlite none",
                   "experiment total recordings/v1-experiment.sqlite resnet",
                   "experiment total recordings/v1-experiment.sqlite resnet none",
                   "experiment average recordings/v1-experiment.sqlite resnet phase",
                   "experiment interpolate recordings/v1-experiment.sqlite resnet epoch",
                   "experiment show recordings/v1-experiment.sqlite resnet --per none",
                   "experiment show recordings/v1-experiment.sqlite resnet --from 2 --to 1",
                   "experiment show recordings/v1-experiment.sqlite resnet --from noon",
                   "experiment show recordings/v1-experiment.sqlite resnet --idle-watts -1",
                   "experiment total recordings/v1-experiment.sqlite resnet energy --per epoch",
                   "experiment show recordings/v1.sqlite resnet"),
    "run": ("run --none -- true", "run --interval 0 -- true", "run --interval 2d -- true",
            "run -i -- true", "run --record out.txt -- true", "run --record none/out.csv -- true",
            "run --record recordings/v1.csv -- true", "run --append -- true",
            "run --record recordings/v1.csv --append -- true", "run --gpu x,,y -- true",
            "run --cpu-watts 5 -- true", "run --cpu-watts 65:10 -- true", "run --note x -- true",
            "run --expected-cores 0 -- true", "run --baseline x -- true", "run --name x -- true",
            "run --experiment out.sqlite -- true", "run --experiment out.txt --name x -- true",
            "run --model-card none.json -- true", "run --ram-unit x -- true",
            "run -q --output none/x -- true"),
    "attach": ("attach", "attach x", "attach 0", "attach 1 2", "attach -5", "attach 99999999999",
               "attach --duration x 1", "attach --record out.txt 1"),
    "doctor": ("doctor extra", "doctor --duration soon", "doctor --duration 0", "doctor --none"),
    "info": ("info --watch x", "info --watch 1ms", "info --none", "info -o none/x"),
}


def part(name, end=None):
    """A file of tests/data up to that byte."""
    return (PLACES[0] / name).read_bytes()[:end]


def altered(name, before, after):
    data = (PLACES[0] / name).read_bytes()
    assert before in data, (name, before)
    return data.replace(before, after, 1)


def database(*statements, name=None):
    """The bytes of an SQLite file, of a copy of that one if there is a name."""
    with contextlib.closing(sqlite3.connect(":memory:")) as memory:
        if name:
            memory.deserialize((PLACES[0] / name).read_bytes())
        for statement in statements:
            memory.execute(statement)
        memory.commit()
        return memory.serialize()


# Made when a command names it: a text, or a function that returns the bytes.
MADE = {
    "nothing.csv": "",
    "text": "This is no recording.\nIt has two lines.\n",
    "empty/.keep": "",
    "folder/1.csv": lambda: part(f"{SUB}/main.csv"),
    "folder/2.csv": lambda: part(f"{SUB}/child.csv"),
    "cut.sqlite": lambda: part("recordings/v1.sqlite", 6000),
    "damaged.sqlite": lambda: part("recordings/v1.sqlite", 4096) + b"\xff" * 36864,
    "cut-header.csv": lambda: part("recordings/v2.csv", 100),
    "cut-channels.csv": lambda: part("recordings/v2.csv", 3000),
    "cut-row.csv": lambda: part("recordings/v2.csv", -30),
    "damaged-row.csv": lambda: part("recordings/v1.csv") + b"x,y\r\n,,,\r\n",
    "other.sqlite": lambda: database("CREATE TABLE data (a, b)", "INSERT INTO data VALUES (1, 2)"),
    "newer.csv": lambda: altered("recordings/v2.csv", b",2 ", b",9 "),
    "newer.sqlite": lambda: database("PRAGMA user_version = 9", name="recordings/v1.sqlite"),
    "no-runs.sqlite": lambda: database("DELETE FROM run", name="recordings/v1.sqlite"),
    "cut.aipm/power_metrics.json": lambda: part("aipm/head/power_metrics.json", 3000),
    "damaged.aipm/power_metrics.json": lambda: b"{}\n[1]\nnot JSON\n"
                                       + part("aipm/head/power_metrics.json"),
    "no-power.csv": "time,power\n1685620799,180\n1685620800,181\n",
    "cut-sub.csv": lambda: part(f"{SUB}/main.csv", -5),
    "wrong-sub.csv": "process_id,name,position,timestamp\n1,a,0,1.5\n",
    "compare.json": '{"file_path_map": {"A": "gpu_tracker/analysis_a.json",'
                    ' "B": "gpu_tracker/analysis.json"}, "statistic": "max"}',
    **{f"out-{version}.csv": lambda version=version: part(f"codecarbon/{version}") + b"\n"
       for version in ("2.1", "2.8", "3.3")},
}


def rows():
    """The name of each golden, and its command lines."""
    for name, path in {**FORMATS, **ENDS}.items():
        for form, words in {**OF_EACH, **(OF_WHOLE if name in WHOLE else {})}.items():
            lines = (words,) if isinstance(words, str) else words
            yield f"{name}/{form}", tuple(line.format(path) for line in lines)
    for name, words in ANALYSES.items():
        for form, option in {**ANALYSIS_FORMS, **(WHOLE_ANALYSIS_FORMS if name in WHOLE_ANALYSES else {})}.items():
            yield f"analyze/{name}{form}", f"analyze {option} {words}"
    for name, words in COMPARISONS.items():
        whole = WHOLE_COMPARISON_FORMS if name in WHOLE_COMPARISONS else {}
        for form, option in {**COMPARISON_FORMS, **whole}.items():
            yield f"compare/{name}{form}", f"compare {option} {words}"
    for name, (target, experiment) in EXPERIMENTS.items():
        for question, words in QUESTIONS.items():
            line = f"experiment {words.format(target, experiment)}"
            yield f"experiment/{name}-{question}", (line, line + " --json")
    for name, machine in GPUS.items():
        for form, option in ("brief", "--brief"), ("text", ""), ("json", "--json"):
            yield f"gpu-info/{name}-{form}", f"{machine} info {option}"
    for name, machine in {**MACHINES, **GPUS}.items():
        yield f"doctor/{name}", f"{machine} doctor --duration 20ms"
        yield f"doctor/{name}-json", f"{machine} doctor --json --duration 20ms"
    for name, path in BAD_FILES.items():
        yield f"bad-file/{name}", tuple(reader.format(path) for reader in READERS)
    for name, lines in MISUSES.items():
        yield f"misuse/{name}", lines
    yield from OTHERS.items()


# A load that goes by the clock stays as it begins.
STILL = {"scenarios/cluster.json": (b'"period": 2}', b'"period": 2000}')}


def provide(folder, name):
    """What the word of a command names, beside the command."""
    target = folder / name
    if name.startswith("made/"):
        for made, content in MADE.items():
            if (Path("made") / made).is_relative_to(name.rstrip("/")):
                path = folder / "made" / made
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.encode() if isinstance(content, str) else content())
        return
    for place in PLACES:
        source = place / name
        if name and not name.startswith((".", "/")) and source.exists() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True)
            elif name in STILL:
                moving, still = STILL[name]
                assert moving in source.read_bytes()
                target.write_bytes(source.read_bytes().replace(moving, still))
            else:  # A database that was being written has its log beside it.
                for file in source.parent.glob(f"{source.name}*"):
                    if file.name in (source.name, f"{source.name}-wal"):
                        shutil.copy(file, target.parent)


def dump(path):
    """An SQLite file as text that does not depend on the version of SQLite."""
    with contextlib.closing(sqlite3.connect(path)) as base:
        lines = [f"{name} = {base.execute(f'PRAGMA {name}').fetchone()[0]}"
                 for name in ("application_id", "user_version")]
        for kind, name, sql in base.execute(
                "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
        ).fetchall():
            lines.append(f"{sql};")
            if kind == "table":
                lines += sorted(f"{name}: {row}" for row in base.execute(f'SELECT * FROM "{name}"'))
    return "\n".join(lines) + "\n"


# What is another in each run: a pattern, and what stands in its place.
VOLATILE = [(re.compile(pattern), put) for pattern, put in (
    (r" {100,}", lambda match: f"<{len(match[0])} blanks>"),
    (r'(?m)^  "time": ".*"', '  "time": NOW'),
    (r"(Energy         : |\"energy_joules\": )[\d.]+", r"\1ENERGY"),
    (r"new at every reading, which is every [\d.]+ ms", "new at every reading"),
    # A counter of the driver that is simulated goes on.
    (r'("metric": "energy",[^}]*"value": )[\d.e+-]+(,\s+"changes": )[1-9]\d*'
     r'(,\s+"period_seconds": )[^,]*', r"\1ENERGY\2SOME\3PERIOD"),
    (r'"(read|look)_seconds": [^n,]*', r'"\1_seconds": SECONDS'),
    (r"one reading of all this takes .*", "one reading of all this takes TIME"),
    # Where the doctor breaks a line depends on what stands for the reasons in it.
    (r"(?m)^\w+ +(good|partly|absent|denied|broken)  .*(\n {17}\S.*)+",
     lambda match: re.sub(r"\n {17}", " ", match[0])),
    (r"there is no process \d+", "there is no process PID"),
    (r"(the msr device|no perf events):[^\n\";]*", r"\1: REASON"),
    (r"(?m)^tracker .*(\n  .*)*", "tracker HOW"),
    (r'(?s)("name": "tracker",).*?("read_seconds".*?"advice": )\[.*?\]', r"\1 HOW \2[]"),
)]


@functools.cache
def own_version():
    return tap.wattmeter("--version").stdout.split()[-1]


def stable(text):
    """Without what is another in each run, and in each version: the recordings are 0.1.0's."""
    text = re.sub(rf"(?<![\w.])(0\.1\.0|{re.escape(own_version())})(?![\w.])", "VERSION", text)
    for pattern, put in VOLATILE:
        text = pattern.sub(put, text)
    return text


def environment(**extra):
    clean = {name: value for name, value in tap.environment().items()
             if not name.endswith(("_VISIBLE_DEVICES", "_DEVICE_ORDER", "_AFFINITY_MASK"))}
    return {**clean, "TZ": "UTC0", "LC_ALL": "C", "COLUMNS": "80", "TERM": "dumb",
            "XDG_STATE_HOME": "state", "WATTMETER_NVML": "none", "WATTMETER_SYSFS": "none",
            **extra}


def transcript(folder, lines):
    """Each command with what it printed and its status; then what they have written."""
    text = ""
    (folder / "nvml.so").symlink_to(DRIVER)
    for line in [lines] if isinstance(lines, str) else lines:
        words = shlex.split(line)
        settings = {}
        for word in words:
            for name in {word, word.partition("=")[2], word.rpartition("=")[2]}:
                provide(folder, name)
        while words and re.match(r"[A-Z_]+=", words[0]):
            name, _, settings[name] = words.pop(0).partition("=")
        done = subprocess.run([tap.WATTMETER, *words], cwd=folder, env=environment(**settings),
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
        text += f"$ {' '.join(line.split())}\n" + readable(done.stdout)
        if done.stderr:
            text += "--- stderr\n" + readable(done.stderr)
        if done.returncode:
            text += f"--- status {done.returncode}\n"
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and any(step.startswith("out") for step in name.parts):
            is_database = path.read_bytes().startswith(b"SQLite format 3\0")
            text += f"--- {name}\n"
            text += dump(path) if is_database else readable(path.read_bytes())
    return stable(text)


def readable(data):
    text = data.decode(errors="backslashreplace").replace("\r\n", "<CR>\n")
    return text if not text or text.endswith("\n") else text + "<no line end>\n"


def file_of(name):
    """Those of recordings are one kind."""
    kind = name.partition("/")[0]
    return GOLDENS / ("recordings.txt" if kind in {**FORMATS, **ENDS} else f"{kind}.txt")


HEADING = re.compile(r"(?m)^===== (\S+)\n")


@functools.cache
def goldens():
    """What is to come, by the names of the rows."""
    found = {}
    for path in sorted(GOLDENS.glob("*.txt")):
        _, *parts = HEADING.split(path.read_bytes().decode())
        found.update(zip(parts[::2], parts[1::2]))
    return found


def check(name, lines):
    def run(folder):
        found, golden = transcript(folder, lines), goldens().get(name, "")
        if found != golden:
            difference = list(difflib.unified_diff(
                golden.split("\n"), found.split("\n"), f"{file_of(name)}, {name}", "now", lineterm=""))
            raise AssertionError("\n".join(["not as it was:", *difference[:LIMIT]]))
    return run


@tap.case("each golden has a row")
def _(_folder):
    assert goldens().keys() == dict(rows()).keys(), goldens().keys() ^ dict(rows()).keys()


def ask(folder, *words):
    done = subprocess.run([tap.WATTMETER, *words], cwd=folder, env=environment(), capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=300)
    assert done.returncode == 0, done
    return done.stdout


FIGURES = {"time": ("compute_time", "time"), "cpu_time": ("cpu_time", "total"), "energy": ("energy", "total"),
           "memory": ("max_ram", "combined", "total_rss"), "max_ram.system": ("max_ram", "system")}


def is_same(cell, number):
    return cell == "" if number is None else cell != "" and math.isclose(float(cell), number, rel_tol=1e-12)


def check_forms(folder, path):
    """An export is the same recording, in any format, and a table has the report's numbers."""
    provide(folder, path)
    told = ask(folder, "report", "--json", path)
    for form in ("sqlite", "csv", "json"):
        ask(folder, "export", path, "-o", f"out.{form}")
    for form in ("sqlite", "csv"):
        assert ask(folder, "report", "--json", f"out.{form}") == told, (path, form)
    samples = tap.json.loads((folder / "out.json").read_text())["samples"]
    with contextlib.closing(sqlite3.connect(folder / "out.sqlite")) as base:
        assert base.execute("SELECT count(*) FROM sample").fetchone()[0] == len(samples), path
    report = tap.json.loads(told)
    figures = {key: functools.reduce(lambda part, step: part[step], place, report) for key, place in FIGURES.items()}
    table = list(csv.DictReader(ask(folder, "report", "--csv", path).splitlines()))
    assert len(table) > 1 or all(is_same(table[0][key], figures[key]) for key in figures), (path, figures, table)
    assert tap.json.loads(ask(folder, "analyze", "--json", path))["usage"], path


@tap.case("recordings of every kind come to the same in every form")
def _(folder):
    for name, path in {**FORMATS, **ENDS}.items():
        (folder / name).mkdir()
        check_forms(folder / name, path)


def write():
    """Writes all goldens anew; those without a row go."""
    shutil.rmtree(GOLDENS, ignore_errors=True)
    GOLDENS.mkdir()
    for name, lines in rows():
        with tempfile.TemporaryDirectory(prefix="wattmeter-test-") as folder:
            text = transcript(Path(folder), lines)
        assert not HEADING.search(text), name
        with file_of(name).open("ab") as file:
            file.write(f"===== {name}\n{text}".encode())


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
        sys.exit()
    for each, its_lines in rows():
        tap.case(each)(check(each, its_lines))
    tap.main()
