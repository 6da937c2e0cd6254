#!/usr/bin/python3
"""oracle.py - plays the same calls on a target and on the proxy before it: nothing may differ but speed.

usage: oracle.py PROXY TEST_TARGETS TARGET

Calls are made from seeds until the time is over; a difference is printed with its seed and the calls before it.
ORACLE_SECONDS (30), ORACLE_SEED (1) and ORACLE_SEQUENCES (30 with each seed) say how much is tried.

Each run has a copy of the same token. What is random by nature is found out by playing twice on the target:
values that differ between these two must agree in length only.
"""
import concurrent.futures
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import targets

MORE_RUNS = 4         # of the target, before a difference is believed
PLAYER = (sys.executable, "-SEB", str(pathlib.Path(__file__).with_name("sequences.py")))
SKIPPED = 77          # meson's exit code for a test that has nothing to test
COPIED = ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_PRELOAD")


class Oracle:
    def __init__(self, proxy, name, scratch):
        self.proxy, self.name, self.scratch = proxy, name, scratch
        self.target = targets.TARGETS[name]
        self.numbers = itertools.count()
        self.executor = concurrent.futures.ThreadPoolExecutor(3)
        self.calls = self.crashes = 0
        self.template = scratch / "template"
        self.target.make_token(self.template)
        if self.target.needs_pin:
            self.play(0, 0, False)
            self.template = scratch / "run0" / "token"

    def play(self, seed, sequences, proxied):
        """The lines that the player wrote; the last one says how it ended."""
        directory = self.scratch / f"run{next(self.numbers)}"
        token, config = directory / "token", directory / "config"
        shutil.copytree(self.template, token)
        reserved = self.target.reserved.format(token=token)
        environment = {name: os.environ[name] for name in COPIED if name in os.environ}
        environment |= {"P11_PROXY_CONFIG": str(config)} | self.target.environment(token, seed)
        config.write_text(f"x-target: {self.target.path}\nx-log: {directory}/log error\n" +
                          (f"x-target-init: {reserved}\n" if reserved else ""))
        command = [*PLAYER, self.proxy if proxied else self.target.path, self.name, str(seed), str(sequences)]
        done = subprocess.run(command + ([reserved] if reserved and not proxied else []), env=environment, cwd=token,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode > 0:
            raise RuntimeError(done.stderr.decode())
        output = done.stdout.decode().replace(str(directory), "RUN").splitlines()
        if done.returncode < 0:
            output.append(f"ended {signal.Signals(-done.returncode).name}")
        if sequences:
            shutil.rmtree(directory, ignore_errors=True)
        return output

    def differs(self, seed, sequences):
        """The output of the target and of the proxy up to the first difference, or None."""
        runs = [self.executor.submit(self.play, seed, sequences, proxied) for proxied in (False, False, True)]
        first, second, proxied = [run.result() for run in runs]
        self.calls += len(first)
        self.crashes += first[-1] != "end"
        for number, (bare, again, there) in enumerate(itertools.zip_longest(first, second, proxied, fillvalue="nothing")):
            if any(line.startswith(("ended", "nothing")) for line in (bare, again)) or not alike(bare, again):
                return None  # the target's own fault, and nothing behind it can be compared
            if not agree(bare, again, there):
                return (proxied[:number], bare, there) if self.is_true(seed, sequences, number, bare, there) else None
        return None

    def is_true(self, seed, sequences, number, bare, there):
        """Whether the target alone never does what the proxy did."""
        outputs = [self.play(seed, sequences, False) for _ in range(MORE_RUNS)]
        return all(len(output) > number and not agree(output[number], bare, there) for output in outputs)


def agree(bare, again, there):
    """One line of the proxy against the same of two runs of the target."""
    fields = [line.split(" ") for line in (bare, again, there)]
    if len({len(line) for line in fields}) != 1:
        return False
    return all(one == three or (one != two and len(one) == len(three)) for one, two, three in zip(*fields))


def alike(bare, again):
    """Whether two runs of the target took the same way: the same call with the same code."""
    return bare.split(" ")[:2] == again.split(" ")[:2]


def main():
    proxy, test_targets = [str(pathlib.Path(path).resolve()) for path in sys.argv[1:3]]
    name = sys.argv[3]
    target = targets.TARGETS[name]
    target.path = test_targets / target.path  # an absolute path stays as it is
    if not target.path.exists():
        print(f"{name} is not installed")
        return SKIPPED
    seconds, seed, sequences = [int(os.environ.get(f"ORACLE_{what}", usual))
                                for what, usual in (("SECONDS", 30), ("SEED", 1), ("SEQUENCES", 30))]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="oracle.") as scratch:
        oracle = Oracle(proxy, name, pathlib.Path(scratch))
        difference, played, end = None, 0, time.monotonic() + seconds
        while difference is None and time.monotonic() < end:
            difference = oracle.differs(seed + played, sequences)
            played += 1
        if difference is not None:
            before, bare, there = difference
            print(*before, f"# {name}, seed {seed + played - 1}: that was the same, and then it differs", f"# {bare}",
                  f"# {there}, with the proxy before it", sep="\n")
        print(f"{name}: {played} seeds, {oracle.calls} calls, {oracle.crashes} ended in a crash of the target")
    return 0 if difference is None else 1


if __name__ == "__main__":
    sys.exit(main())
