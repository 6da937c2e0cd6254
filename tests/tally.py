#!/usr/bin/python3
"""tally.py - counts the checks in meson's testlog.json files, and says which failed or were skipped.

A test that speaks TAP or was made with Check counts as many as it says; any other one counts as one. A line
"SKIP NAME: REASON" says that a check of Check's was made by name only: it is counted as skipped, not as passed.
Prints one line for each failed or skipped check, and last "N passed, N failed[, N skipped]".
Exits with 1 if any failed, or if there were none at all.
"""
import json
import re
import sys

TAP_LINE = re.compile(r"^(not )?ok\b\s*\d*\s*-?\s*(.*)$", re.MULTILINE)
TAP_SKIP = re.compile(r"# SKIP\b\s*(.*)$", re.IGNORECASE)
CHECK_LINE = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$", re.MULTILINE)
SKIP_LINE = re.compile(r"^SKIP (\S+: .*)$", re.MULTILINE)
GOOD = ("OK", "EXPECTEDFAIL")


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def add(self, test):
        name, result, out = test["name"], test["result"], test.get("stdout", "")
        failed_before = len(self.failed)
        if result == "SKIP":
            reason = out.strip().splitlines()
            self.skipped.append(f"{name}: {reason[-1] if reason else 'no reason given'}")
        elif TAP_LINE.search(out):
            self.add_tap(name, out)
        elif CHECK_LINE.search(out):
            self.add_check(name, out)
        elif result in GOOD:
            self.passed += 1
        # Timed out, crashed, or counted wrongly: a bad test must not pass for lack of a failed check.
        if result not in GOOD + ("SKIP",) and len(self.failed) == failed_before:
            self.failed.append(f"{name}: {result.lower()}")

    def add_tap(self, name, out):
        for failed, what in TAP_LINE.findall(out):
            skip = TAP_SKIP.search(what)
            if skip:
                self.skipped.append(f"{name}: {what.replace('# SKIP', '-')}")
            elif failed:
                self.failed.append(f"{name}: {what}")
            else:
                self.passed += 1

    def add_check(self, name, out):
        for checks, failures, errors in CHECK_LINE.findall(out):
            bad = int(failures) + int(errors)
            self.passed += int(checks) - bad
            self.failed += [f"{name}: a check failed"] * bad
        skipped = SKIP_LINE.findall(out)
        self.passed -= len(skipped)
        self.skipped += [f"{name}: {what}" for what in skipped]


def main():
    tally = Tally()
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as log:
            for line in log:
                tally.add(json.loads(line))
    for line in tally.skipped:
        print("skipped:", line)
    for line in tally.failed:
        print("FAILED:", line)
    skipped = f", {len(tally.skipped)} skipped" if tally.skipped else ""
    print(f"{tally.passed} passed, {len(tally.failed)} failed{skipped}")
    return 1 if tally.failed or tally.passed == 0 else 0


sys.exit(main())
