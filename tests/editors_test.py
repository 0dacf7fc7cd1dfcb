#!/usr/bin/env python3
"""editors/ knows the words of the lexer, the element types and the operators of this version, and no others; the
TextMate grammar gives the parts of a program the scopes that they should have; Vim, where there is one, the groups.

usage: editors_test.py ZEPHONC ROOT
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ZEPHONC, ROOT = os.path.abspath(sys.argv[1]), sys.argv[2]


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def words(pattern):
    """The alternatives of a group of words in a regular expression."""
    return {word for group in re.findall(r"\(\?:((?:\w+\|)*\w+)\)", pattern) for word in group.split("|")}


class TextMate:
    """As much of a TextMate reader as this grammar needs: match, captures, begin and end, include."""

    def __init__(self, grammar):
        self.repository, self.top = grammar["repository"], grammar["patterns"]

    def rules(self, patterns):
        for pattern in patterns:
            if "include" in pattern:
                rule = self.repository[pattern["include"][1:]]
                if set(rule) == {"patterns"}:
                    yield from self.rules(rule["patterns"])
                else:
                    yield rule
            else:
                yield pattern

    def scopes(self, line):
        """(text, innermost scope) of each part of a line."""
        out, at, stack = [], 0, [(None, None, self.top)]
        while at < len(line):
            scope, end, patterns = stack[-1]
            best, rule = None, None
            if end:
                best = re.compile(end).search(line, at)
            for candidate in self.rules(patterns):
                found = re.compile(candidate.get("match") or candidate["begin"]).search(line, at)
                if found and found.end() > found.start() and (best is None or found.start() < best.start()):
                    best, rule = found, candidate
            if best is None:
                break
            if rule is None:
                out.append((best.group(), scope))
                stack.pop()
            elif "match" in rule:
                for number, capture in rule.get("captures", {}).items():
                    out.append((best.group(int(number)), capture["name"]))
                if "name" in rule:
                    out.append((best.group(), rule["name"]))
            else:
                out.append((best.group(), rule["name"]))
                stack.append((rule["name"], rule["end"], rule["patterns"]))
            at = best.end()
        return out


def main():
    faults = []

    def compare(what, found, expected):
        for word in sorted(expected - found):
            faults.append(f"{what} does not know `{word}`")
        for word in sorted(found - expected):
            faults.append(f"{what} knows `{word}`, which is none")

    lexer = set(re.findall(r"(?m)^[A-Z]+ +: '([a-z]+)' ;", read("grammar", "ZplLexer.g4")))
    types = set(re.findall(r'X\(\w+, "(\w+)", ', read("graph", "types.h")))
    if not lexer or not types:
        faults.append(f"found {len(lexer)} words and {len(types)} types: this test cannot read the sources")
    grammar = json.loads(read("editors", "vscode", "syntaxes", "zpl.tmLanguage.json"))
    rules = grammar["repository"]
    keywords = set().union(*(words(rules[name]["match"]) for name in ("control", "logic", "constant")), {"zpl"})
    compare("the TextMate grammar", keywords, lexer)
    extra = {"int", "float", "box", "list"}
    compare("the TextMate grammar (types)", words(rules["type"]["match"]) - extra, types)
    compare("the TextMate grammar (casts)", words(rules["cast"]["match"]), types)
    vim = {group: set(names.split()) for group, names in
           re.findall(r"(?m)^syn keyword (\w+) +(.*)$", read("editors", "vim", "syntax", "zpl.vim"))}
    groups = ("zplKeyword", "zplControl", "zplLogic", "zplBoolean")
    compare("the Vim syntax", set().union(*(vim[group] for group in groups)), lexer)
    compare("the Vim syntax (types)", vim["zplType"] - extra, types)

    reader = TextMate({"repository": rules, "patterns": grammar["patterns"]})
    cases = (
        ("zpl 1", "1", "constant.numeric"), ("pipeline photos(n: int = 3)", "photos", "entity.name"),
        ("pipeline photos(n: int = 3)", "int", "support.type"),
        ("  | label = classes.index_of(x)", "label", "variable.other"),
        ("  | label = classes.index_of(x)", "index_of", "entity.name.function"), ("x.select", "select", None),
        ("  | select a, b  # all of them", "select", "keyword.control"), ("  | select a  # if", "if", None),
        ("files(\"{root}/*.jpg\")", "root", None), ("files(\"{f32(x)}\")", "f32", "support.type"),
        ("test \"a\" of b {", "test", "keyword.declaration"), ("enum(train, test)", "test", None),
        ("s = \"a \\n b\"", "\\n", "constant.character.escape"),
        ("r\"C:\\{x}\"", "r\"C:\\{x}\"", "string.quoted.raw"), ("a == b", "==", "keyword.operator"),
        ("batch(64, drop_remainder=true)", "drop_remainder", "variable.parameter"),
        ("batch(64, drop_remainder=true)", "true", "constant.language"),
        ("50_000 + 0.5e-3", "0.5e-3", "constant.numeric"))
    for line, part, scope in cases:
        found = [s for text, s in reader.scopes(line) if text == part]
        if (scope is None and found) or (scope is not None and not (found and found[0].startswith(scope))):
            faults.append(f"in `{line}` the part `{part}` is {found or 'nothing'}, not {scope or 'nothing'}")
    listed = subprocess.run([ZEPHONC, "ops"], capture_output=True, text=True, check=True).stdout
    ops = re.findall(r"(?m)^  (\w+) ", listed)
    for op in ops:
        if op in lexer or op in types:
            continue
        if (op, "entity.name.function.zpl") not in reader.scopes(f"  | x = y.{op}(1)"):
            faults.append(f"`{op}(` is not shown as an operator")
    if len(ops) < 50:
        faults.append(f"`zephonc ops` lists {len(ops)} operators")

    if shutil.which("vim"):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "t.vim")
            with open(script, "w", encoding="utf-8") as file:
                file.write(f"set rtp^={os.path.abspath(os.path.join(ROOT, 'editors/vim'))}\nsyntax on\nset ft=zpl\n"
                           "call setline(1, '  | image = x.resize(3) # if')\n"
                           f"call writefile(map([5, 15, 22, 27], {{_, c -> synIDattr(synID(1, c, 1), 'name')}}), "
                           f"'{folder}/out')\nqa!\n")
            subprocess.run(["vim", "-u", "NONE", "-es", "-N", "-S", script], timeout=30, check=False)
            with open(os.path.join(folder, "out"), encoding="utf-8") as file:
                groups = file.read().splitlines()
            if groups != ["zplField", "zplMethod", "zplNumber", "zplComment"]:
                faults.append(f"Vim groups: {groups}")
    print("\n".join(faults + [f"{len(lexer)} words, {len(types)} types, {len(ops)} operators, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
