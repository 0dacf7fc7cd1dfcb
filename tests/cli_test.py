#!/usr/bin/env python3
"""Drives zephonc as a person does: help, exit codes, hostile programs and data, output, signals, resuming, ranks.

usage: cli_test.py ZEPHONC [TEST...]
ZEPHON_BLESS=1 rewrites the golden texts: tests/cli/*.txt, ops/OPS.md.
"""
import functools
import gzip
import json
import os
import pty
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
ZEPHONC = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(ROOT, "build/dev/zephonc/zephonc")
PHOTOS = os.path.join(ROOT, "examples/data/photos")
BLESS = bool(os.environ.get("ZEPHON_BLESS"))
os.environ["ZEPHON_MEASURED"] = "off"  # what lies on this disk decides no plan of a test
COUNT = "zpl 1\npipeline p(n: int = 100) { range(n) | x = index * 3 + 1 | batch(8) }\n"
PICTURES = ('zpl 1\npipeline p(root: path) { files("{root}/*.jpg") | image = bytes.decode_image(mode="rgb")'
            ' | select image }\n')
DECODE = ('zpl 1\npipeline p(root: path) { files("{root}/*.jpg") | image = bytes.decode_image(mode="rgb")'
          ' | mean = f32(image).mean() | select path, mean }\n')


def photos():
    return sorted(os.path.join(d, f) for d, _, names in os.walk(PHOTOS) for f in names if f.endswith(".jpg"))


class Outcome:
    def __init__(self, args, done):
        self.args, self.code, self.out, self.err = args, done.returncode, done.stdout, done.stderr

    def __str__(self):
        return f"$ zephonc {' '.join(map(str, self.args))}\n{self.out}\n{self.err}\n-> {self.code}"


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="zephon-cli-")
        self.addCleanup(shutil.rmtree, self.dir, True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def zephonc(self, *args, timeout=120, **options):
        done = subprocess.run([ZEPHONC, *map(str, args)], stdout=options.pop("stdout", subprocess.PIPE),
                              stderr=subprocess.PIPE, cwd=options.pop("cwd", self.dir), timeout=timeout, text=True,
                              errors="replace", **options)
        return Outcome(args, done)

    def expect(self, code, *args, says=(), silent=(), **options):
        outcome = self.zephonc(*args, **options)
        self.assertEqual(outcome.code, code, str(outcome))
        for pattern in [says] if isinstance(says, str) else says:
            self.assertRegex(outcome.err + (outcome.out or ""), pattern, str(outcome))
        for pattern in [silent] if isinstance(silent, str) else silent:
            self.assertNotRegex(outcome.err + (outcome.out or ""), pattern, str(outcome))
        return outcome

    def program_fails(self, text, code, name="bad.zpl"):
        """`check` and `run` both refuse, with the code, and in little time."""
        path = self.write(name, text)
        for command in ("check", "run"):
            start = time.monotonic()
            self.expect(1, command, path, says=code)
            self.assertLess(time.monotonic() - start, 20)

    def digest(self, *args):
        return self.expect(0, "run", *args, "--digest").out.strip()

    def golden(self, name, text):
        path = os.path.join(ROOT, name)
        if BLESS:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        self.assertTrue(os.path.exists(path), f"{name} is missing; ZEPHON_BLESS=1 makes it")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), text, f"{name} differs; ZEPHON_BLESS=1 rewrites it")


class Help(Case):
    COMMANDS = ("run", "check", "plan", "show", "where", "scan", "stats", "ir", "verify", "test", "fmt",
                "convert", "init", "manifest", "calibrate", "ops", "rules", "explain", "completion", "man")

    def test_texts(self):
        self.golden("tests/cli/help.txt", self.expect(0, "--help").out)
        for command in self.COMMANDS:
            self.golden(f"tests/cli/help_{command}.txt", self.expect(0, command, "--help").out)

    def test_version(self):
        self.assertRegex(self.expect(0, "--version").out, r"^zephonc \d+\.\d+\.\d+\n$")

    def test_reference_pages(self):
        self.golden("ops/OPS.md", self.expect(0, "ops", "--markdown").out)

    def test_names(self):
        self.expect(0, "ops", "resize", says="resize")
        self.expect(64, "ops", "resise", says="did you mean `resize`")
        self.expect(64, "rules", "fuse_kernel", says="did you mean `fuse_kernels`")
        self.expect(0, "explain", "E0203")
        self.expect(64, "explain", "E9999", says="no diagnostic")


class Rewrite(Case):
    MESSY = "# head\nzpl 1\npipeline p(n:int=10){range(n)  # source\n|x=index*2|filter(x>3)|batch(2)}\n"
    SEVERAL = "zpl 1\nlet k = 2\npipeline one { range(4) | x = index * k }\npipeline two { range(8) | x = index * k }\n"

    def test_fmt(self):
        path = self.write("p.zpl", self.MESSY)
        os.chmod(path, 0o640)
        digest = self.expect(0, "run", path, "--digest").out
        self.expect(1, "fmt", "--check", path, says="p.zpl: would be laid out otherwise")
        self.assertEqual(self.read("p.zpl").decode(), self.MESSY)
        self.expect(0, "fmt", path, says="^formatted .*p.zpl\n$")
        self.expect(0, "fmt", path, silent="formatted")
        text = self.read("p.zpl").decode()
        self.assertIn("  range(n)  # source\n  | x = index * 2\n", text)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o640)
        self.expect(0, "fmt", "--check", path)
        self.assertEqual(self.expect(0, "run", path, "--digest").out, digest)
        broken = self.write("broken.zpl", "range(3) | | x\n")
        self.expect(1, "fmt", path, broken, says="expected a pipeline step")
        self.assertEqual(self.read("broken.zpl").decode(), "range(3) | | x\n")
        self.expect(64, "fmt", says="needs a FILE")
        self.expect(1, "fmt", self.path("none.zpl"), says="cannot read")

    def test_convert(self):
        path, there = self.write("p.zpl", self.MESSY), self.path("q.yaml")
        self.expect(0, "fmt", path)
        self.expect(0, "convert", path, "-o", there)
        self.assertIn("# source", self.read("q.yaml").decode())
        self.assertEqual(self.expect(0, "convert", there).out, self.read("p.zpl").decode())
        for name in ("p.zpl", "q.yaml"):
            self.expect(0, "run", self.path(name), "--manifest", self.path(name + ".json"))
        one, two = (json.loads(self.read(n + ".json")) for n in ("p.zpl", "q.yaml"))
        self.assertEqual(one.get("program_fingerprint"), two.get("program_fingerprint"))
        self.expect(1, "convert", self.write("b.yaml", "zpl: 1\nsteps: 3\n"), says="a pipeline is a list")
        twice = self.write("twice.zpl", "zpl 1\npipeline p { let b = 1\nlet b = 2\nrange(b) }\n")
        self.expect(1, "convert", twice, says="declares a name twice")

    def test_tests(self):
        program = ("zpl 1\nfn double(x) = x * 2\nstream numbers = range(10) | w = f32(index) / 4\n"
                   "pipeline train(size: int = 4) { numbers | x = double(index) | filter x % 3 != 0 | batch(size) }\n"
                   "pipeline words { csv(\"a.csv\", columns={a: str, b: f32}) | c = \"{a}!\" | d = b * 2 }\n")
        good = ("test \"drops\" of train { params: {size: 2} input: [{index: 1}, {index: 3}, {index: 2}]\n"
                "  expect: {x: [2, 4]} }\n"
                "test \"stream\" of numbers { input: {index: 3} expect: {w: 0.75, index: 3} }\n"
                "test \"words\" of words { input: [{a: \"x\", b: 0.1}, {a: \"y\", b: 1}]\n"
                "  expect: [{c: \"x!\", d: 0.2}, {c: \"y!\", d: 2}] }\n"
                "test \"over\" of train { input: {index: 9_000_000_000_000_000_000} fails \"overflow\" }\n"
                "test \"double\" { check double(3) == 6 check double(0.5) == 1 }\n")
        path = self.write("good.zpl", program + good)
        self.assertIn("5 of 5 tests hold", self.expect(0, "test", path).out)
        there = self.path("good.yaml")
        self.expect(0, "convert", path, "-o", there)
        self.assertIn("5 of 5 tests hold", self.expect(0, "test", there).out)
        for bad, says in (
                ("test \"a\" of train { input: {index: 1} expect: {x: 3} }",
                 "record 1 is not what is expected"),
                ("test \"a\" of numbers { input: {index: 1} expect: {w: 1} }",
                 "+++ delivered\nrecord 1\n  w: f32\n    - 1\n    + 0.25\n"),
                ("test \"a\" of numbers { input: {index: 1} expect: [] }",
                 "0 records are expected, and 1 delivered"),
                ("test \"a\" of numbers { input: {index: 1} expect: {y: 1} }", "`y` is not delivered"),
                ("test \"a\" of nobody { input: {index: 1} expect: {y: 1} }",
                 "no pipeline or stream is called `nobody`"),
                ("test \"a\" { input: {index: 1} expect: {y: 1} }", "does not say what it tests"),
                ("test \"a\" of train { input: {index: 1} fails \"over\" }", "and nothing fails"),
                ("test \"a\" { check double(2) == 5 }", "the condition is false"),
                ("test \"a\" { check double(2) }", "`check` needs `bool`"),
                ("test \"a\" of words { input: [{a: \"x\"}, {b: 1}] expect: {c: \"x\"} }", "the sample gives no `a`"),
                ("test \"a\" of train { params: {n: 2} input: {index: 1} expect: {x: [2]} }", "has no parameter `n`")):
            self.expect(1, "test", self.write("bad.zpl", program + bad + "\n"), says=re.escape(says))
        self.expect(64, "test", self.write("none.zpl", program), says="has no tests")

    def test_input_without_a_field_of_the_source(self):
        pipeline = ('zpl 1\npipeline p(root: path = "in") {\n  files("{root}/*.jpg") | n = bytes.decode_raw(u8, 5)'
                    ' | name = path.name | select n, name\n}\n')
        self.write("in/a.jpg", b"12345")
        self.write("t.zpl", pipeline + 'test "t" { input: {path: "in/a.jpg"} expect: {n: [49, 50, 51, 52, 53], name: "a.jpg"} }\n')
        self.expect(1, "test", "t.zpl", says=["the test gives no field `bytes`", r"t\.zpl:5:19", "needed here",
                                              r"add `bytes: read_file\(path\)` to the input"])
        self.write("t.zpl", pipeline + 'test "t" { input: {path: "in/a.jpg", bytes: read_file(path)}'
                                       ' expect: {n: [49, 50, 51, 52, 53], name: "a.jpg"} }\n')
        self.expect(0, "test", "t.zpl", says="1 of 1 tests hold")
        self.write("t.zpl", pipeline.replace("path.name", "pfad.name") +
                   'test "t" { input: {path: "in/a.jpg", bytes: read_file(path)} expect: {name: "a.jpg"} }\n')
        self.expect(1, "test", "t.zpl", says=["E0200", "pfad"], silent="the test gives no")

    def test_what_differs(self):
        """The diff of a test that fails, and where it points."""
        program = ("zpl 1\npipeline only { range(10) | x = index * 2 | select x | batch(2) }\n"
                   "pipeline each { range(10) | v = [[index, 1, 2], [3, 4, 5]] | s = \"n{index}\" | select v, s }\n"
                   "pipeline wide { range(10) | t = \"a long text that ends in {index}, and goes on for some {index} more\""
                   " | z = [(0 - f32(index)) * 0, 1] | select t, z }\n"
                   "pipeline big { range(10) | v = index.one_hot(1000) | select v }\n")
        good = ("test \"values\" of only { input: [{index: 1}, {index: 2}, {index: 3}] expect: [[2, 4], [6]] }\n"
                "test \"one\" of only { input: [{index: 1}, {index: 2}] expect: [2, 4] }\n"
                "test \"big\" of big { input: {index: 1} expect: {v: 1.one_hot(1000)} }\n")
        path = self.write("good.zpl", program + good)
        self.assertIn("3 of 3 tests hold", self.expect(0, "test", path).out)
        self.expect(0, "convert", path, "-o", self.path("good.yaml"))
        self.assertIn("3 of 3 tests hold", self.expect(0, "test", self.path("good.yaml")).out)
        for test, says in (
                ("only { input: [{index: 1}, {index: 2}, {index: 3}]\n expect: [[2, 4],\n  [7]] }",
                 ["bad.zpl:8:4", "record 2 is not what is expected", "`x` differs",
                  "--- expected\n+++ delivered\nrecord 2\n  x: i64[1]\n    - [0]  7\n    + [0]  6\n"]),
                ("each { input: {index: 0} expect: {v: [[0, 1, 2],\n [3, 4, 6]], s: \"n1\"} }",
                 ["bad.zpl:7:9", "  v: i64[2, 3], 1 of 6 elements differs\n      [1, 1]  4\n    - [1, 2]  6\n"
                  "    + [1, 2]  5\n  s: str\n    - \"n1\"\n    + \"n0\"\n"]),
                ("each { input: {index: 0} expect: {v: [0, 1]} }",
                 ["bad.zpl:6:50", "`v` is delivered as i64[2, 3]", "    - i64[2] 0, 1\n    + i64[2, 3] 0, 1, 2, 3, 4, 5\n"]),
                ("wide { input: {index: 3} expect: {t: \"a long text that ends in 3, and goes on for some 4 more\"} }",
                 ["    - \"a long text that ends in 3, and goes on for some 4 more\"\n"]),
                ("wide { input: {index: 3} expect: {z: [0, 1]} }",
                 ["    - [0]  0\n    + [0]  -0\n      [1]  1\n"]),
                ("big { input: {index: 1} expect: {v: 1 - 1.one_hot(1000)} }",
                 ["1,000 of 1,000 elements differ", "    - [7]  1\n    + [7]  0\n      and 992 more\n"]),
                ("only { input: [{index: 1}, {index: 2}, {index: 3}] expect: [2, 4] }",
                 ["bad.zpl:6:64", "1 record is expected, and 2 delivered", "+ record 2\n+   x: i64[1] 6\n"]),
                ("only { input: {index: 1} expect: [[2],\n [4]] }",
                 ["bad.zpl:7:2", "2 records are expected, and 1 delivered", "- record 2\n-   x: i64[1] 4\n"]),
                ("each { input: {index: 1} expect: [4] }",
                 ["bad.zpl:6:46", "the values are of no field, and 2 are delivered: `v`, `s`",
                  "name the fields, for example `expect: {v: ...}`"])):
            with self.subTest(test=test):
                self.expect(1, "test", self.write("bad.zpl", program + "test \"a\" of " + test + "\n"),
                            says=[re.escape(text) for text in says])

    def test_several_pipelines(self):
        path = self.write("s.zpl", self.SEVERAL)
        self.expect(1, "run", path, says="has 2 pipelines: `one`, `two`")
        two = self.expect(0, "run", path + ":two", "--digest").out
        self.assertEqual(self.expect(0, "run", path, "--pipeline", "two", "--digest").out, two)
        self.assertNotEqual(self.expect(0, "run", path + ":one", "--digest").out, two)
        self.expect(1, "run", path + ":tow", says="did you mean `two`")
        checked = self.expect(0, "check", path).out
        self.assertIn("pipeline one", checked)
        self.assertIn("pipeline two", checked)

    def test_imports(self):
        self.write("lib/f.zpl", "zpl 1\nfn double(x) = x * 2\nstream t = csv(\"t.csv\", columns={a: i64})\n")
        self.write("lib/t.csv", "a\n1\n2\n")
        path = self.write("p.zpl", 'import "lib/f.zpl" as lib\nlib.t | b = lib.double(a)\n')
        self.write("t.csv", "a\n9\n")
        here = self.expect(0, "run", path, "--digest").out
        flat = self.write("q.zpl", 'stream t = csv("lib/t.csv", columns={a: i64})\nt | b = a * 2\n')
        self.assertEqual(self.expect(0, "run", flat, "--digest").out, here)
        self.expect(0, "verify", path)
        self.write("lib/f.zpl", "zpl 1\nfn double(x) = x + y\nstream t = csv(\"t.csv\", columns={a: i64})\n")
        self.expect(1, "run", path, says="lib/f.zpl:2:20")


