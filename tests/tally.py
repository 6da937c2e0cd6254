#!/usr/bin/python3
"""tally.py - counts the checks in meson's logs (DIRECTORY/meson-logs/NAME.json), and says which failed or were skipped.

A test that speaks TAP or was made with Check counts as many as it says; any other one counts as one. A line
"SKIP NAME: REASON" of a test made with Check says that this check did not test: it is counted as skipped, not as passed.
Prints one line for each failed or skipped check, and last "N passed, N failed[, N skipped]".
Exits with 1 if any failed, or if there were none at all. With --self-test it tests itself, in TAP.
"""
import json
import re
import sys

TAP_LINE = re.compile(r"^(not )?ok\b\s*\d*\s*-?\s*(.*)$", re.MULTILINE)
TAP_SKIP = re.compile(r"# SKIP\b\s*(.*)$", re.IGNORECASE)
CHECK_LINE = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$", re.MULTILINE)
CHECK_FAILED = re.compile(r"^[^\s:]+:\d+:[FE]:[^:]*:(\w+:\d+): (.*)$", re.MULTILINE)
SKIP_LINE = re.compile(r"^SKIP (\S+: .*)$", re.MULTILINE)
GOOD = ("OK", "EXPECTEDFAIL")


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def add(self, name, test):
        result, out = test["result"], test.get("stdout", "")
        failed_before = len(self.failed)
        if result == "SKIP":
            reason = (SKIP_LINE.findall(out) or out.strip().splitlines() or ["no reason given"])[-1]
            self.skipped.append(f"{name}: {reason}")
        elif TAP_LINE.search(out):
            self.add_tap(name, out)
        elif CHECK_LINE.search(out):
            self.add_check(name, out)
        elif SKIP_LINE.search(out):
            self.skipped += [f"{name}: {what}" for what in SKIP_LINE.findall(out)]
        elif result in GOOD:
            self.passed += 1
        # Timed out, crashed, or counted wrongly: a bad test must not pass for lack of a failed check.
        if result not in GOOD + ("SKIP",) and len(self.failed) == failed_before:
            self.failed.append(f"{name}: {result.lower()}")

    def add_tap(self, name, out):
        for failed, what in TAP_LINE.findall(out):
            if failed:
                self.failed.append(f"{name}: {what}")
            elif TAP_SKIP.search(what):
                self.skipped.append(f"{name}: {what.replace('# SKIP', '-')}")
            else:
                self.passed += 1

    def add_check(self, name, out):
        skipped = SKIP_LINE.findall(out)
        named = [f"{name}: {check}: {why}" for check, why in CHECK_FAILED.findall(out)]
        all_checks = bad = 0
        for checks, failures, errors in CHECK_LINE.findall(out):
            all_checks += int(checks)
            bad += int(failures) + int(errors)
        if all_checks == 0:
            named, bad = [f"{name}: made no check"], 1
        self.failed += named[:bad] + [f"{name}: a check without a name"] * (bad - len(named))
        self.skipped += [f"{name}: {what}" for what in skipped]
        self.passed += max(all_checks - bad - len(skipped), 0)

    def report(self):
        for line in self.skipped:
            print("skipped:", line)
        for line in self.failed:
            print("FAILED:", line)
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {len(self.failed)} failed{skipped}")
        return 1 if self.failed or self.passed == 0 else 0


def self_test():
    check = "100%: Checks: {}, Failures: {}, Errors: {}\n"
    cases = [  # result, output, passed, failed, skipped
        ("OK", "", 1, 0, 0),
        ("FAIL", "", 0, 1, 0),
        ("TIMEOUT", "ok 1 - a\n", 1, 1, 0),
        ("SKIP", "no such program\n", 0, 0, 1),
        ("OK", "SKIP a: no kernel\n", 0, 0, 1),
        ("OK", "1..3\nok 1 - a\nok 2 - b # SKIP why\nok 3\n", 2, 0, 1),
        ("FAIL", "ok 1 - a\nnot ok 2 - b\n", 1, 1, 0),
        ("ERROR", "ok 1 - a\nnot ok 2 - b # SKIP why\n", 1, 1, 0),
        ("OK", check.format(5, 0, 0), 5, 0, 0),
        ("OK", "SKIP a: why\nSKIP b: why\n" + check.format(5, 0, 0), 3, 0, 2),
        ("FAIL", check.format(5, 1, 1) + "../a.c:3:F:case:name:0: wrong\n", 3, 2, 0),
        ("OK", check.format(0, 0, 0), 0, 1, 0),
        ("FAIL", check.format(5, 0, 0), 5, 1, 0),
    ]
    print(f"1..{len(cases)}")
    bad = 0
    for number, (result, out, *expected) in enumerate(cases, 1):
        tally = Tally()
        tally.add("t", {"result": result, "stdout": out})
        good = [tally.passed, len(tally.failed), len(tally.skipped)] == expected
        bad += not good
        print(f"{'' if good else 'not '}ok {number} - {result} counts as {expected}")
    return 1 if bad else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    tally = Tally()
    for path in sys.argv[1:]:
        log = path.rsplit("/", 1)[-1].removesuffix("-all.json")
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                test = json.loads(line)
                tally.add(f"{log}: {test['name'].removeprefix('p11-proxy:')}", test)
    return tally.report()


sys.exit(main())
