#!/usr/bin/env python3
"""editors/ knows the words of the lexer, the element types and the operators of this version, and no others; the
TextMate grammar, by Oniguruma, which is what VS Code runs it with, gives the parts of a program the scopes that they
should have; Vim, where there is one, the groups.

usage: editors_test.py ZEPHONC ROOT
"""
import ctypes
import functools
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


class Region(ctypes.Structure):
    """OnigRegion: where the groups of a match are, in bytes."""
    _fields_ = [("allocated", ctypes.c_int), ("count", ctypes.c_int), ("beg", ctypes.POINTER(ctypes.c_int)),
                ("end_", ctypes.POINTER(ctypes.c_int)), ("history", ctypes.c_void_p)]

    def start(self, group=0):
        return self.beg[group]

    def end(self, group=0):
        return self.end_[group]


class ErrorInfo(ctypes.Structure):
    _fields_ = [("encoding", ctypes.c_void_p), ("begin", ctypes.c_void_p), ("end", ctypes.c_void_p)]


class Pattern:
    """A regular expression compiled by Oniguruma."""
    library = None

    def __init__(self, text):
        if Pattern.library is None:
            Pattern.library = ctypes.CDLL("libonig.so.5")
            Pattern.library.onig_region_new.restype = ctypes.POINTER(Region)
        library = Pattern.library
        self.regex, source, info = ctypes.c_void_p(), text.encode(), ErrorInfo()
        begin = ctypes.cast(ctypes.create_string_buffer(source), ctypes.c_void_p)
        code = library.onig_new(ctypes.byref(self.regex), begin, ctypes.c_void_p(begin.value + len(source)), 0,
                                ctypes.byref(ctypes.c_char.in_dll(library, "OnigEncodingUTF8")),
                                ctypes.c_void_p.in_dll(library, "OnigDefaultSyntax"), ctypes.byref(info))
        if code != 0:
            message = ctypes.create_string_buffer(256)
            library.onig_error_code_to_str(message, code, ctypes.byref(info))
            raise ValueError(f"{text}: {message.value.decode()}")

    def search(self, line, at):
        """The first match in `line` (bytes) from `at` on, or None."""
        library, region = Pattern.library, Pattern.library.onig_region_new()
        buffer = ctypes.create_string_buffer(line)
        begin = ctypes.addressof(buffer)
        begin, at, end = (ctypes.c_void_p(begin + offset) for offset in (0, at, len(line)))
        found = library.onig_search(self.regex, begin, end, at, end, region, 0)
        return region.contents if found >= 0 else None


pattern_of = functools.lru_cache(None)(Pattern)


class TextMate:
    """As much of a TextMate reader as this grammar needs: match, captures, begin and end, include."""

    def __init__(self, grammar):
        self.repository, self.top = grammar["repository"], grammar["patterns"]

    def faults(self):
        """Every regular expression that does not compile, every include that leads nowhere, every unknown key."""
        def walk(rule):
            for key in ("match", "begin", "end"):
                try:
                    if key in rule:
                        pattern_of(rule[key])
                except ValueError as error:
                    yield str(error)
            if "include" in rule and rule["include"][1:] not in self.repository:
                yield f"nothing is called {rule['include']}"
            for key in set(rule) - {"match", "begin", "end", "include", "name", "captures", "patterns"}:
                yield f"a rule has `{key}`, which this test does not read"
            if "begin" in rule and "end" not in rule:
                yield f"{rule['begin']} has no end"
            for inner in rule.get("patterns", ()):
                yield from walk(inner)
        for rule in [{"patterns": self.top}, *self.repository.values()]:
            yield from walk(rule)

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
        return self.read(line)[0]

    def read(self, text):
        """The same, and the scopes that are open at the end of the line."""
        line, out, at, stack = text.encode(), [], 0, [(None, None, self.top)]
        while at <= len(line):
            scope, end, patterns = stack[-1]
            best, rule = None, None
            if end:
                best = pattern_of(end).search(line, at)
            for candidate in self.rules(patterns):
                found = pattern_of(candidate.get("match") or candidate["begin"]).search(line, at)
                if found and found.end() > found.start() and (best is None or found.start() < best.start()):
                    best, rule = found, candidate
            if best is None:
                break
            part = lambda group=0, best=best: line[best.start(group):best.end(group)].decode()
            if rule is None:
                out.append((part(), scope))
                stack.pop()
            elif "match" in rule:
                for number, capture in rule.get("captures", {}).items():
                    out.append((part(int(number)), capture["name"]))
                if "name" in rule:
                    out.append((part(), rule["name"]))
            else:
                out.append((part(), rule["name"]))
                stack.append((rule["name"], rule["end"], rule["patterns"]))
            at = best.end()
        return out, [scope for scope, _, _ in stack[1:]]