class Shells(Case):
    """Completion and the manual page: made of the same declarations as --help."""

    def options(self):
        out = {}
        for command in Help.COMMANDS:
            text = self.expect(0, command, "--help").out
            out[command] = set(re.findall(r"(?m)^  (?:-\w,)?(--[a-z-]+)", text)) - {"--help"}
        return out

    PROGRAM = ("zpl 1\npipeline p(root: path, size: int = 3, mode: enum(train, eval) = train) {"
               " range(3) }\n")

    def files(self):
        """A folder to complete in; `zephonc` is found on the path, as completions call it."""
        self.write("my pipe.zpl", self.PROGRAM)
        self.write("other.txt", "")
        self.write("q.yaml", "zpl: 1\nparams: {many: int}\nsteps:\n  - range: 3\n")
        os.mkdir(self.path("data"))
        os.makedirs(self.path("bin"))
        os.symlink(ZEPHONC, self.path("bin/zephonc"))
        return dict(os.environ, PATH=self.path("bin") + ":" + os.environ["PATH"], HOME=self.dir, TERM="xterm")

    def in_zsh(self, env, lines):
        """What zsh offers for the last word of each line, by its own completion in an interactive shell."""
        self.write("functions/_zephonc", self.expect(0, "completion", "zsh").out)
        self.write("setup.zsh", """PROMPT= RPROMPT= fpath=($PWD/functions $fpath)
autoload -Uz compinit && compinit -u -d $PWD/dump
# Tells what is offered; what is only filtered on the way (-O, -A, -D) is no offer.
compadd() {
  if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]]; then
    local -a told
    builtin compadd -A told "$@"
    print -rl -- $told >>offered
  fi
  builtin compadd "$@"
}
tell() { zle complete-word; : >done; }
zle -N tell && bindkey '^I' tell
: >ready
""")
        return self.in_terminal(env, ["zsh", "-f", "-i"], "setup.zsh", lines)

    def in_bash(self, env, lines):
        self.write("setup.bash", "PS1=\n" + self.expect(0, "completion", "bash").out + """
tell() { _zephonc; printf '%s\\n' "${COMPREPLY[@]-}" >offered; : >done; }
complete -F tell zephonc
: >ready
""")
        return self.in_terminal(env, ["bash", "--norc", "-i"], "setup.bash", lines)

    def in_terminal(self, env, shell, setup, lines):
        """`setup` makes a tab tell what is offered in the file `offered`, then make the file `done`."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execvpe(shell[0], shell, env)
        shown = []
        drain = threading.Thread(target=self.drain, args=(terminal, shown), daemon=True)
        drain.start()

        def type_in(text, flag):
            os.write(terminal, text.encode())
            deadline = time.monotonic() + 60
            while not os.path.exists(self.path(flag)):
                self.assertLess(time.monotonic(), deadline, b"".join(shown))
                time.sleep(0.01)
            os.remove(self.path(flag))

        type_in(f"source ./{setup}\n", "ready")
        out = []
        for line in lines:
            self.write("offered", "")
            type_in(line + "\t", "done")
            out.append({word for word in self.read("offered").decode().split("\n") if word})
            os.write(terminal, b"\x15")  # an empty line again
        os.write(terminal, b"exit\n")
        os.waitpid(pid, 0)
        drain.join(60)  # before the number of its file is free for another, whose bytes it would take
        os.close(terminal)
        return out

    @staticmethod
    def drain(terminal, shown):
        try:
            while part := os.read(terminal, 65536):
                shown.append(part)
        except OSError:
            pass

    def in_fish(self, env, lines):
        script = self.write("zephonc.fish", self.expect(0, "completion", "fish").out)
        out = []
        for line in lines:
            done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C {json.dumps(line)}"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.dir, env=env, text=True,
                                  timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            out.append({offered.split("\t")[0] for offered in done.stdout.splitlines()})
        return out

    SHELLS = (("bash", in_bash), ("zsh", in_zsh), ("fish", in_fish))
    # What stands on the line, what must be offered for its last word, and what must not.
    LINES = (("zephonc sh", {"show"}, {"run"}),
             ("zephonc ", {"run", "check", "completion"}, set()),
             ("zephonc run my\\ pipe.zpl s", {"size=", "seed="}, {"mode=train"}),
             ("zephonc run my\\ pipe.zpl m", {"mode=train", "mode=eval"}, {"size="}),
             ("zephonc run q.yaml ma", {"many="}, {"seed="}),
             ("zephonc run my\\ pipe.zpl --forma", {"--format"}, {"--epochs"}),
             ("zephonc run my\\ pipe.zpl --format ", {"npy", "tar", "jsonl"}, set()),
             ("zephonc plan q.yaml --stage p", {"physical"}, {"optimized"}),
             ("zephonc run q", {"q.yaml"}, {"other.txt"}),
             ("zephonc run q.yaml --manifest o", {"other.txt"}, set()),
             ("zephonc run --threads 2 --no-optimize q", {"q.yaml"}, {"seed="}),
             ("zephonc run --threads 2 --no-optimize q.yaml m", {"many="}, {"my pipe.zpl"}),
             ("zephonc run --threads=2 q.yaml m", {"many="}, set()),
             ("zephonc run --format ", {"npy"}, {"q.yaml"}),
             ("zephonc convert q.yaml -o oth", {"other.txt"}, set()),
             ("zephonc ops random_resized_crop_", {"random_resized_crop_box"}, {"resize"}),
             ("zephonc explain W030", {f"W030{i}" for i in range(6)}, {"E0100"}))

    def test_lines_in_every_shell(self):
        env = self.files()
        for shell, ask in self.SHELLS:
            if not shutil.which(shell):
                continue
            for (line, wanted, unwanted), found in zip(self.LINES, ask(self, env, [line for line, _, _ in self.LINES])):
                with self.subTest(shell=shell, line=line):
                    self.assertLessEqual(wanted, {word.strip("'") for word in found}, found)
                    self.assertFalse(unwanted & found, found)

    def complete(self, *words):
        """What bash offers for the last word."""
        script = self.write("completion.bash", self.expect(0, "completion", "bash").out)
        line = " ".join(f"'{word}'" for word in ("zephonc",) + words)
        run = (f"set -u; zephonc() {{ '{ZEPHONC}' \"$@\"; }}; source '{script}'\n"
               f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _zephonc 2>/dev/null\n"
               'printf "%s\\n" "${COMPREPLY[@]-}"')
        done = subprocess.run(["bash", "--norc", "-c", run], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=self.dir, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split("\n")[:-1]

    def test_every_option_in_every_shell(self):
        options = self.options()
        self.assertIn("--epochs", options["run"])
        for shell, form in (("bash", "{}"), ("zsh", "'{}"), ("fish", "-l {} ")):
            script = self.expect(0, "completion", shell).out
            for command, names in options.items():
                self.assertIn(command, script)
                for name in names:
                    text = form.format(name[2:] if shell == "fish" else name)
                    self.assertIn(text, script, f"{shell}: {command} {name}")
            if shutil.which(shell):
                path = self.write(f"c.{shell}", script)
                done = subprocess.run([shell, "-n", path], stderr=subprocess.PIPE, cwd=self.dir, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)
        self.expect(64, "completion", says="which shell")
        self.expect(64, "completion", "csh", says="bash, zsh, fish")

    def test_bash(self):
        self.files()
        shutil.rmtree(self.path("bin"))
        self.assertEqual(self.complete("sh"), ["show"])
        self.assertIn("run", self.complete(""))
        self.assertEqual(self.complete("run", ""), ["data", "my pipe.zpl", "q.yaml"])
        self.assertEqual(self.complete("run", "my pipe.zpl", "s"), ["size=", "seed="])
        self.assertEqual(self.complete("run", "my pipe.zpl", "m"), ["mode=train", "mode=eval"])
        self.assertEqual(self.complete("run", "q.yaml", "ma"), ["many="])
        self.assertEqual(self.complete("run", "my pipe.zpl", "root", "=", "da"), ["data"])
        self.assertEqual(self.complete("run", "my pipe.zpl", "--forma"), ["--format"])
        self.assertEqual(self.complete("run", "my pipe.zpl", "--format", ""), ["npy", "tar", "jsonl"])
        self.assertEqual(self.complete("plan", "my pipe.zpl", "--stage", "p"), ["physical"])
        self.assertEqual(self.complete("run", "my pipe.zpl", "--out", ""), ["data"])
        self.assertIn("other.txt", self.complete("run", "my pipe.zpl", "--manifest", ""))
        self.assertEqual(self.complete("ops", "random_resized_crop_"), ["random_resized_crop_box"])
        self.assertEqual(self.complete("explain", "W030"), [f"W030{i}" for i in range(9)])
        self.write("broken.zpl", "zpl 1 pipeline (")
        self.assertEqual(self.complete("run", "broken.zpl", ""), ["seed="])

    def test_manual_page(self):
        page = self.expect(0, "man").out
        self.golden("man/zephonc.1", page)
        self.write("zephonc.1", page)
        for command, names in self.options().items():
            section = page.split(f'.SS "zephonc {command}')[1].split(".SS")[0]
            for name in names:
                self.assertIn("\\fB" + name.replace("-", "\\-"), section, f"{command} {name}")
        for checker in (["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", "zephonc.1"],
                        ["groff", "-man", "-ww", "-z", "zephonc.1"],
                        ["mandoc", "-Tlint", "-W", "warning", "zephonc.1"]):
            if not shutil.which(checker[0]):
                continue
            done = subprocess.run(checker, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=self.dir, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), checker)


class Usage(Case):
    def test_usage_errors(self):
        self.write("p.zpl", COUNT)
        for args, says in (
                ([], "a command is required"), (["rnu"], "did you mean `run`"), (["run"], "FILE is required"),
                (["run", "p.zpl", "--epcohs", "2"], "did you mean `--epochs`"), (["run", "p.zpl", "n"], "param=value"),
                (["run", "p.zpl", "--rank", "2", "--world-size", "2"], "world-size"),
                (["run", "p.zpl", "--take", "-1"], "at least 0"),
                (["run", "p.zpl", "--format", "csv"], "npy, tar, jsonl"),
                (["run", "p.zpl", "--disable", "fuse_kernel"], "did you mean `fuse_kernels`"),
                (["run", "p.zpl", "--relax", "fastdct"], "relaxation"),
                (["run", "p.zpl", "--memory", "12Q"], "--memory: needs a size such as 256M or 2G, not `12Q`"),
                (["run", "p.zpl", "--memory", "abc"], "--memory: needs a size such as 256M or 2G, not `abc`"),
                (["run", "p.zpl", "--memory", "0"], "needs a size"), (["run", "p.zpl", "--memory", "-1M"], "needs a size"),
                (["run", "p.zpl", "--memory"], "--memory needs a value: --memory SIZE"),
                (["run", "p.zpl", "--digest=maybe"], "--digest takes no value"),
                (["run", "p.zpl", "--epochs", "1.5"], "--epochs: needs a whole number of at least 1, not `1.5`"),
                (["run", "p.zpl", "--threads", "99999"], "--threads: needs a whole number from 1 to 1024, not `99999`"),
                (["run", "p.zpl", "--threads", "two"], "--threads: needs a whole number from 1 to 1024, not `two`"),
                (["run", "p.zpl", "--sheet", "s.jpg"], r"--sheet s\.jpg: a sheet is a PNG file, not `\.jpg`"),
                (["run", "p.zpl", "--sheet", "sheet"], "a name that ends in .png"),
                (["run", "p.zpl", "--format", "npy"], "--format npy is of --out: .*--out DIR")):
            with self.subTest(args=args):
                self.expect(64, *args, says=says)

    def test_program_errors(self):
        self.write("p.zpl", COUNT)
        self.expect(1, "run", "nowhere.zpl", says="nowhere.zpl")
        self.expect(1, "run", "p.zpl", "n=ten", says="E0210")
        self.expect(1, "run", "p.zpl", "m=10", says="E0210")
        self.expect(1, "check", self.dir, says="zephonc-|zephon-cli")

    def test_success_is_quiet_on_standard_output(self):
        self.write("p.zpl", COUNT)
        outcome = self.expect(0, "run", "p.zpl")
        self.assertEqual(outcome.out, "")
        self.assertEqual(outcome.err.count("\n"), 1, outcome.err)
        self.assertRegex(outcome.err, r"100 samples.*13 batches")

    def test_json_is_one_object(self):
        self.write("p.zpl", COUNT)
        outcome = self.expect(0, "run", "p.zpl", "--json", "--digest")
        report = json.loads(outcome.out)
        for key in ("samples", "batches", "seconds", "startup_seconds", "steady_seconds", "samples_per_second",
                    "cpu_seconds", "peak_rss", "base_rss", "digest", "errors", "plan_hash", "operators"):
            self.assertIn(key, report)
        self.assertEqual((report["samples"], report["batches"]), (100, 13))
        self.assertEqual(report["digest"], self.digest("p.zpl"))
        for operator in report["operators"]:
            for key in ("name", "line", "samples", "bytes_out", "cpu_seconds", "wait_seconds"):
                self.assertIn(key, operator)

    def test_memory_is_a_limit(self):
        example = os.path.join(ROOT, "examples/imagenet.zpl")
        for budget in (128, 256):
            report = json.loads(self.expect(0, "run", example, "--epochs", 4, "--memory", f"{budget}M", "--json").out)
            self.assertEqual(report["samples"], 256)
            self.assertLessEqual(report["peak_rss"] - report["base_rss"], budget << 20)

    def test_memory_is_a_limit_where_sizes_are_known_late(self):
        for name in photos()[:8]:
            shutil.copy(name, self.path(os.path.basename(name)))
        self.write("p.zpl", 'files("*.jpg") | image = bytes.decode_image() | select image')
        whole = self.digest("p.zpl")
        for budget in (6 << 20, 8 << 20):
            outcome = self.expect(0, "run", "p.zpl", "--memory", budget, "--json", "--digest")
            report = json.loads(outcome.out)
            self.assertEqual(report["digest"], whole)
            self.assertLessEqual(report["peak_in_flight"], budget)
        with open(self.path("big.bin"), "wb") as file:
            file.truncate(200 << 20)
        self.write("b.zpl", 'files("*.bin") | n = bytes.byte_length() | select n')
        outcome = self.expect(2, "run", "b.zpl", "--memory", "50M", "--json", says=["R0504", r"big\.bin", "--memory"])
        report = json.loads(outcome.out)
        self.assertLess(report["peak_rss"] - report["base_rss"], 50 << 20)
        enough = re.search(r"--memory (\d+M) would do", outcome.err)[1]
        report = json.loads(self.expect(0, "run", "b.zpl", "--memory", enough, "--json").out)
        self.assertEqual(report["samples"], 1)

    def test_the_resident_set_is_within_the_budget(self):
        with open(ZEPHONC, "rb") as file:
            if b"__asan_init" in file.read():
                self.skipTest("the sanitizer keeps what is freed")
        self.write("p.zpl", "zpl 1\npipeline p(root: path) { files(\"{root}/*/*.jpg\") | shuffle()"
                            " | image = bytes.decode_image(mode=\"rgb\").random_resized_crop(224, 224).to_chw()"
                            " | select image | batch(4) }\n")
        for threads in (1, 2, 8):
            for budget in (16, 32):
                report = json.loads(self.expect(0, "run", "p.zpl", f"root={PHOTOS}", "--epochs", 6, "--threads", threads,
                                                "--memory", f"{budget}M", "--json").out)
                self.assertLessEqual(report["peak_rss"] - report["base_rss"], budget << 20, (threads, budget))

    def test_a_chain_of_a_thousand_functions(self):
        chain = "".join(f" | x{i + 1} = x{i}.sin() + x{i} * x{i}.cos()\n" for i in range(300))
        self.write("p.zpl", "range(5) | x0 = f64(index)\n" + chain + " | select x300")
        digest = self.expect(0, "run", "p.zpl", "--digest", timeout=120).out
        self.assertEqual(self.expect(0, "run", "p.zpl", "--digest", "--reference").out, digest)

    def test_pictures_without_a_pixel(self):
        for part in ("[0:0]", "[:, 0:0]", "[:, :, 0:0]"):
            self.write("p.zpl", f'zpl 1\npipeline p(root: path) {{ files("{{root}}/**/*.jpg") | take(3) | a = decode_image(bytes){part}'
                                " | select a }\n")
            digest = self.expect(0, "run", "p.zpl", f"root={PHOTOS}", "--digest", "--reference").out
            for way in ((), ("--no-optimize",)):
                self.assertEqual(self.expect(0, "run", "p.zpl", f"root={PHOTOS}", "--digest", *way).out, digest, (part, way))

    def test_the_least_memory_is_enough(self):
        for example in ("imagenet", "segmentation", "table", "signal"):
            path = os.path.join(ROOT, f"examples/{example}.zpl")
            least = json.loads(self.expect(0, "plan", path, "--format", "json").out)["least_memory"]
            self.expect(2, "run", path, "--memory", least - 1, says="R0504")
            # Files and pictures are known later: 4 MiB for those of the examples.
            report = json.loads(self.expect(0, "run", path, "--memory", least + (4 << 20), "--json").out)
            self.assertLessEqual(report["peak_in_flight"], least + (4 << 20))

    def test_the_least_memory_counts_members_and_their_batch(self):
        self.write("p.zpl", 'zpl 1\npipeline p(root: path) { files("{root}/**/*.jpg") | image = decode_image(bytes)'
                            ".resize(224, 224).to_unit() | select image | on_error(skip) | batch(16) }\n")
        least = json.loads(self.expect(0, "plan", "p.zpl", f"root={PHOTOS}", "--format", "json").out)["least_memory"]
        for threads in (1, 2):
            self.expect(0, "run", "p.zpl", f"root={PHOTOS}", "--memory", least + (4 << 20), "--threads", threads)

    def test_what_would_block_for_ever_is_refused(self):
        os.mkfifo(self.path("b.jpg"))  # nobody ever writes into it
        self.write("p.zpl", 'range(1) | bytes = read_file("b.jpg")')
        outcome = self.zephonc("run", "p.zpl", "--stall-timeout", 20, "--out", "o", timeout=60)
        self.assertEqual(outcome.code, 2, str(outcome))
        self.assertIn("R0401", outcome.err, str(outcome))
        self.assertFalse(os.path.exists(self.path("o")))

    def test_plan_file(self):
        self.write("p.zpl", COUNT)
        plan = self.expect(0, "plan", "p.zpl", "--format", "json", "--chunk", 16, "--disable", "fuse_kernels").out
        self.write("plan.json", plan)
        report = json.loads(self.expect(0, "run", "p.zpl", "--plan", "plan.json", "--json").out)
        self.assertEqual(report["plan_hash"], json.loads(plan)["hash"])
        self.write("plan.json", plan.replace(report["plan_hash"], "0" * 16))
        self.expect(64, "run", "p.zpl", "--plan", "plan.json", says="cannot be had")

    def test_costs_and_knobs(self):
        self.write("p.zpl", COUNT)
        self.write("costs.json", '{"bytes_per_ns": 4}')
        digest = self.digest("p.zpl")
        self.assertEqual(self.digest("p.zpl", "--costs", "costs.json"), digest)
        self.assertEqual(self.digest("p.zpl", "--set", "batch.chunk=3"), digest)
        self.write("costs.json", '{"bytes_per_n": 4}')
        self.expect(64, "run", "p.zpl", "--costs", "costs.json", says="did you mean `bytes_per_ns`")
        self.expect(64, "run", "p.zpl", "--set", "batch.chunks=3", says="chunk")
        self.expect(64, "run", "p.zpl", "--set", "bitch.chunk=3", says="did you mean `batch`")

    def test_take_counts_records(self):
        self.write("p.zpl", COUNT)
        self.assertEqual(json.loads(self.expect(0, "run", "p.zpl", "--take", 3, "--json").out)["batches"], 3)
        self.assertEqual(json.loads(self.expect(0, "run", "p.zpl", "--take", 0, "--json").out)["batches"], 0)
        self.assertEqual(json.loads(self.expect(0, "run", "p.zpl", "--epochs", 2, "--json").out)["samples"], 200)

    def test_the_last_line_is_short(self):
        self.write("p.zpl", COUNT)
        line = self.expect(0, "run", "p.zpl", says="samples", silent="range > ").err.strip()
        self.assertLess(len(line), 120)
        self.expect(0, "run", "p.zpl", "--stats", says="range > .*batch")
        self.expect(0, "run", "p.zpl", "--stats", "--reference", says="reference interpreter")

    def test_stats_and_trace(self):
        self.write("p.zpl", COUNT)
        self.expect(0, "run", "p.zpl", "--stats", says="operator")
        self.expect(0, "run", "p.zpl", "--trace", "t.json")
        with open(self.path("t.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        self.assertTrue(any(event["ph"] == "X" for event in events))


class HostilePrograms(Case):
    def test_random_bytes(self):
        self.program_fails(random.Random(1).randbytes(1 << 20), "E01")
        self.program_fails(random.Random(1).randbytes(1 << 20), "E01", "bad.yaml")

    def test_empty(self):
        self.program_fails("", "E01")
        self.program_fails("", "E01", "bad.yaml")

    def test_deep_nesting(self):
        for opened, closed in (("(", ")"), ("[", "]")):
            deep = opened * 10000 + "1" + closed * 10000
            self.program_fails("zpl 1\npipeline p() { range(3) | x = " + deep + " }\n", "E0102")
        self.program_fails("zpl: 1\npipeline: p\nsteps: " + "[" * 10000 + "]" * 10000 + "\n", "E01", "bad.yaml")
        self.program_fails("zpl 1\npipeline p() { range(3) | x = " + "-" * 10000 + "1 }\n", "E01")

    def test_yaml(self):
        steps = "steps:\n  - range: 10\n"
        for text, code in (
                ("zpl: 1\npipeline: p\nsteps:\n\t- range: 10\n", "E0150"),
                ("zpl: 1\npipeline: p\npipeline: q\n" + steps, "E0151"),
                ("zpl: 1\npipeline: p\nstep:\n  - range: 10\n", "E0152"),
                ("zpl: 1\npipeline: p\nlet: {a: &a [1, 2], b: *a}\n" + steps, "E015"),
                ("zpl: 1\npipeline: p\nlet: &x {a: *x}\n" + steps, "E015"),
                ("a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(
                    f"k{i}: &k{i} [{', '.join([f'*k{i - 1}' if i else '*b'] * 9)}]\n" for i in range(12)), "E015")):
            with self.subTest(text=text[:60]):
                self.program_fails(text, code, "bad.yaml")


class HostileData(Case):
    def folder(self, *good):
        os.makedirs(self.path("in"), exist_ok=True)
        for i, source in enumerate(good):
            shutil.copy(source, self.path(f"in/{i}.jpg"))
        self.write("p.zpl", DECODE)
        return self.path("in")

    def run_fails(self, *says, args=()):
        out = self.path("out")
        outcome = self.expect(2, "run", "p.zpl", "root=in", "--out", out, *args, says=says)
        self.assertFalse(os.path.exists(out), "a failed run left its output")
        self.assertEqual([f for f in os.listdir(self.dir) if "partial" in f], [])
        return outcome

    def test_no_match(self):
        self.folder()
        self.run_fails(r"R0400.*no file matches `in/\*\.jpg`; `in` holds no file")
        self.folder(*photos()[:2])
        self.expect(2, "run", "p.zpl", "root=inn", says=r"`inn/\*\.jpg`; there is no folder `inn`; did you mean `in`")
        self.expect(2, "run", "p.zpl", "root=quite_other/in", says="(?m)there is no folder `quite_other`$",
                    silent="did you mean")
        self.expect(2, "run", "p.zpl", "root=./in/..", says=r"matches `\*\.jpg`; there is")
        for pattern, says in (("in/*.JPG", r"there are 2 files \*\.jpg, none \*\.JPG"),
                              ("in/*.png", r"there are 2 files \*\.jpg, none \*\.png"),
                              ("*/*/*.jpg", r"`\.` holds 2 of them elsewhere: `\*\*/\*\.jpg`"),
                              ("in/00.jpg", "did you mean `0.jpg`"), ("in/zzzz.gif", "(?m)matches `in/zzzz.gif`$")):
            with self.subTest(pattern=pattern):
                self.write("m.zpl", f'files("{pattern}") | select path')
                self.expect(2, "run", "m.zpl", says=["R0400", says])
        # What a person reads has no detours, in whatever folder the program stands.
        self.write("sub/m.zpl", 'files("../fotos/*.jpg") | select path')
        self.expect(2, "run", "m.zpl", cwd=self.path("sub"), says="no file matches `../fotos/", silent=r"\./\.\.")
        self.expect(2, "run", "sub/m.zpl", says="no file matches `fotos/", silent=r"sub/\.\.")

    def test_how_to_drop(self):
        self.folder(*photos()[:2])
        self.write("in/z.jpg", b"")
        hint = r"hint: to drop such samples, put `\| on_error\(skip\)` "
        self.assertEqual(len(re.findall(hint + "at the end", self.run_fails("R0420").err)), 1)
        self.write("p.zpl", DECODE.replace("mean }", "mean | batch(2) }"))
        self.run_fails(hint + "above `batch`")
        self.write("p.zpl", DECODE.replace("mean }", "mean | on_error(skip) | batch(2) }"))
        self.expect(0, "run", "p.zpl", "root=in", says="1 failed: skip", silent="to drop")
        # Where it does not help, it is not said.
        for program in ('range(4) | batch(2) | x = 1 // (index - 1)', 'range(4) | on_error(fail) | x = 1 // (index - 1)',
                        'range(4) | filter index > 0 | x = 1 // (index - 9) | on_error(skip)'):
            self.write("q.zpl", program)
            self.assertNotIn("to drop", self.zephonc("run", "q.zpl").err)

    def test_bad_pictures(self):
        whole = open(photos()[0], "rb").read()
        scan = whole.rfind(b"\xff\xda")
        noise = random.Random(2).randbytes(4000)
        for name, data in (("empty", b""), ("truncated", whole[:scan + (len(whole) - scan) // 2]),
                           ("headless", whole[200:]),
                           ("corrupt", whole[:scan // 2] + noise + whole[scan // 2 + 4000:]),
                           ("png", b"\x89PNG\r\n\x1a\n" + noise), ("text", b"not a picture\n")):
            with self.subTest(kind=name):
                self.folder(photos()[1])
                self.write("in/z.jpg", data)
                outcome = self.run_fails(r"z\.jpg", r"p\.zpl:2", "--id")
                replay = re.search(r"zephonc (show .*)", outcome.err)
                self.assertTrue(replay, str(outcome))
                self.expect(0, *[word.strip("'`") for word in replay[1].split()], says="decode|R0")

    def test_unreadable(self):
        folder = self.folder(photos()[0])
        os.symlink("/nowhere/at/all.jpg", os.path.join(folder, "z.jpg"))
        self.run_fails("R0401", r"z\.jpg")
        os.remove(os.path.join(folder, "z.jpg"))
        os.mkdir(os.path.join(folder, "z.jpg"))
        outcome = self.zephonc("run", "p.zpl", "root=in")
        self.assertIn(outcome.code, (0, 2), str(outcome))  # a folder is no file: skipped by the pattern, or refused

    def test_names(self):
        folder = self.folder()
        deep = os.path.join(folder, *["d" * 200] * 10)
        os.makedirs(deep)
        shutil.copy(photos()[0], os.path.join(deep, "long.jpg"))
        shutil.copy(photos()[1], os.path.join(folder, "h\u00e4user \u2603.jpg"))
        shutil.copy(photos()[2], os.path.join(os.fsencode(folder), b"caf\xe9.jpg"))
        self.assertEqual(json.loads(self.expect(0, "run", "p.zpl", "root=in", "--json").out)["samples"], 2)
        self.assertEqual(json.loads(self.expect(0, "run", "p.zpl", f"root={deep}", "--json").out)["samples"], 1)

    def test_policies(self):
        folder = self.folder(*photos()[:4])
        self.write("in/1.jpg", b"junk")
        for policy, samples in (("skip", 3), ("quarantine", 3), ("mask", 4)):
            with self.subTest(policy=policy):
                self.write("q.zpl", DECODE.replace("| select", f"| on_error({policy}) | select"))
                report = json.loads(self.expect(0, "run", "q.zpl", f"root={folder}", "--json").out)
                self.assertEqual(report["samples"], samples)
                self.assertEqual(sum(report["errors"].values()), 1)
        self.write("q.zpl", DECODE.replace("| select", "| on_error(fail) | select"))
        self.expect(2, "run", "q.zpl", f"root={folder}", says=r"1\.jpg")

    def test_shapes_in_a_batch(self):
        self.folder(*photos()[:6])
        self.write("p.zpl", PICTURES.replace("image }", "image | batch(6) }"))
        self.run_fails("R0410", r"\.jpg|--id")

    def csv(self, content, code, extra=()):
        self.write("t.csv", content)
        self.write("t.zpl", 'zpl 1\npipeline t() { csv("t.csv", columns={a: f64, n: i64, s: str}) | batch(2) }\n')
        return self.expect(code, "run", "t.zpl", *extra)

    def test_tables_that_are_well(self):
        plain = self.csv("a,n,s\n1.5,2,x\nnan,-3,y\n", 0, ["--digest"]).out
        self.assertEqual(self.csv("\ufeffa,n,s\n1.5,2,x\nnan,-3,y\n", 0, ["--digest"]).out, plain)
        self.assertEqual(self.csv("a,n,s\r\n1.5,2,x\r\nnan,-3,y\r\n", 0, ["--digest"]).out, plain)
        self.assertEqual(self.csv("a,n,s\n1.5,2,x\nnan,-3,y", 0, ["--digest"]).out, plain)

    def test_quarantine_names_the_epoch(self):
        self.write("t.csv", "n\n1\nx\n3\n")
        self.write("q.zpl", 'csv("t.csv", columns={n: i64}) | on_error(quarantine, file="bad.jsonl") | batch(2)')
        for reference in ([], ["--reference"]):
            self.expect(0, "run", "q.zpl", "--epochs", 3, *reference)
            lines = [json.loads(line) for line in self.read("bad.jsonl").decode().splitlines()]
            self.assertEqual([line["epoch"] for line in lines], [0, 1, 2])

    def test_quarantine_begins_anew(self):
        self.write("q.zpl", "zpl 1\npipeline p(k: int = 1) {\n  range(12) | x = 1 // (index % 3 - k)"
                            " | on_error(quarantine, file=\"bad.jsonl\") | batch(2)\n}\n")
        for reference in ([], ["--reference"]):
            with self.subTest(reference=reference):
                for _ in range(2):
                    self.expect(0, "run", "q.zpl", *reference, says="4 failed: quarantine; 4 written to bad.jsonl")
                    self.assertEqual(len(self.read("bad.jsonl").splitlines()), 4)
                self.expect(0, "run", "q.zpl", "k=7", *reference, says="12 samples", silent="written")
                self.assertEqual(self.read("bad.jsonl"), b"")
        self.expect(0, "run", "q.zpl", "--take", 2, "--save-state", "s")
        first = self.read("bad.jsonl")
        self.expect(0, "run", "q.zpl", "--resume", "s")
        self.assertTrue(self.read("bad.jsonl").startswith(first))
        self.assertGreater(len(self.read("bad.jsonl")), len(first))
        os.remove(self.path("bad.jsonl"))
        os.mkdir(self.path("bad.jsonl"))
        self.expect(2, "run", "q.zpl", says=["R0501", "cannot write `bad.jsonl`"])

    def test_what_lies_past_the_end_is_not_quarantined(self):
        def ids(file="bad.jsonl"):
            return [json.loads(line)["id"] for line in self.read(file).decode().splitlines()]
        self.write("q.zpl", 'range(40) | x = 12 // (index % 5 - 2) | on_error(quarantine, file="bad.jsonl")')
        everything = [f"0/0/0/{n}" for n in range(2, 40, 5)]
        for way in (["--reference"], ["--no-optimize", "--threads", 1], ["--threads", 2], ["--chunk", 4]):
            with self.subTest(way=way):
                self.expect(0, "run", "q.zpl", *way, says="8 failed: quarantine; 8 written")
                self.assertEqual(ids(), everything)
                whole = self.read("bad.jsonl").splitlines(keepends=True)
                self.expect(0, "run", "q.zpl", *way, "--take", 3, "--save-state", "s", says="1 failed: quarantine")
                self.assertEqual(ids(), everything[:1])
                self.expect(0, "run", "q.zpl", *way, "--resume", "s", says="7 failed: quarantine; 7 written")
                self.assertEqual(ids(), everything)
                # As one that was killed after its state was saved leaves it: lines of what comes again, and half a one.
                self.expect(0, "run", "q.zpl", *way, "--take", 3, "--save-state", "s")
                self.write("bad.jsonl", b"".join(whole[:3]) + whole[3][:20])
                self.expect(0, "run", "q.zpl", *way, "--resume", "s")
                self.assertEqual(ids(), everything)
                for rank in range(2):
                    self.expect(0, "run", "q.zpl", *way, "--world-size", 2, "--rank", rank)
                self.assertEqual(sorted(ids()), sorted(everything))
        self.write("q.zpl", 'range(40) | x = 12 // (index % 5 - 2) | on_error(quarantine, file="bad.jsonl")'
                            " | y = 1 // (index - 11) | batch(2)")
        for way in (["--reference"], ["--threads", 2]):
            with self.subTest(fatal=way):
                self.expect(2, "run", "q.zpl", *way, says="0/0/0/11")
                self.assertEqual(ids(), everything[:2])

    def test_zeros_keep_their_sign(self):
        self.write("z.zpl", "range(2) | x = f64(index) * -0.0 | y = f64(index) * 0.0 | z = f32(index) * -(-0.0) | select x, y, z"
                            " | batch(2)")
        self.expect(0, "verify", "z.zpl")
        self.expect(0, "run", "z.zpl", "--out", "z", "--format", "jsonl")
        self.assertIn('"x": [-0.0, -0.0], "y": [0, 0], "z": [0, 0]', self.read("z/records.jsonl").decode())

    def test_tables_that_are_not(self):
        for content, code in (
                (b"a,n,s\n1.5,2,x\n2.5,3\n", "R0403"), (b"a,n,s\n1.5,2,x\n1,2,x,y\n", "R0403"),
                (b"a,n,s\nten,2,x\n", "R0404"), (b"a,n,s\n1,2.5,x\n", "R0404"), (b"a,n,s\n1,2,\xff\xfe\n", "R0404"),
                (b"a,n\n1,2\n", "R0402"), (b"", "R0402")):
            with self.subTest(content=content):
                outcome = self.csv(content, 2)
                self.assertIn(code, outcome.err, str(outcome))
        outcome = self.csv(b"a,n,s\n1,2," + b"x" * 10_000_000 + b"\n1,2,y\n", 2)
        self.assertIn("R0403", outcome.err[:2000], "a 10 MB line")
        self.assertLess(len(outcome.err), 5000, "a message repeats the line")

    def test_least_memory(self):
        self.folder(*photos()[:2])
        self.run_fails("R0504", r"\d+(\.\d)? [KMG]iB", args=("--memory", "1K"))


class Output(Case):
    def test_a_kernel_cache_that_is_not_used_is_told(self):
        program = self.write("p.zpl", COUNT)
        cache = self.path("cache")
        os.mkdir(cache)
        os.chmod(cache, 0o777)
        env = {**os.environ, "ZEPHON_CACHE_DIR": cache}
        self.expect(0, "run", program, env=env, says=r"warning: kernel cache not used: others may enter `.*/cache`")
        os.chmod(cache, 0o700)
        self.expect(0, "run", program, env=env, silent="kernel cache")

    def setUp(self):
        super().setUp()
        self.write("p.zpl", COUNT)

    def test_formats(self):
        for form in ("npy", "tar", "jsonl"):
            self.expect(0, "run", "p.zpl", "--out", form, "--format", form)
        names = sorted(os.listdir(self.path("npy")))
        self.assertEqual(len(names), 26)
        self.assertEqual(names[0], "00000000.index.npy")
        data = self.read("npy/00000000.x.npy")
        self.assertTrue(data.startswith(b"\x93NUMPY\x01\x00"))
        self.assertEqual(len(data) % 64, 0)
        self.assertIn(b"'descr': '<i8'", data)
        self.assertIn(b"'shape': (8,)", data)
        self.assertEqual([int.from_bytes(data[-64 + 8 * i:][:8], "little") for i in range(8)],
                         [3 * i + 1 for i in range(8)])
        import tarfile
        with tarfile.open(self.path("tar/records.tar")) as tar:
            self.assertEqual(sorted(tar.getnames()), names)
            self.assertEqual(tar.extractfile("00000000.x.npy").read(), data)
        rows = [json.loads(line) for line in open(self.path("jsonl/records.jsonl"), encoding="utf-8")]
        self.assertEqual([x for row in rows for x in row["x"]], [3 * i + 1 for i in range(100)])

    def test_never_over_another_run(self):
        self.write("there/file", "precious")
        self.expect(2, "run", "p.zpl", "--out", "there", says="R0502")
        self.assertEqual(os.listdir(self.path("there")), ["file"])

    def test_unwritable(self):
        self.expect(2, "run", "p.zpl", "--out", "/proc/nothing", says="R0501")
        self.expect(2, "run", "p.zpl", "--manifest", "nowhere/m.json", says="R0501.*nowhere/m.json")
        self.expect(2, "run", "p.zpl", "--save-state", "nowhere/s", says="R0501")

    def test_full(self):
        for flag in ("--manifest", "--trace", "--save-state"):
            self.expect(2, "run", "p.zpl", flag, "/dev/full", says="R0501.*no space left")
        with open("/dev/full", "w") as full:
            self.assertEqual(self.zephonc("run", "p.zpl", "--json", stdout=full).code, 2)
        # A file system without room, where we may not mount one: a limit on the size of files.
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for form in ("tar", "jsonl"):
            self.expect(2, "run", "p.zpl", "n=100000", "--out", "o", "--format", form, says="R0501", preexec_fn=limit)
            self.assertFalse(os.path.exists(self.path("o")))

    def test_closed_pipe(self):
        reader, writer = os.pipe()
        os.close(reader)
        for args in (("ops",), ("check", "p.zpl"), ("run", "p.zpl", "--json")):
            with self.subTest(args=args):
                outcome = self.zephonc(*args, stdout=writer)
                self.assertEqual(outcome.code, 2, str(outcome))
                self.assertIn("standard output", outcome.err)
        os.close(writer)

    def start(self, *args):
        return subprocess.Popen([ZEPHONC, *map(str, args)], cwd=self.dir, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def wait_for(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def partial(self):
        found = [f for f in os.listdir(self.dir) if ".partial-" in f]
        return found and any(os.listdir(self.path(f)) for f in found if os.path.isdir(self.path(f)))

    def test_killed(self):
        run = self.start("run", "p.zpl", "n=100000000", "--out", "o", "--manifest", "m.json")
        self.wait_for(self.partial)
        run.kill()
        run.communicate()
        self.assertFalse(os.path.exists(self.path("o")))
        self.assertFalse(os.path.exists(self.path("m.json")))
        self.expect(0, "run", "p.zpl", "--out", "o", "--manifest", "m.json")  # what was left is in nobody's way

    def test_what_the_killed_leave_is_removed(self):
        run = self.start("run", "p.zpl", "n=100000000", "--out", "o", "--manifest", "m.json")
        self.wait_for(self.partial)
        # While it lives, nobody touches what is its own.
        self.expect(0, "run", "p.zpl", "--manifest", "m.json", silent="removed")
        self.assertTrue(self.partial())
        run.kill()
        run.communicate()
        self.expect(0, "run", "p.zpl", "--out", "o", "--manifest", "m.json", says=r"removed `.*o\.partial-\d+`")
        self.assertFalse([f for f in os.listdir(self.dir) if ".partial-" in f])

    def stop_it(self, number, *args):
        run = self.start("run", "p.zpl", "n=100000000", "--out", "o", *args)
        self.wait_for(self.partial)
        run.send_signal(number)
        _, err = run.communicate(timeout=30)
        self.assertEqual(run.returncode, 2, err)
        self.assertIn("R0506", err)
        self.assertFalse(self.partial())

    def test_asked_to_stop(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for reference in ([], ["--reference"]):
                self.stop_it(number, *reference)
                self.assertFalse(os.path.exists(self.path("o")))

    def test_asked_to_stop_and_to_keep_the_state(self):
        for reference in ([], ["--reference"]):
            self.stop_it(signal.SIGINT, "--save-state", "s", *reference)
            kept = sorted(f for f in os.listdir(self.path("o")) if ".x." in f)
            state = json.loads(self.read("s"))
            self.assertEqual(len(kept), state["records"])
            self.assertGreater(len(kept), 0)
            self.expect(0, "run", "p.zpl", "n=100000000", "--resume", "s", "--take", 2, "--out", "rest", *reference)
            names = sorted(f for f in os.listdir(self.path("rest")) if ".x." in f)
            self.assertEqual(names[0].split(".")[0], f"{len(kept):08}")
            shutil.rmtree(self.path("o"))
            shutil.rmtree(self.path("rest"))

    def test_every_command_is_asked_to_stop_alike(self):
        self.write("f.zpl", "range(10_000_000_000) | filter index < 0 | batch(8)\n")
        self.write("t.zpl", "zpl 1\npipeline p { range(10) | repeat() | filter index < 0 }\n"
                            "test \"endless\" of p { input: {index: 1} expect: [] }\n")
        for args in (("show", "f.zpl"), ("where", "f.zpl", "77"), ("stats", "f.zpl"), ("scan", "f.zpl"),
                     ("test", "t.zpl")):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(args=args, number=number):
                    run = self.start(*args)
                    time.sleep(0.7)
                    run.send_signal(number)
                    _, err = run.communicate(timeout=20)
                    self.assertEqual(run.returncode, 2, err)
                    self.assertIn("error[R0506]: asked to end", err)

    def test_the_interpreter_stops_between_samples(self):
        self.write("f.zpl", "range(10_000_000_000) | filter index < 0 | batch(8)")
        for args in (["run", "f.zpl", "--reference"], ["verify", "f.zpl"], ["run", "f.zpl"]):
            run = self.start(*args)
            time.sleep(1.5)
            run.send_signal(signal.SIGINT)
            _, err = run.communicate(timeout=20)
            self.assertEqual((run.returncode, "R0506" in err), (2, True), err)

    def test_nothing_delivered_is_a_stall(self):
        for program in ("range(10_000_000_000)\n | x = index * 2\n | filter x < 0 | batch(8)",
                        "range(1000)\n | repeat()\n | filter index < 0 | batch(8)"):
            self.write("f.zpl", program)
            for reference in ([], ["--reference"]):
                outcome = self.expect(2, "run", "f.zpl", "--stall-timeout", 1, *reference, timeout=60,
                                      says=["R0505", "no record was delivered for 1", r"\d+ samples were read",
                                            r"dropped: \d+ by line 3"])
                self.assertEqual(outcome.err.count("R0505"), 1)

    def test_nothing_to_deliver(self):
        self.expect(0, "verify", "p.zpl", "n=0", says="0 records compared")
        self.write("d.zpl", "range(5) | batch(8, drop_remainder=true)")
        self.expect(0, "run", "d.zpl", says=["hint", "5 samples", "batch of 8", "drop_remainder"])
        self.expect(0, "verify", "d.zpl", says="0 records compared")

    def test_status(self):
        run = self.start("run", "p.zpl", "n=100000000", "--out", "o")
        self.wait_for(self.partial)
        run.send_signal(signal.SIGQUIT)
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=30)
        self.assertRegex(err, "operator|running|waiting")

    def test_progress_on_a_terminal(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execv(ZEPHONC, [ZEPHONC, "run", "p.zpl", "n=20000000"])
        shown = b""
        try:
            while part := os.read(terminal, 65536):
                shown += part
        except OSError:
            pass
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, shown)
        self.assertIn(b"\r", shown)
        self.assertIn(b"samples/s", shown)


class Regions(Case):
    """Samples that fail before steps that count, and passes that end early: any plan is the reference."""

    PROGRAMS = {
        # on_error may mask a sample that has failed as a whole: its other fields are delivered.
        "fails_then_counted": 'range(8) | assert(index != 3, "x") | take(7) | w = 12 // (index - 3) | on_error(mask)',
        "text": 'range(8) | assert(index != 3, "x") | take(7) | w = "s{index}".upper() | on_error(mask)',
        "tensor": 'range(8) | assert(index != 3, "x") | skip(1) | w = [index, index] | on_error(mask)',
        "window": 'range(8) | assert(index != 3, "x") | shuffle(buffer_size=2) | w = [index, index] | on_error(mask)',
        "kept": "range(8) | filter [1, 2, 3][index % 4] < 3 | skip(1) | w = [index, index] | cache() | on_error(mask)",
        "kept_twice": "range(23) | filter [1, 2, 3][index % 4] < 3 | cache() | w = \"s{index}\".upper() | cache() "
                      "| on_error(skip)",
        # In a batch the other members decide how a sample is padded, and they are others in each epoch.
        "padded": 'range(30) | g = "{index}".split("1") | shuffle() | padded_batch(4) | n = len(g) | cache()',
        "padded_once": 'range(30) | g = "{index}".split("1") | shuffle() | padded_batch(4) | unbatch() | n = len(g) '
                       "| cache() | padded_batch(3)",
        # So they do whether a sample finds its partner.
        "joined": "stream a = range(30) | k = index % 20 | shuffle(buffer_size=9)\n"
                  "stream b = range(30) | k = index | x = index * 2 | drop index | shuffle(buffer_size=9)\n"
                  "zip(a, b, key=k, buffer_size=3) | y = x + 1 | cache() | on_error(skip)",
        # What a repeat wants belongs to the pass that a take below it has ended.
        "ended": "stream b = range(20)\nconcatenate(b, b) | shuffle() | repeat(2) | filter index % 3 != 1 | take(17) "
                 "| repeat(2)",
        "ended_window": "stream b = range(20)\nconcatenate(b, b) | shuffle(buffer_size=5) | repeat(2) "
                        "| filter index % 3 != 1 | take(17) | repeat(2)",
        "ended_mix": "stream b = range(20)\nstream c = range(20)\nmix(b=1, c=2) | repeat(2) | filter index % 3 != 1 "
                     "| take(7) | repeat(2)",
    }

    def test_any_plan_is_the_reference(self):
        for name, text in self.PROGRAMS.items():
            self.write("p.zpl", "zpl 1\n\npipeline p() {\n" + text + "\n}\n")
            run = ["run", "p.zpl", "--digest", "--epochs", 2]
            wanted = self.expect(0, *run, "--reference").out
            for threads in 1, 2:
                for chunk in 1, 3, 4, 64:
                    with self.subTest(name, threads=threads, chunk=chunk):
                        self.assertEqual(wanted, self.expect(0, *run, "--threads", threads, "--chunk", chunk).out)

    def test_resumed_in_a_batch_that_was_half_full(self):
        for text in "range(23) | batch(3)", 'range(23) | g = "a,{index}".split(",") | padded_batch(3)':
            self.write("p.zpl", "zpl 1\n\npipeline p() {\n" + text + "\n}\n")
            whole = self.rows("run", "p.zpl")
            for take in 1, 3, 5:
                for chunk in 1, 2, 5:
                    with self.subTest(text, take=take, chunk=chunk):
                        first = self.rows("run", "p.zpl", "--take", take, "--save-state", "s", "--chunk", chunk,
                                          "--threads", 1)
                        rest = self.rows("run", "p.zpl", "--resume", "s", "--chunk", 3, "--threads", 2)
                        self.assertEqual(first + rest, whole)

    def rows(self, *args):
        shutil.rmtree(self.path("out"), ignore_errors=True)
        self.expect(0, *args, "--out", "out", "--format", "jsonl")
        return b"".join(self.read(os.path.join("out", name)) for name in sorted(os.listdir(self.path("out"))))


class Continuation(Case):
    def setUp(self):
        super().setUp()
        self.write("p.zpl", "zpl 1\npipeline p(n: int = 100, w: int = 16) {\n"
                            "  range(n) | shuffle() | x = index * 3 + 1 | u = uniform(0, 1)\n"
                            "  | filter x % 7 != 0 | shuffle(buffer_size=w) | batch(8)\n}\n")

    def manifest(self, *args):
        self.expect(0, "run", "p.zpl", *args, "--manifest", "m.json")
        with open(self.path("m.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_resume(self):
        whole = self.manifest("--epochs", 2)
        records = self.manifest("--epochs", 2, "--take", 3, "--save-state", "s")["records"]
        while True:
            part = self.manifest("--epochs", 2, "--resume", "s", "--take", 3, "--save-state", "s")["records"]
            records += part
            if len(part) < 3:
                break
        self.assertEqual(records, whole["records"])

    def test_resume_refuses(self):
        self.manifest("--take", 3, "--save-state", "s")
        self.expect(2, "run", "p.zpl", "n=101", "--resume", "s",
                    says=["R0507", r"by `zephonc run p\.zpl`, and this is `zephonc run p\.zpl n=101`"])
        self.expect(2, "run", "p.zpl", "seed=3", "--resume", "s", says=r"and this is `zephonc run p\.zpl seed=3`")
        state = json.loads(self.read("s"))
        self.write("older", json.dumps({**state, "program": "0", "version": "0.0.1"}))
        self.expect(2, "run", "p.zpl", "--resume", "older", says=r"saved by zephonc 0\.0\.1, and this is")
        self.write("nameless", json.dumps({k: v for k, v in state.items() if k not in ("saved_by", "version")}))
        self.expect(2, "run", "p.zpl", "n=3", "--resume", "nameless", says="with the file and the parameters of the run")
        self.expect(0, "run", "p.zpl", "--resume", "nameless")
        text = self.read("p.zpl").decode()
        self.write("p.zpl", text.replace("index * 3", "index * 4"))
        self.expect(2, "run", "p.zpl", "--resume", "s", says="`zephonc run p.zpl`, and the program has changed since")
        self.write("p.zpl", text)
        self.expect(2, "run", "p.zpl", "--resume", "none", says="none")
        self.write("junk", b"\0junk")
        self.expect(2, "run", "p.zpl", "--resume", "junk", says="R0507")

    def test_ranks(self):
        whole = self.manifest()["records"]
        for world in (2, 3):
            parts = [self.manifest("--rank", r, "--world-size", world)["records"] for r in range(world)]
            rounds = len(whole) // world
            self.assertEqual({len(part) for part in parts}, {rounds})
            composed = [parts[g % world][g // world] for g in range(rounds * world)]
            self.assertEqual(composed, whole[:rounds * world])

    def test_ranks_say_what_they_drop(self):
        batches = len(self.manifest()["records"])
        world = next(w for w in (2, 3, 4, 5) if batches % w)
        report = json.loads(self.expect(0, "run", "p.zpl", "--rank", 0, "--world-size", world, "--json").out)
        self.assertEqual(report["dropped_batches"], batches % world)


class Records(Case):
    """jsonl, values that may be missing, lists, padding, side tables: from the file to what is delivered."""

    LINES = [
        '{"id": 1, "lang": "en", "author": {"name": "Ida", "id": 7}, "tags": ["a", "b"], "m": [[1, 2], [], [3]], "w": 0.5}',
        '{"id": 2, "lang": null, "author": {"id": 8}, "tags": [], "m": [], "w": 1, "other": {"deep": [1, {"x": 2}]}}',
        '{"id": 3, "author": {"name": "caf\\u00e9 \\"x\\"", "id": 9}, "tags": ["c"], "m": [[4]], "w": 2e0}',
    ]
    SCHEMA = "{id: i64, lang: str?, author: {name: str?, id: i32}, tags: list<str>, m: list<list<i64>>, w: f32}"

    def setUp(self):
        super().setUp()
        self.write("a.jsonl", "\n".join(self.LINES) + "\n")

    def records(self, text, *args):
        """What a run writes, after `verify` has compared it with the reference, and the digests of several plans."""
        self.write("p.zpl", text)
        self.expect(0, "verify", "p.zpl", says="equal to the bit")
        digests = {self.digest("p.zpl", *more) for more in
                   ((), ("--reference",), ("--no-optimize",), ("--threads", 3, "--chunk", 2), ("--chunk", 1))}
        self.assertEqual(len(digests), 1, text)
        shutil.rmtree(self.path("o"), True)
        self.expect(0, "run", "p.zpl", "--out", "o", "--format", "jsonl", *args)
        return [json.loads(line) for line in self.read("o/records.jsonl").decode().splitlines()]

    def source(self, schema=SCHEMA, name="a.jsonl"):
        return f'zpl 1\npipeline p() {{ jsonl("{name}", schema={schema})'

    def test_delivered_as_they_were(self):
        wanted = [json.loads(line) for line in self.LINES]
        for record in wanted:
            record.pop("other", None)
            record.setdefault("lang", None)
            record["author"].setdefault("name", None)
        self.assertEqual(self.records(self.source() + " }"), wanted)

    def test_expressions(self):
        rows = self.records(self.source() + """
  | lang = default(lang, "none") | named = not is_missing(author.name) | n = len(tags) | first = default(author.name, "?")
  | inner = len(m) | twice = m * 2 | total = m.sum() | writer = author
  | select id, lang, named, n, first, inner, twice, total, writer }""")
        self.assertEqual(rows[0], {"id": 1, "lang": "en", "named": True, "n": 2, "first": "Ida", "inner": 3, "total": 6,
                                   "twice": [[2, 4], [], [6]], "writer": {"name": "Ida", "id": 7}})
        self.assertEqual([row["lang"] for row in rows], ["en", "none", "none"])
        self.assertEqual([row["first"] for row in rows], ["Ida", "?", 'caf\u00e9 "x"'])
        self.assertEqual([row["total"] for row in rows], [6, 0, 4])

    def test_lists_of_lists(self):
        self.write("b.jsonl", '{"d": [[[1], [2, 3]], [[4, 5, 6]]], "r": [{"k": "x", "n": 1}, {"k": "y"}]}\n'
                              '{"d": [[], [[7]], [[8], []]], "r": []}\n')
        rows = self.records(self.source("{d: list<list<list<i64>>>, r: list<{k: str, n: i64?}>}", "b.jsonl") + """
  | last = d[-1] | deep = d[-1][0] | some = d[1:] | sums = d.sum() | keys = r.k | n = default(r.n, -1)
  | lost = is_missing(r.n).any() }""")
        self.assertEqual(rows[0]["d"], [[[1], [2, 3]], [[4, 5, 6]]])
        self.assertEqual([row["last"] for row in rows], [[[4, 5, 6]], [[8], []]])
        self.assertEqual([row["deep"] for row in rows], [[4, 5, 6], [8]])
        self.assertEqual([row["some"] for row in rows], [[[[4, 5, 6]]], [[[7]], [[8], []]]])
        self.assertEqual(rows[0]["r"], {"k": ["x", "y"], "n": [1, None]})
        self.assertEqual([row["n"] for row in rows], [[1, -1], []])
        self.assertEqual([row["lost"] for row in rows], [True, False])

    def test_whole_list_missing(self):
        self.write("b.jsonl", '{"t": [1, 2]}\n{}\n{"t": null}\n{"t": []}\n')
        rows = self.records(self.source("{t: list<i64>?}", "b.jsonl") + " | u = default(t, [7]) | gone = is_missing(t) }")
        self.assertEqual([row["t"] for row in rows], [[1, 2], None, None, []])
        self.assertEqual([row["u"] for row in rows], [[1, 2], [7], [7], []])
        self.assertEqual([row["gone"] for row in rows], [False, True, True, False])

    def test_hostile_lines(self):
        deep = '{"id": ' + "[" * 3000 + "]" * 3000 + "}"
        bad = {
            '{"id": "7"}': r"key `id` is `\"7\"`, not `i64`", '{"id": 1.5}': "1.5", '{"id": 9223372036854775808}': "i64",
            '{"id": 99999999999999999999}': "beyond 64 bits", '{}': "missing or null.*`\\?`", '{"id": null}': "missing or null",
            '{"id": 1, "id": 2}': "stands twice", '{"id": 1': "cut off", '{"id": 1} x': "not JSON", "": "line is empty",
            '[1]': "not a JSON object", '7': "not a JSON object", '{"id": 1, "x": "\udcff"}': "not UTF-8",
            '{"id": {"a": 1}}': "not `i64`", '{"id": true}': "not `i64`", '{"id": 1e2}': "not `i64`", deep: "not JSON",
            '{"id": 1, "x": "' + "y" * 9_000_000 + '"}': "max_line_bytes", '{"id": 1, "x": NaN}': "not JSON",
            '{"id": 1, "x": "a\nb"}'.replace("\\n", "\t"): "not JSON",
        }
        self.write("p.zpl", self.source("{id: i64}", "b.jsonl") + " }")
        for line, says in bad.items():
            self.write("b.jsonl", b'{"id": 1}\r\n' + line.encode("utf-8", "surrogateescape") + b'\n{"id": 3}')
            self.expect(2, "run", "p.zpl", says=[says, r"b.jsonl, line 2"])
        everything = b"\xef\xbb\xbf" + b'{"id": 0}\r\n' + b"".join(
            line.encode("utf-8", "surrogateescape") + b"\n" for line in bad) + b'{"id": 5}'
        self.write("b.jsonl", everything)
        rows = self.records(self.source("{id: i64}", "b.jsonl") + " | on_error(skip) }")
        self.assertEqual([row["id"] for row in rows], [0, 5])

    def test_parents(self):
        self.write("b.jsonl", '{"a": {"b": {"c": 1}}}\n{"a": {"b": null}}\n{"a": null}\n{}\n{"a": 3}\n')
        rows = self.records(self.source("{a: {b: {c: i64?}}}", "b.jsonl") + " | on_error(skip) }")
        self.assertEqual([row["a"]["b"]["c"] for row in rows], [1, None, None, None])
        rows = self.records(self.source("{a: {b: {c: i64}}?}", "b.jsonl") + " | on_error(skip) }")
        self.assertEqual([row["a"]["b"]["c"] for row in rows], [1, None, None], "a present with no b fails")

    def test_formats(self):
        self.write("p.zpl", self.source() + " | select lang }")
        self.expect(2, "run", "p.zpl", "--out", "n", "--format", "npy", says=["R0508", "default"])
        self.write("p.zpl", self.source() + " | select m }")
        self.expect(2, "run", "p.zpl", "--out", "n", "--format", "tar", says=["R0508", r"m\[0\]"])
        self.assertFalse(os.path.exists(self.path("n")))
        self.write("p.zpl", self.source() + " | select w, tags }")
        self.expect(0, "run", "p.zpl", "--out", "n", "--format", "npy")

    def test_padding(self):
        rows = self.records(self.source() + ' | n = len(tags) | select id, tags, n, lang | padded_batch(2, tags="-") }')
        self.assertEqual(rows[0], {"id": [1, 2], "lang": ["en", None], "n": [2, 0], "tags": [["a", "b"], ["-", "-"]]})
        self.assertEqual(rows[1], {"id": [3], "lang": [None], "n": [1], "tags": [["c"]]})
        self.write("b.jsonl", "".join(json.dumps({"t": list(range(n)), "g": n}) + "\n" for n in (3, 1, 4, 1, 5, 9, 2, 6)))
        rows = self.records(self.source("{t: list<i32>}", "b.jsonl") + " | x = f32(t) * 0.5 | padded_batch(3, padding=-1) }")
        self.assertEqual(rows[0]["t"], [[0, 1, 2, -1], [0, -1, -1, -1], [0, 1, 2, 3]])
        self.assertEqual(rows[0]["x"][1], [0, -1, -1, -1])
        self.assertEqual([len(row["t"]) for row in rows], [3, 3, 2])
        rows = self.records(self.source("{t: list<i32>}", "b.jsonl") + " | padded_batch(2) | s = t.sum() | n = len(t) }")
        self.assertEqual(rows[0]["n"], [3, 3])
        rows = self.records(self.source("{t: list<i32>}", "b.jsonl") + " | padded_batch(3, length=9, drop_remainder=true) }")
        self.assertEqual([len(member) for row in rows for member in row["t"]], [9] * 6)
        self.write("p.zpl", self.source("{t: list<i32>}", "b.jsonl") + " | padded_batch(3, length=6) }")
        self.expect(2, "run", "p.zpl", says=["R0410", "longer than length=6", "b.jsonl, line 6"])

    def test_buckets(self):
        self.write("b.jsonl", "".join(json.dumps({"t": [n] * n}) + "\n" for n in (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5)))
        text = self.source("{t: list<i32>}", "b.jsonl").replace("{", "{{").replace("}", "}}") + (
            " | bucket_by_length(len(t), boundaries=[3, 6], batch_sizes=[2, 3, 2]{}) }}")
        rows = self.records(text.format(""))
        self.assertEqual([[member[0] for member in row["t"]] for row in rows],
                         [[1, 1], [3, 4, 5], [9, 6], [5, 3, 5], [2]])
        rows = self.records(text.format(", drop_remainder=true"))
        self.assertEqual(len(rows), 4)
        rows = self.records(text.format(", t=7"))
        self.assertEqual(rows[2]["t"][1], [6] * 6 + [7] * 3)
        self.write("p.zpl", text.format(""))
        whole = self.manifest_of("--epochs", 2)
        for first in range(1, 10):
            part = self.manifest_of("--epochs", 2, "--take", first, "--save-state", "s")
            self.assertEqual(part, whole[:first])
            self.assertEqual(self.manifest_of("--epochs", 2, "--resume", "s"), whole[first:])
        ranks = [self.manifest_of("--world-size", 2, "--rank", rank) for rank in (0, 1)]
        self.assertEqual(ranks, [[whole[0], whole[2]], [whole[1], whole[3]]])

    def manifest_of(self, *args):
        self.expect(0, "run", "p.zpl", "--manifest", "m", *args)
        return [(record["epoch"], record["digest"], record["ids"]) for record in json.loads(self.read("m"))["records"]]

    def test_assert(self):
        self.write("p.zpl", 'zpl 1\npipeline p() { range(6) | assert(index < 4, "index {index} is too large") }')
        self.expect(2, "run", "p.zpl", says=["R0430", "index 4 is too large", "assert"])
        rows = self.records('zpl 1\npipeline p() { range(6) | assert(index % 2 == 0, "odd {index}") | on_error(skip) }')
        self.assertEqual([row["index"] for row in rows], [0, 2, 4])

    def test_tables(self):
        self.write("labels.csv", 'name,weight,id\ndog,0.5,1\n"cat, small",1.5,2\nbird,2,3\n')
        text = ('zpl 1\npipeline p(key: str = "dog") {\n  let labels = table("labels.csv", schema={name: str, id: i64}, key=name)\n'
                '  range(3) | x = labels.lookup(key).id | y = default(labels.get("{key}{index}").id, -1)\n}')
        rows = self.records(text)
        self.assertEqual([(row["x"], row["y"]) for row in rows], [(1, -1)] * 3)
        self.expect(2, "run", "p.zpl", "key=dgo", says=["R0422", "dgo", "labels.csv", "did you mean `dog`"])
        self.expect(0, "run", "p.zpl", "key=cat, small")
        before = json.loads(self.manifest_text())["program_fingerprint"]
        self.write("labels.csv", "name,id\ndog,5\n")
        self.assertNotEqual(before, json.loads(self.manifest_text())["program_fingerprint"])
        self.write("labels.csv", "name,id\ndog,5\ncat,1\n\ndog,6\n".replace("\n\n", "\n"))
        self.expect(2, "run", "p.zpl", says=["`dog` in line 2 and again in line 4"])
        for content, says in (("name,id\ndog,x\n", "line 2: column `id`"), ("name,ident\n", "no column `id`"), ("", "empty"),
                              ("name,id\ndog\n", "1 fields"), ('name,id\n"dog,1\n', "never closes")):
            self.write("labels.csv", content)
            self.expect(2, "run", "p.zpl", says=says)
            self.expect(2, "verify", "p.zpl", says="the same failure at the end")
        os.remove(self.path("labels.csv"))
        self.expect(2, "run", "p.zpl", says="cannot read")
        # What a table cannot give fails each sample that needs it, and only those.
        self.write("p.zpl", text[:-1] + '| drop x | u = where(index == 1, 7, y) | drop y | on_error(skip)\n}')
        self.expect(0, "run", "p.zpl", "--out", "o2", "--format", "jsonl", says="cannot read")
        self.assertEqual(self.read("o2/records.jsonl").decode().split(), ['{"index":', '1,', '"u":', '7}'])
        self.expect(0, "verify", "p.zpl", says="equal to the bit: 1 record")

    def manifest_text(self):
        self.expect(0, "run", "p.zpl", "--manifest", "m")
        return self.read("m")

    def test_csv(self):
        self.write("t.csv", 'a,b\n1,x\n,\n3,""\n')
        rows = self.records('zpl 1\npipeline p() { csv("t.csv", columns={a: i64?, b: str?}) | c = default(a, 7) }')
        self.assertEqual([(row["a"], row["b"], row["c"]) for row in rows], [(1, "x", 1), (None, None, 7), (3, None, 3)])
        self.write("p.zpl", 'zpl 1\npipeline p() { csv("t.csv", columns={a: i64, b: str}) }')
        self.expect(2, "run", "p.zpl", says="column `a` is empty, not `i64`; if it may be empty")

    def test_show(self):
        self.write("p.zpl", self.source() + " }")
        self.expect(0, "show", "p.zpl", "--index", 1, says=[r"lang +str +missing", r"author.id +i32"], silent=r"\?  ")


class Language(Case):
    def records(self, text, *args):
        return Records.records(self, text, *args)

    def lines(self, name, rows):
        self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def test_contracts_that_the_data_keep(self):
        self.lines("b.jsonl", [{"x": [1, 2, 3], "y": [[1, 2], [3, 4]], "z": [5, 6]}, {"x": [4, 5, 6], "y": [], "z": [7]}])
        schema = "{x: list<i64>, y: list<i64[2]>, z: list<i64>?}"
        source = f'jsonl("b.jsonl", schema={schema})'
        # An extent, and a name that stands twice: of one sample, so the second sample may have another H.
        text = 'zpl 1\npipeline p() -> {x: i64[3], z: i64[H], k: i64[H]} { %s | z = default(z, []) | k = z + 1 | drop y }'
        rows = self.records(text % source)
        self.assertEqual([row["z"] for row in rows], [[5, 6], [7]])
        # What may be missing has the promised size, of zeros, where it is.
        self.lines("m.jsonl", [{"z": [5, 6]}, {}])
        rows = self.records('zpl 1\npipeline p() -> {z: i64[2]?} { jsonl("m.jsonl", schema={z: list<i64>?}) }')
        self.assertEqual([row["z"] for row in rows], [[5, 6], None])
        # A batch checks each member; padding comes before the contract.
        rows = self.records('zpl 1\npipeline p() -> {x: i64[2, 3], z: i64[2, n]} { %s | z = default(z, []) | drop y'
                            ' | padded_batch(2, drop_remainder=true) }' % source)
        self.assertEqual(rows, [{"x": [[1, 2, 3], [4, 5, 6]], "z": [[5, 6], [7, 0]]}])

    def test_contracts_that_the_data_break(self):
        self.lines("b.jsonl", [{"x": [1, 2, 3], "z": [5, 6, 7]}, {"x": [4, 5], "z": [7, 8]}, {"x": [1, 2, 3], "z": [1]}])
        source = 'jsonl("b.jsonl", schema={x: list<i64>, z: list<i64>})'
        for contract, steps, says in (
                ("{x: i64[3], z: list<i64>}", "", [r"R0412.*promises `x` as `i64\[3\]`, and this sample has shape \[2\]",
                                                   "b.jsonl, line 2", "p.zpl:2:21"]),
                ("{x: i64[H], z: i64[H]}", "", [r"promises `z` as `i64\[H\]`, and this sample has shape \[1\]: `H` of `x` is 3",
                                                "b.jsonl, line 3"]),
                ("{x: i64[2, 4], z: i64[2, m]}", "| padded_batch(2, drop_remainder=true)",
                 [r"promises `x` as `i64\[4\]`, and this sample has shape \[3\]", "line 1"])):
            self.write("p.zpl", f"zpl 1\npipeline p() -> {contract} {{ {source} {steps} }}")
            self.expect(2, "run", "p.zpl", says=says)
            self.expect(2, "verify", "p.zpl", says="the same failure at the end")
        # A failure like any other, where the contract is that of a stream.
        rows = self.records(f"zpl 1\nstream a -> {{x: i64[3], z: list<i64>}} = {source}\n"
                            "pipeline p() { a | on_error(skip) | select x }")
        self.assertEqual([row["x"] for row in rows], [[1, 2, 3], [1, 2, 3]])
        self.write("p.zpl", f"zpl 1\npipeline p() -> {{x: i64[n, 2], z: i64[n, n]}} {{ {source} | batch(2) }}")
        self.expect(1, "check", "p.zpl", says="padded_batch")
        self.write("p.zpl", f"zpl 1\npipeline p() -> {{x: i64[n, 2], z: i64[n, n]}} {{ {source} | padded_batch(2) }}")
        self.expect(1, "check", "p.zpl", says=["E0211", "drop_remainder"])

    def test_zip_by_key(self):
        self.lines("a.jsonl", [{"id": n, "x": n * 10} for n in (3, 1, 4, 15, 9, 2)])
        self.lines("b.jsonl", [{"id": n, "y": -n} for n in (1, 2, 3, 4, 9, 15)])
        text = ('zpl 1\nstream a = jsonl("a.jsonl", schema={id: i64, x: i64})\n'
                'stream b = jsonl("b.jsonl", schema={id: i64, y: i64})\npipeline p() { zip(a, b, key=id%s)%s }')
        rows = self.records(text % ("", ""))
        self.assertEqual(rows, [{"id": n, "x": n * 10, "y": -n} for n in (3, 1, 4, 15, 9, 2)])
        self.expect(0, "run", "p.zpl", "--manifest", "m")
        whole = json.loads(self.read("m"))["records"][2]["ids"][0]
        self.expect(0, "show", "p.zpl", "--id", whole, says="40")
        self.records(text % (", buffer_size=3", ""))
        self.write("p.zpl", text % (", buffer_size=2", ""))
        self.expect(2, "run", "p.zpl", says=[r"R0409.*none of the 2 samples of `b` that wait has `id` `3`", "a.jsonl, line 1"])
        self.expect(2, "verify", "p.zpl", says="the same failure at the end")
        # What has no partner: of the first stream, then of the others; and a key that stands twice.
        self.lines("b.jsonl", [{"id": n, "y": -n} for n in (1, 7, 3, 7, 9, 2, 8)])
        rows = self.records(text % ("", " | on_error(skip)"))
        self.assertEqual([row["id"] for row in rows], [3, 1, 9, 2])
        rows = self.records(text % ("", " | on_error(mask) | select x, y, valid"))
        self.assertEqual([(row["x"], row["y"]) for row in rows if not row["valid"]],
                         [(0, -7), (40, 0), (150, 0), (0, -7), (0, -8)])
        for some, says in (("(4)", "`b` has no sample whose `id` is `4`"), ("(7)", "`b` has a sample whose `id` is `7`, and `a` has none")):
            self.lines("b.jsonl", [{"id": n, "y": -n} for n in (3, 1, 4, 15, 9, 2) if f"({n})" != some] +
                       ([{"id": 7, "y": 0}] if some == "(7)" else []))
            self.write("p.zpl", text % ("", ""))
            self.expect(2, "run", "p.zpl", says=says)
            self.expect(2, "verify", "p.zpl", says="the same failure at the end")

    def test_too_many_errors_end_the_run(self):
        """What is one error more than `max_errors` allows is nothing that a policy below could drop."""
        for below in ("interleave(a)", "zip(a, b, key=index)", "a"):
            self.write("p.zpl", "zpl 1\npipeline p() {\n  stream a = range(10) | x = 1 // (index % 3) | on_error(skip, max_errors=1)\n"
                                f"  stream b = range(10) | y = index\n  {below} | on_error(skip)\n}}")
            for how in ((), ("--reference",), ("--no-optimize", "--chunk", 1)):
                self.expect(2, "run", "p.zpl", *how, says="R0411.*2 samples failed, and max_errors is 1")
            self.expect(2, "verify", "p.zpl", says="the same failure at the end")

    def test_assigned_again_below_a_batch(self):
        self.write("p.zpl", "range(9) | c = uniform(0, 1) | batch(3) | c = uniform(2, 3)")
        self.expect(0, "verify", "p.zpl", says="equal to the bit: 3 records")

    def test_zip_by_key_is_bounded(self):
        rows = [{"id": f"k{n}", "x": "y" * 2000} for n in range(3000)]
        self.lines("a.jsonl", [{"id": row["id"]} for row in rows])
        self.lines("b.jsonl", rows[:1] + rows[:0:-1])
        self.write("p.zpl", 'zpl 1\nstream a = jsonl("a.jsonl", schema={id: str})\nstream b = jsonl("b.jsonl", schema={id: str, x: str})\n'
                            'pipeline p() { zip(a, b, key=id, buffer_size=%d) }' % 3000)
        self.expect(0, "verify", "p.zpl")
        self.write("p.zpl", self.read("p.zpl").decode().replace("buffer_size=3000", "buffer_size=50"))
        self.expect(2, "run", "p.zpl", says="none of the 50 samples of `b` that wait")

    def test_files_in_turn(self):
        for name, count in (("a", 5), ("b", 1), ("c", 4), ("d", 0), ("e", 2)):
            self.write(f"t/{name}.txt", "".join(f"{name}{n}\n" for n in range(count)))
        text = 'zpl 1\npipeline p() { text_lines("t/*.txt"%s) | select text%s }'
        order = lambda *more: " ".join(row["text"] for row in self.records(text % more))
        self.assertEqual(order("", ""), "a0 a1 a2 a3 a4 b0 c0 c1 c2 c3 e0 e1")
        self.assertEqual(order(", cycle_length=2, block_length=2", ""), "a0 a1 b0 c0 c1 a2 a3 c2 c3 a4 e0 e1")
        self.assertEqual(order(", cycle_length=9", ""), "a0 b0 c0 e0 a1 c1 e1 a2 c2 a3 c3 a4")
        self.assertEqual(order(", cycle_length=1", ""), order("", ""))
        # It is a domain like that of any source.
        self.assertEqual(sorted(order(", cycle_length=3", " | shuffle()").split()), sorted(order("", "").split()))
        self.assertEqual(order(", cycle_length=2, block_length=2", " | skip(3) | take(2)"), "c0 c1")
        self.write("p.zpl", text % (", block_length=2", ""))
        self.expect(1, "check", "p.zpl", says="`block_length` needs `cycle_length`")
        self.write("p.zpl", text % (", cycle_length=2", " | assert(text != \"b0\", \"no\")"))
        self.expect(2, "run", "p.zpl", says="b.txt, line 1")

    def test_padding_by_field(self):
        self.lines("b.jsonl", [{"t": [1], "s": ["a", "b"], "f": [0.5]}, {"t": [2, 3], "s": [], "f": []}])
        source = 'zpl 1\npipeline p(pad: int = -1) { jsonl("b.jsonl", schema={t: list<i64>, s: list<str>, f: list<f32>}) | '
        rows = self.records(source + 'padded_batch(2, padding={t: pad, s: "-", f: 1.5}) }')
        self.assertEqual(rows, [{"t": [[1, -1], [2, 3]], "s": [["a", "b"], ["-", "-"]], "f": [[0.5], [1.5]]}])
        digest = self.digest("p.zpl")
        for name in ("p.yaml", "q.zpl"):
            self.expect(0, "convert", "p.zpl" if name == "p.yaml" else "p.yaml", "-o", name)
            self.assertEqual(self.digest(name), digest)
        rows = self.records(source + "bucket_by_length(len(t), boundaries=[2], batch_sizes=[2, 2], padding={t: -2}) | select t }")
        self.assertEqual(rows, [{"t": [[1]]}, {"t": [[2, 3]]}])
        for step, says in (("padded_batch(2, padding={u: 1})", "no field is called `u`"),
                           ("padded_batch(2, padding={t: 1}, t=2)", "given twice"),
                           ("padded_batch(2, padding={t: f32[3]})", "the padding of `t` is a value"),
                           ("padded_batch(2, padding={t: \"x\"})", "needs a whole number"),
                           ("length = t | padded_batch(2, padding={length: 1})", "argument of `padded_batch` too")):
            self.write("p.zpl", source + step + " }")
            self.expect(1, "check", "p.zpl", says=says)

    def test_lists_of_lists_that_are_missing(self):
        self.lines("b.jsonl", [{"m": [[1, 2], [], [3]]}, {}, {"m": None}, {"m": []}])
        source = 'zpl 1\npipeline p() { jsonl("b.jsonl", schema={m: list<list<i64>>?}) '
        rows = self.records(source + "| gone = is_missing(m) | n = default(m, []) | k = len(n) }")
        self.assertEqual([row["m"] for row in rows], [[[1, 2], [], [3]], None, None, []])
        self.assertEqual([row["n"] for row in rows], [[[1, 2], [], [3]], [], [], []])
        self.assertEqual([(row["gone"], row["k"]) for row in rows], [(False, 3), (True, 0), (True, 0), (False, 0)])
        rows = self.records(source + "| n = default(m, []) | first = where(len(n) > 0, len(n), -1) | select first }")
        self.assertEqual([row["first"] for row in rows], [3, -1, -1, -1])
        for step, says in (("| n = m[0]", "may be missing"), ("| n = default(m, [1])", "`default` needs lists of lists"),
                           ("| n = m + 1", "may be missing")):
            self.write("p.zpl", source + step + " }")
            self.expect(1, "check", "p.zpl", says=says)

    def test_numbers_without_a_sign(self):
        def npy(descr, count, data):
            head = repr({"descr": descr, "fortran_order": False, "shape": (count,)}).encode()
            head += b" " * (-(len(head) + 11) % 64) + b"\n"
            return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data
        for descr, form in (("<u4", "<3I"), (">u4", ">3I"), ("<u8", "<3Q"), (">u8", ">3Q")):
            self.write("x.npy", npy(descr, 3, struct.pack(form, 1, 2**32 - 1, 7)))
            rows = self.records('zpl 1\npipeline p() { npy("x.npy", columns={x: i64}) | select x }')
            self.assertEqual([row["x"] for row in rows], [1, 2**32 - 1, 7])
        self.write("x.npy", npy("<u8", 3, struct.pack("<3Q", 1, 2**63, 2**63 - 1)))
        self.expect(2, "run", "p.zpl", says=["R0421", "above the largest `i64`", "x.npy, row 1"])
        rows = self.records('zpl 1\npipeline p() { npy("x.npy", columns={x: i64}) | select x | on_error(skip) }')
        self.assertEqual([row["x"] for row in rows], [1, 2**63 - 1])
        self.expect(1, "check", self.write("q.zpl", 'zpl 1\npipeline p() { npy("x.npy", columns={x: u32}) }'), says="`u32`")
        self.write("r.bin", struct.pack("<IHQ", 2**32 - 1, 5, 9) + struct.pack("<IHQ", 1, 6, 2**64 - 1))
        text = 'zpl 1\npipeline p() { raw("r.bin", columns={a: i64, b: u16, c: i64}, u32="a", u64="c") | select a, b, c%s }'
        rows = self.records(text % " | on_error(skip)")
        self.assertEqual(rows, [{"a": 2**32 - 1, "b": 5, "c": 9}])
        self.write("p.zpl", text % "")
        self.expect(2, "run", "p.zpl", says="above the largest `i64`")
        for wrong, says in (('u32="d"', "no column is called `d`"), ('u32="b"', "declare it as `i64`"),
                            ('u32="a", u64="a"', "stands twice")):
            self.write("p.zpl", f'zpl 1\npipeline p() {{ raw("r.bin", columns={{a: i64, b: u16}}, {wrong}) }}')
            self.expect(1, "check", "p.zpl", says=says)

    def test_choices_known_before_the_run(self):
        text = ("zpl 1\npipeline p(mode: enum(train, eval) = train) {\n  let size = where(mode == train, 4, 2)\n"
                "  range(where(mode == train, 8, 4)) | x = where(mode == train, index, index // 0) | batch(size, drop_remainder=true)\n}")
        self.write("p.zpl", text)
        self.assertRegex(self.expect(0, "check", "p.zpl").out, r"range\(8\)(.*\n)+.*batch of 4")
        self.expect(0, "verify", "p.zpl", says="2 records")
        self.expect(2, "run", "p.zpl", "mode=eval", says="R0421")
        self.expect(0, "plan", "p.zpl", silent="where")
        self.expect(1, "check", self.write("q.zpl", "zpl 1\npipeline p() { range(4) | batch(where(index > 1, 2, 3)) }"),
                    says="E02")

    def test_negative_zero(self):
        self.write("b.jsonl", '{"x": -0, "y": -0, "z": -0}\n{"x": -0.0, "y": 1, "z": -0.0}\n')
        self.write("p.zpl", 'zpl 1\npipeline p() { jsonl("b.jsonl", schema={x: i64, y: u8, z: f32}) | n = 1.0 / f64(z) | take(1) }')
        self.expect(0, "verify", "p.zpl")
        rows = self.records(self.read("p.zpl").decode())
        self.assertEqual([(row["x"], row["y"], str(row["z"])) for row in rows], [(0, 0, "-0.0")])
        self.write("p.zpl", 'zpl 1\npipeline p() { jsonl("b.jsonl", schema={x: i64}) }')
        self.expect(2, "run", "p.zpl", says=["key `x` is `-0.0`, not `i64`", "line 2"])

    def test_side_files(self):
        self.write("lib/labels.csv", "name,id\na,1\nb,2\n")
        self.write("lib/aug.zpl", 'zpl 1\nlet labels = table("labels.csv", schema={name: str, id: i64}, key=name)\n'
                                  'fn label(x: str) = labels.lookup(x).id\n')
        self.lines("data.jsonl", [{"k": "b"}, {"k": "a"}])
        self.write("p.zpl", 'zpl 1\nimport "lib/aug.zpl" as aug\npipeline p() { jsonl("data.jsonl", schema={k: str}) | x = aug.label(k) }')
        rows = self.records(self.read("p.zpl").decode())
        self.assertEqual([row["x"] for row in rows], [2, 1])
        self.expect(0, "run", "p.zpl", "--manifest", "m", "--hash-content")
        files = {os.path.normpath(entry["path"]): entry for entry in json.loads(self.read("m"))["files"]}
        self.assertEqual(sorted(files), ["data.jsonl", "lib/aug.zpl", "lib/labels.csv"])
        self.assertTrue(all("xxh3_128" in entry for entry in files.values()))
        # From another folder too: the table lies beside the file that names it.
        done = subprocess.run([ZEPHONC, "run", self.path("p.zpl"), "--digest"], cwd="/", capture_output=True, text=True)
        self.assertEqual(done.stdout.strip(), self.digest("p.zpl"))
        self.write("lib/labels.csv", "name,id\na,1\nb,2\na,3\n")
        self.expect(2, "run", "p.zpl", says=["R0407", "lib/labels.csv` has the key `a` in line 2 and again in line 4"])


class Sources(Case):
    """Text, arrays, streams put together: the same whatever the plan, resumed, as ranks."""

    records = Records.records

    def pipe(self, text, streams=""):
        return f"zpl 1\n{streams}\npipeline p() {{ {text} }}"

    def continues(self, text):
        """Resumed after every second batch, and as two ranks, the run is the same."""
        self.write("q.zpl", text)
        manifest = functools.partial(Continuation.manifest, self)
        self.write("p.zpl", text)
        whole, records = manifest()["records"], []
        while True:
            part = manifest("--take", 2, "--save-state", "s", *(["--resume", "s"] if records else []))["records"]
            records += part
            if len(part) < 2:
                break
        self.assertEqual(records, whole)
        parts = [manifest("--rank", r, "--world-size", 2)["records"] for r in range(2)]
        self.assertEqual([parts[g % 2][g // 2] for g in range(len(whole) // 2 * 2)], whole[:len(whole) // 2 * 2])

    def test_compressed_lines(self):
        lines = [f"{i} {'x' * (i * 7919 % 50)}" for i in range(5000)]
        content = "\n".join(lines).encode()
        third = len(content) // 3
        self.write("a.txt.gz", gzip.compress(content[:third]) + gzip.compress(content[third:]))
        text = 'text_lines("a.txt.gz") | take(4000) | filter line % 1000 == 1 | select line, text'
        rows = self.records(self.pipe(text))
        self.assertEqual(rows, [{"line": i + 1, "text": lines[i]} for i in range(0, 4000, 1000)])
        self.continues(self.pipe('text_lines("a.txt.gz") | take(60) | shuffle() | select text | batch(8)'))
        self.write("a.txt.gz", gzip.compress(content)[:-9])
        self.expect(2, "run", "p.zpl", says=r"R0406.*a.txt.gz` is damaged at byte")

    def test_interleave(self):
        streams = "stream a = range(3)\nstream b = range(10, 15)\nstream c = range(20, 22)"
        for arguments, wanted in (("", [0, 10, 20, 1, 11, 21, 2, 12, 13, 14]),
                                  (", block_length=2", [0, 1, 10, 11, 20, 21, 2, 12, 13, 14]),
                                  (", cycle_length=2", [0, 10, 1, 11, 2, 12, 20, 13, 21, 14]),
                                  (", cycle_length=1", [0, 1, 2, 10, 11, 12, 13, 14, 20, 21])):
            text = self.pipe(f"interleave(a, b, c{arguments})", streams)
            self.assertEqual([row["index"] for row in self.records(text)], wanted, arguments)
        self.continues(self.pipe("interleave(a, b, c, block_length=2) | u = uniform(0, 1) | batch(2)", streams))

    def test_zip(self):
        self.write("a.csv", "x\n" + "".join(f"{i}\n" for i in range(40)))
        streams = """stream a = csv("a.csv", columns={x: i64}) | y = 100 // (x - 7)
