#!/usr/bin/env python3
"""What `zephonc plan` tells: why a rule did something or nothing, the story step by step, JSON, the page; relaxations.

usage: plan_test.py ZEPHONC [TEST...]
"""
import html.parser
import json
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True  # of the two modules beside this file
import browser
import cli_test
from cli_test import PHOTOS, ROOT, Case

IMAGENET = os.path.join(ROOT, "examples/imagenet.zpl")
CHAIN = """zpl 1
pipeline p {
  range(100)
  | x = f32(index) * 2.0
  | y = x + 1.0

  | shuffle()
  | filter index % 2 == 0
  | select x, y
  | batch(10)
}
"""


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


def text_of(path):
    return content_of(path).decode()


class Why(Case):
    def setUp(self):
        super().setUp()
        self.write("p.zpl", CHAIN)

    def why(self, question, *more, code=0, name="p.zpl"):
        done = self.expect(code, "plan", name, "--why", question, *more)
        return done.out + done.err

    def test_applied(self):
        text = self.why("push_filter_below_shuffle")
        self.assertRegex(text, r"(?m)^law: ")
        self.assertRegex(text, r"(?m)^applied")
        self.assertIn("p.zpl:8:", text)  # the place, with the line and a caret under it
        self.assertRegex(text, r"(?m)^ 8 \|   \| filter index % 2 == 0$\n +\| +\^+$")
        self.assertRegex(text, r"(?m)^ +[-+] (filter index % 2 == 0|shuffle\(\))$")
        text = self.why("read_shape_from_header", name=IMAGENET)
        self.assertRegex(text, r"applied: ~\d\S* \S+ -> ~\d\S* \S+ a sample")
        self.assertEqual(text, self.why("read_shape_from_header@12", name=IMAGENET).replace("@12", ""))

    def test_refused(self):
        self.write("r.zpl", f"""zpl 1
pipeline p {{
  files("{PHOTOS}/bird/*.jpg")
  | whole = bytes.decode_image()
  | part = whole.random_crop(32, 32)
  | select whole, part
}}
""")
        text = self.why("push_crop_into_decode@5", name="r.zpl")
        self.assertIn("refused: only where nothing else needs the picture", text)
        self.assertIn("r.zpl:5:", text)
        self.assertRegex(text, r"(?m)^ 5 \| .*random_crop")
        self.assertNotIn("applied", text)

    def test_no_match(self):
        text = self.why("push_filter_below_shuffle@4")
        self.assertIn("its pattern does not occur at line 4; there stands", text)
        self.assertRegex(text, r"(?m)^ 4 \|   \| x = f32\(index\) \* 2\.0$")
        self.assertIn("it was applied on line 8", text)
        self.assertIn("no step stands there", self.why("push_filter_below_shuffle@6"))
        self.assertIn("its pattern occurs nowhere", self.why("push_crop_into_decode"))
        self.assertIn("its pattern occurs nowhere", self.why("push_crop_into_decode@4"))
        self.assertIn("p.zpl` has no line 40, it ends with line", self.why("push_crop_into_decode@40", code=64))

    def test_questions_that_ask_nothing(self):
        self.assertIn("did you mean `push_crop_into_decode`", self.why("push_crop_into_decod", code=64))
        for question in ("fuse_kernels@", "fuse_kernels@x", "fuse_kernels@0", "fuse_kernels@4x", "fuse_kernels@-1"):
            self.assertIn("RULE@LINE", self.why(question, code=64))
        self.assertIn("no rule ``", self.why("@4", code=64))
        self.assertIn("nothing from a file `lib.zpl`", self.why("fuse_kernels@lib.zpl:3", code=64))
        self.expect(64, "plan", "p.zpl", "--why", "fuse_kernels", "--steps", says="excludes")

    def test_not_tried(self):
        self.assertIn("not tried: --disable=fuse_kernels", self.why("fuse_kernels", "--disable", "fuse_kernels"))
        self.assertIn("not tried: --no-optimize", self.why("fuse_kernels@4", "--no-optimize"))
        text = self.why("fast-dct", name=IMAGENET)
        self.assertIn("only --relax=fast-dct permits it", text)
        self.assertEqual(text, self.why("use_fast_dct", name=IMAGENET))
        self.assertRegex(self.why("use_fast_dct", "--relax", "fast-dct", name=IMAGENET), r"(?m)^applied")

    def test_physical(self):
        self.assertRegex(self.why("fuse_kernels", name=IMAGENET),
                         r"(?s)applied: ~.* -> ~.*imagenet\.zpl:11:.*6 operations")
        self.assertRegex(self.why("fold_index_ops_into_source"), r"(?s)applied.*p\.zpl:7:.* 7 \|   \| shuffle\(\)")

    def test_imported_file(self):
        self.write("lib/ops.zpl", """zpl 1
# what a crop is here
fn cropped(bytes) = bytes.decode_image()
                         .random_resized_crop(32, 32)
""")
        self.write("i.zpl", f"""zpl 1
import "lib/ops.zpl" as lib
pipeline p {{
  files("{PHOTOS}/bird/*.jpg")
  | image = lib.cropped(bytes)
  | select image
}}
""")
        text = self.why("push_crop_into_decode", name="i.zpl")
        self.assertRegex(text, r"(?m)^applied")
        self.assertIn("lib/ops.zpl:", text)
        line = re.search(r"lib/ops\.zpl:(\d+)", text)[1]
        self.assertIn("applied", self.why(f"push_crop_into_decode@ops.zpl:{line}", name="i.zpl"))
        self.assertIn("does not occur at", self.why("push_crop_into_decode@ops.zpl:2", name="i.zpl"))
        self.assertIn("lib/ops.zpl, line", self.why("push_crop_into_decode@4", name="i.zpl"))

    def test_yaml(self):
        self.write("y.yaml", self.expect(0, "convert", "p.zpl").out)
        text = self.why("push_filter_below_shuffle", name="y.yaml")
        self.assertRegex(text, r"(?s)applied.*y\.yaml:\d+:\d+.*\^")
        line = re.search(r"y\.yaml:(\d+)", text)[1]
        self.assertRegex(self.why(f"push_filter_below_shuffle@{line}", name="y.yaml"), r"(?m)^applied")


