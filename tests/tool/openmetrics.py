#!/usr/bin/python3
"""openmetrics.py SAMPLE... - reads standard input as OpenMetrics and as Prometheus' text format 0.0.4, which must agree.

Each SAMPLE must be there: name, labels in order but for those that name the process, which all must have, and value.
"""
import sys

from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser

PROCESS = {"pid", "program", "module"}


def samples_of(families):
    seen = {}
    for family in families:
        for sample in family.samples:
            # An empty label is as good as none.
            key = sample.name, frozenset((name, text) for name, text in sample.labels.items() if text)
            if key in seen or not PROCESS <= sample.labels.keys():
                sys.exit(f"twice, or not of a process: {key}")
            seen[key] = float(sample.value)
    return seen


text = sys.stdin.buffer.read().decode("utf-8")
samples = samples_of(parser.text_string_to_metric_families(text))
older = samples_of(text_parser.text_string_to_metric_families(text))
if samples != older:
    sys.exit(f"the parsers disagree: {sorted(set(samples.items()) ^ set(older.items()))}")
shown = set()
for (name, labels), value in samples.items():
    told = ",".join(f'{label}="{text}"' for label, text in sorted(labels) if label not in PROCESS)
    shown.add(f"{name}{{{told}}} {value:g}")
if not shown.issuperset(sys.argv[1:]):
    sys.exit("\n".join(shown))