stream b = range(50) | skip(5) | take(40) | u = uniform(0, 1) | twice = index * 2"""
        rows = self.records(self.pipe("zip(a, b) | filter twice != 18 | select x, index, twice", streams))
        self.assertEqual([(row["x"], row["index"]) for row in rows], [(i, i + 5) for i in range(40) if i != 4])
        # The failure of one member's field is lazy, and passes with its pair.
        rows = self.records(self.pipe("zip(a, b) | on_error(skip) | select x, y", streams))
        self.assertEqual([row["x"] for row in rows], [i for i in range(40) if i != 7])
        text = self.pipe("zip(a, b) | repeat(2) | shuffle(seed=3) | v = uniform(0, 1) | select x, index, u, v\n"
                         "| batch(7)", streams)
        pairs = [(x, i) for batch in self.records(text) for x, i in zip(batch["x"], batch["index"])]
        self.assertEqual(sorted(pairs), sorted([(i, i + 5) for i in range(40)] * 2))
        self.assertNotEqual(pairs, sorted(pairs))
        self.continues(text)
        self.continues(self.pipe("zip(a, b) | shuffle(buffer_size=9) | select x, index, u | batch(7)", streams))
        nested = (streams + "\nstream z = zip(a, b) | select x, twice"
                  "\nstream r = range(9) | x = index | twice = index | drop index")
        self.records(self.pipe("concatenate(z, r) | shuffle(seed=2) | w = uniform(0, 1)", nested))
        self.write("p.zpl", self.pipe("zip(a, b)", streams.replace("take(40)", "take(39)")))
        self.expect(2, "run", "p.zpl", says=r"R0408.*`a` has 40 samples, `b` has 39")

    def test_split(self):
        parts = [{row["index"] for row in self.records(self.pipe(
            f"range(3000) | x = index * 2 | split({part}, by=\"item {{index}}\", train=2/3, val=1/6, test=1/6)"))}
            for part in ("train", "val", "test")]
        self.assertEqual(set.union(*parts), set(range(3000)))
        self.assertEqual(sum(map(len, parts)), 3000)
        for part, share in zip(parts, (2000, 500, 500)):
            self.assertLess(abs(len(part) - share), 120)
        # Neither what stands around it nor which other parts there are changes who is in a part.
        rows = self.records(self.pipe('range(3000) | shuffle() | split(train, by="item {index}", train=2/3, rest=1/3)'))
        self.assertEqual({row["index"] for row in rows}, parts[0])
        rows = self.records(self.pipe('range(3000) | split(train, by="item {index}", seed=1, train=2/3, rest=1/3)'))
        self.assertNotEqual({row["index"] for row in rows}, parts[0])

    def test_text(self):
        rows = self.records(self.pipe("""range(4) | s = where(index % 2 == 0, "IMG_{index}.Jpg", "no ünmatch {index}")
  | low = s.lower() | n = len(s) | id = where(s.matches(r"^IMG_(\\d+)"), s.group(r"^IMG_(\\d+)"), "none")
  | year = "2024-02-29T12:00:00Z".parse_time().year() + index | words = s.regex_replace(r"[\\W_]+", " ").split()[0]
  | h = s.hash() | cut = s.substr(-3, 99) | drop s"""))
        self.assertEqual([row["low"] for row in rows], ["img_0.jpg", "no ünmatch 1", "img_2.jpg", "no ünmatch 3"])
        self.assertEqual([row["n"] for row in rows], [9, 12, 9, 12])
        self.assertEqual([row["id"] for row in rows], ["0", "none", "2", "none"])
        self.assertEqual([row["words"] for row in rows], ["IMG", "no", "IMG", "no"])
        self.assertEqual([row["cut"] for row in rows], ["Jpg", "h 1", "Jpg", "h 3"])
        self.write("p.zpl", self.pipe('range(2) | filter "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".matches(r"^(a+)+[bc]$")'))
        self.expect(2, "run", "p.zpl", says="R0423.*more than 1000000 steps")


class Views(Case):
    def setUp(self):
        super().setUp()
        self.write("p.zpl", COUNT)
        self.write("d.zpl", DECODE)

    def test_check(self):
        self.expect(0, "check", "p.zpl", says=[r"x: i64", "batch of 8"])

    def test_check_of_other_choices(self):
        self.write("c.zpl", """zpl 1
