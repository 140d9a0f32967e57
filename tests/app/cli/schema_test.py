#!/usr/bin/env python3
"""What each --json prints agrees with its schema in resources/docs/schema/.  schema_test.py WARPSIGHT SOURCE"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

WARPSIGHT, SOURCE = sys.argv[1], sys.argv[2]
FOLDER = SOURCE + "/resources/docs/schema/"
TYPES = {"null": lambda v: v is None, "boolean": lambda v: isinstance(v, bool), "string": lambda v: isinstance(v, str),
         "integer": lambda v: isinstance(v, int) and not isinstance(v, bool), "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
         "array": lambda v: isinstance(v, list), "object": lambda v: isinstance(v, dict)}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "properties", "required", "items", "additionalProperties", "patternProperties", "const", "minItems",
         "maxItems", "minProperties"}


def check(value, schema, root, place="$"):
    """The part of JSON Schema that our schemas use; an unknown word in a schema is an error."""
    assert set(schema) <= KNOWN, (place, set(schema) - KNOWN)
    if "$ref" in schema:
        return check(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, place)
    if "const" in schema:
        assert value == schema["const"], (place, value)
    types = schema.get("type", [])
    types = types if isinstance(types, list) else [types]
    assert not types or any(TYPES[one](value) for one in types), (place, types, value)
    if isinstance(value, list):
        assert schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)), (place, len(value))
        for i, item in enumerate(value):
            check(item, schema.get("items", {}), root, f"{place}[{i}]")
    if isinstance(value, dict):
        missing = set(schema.get("required", [])) - set(value)
        assert not missing and len(value) >= schema.get("minProperties", 0), (place, missing)
        for key, one in value.items():
            inside = schema.get("properties", {}).get(key)
            for pattern, other in schema.get("patternProperties", {}).items():
                inside = other if inside is None and re.search(pattern, key) else inside
            if inside is None:
                inside = schema.get("additionalProperties", {})
                assert inside or "properties" not in schema, f"{place}.{key} is not in the schema"
            check(one, inside, root, f"{place}.{key}")


def prints(*words):
    done = subprocess.run([WARPSIGHT, *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (words, done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1] if words[0] in ("train", "experiment") else done.stdout)


def refuses_what_is_wrong():
    schema = json.load(open(FOLDER + "insights.json", encoding="utf-8"))
    good = {"version": 1, "insights": [{"rule": "r", "headline": "h", "why": "w", "meaning": "m"}]}
    check(good, schema, schema)
    for bad in ({"insights": []}, {"version": 2, "insights": []}, {"version": 1, "insights": {}}, {"version": 1, "insights": [{"rule": 1}]}, {**good, "more": 1}):
        try:
            check(bad, schema, schema)
        except AssertionError:
            continue
        raise AssertionError(f"the checker accepts {bad}")


def commands_with_json():
    """Words of each command that has the option."""
    found, left = set(), [()]
    while left:
        words = left.pop()
        text = subprocess.run([WARPSIGHT, *words, "--help"], capture_output=True, text=True, check=True).stdout
        if re.search(r"^ +--json\b", text, re.M):
            found.add(words)
        inside = text.split("Subcommands:", 1)
        left += [(*words, name) for name in re.findall(r"^  ([a-z-]+) ", inside[1].split("\n\n")[0], re.M)] if len(inside) > 1 else []
    return found


def of_gpus():
    """Outputs that need a GPU; none where there is no GPU."""
    if subprocess.run([WARPSIGHT, "list"], capture_output=True, text=True, check=True).stdout.count("No GPU"):
        return []
    subprocess.run([WARPSIGHT, "kernel", "new", "mnist", "fc1", "own.cu"], capture_output=True, check=True)
    return [("ceilings", ["lab", "--ceilings", "--json"]), ("kernel", ["kernel", "check", "mnist", "fc1", "own.cu", "--json"]),
            ("exercise", ["exercise", "check", SOURCE + "/tests/gpu/exercise_solutions/1-bias-relu.cu", "--json"])]


def main():
    refuses_what_is_wrong()
    runs = sorted(glob.glob(SOURCE + "/resources/recorded/*.wsrun"))
    direct, arena = (next(run for run in runs if name in run) for name in ("direct", "arena"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        cpu = ["--set", "exec.device=cpu", "--set", "train.epochs=1"]
        outputs = [("train", ["train", "iris", *cpu, "--run", "cpu.wsrun", "--trace", "kernels", "--json", "--no-output"]),
                   ("train", ["train", "iris", *cpu, "--set", "exec.gpus=2", "--run", "ranks.wsrun", "--trace", "kernels", "--json", "--no-output"])]
        outputs += [("stats", ["stats", run, "--by", by, "--json"]) for run in [*runs, "cpu.wsrun"] for by in ("name", "op", "layer", "phase", "shape", "line")]
        for run in [*runs, "cpu.wsrun", "ranks.wsrun"]:
            outputs += [(name, ["stats", run, "--by", by, "--json"]) for name, by in (("modules", "module"), ("ranks", "rank"), ("multiprocessors", "multiprocessor"), ("insights", "cause"), ("stalls", "stall"))]
        outputs += [("diff", ["diff", a, b, "--json"]) for a, b in ((direct, arena), (direct, runs[-1]), ("cpu.wsrun", direct), ("ranks.wsrun", "cpu.wsrun"))]
        outputs += [("experiment", ["experiment", "iris", "--set", "exec.device=cpu", "--vary", key, "--measure", "steps", "--repeats", "2", "--json"]) for key in ("exec.fusion", "exec.launch")]
        os.environ["WARPSIGHT_RUNS"] = folder
        outputs += [("critical", ["stats", run, "--by", "critical", "--json"]) for run in [*runs, "cpu.wsrun", "ranks.wsrun"]]
        outputs += [("whatif", ["whatif", direct, "no allocator calls; op fc1 /2", "--json"]), ("whatif", ["whatif", arena, "--json"]), ("check", ["check", direct, "median step < 1 s", "steps == 50", "--json"]),
                    ("gate", ["gate", "--json", "--", *9 * [direct], "--", *9 * [direct]]), ("prove", ["prove", "mnist-naive", "--set", "exec.device=cpu", "--edits", "no allocator calls", "--rounds", "1", "--seconds", "0.1", "--json"])]
        outputs += [("lab", ["lab", "sine", "--sizes", "1024", "--variants", "cpu", "--seconds", "0.01", "--json"]), ("labs", ["lab", "--list", "--json"]), ("list", ["list", "--json"]),
                    ("sql", ["sql", direct, "select * from spans limit 3", "--json"])]
        with open("small.json", "w", encoding="utf-8") as file:
            json.dump({"name": "small", "title": "small", "axes": {"model.init": ["normal", "kaiming"]}, "repeats": 1,
                       "spec": {"data": {"name": "iris"}, "model": {"hidden": [5]}, "train": {"epochs": 1}, "exec": {"device": "cpu"}}}, file)
        outputs += [("experiment", ["experiment", "small.json", "--out", "small", "--json"])]
        outputs += of_gpus()
        left_out = {words for words in commands_with_json() if all(tuple(other[:len(words)]) != words for _, other in outputs)}
        assert left_out <= {("kernel", "check"), ("exercise", "check")}, left_out
        used = set()
        for name, words in outputs:
            schema = json.load(open(FOLDER + name + ".json", encoding="utf-8"))
            try:
                check(prints(*words), schema, schema)
            except AssertionError as problem:
                raise AssertionError(" ".join(words)) from problem
            used.add(name)
        schemas = {os.path.basename(path)[:-5] for path in glob.glob(FOLDER + "*.json")}
        assert used <= schemas, used - schemas  # the outputs of longer commands have tests of their own
        try:
            import jsonschema
        except ImportError:
            return
        for name in schemas:  # valid schemas of their draft, as others read them
            jsonschema.Draft202012Validator.check_schema(json.load(open(FOLDER + name + ".json", encoding="utf-8")))


if __name__ == "__main__":
    main()
