#!/usr/bin/python3
"""terminals.py - all commands on terminals of all kinds, on a full disk and without a reader. Speaks TAP."""
import os
import re
import signal
import subprocess
import tempfile

from terminal import TOOL, FakeProcess, Terminal, check, done_testing

PROXY, SCRIPTED = os.environ["PROXY"], os.environ["SCRIPTED"]
BENCH = ["bench", "--module", PROXY, "--seconds"]


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
    yield 0, ["policy", "--json"]
    yield 1, ["policy", "MD5"]
    yield 1, ["policy", "--json", "MD5"]
    for form in "table", "json", "openmetrics":
        yield 0, ["stats", f"--format={form}", counted.pid]
    yield 0, BENCH + ["1"]
    for command in "check", "policy", "stats", "bench":
        yield 0, [command, "--help"]
        yield 0, [command, "--version"]
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


def check_plain(counted):
    plain = {"NO_COLOR": (("TERM", "xterm"), ("NO_COLOR", "1")), "a dumb terminal": (("TERM", "dumb"),)}
    for name, environment in plain.items():
        for arguments in ["check", "--module", PROXY], ["policy"], ["policy", "MD5"], ["stats", counted.pid]:
            terminal = Terminal(*arguments, environment=environment)
            _, text = terminal.end()
            check(f"{shown(arguments[:1])}: no escapes with {name}", text and "\033" not in text, text)
    for arguments in ["check", "--module", PROXY], ["stats", counted.pid]:
        terminal = Terminal(*arguments, environment=(("TERM", "xterm"), ("NO_COLOR", "")))
        _, text = terminal.end()
        check(f"{shown(arguments[:1])}: an empty NO_COLOR is none", "\033[" in text, text)


def check_bar():
    for columns in 300, 80, 20:
        code, text = Terminal(*BENCH, "1", columns=columns).end()
        bars = re.findall(r"\r(\[[# ]*\] +\d+%)", text)
        check(f"{columns} columns: there is a bar", code == 0 and bars, text)
        check(f"{columns} columns: it fits", all(len(bar) < columns for bar in bars), bars)
        check(f"{columns} columns: it is erased", "%\r\033[K32 bytes" in text, text[:200])
    code, text = Terminal(*BENCH, "1", environment=(("TERM", "dumb"),)).end()
    check("a dumb terminal: no bar", code == 0 and not re.search(r"\[[# ]*\]", text) and "\033" not in text, text)


def check_interrupted():
    """Nor are processes left: each would hold the pipe's end."""
    for how, number in ("Ctrl-C", signal.SIGINT), ("SIGTERM", signal.SIGTERM):
        reader, writer = os.pipe()
        os.set_inheritable(writer, True)
        terminal = Terminal(*BENCH, "3600", keep=(writer,))
        os.close(writer)
        terminal.read_until(r"\[[# ]*\] +\d+%")
        if how == "Ctrl-C":
            terminal.press("\x03")
        else:
            terminal.process.send_signal(number)
        code, _ = terminal.end()
        check(f"bench, {how}: it ends by the signal", code == -number, code)
        check(f"bench, {how}: so end the processes that draw", os.read(reader, 1) == b"")
        os.close(reader)


def main():
    counted = FakeProcess()
    with tempfile.TemporaryDirectory() as directory:
        write_configuration(directory)
        check_output(counted)
        check_plain(counted)
        check_bar()
        check_interrupted()
    counted.end()
    done_testing()


main()