let training = mode == train
pipeline p(mode: enum(train, eval, test) = train, flip: bool = false, other: bool = true, n: int = 3) {
  range(n)
  | if training { shuffle() } else { x = missing }
  | if flip { y = index + "a" }
  | z = where(other, 1, 2)
}
""")
        done = self.expect(1, "check", "c.zpl", says=[r"with flip=true", "with mode=eval"], silent="with mode=test|other=")
        self.assertEqual(done.err.count("missing` here"), 1, str(done))  # the same in two modes is said once
        self.assertEqual(done.out.splitlines()[-1],
                         "checked with mode=train, flip=false; also: mode=eval, mode=test, flip=true")
        # What is given is meant; of many values some.
        done = self.expect(0, "check", "c.zpl", "mode=train", "flip=false", silent="checked with")
        self.expect(1, "check", "c.zpl", "mode=train", says="also: flip=true")
        names = ", ".join(f"v{i}" for i in range(12))
        self.write("m.zpl", f"zpl 1\npipeline p(m: enum({names}) = v0) {{ range(3) | if m == v11 {{ x = y }} }}\n")
        self.expect(0, "check", "m.zpl", says="also: m=v1, .*m=v8; not with 3 more$")
        # A share that only another part would miss.
        self.write("s.zpl", """zpl 1
