#!/usr/bin/env python3
"""`zephonc lsp`, asked by hand (what an editor would never send, too) and by an editor: Neovim's own client.

usage: lsp_test.py ZEPHONC [CLASS]
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

ZEPHONC = os.path.abspath(sys.argv[1])
ROOT = Path(__file__).resolve().parent.parent
LIMIT = 60  # seconds for any answer

PROGRAM = """zpl 1

fn half(x: f64) = x / 2
stream numbers = range(10) | y = f64(index)

pipeline p(size: int = 4, mode: enum(train, eval) = train) -> {z: f64[size]} {
  let most = 3 + 4
  numbers
  | z = half(y).clamp(0, most)
  | if mode == train { shuffle() }
  | select z
  | batch(size, drop_remainder=true)
}
"""


class Client:
    """Writes messages and sorts answers from what the server says by itself."""

    def __init__(self, initialize=True):
        self.server = subprocess.Popen([ZEPHONC, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL)
        self.timer = threading.Timer(LIMIT, self.server.kill)
        self.timer.start()
        self.ids, self.said, self.diagnostics = 0, [], {}
        if initialize:
            self.initialized = self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
            self.tell("initialized", {})

    def raw(self, data):
        self.server.stdin.write(data)
        self.server.stdin.flush()

    def send(self, message):
        body = json.dumps(message).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def read(self):
        length = None
        while line := self.server.stdout.readline().strip():
            name, value = line.split(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if length is None:
            raise EOFError("the server is gone")
        message = json.loads(self.server.stdout.read(length))
        if message.get("method") == "textDocument/publishDiagnostics":
            self.diagnostics[message["params"]["uri"]] = message["params"]
        return message

    def tell(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def response(self, method, params):
        self.ids += 1
        self.send({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == self.ids:
                return message

    def ask(self, method, params):
        return self.response(method, params)["result"]

    def open(self, uri, text, language="zpl", version=1):
        self.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": language, "version": version,
                                                            "text": text}})

    def change(self, uri, text, version):
        self.tell("textDocument/didChange", {"textDocument": {"uri": uri, "version": version},
                                             "contentChanges": [{"text": text}]})

    def wait(self, uri, version=1):
        """The diagnostics of this version."""
        while self.diagnostics.get(uri, {}).get("version") != version:
            self.read()
        return self.diagnostics.pop(uri)["diagnostics"]

    def until(self, uri, count):
        """The diagnostics, once there are so many; what was said before is forgotten."""
        self.diagnostics.pop(uri, None)
        while len(self.diagnostics.get(uri, {"diagnostics": [None] * (count + 1)})["diagnostics"]) != count:
            self.read()
        return self.diagnostics[uri]["diagnostics"]

    def at(self, method, uri, text, mark, shift=0, response=False):
        """Asks at the first `mark` in the text."""
        before = text[:text.index(mark) + shift]
        line = before.count("\n")
        character = len(before[before.rfind("\n") + 1:].encode("utf-16-le")) // 2
        params = {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
        return (self.response if response else self.ask)("textDocument/" + method, params)

    def hover(self, uri, text, mark, shift=0):
        found = self.at("hover", uri, text, mark, shift)
        return found and found["contents"]["value"]

    def labels(self, uri, text, mark, shift=0):
        return {item["label"] for item in self.at("completion", uri, text, mark, shift)["items"]}

    def close(self):
        self.ask("shutdown", None)
        self.tell("exit", None)
        code = self.server.wait(LIMIT)
        self.end()
        return code

    def end(self):
        self.timer.cancel()
        self.server.kill()
        self.server.wait()
        self.server.stdin.close()
        self.server.stdout.close()


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.client = Client()
        self.addCleanup(self.client.end)
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.uri = (self.folder / "p.zpl").as_uri()

    def text_at(self, text, span):
        """What a range covers; it must lie in one line."""
        self.assertEqual(span["start"]["line"], span["end"]["line"])
        units = text.split("\n")[span["start"]["line"]].encode("utf-16-le")
        return units[2 * span["start"]["character"]:2 * span["end"]["character"]].decode("utf-16-le")


class Diagnostics(Case):
    def test_places_count_utf16_units(self):
        text = 'range(3) | s = "\U0001F600é" + 1 | t = nowhere\n'
        self.client.open(self.uri, text)
        found = self.client.wait(self.uri)
        places = [self.text_at(text, entry["range"]) for entry in found]
        self.assertIn("nowhere", places)
        entry = found[places.index("nowhere")]
        self.assertEqual((entry["severity"], entry["source"]), (1, "zephonc"))
        self.assertRegex(entry["code"], r"^E\d{4}$")

    def test_second_labels_and_hints(self):
        text = "range(3) | x = index * 2 | filter x\n"
        self.client.open(self.uri, text)
        (entry,) = self.client.wait(self.uri)
        self.assertEqual(self.text_at(text, entry["range"]), "x")
        self.assertTrue(entry["relatedInformation"])
        for related in entry["relatedInformation"]:
            self.assertEqual(related["location"]["uri"], self.uri)

    def test_lints_are_warnings(self):
        text = "let unused = 3\nrange(3) | batch(2)\n"
        self.client.open(self.uri, text)
        (entry,) = self.client.wait(self.uri)
        self.assertEqual((entry["severity"], entry["code"], entry["tags"]), (2, "W0300", [1]))
        self.client.change(self.uri, "range(3) | batch(2)\n", 2)
        self.assertEqual(self.client.wait(self.uri, 2), [])

    def test_tests_are_compiled(self):
        text = 'zpl 1\npipeline p { range(3) | x = index * 2 }\ntest "a" { input: {index: 1} expect: {%s: 2} }\n'
        self.client.open(self.uri, text % "x")
        self.assertEqual(self.client.wait(self.uri), [])
        self.client.change(self.uri, text % "z", 2)
        (entry,) = self.client.wait(self.uri, 2)
        self.assertEqual((entry["code"], self.text_at(text % "z", entry["range"])), ("E0108", "z"))

    def test_parameters_need_no_value(self):
        self.client.open(self.uri, "zpl 1\n\npipeline p(root: path, n: int) { range(n) | a = root }\n")
        self.assertEqual(self.client.wait(self.uri), [])

    def test_each_pipeline(self):
        text = "zpl 1\n\nlet a = 3\npipeline p { range(a) | x = 1 }\npipeline q { range(2) | y = bad }\n"
        self.client.open(self.uri, text)
        (entry,) = self.client.wait(self.uri)
        self.assertEqual(self.text_at(text, entry["range"]), "bad")
        self.client.change(self.uri, text.replace("bad", "2"), 2)
        self.assertEqual(self.client.wait(self.uri, 2), [])  # `a` is used by one of them

    def test_unsaved_imports(self):
        library, text = (self.folder / "lib.zpl").as_uri(), 'import "lib.zpl" as lib\nrange(3) | x = lib.two(index)\n'
        self.client.open(self.uri, text)
        (entry,) = self.client.wait(self.uri)
        self.assertEqual(self.text_at(text, entry["range"]), '"lib.zpl"')
        self.client.open(library, "fn two(x) = x * 2\n")
        self.client.until(self.uri, 0)
        self.client.change(library, "fn two(x) = x *\n", 2)
        (entry,) = self.client.until(self.uri, 1)
        self.assertEqual(self.text_at(text, entry["range"]), '"lib.zpl"')
        self.assertEqual(entry["relatedInformation"][0]["location"]["uri"], library)

    def test_file_to_be_imported(self):
        """Without a pipeline, what it declares is checked, and its names complete behind the import's."""
        library, text = (self.folder / "lib.yaml").as_uri(), "zpl: 1\nlet: {a: 3, b: a.nope()}\n"
        self.client.open(library, text, "yaml")
        (entry,) = self.client.wait(library)
        self.assertEqual(self.text_at(text, entry["range"]), "nope")
        self.client.change(library, "zpl: 1\nlet: {a: 3}\nstreams: {s: [{range: 3}]}\n", 2)
        self.assertEqual(self.client.wait(library, 2), [])
        text = 'import "lib.yaml" as lib\nlib.s | x = lib.a\n'
        self.client.open(self.uri, text)
        self.assertEqual(self.client.wait(self.uri), [])
        self.assertEqual(self.client.labels(self.uri, text, "lib.a", 4), {"a", "s"})
        found = self.client.at("definition", self.uri, text, "lib.s", 4)
        self.assertEqual((found["uri"], found["range"]["start"]["line"]), (library, 2))

    def test_records(self):
        text = 'jsonl("a.jsonl", schema={r: {a: i64, b: {c: f64?}}}) | x = is_missing(r.b.c)\n'
        self.client.open(self.uri, text)
        self.assertEqual(self.client.wait(self.uri), [])
        self.assertIn("r.b.c: f64?", self.client.hover(self.uri, text, "r.b.c", 4))
        self.assertEqual(self.client.labels(self.uri, text, "r.b.c", 2), {"a", "b"})

    def test_edits_of_parts(self):
        self.client.open(self.uri, "range(3)\r\n| x = \"\U0001F600\"\r\n| y = bad\r\n")
        self.assertEqual(len(self.client.wait(self.uri)), 1)
        edit = {"range": {"start": {"line": 2, "character": 6}, "end": {"line": 2, "character": 9}}, "text": "x"}
        more = {"range": {"start": {"line": 1, "character": 9}, "end": {"line": 1, "character": 99}}, "text": '!"'}
        self.client.tell("textDocument/didChange", {"textDocument": {"uri": self.uri, "version": 2},
                                                    "contentChanges": [edit, more]})
        self.assertEqual(self.client.wait(self.uri, 2), [])

    def test_closed(self):
        self.client.open(self.uri, "nothing\n")
        self.assertTrue(self.client.wait(self.uri))
        self.client.tell("textDocument/didClose", {"textDocument": {"uri": self.uri}})
        while self.uri not in self.client.diagnostics:
            self.client.read()
        self.assertEqual(self.client.diagnostics[self.uri]["diagnostics"], [])


