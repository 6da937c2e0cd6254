#!/usr/bin/python3
"""terminals.py - the program on terminals, into pipes, onto a full disk and without a reader. Speaks TAP.

Nothing in here waits for a time to pass, only for what must come; meson ends a test that waits in vain.
"""
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import termios

TOOL, PROXY = os.environ["TOOL"], os.environ["PROXY"]
# Each with the exit code that it has where all is well.
COMMANDS = {"check --module PROXY": 0, "check --module PROXY --json": 0, "policy": 0, "policy --json MD5": 1,
            "stats --format=table PID": 0, "stats --format=json PID": 0, "stats --format=openmetrics PID": 0,
            "bench --module PROXY --seconds 1": 0, "check --help": 0, "--help": 0, "--version": 0}
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
    """The tool on a terminal of its own, which is its controlling one."""

    def __init__(self, *arguments, **environment):
        self.seen = ""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            termios.tcsetwinsize(0, (100, 100))
            os.execve(TOOL, [TOOL, *arguments], {**os.environ, **environment})

    def read_until(self, pattern):
        """All that came up to the pattern and is not yet read."""
        while not (match := re.search(pattern, self.seen, re.DOTALL)):
            self.seen += os.read(self.master, 65536).decode()
        read, self.seen = self.seen[:match.end()], self.seen[match.end():]
        return read

    def read_to_end(self):
        try:
            self.read_until("(?!)")  # matches nothing
        except OSError:  # EIO: no process has the terminal any more
            return self.seen

    def interrupt(self):
        os.write(self.master, b"\x03")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def run(arguments, stdout, **how):
    """Its exit code, and what it prints on stderr."""
    ended = subprocess.run([TOOL, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, **how)
    return ended.returncode, ended.stderr


def check_output(pid, full):
    for name, code in COMMANDS.items():
        arguments = [{"PROXY": PROXY, "PID": pid}.get(word, word) for word in name.split()]
        ended = run(arguments, full)
        check(f"{name}: a full disk is reported, with 1",
              ended == (1, "p11-proxy: cannot write: No space left on device\n"), ended)
        for ignored in True, False:
            reader, writer = os.pipe()
            os.close(reader)
            ended = run(arguments, writer, restore_signals=not ignored)
            os.close(writer)
            check(f"{name}: no reader, which is no error{', and no signal' if ignored else ''}",
                  ended == (code if ignored else -signal.SIGPIPE, ""), ended)


def check_terminal(counted, pid):
    text = Terminal("stats", pid, TERM="xterm").read_to_end()
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


def check_pipe(pid, full):
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
    ended = run(["stats", "--watch", pid], full)
    check("a full disk ends it with 1", ended[0] == 1 and "cannot write: No space" in ended[1], ended)


def main():
    sys.stdout.reconfigure(line_buffering=True)
    # What is ignored stays ignored in the program, as it should.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_DFL)
    counted = subprocess.Popen([os.environ["FAKE_PROCESS"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = counted.stdout.readline().split()[0]
    full = os.open("/dev/full", os.O_WRONLY)
    with tempfile.NamedTemporaryFile("w", suffix=".module") as file:
        file.write(f"x-target: {os.environ['SCRIPTED']}\nx-log: off\nx-disabled-algorithms: MD5\nx-pool-mix: kernel\n")
        file.flush()
        os.environ["P11_PROXY_CONFIG"] = file.name
        check_output(pid, full)
    check_terminal(counted, pid)
    check_pipe(pid, full)
    process = watch(pid)
    process.stdout.read(1)
    counted.communicate()
    process.communicate()
    check("it ends with the process that it was asked about", process.returncode == 0)
    print(f"1..{checks}")


main()
