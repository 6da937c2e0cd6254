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
COUNTS = {(3, 2): 104, (3, 0): 92}  # of functions, by the list's version; 68 in older ones

FUNCTIONS = pathlib.Path(__file__).parents[2] / "module" / "functions.def"
NAMES = re.findall(r"^[A-Z]+ *\(.*?\b(C_\w+), ", FUNCTIONS.read_text(), re.MULTILINE)


def words(*numbers):
    return b"".join(struct.pack("=Q", number) for number in numbers)


def sized(thing):
    """Bytes or a template, and its size: two arguments of most functions."""
    return thing, len(thing)


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
        return "-"


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
    def came(self, _rv, _following):
        content = self.content()
        changed = len(content) - content.count(FILL)
        if len(content) < MANY:
            return "few"
        # A call that fails may leave nothing in the place of bytes that it had.
        if changed == 0 or not any(content):
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
        self.word, self.name = NO_HANDLE, f"h{next(Handle.numbers)}"

    def came(self, _rv, _following):
        return self.name


class Room(Length):
    """Where a call leaves a handle."""
    def __init__(self, handle):
        super().__init__(NO_HANDLE)
        self.handle = handle

    def came(self, rv, _following):
        value = self.number()
        if rv == OK and value != NO_HANDLE:
            self.handle.word = value
            Handle.names[value] = self.handle.name
        return "untouched" if value == NO_HANDLE else f"{self.handle.name}={'set' if value else '0'}"


class Found(Out):
    """Room for handles, which may come in any order."""
    def came(self, _rv, _following):
        handles = [handle for handle, in struct.iter_unpack("8s", self.content()) if handle != FILL * WORD]
        return ",".join(sorted(Handle.names.get(int.from_bytes(handle, sys.byteorder), "other") for handle in handles)) or "-"


class Template(Block):
    """Of pairs: a type, and a number, True or False, bytes, room for a value, or None to ask for its length."""
    def __init__(self, *rows):
        self.parts = []
        for _, value in rows:
            value = bytes([value]) if isinstance(value, bool) else words(value) if isinstance(value, int) else value
            self.parts.append(Block(value) if isinstance(value, bytes) else value)
        super().__init__(words(*(word for (kind, _), part in zip(rows, self.parts)
                                 for word in ((kind, part.word, part.len) if part else (kind, 0, 0)))))

    def __len__(self):
        return len(self.parts)

    def came(self, rv, following):
        rows = zip(struct.iter_unpack("=QQq", self.content()), self.parts)
        return ",".join(f"{kind:x}:{size}:" + (part.came(rv, following) if part else "") for (kind, _, size), part in rows) or "-"


class Mechanism(Block):
    """Its parameter is bytes, or a structure of numbers and of pointers to bytes."""
    def __init__(self, number, parameter=b""):
        if not isinstance(parameter, bytes):
            parameter = words(*(Block(part).word if isinstance(part, bytes) else part for part in parameter))
        super().__init__(words(number, Block(parameter).word if parameter else 0, len(parameter)))


class Player:
    def __init__(self, path):
        self.path = path
        self.load()

    def load(self):
        """The list that is offered first, or the only one."""
        self.module = ctypes.CDLL(self.path)
        found = Length(0)
        if hasattr(self.module, "C_GetInterface") and self.module.C_GetInterface(None, None, found.memory, 0) == OK:
            address = struct.unpack("=3Q", ctypes.string_at(found.number(), 3 * WORD))[1]
        else:
            self.module.C_GetFunctionList(found.memory)
            address = found.number()
        version = tuple(ctypes.string_at(address, 2))
        count = COUNTS.get(version, 68)
        self.functions = dict(zip(NAMES, struct.unpack(f"={count}Q", ctypes.string_at(address + WORD, count * WORD))))
        print("list", *version, flush=True)

    def reload(self):
        _ctypes.dlclose(self.module._handle)
        self.load()

    def answer(self, function, arguments):
        """The code, and what came of the arguments."""
        values = [Block(value) if isinstance(value, bytes) else value for value in arguments]
        numbers = [getattr(value, "word", value or 0) for value in values]
        rv = ctypes.CFUNCTYPE(ctypes.c_ulong, *[ctypes.c_ulong] * len(numbers))(self.functions[function])(*numbers)
        if function == "C_GetTokenInfo":
            values[1].memory[TIME_OF_DAY] = bytes(16)
        return f"{rv:#x}", *(value.came(rv, following) if hasattr(value, "came") else str(value)
                             for value, following in zip(values, values[1:] + [None]))

    def call(self, function, *arguments):
        """Whether it went well. Says the function first: a module that crashes shows where."""
        print(function, end=" ", flush=True)
        answer = self.answer(function, arguments) if self.functions.get(function) else ("absent",)
        print(*answer, flush=True)
        return answer[0] == "0x0"

    def side_by_side(self, *lists):
        """Each of functions with their arguments: played in threads, shown one list after the other."""
        answers = [[] for _ in lists]
        begin = threading.Barrier(len(lists))

        def play(calls, answers):
            begin.wait()
            for function, *arguments in calls:
                answers.append((function, *self.answer(function, arguments)))

        threads = [threading.Thread(target=play, args=pair) for pair in zip(lists, answers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for answer in sum(answers, []):
            print(*answer, flush=True)