class Answers(Case):
    def setUp(self):
        super().setUp()
        self.client.open(self.uri, PROGRAM)
        self.assertEqual(self.client.wait(self.uri), [])

    def test_hover(self):
        hover = lambda mark, shift=0: self.client.hover(self.uri, PROGRAM, mark, shift)
        self.assertIn("y: f64", hover("y).clamp"))
        self.assertIn("z: f64", hover("z = half"))
        self.assertIn("clamp(", hover("clamp"))
        self.assertIn("-> f64", hover("clamp"))
        self.assertIn("fn half(x: f64)", hover("half(y)"))
        self.assertIn("most", hover("most)"))
        self.assertIn("= 7", hover("most)"))
        self.assertIn("size: int = 4", hover("size: int"))
        self.assertIn("z: f64", hover("batch"))
        self.assertIn("in batches of 4", hover("batch"))
        self.assertIn("select(", hover("select z"))
        self.assertIn("stream numbers", hover("numbers\n"))
        self.assertIn("x: f64", hover("x / 2"))
        self.assertIn("argument of `batch(", hover("drop_remainder"))
        self.assertIsNone(hover("zpl 1", 3))

    def test_hover_explains(self):
        """A place with a message has the long text of the message, parse errors too."""
        text = PROGRAM.replace("most)", "mist)")
        self.client.change(self.uri, text, 2)
        self.client.wait(self.uri, 2)
        self.assertIn("**E0200**", self.client.hover(self.uri, text, "mist"))
        text = PROGRAM.replace("most)", "&& 3)")
        self.client.change(self.uri, text, 3)
        (entry,) = self.client.wait(self.uri, 3)
        self.assertIn(f"**{entry['code']}**", self.client.hover(self.uri, text, "&&"))

    def test_definition(self):
        def definition(mark, shift=0):
            found = self.client.at("definition", self.uri, PROGRAM, mark, shift)
            self.assertEqual(found["uri"], self.uri)
            return found["range"]["start"]["line"]
        self.assertEqual(definition("half(y)"), 2)
        self.assertEqual(definition("y).clamp"), 3)
        self.assertEqual(definition("numbers\n"), 3)
        self.assertEqual(definition("most)"), 6)
        self.assertEqual(definition("size, drop"), 5)
        self.assertEqual(definition("mode =="), 5)
        self.assertEqual(definition("select z", 7), 8)
        self.assertEqual(definition("x / 2"), 2)

    def test_definition_in_imports(self):
        (self.folder / "a b.zpl").write_text("let two = 2\n")
        text, uri = 'import "a b.zpl" as lib\nrange(3) | x = lib.two + lib.two\n', self.uri + "2.zpl"
        self.client.open(uri, text)
        self.assertEqual(self.client.wait(uri), [])
        library = (self.folder / "a b.zpl").as_uri()
        for mark in '"a b', "two +":
            found = self.client.at("definition", uri, text, mark, 1)
            self.assertEqual((found["uri"], found["range"]["start"]["line"]), (library, 0))

    def test_completion(self):
        def labels(before, after=""):
            uri = self.uri.replace("p.zpl", f"c{abs(hash(before))}.zpl")
            self.client.open(uri, PROGRAM)
            self.client.wait(uri)
            text = PROGRAM.replace("  | if mode", before + "\0" + after + "\n  | if mode")
            self.client.change(uri, text.replace("\0", ""), 2)
            return self.client.labels(uri, text, "\0")
        found = labels("  | ba")
        self.assertLessEqual({"batch", "shuffle", "filter", "select", "z", "y", "index"}, found)
        self.assertFalse({"range", "clamp", "mode", "assign"} & found)
        found = labels("  | w = z + ")
        self.assertLessEqual({"z", "y", "most", "size", "mode", "half", "clamp", "true"}, found)
        self.assertFalse({"batch", "x", "numbers", "add"} & found)
        found = labels("  | w = y.cl")
        self.assertLessEqual({"clamp", "half", "f32", "parent"}, found)
        self.assertFalse({"size", "shuffle"} & found)
        self.assertIn("buffer_size", labels("  | shuffle("))
        self.assertEqual(labels("  | drop z, "), {"z", "y", "index"})
        self.assertEqual(labels("  # of "), set())
        self.assertEqual(labels('  | w = "text '), set())
        self.assertIn("y", labels('  | w = "text {'))

    def test_completion_elsewhere(self):
        for text, mark, inside, outside in (
                ("pip", "", {"pipeline", "range", "files"}, {"batch"}),
                ("stream a = ra", "", {"range"}, {"batch", "clamp"}),
                ("fn f(x: f", "", {"f32", "int"}, {"range"}),
                ("fn f(abc) = ab", "", {"clamp"}, {"range", "batch"})):
            self.client.change(self.uri, PROGRAM + text, 2)
            found = self.client.labels(self.uri, PROGRAM + text + "\0", "\0")
            self.assertLessEqual(inside, found, text)
            self.assertFalse(outside & found, text)

    def test_formatting(self):
        text = "range( 3 )|x=index   # é\n"
        self.client.change(self.uri, text, 2)
        params = {"textDocument": {"uri": self.uri}, "options": {"tabSize": 2, "insertSpaces": True}}
        (edit,) = self.client.ask("textDocument/formatting", params)
        expected = subprocess.run([ZEPHONC, "fmt", "--stdin"], input=text, capture_output=True, text=True, check=True)
        self.assertEqual(edit["newText"], expected.stdout)
        self.assertEqual(edit["range"]["start"], {"line": 0, "character": 0})
        self.assertEqual(edit["range"]["end"], {"line": 1, "character": 0})
        self.client.change(self.uri, edit["newText"], 3)
        self.assertEqual(self.client.ask("textDocument/formatting", params), [])
        self.client.change(self.uri, "range(", 4)
        self.assertEqual(self.client.response("textDocument/formatting", params)["error"]["code"], -32803)

    def test_symbols(self):
        found = self.client.ask("textDocument/documentSymbol", {"textDocument": {"uri": self.uri}})
        self.assertEqual([(s["name"], s["detail"]) for s in found],
                         [("half", "fn"), ("numbers", "stream"), ("p", "pipeline"), ("size", "parameter"),
                          ("mode", "parameter"), ("most", "let")])

    def test_stale(self):
        """While the text does not parse, what was known before answers."""
        text = PROGRAM.replace("  | select z", "  | w = (\n  | select z")
        self.client.change(self.uri, text, 2)
        self.assertTrue(self.client.wait(self.uri, 2))
        self.assertIn("clamp(", self.client.hover(self.uri, text, "clamp"))
        self.assertIn("in batches of 4", self.client.hover(self.uri, text, "batch"))
        self.assertIn("z", self.client.labels(self.uri, text, "(\n  | select z", 1))

    def test_yaml(self):
        uri = (self.folder / "p.yaml").as_uri()
        text = (ROOT / "examples" / "imagenet.yaml").read_text()
        self.client.open(uri, text, "yaml")
        self.assertEqual(self.client.wait(uri), [])
        self.assertIn("random_resized_crop(", self.client.hover(uri, text, "random_resized_crop"))
        self.assertIn("batch(", self.client.hover(uri, text, "batch:"))
        self.assertEqual(self.client.at("definition", uri, text, "classes.index_of")["range"]["start"]["line"], 11)
        self.client.change(uri, text + "  - ta", 2)
        found = self.client.labels(uri, text + "  - ta\0", "\0")
        self.assertLessEqual({"take", "label", "image"}, found)
        self.assertNotIn("clamp", found)
        self.client.change(uri, text + "  - set: {x: la", 3)
        self.assertLessEqual({"label", "clamp", "size"}, self.client.labels(uri, text + "  - set: {x: la\0", "\0"))
        self.client.change(uri, text.replace("label >= 0", "x").replace("[image, label]", "[image, lable]"), 4)
        self.assertTrue(any("lable" in entry["message"] for entry in self.client.wait(uri, 4)))


