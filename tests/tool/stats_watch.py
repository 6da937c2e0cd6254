#!/usr/bin/python3
"""stats_watch.py - p11-proxy stats --watch: on a terminal of its own, and into a pipe. Speaks TAP."""
import json
import signal
import subprocess

from terminal import TOOL, FakeProcess, Terminal, check, done_testing

DRAW_ANEW = "\033[H\033[2J"
LAST = "others +[0-9]+\r\n"  # the last line of the table


def check_terminal(counted):
    terminal = Terminal("stats", "--watch=0.1", counted.pid)
    first = terminal.read_until(LAST)
    check("it draws at the top of an empty screen", first.startswith(DRAW_ANEW), first)
    check("no rates at first", "calls/s" not in first, first)
    terminal.read_until(r"from the pool +2,000,000 +0 ")
    counted.draw()
    # 1000 draws within a tenth of a second, though the machine may be slow: at least one each second.
    rate = terminal.read_until(r"from the pool +2,001,000 +[1-9][0-9,]* ")
    check("rates", "calls/s" in rate, rate)
    terminal.read_until(r"from the pool +2,001,000 +0 ")
    terminal.press("\x03")
    check("Ctrl-C ends it", terminal.end()[0] == -signal.SIGINT)
    terminal = Terminal("stats", "--watch=3600", counted.pid, environment=(("TERM", "dumb"),))
    block = terminal.read_until(LAST + "\r\n")
    check("a dumb terminal gets no escapes", "\033" not in block, block)
    terminal.press("\x03")
    terminal.end()


def watch(*arguments):
    return subprocess.Popen([TOOL, "stats", "--watch=0.1", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_pipe(counted):
    process = watch(counted.pid)
    text = ""
    while text.count("\n\n") < 2:
        text += process.stdout.readline()
    blocks = text.split("\n\n")
    check("blocks, an empty line after each", all(b.startswith("process") for b in blocks[:2]), blocks)
    check("with rates from the second on", ["calls/s" in block for block in blocks[:2]] == [False, True], blocks)
    check("no escapes in a pipe", "\033" not in text, text)
    process.stdout.close()
    check("it ends when its reader has gone", process.wait() == -signal.SIGPIPE and not process.stderr.read())
    process = watch("--json", counted.pid)
    documents = [json.loads(process.stdout.readline()) for _ in range(3)]
    check("JSON: a document a line", [d["processes"][0]["pid"] for d in documents] == [int(counted.pid)] * 3, documents)
    times = [document["time_seconds"] for document in documents]
    check("JSON: each of its time", times[0] < times[1] < times[2], times)
    process.stdout.close()
    process.wait()
    with open("/dev/full", "w") as full:
        process = subprocess.run([TOOL, "stats", "--watch", counted.pid], stdout=full, stderr=subprocess.PIPE, text=True)
    check("a full disk ends it with 1", process.returncode == 1 and "cannot write: No space" in process.stderr, process)


def check_named_end(counted):
    process = watch(counted.pid)
    process.stdout.read(1)
    counted.end()
    process.communicate()
    check("it ends with the process that it was asked about", process.returncode == 0)
    process = watch(counted.pid)
    check("one that does not exist is reported", "does not exist" in process.communicate()[1] and process.returncode == 1)


counted = FakeProcess()
check_terminal(counted)
check_pipe(counted)
check_named_end(counted)
done_testing()
