#!/usr/bin/env python3
"""One digest, however a program is run: by the reference interpreter, without rules, without each single rule, with
1, 2, 8 threads, chunks of 1, 7, 64, as .zpl and .yaml, resumed after every tenth batch, as ranks 1, 2, 3 composed.

usage: equivalence_test.py ZEPHONC PROGRAM...
"""
import json
import os
import subprocess
import sys
import tempfile
import time

ZEPHONC = os.path.abspath(sys.argv[1])
os.environ["ZEPHON_MEASURED"] = "off"  # what lies on this disk decides no plan of a test


class Program:
    """Runs one program in many ways, and compares with the run by the reference interpreter."""

    def __init__(self, path, folder, epochs):
        self.path, self.folder, self.epochs, self.faults, self.runs = path, folder, epochs, [], 0

    def run(self, *args, path=None):
        manifest = os.path.join(self.folder, "manifest.json")
        command = [ZEPHONC, "run", path or self.path, "--epochs", str(self.epochs), "--manifest", manifest,
                   *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        self.runs += 1
        if done.returncode != 0:
            self.faults.append(f"$ {' '.join(command[1:])}\n{done.stderr}-> {done.returncode}")
            return None
        with open(manifest, encoding="utf-8") as file:
            return json.load(file)

    def same(self, what, records):
        if records is None:
            return
        for should, found in zip(self.records, records):
            if should != found:
                self.faults.append(f"{what}: record {should['epoch']}/{should['ordinal']} is {found}, not {should}")
                return
        if len(records) != len(self.records):
            self.faults.append(f"{what}: {len(records)} records, not {len(self.records)}")

    def way(self, *args, path=None):
        manifest = self.run(*args, path=path)
        if manifest is None:
            return
        what = " ".join(map(str, args)) or path or "as it stands"
        self.same(what, manifest["records"])
        if manifest["digest"] != self.digest:
            self.faults.append(f"{what}: digest {manifest['digest']}, not {self.digest}")

    def resumed(self, every, *args):
        state, records = os.path.join(self.folder, "state"), []
        if os.path.exists(state):
            os.remove(state)
        while True:
            resume = ["--resume", state] if os.path.exists(state) else []
            part = self.run("--take", every, "--save-state", state, *resume, *args)
            if part is None:
                return
            records += part["records"]
            if len(part["records"]) < every:
                break
        self.same(f"resumed after every {every} records", records)

    def ranks(self, world, *args):
        """Rounds that are incomplete at the end of an epoch are dropped, and only those."""
        parts = [self.run("--rank", r, "--world-size", world, *args) for r in range(world)]
        if None in parts:
            return
        found = {(r["epoch"], r["ordinal"]): r for part in parts for r in part["records"]}
        counts = {}
        for record in self.records:
            counts[record["epoch"]] = counts.get(record["epoch"], 0) + 1
        expected = {(r["epoch"], r["ordinal"]): r for r in self.records
                    if r["ordinal"] < counts[r["epoch"]] // world * world}
        if found != expected or sum(len(part["records"]) for part in parts) != len(expected):
            self.faults.append(f"{world} ranks: their records do not compose to the whole")

    def all_ways(self, rules):
        reference = self.run("--reference")
        if reference is None:
            return
        self.records, self.digest = reference["records"], reference["digest"]
        if not self.records:
            self.faults.append("delivers nothing: nothing was compared")
        self.way()
        self.way("--no-optimize")
        for threads in (1, 2, 8):
            self.way("--threads", threads)
        for chunk in (1, 7, 64):
            self.way("--chunk", chunk)
        for rule in rules:
            self.way("--disable", rule)
        yaml = os.path.splitext(self.path)[0] + ".yaml"
        if self.path.endswith(".zpl") and os.path.exists(yaml):
            self.way(path=yaml)
        self.resumed(10)
        self.resumed(max(1, len(self.records) // 3), "--no-optimize", "--chunk", 7)
        for world in (1, 2, 3):
            self.ranks(world)


def rules():
    listed = subprocess.run([ZEPHONC, "rules"], capture_output=True, text=True, check=True).stdout
    listed = listed.split("\nRelaxations")[0]  # which are off as it is
    return [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]


def main():
    code, names = 0, rules()
    for path in sys.argv[2:]:
        with tempfile.TemporaryDirectory(prefix="zephon-equivalence-") as folder:
            start = time.monotonic()
            program = Program(os.path.abspath(path), folder, epochs=2)
            program.all_ways(names)
            print(f"{os.path.basename(path)}: {program.runs} runs, {len(program.faults)} faults, "
                  f"{time.monotonic() - start:.0f} s")
            for fault in program.faults[:10]:
                print("  " + fault)
            code |= bool(program.faults)
    return code


if __name__ == "__main__":
    sys.exit(main())
