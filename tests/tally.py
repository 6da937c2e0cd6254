#!/usr/bin/python3
"""tally.py - counts the checks in meson's logs (DIRECTORY/meson-logs/NAME.json), and says which failed or were skipped.

A test that speaks TAP or was made with Check counts as many as it says; any other one counts as one. A line
"SKIP NAME: REASON" says that this check did not test: it is counted as skipped, not as passed.
Prints one line for each failed or skipped check, and last "N passed, N failed[, N skipped]".
Exits with 1 if any failed, or if there were none at all. With --self-test it tests itself, in TAP.
"""
import json
import re
import sys

TAP_LINE = re.compile(r"^(not )?ok\b\s*\d*\s*-?\s*(.*?)(# SKIP.*)?$", re.MULTILINE | re.IGNORECASE)
CHECK_LINE = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$", re.MULTILINE)
CHECK_FAILED = re.compile(r"^[^\s:]+:\d+:[FE]:[^:]*:(\w+:\d+: .*)$", re.MULTILINE)
SKIP_LINE = re.compile(r"^SKIP (\S+: .*)$", re.MULTILINE)
GOOD = ("OK", "EXPECTEDFAIL")


def count(result, out):
    """How many passed, what failed, what was skipped."""
    passed, failed, skipped = 0, [], SKIP_LINE.findall(out)
    if result == "SKIP":
        return 0, [], skipped[-1:] or out.strip().splitlines()[-1:] or ["no reason given"]
    for is_bad, what, why in TAP_LINE.findall(out):
        if is_bad:
            failed.append(what)
        elif why:
            skipped.append(what + why)
        else:
            passed += 1
    made = [tuple(map(int, numbers)) for numbers in CHECK_LINE.findall(out)]
    if made:
        bad = sum(failures + errors for _, failures, errors in made)
        named = CHECK_FAILED.findall(out)[:bad]
        passed = max(sum(checks for checks, _, _ in made) - bad - len(skipped), 0)
        failed += named + ["a check without a name"] * (bad - len(named))
        failed += ["made no check"] * sum(checks == 0 for checks, _, _ in made)
    if result in GOOD and not passed + len(failed) + len(skipped):
        passed = 1
    # Timed out, crashed, or counted wrongly: a bad test must not pass for lack of a failed check.
    if result not in GOOD and not failed:
        failed = [result.lower()]
    return passed, failed, skipped


def self_test():
    check = "100%: Checks: {}, Failures: {}, Errors: {}\n"
    cases = [  # result, output, passed, failed, skipped
        ("OK", "", 1, 0, 0),
        ("FAIL", "", 0, 1, 0),
        ("TIMEOUT", "ok 1 - a\n", 1, 1, 0),
        ("SKIP", "no such program\n", 0, 0, 1),
        ("OK", "SKIP a: no kernel\n", 0, 0, 1),
        ("OK", "1..3\nok 1 - a\nok 2 - b # SKIP why\nok 3\n", 2, 0, 1),
        ("ERROR", "ok 1 - a\nnot ok 2 - b # SKIP why\n", 1, 1, 0),
        ("OK", "SKIP a: why\nSKIP b: why\n" + check.format(5, 0, 0), 3, 0, 2),
        ("FAIL", check.format(5, 1, 1) + "../a.c:3:F:case:name:0: wrong\n", 3, 2, 0),
        ("OK", check.format(0, 0, 0), 0, 1, 0),
        ("FAIL", check.format(5, 0, 0), 5, 1, 0),
    ]
    print(f"1..{len(cases)}")
    for number, (result, out, *expected) in enumerate(cases, 1):
        passed, failed, skipped = count(result, out)
        good = [passed, len(failed), len(skipped)] == expected
        print(f"{'' if good else 'not '}ok {number} - {result} counts as {expected}")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    all_passed, lines = 0, {"skipped": [], "FAILED": []}
    for path in sys.argv[1:]:
        log = path.rsplit("/", 1)[-1].removesuffix("-all.json")
        with open(path, encoding="utf-8") as file:
            for test in map(json.loads, file):
                name = f"{log}: {test['name'].removeprefix('p11-proxy:')}"
                passed, failed, skipped = count(test["result"], test.get("stdout", ""))
                all_passed += passed
                lines["FAILED"] += [f"{name}: {what}" for what in failed]
                lines["skipped"] += [f"{name}: {what}" for what in skipped]
    for word, found in lines.items():
        print("".join(f"{word}: {line}\n" for line in found), end="")
    failures, skips = len(lines["FAILED"]), len(lines["skipped"])
    print(f"{all_passed} passed, {failures} failed" + (f", {skips} skipped" if skips else ""))
    return 1 if failures or all_passed == 0 else 0


sys.exit(main())
