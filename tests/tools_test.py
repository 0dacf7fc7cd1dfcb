#!/usr/bin/env python3
"""The tools around the language: tests inside a program with values of every type, the sheet, small faults, a run that
is killed, and every message of a failed run.

usage: tools_test.py ZEPHONC [TEST...]
ZEPHON_BLESS=1 rewrites tests/cli/failures.txt.
"""
import os
import re
import shutil
import struct
import subprocess
import signal
import sys
import time
import unittest
import zipfile
import zlib

sys.dont_write_bytecode = True
import cli_test
from cli_test import PHOTOS, ROOT, Case

SCHEMA = ("{text: str, lang: str?, author: {name: str?, id: i64}?, tags: list<str>, rows: list<list<f32>>,\n"
          "      items: list<{id: i64, name: str?}>, deep: list<list<list<i64>>>, marks: list<i64?>, w: f32[2]}")


def npy(descr, shape, data):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def read_png(data):
    """Width, height and the rows of an 8-bit RGB PNG."""
    at, body, width, height = 8, b"", 0, 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        chunk = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height = struct.unpack(">II", chunk[:8])
        if kind == b"IDAT":
            body += chunk
        at += 12 + size
    raw, step, rows = zlib.decompress(body), width * 3, []
    before = bytearray(step)
    for y in range(height):
        line = bytearray(raw[y * (step + 1) + 1:(y + 1) * (step + 1)])
        how = raw[y * (step + 1)]
        for i in range(step):
            a = line[i - 3] if i >= 3 else 0
            b = before[i]
            c = before[i - 3] if i >= 3 else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[i] = (line[i] + (0, a, b, (a + b) // 2, paeth)[how]) % 256
        rows.append(bytes(line))
        before = line
    return width, height, rows


class Tests(Case):
    """`zephonc test`: values of every type."""
    PROGRAM = ("zpl 1\n\nlet few = [1, 2]\n\npipeline all {\n"
               f"  jsonl(\"r/*.jsonl\", schema={SCHEMA})\n"
               "  | n = len(tags)\n  | first = default(lang, \"en\")\n  | total = rows[0].sum()\n}\n\n"
               "pipeline padded {\n  jsonl(\"r/*.jsonl\", schema={t: list<i64>, m: list<i64?>, s: str?})\n"
               "  | padded_batch(2, padding={t: -1})\n}\n\n"
               "pipeline pictures {\n  files(\"p/*.jpg\") | image = bytes.decode_image() | dark = image.f32().mean() < 9\n"
               "  | select image, dark\n}\n\n")
    GOOD = ('test "all of it" of all {\n'
            '  input: {\n    text: "a", lang: missing, author: {name: "n", id: -3}, tags: ["a", "b"], rows: [[1, 2], [3]],\n'
            '    items: [{id: 1, name: "x"}, {id: 2}], deep: [[[1], []], [], [[2, 3]]], marks: [1, missing, 3], w: few,\n  }\n'
            '  expect: {\n    n: 2, lang: missing, first: "en", author: {name: "n", id: -3}, tags: ["a", "b"],\n'
            '    rows: [[1, 2], [3]], total: 3, items: [{id: 1, name: "x"}, {id: 2, name: missing}],\n'
            '    deep: [[[1], []], [], [[2, 3]]], marks: [1, missing, 3], w: [1, 2],\n  }\n}\n\n'
            'test "lengths differ, and optional fields may be left out" of all {\n'
            '  input: [\n    {text: "a", tags: ["a"], rows: [[0.5]], items: [], deep: [], marks: [], w: [1, 2]},\n'
            '    {text: "b", lang: "de", tags: [], rows: [[1], [2, 3]], items: [{id: 7}], deep: [[[1]]], marks: [missing],\n'
            '      w: [3, 4], author: {id: 1}},\n  ]\n'
            '  expect: [{n: 1, author: missing, rows: [[0.5]], items: [], deep: []},\n'
            '    {n: 0, first: "de", author: {name: missing, id: 1}, tags: [], rows: [[1], [2, 3]], marks: [missing]}]\n}\n\n'
            'test "padded" of padded {\n'
            '  input: [{t: [1, 2], m: [missing], s: "x"}, {t: [3], m: [4, 5]}, {t: [], m: []}]\n'
            '  expect: [{t: [[1, 2], [3, -1]], s: ["x", missing]}, {t: [[]], s: [missing]}]\n}\n\n'
            'test "tensors of two shapes" of pictures {\n'
            '  input: [{path: "a", bytes: read_file("a.jpg")}, {path: "b", bytes: read_file("b.jpg")}]\n'
            '  expect: [{dark: false}, {dark: false}]\n}\n')

    def pictures(self):
        names = sorted(os.listdir(os.path.join(PHOTOS, "bird")))
        for name, photo in zip("ab", names):
            with open(os.path.join(PHOTOS, "bird", photo), "rb") as file:
                self.write(f"{name}.jpg", file.read())

    def test_every_type_in_both_forms(self):
        self.pictures()
        path = self.write("t.zpl", self.PROGRAM + self.GOOD)
        self.assertIn("4 of 4 tests hold", self.expect(0, "test", path).out)
        self.expect(0, "convert", path, "-o", self.path("t.yaml"))
        self.assertIn("4 of 4 tests hold", self.expect(0, "test", self.path("t.yaml")).out)
        # The layout is one, and what is converted twice is what was laid out.
        self.expect(0, "fmt", path)
        laid_out = self.read("t.zpl")
        self.expect(0, "fmt", "--check", path, self.path("t.yaml"))
        self.expect(0, "convert", self.path("t.yaml"), "-o", self.path("back.zpl"))
        self.assertEqual(self.read("back.zpl"), laid_out)
        self.assertIn("4 of 4 tests hold", self.expect(0, "test", self.path("back.zpl")).out)

    def test_written_as_yaml(self):
        self.write("t.yaml", "zpl: 1\npipeline: p\nsteps:\n"
                   "  - jsonl: {path: \"a.jsonl\", schema: {a: '{s: str?, n: list<list<i64>>}', t: 'list<str>'}}\n"
                   "  - set: {k: len(t)}\n"
                   "tests:\n  nested:\n    input:\n"
                   "      - a: {s: \"two words\", n: [[1, 2], []]}\n        t: [x, \"y z\"]\n"
                   "      - {a: {n: []}, t: []}\n"
                   "    expect:\n      - {k: 2, a: {s: \"two words\", n: [[1, 2], []]}}\n      - {k: 0, a: {s: missing, n: []}}\n"
                   .replace("[x, ", "[\"x\", "))
        self.assertIn("1 of 1 tests hold", self.expect(0, "test", "t.yaml").out)
        self.expect(0, "convert", "t.yaml", "-o", self.path("t.zpl"))
        self.assertIn("1 of 1 tests hold", self.expect(0, "test", "t.zpl").out)
        self.expect(0, "fmt", "--check", "t.zpl")

    def fails(self, test, *says):
        program = self.PROGRAM + f'test "a" of {test}\n'
        self.expect(1, "test", self.write("bad.zpl", program), says=[re.escape(text) for text in says])

    def test_what_differs(self):
        given = 'input: {text: "a", tags: ["a", "b"], rows: [[1, 2], [3]], items: [{id: 1, name: "x"}], marks: [1, missing]}'
        self.fails(f'all {{ {given} expect: {{rows: [[1, 2],\n [4]]}} }}', "bad.zpl:24:3", "`rows` differs",
                   "  rows: list<f32[?]>, 1 of 3 elements differs\n      [0, 1]  2\n    - [1, 0]  4\n    + [1, 0]  3\n")
        self.fails(f'all {{ {given} expect: {{rows: [[1, 2, 9], [3]]}} }}',
                   "record 1 is not what is expected", "      [0, 1]  2\n    - [0, 2]  9\n      [1, 0]  3\n")
        self.fails(f'all {{ {given} expect: {{tags: ["a"]}} }}',
                   "  tags: str[1] expected, str[2] delivered\n      [0]  \"a\"\n    + [1]  \"b\"\n")
        self.fails(f'all {{ {given} expect: {{lang: "de", author: {{name: missing, id: 3}}, items: [{{id: 1, name: "y"}}],'
                   ' marks: [1, 2]} }',
                   "  lang: str?\n    - \"de\"\n    + missing\n", "  author.id: i64?\n    - 3\n    + missing\n",
                   "  items.name: str?[?]\n    - [0]  \"y\"\n    + [0]  \"x\"\n",
                   "  marks: i64?[?], 1 of 2 elements differs\n      [0]  1\n    - [1]  2\n    + [1]  missing\n")
        self.fails(f'all {{ {given} expect: [] }}', "+ record 1\n", "+   lang: str? missing\n",
                   "+   rows: list<f32[?]> [0, 0]  1, [0, 1]  2, [1, 0]  3\n")

    def test_what_no_value_is(self):
        for test, says in (
                ('all { input: {text: "a", author: {nmae: "n"}} expect: {n: 0} }',
                 ["`author` has no field `nmae`", "did you mean `name`"]),
                ('all { input: {text: "a", author: 3} expect: {n: 0} }', ["`author` is a record"]),
                ('all { input: {text: {a: 3}} expect: {n: 0} }', ["`text` is no record"]),
                ('all { input: {text: missing} expect: {n: 0} }', ["`text` is `str`, found `missing`"]),
                ('all { input: {rows: 3} expect: {n: 0} }', ["`rows` is `list<f32[?]>`, found no list"]),
                ('all { input: {rows: [3]} expect: {n: 0} }', ["`rows` is `list<f32[?]>`, found no list"]),
                ('all { input: {rows: [["x"]]} expect: {n: 0} }', ["`f32` is needed, found a string"]),
                ('all { input: {tags: [["x"]], rows: [[1]]} expect: {n: 0} }', ["`tags` is `str[?]`, found `str[1, 1]`"]),
                ('all { input: {tags: "x", rows: [[1]]} expect: {n: 0} }', ["`tags` is `str[?]`, found `str`"]),
                ('all { input: {w: [1, 2, 3], tags: [], rows: []} expect: {n: 0} }', ["`w` is `f32[2]`, found `f32[3]`"]),
                ('all { input: {items: [{id: 1}, {name: "x"}]} expect: {n: 0} }', ["`items.id` is", "found nothing"]),
                ('all { input: [{tags: ["x"]}, {text: "x"}] expect: {n: 0} }',
                 ["the sample gives no `tags`", "this one does"]),
                ('all { input: {author: {name: "a", name: "b"}} expect: {n: 0} }', ["`name` stands twice in one record"]),
                ('all { input: {author: {name: str}} expect: {n: 0} }', ["`str` is needed, found a type"]),
                ('all { input: {author: {name: f32[3]}} expect: {n: 0} }', ["`name` in a record is no value"]),
                ('all { input: {text: "a", rows: [[1]], lang: "x", tags: []} expect: {author: {no: 3}} }',
                 ["`author` has no field `no`"])):
            with self.subTest(test=test):
                self.fails(test, *says)


    def test_check_looks_at_tests(self):
        program = 'zpl 1\npipeline p { range(3) | x = index * 2 }\ntest "a" { input: {index: 1} expect: {%s: 2} }\n'
        self.expect(0, "check", self.write("a.zpl", program % "x"))
        self.expect(1, "check", self.write("a.zpl", program % "z"), says="`z` is not delivered")
        two = program.replace('test "a"', 'pipeline q { range(2) }\ntest "a" of q')
        self.expect(1, "check", self.write("a.zpl", two % "x"), says="`x` is not delivered")
        self.expect(0, "check", self.path("a.zpl") + ":q")


class Sheet(Case):
    """What stands below the pictures of `run --sheet`."""

    def sheet(self, steps, *args):
        path = self.write("s.zpl", 'zpl 1\npipeline p { files("%s/*/*.jpg") | image = bytes.decode_image()%s }\n' % (PHOTOS, steps))
        self.expect(0, "run", path, "--take", 2, "--sheet", self.path("s.png"), *args)
        return read_png(self.read("s.png"))

    def ink(self, rows, top, left, width):
        """The rows of a line of text, as texts."""
        return ["".join("#" if rows[top + y][(left + x) * 3] > 100 else "." for x in range(width)) for y in range(10)]

    def test_fields_are_named(self):
        width, height, rows = self.sheet(" | label = 7 + f32(0).i64() | select image, label")
        self.assertEqual((width, height), (2 * 132 + 4, 4 + 128 + 4 + 10 + 4))
        a = self.ink(rows, 4 + 128 + 4, 4, 42)
        self.assertEqual(a, self.ink(rows, 4 + 128 + 4, 4 + 132, 42))
        # "l" and "7", as the font has them.
        self.assertEqual([r[36:42] for r in a][:8], ["......", "#####.", "....#.", "...#..", "...#..", "..#...", ".#....", ".#...."])
        _, _, other = self.sheet(" | label = 8 + f32(0).i64() | select image, label")
        b = self.ink(other, 4 + 128 + 4, 4, 42)
        self.assertEqual([r[:36] for r in a], [r[:36] for r in b])
        self.assertNotEqual([r[36:] for r in a], [r[36:] for r in b])

    def test_long_words_keep_their_end(self):
        _, _, a = self.sheet(' | name = "a long name before the number 1" | select image, name')
        _, _, b = self.sheet(' | name = "a long name before the number 2" | select image, name')
        self.assertNotEqual(a, b)

    def test_several_pictures_are_told_apart(self):
        _, height, _ = self.sheet(" | image = image.resize(32, 32) | gray = image[:, :, 0] | select image, gray | batch(2)")
        self.assertEqual(height, 4 + 128 + 4 + 2 * 10 + 4)  # the field, and the identity where no field says more

    def test_in_batches(self):
        plain = self.sheet(" | image = image.resize(32, 32) | label = index_of([\"bird\", \"cat\"], \"cat\") | select image, label")
        packed = self.sheet(" | image = image.resize(32, 32) | label = index_of([\"bird\", \"cat\"], \"cat\") | select image, label | batch(1)")
        self.assertEqual(plain, packed)


class Small(Case):
    """Faults that were found, each kept."""

    def test_statistics_of_large_integers(self):
        self.write("a.jsonl", '{"x": 9007199254740993}\n{"x": -9223372036854775808}\n{"x": 9223372036854775807}\n')
        path = self.write("p.zpl", 'zpl 1\npipeline p { jsonl("a.jsonl", schema={x: i64}) }\n')
        self.expect(0, "stats", path, "--out", self.path("s.zpl"))
        text = self.read("s.zpl").decode()
        self.assertIn("let x_min = -9223372036854775808\n", text)
        self.assertIn("let x_max = 9223372036854775807\n", text)
        self.assertIn("9007199254740993", text)
        self.write("q.zpl", 'zpl 1\nimport "s.zpl" as s\npipeline q { jsonl("a.jsonl", schema={x: i64}) | filter x == s.x_max }\n')
        self.expect(0, "run", self.path("q.zpl"))

    def test_messages_name_the_archive(self):
        with zipfile.ZipFile(self.path("a.npz"), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", npy("<u8", "(1,)", struct.pack("<Q", 2**64 - 1)))
        path = self.write("p.zpl", 'zpl 1\npipeline p { npz("a.npz", columns={x: i64}) }\n')
        self.expect(2, "run", path, says=r"a number in `[^`]*/a\.npz` is above the largest", silent="/proc/")

    def test_files_with_odd_names(self):
        for name in ("-dash.jpg", "a\nb.jpg", "sp ace.jpg"):
            self.write("p/" + name, b"x")
        path = self.write("p.zpl", 'zpl 1\npipeline p { files("p/*.jpg") | batch(2) }\n')
        self.expect(0, "where", path, "a\nb.jpg", says="batch 0, member 1 of 2")
        self.expect(0, "where", path, "a?b.jpg", says="batch 0, member 1 of 2")  # as messages say it
        self.expect(0, "where", path, "--", "-dash.jpg", says="batch 0, member 0 of 2")
        self.expect(0, "where", path, "p/-dash.jpg", says="batch 0, member 0 of 2")
        self.expect(0, "where", path, "./p/sp ace.jpg", says="batch 1, member 0 of 1")
        self.expect(0, "show", path, "--id", "p/-dash.jpg", "--at", "1", says="dash")
        self.expect(0, "show", path, "--id=-dash.jpg", "--at", "1", says="dash")
        self.expect(64, "where", path, "-dash.jpg", says=re.escape("`zephonc where ... -- -dash.jpg`"))

    def test_constants_of_operators(self):
        one = self.write("a.zpl", "zpl 1\npipeline p(n: int = 3) { let m = maximum(n, 4)\nrange(20) | if minimum(m, 9) == 4 { take(m + 1) }"
                         " | x = [1, 2, 3, 4, 5][1:minimum(3, 9)] | batch(maximum(2, m - 1)) }\n")
        two = self.write("b.zpl", "zpl 1\npipeline p { range(20) | take(5) | x = [1, 2, 3, 4, 5][1:3] | batch(3) }\n")
        self.assertEqual(self.digest(one), self.digest(two))
        self.expect(1, "check", self.write("c.zpl", "zpl 1\npipeline p { range(20) | batch(randint(2, 4)) }\n"), says="E0209")

    def test_a_split_is_shown_as_written(self):
        path = self.write("p.zpl", "zpl 1\npipeline p(part: enum(train, val, test) = val) {\n  range(100)\n"
                          "  | split(part, by=index, train=0.8, val=0.1, test=0.1)\n  | batch(4)\n}\n")
        for args in ((), ("--stage", "typed")):
            self.assertRegex(self.expect(0, "plan", path, *args).out,
                             r"#2 +split\(part, by=index, train=0\.8, val=0\.1, test=0\.1\) +line 4")
        optimized = self.expect(0, "plan", path, "--stage", "optimized").out
        self.assertIn("of split(part, by=index, train=0.8, val=0.1, test=0.1)", optimized)
        # The first share has no lower bound, and the last no upper one.
        for part in ("train", "test"):
            out = self.expect(0, "plan", path, f"part={part}", "--stage", "optimized").out
            self.assertEqual(out.count("filter"), 1, out)
            self.assertNotIn("9223372036854775808", out)
        sizes = [int(re.search(r'"samples": ?(\d+)', self.expect(0, "run", path, f"part={part}", "--json").out)[1])
                 for part in ("train", "val", "test")]
        self.assertEqual(sum(sizes), 100)

    def test_nothing_to_pad(self):
        for steps, says in (("padded_batch(2, padding={index: 1})", "`index` is `i64`: nothing of it is ever padded"),
                            ("padded_batch(2, index=1)", "leave it out"),
                            ("x = [1, 2] | padded_batch(2, padding={x: 1})", r"`x` is `i64\[2\]`")):
            self.expect(1, "check", self.write("p.zpl", "zpl 1\npipeline p { range(4) | %s }\n" % steps), says=says)

    def test_an_endless_stream_of_nothing_is_told(self):
        path = self.write("p.zpl", "zpl 1\nstream never = range(10) | filter index * 2 < 0 | repeat()\nstream some = range(10)\n"
                          "pipeline p { interleave(never, some) | batch(2) }\n")
        self.expect(2, "run", path, "--stall-timeout", 1, says=["R0505", "dropped"], timeout=60)


class Scan(Case):
    def test_only_what_is_stacked_must_be_of_one_shape(self):
        self.write("t.jsonl", '{"tags": ["a"]}\n{"tags": ["a", "b"]}\n')
        self.write("p.zpl", 'jsonl("t.jsonl", schema={tags: list<str>}) | padded_batch(2, tags="-")')
        self.expect(0, "scan", "p.zpl", silent="shapes")
        self.write("p.zpl", f'files("{cli_test.PHOTOS}/*/*.jpg") | image = decode_image(bytes) | select image | batch(2)')
        self.expect(0, "scan", "p.zpl", says="`image` comes in [0-9]+ shapes.*R0410")


class Killed(Case):
    """`run --save-state` and kill -9."""
    # A pattern that goes back and forth takes some milliseconds for each sample.
    PROGRAM = ("zpl 1\npipeline p(n: int = 400) {\n  range(n) | t = \"aaaaaaaaaaaaaaaaa{index}\" | m = t.matches(r\"^(a+)+[bc]$\")\n"
               "  | x = f32(index) * 2 | shuffle(buffer_size=40) | select index, x, m | batch(4)\n}\n")

    def killed(self, *args, after=3):
        """Starts a run and kills it when it has saved its state at least once, and delivered more."""
        child = subprocess.Popen([cli_test.ZEPHONC, "run", "p.zpl", "--threads", "1", "--chunk", "4", "--save-state", "s.json",
                                  "--save-every", "0.05", *map(str, args)],
                                 cwd=self.dir, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end and child.poll() is None:
            try:
                if int(re.search(rb'"records": (\d+)', self.read("s.json"))[1]) >= after:
                    break
            except (OSError, TypeError):
                pass
            time.sleep(0.01)
        self.assertIsNone(child.poll(), "the run was over before it could be killed")
        child.send_signal(signal.SIGKILL)
        child.wait()

    def records_of(self, *folders):
        """The files of all folders, which must not have two of one name."""
        out = {}
        for folder in folders:
            for name in os.listdir(self.path(folder)):
                self.assertNotIn(name, out)
                out[name] = self.read(f"{folder}/{name}")
        return out

    def test_nothing_is_missing_and_nothing_comes_twice(self):
        path = self.write("p.zpl", self.PROGRAM)
        self.expect(0, "run", path, "--out", self.path("whole"), "--format", "npy")
        self.killed("--out", "first", "--format", "npy")
        self.assertFalse(os.path.exists(self.path("first")))
        self.killed("--resume", "s.json", "--out", "second", "--format", "npy", after=40)  # killed again
        self.expect(0, "run", path, "--resume", self.path("s.json"), "--out", self.path("third"),
                    says=r"/second` holds the \d+ records before `.*s\.json`, which the run that was killed had written")
        self.assertEqual(self.records_of("first", "second", "third"), self.records_of("whole"))
        self.assertEqual([n for n in os.listdir(self.dir) if "partial" in n], [])

    def test_formats_of_one_file(self):
        path = self.write("p.zpl", self.PROGRAM)
        for form, name in (("jsonl", "records.jsonl"), ("tar", "records.tar")):
            self.expect(0, "run", path, "--out", self.path(form), "--format", form)
            self.killed("--out", "a-" + form, "--format", form)
            self.expect(0, "run", path, "--resume", self.path("s.json"), "--out", self.path("b-" + form), "--format", form)
            a, b, whole = (self.read(f"{folder}/{name}") for folder in ("a-" + form, "b-" + form, form))
            self.assertEqual((a[:-1024] if form == "tar" else a) + b, whole)
            os.remove(self.path("s.json"))

    def test_output_that_is_gone(self):
        path = self.write("p.zpl", self.PROGRAM)
        self.killed("--out", "first")
        for name in os.listdir(self.dir):
            if "partial" in name:
                shutil.rmtree(self.path(name))
        self.expect(2, "run", path, "--resume", self.path("s.json"), "--out", self.path("second"),
                    says=["R0507", "records before the state are gone", "without --resume"])

    def test_a_scan_counts_masked_samples_as_bad(self):
        self.write("p.zpl", self.PROGRAM.replace("int = 400", "int = 1800").replace(
            "| shuffle(buffer_size=40)", '| assert(index % 3 != 1, "no") | on_error(mask)'))
        says = "1,800 samples: 1,200 good, 600 bad: 600 R0430"
        self.expect(2, "scan", "p.zpl", says=says)
        child = subprocess.Popen([cli_test.ZEPHONC, "scan", "p.zpl", "--save-state", "s.json", "--threads", "1"], cwd=self.dir,
                                 stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end and child.poll() is None and not os.path.exists(self.path("s.json")):
            time.sleep(0.01)
        self.assertIsNone(child.poll(), "the scan was over before it could be killed")
        child.send_signal(signal.SIGKILL)
        child.wait()
        self.expect(2, "scan", "p.zpl", "--resume", "s.json", says=says)

    def test_at_the_end_only(self):
        path = self.write("p.zpl", self.PROGRAM)
        child = subprocess.Popen([cli_test.ZEPHONC, "run", path, "--save-state", "s.json", "--save-every", "0"], cwd=self.dir,
                                 stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        child.send_signal(signal.SIGKILL)
        child.wait()
        self.assertFalse(os.path.exists(self.path("s.json")))


class Failures(Case):
    """Every message of a failed run is rendered once, whole: tests/cli/failures.txt."""

    def cases(self):
        self.write("one/a.txt", "x\n")
        self.write("bad.csv", "a,b\n1\n")
        self.write("other.csv", "a\n1\n")
        self.write("value.csv", "a\nx\n")
        self.write("cut.txt.gz", b"\x1f\x8b\x08\x00abc")
        self.write("twice.csv", "k,v\na,1\na,2\n")
        self.write("bad.jpg", b"\xff\xd8\xff\xe0nothing")
        self.write("full/x", "")
        yield "R0400", 'files("no/*.jpg")', ()
        yield "R0401", 'csv("one", columns={a: i64})', ()
        yield "R0402", 'csv("other.csv", columns={b: i64})', ()
        yield "R0403", 'csv("bad.csv", columns={a: i64, b: i64})', ()
        yield "R0404", 'csv("value.csv", columns={a: i64})', ()
        yield "R0405", 'files("one/*.txt") | x = bytes.decode_raw(u8, 5)', ()
        yield "R0406", 'text_lines("cut.txt.gz")', ()
        yield "R0407", 'range(1) | v = lookup(table("twice.csv", schema={k: str, v: i64}, key=k), "a").v', ()
        yield "R0408", None, ()
        yield "R0409", None, ()
        yield "R0410", 'range(2) | x = choose(index > 0, [index], [index, 1]) | batch(2)', ()
        yield "R0411", 'range(9) | x = 1 // (index - index) | on_error(skip, max_errors=2)', ()
        yield "R0412", 'range(3) | x = [1, 2] + choose(index > 1, [1, 2, 3], [1, 2])', ()
        yield "R0413", 'range(3) | x = [1, 2][index]', ()
        yield "R0420", 'files("bad.jpg") | image = bytes.decode_image()', ()
        yield "R0421", 'range(3) | x = 1 // index', ()
        yield "R0422", 'range(3) | x = index_of([0, 1], index)', ()
        yield "R0423", 'range(1) | t = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{index}" | m = t.matches(r"^(a+)+[bc]$")', ()
        yield "R0430", 'range(3) | assert(index < 1, "{index} is too much")', ()
        yield "R0501", "range(3)", ("--out", "one/a.txt/out")
        yield "R0502", "range(3)", ("--out", "full")
        yield "R0503", "range(3)", ("--sheet", "s.png")
        yield "R0504", "range(3)", ("--memory", "1K")
        yield "R0505", "range(10) | filter index < 0 | repeat()", ("--stall-timeout", "1")
        yield "R0506", "range(1000000) | repeat()", "interrupt"
        yield "R0507", "range(3)", ("--resume", "bad.csv")
        yield "R0508", 'jsonl("o.jsonl", schema={a: i64?})', ("--out", "out", "--format", "npy")
        yield "R0509", None, "compose"

    WHOLE = {"R0408": "stream a = range(3)\nstream b = csv(\"value.csv\", columns={a: str})\npipeline p { zip(a, b) }\n",
             "R0409": "stream a = range(3) | k = index | select k\nstream b = range(2) | k = index | select k\npipeline p { zip(a, b, key=k) }\n"}

    def render(self, code, program, how):
        self.write("o.jsonl", "{}\n")
        text = "zpl 1\n" + (self.WHOLE[code] if program is None and code in self.WHOLE
                            else "pipeline p { %s }\n" % program)
        self.write("p.zpl", text)
        if how == "compose":
            self.write("a.json", "{}")
            text = "zephonc manifest compose a.json\n"
            return text, self.zephonc("manifest", "compose", "a.json").err
        if how == "interrupt":
            child = subprocess.Popen([cli_test.ZEPHONC, "run", "p.zpl"], cwd=self.dir, stderr=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, text=True)
            time.sleep(1)
            child.send_signal(signal.SIGINT)
            return text, child.communicate(timeout=60)[1]
        return text, self.zephonc("run", "p.zpl", "--threads", 1, *how).err

    def test_every_code_is_rendered(self):
        with open(os.path.join(ROOT, "frontend/diag/kinds.def"), encoding="utf-8") as file:
            codes = re.findall(r"^ZEPHON_KIND\((R\d+),", file.read(), re.M)
        out, seen = "", []
        for code, program, how in self.cases():
            text, said = self.render(code, program, how)
            self.assertIn(code, said, f"{text}\n{said}")
            # Figures of the machine and of the moment say nothing here.
            if code == "R0505":
                said = re.sub(r"(?<![R\d])\d{2,}|\b1 s\b", "N", said.split("\n")[0])
            said = re.sub(r"\d+\.\d+ MiB", "N MiB", said.replace(self.dir, "DIR"))
            blocks = [block for block in said.split("\n\n") if f"[{code}]" in block] or [said]
            out += f"{code}\n{text}----\n{blocks[0].rstrip()}\n\n"
            seen.append(code)
        self.assertEqual(seen, codes)
        self.golden("tests/cli/failures.txt", out)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
