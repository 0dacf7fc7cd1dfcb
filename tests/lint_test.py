#!/usr/bin/env python3
"""Review remarks that became checks: no tabs, no trailing spaces, 120 columns, no to-do marks, a final newline.

usage: lint_test.py [ROOT]
"""
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
TEXT = (".h", ".cpp", ".py", ".sh", ".g4", ".def", ".cmake", ".txt", ".md", ".zpl", ".yaml", ".json", ".explain")
NAMES = ("dev", ".ci/run", ".clang-format")
# Data, third-party text and broken-on-purpose inputs are not ours to lay out.
EXEMPT = re.compile(r"^(LICENSE$|examples/data/.*\.(csv|jpg|i16)$|tests/data/|tests/fuzz/corpus/|tests/explain/)")
MARK = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
WIDE = (".md", ".json", ".def", ".h", ".cpp", "failures.txt")  # messages, tables, links and schemas do not wrap; clang-format wraps C++
QUOTED = re.compile(r"""(["']).{40,}\1""")  # nor do programs and data in quotes


def main():
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, text=True, check=False).stdout.split("\n")
    faults, seen = [], 0
    for name in sorted(files):
        path = os.path.join(ROOT, name)
        if EXEMPT.match(name) or not (name.endswith(TEXT) or name in NAMES) or not os.path.isfile(path):
            continue
        seen += 1
        data = open(path, "rb").read()
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            faults.append(f"{name}: not UTF-8 ({error})")
            continue
        if data and not data.endswith(b"\n"):
            faults.append(f"{name}: no newline at the end")
        if name.endswith(".h") and "#pragma once" not in text:
            faults.append(f"{name}: header without #pragma once")
        for number, line in enumerate(text.split("\n"), 1):
            where = f"{name}:{number}: "
            if "\t" in line:
                faults.append(where + "tab")
            if line != line.rstrip():
                faults.append(where + "trailing space")
            if len(line) > 120 and not name.endswith(WIDE) and not QUOTED.search(line):
                faults.append(where + f"{len(line)} columns (at most 120)")
            if MARK.search(line):
                faults.append(where + f"a mark that waits: {MARK.search(line)[0]}")
    for fault in faults:
        print(fault)
    print(f"{seen} files, {len(faults)} faults")
    return 1 if faults or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
