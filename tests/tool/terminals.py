#!/usr/bin/python3
"""terminals.py - all commands on a full disk and without a reader, and which terminals get colours. Speaks TAP."""
import os
import signal
import subprocess
import tempfile

from terminal import TOOL, FakeProcess, Terminal, check, done_testing

PROXY, SCRIPTED = os.environ["PROXY"], os.environ["SCRIPTED"]


def write_configuration(directory):
    path = os.path.join(directory, "p11-proxy.module")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"x-target: {SCRIPTED}\nx-log: off\nx-disabled-algorithms: MD5\nx-pool-mix: kernel\n")
    os.environ["P11_PROXY_CONFIG"] = path


def commands(counted):
    """Each with the exit code that it has where all is well."""
    yield 0, ["check", "--module", PROXY]
    yield 0, ["check", "--module", PROXY, "--json"]
    yield 0, ["policy"]
    yield 1, ["policy", "--json", "MD5"]
    for form in "table", "json", "openmetrics":
        yield 0, ["stats", f"--format={form}", counted.pid]
    yield 0, ["bench", "--module", PROXY, "--seconds", "1"]
    for command in "check", "policy", "stats", "bench":
        yield 0, [command, "--help"]
    yield 0, ["--help"]
    yield 0, ["--version"]


def shown(arguments):
    return " ".join(arguments).replace(PROXY, "PROXY")


def check_output(counted):
    for code, arguments in commands(counted):
        name = shown(arguments).replace(counted.pid, "PID")
        with open("/dev/full", "w", encoding="ascii") as full:
            ended = subprocess.run([TOOL, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        check(f"{name}: a full disk is reported, with 1", (ended.returncode, ended.stderr) ==
              (1, "p11-proxy: cannot write: No space left on device\n"), ended)
        for ignored in True, False:
            reader, writer = os.pipe()
            os.close(reader)
            ended = subprocess.run([TOOL, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
                                   restore_signals=not ignored)
            os.close(writer)
            wanted = code if ignored else -signal.SIGPIPE
            check(f"{name}: no reader, which is no error{', and no signal' if ignored else ''}",
                  (ended.returncode, ended.stderr) == (wanted, ""), ended)


def check_colours(counted):
    for coloured, environment in ((True, {"TERM": "xterm", "NO_COLOR": ""}), (False, {"TERM": "xterm", "NO_COLOR": "1"}),
                                  (False, {"TERM": "dumb"})):
        _, text = Terminal("stats", counted.pid, environment=environment).end()
        check(f"colours with {environment}", text and ("\033[" in text) == coloured, text)


def main():
    counted = FakeProcess()
    with tempfile.TemporaryDirectory() as directory:
        write_configuration(directory)
        check_output(counted)
        check_colours(counted)
    counted.end()
    done_testing()


main()
