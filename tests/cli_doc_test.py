#!/usr/bin/env python3
"""docs/CLI.md and `zephonc COMMAND --help` name the same commands and the same options; the tests on the pages hold.

usage: cli_doc_test.py ZEPHONC ROOT
"""
import os
import re
import subprocess
import sys
import tempfile

ZEPHONC, ROOT = sys.argv[1:3]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
ALWAYS = {"--help", "--version", "--markdown"}


def text_of(*arguments):
    done = subprocess.run([ZEPHONC, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"zephonc {' '.join(arguments)}: code {done.returncode}\n{done.stderr}")
    return done.stdout


def tests_on_pages():
    """Programs with tests in them, of the pages: how many, and what `zephonc test` says of those that do not hold."""
    count, faults = 0, []
    for name in ("grammar/README.md", "docs/CLI.md", "docs/SEMANTICS.md", "README.md"):
        page = open(os.path.join(ROOT, name), encoding="utf-8").read()
        for block in re.findall(r"```zpl\n(.*?)```", page, re.S):
            if not re.search(r'^test "', block, re.M):
                continue
            count += 1
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "page.zpl")
                with open(path, "w", encoding="utf-8") as out:
                    out.write(block if block.startswith("zpl ") else "zpl 1\n" + block)
                done = subprocess.run([ZEPHONC, "test", path], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                faults.append(f"{name}: a test does not hold\n{done.stdout}{done.stderr}")
    return count, faults


def main():
    page = open(os.path.join(ROOT, "docs", "CLI.md"), encoding="utf-8").read()
    headings = re.findall(r"^## (.+)$", page, re.M)
    documented = {name.strip() for heading in headings for name in heading.split(",")}
    commands = set(re.findall(r"^  ([a-z]+)\s{2,}", text_of("--help"), re.M))
    faults = [f"docs/CLI.md has no section on `{c}`" for c in sorted(commands - documented)]
    faults += [f"docs/CLI.md describes `{c}`, which zephonc does not have" for c in sorted(documented - commands)]
    offered = set()
    for command in sorted(commands):
        offered |= set(OPTION.findall(text_of(command, "--help")))
    said = set(OPTION.findall(page))
    faults += [f"docs/CLI.md does not name {o}" for o in sorted(offered - said - ALWAYS)]
    faults += [f"docs/CLI.md names {o}, which no command takes" for o in sorted(said - offered - ALWAYS)]
    tests, broken = tests_on_pages()
    faults += broken
    print("\n".join(faults + [f"{len(commands)} commands, {len(offered)} options, {tests} pages of tests, {len(faults)} faults"]))
    return 1 if faults or not offered or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
