#!/usr/bin/env python3
"""Holds the include direction to tests/layers.txt and prints every edge that offends.

usage: layers_test.py [ROOT]
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# The first part of a library's header path -> the name that layers.txt uses.
LIBRARIES = {
    "antlr4-runtime": "ANTLR", "antlr4-runtime.h": "ANTLR", "ZplLexer.h": "ANTLR", "ZplParser.h": "ANTLR",
    "ZplParserBaseListener.h": "ANTLR", "ZplParserBaseVisitor.h": "ANTLR", "ZplParserVisitor.h": "ANTLR",
    "yaml-cpp": "YAML", "llvm": "LLVM", "llvm-c": "LLVM", "tbb": "TBB", "oneapi": "TBB", "fmt": "FMT",
    "xxhash.h": "XXHASH", "xxh_x86dispatch.h": "XXHASH",
    "jpeglib.h": "JPEG", "jerror.h": "JPEG", "jpegint.h": "JPEG", "turbojpeg.h": "JPEG",
    "png.h": "PNG", "CLI": "CLI", "nlohmann": "JSON", "gtest": "GTEST", "gmock": "GTEST", "mpfr.h": "MPFR",
    "zlib.h": "ZLIB", "zstd.h": "ZSTD", "pcre2.h": "PCRE2", "utf8proc.h": "UTF8PROC", "simdjson.h": "SIMDJSON",
}
# The C++ library (no dot), and what we use of C and POSIX.
SYSTEM = re.compile(r"^[a-z_0-9]+$|^(sys|linux)/|^(unistd|fcntl|signal|sched|pthread|dirent|errno|poll|time|stdio|"
                    r"stdlib|string|stdint|stddef|setjmp|math|immintrin|cpuid|execinfo|dlfcn|link|termios|malloc|"
                    r"spawn|limits|cxxabi|elf)\.h$")


def read_table(path):
    folders, allowed = [], {}
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        folder = re.match(r"# @ (\w+)\s+(\S+)$", line)
        edge = re.match(r"(\w+)\s*->\s*(.*\S)\s*$", line)
        if folder:
            folders.append((folder[2] + "/", folder[1]))
        elif edge and not line.startswith("#"):
            allowed[edge[1]] = {name.strip() for name in edge[2].split(",")} | {edge[1]}
        elif line.strip() and not line.startswith("#"):
            sys.exit(f"{path}:{number}: neither a folder nor an edge: {line.rstrip()}")
    folders.sort(key=lambda f: -len(f[0]))  # the longest prefix decides
    return folders, allowed


def source_files(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, check=False).stdout.split("\n")
    if not any(listed):  # not a git checkout
        listed = [os.path.relpath(os.path.join(d, f), root) for d, _, names in os.walk(root) for f in names]
    return sorted(f for f in listed if f.endswith((".h", ".cpp")) and os.path.isfile(os.path.join(root, f)))


def faults_of(root, folders, allowed):
    """-> (number of edges seen, one line per offending edge)."""
    layer_of = lambda path: next((layer for prefix, layer in folders if path.startswith(prefix)), None)
    faults, edges = [], 0
    for name in source_files(root):
        layer = layer_of(name)
        if layer is None:
            continue
        for number, line in enumerate(open(os.path.join(root, name), encoding="utf-8"), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            quote, target = found.groups()
            if quote == '"' and os.path.isfile(os.path.join(root, target)):
                to = layer_of(target) or target.split("/")[0]
            else:
                to = LIBRARIES.get(target.split("/")[0])
                if to is None and quote == "<" and SYSTEM.match(target):
                    continue
                if to is None:
                    faults.append(f"{name}:{number}: `{target}` is neither a file of ours, named from the root, nor of "
                                  "a library that tests/layers_test.py knows")
                    continue
            edges += 1
            if to not in allowed[layer] and "everything" not in allowed[layer]:
                faults.append(f"{name}:{number}: {layer} -> {to} by `{target}`; tests/layers.txt allows {layer} -> "
                              + ", ".join(sorted(allowed[layer] - {layer})))
    return edges, faults


def self_test(folders, allowed):
    """A planted edge must be found, or the silence of this test means nothing."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {"optimizer/a.cpp": '#include "runtime/flow/b.h"\n', "runtime/flow/b.h": "\n",
                           "frontend/c.cpp": "#include <llvm/IR/Module.h>\n"}.items():
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
        _, faults = faults_of(root, folders, allowed)
        return len(faults) == 2 and "optimizer -> flow" in faults[1] and "frontend -> LLVM" in faults[0]


def main():
    folders, allowed = read_table(os.path.join(ROOT, "tests", "layers.txt"))
    if not self_test(folders, allowed):
        sys.exit("layers_test.py does not see a planted fault")
    edges, faults = faults_of(ROOT, folders, allowed)
    for fault in faults:
        print(fault)
    print(f"{edges} edges, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
