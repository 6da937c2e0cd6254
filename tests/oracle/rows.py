"""rows.py - the rows of functions.def, and a call of any of them: what each argument may be, by type and name."""
from player import rows_up_to
from scripts import Scripts

# Sequences of their own call these: they end lives, or lead to lists.
GETTERS = {"C_GetFunctionList", "C_GetInterfaceList", "C_GetInterface"}
APART = {"C_Initialize", "C_Finalize"} | GETTERS
TURNS = 10  # of a script, at least
STRUCTURES = {"CK_INFO_PTR": 88, "CK_SLOT_INFO_PTR": 112, "CK_TOKEN_INFO_PTR": 208, "CK_MECHANISM_INFO_PTR": 24,
              "CK_SESSION_INFO_PTR": 32, "CK_ASYNC_DATA_PTR": 40}
BYTES = ("CK_BYTE_PTR", "CK_UTF8CHAR_PTR")


def never_called(called, version):
    """The functions of that version that no script had."""
    if "interfaces" in called:
        called = called | GETTERS
    return [name for name in rows_up_to(version) if name not in called] if version else []


class Rows(Scripts):
    def __init__(self, seed, target):
        super().__init__(seed, target)
        self.rows = rows_up_to(target.version)
        self.turns = [name for name in self.rows if name not in APART]
        self.turn = seed * TURNS

    def number(self):
        return self.pick([0, 1, 2, 7, 0x250, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF])

    def argument(self, kind, name, following, given):
        """One argument; what comes before a length decides what that is, too."""
        null = self.odd(0.1)
        if name == "hSession":
            return self.session()
        if name in ("pFunctionName", "pLabel"):
            return 0 if null else "x:" + b"C_Sign".ljust(32, b"\0").hex()
        if kind == "CK_SLOT_ID":
            return self.slot()
        if kind == "CK_OBJECT_HANDLE":
            return self.object()
        if kind == "CK_MECHANISM_PTR":
            return 0 if null else self.mechanism([(0x1082, "x:" + "0b" * 16), (0x250, ""), (0x1, "")])
        if kind == "CK_ATTRIBUTE_PTR":
            words, given[following[1]] = template_of(self) if not null else ("0", 0)
            return words
        if kind in ("CK_OBJECT_HANDLE_PTR", "CK_SESSION_HANDLE_PTR"):
            if following and following[1] == "ulMaxObjectCount":
                given[following[1]] = 1
            return f"&{self.name('o' if kind[3] == 'O' else 's')}"
        if kind in STRUCTURES:
            return 0 if null else f"out:{STRUCTURES[kind]}"
        if kind in BYTES + ("CK_VOID_PTR", "CK_SLOT_ID_PTR", "CK_MECHANISM_TYPE_PTR") and following:
            return self.buffer(kind, following, given, null)
        if kind in ("CK_ULONG_PTR", "CK_FLAGS_PTR", "CK_SLOT_ID_PTR"):
            return 0 if null else "len:77"
        if kind in ("CK_VOID_PTR", "CK_NOTIFY"):
            return 0
        return self.pick([0, 1]) if kind == "CK_BBOOL" else self.number()

    def buffer(self, kind, following, given, null):
        if following[0] == "CK_ULONG_PTR":
            room = self.pick([0, 1, 16, 64, 200])
            given[following[1]] = 0 if self.odd(0.03) else f"len:{room}"
            width = 1 if kind in BYTES else 8
            return 0 if null else f"out:{room * width}"
        if following[0] != "CK_ULONG":
            return 0
        size = self.pick([0, 1, 16, 100])
        given[following[1]] = size
        if null:
            return 0
        return f"out:{size}" if kind == "CK_VOID_PTR" else self.data(size)[0]

    def next_row(self):
        """Any, or the next in turn: so a few scripts have them all."""
        if self.odd(0.5):
            return self.pick(self.turns)
        self.turn += 1
        return self.turns[self.turn % len(self.turns)]

    def row(self):
        name = self.next_row()
        if name == "C_GenerateRandom":
            self.draw()
            return
        given, pairs = {}, self.rows[name]
        for (kind, argument), following in zip(pairs, pairs[1:] + [None]):
            if argument not in given:
                given[argument] = self.argument(kind, argument, following, given)
        self.call(name, *(given[argument] for _, argument in pairs))
        if name == "C_OpenSession" and given["phSession"]:
            self.sessions.append(given["phSession"][1:])
            self.open_sessions.append(given["phSession"][1:])
        elif given.get("phKey"):
            self.objects["secret"].append(given["phKey"][1:])

    def open_first(self):
        super().open_first()
        if self.odd(0.1):
            self.lines.append("interfaces")

    def mechanism(self, pairs):
        """Without addresses: the target takes a parameter as the bytes that it is."""
        return super().mechanism([pair for pair in pairs if "p:" not in pair[1]])

    def anything(self):
        if self.odd(0.8):
            self.row()
        else:
            super().anything()


def template_of(script):
    rows = [f"{script.pick([0, 1, 3, 0x11, 0x100])}:{script.pick(['u:4', 'b:1', 'x:0102', 'out:8', 'null:0'])}"
            for _ in range(script.pick([1, 2, 3]))]
    return "{" + ";".join(rows) + "}", len(rows)