pipeline p(part: enum(train, val) = val) { range(9) | split(part, by=index, trian=0.8, val=0.2) }
""")
        self.expect(1, "check", "s.zpl", says=["did you mean `train`", "with part=train", "also: part=train"])
        self.expect(0, "check", "p.zpl", silent="checked with")

    def test_plan(self):
        for stage in ("source", "typed", "optimized", "physical"):
            self.expect(0, "plan", "p.zpl", "--stage", stage, says="range")
        for stage in ("typed", "optimized", "physical"):
            json.loads(self.expect(0, "plan", "p.zpl", "--stage", stage, "--format", "json").out)
            self.expect(0, "plan", "p.zpl", "--stage", stage, "--format", "dot", says="^digraph")
        svg = self.zephonc("plan", "p.zpl", "--format", "svg")
        self.assertTrue(svg.code == 0 and "<svg" in svg.out if shutil.which("dot") else "Graphviz" in svg.err, str(svg))

    def test_steps_and_why(self):
        self.write("d.zpl", DECODE.replace("| select", "| take(3) | select"))
        self.expect(0, "plan", "d.zpl", f"root={PHOTOS}/bird", "--steps", says=[r"(?m)^ +[-+] ", "take"])
        self.expect(0, "plan", "d.zpl", f"root={PHOTOS}/bird", "--why", "fuse_kernels", says="fuse_kernels")
        self.expect(64, "plan", "d.zpl", f"root={PHOTOS}/bird", "--why", "fuse", says="no rule")

    def test_show(self):
        text = self.expect(0, "show", "d.zpl", f"root={PHOTOS}/bird", "--index", 1).out
        self.assertRegex(text, r"mean\s+f32")
        identity = re.search(r"id (\S+)", text)[1]
        self.assertIn(identity, self.expect(0, "show", "d.zpl", f"root={PHOTOS}/bird", "--id", identity).out)
        text = self.expect(0, "show", "d.zpl", f"root={PHOTOS}/bird", "--at", "2", "--png", "png").out
        self.assertRegex(text, r"image\s+u8\[")
        self.assertTrue(self.read("png/image.png").startswith(b"\x89PNG"))
        self.expect(2, "show", "d.zpl", f"root={PHOTOS}/bird", "--index", 100000, says="samples")

    def test_verify(self):
        self.expect(0, "verify", "p.zpl", says=["13", "x", "index"])

    def test_sheet(self):
        self.write("s.zpl", PICTURES)
        self.expect(0, "run", "s.zpl", f"root={PHOTOS}/bird", "--take", 5, "--sheet", "sheet.png")
        self.assertTrue(self.read("sheet.png").startswith(b"\x89PNG"))

    def test_ir(self):
        self.expect(0, "ir", "p.zpl", says="define")


class Tools(Case):
    """What looks at programs and data: show, where, check, scan, stats."""

    LABELS = ('zpl 1\npipeline p(root: path, size: int = 8) {\n  files("{root}/*/*.jpg")\n'
              '  | label = path.parent.name\n  | image = bytes.decode_image(mode="rgb").resize(16, 16)\n'
              '  | noise = uniform(0, 1)\n  | filter label != "b" and noise < 2\n'
              '  | select image, label\n  | batch(size)\n}\n')

    def folders(self, root="in", **counts):
        pictures = iter(photos())
        for name, count in counts.items():
            os.makedirs(self.path(f"{root}/{name}"), exist_ok=True)
            for i in range(count):
                shutil.copy(next(pictures), self.path(f"{root}/{name}/{i}.jpg"))
        return root

    def shell(self, command):
        """As a person pastes it."""
        env = {**os.environ, "PATH": self.dir + ":" + os.environ["PATH"]}
        if not os.path.exists(self.path("zephonc")):
            os.symlink(ZEPHONC, self.path("zephonc"))
        done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.dir,
                              timeout=60, text=True, errors="replace", env=env)
        return Outcome([command], done)

    def replay(self, outcome):
        command = re.search(r"see that sample alone: (.*)", outcome.err)
        self.assertTrue(command, str(outcome))
        shown = self.shell(command[1])
        self.assertEqual(shown.code, 0, str(shown))
        return shown.out

    def test_one_numbering(self):
        self.write("p.zpl", self.LABELS)
        root = f"root={self.folders(a=3)}"
        lines = re.findall(r"(?m)^#(\S+)\s+(\w+)", self.expect(0, "check", "p.zpl", root).out)
        self.assertEqual([n for n, _ in lines], ["1.1", "1.2", "2", "3", "4", "5", "6", "7"])
        for number, _ in lines:
            self.expect(0, "show", "p.zpl", root, "--at", number, says=f"after step {re.escape(number)}, ")
        self.expect(0, "show", "p.zpl", root, "--at", "1", says=["after step 1.2", "bytes"])
        self.expect(0, "show", "p.zpl", root, "--at", "1.1", says="path", silent="bytes ")
        self.expect(64, "show", "p.zpl", root, "--at", "8", says="no step `8`")
        self.expect(64, "show", "p.zpl", root, "--at", "0", says="no step `0`")
        self.expect(64, "show", "p.zpl", root, "--at", "batsh", says="did you mean `batch`")
        digest = self.digest("p.zpl", root)
        self.assertEqual(self.digest("p.zpl", root, "--set", "7.chunk=3"), digest)
        self.expect(64, "run", "p.zpl", root, "--set", "8.chunk=3", says="no step `8`")
        # The plan names the same steps.
        plan = self.expect(0, "plan", "p.zpl", root).out
        self.assertRegex(plan, r"(?m)^#\d+\s+batch .*step 7, line 9")
        report = json.loads(self.expect(0, "plan", "p.zpl", root, "--format", "json").out)
        self.assertIn([7], [node["steps"] for node in report["nodes"]])

    def test_members_of_batches(self):
        self.write("p.zpl", "range(10) | batch(4) | x = index * 10 + randint(0, 5)")
        for at, fields in (("batch", "index"), ("3", "x")):
            out = self.expect(0, "show", "p.zpl", "--index", 6, "--at", at).out
            self.assertRegex(out, rf"(?m)^  {fields} +i64 +6")
        self.expect(0, "show", "p.zpl", "--index", 6, says="draw [0-9a-f]{16} for `x`")
        self.expect(2, "show", "p.zpl", "--index", 10, says="fewer than 11")

    def test_arms(self):
        self.write("p.zpl", "zpl 1\npipeline p() {\n  stream a = range(5)\n"
                            "  stream b = range(100, 107) | filter index < 104\n  concatenate(a, b) | x = index\n}\n")
        out = self.expect(0, "show", "p.zpl", "--index", 6).out
        identity = re.search(r"id (\S+)", out)[1]
        self.assertRegex(out, r"filter index < 104.*: true")
        self.expect(0, "where", "p.zpl", identity, says="number 6")
        lost = identity.split("/")
        lost[3] = "5"
        self.expect(0, "where", "p.zpl", "/".join(lost[:4]),
                    says=["dropped by step 3, ", "line 4", r"index = 105", ": false"])

    def test_pictures(self):
        self.write("p.zpl", self.LABELS)
        root = f"root={self.folders(a=2)}"
        out = self.expect(0, "show", "p.zpl", root, "--index", 1, "--png", "png").out
        self.assertRegex(out, r"image +u8\[16, 16, 3\] +min \d+ +max \d+ +mean \d+")
        self.assertTrue(self.read("png/image.png").startswith(b"\x89PNG"))

    def test_replay_in_a_shell(self):
        folders = ["plain", "two words", "h\u00e4user \u2603", "it's", "a$b`c;d", "new\nline", "~home", "-dash"]
        for folder in folders:
            with self.subTest(folder=folder):
                self.folders(f"{folder}/data", a=2)
                self.write(f"{folder}/data/a/1.jpg", b"junk")
                self.write(f"{folder}/p.zpl", self.LABELS)
                os.chdir(self.dir)
                outcome = self.expect(2, "run", f"./{folder}/p.zpl", f"root={folder}/data", says="R0420")
                self.assertRegex(self.replay(outcome), r"image +\? +FAILED R0420")
        raw = os.fsencode(self.dir) + b"/caf\xe9"
        shutil.copytree(self.path("plain").encode(), raw)
        done = subprocess.run([ZEPHONC, "run", b"caf\xe9/p.zpl", b"root=caf\xe9/data"], stderr=subprocess.PIPE,
                              stdout=subprocess.PIPE, cwd=self.dir, text=True, errors="replace")
        self.assertRegex(self.replay(Outcome(["run"], done)), "FAILED R0420")

    def test_replay_is_that_sample(self):
        """The epoch, the step, the parameters and the seed are in the command."""
        self.write("p.zpl", "zpl 1\nfn third(x: i64) = 6 // x\npipeline p(n: int = 3, s: str = \"a\") {\n"
                            "  range(n) | t = s | k = randint(0, 4) | x = third(k) | batch(2)\n}\n")
        seeds = 0
        for seed in range(12):
            outcome = self.zephonc("run", "p.zpl", "n=4", "s=it's {x}", f"seed={seed}", "--epochs", 3)
            if outcome.code == 0:
                continue
            seeds += 1
            shown = self.replay(outcome)
            self.assertRegex(shown, r"(?m)^  k +i64 +0$")
            self.assertRegex(shown, r"(?m)^  x .*FAILED R0421")
            self.assertIn("it's {x}", shown)
        self.assertGreater(seeds, 6)

    def test_where(self):
        self.write("p.zpl", self.LABELS)
        root = f"root={self.folders(a=5, b=2, c=6)}"
        self.expect(0, "run", "p.zpl", root, "--manifest", "m.json")
        records = json.loads(self.read("m.json"))["records"]
        for record in records:
            for member, identity in enumerate(record["ids"]):
                self.expect(0, "where", "p.zpl", identity, root,
                            says=rf"batch {record['ordinal']}, member {member} of {len(record['ids'])}, epoch 0")
        self.expect(0, "where", "p.zpl", records[1]["ids"][0], root, "--world-size", 2,
                    says="rank 1 of 2, its record 0")
        self.expect(0, "where", "p.zpl", records[1]["ids"][0], root, "--world-size", 3, says="no rank of 3")
        self.expect(0, "where", "p.zpl", "0/0/0/5", root,
                    says=["b/0.jpg", "dropped by step 5", "line 7", r'label != "b" = false', r'label = "b"',
                          r"noise < 2.* = true"])
        self.expect(2, "where", "p.zpl", "0/0/0/13", root, says="no source of the program has")
        self.expect(64, "where", "p.zpl", "first", root, says="no identity")
        self.write("q.zpl", self.LABELS.replace("batch(size)", "batch(size, drop_remainder=true)"))
        self.expect(0, "where", "q.zpl", "0/0/0/12", root, says="dropped by step 7, `batch")
        self.write("r.zpl", self.LABELS.replace("| select", "| on_error(skip) | select"))
        self.write("in/c/3.jpg", b"junk")
        self.expect(0, "where", "r.zpl", "0/0/0/10", root, says=["dropped by step 6, `on_error", "R0420"])

    def test_a_sample_by_its_file(self):
        self.write("p.zpl", self.LABELS)
        root = f"root={self.folders(a=5, b=2, c=6)}"
        last = os.path.join(self.path("in"), "c/5.jpg")
        for name in ("c/5.jpg", "in/c/5.jpg", last):
            with self.subTest(name=name):
                here = f"root={self.path('in')}" if name == last else root
                out = self.expect(0, "where", "p.zpl", name, here).out
                self.assertRegex(out, r"^sample 0/0/0/12 \(.*in/c/5\.jpg\): batch 1, member 2 of 3, epoch 0")
                self.expect(0, "show", "p.zpl", here, "--id", name, says=["sample id 0/0/0/12", r"label +str +\"c\""])
        self.expect(0, "where", "p.zpl", "b/1.jpg", root, says=["sample 0/0/0/6 ", "dropped by step 5"])
        self.expect(2, "show", "p.zpl", root, "--id", "b/1.jpg", says=["b/1.jpg", "is dropped by step 5"])
        for command in (["where", "p.zpl"], ["show", "p.zpl", "--id"]):
            self.expect(64, *command, "c/55.jpg", root, says="`c/55.jpg` is no identity, .*and no sample's file")
            self.expect(64, *command, "/5.jpg", root, says="no sample's file")
            self.expect(64, *command, "1.jpg", root,
                        says=r"3 samples are called `1\.jpg`: 0/0/0/1 \(.*a/1\.jpg\), 0/0/0/6 \(.*, 0/0/0/8 \(")

    def test_lints(self):
        self.write("good.zpl", COUNT)
        self.expect(0, "check", "good.zpl", "--deny-warnings", silent="warning")
        self.write("bad.zpl", "range(10) | filter index == index")
        self.expect(0, "check", "bad.zpl", says=r"warning\[W0305\]")
        self.expect(1, "check", "bad.zpl", "--deny-warnings", says=[r"warning\[W0305\]", "1 warning, and"])
        for code in ("W0300", "W0301", "W0302", "W0303", "W0304", "W0305", "W0306", "W0307", "W0308"):
            self.expect(0, "explain", code, silent="no long text")
        for example in ("imagenet.zpl", "imagenet.yaml", "segmentation.zpl", "table.zpl", "signal.zpl"):
            self.expect(0, "check", os.path.join(ROOT, "examples", example), "--deny-warnings", silent="warning")

    def test_scan(self):
        self.write("p.zpl", self.LABELS)
        root = f"root={self.folders(a=6, b=2, c=6)}"
        self.expect(0, "scan", "p.zpl", root, says="12 samples: 12 good, 0 bad")
        for name in ("a/0", "a/4", "b/1", "c/5"):
            self.write(f"in/{name}.jpg", b"junk")
        os.remove(self.path("in/c/2.jpg"))
        os.symlink("/nowhere/at/all.jpg", self.path("in/c/2.jpg"))
        outcome = self.expect(2, "scan", "p.zpl", root, says=["12 samples: 8 good, 4 bad: 1 R0401, 3 R0420"])
        self.assertEqual(outcome.out.count("\n"), 4, str(outcome))
        self.assertRegex(outcome.out, r"(?m)^\S*in/a/4\.jpg: R0420: .* \(sample 0/0/0/4, step 3, line 5\)$")
        self.assertNotIn("b/1", outcome.out)  # a filter drops it: nobody decodes it
        rows = [json.loads(line) for line in self.expect(2, "scan", "p.zpl", root, "--json").out.splitlines()]
        self.assertEqual([row["sample"][-7:] for row in rows], ["a/0.jpg", "a/4.jpg", "c/2.jpg", "c/5.jpg"])
        for row in rows:
            self.assertIn("FAILED " + row["code"], self.shell(row["command"]).out)
        for threads in (1, 3):
            again = self.expect(2, "scan", "p.zpl", root, "--threads", threads).out
            self.assertEqual(again, outcome.out)
        # The program's own policies, limits, repeats and batches do not hide anything.
        self.write("q.zpl", self.LABELS.replace("| select", "| on_error(skip, max_errors=1) | select")
                   .replace("| batch(size)", "| repeat() | batch(size) | take(1) | x = 1 // (index_of([label], label))")
                   .replace("x = 1 // (index_of([label], label))", "sum = i64(image).sum()"))
        self.assertEqual([line.split(": ")[0] for line in self.expect(2, "scan", "q.zpl", root).out.splitlines()],
                         [line.split(": ")[0] for line in outcome.out.splitlines()])

    def test_scan_goes_on(self):
        self.write("p.zpl", "zpl 1\npipeline p(n: int = 100000) {"
                            " range(n) | x = 100 // (index % 1000 - 7) | batch(8) }\n")
        whole = self.expect(2, "scan", "p.zpl", says="100,000 samples: 99,900 good, 100 bad: 100 R0421").out
        with open(self.path("listed"), "w") as listed:
            run = subprocess.Popen([ZEPHONC, "scan", "p.zpl", "n=30000000", "--save-state", "s"], cwd=self.dir,
                                   stdout=listed, stderr=subprocess.PIPE, text=True)
        while not os.path.getsize(self.path("listed")) and run.poll() is None:
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 2)
        self.assertIn("R0506", err)
        before = self.read("listed").decode().splitlines()
        self.expect(2, "scan", "p.zpl", "--resume", "s", says="R0507")
        self.write("junk", "{}")
        self.expect(2, "scan", "p.zpl", "--resume", "junk", says="R0507")
        outcome = self.expect(2, "scan", "p.zpl", "n=30000000", "--resume", "s",
                              says="30,000,000 samples: .* 30,000 bad")
        # The report is whole: what was found before it was interrupted stands first.
        together = outcome.out.splitlines()
        self.assertEqual(together[:len(before)], before)
        self.assertEqual(len(together), 30000)
        self.assertEqual(len(set(together)), 30000)
        self.assertEqual(together[:100], whole.splitlines())

    def test_scan_killed(self):
        self.write("p.zpl", "zpl 1\npipeline p(n: int = 60_000_000) {"
                            " range(n) | x = 100 // (index % 100_000 - 7) | batch(8) }\n")
        run = subprocess.Popen([ZEPHONC, "scan", "p.zpl", "--save-state", "s"], cwd=self.dir,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(self.path("s")) and run.poll() is None:
            time.sleep(0.01)
        self.assertIsNone(run.poll(), "it was over before it saved")
        time.sleep(0.5)
        run.kill()
        run.wait()
        state = json.loads(self.read("s"))
        self.assertGreater(state["good"], 0)
        self.assertGreater(len(state["bad"]), 0)
        outcome = self.expect(2, "scan", "p.zpl", "--resume", "s", "--save-state", "s",
                              says="60,000,000 samples: 59,999,400 good, 600 bad: 600 R0421")
        self.assertEqual([re.search(r"sample (?:0/)*(\d+),", line)[1] for line in outcome.out.splitlines()],
                         [str(100_000 * i + 7) for i in range(600)])
        again = self.expect(2, "scan", "p.zpl", "--resume", "s", says="59,999,400 good, 600 bad")
        self.assertEqual(again.out, outcome.out)
        rows = self.expect(2, "scan", "p.zpl", "--resume", "s", "--json").out.splitlines()
        self.assertEqual(json.loads(rows[599])["code"], "R0421")

    def test_scan_says_what_a_batch_cannot_join(self):
        self.write("p.zpl", PICTURES.replace("image }", "image | batch(6) }"))
        self.expect(0, "scan", "p.zpl", f"root={PHOTOS}/bird", says=r"`image` comes in \d+ shapes.*R0410")

    def test_stats(self):
        import statistics
        self.write("p.zpl", 'zpl 1\npipeline p(n: int = 1000) {\n  range(n) | x = f64(index % 37) * 0.25 - 3\n'
                            '  | c = u8(index % 3) | name = "s\\{{index % 2}" | v = [f32(index), 1.5] | batch(8)\n}\n')
        out = self.expect(0, "stats", "p.zpl", "--out", "s.zpl").out
        self.assertEqual(out, self.expect(0, "stats", "p.zpl", "--threads", 3).out)
        text = self.read("s.zpl").decode()
        lets = dict(re.findall(r"(?m)^let (\w+) = (.*)$", text))
        values = [(i % 37) * 0.25 - 3 for i in range(1000)]
        self.assertAlmostEqual(float(lets["x_mean"]), statistics.fmean(values), delta=1e-15)
        self.assertAlmostEqual(float(lets["x_std"]), statistics.pstdev(values), delta=1e-14)
        self.assertEqual((float(lets["x_min"]), float(lets["x_max"])), (-3, 6))
        self.assertEqual((lets["c_values"], lets["c_counts"]), ("[0, 1, 2]", "[334, 333, 333]"))
        self.assertEqual((lets["name_values"], lets["name_counts"]), (r'["s\{0", "s\{1"]', "[500, 500]"))
        counts = [int(count) for count in re.findall(r"(?m)^ +[-.e\d]+ \.\. [-.e\d]+ +(\d+) ", out.split("x: f64")[1])]
        self.assertEqual(sum(counts), 1000)
        # What is written is a program's: constants that it can use.
        self.write("use.zpl", "zpl 1\npipeline p() {\n" + text + "  range(9) | y = (f64(index) - x_mean) / x_std"
                              " | k = name_values.index_of(\"s\\{1\") | z = [f64(index), 1] - v_mean\n}\n")
        self.expect(0, "run", "use.zpl", says="9 samples")
        self.expect(0, "stats", "p.zpl", "--field", "c", "--take", 2, says="16 samples", silent="x: f64")
        self.expect(64, "stats", "p.zpl", "--field", "nam", says="did you mean `name`")

    def test_stats_of_pictures(self):
        self.write("p.zpl", PICTURES.replace(
            "| select", "| y = image.resize(32, 32) | z = f64(y).to_chw() | select y, z,"))
        root = f"root={PHOTOS}/bird"
        outcome = self.expect(0, "stats", "p.zpl", root, "--out", "s.zpl", says=["last axis, 2", "first axis, 2"])
        lets = dict(re.findall(r"(?m)^let (\w+) = (.*)$", self.read("s.zpl").decode()))
        self.assertEqual(len(json.loads(lets["y_mean"])), 3)
        for figure in ("mean", "std", "min", "max"):
            for y, z in zip(json.loads(lets[f"y_{figure}"]), json.loads(lets[f"z_{figure}"])):
                self.assertAlmostEqual(y, z / 255, delta=1e-11, msg=str(outcome))
        self.assertIn("`y` is u8[32, 32, 3]: divided by 255, as `normalize` takes it", self.read("s.zpl").decode())
        # Normalised by them, pictures have mean 0 and deviation 1.
        consts = "".join(f"  let y_{figure} = {lets['y_' + figure]}\n" for figure in ("mean", "std"))
        self.write("n.zpl", PICTURES.replace("{ files", "{\n" + consts + "  files").replace(
            "| select image", "| n = image.resize(32, 32).normalize(mean=y_mean, std=y_std) | select n"))
        self.expect(0, "stats", "n.zpl", root, "--out", "n_stats.zpl")
        lets = dict(re.findall(r"(?m)^let (\w+) = (.*)$", self.read("n_stats.zpl").decode()))
        for mean, deviation in zip(json.loads(lets["n_mean"]), json.loads(lets["n_std"])):
            self.assertAlmostEqual(mean, 0, delta=1e-4)
            self.assertAlmostEqual(deviation, 1, delta=1e-4)
        self.write("w.zpl", PICTURES.replace("| select image", "| w = u16(i64(image.resize(8, 8)) * 257) | select w"))
        self.expect(0, "stats", "w.zpl", root, "--out", "w_stats.zpl")
        text = self.read("w_stats.zpl").decode()
        self.assertIn("divided by 65535", text)
        for value in json.loads(re.search(r"w_max = (.*)", text)[1]):
            self.assertLessEqual(value, 1)
        self.expect(0, "stats", "p.zpl", root, "--at", "1.1", says="path: path")

    def test_stats_of_values_that_may_be_missing(self):
        self.write("m.jsonl", '{"o": 10, "s": "a{b}", "r": {"n": 1}}\n{}\n{"o": 20, "s": "c", "r": {"n": 2}}\n')
        self.write("p.zpl", "zpl 1\npipeline p() {\n"
                            '  jsonl("m.jsonl", schema={o: i64?, s: str?, r: {n: i64?}})\n}\n')
        said = self.expect(0, "stats", "p.zpl", "--out", "c.zpl", says=["mean 15 ", "1 missing, not counted"],
                           silent=[r"o\?", r"#\d", '""']).out
        self.assertEqual(said.count("1 missing, not counted"), 3)
        self.assertIn("let r_n_mean = 1.5", self.read("c.zpl").decode())
        self.write("q.zpl", 'zpl 1\nimport "c.zpl" as c\npipeline q() { range(1) | x = c.o_mean | y = c.s_values }\n')
        self.expect(0, "check", "q.zpl")

    def test_scan_counts_what_is_masked_once(self):
        self.write("p.zpl", "zpl 1\npipeline p() { range(6) | x = 12 // (index - 3) | on_error(mask) }\n")
        self.expect(2, "scan", "p.zpl", says="6 samples: 5 good, 1 bad")

    def test_stats_goes_on_past_bad_samples(self):
        self.write("p.zpl", "range(9) | x = 1 // (index - 5) | batch(2)")
        self.expect(0, "stats", "p.zpl", says=["x: i64, 8 samples", "1 samples failed and are not counted",
                                               "zephonc scan p.zpl"])
        self.write("whole.zpl", "range(9) | x = index | batch(2)")
        self.expect(0, "stats", "whole.zpl", says="9 samples", silent="failed")
        self.write("deep.zpl", "range(100) | x = index | batch(6) | y = x + 1")
        self.expect(0, "stats", "deep.zpl", "--take", 3, says="y: i64, 18 samples")
        self.expect(0, "stats", "deep.zpl", "--take", 3, "--at", 2, says="x: i64, 3 samples")
        self.expect(0, "stats", "deep.zpl", "--take", 2**63 - 1, says="y: i64, 100 samples")
        self.write("q.zpl", "range(9) | x = 1 // (index - 5) | on_error(skip)")
        self.expect(0, "stats", "q.zpl", says=["8 samples", "1 samples failed and are not counted"])


class Costs(Case):
    """What is measured on this machine and of this data, kept, used by the next plan, and never seen in the data."""

    def setUp(self):
        super().setUp()
        cache = self.path("cache")
        os.mkdir(cache, 0o700)
        self.env = {**os.environ, "ZEPHON_CACHE_DIR": cache}
        del self.env["ZEPHON_MEASURED"]
        # By their form the second keeps less: it is an equality. In truth the first does.
        self.write("t.csv", "a,b\n" + "".join(f"{i},{7 if i % 50 else 8}\n" for i in range(2000)))
        self.write("p.zpl", 'csv("t.csv", columns={a: i64, b: i64})\n'
                            '| filter (a * 3 + b) * 5 % 1000 > 980\n'
                            '| filter (b * 3 + b + a * 0) * 5 % 1000 == 140\n'
                            '| batch(4)\n')

    def costs(self, *more, env=None):
        done = self.expect(0, "plan", "p.zpl", "--json", *more, env=env or self.env)
        plan = json.loads(done.out)
        return plan["costs"], [f["line"] for f in plan["costs"]["filters"]], plan

    def run_digest(self, *more):
        return self.expect(0, "run", "p.zpl", "--digest", *more, env=self.env).out

    def files(self, kind):
        return [os.path.join(self.path("cache"), f) for f in os.listdir(self.path("cache")) if f.startswith(kind)]

    def test_measured_shares_flip_the_order_of_filters(self):
        costs, order, _ = self.costs()
        self.assertEqual((order, costs["data"]), ([3, 2], ""))
        self.assertFalse(any(f["measured"] for f in costs["filters"]))
        first = self.run_digest()
        costs, order, plan = self.costs()
        self.assertEqual(order, [2, 3])
        self.assertRegex(costs["data"], r"^\d{4}-\d\d-\d\d \d\d:\d\d$")
        kept = {f["line"]: f for f in costs["filters"]}
        self.assertTrue(kept[2]["measured"] and kept[3]["measured"])
        self.assertLess(kept[2]["kept"], 0.06)
        self.assertGreater(kept[3]["kept"], 0.9)
        self.assertEqual(kept[3]["rows"], 2000)
        self.assertEqual(self.run_digest(), first, "another order, the same data")
        self.assertEqual(self.run_digest("--reference"), first)
        text = self.expect(0, "plan", "p.zpl", env=self.env).out
        self.assertRegex(text, r"(?m)^  line 2 keeps \d\.\d+%, measured on \S+ rows: filter ")
        # Once it is known well, it stays as it is: no plan follows the noise of runs.
        content = lambda: [self.read(f) for f in self.files("data-")]
        before = content()
        self.run_digest()
        self.assertEqual(self.costs()[1], [2, 3])
        self.assertEqual(content(), before)
        # A plan that was written is replayed, whatever is measured or forgotten since.
        self.write("plan.json", json.dumps(plan))
        self.expect(0, "calibrate", "--clear", env=self.env, says="removed")
        self.assertEqual(self.costs()[1], [3, 2])
        self.assertEqual(self.run_digest("--plan", "plan.json", "--no-measured"), first)
        self.write("costs.json", json.dumps(plan["options"]["measured"]))
        costs, order, _ = self.costs("--costs", "costs.json")
        self.assertEqual((order, costs["file"]), ([2, 3], "costs.json"))

    def test_other_programs_over_the_same_data_know_it_and_other_data_do_not(self):
        self.run_digest()
        self.write("q.zpl", 'csv("t.csv", columns={a: i64, b: i64}) | batch_of = b\n'
                            '| filter (batch_of * 3 + b + a * 0) * 5 % 1000 == 140 | select a\n')
        costs = json.loads(self.expect(0, "plan", "q.zpl", "--json", env=self.env).out)["costs"]
        self.assertEqual([f["measured"] for f in costs["filters"]], [True])
        self.write("t.csv", "a,b\n" + "".join(f"{i},9\n" for i in range(30)))
        costs, order, _ = self.costs()
        self.assertEqual((order, costs["data"]), ([3, 2], ""), "the file is another")
        self.run_digest()
        self.assertEqual(self.costs()[0]["filters"][0]["rows"], 30)

    def test_nothing_is_used_or_kept_where_that_is_asked_for(self):
        off = {**self.env, "ZEPHON_MEASURED": "off"}
        self.expect(0, "run", "p.zpl", env=off)
        self.expect(0, "run", "p.zpl", "--no-measured", env=self.env)
        self.assertEqual(self.files("data-"), [])
        self.run_digest()
        self.assertEqual(len(self.files("data-")), 1)
        for env, more in ((off, ()), (self.env, ("--no-measured",))):
            self.assertEqual(self.costs(*more, env=env)[1], [3, 2])
        self.expect(0, "plan", "p.zpl", "--no-measured", env=self.env,
                    says="costs: assumed, what was measured is not used")

    def test_a_damaged_file_is_told_and_written_anew(self):
        first = self.run_digest()
        path, = self.files("data-")
        with open(path, "r+b") as file:
            file.seek(200)
            file.write(b"#")
        done = self.expect(0, "plan", "p.zpl", env=self.env, says="warning: `.*data-.*` is damaged and is not used")
        self.assertIn("costs: assumed", done.out)
        self.assertEqual(self.expect(0, "run", "p.zpl", "--digest", env=self.env, says="damaged").out, first)
        self.expect(0, "plan", "p.zpl", env=self.env, silent="damaged", says="measured on")

    def test_calibrate(self):
        done = self.expect(0, "calibrate", "--json", env=self.env, says="operators measured in .* kept in `.*cache`")
        costs = json.loads(done.out)
        self.assertGreater(len(costs["operators"]), 60)
        for name, cost in costs["operators"].items():
            for key in ("ns_per_call", "ns_per_element", "ns_per_input_byte"):
                self.assertTrue(0 <= cost[key] < 1e7, f"{name} {key} {cost[key]}")
        of = lambda name: costs["operators"][name]["types"]["f64"]
        self.assertLess(of("add") * 20, of("pow"))
        costs = self.costs()[0]
        self.assertRegex(costs["machine"], r"^\d{4}-")
        self.assertIn("mul", costs["operators"]["calibrated"])
        self.assertEqual(self.run_digest("--reference"), self.run_digest())
        path, = self.files("machine-")
        with open(path, "a") as file:
            file.write("x")
        self.expect(0, "plan", "p.zpl", env=self.env, says="damaged and is not used; `zephonc calibrate` writes it anew")
        os.chmod(self.path("cache"), 0o755)
        self.expect(2, "calibrate", env=self.env, says="cannot be kept")


class Manifests(Case):
    def setUp(self):
        super().setUp()
        self.write("p.zpl", "zpl 1\npipeline p(n: int = 96) {\n  range(n) | shuffle() | x = index * 3 | batch(4)\n}\n")

    def part(self, name, *args):
        self.expect(0, "run", "p.zpl", *args, "--manifest", name)
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def test_ranks_compose(self):
        whole = self.part("whole", "--epochs", 2)
        for world in (1, 2, 3, 4):
            names = [f"r{r}" for r in range(world)]
            for r, name in enumerate(names):
                self.part(name, "--epochs", 2, "--rank", r, "--world-size", world)
            outcome = self.expect(0, "manifest", "compose", *reversed(names), "--out", f"all{world}")
            self.assertEqual(outcome.out.strip(), self.digest("p.zpl", "--epochs", 2))
            composed = json.loads(self.read(f"all{world}"))
            for key in ("records", "digest", "record_count", "params", "files", "rank", "world_size"):
                self.assertEqual(composed[key], whole[key], key)

    def test_continuations_compose(self):
        self.part("a", "--take", 7, "--save-state", "s")
        self.part("b", "--resume", "s", "--take", 5, "--save-state", "s")
        self.part("c", "--resume", "s")
        self.assertEqual(self.expect(0, "manifest", "compose", "a", "b", "c").out.strip(), self.digest("p.zpl"))
        self.expect(2, "manifest", "compose", "a", "c", says=["R0509", "record 7 of epoch 0 is missing"])
        self.expect(2, "manifest", "compose", "a", "b", "b", "c", says=["R0509", "delivered twice"])

    def test_what_does_not_belong_together(self):
        self.part("r0", "--rank", 0, "--world-size", 2)
        self.part("r1", "--rank", 1, "--world-size", 2)
        self.expect(2, "manifest", "compose", "r0", says=["R0509", "rank 1 of 2 is missing"])
        self.part("other", "n=88", "--rank", 1, "--world-size", 2)
        self.expect(2, "manifest", "compose", "r0", "other", says=["R0509", "`params`|`program_fingerprint`"])
        self.part("seed", "seed=1", "--rank", 1, "--world-size", 2)
        self.expect(2, "manifest", "compose", "r0", "seed", says=["R0509", "`seed`|`program_fingerprint`"])
        changed = json.loads(self.read("r1"))
        changed["records"][3]["digest"] = changed["records"][2]["digest"]
        self.write("forged", json.dumps(changed))
        self.expect(2, "manifest", "compose", "r0", "forged", says=["R0509", "the file was changed"])
        self.write("junk", "{}")
        self.expect(2, "manifest", "compose", "junk", says=["R0509", "no manifest"])
        self.expect(2, "manifest", "compose", "nowhere", says="R0401")
        self.expect(64, "manifest", "join", "r0", says="compose")

    def test_files(self):
        os.mkdir(self.path("in"))
        for i in range(3):
            shutil.copy(photos()[i], self.path(f"in/{i}.jpg"))
        self.write("t.csv", "a\n1\n2\n3\n")
        self.write("p.zpl", 'zpl 1\npipeline p() {\n  stream t = csv("t.csv", columns={a: i64}) | select a\n'
                            '  stream f = files("in/*.jpg") | a = i64(byte_length(bytes)) | select a\n'
                            '  concatenate(t, f)\n}\n')
        manifest = self.part("m")
        names = [os.path.basename(entry["path"]) for entry in manifest["files"]]
        self.assertEqual(sorted(names), ["0.jpg", "1.jpg", "2.jpg", "t.csv"])
        for entry in manifest["files"]:
            status = os.stat(os.path.join(self.dir, entry["path"]))
            self.assertEqual((entry["size"], entry["mtime_ns"]), (status.st_size, status.st_mtime_ns))
        self.assertRegex(manifest["versions"], r"libjpeg-turbo \d.*LLVM \d.*TBB \d")
        hashed = self.part("h", "--hash-content")["files"]
        self.assertTrue(all(len(entry["xxh3_128"]) == 32 and "mtime_ns" not in entry for entry in hashed))
        os.utime(self.path("t.csv"), (1, 1))
        self.assertEqual(self.part("h", "--hash-content")["files"], hashed)
        self.write("t.csv", "a\n1\n2\n4\n")
        again = self.part("h", "--hash-content")["files"]
        self.assertEqual(sum(a != b for a, b in zip(again, hashed)), 1)


class First(Case):
    """`init`: a first program for a folder, by what lies in it."""

    def init(self, folder, *says, code=0, name="p.zpl"):
        outcome = self.expect(code, "init", folder, "--out", name, says=says)
        if code == 0:
            self.expect(0, "check", name, "--deny-warnings", silent="warning")
            self.expect(0, "run", name, "--take", 2, says="samples")
            self.assertEqual(outcome.out.strip(), name)
        return self.read(name).decode() if code == 0 else outcome

    def pictures(self, *paths):
        for path, source in zip(paths, photos()):
            os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
            shutil.copy(source, self.path(path))

    def test_folder_per_class(self):
        self.pictures(*[f"my photos/{c}/{i}.jpg" for c in ("cat", "dog") for i in range(5)])
        text = self.init("my photos", "10 pictures in 2 folders", "cat, dog", r"image: f32\[\d, 3, 224, 224\]",
                         "label: i64")
        self.assertIn('files("{root}/*/*.jpg")', text)
        self.expect(0, "verify", "p.zpl", "size=32", "--take", 1)
        self.expect(0, "run", "p.zpl", "mode=eval", says="10 samples")
        self.expect(2, "init", "my photos", "--out", "p.zpl", says="R0502")

    def test_splits(self):
        self.pictures(*[f"d/{s}/{c}/{i}.JPG" for s in ("train", "val") for c in "ab" for i in range(3)])
        text = self.init("d", "6 pictures in 2 folders", "train, val")
        self.assertIn('root: path = "d/train"', text)
        self.assertIn("*.JPG", text)
        self.expect(0, "run", "p.zpl", "root=d/val", says="6 samples")

    def test_flat(self):
        self.pictures("in/a.jpg", "in/b.jpeg", "in/c.JPG")
        self.init("in", "3 pictures", "no labels")
        self.expect(0, "run", "p.zpl", says="3 samples")

    def test_masks(self):
        source = os.path.join(ROOT, "examples/data/segmentation")
        text = self.init(source, "pictures with masks", "images/x.jpg is masks/x.jpg", "mask: u8")
        self.assertIn('replace("/images/", "/masks/")', text)
        self.expect(0, "verify", "p.zpl", "size=32", "--take", 1)

    def test_table(self):
        rows = "".join(f"{i},{i * 0.5},{'red' if i % 3 else 'blue'},{'' if i == 4 else i}\n" for i in range(50))
        self.write("in/t.csv", "a,b,colour,gap\n" + rows)
        text = self.init("in", "50 rows of 4 columns", "empty fields are text: gap")
        self.assertIn("columns={a: i64, b: f64, colour: str, gap: str}", text)
        rows = "".join(f"{i},{i * 0.5},{'red' if i % 3 else 'bl ue'}\n" for i in range(50))
        self.write("in/t.csv", "a,b,class\n" + rows)
        text = self.init("in", "`class` is the label", r"features: f32\[\d+, 2\]", "label: i64", name="q.zpl")
        self.assertIn('let classes = ["bl ue", "red"]', text)
        self.init(os.path.dirname(self.write("n/t.csv", "1,2.5\n3,4\n")), "2 rows", name="n.zpl")

    def test_text_and_nothing(self):
        self.write("in/a/x.txt", "one\ntwo\n")
        self.write("in/b/y.txt", "three\n")
        self.init("in", "2 files of text", "text: str")
        self.expect(0, "run", "p.zpl", says="3 samples")
        os.mkdir(self.path("empty"))
        self.init("empty", "nothing in", code=2, name="e.zpl")
        self.write("odd/x.bin", b"\0\1\2" * 100)
        self.init("odd", "1 .bin", code=2, name="e.zpl")
        self.expect(64, "init", "nowhere", says="no folder")

    def test_content_not_names(self):
        self.pictures("in/a/1.txt", "in/b/2.txt")
        self.init("in", "2 pictures in 2 folders")

    def test_bad_pictures_are_dropped(self):
        self.pictures(*[f"in/{c}/{i}.jpg" for c in "ab" for i in range(6)])
        for name in ("in/a/0.jpg", "in/b/3.jpg"):
            self.write(name, b"")
        self.write("in/b/4.jpg", b"<html>not found</html>\n")
        self.write("in/b/notes.txt", b"mine\n")
        text = self.init("in", "12 pictures in 2 folders, 2 of them empty, 1 damaged or no picture")
        self.assertRegex(text, r"\| select image, label\n  \| on_error\(skip\) +# what does not decode is dropped.*\n  \| batch\(")
        self.expect(2, "scan", "p.zpl", says="12 samples: 9 good, 3 bad")
        self.expect(0, "run", "p.zpl", says=["9 samples", "3 failed: skip"])
        # The step that is offered in a comment is one.
        split = re.search(r"# (\| split\(.*\))", text)[1]
        self.write("s.zpl", text.replace("# | split", "| split").replace("mode: enum", "part: enum(train, val) = train, mode: enum"))
        self.assertIn('by="{path.parent.name}/{path.name}", train=0.9, val=0.1', split)
        counts = [int(re.search(r"(\d+) samples", self.expect(0, "run", "s.zpl", f"part={p}").err)[1]) for p in ("train", "val")]
        self.assertEqual(sum(counts), 9)

    def test_bad_masks_and_rows_are_dropped(self):
        self.pictures(*[f"in/{f}/{i}.jpg" for f in ("images", "masks") for i in range(4)])
        for i in range(4):
            shutil.copy(self.path(f"in/images/{i}.jpg"), self.path(f"in/masks/{i}.jpg"))
        self.write("in/masks/2.jpg", b"")
        text = self.init("in", "4 pictures with masks, 1 of them empty")
        self.expect(2, "scan", "p.zpl", says="4 samples: 3 good, 1 bad")
        self.assertIn("| on_error(skip)", text)
        self.write("t/t.csv", "a,b\n" + "".join(f"{i},{i * 2}\n" for i in range(20)) + "7\n")
        text = self.init("t", "21 rows of 2 columns in t.csv, 1 of them bad", name="t.zpl")
        self.expect(2, "scan", "t.zpl", says="21 samples: 20 good, 1 bad")
        self.assertIn("| on_error(skip)", text)

    def test_a_bad_first_batch_is_said(self):
        self.pictures("in/a/1.jpg", "in/b/2.jpg")
        for name in ("in/a/1.jpg", "in/b/2.jpg"):
            self.write(name, self.read(name)[:600])
        self.init("in", "R0420", "none of its samples is good", "zephonc scan p.zpl", code=2)
        self.expect(2, "scan", "p.zpl", says="2 bad")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
