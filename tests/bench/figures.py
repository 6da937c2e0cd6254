#!/usr/bin/python3
"""figures.py - measures in turns, and sets what was measured beside what is to be reached.

usage: figures.py BUILD PATTERN ROUNDS, as tests/bench/run calls it
"""
import json
import os
import re
import statistics
import subprocess
import sys
from collections import namedtuple

BUILD, PATTERN, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
PLACE = f"{BUILD}/measured"
NAMES = "tests/policy/names-56.security"
SOFTHSM = os.environ["SOFTHSM"]
PROXY, SLOW = f"{BUILD}/module/p11-proxy.so", f"{BUILD}/tests/targets/scripted.so"
IDS = 10_000
DRAW_LIMITS = {"open_draw_close": 1.2, "open_draw_close_threads_4": 1.2, "draw_32_after_pause": 1 / 20}

# A figure is proxy compared with bare, as "how" says: ratio, minus, times (bare / proxy), or value, which is proxy alone.
Row = namedtuple("Row", "what bare proxy unit how sign limit", defaults=("ns", "ratio", None, None))
SCALES = {"ns": 1, "us": 1e3, "ms": 1e6, "KiB": 1}


def written(name, *lines):
    """A file of that name with these lines."""
    path = f"{PLACE}/{name}"
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def through(name, target, *lines):
    return {"P11_PROXY_CONFIG": written(f"{name}.module", f"x-target: {target}", "x-log: off", *lines)}


def output(command, settings):
    words = [str(word) for word in command]
    return subprocess.run(words, env=os.environ | settings, stdout=subprocess.PIPE, text=True, check=True).stdout


def lasts(time):
    """What makes the scripted target slow."""
    return {"TARGET_SCRIPT": f"quiet; C_GenerateRandom: last {time}"}


def op(name, number=0, times=1, module=PROXY, **settings):
    """A function that runs tests/bench/measure once."""
    def once():
        printed = output((f"{BUILD}/tests/bench/measure", name, number, times, module), settings)
        return float(re.search(r"^value (.*)", printed, re.MULTILINE).group(1))
    return once


def ids(where, count, threads=1, **settings):
    return lambda: float(output(("java", "-cp", PLACE, "SessionIds", where, count, threads), settings))


def in_turns(rounds, **subjects):
    """The median of each, while they take turns."""
    values = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, once in subjects.items():
            values[name].append(once())
    return {name: statistics.median(of_one) for name, of_one in values.items()}


