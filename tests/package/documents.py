#!/usr/bin/python3
"""documents.py - each command and each line of configuration in README and the manual pages does what it says.

Runs them in the order of the text, in a copy of the tree. The recipes for programs are not among them: the tests in
tests/clients follow those. Speaks TAP.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

PROGRAMS = ("apt-get", "git", "man", "meson", "ninja", "p11-proxy", "pkcs11-tool", "tests/run",
            "tools/package", "tools/quickstart", ".ci/run")
README = "README.md"
PAGES = ("tools/p11-proxy.1", "common/p11-proxy.module.5")
# Blocks of README that are no commands, by their first word.
TEXTS = ("before", "name", "Provider")
# Other tests run these: what they take is looked for in their help.
ELSEWHERE = ("tests/run", "tools/package", ".ci/run")
# A machine may lack these.
OPTIONAL = ("git", "man")
# The text says at once how to take back what later lines need.
LAST = ("p11-proxy setup --undo", "ninja -C build uninstall")
LIMIT_S = 600
failures = 0
count = 0


def report(good, what, details="", skip=None):
    global count, failures
    count += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - {' '.join(what.split())}" + (f" # SKIP {skip}" if skip else ""),
          flush=True)
    if not good:
        print("".join(f"# {line}\n" for line in details.splitlines()), end="", flush=True)


def program_of(command):
    words = [word for word in shlex.split(command.replace("\n", " ")) if not re.match(r"\w+=", word)]
    return words[0]


def commands_of_readme():
    """What stands in blocks and between backquotes, one by one."""
    with open(README, encoding="utf-8") as file:
        text = file.read()
    for part in re.split(r"((?:^(?:    .*)?\n)+)", text, flags=re.MULTILINE):
        if part.strip("\n").startswith("    "):
            block = re.sub(r"^    ", "", part.strip("\n"), flags=re.MULTILINE)
            if block.split()[0] not in TEXTS:
                yield from block.replace("\\\n", " ").splitlines()
        else:
            for span in re.findall(r"`([^`]+)`", part):
                words = span.split()
                if words[0] in PROGRAMS and (len(words) > 1 or "/" in span):
                    yield " ".join(words)


def text_of_readme(first_word):
    with open(README, encoding="utf-8") as file:
        block, = re.findall(rf"^\n((?:    .*\n)*    {first_word}\b.*\n(?:    .*\n)*)", file.read(), flags=re.MULTILINE)
    return re.sub(r"^    ", "", block, flags=re.MULTILINE)


def try_java():
    """README's file for SunPKCS11, and its lines of Java."""
    if shutil.which("java") is None:
        report(True, "README's lines of Java", skip="there is no java")
        return
    with open("proxy.cfg", "w", encoding="utf-8") as file:
        file.write(text_of_readme("name"))
    with open("Readme.java", "w", encoding="utf-8") as file:
        file.write("import java.security.*;\npublic class Readme { public static void main(String[] args) throws Exception {\n"
                   + text_of_readme("Provider")
                   + 'System.out.println(random.generateSeed(4).length + " by " + random.getProvider().getName());\n}}\n')
    code, out = run("java Readme.java")
    report(code == 0 and out.splitlines()[-1:] == ["4 by SunPKCS11-proxy"], "README's lines of Java", out)


def blocks_of_page(page):
    """The literal blocks of the examples, as text."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for title, section in re.findall(r"^\.Sh (.*)\n((?:(?!\.Sh ).*\n)*)", text, flags=re.MULTILINE):
        if title == "EXAMPLES":
            for block in re.findall(r"^\.Bd -literal.*\n((?:(?!\.Ed).*\n)*)", section, flags=re.MULTILINE):
                yield block.replace("\\e", "\\").replace("\\&", "")


def run(command):
    """The exit code and all that is printed. A watch is ended by Ctrl-C after a while."""
    if "--watch" in command:
        command = "timeout --signal=INT 3 " + command
    done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=LIMIT_S, check=False)
    is_ended = "--watch" in command and done.returncode == 124
    return 0 if is_ended else done.returncode, done.stdout


def try_command(command):
    program = program_of(command)
    if program in ELSEWHERE:
        code, out = run(f"{program} --help")
        unknown = [option for option in command.split()[1:] if option not in out]
        report(code == 0 and not unknown, command, f"not in its help: {unknown}\n{out}")
        return
    if program in OPTIONAL and shutil.which(program) is None:
        report(True, command, skip=f"there is no {program}")
        return
    if program == "git" and not os.path.exists(".git"):
        report(True, command, skip="this is no clone")
        return
    # One that was built already, instead of the one that tests/run builds.
    code, out = run(command.replace("build/tests-plain", os.environ["BUILD"]))
    report(code == 0 and "No suitable tests" not in out, command, f"exit code {code}\n{out}")


def try_configuration(what, text):
    """What `p11-proxy check` says of a file with that text."""
    path = os.path.join(os.getcwd(), "tried.module")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    _, out = run(f"P11_PROXY_CONFIG={path} p11-proxy check --json")
    problems = [finding["text"] for finding in json.loads(out)["findings"]
                if finding["mark"] == "problem" and finding["about"] in ("configuration", "policy")]
    report(not problems, what, "\n".join(problems))


def try_page(page):
    for block in blocks_of_page(page):
        first = block.splitlines()[0]
        if re.fullmatch(r"# /\S+", first):
            try_configuration(f"{page}: {first[2:]}", block)
        else:
            try_command(re.sub(r"^[$#] ", "", block, flags=re.MULTILINE))


def try_lines(page):
    """Each line of configuration that is shown as an example of its key."""
    with open(page, encoding="utf-8") as file:
        lines = re.findall(r"^\.Dl (x-.*)$", file.read(), flags=re.MULTILINE)
    for line in lines:
        target = "" if line.startswith("x-target:") else f"x-target: {os.environ['TARGET']}\n"
        try_configuration(f"{page}: {line}", f"{target}{line}\n")


def try_keys():
    """The keys and their defaults, as the program knows them, README and the manual page."""
    _, out = run("P11_PROXY_CONFIG=/dev/null p11-proxy check --json")
    known = {row["key"]: row["value"] or "none" for row in json.loads(out)["settings"]}
    with open(README, encoding="utf-8") as file:
        table = dict(re.findall(r"^\| `(x-[a-z-]+)` \| `?([^`|]+?)`? \|", file.read(), flags=re.MULTILINE))
    report(table == known, "README has all keys, and their defaults", f"the program: {known}\nREADME: {table}")
    with open(PAGES[1], encoding="utf-8") as file:
        described = re.findall(r"^\.It Cm (x-[a-z-]+) :", file.read(), flags=re.MULTILINE)
    report(described == list(known), "the manual page has all keys", f"{described}")


def main():
    commands = list(dict.fromkeys(commands_of_readme()))
    for command in commands:
        if command not in LAST:
            try_command(command)
    try_java()
    for page in PAGES:
        try_page(page)
        try_lines(page)
    try_keys()
    for command in LAST:
        report(command in commands, f"README has {command}")
        try_command(command)
    print(f"1..{count}")
    return 1 if failures or count == 0 else 0


sys.exit(main())
