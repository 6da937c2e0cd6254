#!/usr/bin/python3
"""documents.py - each command and each line of configuration in README and the manual pages does what it says.

Runs them in the order of the text, blocks first, in a copy of the tree. The recipes for programs are not among them: the tests in
tests/clients follow those. Speaks TAP.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

PROGRAMS = ("apt-get", "git", "man", "meson", "ninja", "p11-proxy", "pkcs11-tool", "tests/run",
            "tools/package", "tools/quickstart", ".ci/run")
# Blocks of README that are no commands, by their first word.
TEXTS = ("before", "name", "Provider")
# Other tests run these: what they take is looked for in their help.
ELSEWHERE = ("tests/run", "tools/package", ".ci/run")
# A machine may lack these.
OPTIONAL = ("git", "man", "java")
# The text says at once how to take back what later lines need.
LAST = ("p11-proxy setup --undo", "ninja -C build uninstall")
LIMIT_S = 600
README, TOOL_PAGE, MODULE_PAGE = (pathlib.Path(path).read_text(encoding="utf-8") for path in
                                  ("README.md", "tools/p11-proxy.1", "common/p11-proxy.module.5"))
results = []


def report(good, what, details="", skip=None):
    results.append(good)
    print(f"{'ok' if good else 'not ok'} {len(results)} - {' '.join(what.split())}" + (f" # SKIP {skip}" if skip else ""))
    if not good:
        print("".join(f"# {line}\n" for line in details.splitlines()), end="")
    sys.stdout.flush()


def blocks_of_readme():
    """What is indented, by the first word of each block."""
    for block in re.findall(r"^\n((?:    .*\n|\n(?=    ))+)", README, flags=re.MULTILINE):
        yield block.split()[0], re.sub(r"^    ", "", block, flags=re.MULTILINE)


def commands_of_readme():
    """What stands in blocks and between backquotes, one by one."""
    for first_word, block in blocks_of_readme():
        if first_word not in TEXTS:
            yield from block.replace("\\\n", " ").splitlines()
    for span in re.findall(r"`([^`]+)`", README):
        words = span.split()
        if words[0] in PROGRAMS and (len(words) > 1 or "/" in span):
            yield " ".join(words)


def run(command):
    """The exit code and all that is printed. A watch is ended by Ctrl-C after a while."""
    watches = "--watch" in command
    done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", "timeout --signal=INT 3 " * watches + command],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=LIMIT_S, check=False)
    return 0 if watches and done.returncode == 124 else done.returncode, done.stdout


def try_command(command):
    program = next(word for word in shlex.split(command.replace("\n", " ")) if not re.match(r"\w+=", word))
    if program in ELSEWHERE:
        code, out = run(f"{program} --help")
        unknown = [option for option in command.split()[1:] if option not in out]
        report(code == 0 and not unknown, command, f"not in its help: {unknown}\n{out}")
    elif program in OPTIONAL and shutil.which(program) is None or program == "git" and not os.path.exists(".git"):
        report(True, command, skip=f"there is no {program} here")
    else:
        # One that was built already, instead of the one that tests/run builds.
        code, out = run(command.replace("build/tests-plain", os.environ["BUILD"]))
        report(code == 0 and "No suitable tests" not in out, command, f"exit code {code}\n{out}")


def try_java():
    """README's file for SunPKCS11, and its lines of Java."""
    text = dict(blocks_of_readme())
    pathlib.Path("proxy.cfg").write_text(text["name"], encoding="utf-8")
    pathlib.Path("Readme.java").write_text(
        "import java.security.*;\npublic class Readme { public static void main(String[] args) throws Exception {\n"
        + text["Provider"]
        + 'System.out.println(random.generateSeed(4).length + " by " + random.getProvider().getName());\n}}\n', encoding="utf-8")
    try_command("java Readme.java | grep -x '4 by SunPKCS11-proxy'")


def try_configuration(what, text):
    """What `p11-proxy check` says of a file with that text."""
    pathlib.Path("tried.module").write_text(text, encoding="utf-8")
    _, out = run("P11_PROXY_CONFIG=tried.module p11-proxy check --json")
    problems = [finding["text"] for finding in json.loads(out)["findings"]
                if finding["mark"] == "problem" and finding["about"] in ("configuration", "policy")]
    report(not problems, what, "\n".join(problems))


def try_page(text):
    """The literal blocks of the examples, and each line of configuration that is shown as an example of its key."""
    for examples in re.findall(r"^\.Sh EXAMPLES\n((?:(?!\.Sh ).*\n)*)", text, flags=re.MULTILINE):
        for block in re.findall(r"^\.Bd -literal.*\n((?:(?!\.Ed).*\n)*)", examples, flags=re.MULTILINE):
            block = block.replace("\\e", "\\").replace("\\&", "")
            if re.match(r"# /\S+\n", block):
                try_configuration(block.splitlines()[0], block)
            else:
                try_command(re.sub(r"^[$#] ", "", block, flags=re.MULTILINE))
    for line in re.findall(r"^\.Dl (x-.*)$", text, flags=re.MULTILINE):
        target = "" if line.startswith("x-target:") else f"x-target: {os.environ['TARGET']}\n"
        try_configuration(line, f"{target}{line}\n")


def try_keys():
    """The keys and their defaults, as the program knows them, README and the manual page."""
    _, out = run("P11_PROXY_CONFIG=/dev/null p11-proxy check --json")
    known = {row["key"]: row["value"] or "none" for row in json.loads(out)["settings"]}
    table = dict(re.findall(r"^\| `(x-[a-z-]+)` \| `?([^`|]+?)`? \|", README, flags=re.MULTILINE))
    report(table == known, "README has all keys, and their defaults", f"the program: {known}\nREADME: {table}")
    described = re.findall(r"^\.It Cm (x-[a-z-]+) :", MODULE_PAGE, flags=re.MULTILINE)
    report(described == list(known), "the manual page has all keys", f"{described}")


commands = list(dict.fromkeys(commands_of_readme()))
for one in commands:
    if one not in LAST:
        try_command(one)
try_java()
try_page(TOOL_PAGE)
try_page(MODULE_PAGE)
try_keys()
for one in LAST:
    report(one in commands, f"README has {one}")
    try_command(one)
print(f"1..{len(results)}")
sys.exit(not all(results))
