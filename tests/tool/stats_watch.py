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

from terminal import TOOL, Pretender, Terminal, check, done_testing

ENTER, LEAVE = "\033[?1049h\033[?25l\033[?7l", "\033[?7h\033[?25h\033[?1049l"
F_SETPIPE_SZ = 1031  # fcntl has it from Python 3.10 on
HOUR = "--watch=3600"

DRAWN = r"\033\[J"  # the end of a redraw


def check_ends(counted):
    for how, key in (("q", "q"), ("Q", "Q"), ("Ctrl-C", "\x03"), ("Ctrl-\\", "\x1c")):
        terminal = Terminal("stats", HOUR, counted.pid)
        first = terminal.read_until(DRAWN)
        check(f"{how}: it draws on the alternate screen, with no cursor", first.startswith(ENTER), first)
        check(f"{how}: the counters are there", f"process {counted.pid}" in first.replace("\033[1m", ""), first)
        check(f"{how}: no rates at first", "draws/s" not in first, first)
        terminal.press(key)
        code, last = terminal.end()
        check(f"{how}: ends it with 0", code == 0, code)
        check(f"{how}: the screen is as before", last == LEAVE, last)
        check(f"{how}: the keyboard too", terminal.is_restored())
    for number in (signal.SIGTERM, signal.SIGHUP):
        terminal = Terminal("stats", HOUR, counted.pid)
        terminal.read_until(DRAWN)
        terminal.process.send_signal(number)
        code, last = terminal.end()
        check(f"{number.name}: the same", (code, last, terminal.is_restored()) == (0, LEAVE, True), (code, last))


def check_stop(counted):
    terminal = Terminal("stats", HOUR, counted.pid)
    terminal.read_until(DRAWN)
    terminal.process.send_signal(signal.SIGTSTP)
    os.waitpid(terminal.process.pid, os.WUNTRACED)
    left = terminal.read_until(r"\033\[\?1049l")
    check("Ctrl-Z: it stops, and the screen is as before", left == LEAVE, left)
    check("Ctrl-Z: the keyboard too", terminal.is_restored())
    terminal.process.send_signal(signal.SIGCONT)
    again = terminal.read_until(DRAWN)
    check("when it goes on, it draws again", again.startswith(ENTER), again)
    terminal.press("q")
    check("and still knows its keys", terminal.end()[0] == 0)


def check_rows(counted):
    terminal = Terminal("stats", HOUR, counted.pid, rows=10)
    lines = terminal.read_until(DRAWN).split("\r\n")
    check("no more lines than the terminal has", len(lines) == 10 and lines[-1].startswith("..."), lines)
    terminal.resize(12)
    lines = terminal.read_until(DRAWN).split("\r\n")
    check("a larger window shows more", len(lines) == 12, lines)
    terminal.press("q")
    terminal.end()


def check_rates(counted):
    terminal = Terminal("stats", "--watch=0.1", counted.pid)
    terminal.read_until(DRAWN)
    terminal.read_until(r" 0 draws/s from the pool, 0 by the token")
    counted.draw()
    # 1000 draws within a tenth of a second, though the machine may be slow: at least one each second.
    rate = terminal.read_until(r" [1-9][0-9,]* draws/s from the pool, [0-9,]+ by the token")
    check("rates", bool(re.search(r"draws +2,001,000 .* rate +[1-9]", rate, re.DOTALL)), rate)
    terminal.read_until(r" 0 draws/s from the pool, 0 by the token")
    terminal.press("q")
    terminal.end()


def check_dumb(counted):
    terminal = Terminal("stats", HOUR, counted.pid, environment=(("TERM", "dumb"),))
    block = terminal.read_until("others\r\n\r\n")
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
    check("with rates from the second on", ["draws/s" in block for block in blocks[:2]] == [False, True], blocks)
    check("no escapes in a pipe", "\033" not in text, text)
    process.stdout.close()
    check("it ends when nobody reads", process.wait() == 0)
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
    check("JSON: it ends when nobody reads", process.wait() == 0)


def check_broken_pipe():
    """It is in the midst of a document when its reader goes."""
    counted = Pretender("twice")
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
    counted = Pretender()
    process = subprocess.Popen([TOOL, "stats", "--watch=0.1", counted.pid], stdout=subprocess.PIPE)
    process.stdout.read(1)
    counted.end()
    process.stdout.read()
    check("it ends with the process that it was asked about", process.wait() == 0)
    process = subprocess.run([TOOL, "stats", "--watch", counted.pid], stderr=subprocess.PIPE, text=True)
    check("one that is not there is told", process.returncode == 1 and "is not there" in process.stderr, process)


def main():
    counted = Pretender()
    check_ends(counted)
    check_stop(counted)
    check_rows(counted)
    check_rates(counted)
    check_dumb(counted)
    check_pipe(counted)
    check_json(counted)
    check_broken_pipe()
    check_named_end()
    counted.end()
    done_testing()


main()
