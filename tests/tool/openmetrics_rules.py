#!/usr/bin/python3
"""openmetrics_rules.py [JSON] - holds standard input against OpenMetrics 1.0, rule by rule, with no parser of others.

With the file of what p11-proxy stats --json printed, each label must be what stands there.
"""
import json
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL}(?:,{LABEL})*)?)\}})? (-?[0-9]+(?:\.[0-9]+)?)")
METADATA = re.compile(rf"# (TYPE|UNIT|HELP) ({NAME}) (.+)")
HELP = re.compile(r'(?:[^\\\n"]|\\[\\n"])+')
SUFFIXES = {"counter": ("_total",), "gauge": ("",)}
RESERVED = ("_total", "_created", "_count", "_sum", "_bucket", "_gcount", "_gsum", "_info")


def need(good, what, line):
    if not good:
        sys.exit(f"{what}: {line!r}")


def unescape(text):
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text)


class Family:
    def __init__(self, name):
        self.name, self.metadata, self.series = name, {}, {}

    def describe(self, kind, text, line):
        need(kind not in self.metadata, "twice", line)
        need(not self.series, "metadata after a sample", line)
        if kind == "UNIT":
            need(self.name.endswith("_" + text), "the name does not end with the unit", line)
        elif kind == "HELP":
            need(HELP.fullmatch(text), "not escaped", line)
        else:
            need(text in SUFFIXES, "a type that the older format does not know", line)
        self.metadata[kind] = text

    def add(self, name, labels, value, line):
        need(set(self.metadata) >= {"TYPE", "HELP"}, "a sample before its metadata", line)
        kind = self.metadata["TYPE"]
        need(name in [self.name + suffix for suffix in SUFFIXES[kind]], f"no name of a {kind}", line)
        need(kind != "counter" or value >= 0, "a counter below 0", line)
        need(len(dict(labels)) == len(labels), "a label twice", line)
        need(not any(label.startswith("__") for label, _ in labels), "a reserved label", line)
        # An empty label is as good as none.
        key = frozenset((label, text) for label, text in labels if text)
        need((name, key) not in self.series, "a series twice", line)
        self.series[name, key] = value


def read(text):
    need(text.endswith("# EOF\n") and text.count("# EOF") == 1, "no end, or not at the end", text[-40:])
    families = {}
    family = None
    for line in text.split("\n")[:-2]:
        described, sample = METADATA.fullmatch(line), SAMPLE.fullmatch(line)
        need(described or sample, "neither metadata nor a sample", line)
        if described and (family is None or family.name != described[2]):
            need(described[2] not in families, "a family in two pieces", line)
            family = families[described[2]] = Family(described[2])
        if described:
            family.describe(described[1], described[3], line)
        else:
            need(family is not None, "a sample before all metadata", line)
            labels = [(label, unescape(value)) for label, value in re.findall(LABEL, sample[2] or "")]
            family.add(sample[1], labels, float(sample[7]), line)
    for name in families:
        need(not name.endswith("_total"), "a family with a counter's suffix", name)
        clashes = [name + suffix for suffix in RESERVED if name + suffix in families]
        need(not clashes, f"it clashes with {clashes}", name)
    return families


def compare_slot(families, labels, slot):
    """Each number of a slot that JSON has is a metric of the same name."""
    labels = frozenset((label, text) for label, text in labels if text)
    for name, value in slot.items():
        if isinstance(value, bool) or not isinstance(value, int) or name == "slot" or name.endswith("_ns"):
            continue
        family = families["p11_proxy_" + name]
        suffix = SUFFIXES[family.metadata["TYPE"]][0]
        need(family.series.get((family.name + suffix, labels)) == float(value), "another number", name)


def compare(families, document):
    """What the labels say, and the numbers of the slots."""
    processes = [{("pid", str(process["pid"])), ("program", process["program"]), ("module", process["module"])}
                 for process in document["processes"]]
    for family in families.values():
        for _, key in family.series:
            need(any(process <= key for process in processes), "no such process", key)
    for process, of_process in zip(document["processes"], processes):
        info = [dict(key) for _, key in families["p11_proxy_info"].series if of_process <= key]
        need(info and info[0].get("target", "") == process["target"], "another target", info)
        for slot in process["slots"]:
            compare_slot(families, of_process | {("slot", str(slot["slot"])), ("token", slot["token"])}, slot)
        rules = sorted((dict(key).get("rule", ""), dict(key).get("file", "")) for _, key in
                       families["p11_proxy_refusals"].series if of_process <= key)
        need(rules == sorted((one["rule"], one["file"]) for one in process["refusals"]), "other rules", rules)


def main():
    families = read(sys.stdin.buffer.read().decode("utf-8"))
    if len(sys.argv) > 1:
        with open(sys.argv[1], encoding="utf-8") as file:
            compare(families, json.load(file))


main()
