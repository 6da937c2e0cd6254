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
PLAYER = (sys.executable, "-SEB", pathlib.Path(__file__).with_name("sequences.py"))
SKIPPED = 77          # meson's exit code for a test that has nothing to test
SECONDS, SEED, SEQUENCES = (int(os.environ.get(f"ORACLE_{name}", usual))
                            for name, usual in (("SECONDS", 30), ("SEED", 1), ("SEQUENCES", 30)))
INHERITED = {name: value for name, value in os.environ.items() if not name.startswith("P11_")}


class Oracle:
    def __init__(self, proxy, name, target, scratch):
        self.proxy, self.name, self.target, self.scratch = proxy, name, target, scratch
        self.executor = concurrent.futures.ThreadPoolExecutor(3)
        self.target.make_token(scratch / "template")

    def play(self, seed, proxied):
        """The lines that the player wrote; the last one says how it ended."""
        with tempfile.TemporaryDirectory(dir=self.scratch) as run:
            token, config = pathlib.Path(run, "token"), pathlib.Path(run, "config")
            shutil.copytree(self.scratch / "template", token)
            reserved = self.target.reserved.format(token=token)
            config.write_text(f"x-target: {self.target.path}\nx-log: {run}/log error\n" +
                              (f"x-target-init: {reserved}\n" if reserved else ""))
            command = (*PLAYER, self.proxy if proxied else self.target.path, self.name, str(seed), str(SEQUENCES),
                       "" if proxied else reserved)
            done = subprocess.run(command, cwd=token, capture_output=True, text=True, check=False,
                                  env=INHERITED | {"P11_PROXY_CONFIG": str(config)} | self.target.environment(token, seed))
        if done.returncode > 0:
            raise RuntimeError(done.stderr)
        end = [f"ended {signal.Signals(-done.returncode).name}"] if done.returncode else []
        return done.stdout.replace(run, "RUN").splitlines() + end

    def difference(self, seed):
        """The proxy's output before the first difference, and the line of the target and of the proxy; or None."""
        first, second, proxied = self.executor.map(self.play, [seed] * 3, (False, False, True))
        for number, lines in enumerate(itertools.zip_longest(first, second, proxied, fillvalue="nothing")):
            bare, again, there = lines
            if bare.startswith(("ended", "nothing")) or bare.split(" ")[:2] != again.split(" ")[:2]:
                return None  # the target crashes, or takes another way: nothing behind it can be compared
            if not agree(*lines):
                return (proxied[:number], bare, there) if self.is_true(seed, number, bare, there) else None
        return None

    def is_true(self, seed, number, bare, there):
        """Whether the target alone never does what the proxy did."""
        outputs = [self.play(seed, False) for _ in range(MORE_RUNS)]
        return all(len(output) > number and not agree(output[number], bare, there) for output in outputs)


def agree(bare, again, there):
    """One line of the proxy against the same of two runs of the target."""
    fields = [line.split(" ") for line in (bare, again, there)]
    if len({len(line) for line in fields}) != 1:
        return False
    return all(one == three or (one != two and len(one) == len(three)) for one, two, three in zip(*fields))


def main():
    proxy, test_targets = [pathlib.Path(path).resolve() for path in sys.argv[1:3]]
    name = sys.argv[3]
    target = targets.TARGETS[name]
    target.path = test_targets / target.path  # an absolute path stays as it is
    if not target.path.exists():
        print(f"{name} is not installed")
        return SKIPPED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="oracle.") as scratch:
        oracle = Oracle(proxy, name, target, pathlib.Path(scratch))
        seed, end = SEED, time.monotonic() + SECONDS
        while (difference := oracle.difference(seed)) is None and time.monotonic() < end:
            seed += 1
    if difference is not None:
        before, bare, there = difference
        print(*before, f"# {name}, seed {seed}: that was the same, and then it differs", f"# {bare}",
              f"# {there}, with the proxy before it", sep="\n")
    print(f"{name}: seeds {SEED} to {seed}")
    return 0 if difference is None else 1


if __name__ == "__main__":
    sys.exit(main())