class Hostile(Case):
    def error(self, message=None, raw=None):
        """The error that answers."""
        if raw is None:
            self.client.send(message)
        else:
            self.client.raw(raw)
        while "error" not in (answer := self.client.read()):
            pass
        return answer["error"]["code"]

    def alive(self):
        self.client.open(self.uri, "range(3)\n")
        self.assertEqual(self.client.wait(self.uri), [])

    def test_frames(self):
        self.assertEqual(self.error(raw=b"Content-Length: 5\r\n\r\n{bad}"), -32700)
        self.assertEqual(self.error(raw=b"Content-Length: 4\r\n\r\n\xff\xfe\x00\x01"), -32700)
        self.assertEqual(self.error(raw=b"Content-Type: x\r\n\r\n"), -32700)
        self.assertEqual(self.error(raw=b"Content-Length: -7\r\n\r\n"), -32700)
        self.assertEqual(self.error(raw=b"Content-Length: 0\r\n\r\n"), -32700)
        self.assertEqual(self.error(raw=b"content-length: 2\r\n\r\n[]"), -32600)
        deep = b"[" * 100000 + b"]" * 100000
        self.assertEqual(self.error(raw=b"Content-Length: %d\r\n\r\n" % len(deep) + deep), -32600)
        huge = 70 << 20
        self.assertEqual(self.error(raw=b"Content-Length: %d\r\n\r\n" % huge + b" " * huge), -32700)
        self.alive()

    def test_length_beyond_everything(self):
        self.client.raw(b"Content-Length: 18446744073709551615\r\n\r\nabc")
        self.client.server.stdin.close()
        self.assertEqual(self.client.server.wait(LIMIT), 1)

    def test_messages(self):
        self.assertEqual(self.error({"jsonrpc": "2.0", "id": 9}), -32600)
        self.assertEqual(self.error({"jsonrpc": "2.0", "id": [9], "method": "x"}), -32600)
        self.assertEqual(self.error({"jsonrpc": "2.0", "id": 9, "method": 7}), -32600)
        self.assertEqual(self.error({"jsonrpc": "2.0", "id": "a", "method": "textDocument/rename"}), -32601)
        self.assertEqual(self.error({"jsonrpc": "2.0", "id": 9, "method": "textDocument/hover"}), -32602)
        self.assertEqual(self.error({"jsonrpc": "2.0", "id": 9, "method": "textDocument/hover", "params": 3}), -32602)
        self.assertEqual(self.error({"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": {}}), -32600)
        for params in 3, [], {"textDocument": 3}, {"textDocument": {"uri": 3, "text": []}}:
            for method in "didOpen", "didChange", "didClose", "didSave":
                self.client.tell("textDocument/" + method, params)
        self.client.tell("nobody/knows", {})
        self.client.tell("$/cancelRequest", {"id": 1})
        self.alive()

    def test_places(self):
        self.alive()
        ask = lambda line, character, uri=self.uri: self.client.response(
            "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}})
        for line, character in (7, 0), (-1, 0), (0, -1), (0, 1.5), ("0", 0), (1 << 40, 0), (None, 0):
            self.assertEqual(ask(line, character)["error"]["code"], -32602, (line, character))
        self.assertEqual(ask(0, 0, "file:///not/open")["error"]["code"], -32602)
        self.assertIn("result", ask(0, 1 << 20))
        self.assertIn("result", ask(1, 0))

    def test_texts(self):
        for version, text in enumerate(["", "\0", "\r\r\n", "(" * 5000, '"' * 99, "range(3) | " * 2000, "\U0001F600|"], 1):
            uri = f"untitled:Untitled-{version}"
            self.client.open(uri, text, version=version)
            self.assertIsInstance(self.client.wait(uri, version), list)
            for method in "hover", "completion", "definition":
                self.assertNotIn("error", self.client.at(method, uri, text + "\1", "\1", response=True), text[:20])

    def test_mutations(self):
        """Programs with holes and doubled parts, asked everywhere."""
        dice = random.Random(7)
        examples = [path.read_text() for path in sorted((ROOT / "examples").glob("*.zpl"))]
        forms = [("zpl", text) for text in examples + [PROGRAM]]
        forms.append(("yaml", (ROOT / "examples" / "imagenet.yaml").read_text()))
        for version in range(1, 121):
            form, text = dice.choice(forms)
            for _ in range(dice.randrange(1, 5)):
                begin, size = dice.randrange(len(text)), dice.randrange(1, 12)
                part = dice.choice(["", text[begin:begin + size] * 2, dice.choice("(){}[]|=.,:\"#\n\u00e9\U0001F600")])
                text = text[:begin] + part + text[begin + size:]
            uri = (self.folder / f"m.{form}").as_uri()
            self.client.open(uri, text, form, version)
            for _ in range(6):
                at = dice.randrange(len(text) + 1)
                for method in "hover", "completion", "definition":
                    answer = self.client.at(method, uri, text[:at] + "\1" + text[at:], "\1", response=True)
                    self.assertNotIn("error", answer, text)
            symbols = self.client.response("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
            self.assertNotIn("error", symbols, text)

    def test_order(self):
        client = Client(initialize=False)
        self.addCleanup(client.end)
        self.assertEqual(client.response("textDocument/hover", {})["error"]["code"], -32002)
        client.ask("initialize", {})
        client.ask("shutdown", None)
        self.assertEqual(client.response("textDocument/hover", {})["error"]["code"], -32600)
        client.tell("exit", None)
        self.assertEqual(client.server.wait(LIMIT), 0)
        rude = Client()
        self.addCleanup(rude.end)
        rude.tell("exit", None)
        self.assertEqual(rude.server.wait(LIMIT), 1)

    def test_polite(self):
        self.alive()
        self.assertEqual(self.client.close(), 0)


class Neovim(unittest.TestCase):
    """Neovim's own client, as editors/README.md has it."""

    def test_session(self):
        self.assertIsNotNone(shutil.which("nvim"), "needs neovim (apt-get install neovim)")
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "p.zpl")
            program.write_text(PROGRAM.replace("most)", "mist)"))
            environment = {**os.environ, "ZEPHONC": ZEPHONC, "HOME": folder, "XDG_STATE_HOME": folder,
                           "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}
            done = subprocess.run(["nvim", "--headless", "--clean", "--cmd",
                                   f"set runtimepath^={ROOT / 'editors' / 'vim'}", "-c",
                                   f"luafile {ROOT / 'tests' / 'lsp_test.lua'}", str(program)],
                                  env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            found = json.loads(Path(folder, "found.json").read_text())
        self.assertEqual([entry["code"] for entry in found["wrong"]], ["E0200"])
        self.assertIn("mist", found["wrong"][0]["message"])
        self.assertEqual(found["right"], [])
        self.assertIn("clamp(", found["hover"])
        self.assertEqual(found["definition"], 2)
        self.assertIn("batch", found["completion"])
        self.assertEqual(found["formatted"], PROGRAM)


if __name__ == "__main__":
    del sys.argv[1]
    unittest.main()
