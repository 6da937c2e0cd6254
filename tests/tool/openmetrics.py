#!/usr/bin/python3
"""openmetrics.py - reads standard input as OpenMetrics and as Prometheus' text format 0.0.4, which must agree.

Prints each sample as name, labels in order, and value, but for the labels that name the process, which all must
have. Exits with 77 where the parsers are not installed.
"""
import sys

try:
    from prometheus_client import parser as text_parser
    from prometheus_client.openmetrics import parser
except ImportError:
    sys.exit(77)


PROCESS = "pid", "program", "module"


def samples_of(families):
    seen = {}
    for family in families:
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            if key in seen:
                sys.exit(f"twice: {key}")
            seen[key] = float(sample.value)
    return seen


def main():
    text = sys.stdin.buffer.read().decode("utf-8")
    samples = samples_of(parser.text_string_to_metric_families(text))
    older = samples_of(text_parser.text_string_to_metric_families(text))
    if samples != older:
        sys.exit(f"the parsers disagree: {sorted(set(samples.items()) ^ set(older.items()))}")
    for (name, labels), value in samples.items():
        if not set(PROCESS) <= set(dict(labels)):
            sys.exit(f"no process: {name} {labels}")
        shown = ",".join(f'{label}="{text}"' for label, text in labels if label not in PROCESS)
        print(f"{name}{{{shown}}} {value:g}")


main()
