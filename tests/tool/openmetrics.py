#!/usr/bin/python3
"""openmetrics.py [JSON] - reads standard input as OpenMetrics and as Prometheus' text format 0.0.4, which must agree.

Prints each sample as name, labels in order, and value, but for the labels that name the process, which all must
have. With the file of what p11-proxy stats --json printed, the metrics must have its processes and its slots' numbers.
"""
import json
import sys

from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser

PROCESS = "pid", "program", "module"


def samples_of(families):
    seen = {}
    for family in families:
        for sample in family.samples:
            # An empty label is as good as none.
            key = sample.name, frozenset((name, text) for name, text in sample.labels.items() if text)
            if key in seen:
                sys.exit(f"twice: {key}")
            seen[key] = float(sample.value)
    return seen


def compare(samples, document):
    """Each number of a slot that JSON has is a metric of the same name, and each path a label."""
    processes = []
    for process in document["processes"]:
        labels = {"pid": str(process["pid"]), "program": process["program"], "module": process["module"]}
        processes.append(labels.items())
        info = [dict(key) for name, key in samples if name == "p11_proxy_info" and labels.items() <= key]
        if [one.get("target", "") for one in info] != [process["target"]]:
            sys.exit(f"another target: {info}")
        for slot in process["slots"]:
            key = {**labels, "slot": str(slot["slot"]), "token": slot["token"]}.items()
            key = frozenset((name, text) for name, text in key if text)
            for name, value in slot.items():
                if type(value) is int and name != "slot" and not name.endswith("_ns"):
                    found = {samples.get((f"p11_proxy_{name}{suffix}", key)) for suffix in ("", "_total")} - {None}
                    if found != {float(value)}:
                        sys.exit(f"another number of {name}: {found}, not {value}")
    for name, key in samples:
        if not any(labels <= key for labels in processes):
            sys.exit(f"no such process: {name} {key}")


def main():
    text = sys.stdin.buffer.read().decode("utf-8")
    samples = samples_of(parser.text_string_to_metric_families(text))
    older = samples_of(text_parser.text_string_to_metric_families(text))
    if samples != older:
        sys.exit(f"the parsers disagree: {sorted(set(samples.items()) ^ set(older.items()))}")
    if sys.argv[1:]:
        with open(sys.argv[1], encoding="utf-8") as file:
            compare(samples, json.load(file))
    for (name, labels), value in samples.items():
        shown = ",".join(f'{label}="{text}"' for label, text in sorted(labels) if label not in PROCESS)
        print(f"{name}{{{shown}}} {value:g}")


main()
