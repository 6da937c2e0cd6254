"""player.py - one module, called through its newest list; each call becomes one line: function, code, what came of it."""
import ctypes
import itertools
import pathlib
import re
import struct
import sys
import threading
import _ctypes

FILL = b"\xa5"
MANY = 8  # bytes: fewer may be the fill by chance
NO_HANDLE = 0x7FFFFFF1  # nothing that a module gives out
OK = 0
WORD = 8
TIME_OF_DAY = slice(188, 204)  # in CK_TOKEN_INFO
STANDARD = b"PKCS 11\0"
COUNTS = {(3, 2): 104, (3, 0): 92, (2, 40): 68}

FUNCTIONS = pathlib.Path(__file__).parents[2] / "module" / "functions.def"
ROW = re.compile(r"^[A-Z]+ *\(.*?\b(C_\w+), (.*)", re.MULTILINE)
PARAMETERS = {name: rest.count("(CK_") for name, rest in ROW.findall(FUNCTIONS.read_text())}


def words(*numbers):
    return b"".join(struct.pack("=Q", number) for number in numbers)


class Block:
    """Memory that a call reads. All are kept to the end: modules keep pointers."""
    kept = []

    def __init__(self, content):
        self.memory = (ctypes.c_char * max(len(content), 1))(*content)
        self.len = len(content)
        self.word = ctypes.addressof(self.memory)
        Block.kept.append(self)

    def content(self):
        return self.memory.raw[:self.len]

    def number(self):
        return struct.unpack_from("=q", self.content())[0]

    def came(self, _rv, _following):
        """What a call left here, as text; following is its next argument."""
        return ""


class Out(Block):
    """Memory that a call writes to."""
    def __init__(self, size):
        super().__init__(FILL * size)
        self.got = b""

    def came(self, rv, following):
        content = self.content()
        if rv == OK and isinstance(following, Length):
            self.got = content[:following.number()]
        # What came may end with the byte that was there before.
        return f"{self.len}:{self.got.hex()}{content[len(self.got):].rstrip(FILL).hex()}"


class Random(Out):
    """For bytes that cannot be foretold."""
    def came(self, rv, following):
        super().came(rv, following)
        content = self.content()
        changed = len(content) - content.count(FILL)
        if len(content) < MANY:
            return "few"
        # A call that fails may leave nothing in the place of bytes that it had.
        if changed == 0 or (rv != OK and not any(content)):
            return "untouched"
        return "written" if changed * 2 >= len(content) else "partly"


class Length(Block):
    def __init__(self, number):
        super().__init__(words(number))

    def came(self, _rv, _following):
        return str(self.number())


class Handle:
    """Of a session or an object. Its name is the same in each run."""
    numbers = itertools.count()
    names = {}  # by value

    def __init__(self):
        self.value, self.name = NO_HANDLE, f"h{next(Handle.numbers)}"

    def room(self):
        return Room(self)


class Room(Block):
    def __init__(self, handle):
        super().__init__(words(NO_HANDLE))
        self.handle = handle

    def came(self, rv, _following):
        value = self.number()
        if rv == OK and value != NO_HANDLE:
            self.handle.value = value
            Handle.names[value] = self.handle.name
        return "untouched" if value == NO_HANDLE else f"{self.handle.name}={'set' if value else '0'}"


class Found(Out):
    """Room for handles, which may come in any order."""
    def came(self, rv, following):
        handles = [handle for handle, in struct.iter_unpack("8s", self.content()) if handle != FILL * WORD]
        return ",".join(sorted(Handle.names.get(int.from_bytes(handle, sys.byteorder), "other") for handle in handles))


class Template(Block):
    """Of pairs: a type, and a number, True or False, bytes, room for a value, or None to ask for its length."""
    def __init__(self, *rows):
        self.rows = [(kind, None if value is None else value if isinstance(value, Block) else
                      Block(bytes([value]) if isinstance(value, bool) else
                            value if isinstance(value, bytes) else words(value))) for kind, value in rows]
        super().__init__(words(*(word for kind, part in self.rows
                                 for word in (kind, part.word if part else 0, part.len if part else 0))))
        self.count = len(rows)

    def came(self, rv, following):
        sizes = [size for _, _, size in struct.iter_unpack("=QQq", self.content())]
        return ",".join(f"{kind:x}:{size}:" + (part.came(rv, following) if part else "")
                        for (kind, part), size in zip(self.rows, sizes))


