#!/usr/bin/python3
"""oracle.py - plays the same scripts on a target and on the proxy before it: nothing may differ but speed.

usage: oracle.py PROXY TEST_TARGETS TARGET [SCRIPT]

Scripts are made from seeds until the time is over, or SCRIPT is the only one. A difference is printed
with its script, which can be played again. ORACLE_SECONDS (30), ORACLE_SEED (1) and ORACLE_SEQUENCES (30 in each
script) say how much is tried.

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

import scripts
import targets

MORE_RUNS = 4         # of the target, before a difference is believed
PLAYER = (sys.executable, "-SE", str(pathlib.Path(__file__).with_name("player.py")))
SKIPPED = 77          # meson's exit code for a test that has nothing to test
COPIED = ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_PRELOAD")


class Difference:
    def __init__(self, line, bare, proxied):
        self.line, self.bare, self.proxied = line, bare, proxied


class Oracle:
    def __init__(self, proxy, target, scratch):
        self.proxy, self.target, self.scratch = proxy, target, scratch
        self.numbers = itertools.count()
        self.executor = concurrent.futures.ThreadPoolExecutor(3)
        self.crashes = 0
        self.template = scratch / "template"
        target.make_token(self.template)
        if target.preparation:
            self.play(target.preparation, False, keep=True)

    def play(self, lines, proxied, keep=False):
        """The lines that the player wrote; the last one says how it ended. With keep, all runs get
        the token that this one leaves."""
        directory = self.scratch / f"run{next(self.numbers)}"
        directory.mkdir()
        token = directory / "token"
        targets.copy_token(self.template, token)
        script = directory / "script"
        script.write_text("\n".join(lines) + "\n")
        environment = {name: os.environ[name] for name in COPIED if name in os.environ}
        environment.update(self.target.environment(token))
        reserved = self.target.reserved.format(token=token)
        command = [*PLAYER, self.proxy if proxied else str(self.target.module()), str(script)]
        if proxied:
            config = directory / "config"
            config.write_text(f"x-target: {self.target.module()}\nx-log: {directory}/log error\n" +
                              (f"x-target-init: {reserved}\n" if reserved else ""))
            environment["P11_PROXY_CONFIG"] = str(config)
        elif reserved:
            command.append(reserved)
        done = subprocess.run(command, env=environment, cwd=token, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode == 2:
            raise RuntimeError(done.stderr.decode())
        output = done.stdout.decode().replace(str(directory), "RUN").splitlines()
        output.append("left" if done.returncode == 0 else f"ended {signal.Signals(-done.returncode).name}"
                      if done.returncode < 0 else f"ended {done.returncode}")
        if keep:
            self.template = token
        else:
            shutil.rmtree(directory, ignore_errors=True)
        return output

    def compare(self, lines):
        """The first difference, or None."""
        runs = [self.executor.submit(self.play, lines, proxied) for proxied in (False, False, True)]
        first, second, proxied = [run.result() for run in runs]
        if first[-1] != "left":
            self.crashes += 1
        for number, bare in enumerate(first):
            there = proxied[number] if number < len(proxied) else "nothing"
            again = second[number] if number < len(second) else "nothing"
            if bare.startswith("ended") or again.startswith("ended") or not alike(bare, again):
                return None  # the target's own fault, and nothing behind it can be compared
            if not agree(bare, again, there):
                return Difference(number, bare, there)
        return None

    def confirmed(self, lines, difference):
        """Whether the target alone never does what the proxy did."""
        for _ in range(MORE_RUNS):
            output = self.play(lines, False)
            if len(output) <= difference.line or agree(output[difference.line], difference.bare,
                                                       difference.proxied):
                return False
        return True

    def examine(self, lines, seed):
        """False, and a report, if there is a difference."""
        self.target.vary(seed)
        difference = self.compare(lines)
        if difference is None or not self.confirmed(lines, difference):
            return True
        print(f"# {self.target.name}, seed {seed}: line {difference.line} of the output differs; the script:", *lines,
              "# the target alone:", "#   " + difference.bare, "# the proxy before it:", "#   " + difference.proxied,
              sep="\n", flush=True)
        return False


def agree(bare, again, there):
    """One line of the proxy against the same of two runs of the target."""
    if bare == there:
        return True
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
    target = next(target for target in targets.all_targets(test_targets) if target.name == name)
    if target.module() is None:
        print(f"{name} is not installed")
        return SKIPPED
    seconds = float(os.environ.get("ORACLE_SECONDS", "30"))
    seed = int(os.environ.get("ORACLE_SEED", "1"))
    sequences = int(os.environ.get("ORACLE_SEQUENCES", "30"))
    good, played, calls = True, 0, 0
    with tempfile.TemporaryDirectory(prefix="oracle.") as scratch:
        oracle = Oracle(proxy, target, pathlib.Path(scratch))
        if len(sys.argv) > 4:
            lines = pathlib.Path(sys.argv[4]).read_text().splitlines()
            return 0 if oracle.examine([line for line in lines if line[:1] != "#"], seed) else 1
        end = time.monotonic() + seconds
        while good and time.monotonic() < end:
            lines = scripts.Scripts(seed + played, target).make(sequences)
            good = oracle.examine(lines, seed + played)
            played, calls = played + 1, calls + len(lines)
        print(f"{name}: {played} scripts, {calls} calls, {'nothing differs' if good else 'a difference'}; "
              f"{oracle.crashes} ended in a crash of the target")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
