#!/usr/bin/python3
"""terminals.py - the program on terminals, into pipes, onto a full disk and without a reader. Speaks TAP.

Nothing in here waits for a time to pass, only for what must come; meson ends a test that waits in vain.
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios

TOOL, PROXY = os.environ["TOOL"], os.environ["PROXY"]
DRAW_ANEW = "\033[H\033[2J"
LAST = r"module:5\r\n"  # the last line of the table of stats
checks = 0


def check(what, good, shown=None):
    global checks
    checks += 1
    print(f"{'ok' if good else 'not ok'} {checks} - {what}")
    if not good:
        print(f"# {shown!r}")


class Terminal:
    """The tool on a terminal of its own."""

    def __init__(self, *arguments, **environment):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 100, 100, 0, 0))
        self.seen = ""
        self.process = subprocess.Popen(
            [TOOL, *arguments], stdin=self.slave, stdout=self.slave, stderr=self.slave,
            env={**os.environ, **environment}, preexec_fn=self.take_terminal)

    def take_terminal(self):
        os.setsid()
        os.close(os.open(os.ttyname(self.slave), os.O_RDWR))  # now the controlling one

    def read_until(self, pattern):
        """All that came up to the pattern and is not yet read."""
        while not (match := re.search(pattern, self.seen, re.DOTALL)):
            self.seen += os.read(self.master, 65536).decode()
        read, self.seen = self.seen[:match.end()], self.seen[match.end():]
        return read

    def interrupt(self):
        os.write(self.master, b"\x03")
        return self.process.wait()

    def end(self):
        """What came last."""
        self.process.wait()
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536).decode()
        return self.seen


def commands(pid):
    """Each with the exit code that it has where all is well."""
    yield 0, ["check", "--module", PROXY]
    yield 0, ["check", "--module", PROXY, "--json"]
    yield 0, ["policy"]
    yield 1, ["policy", "--json", "MD5"]
    for form in "table", "json", "openmetrics":
        yield 0, ["stats", f"--format={form}", pid]
    yield 0, ["bench", "--module", PROXY, "--seconds", "1"]
    yield 0, ["check", "--help"]
    yield 0, ["--help"]
    yield 0, ["--version"]


def check_output(pid):
    for code, arguments in commands(pid):
        name = " ".join(arguments).replace(PROXY, "PROXY").replace(pid, "PID")
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


def check_terminal(counted, pid):
    text = Terminal("stats", pid, TERM="xterm").end()
    check("without --watch nothing moves", text and "\033" not in text, text)
    terminal = Terminal("stats", "--watch", pid, TERM="xterm")
    first = terminal.read_until(LAST)
    check("--watch draws at the top of an empty screen", first.startswith(DRAW_ANEW), first)
    counted.stdin.write("more\n")
    counted.stdin.flush()
    check("and again, with what came meanwhile", terminal.read_until(r"from the pool +2001000 "))
    check("Ctrl-C ends it", terminal.interrupt() == -signal.SIGINT)
    terminal = Terminal("stats", "--watch=3600", pid, TERM="dumb")
    block = terminal.read_until(LAST + "\r\n")
    check("a dumb terminal is not redrawn", "\033" not in block, block)
    terminal.interrupt()


def watch(*arguments):
    return subprocess.Popen([TOOL, "stats", "--watch", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_pipe(pid):
    process = watch(pid)
    text = ""
    while text.count("\n\n") < 2:
        text += process.stdout.readline()
    blocks = text.split("\n\n")[:2]
    check("blocks, an empty line after each", all(b.startswith("process") for b in blocks), blocks)
    check("no escapes in a pipe", "\033" not in text, text)
    process.stdout.close()
    check("it ends when its reader has gone", process.wait() == -signal.SIGPIPE and not process.stderr.read())
    process = watch("--json", pid)
    documents = [json.loads(process.stdout.readline()) for _ in range(3)]
    check("JSON: a document a line", [d["processes"][0]["pid"] for d in documents] == [int(pid)] * 3, documents)
    times = [document["time_seconds"] for document in documents]
    check("JSON: each of its time", times[0] < times[1] < times[2], times)
    process.stdout.close()
    process.wait()
    with open("/dev/full", "w", encoding="ascii") as full:
        process = subprocess.run([TOOL, "stats", "--watch", pid], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    check("a full disk ends it with 1", process.returncode == 1 and "cannot write: No space" in process.stderr, process)


def main():
    sys.stdout.reconfigure(line_buffering=True)
    # What is ignored stays ignored in the program, as it should.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_DFL)
    counted = subprocess.Popen([os.environ["FAKE_PROCESS"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = counted.stdout.readline().split()[0]
    with tempfile.NamedTemporaryFile("w", suffix=".module") as file:
        file.write(f"x-target: {os.environ['SCRIPTED']}\nx-log: off\nx-disabled-algorithms: MD5\nx-pool-mix: kernel\n")
        file.flush()
        os.environ["P11_PROXY_CONFIG"] = file.name
        check_output(pid)
    check_terminal(counted, pid)
    check_pipe(pid)
    process = watch(pid)
    process.stdout.read(1)
    counted.communicate()
    process.communicate()
    check("it ends with the process that it was asked about", process.returncode == 0)
    print(f"1..{checks}")


main()