class Steps(Case):
    def test_story(self):
        text = self.expect(0, "plan", IMAGENET, "--steps").out
        numbers = [int(n) for n in re.findall(r"(?m)^(\d+)\. \w+: ", text)]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
        self.assertRegex(text, r"(?m)^\d+\. read_shape_from_header: line 11 .*~\d+\S* \S+ -> ~\d+\S* \S+ a sample$")
        self.assertRegex(text, r"(?m)^ +- .*\.decode_image\(\)$")
        self.assertRegex(text, r"(?m)^ +\+ .*\.decode_image_shape\(\)")
        # The planner's own rules are told like all others.
        for rule in ("fuse_kernels", "fold_index_ops_into_source", "batch_in_place"):
            self.assertRegex(text, rf"(?m)^\d+\. {rule}: line \d+")
        # What each rule saved, and the sum.
        self.assertRegex(text, r"(?m)^read_shape_from_header +1 +~\d")
        self.assertRegex(text.splitlines()[-1],
                         r"^a row of the source costs ~\S+ \S+ as written, ~\S+ \S+ as planned: \d+\.\d times less$")
        self.assertLess(max(map(len, text.splitlines())), 150)

    def test_nothing(self):
        self.write("p.zpl", "zpl 1\npipeline p { range(3) }\n")
        self.expect(0, "plan", "p.zpl", "--steps", says="^no rule applied; a row of the source costs")
        self.expect(0, "plan", IMAGENET, "--steps", "--no-optimize", says="no rule applied")


