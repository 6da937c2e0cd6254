#!/usr/bin/python3
"""stats_watch.py - p11-proxy stats --watch: on a terminal of its own, and into a pipe. Speaks TAP."""
import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import termios
import time

from terminal import TOOL, FakeProcess, Terminal, check, done_testing

CLEAR, DRAW = "\033[2J", "\033[H\033[J"
F_SETPIPE_SZ = 1031  # fcntl has it from Python 3.10 on
HOUR = "--watch=3600"
LAST = "others +[0-9]+\r\n"  # the last line of the table
CUT, WRAP = "\033[?7l", "\033[?7h"  # what lines wider than the terminal do
DRAWN = LAST + re.escape(WRAP)


def check_ends(counted):
    for how, key in (("q", "q"), ("Q", "Q"), ("Ctrl-C", "\x03"), ("Ctrl-\\", "\x1c")):
        terminal = Terminal("stats", HOUR, counted.pid)
        first = terminal.read_until(DRAWN)
        check(f"{how}: it draws at the top of an empty screen", first.startswith(CLEAR + DRAW), first)
        check(f"{how}: the counters are there", f"process {counted.pid}" in first.replace("\033[1m", ""), first)
        check(f"{how}: no rates at first", "calls/s" not in first, first)
        terminal.press(key)
        code, last = terminal.end()
        check(f"{how}: ends it with 0, and nothing more is drawn", (code, last) == (0, ""), (code, last))
        check(f"{how}: the keyboard is as before", terminal.is_restored())
    for number in (signal.SIGTERM, signal.SIGHUP):
        terminal = Terminal("stats", HOUR, counted.pid)
        terminal.read_until(DRAWN)
        terminal.process.send_signal(number)
        code, last = terminal.end()
        check(f"{number.name}: the same", (code, last, terminal.is_restored()) == (0, "", True), (code, last))


def check_window(counted):
    terminal = Terminal("stats", HOUR, counted.pid, rows=10)
    first = terminal.read_until(r"calls +bytes\r\n" + re.escape(WRAP))
    check("as many lines as the terminal has room for", first.count("\r\n") == 9, first)
    terminal.resize(100)
    second = terminal.read_until(DRAWN)
    check("and no more", second.startswith(DRAW), second)
    check("what is wider is cut", second.startswith(DRAW + CUT) and second.endswith(WRAP), second)
    terminal.press("q")
    terminal.end()


def check_rates(counted):
    terminal = Terminal("stats", "--watch=0.1", counted.pid)
    terminal.read_until(r"from the pool +2,000,000 +0 ")
    counted.draw()
    # 1000 draws within a tenth of a second, though the machine may be slow: at least one each second.
    rate = terminal.read_until(r"from the pool +2,001,000 +[1-9][0-9,]* ")
    check("rates", "calls/s" in rate, rate)
    terminal.read_until(r"from the pool +2,001,000 +0 ")
    terminal.press("q")
    terminal.end()


def check_dumb(counted):
    terminal = Terminal("stats", HOUR, counted.pid, environment=(("TERM", "dumb"),))
    block = terminal.read_until(LAST + "\r\n")
    check("a dumb terminal gets no escapes", "\033" not in block, block)
    terminal.press("q")
    check("but has keys", terminal.end()[0] == 0)


def check_pipe(counted):
    process = subprocess.Popen([TOOL, "stats", "--watch=0.1", counted.pid], stdout=subprocess.PIPE, text=True)
    text = ""
    while text.count("\n\n") < 2:
        text += process.stdout.readline()
    blocks = text.split("\n\n")
    check("blocks, an empty line after each", all(b.startswith("process") for b in blocks[:2]), blocks)
    check("with rates from the second on", ["calls/s" in block for block in blocks[:2]] == [False, True], blocks)
    check("no escapes in a pipe", "\033" not in text, text)
    process.stdout.close()
    check("it ends when its reader has gone", process.wait() == 0)
    process = subprocess.Popen([TOOL, "stats", HOUR, counted.pid], stdout=subprocess.PIPE)
    process.stdout.read(1)
    process.stdout.close()
    check("at once, however long the pause", process.wait() == 0)
    process = subprocess.Popen([TOOL, "stats", HOUR, counted.pid], stdout=subprocess.PIPE)
    process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    check("SIGINT ends it with 0", process.wait() == 0)
    with open("/dev/full", "w") as full:
        process = subprocess.run([TOOL, "stats", "--watch", counted.pid], stdout=full, stderr=subprocess.PIPE, text=True)
    check("a full disk ends it with 1", process.returncode == 1 and "cannot write: No space" in process.stderr, process)


def check_json(counted):
    process = subprocess.Popen([TOOL, "stats", "--json", "--watch=0.1", counted.pid], stdout=subprocess.PIPE, text=True)
    documents = [json.loads(process.stdout.readline()) for _ in range(3)]
    check("JSON: a document a line", [d["processes"][0]["pid"] for d in documents] == [int(counted.pid)] * 3, documents)
    times = [document["time_seconds"] for document in documents]
    check("JSON: each of its time", times[0] < times[1] < times[2], times)
    process.stdout.close()
    check("JSON: it ends when its reader has gone", process.wait() == 0)


def check_ignored(counted):
    """As nohup(1) starts it. A document of a second later shows that the signal did not end it."""
    process = subprocess.Popen([TOOL, "stats", "--json", "--watch=0.1", counted.pid], stdout=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.stdout.readline()
    sent = time.time()
    process.send_signal(signal.SIGHUP)
    check("a signal that is ignored stays so", any(json.loads(line)["time_seconds"] > sent + 1 for line in process.stdout))
    process.stdout.close()
    process.wait()


def check_broken_pipe():
    """It is in the midst of a document when its reader goes."""
    counted = FakeProcess("twice")
    reader, writer = os.pipe()
    size = fcntl.fcntl(reader, F_SETPIPE_SZ, 4096)  # less than one document
    process = subprocess.Popen([TOOL, "stats", "--json", "--watch", counted.pid], stdout=writer)
    os.close(writer)
    held = struct.pack("i", 0)
    while struct.unpack("i", held)[0] < size:
        held = fcntl.ioctl(reader, termios.FIONREAD, held)
    os.close(reader)
    check("it ends with 0 when its reader goes in the midst", process.wait() == 0, process.returncode)
    counted.end()


def check_named_end():
    counted = FakeProcess()
    process = subprocess.Popen([TOOL, "stats", "--watch=0.1", counted.pid], stdout=subprocess.PIPE)
    process.stdout.read(1)
    counted.end()
    process.stdout.read()
    check("it ends with the process that it was asked about", process.wait() == 0)
    process = subprocess.run([TOOL, "stats", "--watch", counted.pid], stderr=subprocess.PIPE, text=True)
    check("one that does not exist is reported", process.returncode == 1 and "does not exist" in process.stderr, process)


def main():
    counted = FakeProcess()
    check_ends(counted)
    check_window(counted)
    check_rates(counted)
    check_dumb(counted)
    check_pipe(counted)
    check_json(counted)
    check_ignored(counted)
    check_broken_pipe()
    check_named_end()
    counted.end()
    done_testing()


main()