# Of each example some lines, as they stand there, and what is seen in them.
EXAMPLES = {
    "imagenet": (
        ('pipeline imagenet(root: path = "data/photos", size: int = 224, mode: enum(train, eval) = train)',
         {"pipeline": "keyword.declaration", "imagenet": "entity.name", "path": "support.type",
          "224": "constant.numeric", "enum": "keyword.control"}),
        ('  files("{root}/*/*.jpg")                   # one sample per file: path, bytes',
         {"files": "entity.name.function", "{": "meta.interpolation",
          "# one sample per file: path, bytes": "comment.line"}),
        ('  | label = classes.index_of(path.parent.name)',
         {"label": "variable.other", "index_of": "entity.name.function", "|": "keyword.operator"}),
        ('  | if mode == train { shuffle() }          # the whole data set, in constant memory',
         {"if": "keyword.control", "==": "keyword.operator", "shuffle": "entity.name.function"}),
        ('  | batch(64, drop_remainder=true)',
         {"drop_remainder": "variable.parameter", "true": "constant.language"})),
    "segmentation": (
        ('    -> {image: f32[4, 3, size, size], mask: u8[4, size, size]} {',
         {"->": "keyword.operator", "f32": "support.type", "4": "constant.numeric"}),
        ('  | mask = u8(mask[:, :, 0] > 127)', {"u8": "support.type", ">": "keyword.operator"}),
        ('  | select image, mask', {"select": "keyword.control"})),
    "signal": (
        ('fn rms(x: f64[n]) = (x * x).mean().sqrt()',
         {"fn": "keyword.declaration", "rms": "entity.name", "f64": "support.type", "sqrt": "entity.name.function"}),
        ('  | filter rms >= least', {"filter": "keyword.control", ">=": "keyword.operator"}),
        ('  records(file, size=2 * window, step=2 * step)       # pieces of a raw file, two bytes a value',
         {"records": "entity.name.function", "size": "variable.parameter"})),
    "table": (
        ('    columns={', {"columns": "variable.parameter"}),
        ('      alcohol: f64,', {"f64": "support.type"}),
        ('        (alcohol - 13.0006) / 0.8095,', {"13.0006": "constant.numeric", "/": "keyword.operator"})),
    "windows": (
        ("zpl 1", {"zpl": "keyword.declaration", "1": "constant.numeric"}),
        ('stream signals = npz("data/ecg.npz", columns={signal: i16[720], second: i64})',
         {"stream": "keyword.declaration", "signals": "entity.name", "columns": "variable.parameter",
          "i16": "support.type"}),
        ('  | name = "{path.stem}-{second.format("03d")}".upper()',
         {"format": "entity.name.function", "upper": "entity.name.function"}),
        ('  | filter name.matches(r"^ECG-\\d{3}$") and second != 58',
         {r'r"^ECG-\d{3}$"': "string.quoted.raw", "and": "keyword.operator.logical"})),
}


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

    reader = TextMate(grammar)
    faults += reader.faults()
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
    for name, lines in EXAMPLES.items():
        text = read("examples", name + ".zpl").splitlines()
        for line, scopes in lines:
            if line not in text:
                faults.append(f"examples/{name}.zpl has no line `{line}` any more")
            for part, scope in scopes.items():
                found = [s for t, s in reader.scopes(line) if t == part]
                if not found or not found[0].startswith(scope):
                    faults.append(f"in `{line}` the part `{part}` is {found or 'nothing'}, not {scope}")
        for number, line in enumerate(text, 1):
            if still_open := reader.read(line)[1]:
                faults.append(f"examples/{name}.zpl:{number}: still open at its end: {still_open}")
    if {name[:-4] for name in os.listdir(os.path.join(ROOT, "examples")) if name.endswith(".zpl")} != set(EXAMPLES):
        faults.append("there are other examples than those that this test reads")
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
