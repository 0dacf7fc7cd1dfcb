#!/usr/bin/env python3
"""Every file of examples/data has its source and licence in SOURCES.md, and together they stay below 8 MB.

usage: data_test.py [ROOT]
"""
import os
import re
import sys

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
DATA = os.path.join(ROOT, "examples", "data")
OURS = {"make.sh", "make.py", "SOURCES.md"}


def main():
    files = {os.path.relpath(os.path.join(folder, name), DATA) for folder, _, names in os.walk(DATA) for name in names}
    files = {name for name in files if "__pycache__" not in name}
    rows = [line.strip("| \n").split(" | ") for line in open(os.path.join(DATA, "SOURCES.md"), encoding="utf-8")]
    data = re.compile(r"[a-z].*\.(jpg|csv|i16|npy|npz|jsonl)$")
    named = {row[0]: row for row in rows if len(row) == 6 and data.match(row[0])}
    faults = [f"{name} has no row in SOURCES.md" for name in sorted(files - OURS - named.keys())]
    faults += [f"SOURCES.md names {name}, which is not there" for name in sorted(named.keys() - files)]
    faults += [f"{name}: no author, licence or origin" for name, row in sorted(named.items()) if not all(row[1:5])]
    size = sum(os.path.getsize(os.path.join(DATA, name)) for name in files)
    if size > 8_000_000:
        faults.append(f"{size} bytes are more than 8 MB")
    print("\n".join(faults + [f"{len(files)} files, {size / 1e6:.2f} MB, {len(faults)} faults"]))
    return 1 if faults or not named else 0


if __name__ == "__main__":
    sys.exit(main())