def measure_ids():
    def sun(name, library):
        return written(f"{name}.cfg", f"name = {name}", f"library = {library}", "slotListIndex = 0")
    bare, slow_bare, proxy = sun("bare", SOFTHSM), sun("slow", SLOW), sun("proxy", PROXY)
    plain, slow = through("plain", SOFTHSM), through("slow", SLOW)
    subjects = {"softhsm": ids(bare, IDS), "softhsm_proxy": ids(proxy, IDS, **plain), "sha1prng": ids("SHA1PRNG", IDS)}
    # So few ids straight that it takes seconds, not hours.
    for delay, straight in ((50, IDS // 2), (1000, IDS // 20), (20000, 20)):
        subjects[f"us{delay}"] = ids(slow_bare, straight, **lasts(f"{delay}us"))
        subjects[f"us{delay}_proxy"] = ids(proxy, IDS, **lasts(f"{delay}us"), **slow)
    subjects["threads"] = ids(proxy, 4 * IDS, 8, **lasts("1ms"), **slow)
    subjects["thread"] = ids(proxy, 4 * IDS, 1, **lasts("1ms"), **slow)
    return in_turns((ROUNDS + 2) // 3, **subjects), [
        Row("a session id by SunPKCS11, SoftHSM", "softhsm", "softhsm_proxy", "ms", "ratio", "<=", 0.5),
        Row("... token of 50 us", "us50", "us50_proxy", "ms"),
        Row("... token of 1 ms", "us1000", "us1000_proxy", "ms"),
        Row("... beside SUN's SHA1PRNG", "sha1prng", "us1000_proxy", "ms", "ratio", "<=", 0.8),
        Row("... token of 20 ms: times faster", "us20000", "us20000_proxy", "ms", "times", ">=", 1500),
        Row("... token of 1 ms: ids/s of 8 threads, beside 1", "thread", "threads", "ms", "times", ">=", 1.0)]


def measure_draw():
    """What p11-proxy bench prints, for SoftHSM and for a token of 1 ms."""
    values, rows = {}, []
    slow = through("slow", SLOW) | lasts("1ms")
    for token, settings in (("SoftHSM", through("plain", SOFTHSM)), ("token of 1 ms", slow)):
        command = (f"{BUILD}/tools/p11-proxy", "bench", "--json", "--seconds", 2 * ROUNDS)
        shown = json.loads(output(command, settings))
        for key, pair in shown["figures"].items():
            if pair is not None:
                values |= {f"{token} {key}": pair["straight_ns"], f"{token} {key} proxy": pair["proxy_ns"]}
                rows.append(Row(f"{token}, {key}", f"{token} {key}", f"{token} {key} proxy", "us", "ratio",
                                "<=" if key in DRAW_LIMITS else None, DRAW_LIMITS.get(key)))
    return values, rows


def measure_threads():
    large = through("large", SOFTHSM, "x-pool-size: 16MiB")
    subjects = {}
    for count in (1, 2, 4, 8):
        subjects |= {f"proxy{count}": op("threads", count, **large), f"floor{count}": op("floor", count)}
    values = in_turns(ROUNDS, **subjects)
    values |= {f"by_floor{count}": values[f"proxy{count}"] / values[f"floor{count}"] for count in (1, 2, 4, 8)}
    warm = Row("32 bytes from a full pool, beside copying and wiping them", "floor1", "proxy1", "ns", "ratio", "<=", 2.5)
    return values, [warm] + [Row(f"{count} threads beside 1, each divided by the floor's own", "by_floor1", f"by_floor{count}",
                                 "ns", "ratio", "<=", 1.3) for count in (2, 4, 8)]


def measure_supply():
    """Draws of 16 bytes, beside as many bytes in calls of 32 KiB straight to the token and what a warm draw costs."""
    slow = lasts("1ms")
    values = in_turns(
        ROUNDS, warm=op("threads", 1, **through("large", SOFTHSM, "x-pool-size: 16MiB")),
        bulk=op("draw", 32768, 500, SOFTHSM), draws=op("draw", 16, 1_000_000, **through("plain", SOFTHSM)),
        slow_bulk=op("draw", 32768, 50, SLOW, **slow),
        slow_draws=op("draw", 16, 100_000, **slow, **through("slow", SLOW)))
    values["bulk"] = values["bulk"] / 2048 + values["warm"]
    values["slow_bulk"] /= 2048
    return values, [Row("16 bytes without a pause, SoftHSM, beside 16 of 32 KiB and a warm draw", "bulk", "draws", "ns", "ratio", "<=", 2),
                    Row("... token of 1 ms", "slow_bulk", "slow_draws", "ns", "ratio", "<=", 1.1)]


def measure_sign():
    card = {"TARGET_SCRIPT": "quiet; one at a time; C_GenerateRandom: last 20ms; C_Sign: last 20ms"}
    small, large = through("slow", SLOW) | card, through("card", SLOW, "x-pool-size: 256KiB") | card
    return in_turns(min(ROUNDS, 5), idle=op("sign", 0, **small), few=op("sign", 10_000, **small),
                    many=op("sign", 100_000, **small), large=op("sign", 100_000, **large),
                    bare=op("sign", 100_000, 1, SLOW, **card)), [
        Row("C_Sign's p99 on a card, 10 KB/s drawn meanwhile", "idle", "few", "ms", "ratio", "<=", 1.1),
        Row("... 100 KB/s, of a pool of 256 KiB", "idle", "large", "ms", "ratio", "<=", 1.1),
        # More than one signature in a hundred waits for a fetch, because the pool is empty so often.
        Row("... 100 KB/s, of a pool of 64 KiB", "idle", "many", "ms"),
        Row("... straight, 100 KB/s", "idle", "bare", "ms")]


def measure_beside():
    """Two threads on SoftHSM that do not wait for each other. What a second busy thread costs by itself is in both figures."""
    plain = through("plain", SOFTHSM)
    return in_turns(ROUNDS, sign=op("sign-beside", 0, 20_000, **plain), sign_beside=op("sign-beside", 1, 20_000, **plain),
                    draw=op("draw-beside", 0, 1_000_000, **plain), draw_beside=op("draw-beside", 1, 1_000_000, **plain)), [
        Row("C_Sign while a thread draws 16 bytes without pause", "sign", "sign_beside", "ns", "ratio", "<=", 1.1),
        Row("those draws while a thread signs", "draw", "draw_beside", "ns", "ratio", "<=", 1.1)]


def measure_start():
    plain = through("plain", SOFTHSM)
    return in_turns(ROUNDS, start=op("start", 0, 1, SOFTHSM), start_proxy=op("start", **plain),
                    memory=op("memory", 0, 1, SOFTHSM), memory_proxy=op("memory", **plain),
                    written=op("memory", 1, 1, SOFTHSM), written_proxy=op("memory", 1, **plain)), [
        Row("dlopen, C_Initialize, C_Finalize", "start", "start_proxy", "us", "minus", "<=", 300),
        Row("resident memory with one warm slot", "memory", "memory_proxy", "KiB", "minus", "<=", 256),
        Row("memory written to with one warm slot", "written", "written_proxy", "KiB", "minus")]


def measure_names():
    with open(NAMES, encoding="utf-8") as file:
        few = file.read().rstrip()
    many = written("names.security", f"{few}, " + ", ".join(f"name{number}" for number in range(56_000 - 56)))
    names = written("names", "SSLv3", "DES", "NULL", "TLS1.3")

    def look_up(lists):
        return lambda: float(output((f"{BUILD}/tests/policy/policy_permits", lists, names, 250_000), {}))
    return in_turns(ROUNDS, few=look_up(NAMES), many=look_up(many)), [
        Row("a name among 56: ns", "few", "few", "ns", "value", "<=", 50),
        Row("a name among 56,000, beside 56", "few", "many", "ns", "ratio", "<=", 1.2)]


def short(number):
    return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def line_of(row, values):
    bare, proxy, scale = values[row.bare], values[row.proxy], SCALES[row.unit]
    result = {"ratio": proxy / bare, "times": bare / proxy, "minus": (proxy - bare) / scale,
              "value": proxy / scale}[row.how]
    reach = f"{row.sign} {short(row.limit)}" if row.sign else ""
    reached = row.sign and (result <= row.limit if row.sign == "<=" else result >= row.limit)
    verdict = "" if not row.sign else "yes" if reached else "NO"
    return (f"{short(result):>8}  {reach:<8} {verdict:<4} {row.what:<54} "
            f"{short(bare / scale):>8} {short(proxy / scale):>8} {row.unit}")


def main():
    every = {"ids": measure_ids, "draw": measure_draw, "threads": measure_threads, "supply": measure_supply,
             "sign": measure_sign, "beside": measure_beside, "start": measure_start, "names": measure_names}
    groups = [measure for name, measure in every.items() if re.search(PATTERN, name)]
    if not groups:
        sys.exit(f"figures.py: no group matches '{PATTERN}'")
    print(f"{'compared':>8}  {'to reach':<8} {'':<4} {'':<54} {'bare':>8} {'proxy':>8}")
    for measure in groups:
        values, rows = measure()
        for row in rows:
            print(line_of(row, values), flush=True)


main()
