#!/usr/bin/python3
"""player.py - calls one module as a script says, and writes what came of each call.

usage: player.py MODULE SCRIPT [RESERVED]

A line of a script is a function and its arguments, NAME=VALUE:
    C_OpenSession slotID=slot0 flags=4 pApplication=0 Notify=0 phSession=&s1
or "slots", which learns the slots, "pause MS", or "reload", which closes the module and loads it again. Each becomes
one line of output, written at once: a module that crashes shows where. RESERVED stands in pReserved of the structures
for C_Initialize. A value is one word:
    12, 0x1f     a number; 0 is also NULL
    s3, o2       the handle that a script gave that name; a handle of nothing if it has none
    slot1        the second slot of the last "slots"
    &s3          room for a handle, to be known as s3
    x:00ff       bytes to read
    out:16       16 bytes to write to; out:16>name keeps what comes, for <name (bytes) and #name (their number)
    rnd:16       the same for bytes that cannot be foretold: shown as written to or not (nor by zeros after a failure)
    len:16       a number to read and write
    find:9       room for nine handles, shown sorted by name; some:9 is not shown, where any may come
    init:2       C_Initialize's structure, with these flags
    {0:u:3;17:x:00ff;3:out:8;3:null:0}      a template; u is a CK_ULONG, b a CK_BBOOL, null asks for a length
    (0x1087:u:1;p:00ff;x:00)                a mechanism; its parameter is these words one after the other,
                                            p a pointer to bytes
"""
import ctypes
import pathlib
import re
import signal
import struct
import sys
import time
import traceback
import _ctypes

HANG_S = 60
FILL = b"\xa5"
MANY = 8  # bytes: fewer may be the fill by chance
NO_HANDLE = 0x7FFFFFF1  # where a script has no handle of that name: nothing that a module gives out
OK = 0
WORD = 8
TIME_OF_DAY = slice(188, 204)  # in CK_TOKEN_INFO
STANDARD = b"PKCS 11\0"

FUNCTIONS = pathlib.Path(__file__).parents[2] / "module" / "functions.def"
ROW = re.compile(r"[A-Z]+ *\(.*?\b(C_\w+), (.*)")
PAIR = re.compile(r"\((CK_\w+), (\w+)\)")


def rows_up_to(version):
    """The functions of a version (240, 300 or 302), in order: names, and pairs of type and name."""
    rows, upto = {}, 240
    for line in FUNCTIONS.read_text().splitlines():
        if line.startswith("#if P11_UPTO >= "):
            upto = int(line.split()[-1])
        row = ROW.match(line)
        if row and upto <= version:
            rows[row.group(1)] = PAIR.findall(row.group(2))
    return rows


def words(*numbers):
    return b"".join(struct.pack("=Q", number) for number in numbers)


class Value:
    """What a function is called with, and the block that it points to."""
    kept = []  # all blocks, to the end: modules keep pointers

    def __init__(self, word=0, content=None):
        self.word, self.text, self.parts = word, "", ()
        self.block = None
        if content is not None:
            self.block = (ctypes.c_char * max(len(content), 1))(*content)
            self.len = len(content)
            self.word = ctypes.addressof(self.block)
            Value.kept.append(self.block)

    def content(self):
        return self.block.raw[:self.len]

    def number(self):
        """The number in the block; 0 if there is none."""
        return struct.unpack_from("=Q", self.content())[0] if self.block and self.len >= WORD else 0


