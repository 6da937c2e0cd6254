#!/usr/bin/python3
"""table.py - sets what was measured beside what was to be reached.

usage: table.py FILE

FILE has lines of a name, a tab and a value. A row is printed if all that it needs was measured.
"""
import sys
from collections import namedtuple

# proxy is compared with bare as "how" says: ratio, minus, or times (bare / proxy); "value" looks at proxy alone.
# divided: both are divided by these first, since a machine has its own price for the same work.
Row = namedtuple("Row", "what bare proxy unit how sign limit divided", defaults=("ns", "ratio", None, None, None))
PEER = None


def heading(text):
    return text


US, MS, KIB, MB_S, PPM = "us", "ms", "KiB", "MB/s", "ppm"
SCALES = {"ns": 1, US: 1e3, MS: 1e6, KIB: 1, MB_S: 1, PPM: 1}

TOKENS = (("softhsm", "SoftHSM"), ("50us", "token of 50 us"), ("1ms", "token of 1 ms"), ("20ms", "token of 20 ms"))

ROWS = [
    heading("Session ids through SunPKCS11"),
    Row("an id, SoftHSM", "ids.softhsm.bare", "ids.softhsm.proxy", MS, "ratio", "<=", 0.65),
    Row("an id, token of 50 us", "ids.50us.bare", "ids.50us.proxy", MS),
    Row("an id, token of 1 ms", "ids.1ms.bare", "ids.1ms.proxy", MS),
    Row("an id, token of 20 ms: times faster", "ids.20ms.bare", "ids.20ms.proxy", MS, "times", ">=", 1500),
    Row("token of 1 ms, beside SUN's SHA1PRNG", "ids.SHA1PRNG", "ids.1ms.proxy", MS, "ratio", "<=", 1.0),
    Row("... beside SUN's NativePRNG", "ids.NativePRNG", "ids.1ms.proxy", MS),
    Row("... beside SUN's DRBG", "ids.DRBG", "ids.1ms.proxy", MS),
] + [
    Row(f"{name}: with 56 names of policy, beside none", f"ids.{token}.proxy", f"ids.{token}.policy", MS)
    for token, name in TOKENS
] + [
    Row(f"token of 1 ms, ids/s of {n} threads, beside 1", "ids.threads.1", f"ids.threads.{n}", MS, "times",
        ">=" if n == 8 else None, 1.0 if n == 8 else None)
    for n in (2, 4, 8)
] + [
    heading("One draw"),
    Row("warm, 16 bytes, beside bare SoftHSM", "draw16.bare", "draw16.warm", "ns", "ratio", "<=", 1 / 40),
    Row("warm, 32 bytes, beside bare SoftHSM", "draw32.bare", "draw32.warm", "ns", "ratio", "<=", 1 / 40),
    Row("warm, 16 bytes, beside the floor", "draw16.floor", "draw16.warm", "ns", "ratio", "<=", 2.5),
    Row("warm, 32 bytes, beside the floor", "draw32.floor", "draw32.warm", "ns", "ratio", "<=", 2.5),
    Row("1000 of 32 bytes from a pool of 64 KiB", "draw32.bare", "draw32.burst"),
    Row("peer: p11-kit-proxy.so, 32 bytes", "draw32.bare", "draw32.p11kit"),
    Row("peer: pkcs11-spy.so, 32 bytes", "draw32.bare", "draw32.spy"),
    Row("peer: getrandom(), 32 bytes", "draw32.bare", "draw32.getrandom"),
    Row("peer: RAND_bytes(), 32 bytes", "draw32.bare", "draw32.openssl"),
    Row("peer: SoftHSM, 16 bytes, through p11-kit-proxy.so", "draw16.bare", "draw16.p11kit"),
] + [
    Row(f"{n} threads beside 1, each divided by the floor's own", "threads.1", f"threads.{n}", "ns", "ratio", "<=",
        1.3, ("threads.floor.1", f"threads.floor.{n}"))
    for n in (2, 4, 8)
] + [
    Row("first draw in a process, token of 1 ms", "first.bare", "first.proxy", US, "ratio", "<=", 1.1),
    heading("More than the pool holds"),
    # A call for each 16 bytes has its own price, which SoftHSM is faster than: there is nothing to reach.
    Row("16 bytes without a pause, SoftHSM, beside 32 KiB", "supply.softhsm.best", "supply.softhsm.draws", MB_S),
    Row("... token of 1 ms", "supply.1ms.best", "supply.1ms.draws", MB_S, "ratio", ">=", 0.9),
    Row("... token of 1 ms and 100 ns for a byte", "supply.bytes.best", "supply.bytes.draws", MB_S, "ratio", ">=", 0.9),
    Row("at 80 % of its rate, token of 1 ms: draws that wait", None, "steady.1ms", PPM, "value", "<=", 1000),
    Row("... token of 1 ms and 100 ns for a byte", None, "steady.bytes", PPM, "value", "<=", 1000),
    heading("What the pool does not answer"),
    Row("pool just emptied, token of 1 ms", "miss.empty.bare", "miss.empty.proxy", US, "ratio", "<=", 1.05),
    Row("4096 bytes, SoftHSM", "miss.large.bare", "miss.large.proxy", US, "ratio", "<=", 1.05),
    Row("NULL, SoftHSM", "miss.null.bare", "miss.null.proxy", "ns", "ratio", "<=", 1.05),
    Row("wrong handle, SoftHSM", "miss.handle.bare", "miss.handle.proxy", "ns", "ratio", "<=", 1.05),
    heading("What is not random"),
    Row("C_GetSessionInfo, SoftHSM", "info.bare", "info.proxy", "ns", "minus", "<=", 4),
    Row("peer: p11-kit-proxy.so", "info.bare", "info.p11kit", "ns", "minus"),
    Row("peer: pkcs11-spy.so", "info.bare", "info.spy", "ns", "minus"),
    Row("C_SignInit with 56 items of policy, beside none", "policy.0", "policy.56", "ns", "minus", "<=", 4),
    Row("C_SignInit with 56,000 items, beside none", "policy.0", "policy.56000", "ns", "minus", "<=", 4),
    Row("a session opened and closed among 10,000, beside 10", "sessions.10", "sessions.10000", "ns", "ratio", "<=",
        1.2),
    Row("C_Sign's p99 on a card, 10 KB/s drawn meanwhile", "sign.idle", "sign.few", MS, "ratio", "<=", 1.1),
    Row("... 100 KB/s, of a pool of 256 KiB", "sign.idle", "sign.large", MS, "ratio", "<=", 1.1),
    # More than one signature in a hundred waits for a fetch, because the pool is empty so often.
    Row("... 100 KB/s, of a pool of 64 KiB", "sign.idle", "sign.many", MS),
    Row("... straight, 100 KB/s", "sign.idle", "sign.bare", MS),
    Row("dlopen, C_Initialize, C_Finalize", "start.bare", "start.proxy", US, "minus", "<=", 300),
    Row("resident memory with one warm slot", "memory.bare", "memory.proxy", KIB, "minus", "<=", 256),
    heading("Name checks, beside the JDK's set without its cache"),
] + [
    Row(f"{name} among 56", f"names.jdk.{name}", f"names.56.{name}", "ns", "times", ">=", 5)
    for name in ("SSLv3", "DES", "NULL", "TLS1.3")
] + [
    Row(f"{name} among 56: ns", f"names.cached.{name}", f"names.56.{name}", "ns", "value", "<=", 10)
    for name in ("SSLv3", "DES", "NULL", "TLS1.3")
] + [
    Row(f"{name} among 56,000, beside 56", f"names.56.{name}", f"names.56000.{name}", "ns", "ratio", "<=", 1.2)
    for name in ("SSLv3", "DES", "NULL", "TLS1.3")
] + [
    Row(f"verdict on a call, {name}: ns", None, f"verdict.{name}", "ns", "value", "<=", 2)
    for name in ("permitted", "denied")
]


