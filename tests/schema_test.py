#!/usr/bin/env python3
"""grammar/pipeline.schema.json takes every YAML program that Zephon takes, and refuses what has another shape. Its
operators and their parameters are those of the operator table; ZEPHON_BLESS=1 writes them.

usage: schema_test.py ZEPHONC ROOT
"""
import json
import os
import re
import subprocess
import sys

import jsonschema
import yaml

ZEPHONC, ROOT = os.path.abspath(sys.argv[1]), sys.argv[2]
BAD = {
    "no version": "steps: [{range: 3}]",
    "another version": "zpl: 2\nsteps: [{range: 3}]",
    "no steps": "zpl: 1\npipeline: p",
    "empty": "zpl: 1",
    "unknown key": "zpl: 1\nsteps: [{range: 3}]\nstep: []",
    "steps are no list": "zpl: 1\nsteps: {range: 3}",
    "no source": "zpl: 1\nsteps: []",
    "two keys in a step": "zpl: 1\nsteps:\n- range: 3\n- take: 3\n  skip: 4",
    "no operator": "zpl: 1\nsteps: [{range: 3}, {takes: 3}]",
    "no such parameter": "zpl: 1\nsteps: [{range: 3}, {batch: {batch_sizes: 3}}]",
    "arguments by name of streams": "zpl: 1\nsteps: [{zip: {first: a, second: b}}]",
    "if without then": "zpl: 1\nsteps: [{range: 3}, {if: true}]",
    "set of a list": "zpl: 1\nsteps: [{range: 3}, {set: [x]}]",
    "an empty chain": "zpl: 1\nsteps: [{range: 3}, {set: {x: []}}]",
    "a name with a sign": "zpl: 1\nlet: {a-b: 3}\nsteps: [{range: 3}]",
    "a function without value": "zpl: 1\nfunctions: {f: {args: [x]}}\nsteps: [{range: 3}]",
    "a stream without steps": "zpl: 1\nstreams: {a: {returns: {x: i64}}}\nsteps: [{range: 3}]",
    "steps beside pipelines": "zpl: 1\nsteps: [{range: 3}]\npipelines: {a: {steps: [{range: 3}]}}",
    "a pipeline without steps": "zpl: 1\npipelines: {a: {params: {n: int}}}",
    "an import inside": "zpl: 1\npipelines: {a: {import: {b: c.zpl}, steps: [{range: 3}]}}",
    "an unknown entry of a test": "zpl: 1\nsteps: [{range: 3}]\ntests: {a: {inputs: {x: 3}}}",
    "a sample that is a number": "zpl: 1\nsteps: [{range: 3}]\ntests: {a: {input: 3, expect: {x: 3}}}",
    "two declarations in one entry": "zpl: 1\ndeclare: [{let: {a: 1}, functions: {}}]\nsteps: [{range: 3}]",
}


def programs():
    """Every YAML program of the project that is meant to be right, with where it stands."""
    for folder in ("examples", "tests/data"):
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            if name.endswith(".yaml"):
                yield f"{folder}/{name}", open(os.path.join(ROOT, folder, name), encoding="utf-8").read()
    page = open(os.path.join(ROOT, "grammar/README.md"), encoding="utf-8").read()
    for block in re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S):
        yield "grammar/README.md", block
    for folder, _, names in os.walk(os.path.join(ROOT, "tests/explain")):
        for name in sorted(names):
            text = open(os.path.join(folder, name), encoding="utf-8").read()
            for flags, program, found in re.findall(r"^\w+ ([^\n]*)\n(.*?)^----\n(.*?)(?=\n\n|\Z)", text, re.M | re.S):
                if "yaml" in flags.split() and not found.startswith("error"):
                    for part in re.split(r"^=== \S+\.(?:yaml|zpl)\n", program, flags=re.M):
                        if part.startswith("zpl: 1"):
                            yield name, part


# Steps that have a form of their own in YAML.
FORMS = {"assign", "drop", "filter", "select"}
# Operators whose further arguments go by names that the program chooses: streams, parts.
OPEN = {"mix", "split"}


def operators():
    """The JSON text of #/$defs/operator, from `zephonc ops --markdown`."""
    page = subprocess.run([ZEPHONC, "ops", "--markdown"], capture_output=True, text=True, check=True).stdout
    steps = page.split("\n## Steps")[1].split("\n## Expressions")[0]
    lines = []
    for name, summary, signature in re.findall(r"(?ms)^### `(\w+)`\n\n([^\n]*)\n\n```\n\w+\((.*?)\)\n```\n", steps):
        if name in FORMS:
            continue
        parameters = re.findall(r"(?:^|, )(\w+)\??: ", re.sub(r"\((?:[^()]|\([^()]*\))*\)", "", signature))
        allowed = json.dumps({"enum": parameters} if parameters else False)
        if name in OPEN:
            allowed = '{"$ref": "#/$defs/name"}'
        lines.append(f'        {json.dumps(name)}: {{\n          "$ref": "#/$defs/call",\n'
                     f'          "description": {json.dumps(summary, ensure_ascii=False)},\n'
                     f'          "propertyNames": {allowed}\n        }}')
    return ('    "operator": {\n      "description": "A source or a step with its arguments. Made of the operator table.",\n'
            '      "type": "object",\n      "minProperties": 1,\n      "maxProperties": 1,\n'
            '      "additionalProperties": false,\n      "properties": {\n' + ",\n".join(lines) + "\n      }\n    },\n")


def words(node):
    """What BaseLoader read, with nothing where nothing stands."""
    if isinstance(node, dict):
        return {key: words(value) for key, value in node.items()}
    if isinstance(node, list):
        return [words(value) for value in node]
    return node or None


def main():
    path = os.path.join(ROOT, "grammar/pipeline.schema.json")
    text = open(path, encoding="utf-8").read()
    begin, end = text.index('    "operator": {\n'), text.index('    "pipe": {\n')
    faults, good = [], 0
    if text[begin:end] != operators():
        if os.environ.get("ZEPHON_BLESS"):
            text = text[:begin] + operators() + text[end:]
            open(path, "w", encoding="utf-8").write(text)
        else:
            faults.append("#/$defs/operator is not the operator table (ZEPHON_BLESS=1 writes it)")
    schema = json.loads(text)
    known = schema["$defs"]["operator"]["properties"]
    faults += [f"`{name}` is no operator" for name in sorted(OPEN - set(known))]
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for where, text in programs():
        good += 1
        # Words as they stand, and numbers and truth values as an editor's YAML reads them.
        for tree in (words(yaml.load(text, Loader=yaml.BaseLoader)), yaml.safe_load(text)):
            error = jsonschema.exceptions.best_match(validator.iter_errors(tree))
            if error is not None:
                faults.append(f"{where}: {error.json_path}: {error.message[:300]}")
    for what, text in BAD.items():
        if validator.is_valid(yaml.safe_load(text)):
            faults.append(f"taken, and should not be: {what}")
    print("\n".join(faults + [f"{good} programs taken, {len(BAD)} refused, {len(faults)} faults"]))
    return 1 if faults or good < 5 else 0


if __name__ == "__main__":
    sys.exit(main())