class JsonForm(Case):
    def test_fields(self):
        text = self.expect(0, "plan", IMAGENET, "--json").out
        self.assertEqual(text, self.expect(0, "plan", IMAGENET, "--format", "json").out)
        plan = json.loads(text)
        self.assertRegex(plan["hash"], r"^[0-9a-f]{16}$")
        self.assertEqual(plan["relaxations"], [])
        self.assertGreater(plan["ns_as_written"], plan["ns_as_planned"])
        by_rule = {a["rule"]: a for a in plan["applied"]}
        shape = by_rule["read_shape_from_header"]
        self.assertGreater(shape["ns_before"], shape["ns_after"])
        self.assertEqual(shape["place"]["line"], 11)
        self.assertTrue(shape["place"]["file"].endswith("imagenet.zpl"))
        self.assertIn("decode_image", shape["place"]["text"])
        self.assertEqual(shape["step"], 4)
        self.assertEqual(set(shape["place"]), {"file", "line", "column", "end_line", "text"})
        page = text_of(os.path.join(ROOT, "docs/CLI.md"))
        section = page[page.index("## plan"):page.index("## show")]
        for field in list(plan) + list(shape) + list(shape["place"]) + list(plan["nodes"][0]) + ["needs"]:
            self.assertIn(f"`{field}`", section, "docs/CLI.md does not describe it")
        self.assertTrue(all(set(r) == {"rule", "step", "place", "needs"} for r in plan["refused"]))
        self.expect(64, "plan", IMAGENET, "--json", "--format", "dot", says="excludes")

    def test_out(self):
        self.write("p.zpl", CHAIN)
        self.expect(0, "plan", "p.zpl", "--json", "-o", "plan.json")
        self.assertEqual(self.read("plan.json").decode(), self.expect(0, "plan", "p.zpl", "--json").out)
        self.expect(2, "plan", "p.zpl", "-o", "absent/plan.txt", says="absent")


HOSTILE = """zpl 1
# </script><script>window.broken = 1</script> <img src=x onerror="window.broken = 1"> \u202e
pipeline p(name: str = "</script><script>window.broken=2</script>\\"'<u>&amp;") {
  range(20)
  | a = name
  | b = f32(index) + 1.0  # <!-- --> ]]> &lt;
  | filter b < 15.0
  | select a, b
  | batch(4)
}
"""
VOID = {"meta", "link", "br", "img", "input"}


