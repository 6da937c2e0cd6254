"""terminal.py - what the tests of the program on a terminal share: the terminal, processes that count, and TAP.

Nothing in here waits for a time to pass, only for what must come; meson ends a test that waits in vain.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios

TOOL, FAKE_PROCESS = os.environ["TOOL"], os.environ["FAKE_PROCESS"]
checks = 0

# What is ignored stays ignored in the program, as it should: nohup, say, would leave it deaf to these.
for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
    signal.signal(ignored, signal.SIG_DFL)


def check(what, good, shown=None):
    global checks
    checks += 1
    print(f"{'ok' if good else 'not ok'} {checks} - {what}")
    if not good:
        print(f"# {shown!r}")


class FakeProcess:
    """A process that counts; see fake_process.c."""

    def __init__(self, *words):
        self.process = subprocess.Popen([FAKE_PROCESS, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.stdout.readline().split()[0]

    def draw(self):
        self.process.stdin.write("more\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def end(self):
        self.process.communicate()


class Terminal:
    """The tool on a terminal: what it wrote, what it left behind."""

    def __init__(self, *arguments, columns=100, environment=(("TERM", "xterm"),)):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 100, columns, 0, 0))
        self.seen = ""
        self.process = subprocess.Popen(
            [TOOL, *arguments], stdin=self.slave, stdout=self.slave, stderr=self.slave,
            env={**os.environ, **dict(environment)}, preexec_fn=self.take_terminal)

    def take_terminal(self):
        os.setsid()
        os.close(os.open(os.ttyname(self.slave), os.O_RDWR))  # now the controlling one

    def read_until(self, pattern):
        """All that came up to the pattern and is not yet read."""
        while not (match := re.search(pattern, self.seen, re.DOTALL)):
            self.seen += os.read(self.master, 65536).decode()
        read, self.seen = self.seen[:match.end()], self.seen[match.end():]
        return read

    def press(self, key):
        os.write(self.master, key.encode())

    def end(self):
        """The exit code, and what came last."""
        code = self.process.wait()
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536).decode()
        return code, self.seen.replace("\r\n", "\n")


def done_testing():
    print(f"1..{checks}")


sys.stdout.reconfigure(line_buffering=True)