class Player:
    def __init__(self, path, reserved):
        self.path = path
        self.reserved = Value(content=reserved.encode() + b"\0").word if reserved else 0
        self.rows = rows_up_to(302)
        self.handles, self.bytes, self.slots = {}, {}, []
        self.load()

    # The module.

    def load(self):
        self.module = ctypes.CDLL(self.path)
        self.find_list()
        print(f"list {self.version[0]}.{self.version[1]}", flush=True)

    def use_list(self, address, count):
        self.version = tuple(ctypes.string_at(address, 2))
        addresses = struct.unpack(f"={count}Q", ctypes.string_at(address + WORD, count * WORD))
        self.functions = dict(zip(self.rows, addresses))

    def find_list(self):
        """The newest list that we know, through the one getter or the other."""
        found = Value(content=words(0))
        for version, count in (((3, 2), 104), ((3, 0), 92)):
            if not hasattr(self.module, "C_GetInterface"):
                break
            wanted = Value(content=bytes(version))
            if self.module.C_GetInterface(STANDARD, wanted.block, found.block, 0) == OK:
                self.use_list(struct.unpack("=3Q", ctypes.string_at(found.number(), 3 * WORD))[1], count)
                if self.version == version:
                    return
        self.module.C_GetFunctionList(found.block)
        self.use_list(found.number(), 68)

    def ask(self, function, *arguments):
        kind = ctypes.CFUNCTYPE(ctypes.c_ulong, *[ctypes.c_ulong] * len(arguments))
        return kind(self.functions[function])(*arguments)

    def learn_slots(self):
        slots, count = Value(content=bytes(32 * WORD)), Value(content=words(32))
        rv = self.ask("C_GetSlotList", 0, slots.word, count.word)
        if rv == OK:
            self.slots = list(struct.unpack(f"={count.number()}Q", slots.content()[:count.number() * WORD]))
        print(f"slots {rv:#x}", *(f"{slot:x}" for slot in self.slots if rv == OK), flush=True)

    # What a call is made of.

    def part(self, text):
        """One word of a template or a mechanism, as a value and its bytes."""
        kind, _, rest = text.partition(":")
        if kind == "x":
            return bytes.fromhex(rest)
        if kind == "b":
            return bytes([int(rest, 0)])
        return words(Value(content=bytes.fromhex(rest)).word if kind == "p" else int(rest, 0))

    def template(self, text):
        value, rows = Value(), []
        for row in filter(None, text.strip("{}").split(";")):
            number, _, rest = row.partition(":")
            kind, _, size = rest.partition(":")
            if kind == "null":
                part = None
            elif kind == "out":
                part = Value(content=FILL * int(size))
            else:
                part = Value(content=self.part(rest))
            rows.append((int(number, 0), part, int(size) if part is None else part.len, kind))
        value = Value(content=words(*(word for number, part, size, _ in rows
                                      for word in (number, part.word if part else 0, size))))
        value.parts = [(part, kind) for _, part, _, kind in rows]
        return value

    def mechanism(self, text):
        number, _, rest = text.strip("()").partition(":")
        parameter = b"".join(map(self.part, filter(None, rest.split(";"))))
        return Value(content=words(int(number, 0), Value(content=parameter).word if parameter else 0, len(parameter)))

    def value(self, text):
        kind, _, rest = text.partition(":")
        size = rest.partition(">")[0]
        if text[0] == "{":
            return self.template(text)
        if text[0] == "(":
            return self.mechanism(text)
        if text[0] == "&":
            return Value(content=words(NO_HANDLE))
        if text[0] == "<":
            return self.bytes.get(text[1:]) or Value(content=b"")
        if text[0] == "#":
            return Value(self.bytes[text[1:]].len if text[1:] in self.bytes else 0)
        if kind == "x":
            return Value(content=bytes.fromhex(rest))
        if kind in ("out", "rnd"):
            return Value(content=FILL * int(size))
        if kind == "len":
            return Value(content=words(int(rest, 0)))
        if kind in ("find", "some"):
            return Value(content=FILL * (WORD * int(size)))
        if kind == "init":
            return Value(content=words(0, 0, 0, 0, int(rest, 0), self.reserved))
        if text.startswith("slot"):
            number = int(text[4:])
            return Value(self.slots[number] if number < len(self.slots) else NO_HANDLE)
        return Value(self.handles.get(text, NO_HANDLE) if text[0].isalpha() else int(text, 0))

    # What came of it.

    def shown(self, name, value, following, rv):
        kind = value.text.partition(":")[0]
        if value.text[0] == "{":
            rows = struct.iter_unpack("=QQq", value.content())
            return "".join(f" {number:#x}:{size}" + (f"={part.content().hex()}" if kind == "out" else "")
                           for (number, _, size), (part, kind) in zip(rows, value.parts))
        if value.text[0] == "&":
            return self.shown_handle(value.text[1:], value.number(), rv)
        if kind == "len":
            return f" {name}={struct.unpack('=q', value.content())[0]}"
        if kind == "find":
            return self.shown_found(name, value, following)
        if kind == "rnd":
            return f" {name}={value.len},{how_full(value.content(), rv)}"
        return f" {name}={value.content().hex()}" if kind == "out" else ""

    def shown_handle(self, name, handle, rv):
        if rv == OK and handle != NO_HANDLE:
            self.handles[name] = handle
        return f" {name}=" + ("untouched" if handle == NO_HANDLE else "set" if handle else "0")

    def shown_found(self, name, value, following):
        count = following.number() if following else 0
        if count * WORD > value.len:
            return ""
        names = {handle: name for name, handle in self.handles.items()}
        handles = struct.unpack(f"={count}Q", value.content()[:count * WORD])
        return f" {name}=" + ",".join(sorted(names.get(handle, "other") for handle in handles))

    def play(self, function, arguments):
        if not self.functions.get(function):
            print(f"{function} absent", flush=True)
            return
        print(function, end="", flush=True)
        values = {}
        for argument in arguments:
            name, _, text = argument.partition("=")
            values[name] = self.value(text)
            values[name].text = text
        rv = self.ask(function, *(values[name].word for _, name in self.rows[function]))
        print(f" {rv:#x}", end="")
        if function == "C_GetTokenInfo" and values["pInfo"].block:
            values["pInfo"].block[TIME_OF_DAY] = bytes(16)
        for (name, value), following in zip(values.items(), list(values.values())[1:] + [None]):
            print(self.shown(name, value, following, rv), end="")
            kept = value.text.partition(">")[2]
            if kept and rv == OK:
                self.bytes[kept] = value
                value.len = min(value.len, following.number())
        print(flush=True)

    def line(self, command, *rest):
        if command == "slots":
            self.learn_slots()
        elif command == "pause":
            time.sleep(int(rest[0]) / 1000)
            print("pause", flush=True)
        elif command == "reload":
            print("reload ", end="")
            _ctypes.dlclose(self.module._handle)
            self.load()
        else:
            self.play(command, rest)


def how_full(content, rv):
    """Random bytes are the fill by chance, too: once in 256, but not half of many. Few are not judged."""
    if len(content) < MANY:
        return "few"
    # A call that fails may leave nothing in the place of bytes that it had.
    if rv != OK and not any(content):
        return "untouched"
    changed = len(content) - content.count(FILL)
    return "untouched" if changed == 0 else "written" if changed * 2 >= len(content) else "partly"


def main():
    signal.alarm(HANG_S)
    try:
        player = Player(sys.argv[1], sys.argv[3] if len(sys.argv) > 3 else "")
        for line in pathlib.Path(sys.argv[2]).read_text().splitlines():
            if line and not line.startswith("#"):
                player.line(*line.split())
        print("end", flush=True)
    except Exception:
        traceback.print_exc()
        sys.exit(2)


if __name__ == "__main__":
    main()