class Nesting(html.parser.HTMLParser):
    """Every element that begins ends, in order; no text of the program became an element."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.faults, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, _ in attrs:
            if name.startswith("on"):
                self.faults.append(f"<{tag} {name}>")

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}>")


class PageCase(Case):
    def page(self, *args, name="page.html", **options):
        self.expect(0, "plan", *args, "--format", "html", "-o", name, **options)
        return self.path(name)

    def without_graphviz(self):
        os.makedirs(self.path("empty"), exist_ok=True)
        return dict(os.environ, PATH=self.path("empty"))

    def long_program(self, steps):
        lines = ""
        for i in range(steps):
            if i % 3 == 0:
                lines += f"  | shuffle(buffer_size={i + 2})\n"
            lines += f"  | x{i} = {f'x{i - 1}' if i else 'f32(index)'} * 1.5 + {i}.0\n"
        return self.write("long.zpl", f"zpl 1\npipeline p {{\n  range(1000)\n{lines}  | select x{steps - 1}\n}}\n")


class PageText(PageCase):
    def test_self_contained(self):
        for options in ({}, {"env": self.without_graphviz()}):
            text = text_of(self.page(IMAGENET, **options))
            self.assertEqual(set(re.findall(r"https?://[^\"' ]+", text)), {"http://www.w3.org/2000/svg"})
            self.assertNotRegex(text, r"<link|@import|url\((?!#)|<img|<iframe| src=")
            nesting = Nesting()
            nesting.feed(text)
            self.assertEqual((nesting.open, nesting.faults), ([], []))
            self.assertIn("times less", text)
        self.assertEqual(self.expect(0, "plan", IMAGENET, "--format", "html", env=self.without_graphviz()).out, text)

    def test_every_example(self):
        for name in sorted(os.listdir(os.path.join(ROOT, "examples"))):
            if not name.endswith((".zpl", ".yaml")):
                continue
            page = text_of(self.page(os.path.join(ROOT, "examples", name)))
            data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
            ids = set(re.findall(r'id="([rcaxl]\d[\d-]*)"', page))
            self.assertTrue({f"r{i}" for i in range(len(data["rows"]))} <= ids, name)
            self.assertTrue({f"c{i}" for i in range(len(data["cards"]))} <= ids, name)
            for row in data["rows"]:
                for other in row["args"] + row["twins"]:
                    self.assertLess(other, len(data["rows"]))
                for file, first, last in row["places"]:
                    self.assertTrue(f"l{file}-{first}" in ids and f"l{file}-{last}" in ids, (name, row))
            for app in data["apps"]:
                self.assertTrue(app["rows"] or app["cards"], (name, app))

    def test_rules_and_rows(self):
        page = text_of(self.page(IMAGENET))
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
        made = [r for r in data["rows"] if r["graph"] == 1 and r["state"] == "made"]
        gone = [r for r in data["rows"] if r["graph"] == 0 and r["state"] == "gone"]
        region = next(r for r in made if "decode_image_region(" in r["text"])
        self.assertIn("push_crop_into_decode", [data["apps"][a]["rule"] for a in region["apps"]])
        self.assertTrue(any(r["text"].endswith(".decode_image()") for r in gone))
        resize = [r for r in data["rows"] if r["text"].endswith(".resize(height=224, width=224)")]
        self.assertEqual([r["state"] for r in resize], ["same", "same"])
        self.assertEqual([len(r["twins"]) for r in resize], [1, 1])
        self.assertEqual(resize[1]["type"], "u8[224, 224, 3]")
        self.assertIn("fused", resize[1]["kernel"])
        self.assertEqual(resize[0]["places"][0][0], 0)

    def test_hostile_text(self):
        self.write("h.zpl", HOSTILE)
        for name in ("h.zpl", "</title><script>window.broken=3<.zpl"):
            self.write(name, HOSTILE)
            text = text_of(self.page("./" + name))
            nesting = Nesting()
            nesting.feed(text)
            self.assertEqual((nesting.open, nesting.faults), ([], []))
            self.assertEqual(text.count("<script"), 2)
            self.assertTrue(nesting.tags.isdisjoint({"img", "u"}))

    def test_bytes_that_are_no_text(self):
        self.write("b.zpl", b"zpl 1\n# \x01\x7f \x1b[31m\npipeline p { range(3) | a = index + 1 }\n")
        text = text_of(self.page("b.zpl"))
        self.assertNotRegex(text, "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

    def test_large(self):
        program = self.long_program(220)
        for options in ({}, {"env": self.without_graphviz()}):
            path = self.page(program, **options)
            self.assertGreater(text_of(path).count('class="card"'), 290)
            self.assertLess(os.path.getsize(path), 12 << 20)


@unittest.skipUnless(browser.installed(), "no Chromium here (Debian: apt-get install chromium-headless-shell)")
class PageInBrowser(PageCase):
    """Moves the pointer, clicks and types as a person would; ZEPHON_PICTURES=DIR keeps what it looks like."""

    def setUp(self):
        super().setUp()
        self.keep = os.environ.get("ZEPHON_PICTURES") or self.path("pictures")
        os.makedirs(self.keep, exist_ok=True)

    def picture(self, page, name):
        path = os.path.join(self.keep, name + ".png")
        page.picture(path)
        self.assertGreater(os.path.getsize(path), 20000)

    def quiet(self, page):
        """Nothing was fetched but the page, and the browser has nothing to say."""
        self.assertEqual([u for u in page.requests if not u.startswith("file://")], [])
        self.assertEqual(len(page.requests), 1, page.requests)
        self.assertEqual(page.messages, [])

    def find(self, page, graph, ending):
        rows = page.ask("JSON.parse(document.getElementById('data').textContent).rows")
        return next(f"#r{i}" for i, r in enumerate(rows) if r["graph"] == graph and re.search(ending, r["text"]))

    def on(self, page, selector):
        return page.ask(f"[...document.querySelectorAll('{selector}')].map((e) => e.id)")

    def shade(self, page):
        return page.ask("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")

    def visit(self, page, path):
        page.open(path)
        # Panes do not overlap, nothing is wider than the window, and the graphs can be read.
        self.assertTrue(page.ask("document.documentElement.scrollWidth <= innerWidth"))
        self.assertTrue(page.ask("document.documentElement.scrollHeight <= innerHeight"))
        boxes = page.ask("[...document.querySelectorAll('section')].map((s) => { const b = s.getBoundingClientRect();"
                         " return [b.left, b.top, b.right, b.bottom]; })")
        self.assertEqual(len(boxes), 5)
        for i, a in enumerate(boxes):
            self.assertGreater(a[2] - a[0], 200)
            self.assertGreater(a[3] - a[1], 90)
            for b in boxes[i + 1:]:
                self.assertTrue(a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1])
        # Labels stand inside their cards.
        self.assertEqual(page.ask("""[...document.querySelectorAll('.row')].filter((row) => {
            const hit = row.querySelector('.hit').getBoundingClientRect();
            const [label, type] = ['.label', '.type'].map((s) => row.querySelector(s))
                .map((e) => e && e.getBoundingClientRect());
            return label.right > hit.right + 1 || (type && label.right > type.left + 1);
        }).map((e) => e.textContent)"""), [])
        # Cards do not overlap.
        self.assertEqual(page.ask("""[...document.querySelectorAll('svg.graph')].flatMap((svg) => {
            const all = [...svg.querySelectorAll('.frame')].map((e) => e.getBoundingClientRect());
            const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 &&
                b.top < a.bottom - 1;
            return all.filter((a, i) => all.slice(i + 1).some((b) => meet(a, b))); }).length"""), 0)

    def test_pointer_and_keys(self):
        for layout, options in (("graphviz", {}), ("own", {"env": self.without_graphviz()})):
            path = self.page(IMAGENET, **options)
            with browser.Browser() as page:
                self.visit(page, path)
                self.picture(page, f"imagenet-{layout}-1000")
                # An operator of the plan: itself, what it reads, its counterpart, its line, its facts.
                resize, written = self.find(page, 1, r"\.resize\(height=224, width=224\)$"), self.find(
                    page, 0, r"\.resize\(height=224, width=224\)$")
                page.point(resize)
                self.assertEqual(self.on(page, ".row.on"), [resize[1:]])
                self.assertEqual(self.on(page, ".row.twin"), [written[1:]])
                self.assertIn("l0-11", self.on(page, ".code .on"))
                about = page.ask("document.getElementById('about').innerText")
                for part in ("u8[224, 224, 3]", "a sample", "line", "fused"):
                    self.assertIn(part, about)
                page.point("header h1")
                self.assertEqual(self.on(page, ".on"), [])
                # A rule: a click keeps what it touched.
                region = self.find(page, 1, r"decode_image_region\(")
                rule = page.ask("[...document.querySelectorAll('[data-app]')].find((e) => "
                                "e.textContent.includes('push_crop_into_decode')).id")
                page.click(f"#{rule} summary")
                page.point("header h1")
                self.assertIn(region[1:], self.on(page, ".row.on"))
                self.assertIn("l0-11", self.on(page, ".code .on"))
                self.assertTrue(page.ask(f"document.getElementById('{rule}').open"))
                inserted = page.ask(f"document.querySelector('#{rule} ins').textContent")
                self.assertIn("decode_image_region", inserted)
                self.picture(page, f"imagenet-{layout}-rule")
                page.press("Escape")
                self.assertEqual(self.on(page, ".on"), [])
                # A line of the source.
                page.point("#l0-17")
                self.assertEqual(self.on(page, ".code .on"), ["l0-17"])
                self.assertEqual(len(self.on(page, ".card.on")), 2)
                # The inspector leads to the rule that made an operator.
                page.click(region)
                page.click("#about .link")
                self.assertEqual(len(self.on(page, "details.on")), 1)
                page.press("Escape")
                # Keys: down the graph, over to the other, keep, let go.
                page.ask(f"document.querySelector('{resize}').focus()")
                page.press("ArrowLeft")
                self.assertEqual(page.ask("document.activeElement.id"), written[1:])
                page.press("ArrowDown")
                self.assertEqual(page.ask("document.activeElement.id"), f"r{int(written[2:]) + 1}")
                page.press("Enter")
                page.point("header h1")
                self.assertEqual(self.on(page, ".row.on"), [f"r{int(written[2:]) + 1}"])
                page.press("Escape")
                self.assertEqual(self.on(page, ".on"), [])
                # Refusals are folded away.
                self.assertFalse(page.ask("document.querySelector('.refusals').open"))
                page.click(".refusals > summary")
                self.assertTrue(page.ask("document.querySelector('.refusals').open"))
                page.point(".refusals details summary")
                self.assertEqual(len(self.on(page, ".refusals details.on")), 1)
                self.quiet(page)

    def test_streams(self):
        """Many streams that meet, of different lengths: nothing stands on anything else."""
        streams = "".join(f"  stream s{i} = range({10 + i})\n    | x = f32(index) * {i + 1}.0\n" +
                          "    | filter x > 2.0\n" * (i % 3) for i in range(12))
        self.write("m.zpl", f"zpl 1\npipeline p {{\n{streams}"
                            "  stream a = concatenate(s0, s1, s2, s3, s4)\n    | shuffle(buffer_size=4)\n"
                            "  stream b = concatenate(s5, s6, s7, s8, s9, s10)\n"
                            "  stream c = concatenate(b, s11)\n  mix(a=2, c=1)\n"
                            "  | y = x + 1.0\n  | select y\n  | batch(4)\n}\n")
        for layout, options in (("graphviz", {}), ("own", {"env": self.without_graphviz()})):
            with browser.Browser() as page:
                self.visit(page, self.page("m.zpl", **options))
                page.click("#written [data-size=whole]")
                self.picture(page, f"streams-{layout}")
                # Arrows end at the card that they belong to.
                self.assertEqual(page.ask("""[...document.querySelectorAll('.edge')].filter((edge) => {
                    const svg = edge.ownerSVGElement, at = edge.getPointAtLength(edge.getTotalLength());
                    const card = document.getElementById('c' + edge.dataset.to);
                    const [, x, y] = card.getAttribute('transform').match(/([\\d.-]+) ([\\d.-]+)/).map(Number);
                    const [width, height] = ['width', 'height'].map((n) => +card.querySelector('.frame').getAttribute(n));
                    return at.x < x - 2 || at.x > x + width + 2 || at.y < y - 4 || at.y > y + height; }).length"""), 0)
                self.quiet(page)

    def test_sizes_and_colours(self):
        path = self.page(os.path.join(ROOT, "examples/segmentation.zpl"))
        with browser.Browser(1600, 950) as page:
            for dark in (False, True):
                page.dark(dark)
                for width, height in ((1000, 700), (1600, 950)):
                    page.resize(width, height)
                    self.visit(page, path)
                    self.picture(page, f"segmentation-{width}-{'dark' if dark else 'light'}")
                shade = self.shade(page)
                self.assertTrue(max(shade) < 60 if dark else min(shade) > 200, shade)
            page.click("#theme")
            self.assertGreater(min(self.shade(page)), 200)
            width = page.ask("+document.querySelector('#written svg').getAttribute('width')")
            page.click("#written [data-size=larger]")
            self.assertGreater(page.ask("+document.querySelector('#written svg').getAttribute('width')"), width)
            page.click("#written [data-size=whole]")
            self.assertTrue(page.ask("(() => { const b = document.querySelector('#written .body');"
                                     " return b.scrollHeight <= b.clientHeight + 1; })()"))
            self.quiet(page)

    def test_hostile_text(self):
        self.write("h.zpl", HOSTILE)
        with browser.Browser() as page:
            self.visit(page, self.page("h.zpl"))
            for kind in ("row", "card", "line", "app", "refusal"):
                all_of = f"document.querySelectorAll('section:not(#inspect) [data-{kind}]')"
                for i in range(min(6, page.ask(f"{all_of}.length"))):
                    page.ask(f"{all_of}[{i}].dispatchEvent(new PointerEvent('pointerover', {{bubbles: true}}))")
                    self.assertEqual(self.on(page, "#about script, #about img, #about u"), [])
            self.assertIsNone(page.ask("window.broken"))
            self.picture(page, "hostile")
            self.quiet(page)

    def test_large(self):
        program = self.long_program(220)
        for layout, options in (("graphviz", {}), ("own", {"env": self.without_graphviz()})):
            path = self.page(program, **options)
            with browser.Browser() as page:
                self.visit(page, path)
                count = page.ask("document.querySelectorAll('#written .row').length")
                self.assertGreater(count, 220)
                self.picture(page, f"large-{layout}")
                page.click("#written [data-size=whole]")
                self.picture(page, f"large-{layout}-whole")
                took = page.ask("""(() => { const rows = [...document.querySelectorAll('.row')].slice(0, 100);
                    const start = performance.now();
                    for (const row of rows) row.dispatchEvent(new PointerEvent('pointerover', {bubbles: true}));
                    return (performance.now() - start) / rows.length; })()""")
                self.assertLess(took, 50, "milliseconds for one move of the pointer")
                self.quiet(page)


class Relaxations(Case):
    def test_names(self):
        self.write("p.zpl", CHAIN)
        self.expect(64, "run", "p.zpl", "--relax", "fast-dtc", says="no relaxation `fast-dtc`; did you mean `fast-dct`")
        self.expect(64, "verify", "p.zpl", "--relax", "use_fast_dct", says="no relaxation")
        listing = self.expect(0, "rules").out
        exact, relaxed = listing.split("Relaxations, which may change the data")
        for name, rule in (("fast-dct", "use_fast_dct"), ("decode-scale", "scale_while_decoding")):
            self.assertNotIn(rule, exact)
            self.assertIn(f"{name} ({rule})", relaxed)
            self.assertIn(f"only with `--relax={name}`", self.expect(0, "rules", name).out)

    def test_every_report_says_so(self):
        relaxed = ("--relax", "decode-scale,fast-dct")
        plain = json.loads(self.expect(0, "plan", IMAGENET, "--json").out)
        plan = json.loads(self.expect(0, "plan", IMAGENET, "--json", *relaxed).out)
        self.assertEqual(plan["relaxations"], ["decode-scale", "fast-dct"])
        self.assertTrue({"use_fast_dct", "scale_while_decoding"} <= {a["rule"] for a in plan["applied"]})
        self.assertFalse({"use_fast_dct", "scale_while_decoding"} & {a["rule"] for a in plain["applied"]})
        self.assertNotEqual(plain["hash"], plan["hash"])
        self.expect(0, "plan", IMAGENET, *relaxed, says="RELAXED: decode-scale, fast-dct")
        run = self.expect(0, "run", IMAGENET, "--take", 1, "--json", *relaxed)
        self.assertEqual(json.loads(run.out)["relaxations"], ["decode-scale", "fast-dct"])
        self.assertEqual(json.loads(run.out)["plan_hash"], plan["hash"])
        self.assertRegex(run.err, "RELAXED: decode-scale, fast-dct")
        self.assertNotIn("RELAXED", self.expect(0, "run", IMAGENET, "--take", 1).err)
        self.expect(0, "run", IMAGENET, "--take", 1, "--manifest", "m.json", *relaxed)
        self.assertIn('"relaxations":["decode-scale","fast-dct"]', self.read("m.json").decode().replace(" ", ""))
        page = self.expect(0, "plan", IMAGENET, "--format", "html", *relaxed).out
        self.assertIn("relaxed: decode-scale, fast-dct", page)

    def test_hash_without_effect(self):
        """A relaxation that found nothing to do is part of the hash all the same; the data stay."""
        self.write("p.zpl", CHAIN)
        choices = ((), ("--relax", "fast-dct"), ("--relax", "decode-scale"), ("--relax", "fast-dct,decode-scale"))
        hashes = {json.loads(self.expect(0, "plan", "p.zpl", "--json", *more).out)["hash"] for more in choices}
        self.assertEqual(len(hashes), 4)
        self.expect(0, "verify", "p.zpl", "--relax", "fast-dct", says=["equal to the bit", "relaxed: fast-dct"])

    def test_off_by_default(self):
        done = self.expect(0, "verify", IMAGENET, "--take", 1, says="equal to the bit", silent="relaxed")
        self.assertNotIn("use_fast_dct", done.out)

    def test_state_belongs_to_its_relaxations(self):
        self.write("p.zpl", CHAIN.replace("range(100)", "range(1000)"))
        self.expect(0, "run", "p.zpl", "--take", 2, "--save-state", "s.json", "--relax", "fast-dct")
        self.expect(2, "run", "p.zpl", "--resume", "s.json", says="--relax=fast-dct")
        self.expect(0, "run", "p.zpl", "--resume", "s.json", "--relax", "fast-dct")

    def test_plan_file_keeps_them(self):
        self.write("plan.json", self.expect(0, "plan", IMAGENET, "--json", "--relax", "fast-dct").out)
        run = json.loads(self.expect(0, "run", IMAGENET, "--take", 1, "--json", "--plan", "plan.json").out)
        self.assertEqual(run["relaxations"], ["fast-dct"])
        self.assertEqual(run["plan_hash"], json.loads(self.read("plan.json"))["hash"])

    def test_measured(self):
        """docs/RELAXATIONS.md: the figures are what its commands print."""
        page = text_of(os.path.join(ROOT, "docs/RELAXATIONS.md"))
        commands = re.findall(r"(?m)^zephonc verify (.*)$", page)
        self.assertGreaterEqual(len(commands), 3)
        for command in commands:
            out = self.expect(0, "verify", *command.split(), cwd=ROOT).out
            rows = re.findall(r"(?m)^(\w+) +(\S+\[.*\]|\w+) +(\S+)% +(\S+) +(\S+)  at ", out)
            self.assertTrue(rows, out)
            for _, _, unequal, mean, largest in rows:
                self.assertIn(f"| {unequal} % | {mean} | {largest} |", page, command)

    def test_the_same_whatever_the_plan(self):
        """A relaxed plan delivers one thing, for every number of threads and size of chunks."""
        args = (IMAGENET, "--take", 3, "--relax", "decode-scale,fast-dct")
        digests = {self.digest(*args, "--threads", threads, "--chunk", chunk)
                   for threads, chunk in ((1, 1), (2, 7), (4, 64))}
        self.assertEqual(len(digests), 1)
        self.assertNotIn(self.digest(*args[:3]), digests)

    def test_damaged_pictures_fail_alike(self):
        whole = content_of(cli_test.photos()[0])
        self.write("d/a/1.jpg", whole)
        self.write("d/a/2.jpg", whole[:len(whole) // 2])
        self.write("d/a/3.jpg", b"no picture")
        self.write("p.zpl", 'zpl 1\npipeline p { files("d/a/*.jpg") | image = bytes.decode_image().resize(16, 16)'
                            " | on_error(skip) | select image }\n")
        reports = [json.loads(self.expect(0, "run", "p.zpl", "--json", *more).out)
                   for more in ((), ("--relax", "decode-scale"), ("--relax", "fast-dct"))]
        outcomes = [(r["samples"], r["errors"]) for r in reports]
        self.assertEqual(outcomes, outcomes[:1] * 3)
        self.assertEqual(reports[0]["samples"], 1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