class Mechanism(Block):
    """Its parameter is bytes, or a structure of numbers and of pointers to bytes."""
    def __init__(self, number, parameter=b""):
        if not isinstance(parameter, bytes):
            parameter = words(*(Block(part).word if isinstance(part, bytes) else part for part in parameter))
        super().__init__(words(number, Block(parameter).word if parameter else 0, len(parameter)))


class Player:
    def __init__(self, path, reserved):
        self.path = path
        self.reserved = Block(reserved.encode() + b"\0").word if reserved else 0
        self.slots = []
        self.load()

    def load(self):
        """The newest list that we know, through the one getter or the other."""
        self.module = ctypes.CDLL(self.path)
        found = Room(Handle())
        for version in COUNTS:
            wanted = Block(bytes(version))
            if not hasattr(self.module, "C_GetInterface"):
                continue
            if self.module.C_GetInterface(STANDARD, wanted.memory, found.memory, 0) == OK:
                address = struct.unpack("=3Q", ctypes.string_at(found.number(), 3 * WORD))[1]
                if tuple(ctypes.string_at(address, 2)) == version:
                    break
        else:
            version = (2, 40)
            self.module.C_GetFunctionList(found.memory)
            address = found.number()
        pointers = struct.unpack(f"={COUNTS[version]}Q", ctypes.string_at(address + WORD, COUNTS[version] * WORD))
        self.functions = dict(zip(PARAMETERS, pointers))
        print("list", *ctypes.string_at(address, 2), flush=True)

    def reload(self):
        _ctypes.dlclose(self.module._handle)
        self.load()

    def slot(self, number):
        return self.slots[number] if number < len(self.slots) else NO_HANDLE

    def learn_slots(self):
        count = Length(32)
        slots = Out(32 * WORD)
        if self.call("C_GetSlotList", 0, slots, count) == OK:
            self.slots = struct.unpack(f"={count.number()}Q", slots.content()[:count.number() * WORD])

    def structure(self, flags):
        """C_Initialize's, with these flags."""
        return Block(words(0, 0, 0, 0, flags, self.reserved))

    def answer(self, function, arguments):
        """The code, and what came of the arguments."""
        values = [Block(value) if isinstance(value, bytes) else value for value in arguments]
        numbers = [value.word if isinstance(value, Block) else value.value if isinstance(value, Handle) else value or 0
                   for value in values]
        assert len(numbers) == PARAMETERS[function], function
        kind = ctypes.CFUNCTYPE(ctypes.c_ulong, *[ctypes.c_ulong] * len(numbers))
        rv = kind(self.functions[function])(*numbers)
        if function == "C_GetTokenInfo" and isinstance(values[1], Out):
            values[1].memory[TIME_OF_DAY] = bytes(16)
        return rv, [value.came(rv, following) if isinstance(value, Block) else
                    value.name if isinstance(value, Handle) else str(value)
                    for value, following in zip(values, values[1:] + [None])]

    def call(self, function, *arguments):
        """Says the function first: a module that crashes shows where."""
        print(function, end=" ", flush=True)
        if not self.functions.get(function):
            print("absent", flush=True)
            return None
        rv, came = self.answer(function, arguments)
        print(f"{rv:#x}", *(text or "-" for text in came), flush=True)
        return rv

    def side_by_side(self, *calls):
        """Each a list of functions with their arguments: played in threads, shown one list after the other."""
        answers = [[] for _ in calls]

        def play(number):
            for function, *arguments in calls[number]:
                answers[number].append((function, self.answer(function, arguments)))

        threads = [threading.Thread(target=play, args=(number,)) for number in range(len(calls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for function, (rv, came) in sum(answers, []):
            print(function, f"{rv:#x}", *(text or "-" for text in came), flush=True)