def compare(row, values):
    proxy = values[row.proxy]
    bare = values.get(row.bare, 0)
    if row.divided:
        bare, proxy = bare / values[row.divided[0]], proxy / values[row.divided[1]]
    scale = SCALES[row.unit]
    return {"ratio": lambda: proxy / bare, "times": lambda: bare / proxy,
            "minus": lambda: (proxy - bare) / scale, "value": lambda: proxy / scale}[row.how]()


def short(number):
    return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def is_complete(row, values):
    return all(name is None or name in values for name in (row.bare, row.proxy, *(row.divided or ())))


def line_of(row, values):
    result = compare(row, values)
    times = [short(values[name] / SCALES[row.unit]) if name else "" for name in (row.bare, row.proxy)]
    reach, verdict = "", ""
    if row.sign:
        reach = f"{row.sign} {short(row.limit)}"
        verdict = "yes" if (result <= row.limit if row.sign == "<=" else result >= row.limit) else "NO"
    text = f"{result:+.4g}" if row.how == "minus" else short(result)
    return f"{text:>8}  {reach:<8} {verdict:<4} {row.what:<54} {times[0]:>8} {times[1]:>8} {row.unit}", verdict


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        values = {name: float(value) for name, value in (line.split("\t")[:2] for line in file)}
    title, verdicts = None, []
    print(f"{'compared':>8}  {'to reach':<8} {'':<4} {'':<54} {'bare':>8} {'proxy':>8}")
    for row in ROWS:
        if isinstance(row, str):
            title = row
        elif is_complete(row, values):
            if title:
                print(f"\n{title}")
            title = None
            line, verdict = line_of(row, values)
            print(line.rstrip())
            verdicts.append(verdict)
    print(f"\n{verdicts.count('yes')} reached, {verdicts.count('NO')} not reached")


main()
