#!/usr/bin/python3
"""sequences.py - plays calls that it makes from a seed: the same seed, the same calls, whatever they are answered.

usage: sequences.py MODULE TARGET SEED SEQUENCES [RESERVED]

A script is many short sequences, each from one method below. Part of what it does is wrong on purpose: closed sessions,
NULL where a pointer belongs, buffers too short. RESERVED stands in pReserved of the structures for C_Initialize.
"""
import random
import signal
import struct
import sys
import time

import targets
from player import Block, FILL, Found, Handle, Length, Mechanism, Out, Player, Random, Room, Template, WORD, sized, words

HANG_S = 60

# What begins with the mechanisms of a kind of key: their numbers, and their parameters as player.py has them.
# Without a policy the proxy reads none of them.
ENCRYPTIONS = [("aes", [(0x1081,), (0x1085, b"\x0b" * 16), (0x1087, (b"\x0c" * 12, 12, 96, 0, 0, 128))])]  # ECB, CBC, GCM
SIGNATURES = [("generic", [(0x251,), (0x221,)]), ("ec", [(0x1041,)])]  # HMAC with SHA-256 and SHA-1; ECDSA
DIGESTS = [(None, [(0x210,), (0x250,)])]                                # MD5, SHA-256
OPERATIONS = [("C_Encrypt", ENCRYPTIONS), ("C_Sign", SIGNATURES), ("C_Digest", DIGESTS)]
NONSENSE = [(0x80001234,), (0xFFFFFFFF,), (0x1082,), (0x1087, b"\0"), (0x250, b"\1\2")]
SIZES = [0, 1, 15, 16, 16, 17, 20, 32, 100, 255, 1024]
ROOM = [0, 1, 15, 16, 32, 64, 256, 600]
CLASS, TOKEN, PRIVATE, LABEL, VALUE, ID, KEY_TYPE = 0x0, 0x1, 0x2, 0x3, 0x11, 0x102, 0x100
SENSITIVE, VALUE_LEN, EXTRACTABLE, EC_PARAMS = 0x103, 0x161, 0x162, 0x180
ENCRYPT, DECRYPT, SIGN, VERIFY = 0x104, 0x105, 0x108, 0x10A
P256 = bytes.fromhex("06082a8648ce3d030107")


class Sequences(Player):
    def __init__(self, path, target, seed, reserved):
        super().__init__(path)
        self.random = random.Random(seed)
        self.pick = self.random.choice
        self.target = target
        self.reserved = Block(reserved.encode() + b"\0").word if reserved else 0
        self.slots = ()
        self.sessions, self.open_sessions = [], []  # all that there ever were; what is open, as far as one can tell
        self.objects = {kind: [] for kind in ("data", "aes", "generic", "ec", "ec_public")}

    # What calls are made of.

    def odd(self, chance=0.15):
        return self.random.random() < chance

    def null(self, chance):
        """Whether to pass NULL, where the target bears it."""
        return self.odd(chance) and self.target.minds_null

    def session(self):
        """A session, mostly one that is open."""
        if self.open_sessions and self.odd(0.92):
            return self.pick(self.open_sessions)
        return self.pick(self.sessions + [0, 0x7FFFFFF2, 2**64 - 1])

    def object(self, *kinds):
        known = [thing for kind in kinds or self.objects for thing in self.objects[kind]]
        return self.pick([0, 0x7FFFFFF3] if not known or self.odd(0.06) else known[-4:])

    def make(self, kind, function, *arguments):
        """What is made is known if that went well: elsewhere it has to go the same way."""
        made = Handle()
        if self.call(function, *arguments, Room(made)):
            self.objects[kind].append(made)

    def data(self, size=None):
        return self.random.randbytes(self.pick(SIZES) if size is None else size)

    def slot(self, number=None):
        """One by its place in the list, or the token's."""
        number = self.target.slot if number is None else number
        return self.slots[number] if number < len(self.slots) else 0x7FFFFFF1

    def a_slot(self):
        return self.pick([self.slot()] * 8 + [self.slot(0), self.slot(1), 0x7FFFFFF4])

    def mechanism(self, kinds):
        return Mechanism(*self.pick(NONSENSE if self.odd(0.08) else kinds))

    def output(self, function, *before):
        """One call that gives bytes behind these arguments: now and then it is first asked how many, or has no room."""
        if self.odd(0.3):
            self.call(function, *before, None, Length(self.pick([0, 999])))
        if self.odd(0.3):
            room = self.pick(ROOM) if self.target.minds_room else 600
            self.call(function, *before, Out(room), Length(room))
        if self.null(0.03):
            self.call(function, *before, Out(600), None)
        out = Out(1200)
        self.call(function, *before, out, Length(1200))
        return out.got

    # Life and information.

    def start(self):
        flags = None if self.target.null_args and self.odd(0.2) else self.pick([2, 2, 2, 3])
        self.locks = flags is not None
        self.call("C_Initialize", Block(words(0, 0, 0, 0, flags, self.reserved)) if flags else None)
        self.learn_slots()

    def learn_slots(self):
        count, slots = Length(32), Out(32 * WORD)
        if self.call("C_GetSlotList", 0, slots, count):
            self.slots = struct.unpack_from(f"={count.number()}Q", slots.content())

    def restart(self):
        self.call("C_Finalize", self.pick([0] * 4 + [b"\0"]))
        # Not without a C_Finalize that works: a proxy that had its thread stays loaded, as its manual says.
        if self.odd(0.4):
            self.call("C_Finalize", 0)
            self.reload()
        if self.odd(0.3):
            self.information()
            self.draw()
        self.start()
        if self.odd(0.2):
            self.start()
        self.open_first()
        self.find()

    def information(self):
        slot, room = self.a_slot(), self.pick([0, 1, 9])
        mechanisms = self.pick([0, 1, 20, 400]) if self.target.minds_room else 400
        happened = Length(0) if self.target.knows_slot else Block(FILL * WORD)
        self.call(*self.pick([
            ("C_GetInfo", None if self.null(0.3) else Out(88)), ("C_GetSlotInfo", slot, Out(112)),
            ("C_GetTokenInfo", slot, Out(208)), ("C_GetMechanismList", slot, None, Length(0)),
            ("C_GetMechanismList", slot, Out(8 * mechanisms), Length(mechanisms)),
            ("C_GetMechanismInfo", slot, self.pick(ENCRYPTIONS[0][1] + SIGNATURES[0][1] + NONSENSE)[0], Out(24)),
            ("C_GetSlotList", self.pick([0, 1]), None, Length(0)),
            ("C_GetSlotList", self.pick([0, 1]), Out(8 * room), Length(room)),
            ("C_WaitForSlotEvent", 1, happened, 0), ("C_GetFunctionStatus", self.session()),
            ("C_CancelFunction", self.session())]))

    # Sessions and logins.

    def open(self):
        session, slot, flags = Handle(), self.a_slot(), self.pick([6] * 9 + [4] * 4 + [2, 0])
        if self.null(0.03):
            self.call("C_OpenSession", slot, flags, 0, 0, None)
        if self.call("C_OpenSession", slot, flags, 0, 0, Room(session)):
            self.sessions.append(session)
            self.open_sessions.append(session)

    def open_first(self):
        """Sessions, a login and keys: what most programs have before they do anything."""
        # A handle of another life may be another session now, or the proxy's own; SoftHSM takes an object's for a
        # pointer, and crashes.
        for things in (self.sessions, self.open_sessions, *self.objects.values(), Handle.names):
            things.clear()
        for _ in range(3):
            self.open()
        if self.odd(0.85):
            self.call("C_Login", self.session(), 1, *sized(self.target.pin))
        for _ in range(3):
            self.create()

    def close_all(self):
        self.call("C_CloseAllSessions", self.slot())
        self.open_sessions.clear()

    def close(self):
        which = self.random.randrange(8)
        if which == 0:
            self.close_all()
            self.open()
        elif which == 1:
            while self.open_sessions:  # the last one logs out
                self.call("C_CloseSession", self.open_sessions.pop())
        else:
            closed = self.session()
            self.call("C_CloseSession", closed)
            if closed in self.open_sessions:
                self.open_sessions.remove(closed)
        for session in self.sessions[-3:]:
            self.call("C_GetSessionInfo", session, Out(32))
        self.call("C_GetTokenInfo", self.slot(), Out(208))

    def login(self):
        if self.odd():
            self.call("C_Logout", self.session())
        user = self.pick([1, 1, 1, 1, 0, 2, 7])
        pin = self.pick([self.target.pin] * 5 + [self.target.so_pin, b"wrong", b""])
        if user == 0 and self.odd(0.8):
            pin = self.target.so_pin
        self.call("C_Login", self.session(), user, None if self.null(0.05) else pin, len(pin))
        self.call("C_GetSessionInfo", self.session(), Out(32))

    def pins(self):
        session, pin = self.session(), sized(self.target.pin)
        self.call(*self.pick([("C_InitPIN", session, *pin), ("C_SetPIN", session, *pin, *pin)]))

    def token(self):
        if self.odd(0.5):
            self.close_all()
        self.call("C_InitToken", self.pick([self.slot(), self.slot(), self.slot(1)]), *sized(self.target.so_pin),
                  b"another one".ljust(32))
        self.learn_slots()

    # Random: pools fill in the background meanwhile.

    def draw(self):
        session = self.session()
        for _ in range(self.pick([1, 2, 5])):
            size = self.pick([1, 8, 16, 32, 200, 1024, 1025, 5000])
            self.call("C_GenerateRandom", session, None if self.null(0.05) else Random(size), size)
        if self.odd(0.6):
            time.sleep(self.pick([1, 3, 10]) / 1000)

    def seed(self):
        seed = self.data(self.pick([0, 1, 16, 100]))
        self.call("C_SeedRandom", self.session(), None if self.null(0.1) else seed, len(seed))
        self.draw()

    def stale(self):
        """What bytes that were fetched ahead do not outlive, and a session that fetches them is not seen by."""
        session, again = Handle(), Handle()
        self.call("C_OpenSession", self.slot(), 4, 0, 0, Room(session))
        self.call("C_Login", session, 1, *sized(self.target.pin))
        for _ in range(100):
            self.call("C_GenerateRandom", session, Random(32), 32)
        time.sleep(0.02)
        self.call("C_GetTokenInfo", self.slot(), Out(208))
        self.call("C_Logout", session)
        self.call("C_GenerateRandom", session, Random(32), 32)
        # A token may give the same handle out again, for another slot.
        self.call("C_CloseSession", session)
        self.call("C_OpenSession", self.slot(1), 4, 0, 0, Room(again))
        self.call("C_GenerateRandom", again, Random(32), 32)
        self.call("C_CloseSession", again)

    def beside(self):
        """Two threads, each with a session of its own."""
        if not self.locks:
            return
        lists = []
        for _ in range(2):
            session = Handle()
            draws = [("C_GenerateRandom", session, Random(size), size) for size in [16] * 20 + [2000] * 5]
            lists.append([("C_OpenSession", self.slot(), 4, 0, 0, Room(session)), *draws,
                          ("C_DigestInit", session, Mechanism(0x250)),
                          ("C_DigestUpdate", session, *sized(self.data(32))), *draws,
                          ("C_DigestFinal", session, Out(64), Length(64)), ("C_CloseSession", session)])
        self.side_by_side(*lists)

    # Objects.

    def create(self):
        kind, key_type = self.pick([("data", None), ("aes", 0x1F), ("generic", 0x10)])
        token = self.odd() and (kind == "data" or self.target.token_keys)
        rows = [(TOKEN, token), (PRIVATE, self.pick([False] * 3 + [True])), (LABEL, self.data(4)),
                (CLASS, 4 if key_type else 0), (VALUE, self.data(32))]
        if key_type:
            rows += [(KEY_TYPE, key_type), (SENSITIVE, False), (EXTRACTABLE, True)]
            rows += [(use, True) for use in (ENCRYPT, DECRYPT, SIGN, VERIFY)]
        if self.odd(0.1):
            rows.pop(self.random.randrange(len(rows)))
        if self.odd(0.05):
            rows.append((0x90000001, 1))
        self.make(kind, "C_CreateObject", self.session(), *sized(Template(*rows)))

    def generate(self):
        session, common = self.session(), [(TOKEN, False), (PRIVATE, False), (SIGN, True)]
        if self.odd(0.75):
            template = Template(*common, (EXTRACTABLE, True), (ENCRYPT, True), (DECRYPT, True),
                                (VALUE_LEN, self.pick([16, 24, 32, 5])))
            self.make("aes", "C_GenerateKey", session, self.mechanism([(0x1080,)]), *sized(template))
        else:
            public = Handle()
            self.objects["ec_public"].append(public)
            self.make("ec", "C_GenerateKeyPair", session, self.mechanism([(0x1040,)]),
                      *sized(Template((TOKEN, False), (VERIFY, True), (EC_PARAMS, P256))), *sized(Template(*common)), Room(public))

    def look(self):
        session, thing, label = self.session(), self.object(), (LABEL, self.data(3))
        token = self.target.token_keys and self.odd(0.5)
        rooms = [None, 200] + [8, 1, 0] * self.target.minds_room
        wanted = [(self.pick([CLASS, TOKEN, LABEL, VALUE, ID, KEY_TYPE, 0x90000002]), room if room is None else Out(room))
                  for room in self.random.choices(rooms, k=self.pick([1, 2, 4]))]
        if self.odd():
            self.make("data", "C_CopyObject", session, thing, *sized(Template(label, (TOKEN, token))))
        self.call(*self.pick([
            ("C_GetObjectSize", session, thing, Length(0)), ("C_DestroyObject", session, thing),
            ("C_SetAttributeValue", session, thing, *sized(Template(label))),
            *[("C_GetAttributeValue", session, thing, *sized(Template(*wanted)))] * 2]))

    def find(self):
        session = self.session()
        wanted = self.pick([[], [(CLASS, self.pick([0, 4]))], [(TOKEN, self.odd(0.5))]])
        self.call("C_FindObjectsInit", session, *sized(Template(*wanted)))
        # Which of them come is not foretold where not all fit.
        for room in self.pick([[Found(200 * WORD)], [Block(FILL * WORD), Block(FILL * 200 * WORD)], []]):
            self.call("C_FindObjects", session, room, room.len // WORD, Length(77))
            if self.odd(0.1):
                self.draw()
        if not self.odd(0.1):
            self.call("C_FindObjectsFinal", session)

    # Operations.

    def go_on(self, function, session, data):
        """All at once or in parts; what that gave."""
        if self.odd(0.6):
            return self.output(function, session, *sized(data))
        made = b""
        if function in ("C_Encrypt", "C_Decrypt"):
            made = self.output(function + "Update", session, *sized(data))
        else:
            self.call(function + "Update", session, *sized(data))
        return made + self.output(function + "Final", session)

    def operate(self):
        """Begins, goes on, and has the token take back what that gave."""
        session, data, (function, kinds) = self.session(), self.data(), self.pick(OPERATIONS)
        kind, mechanisms = self.pick(kinds)
        mechanism, key = self.mechanism(mechanisms), [self.object(kind)] if kind else []
        self.call(function + "Init", session, mechanism, *key)
        if self.odd(0.1):
            return  # it stays open
        made = self.go_on(function, session, data)
        if function == "C_Encrypt":
            self.call("C_DecryptInit", session, mechanism, *key)
            self.go_on("C_Decrypt", session, made)
        elif function == "C_Sign":
            self.call("C_VerifyInit", session, mechanism, *[self.object("ec_public")] if kind == "ec" else key)
            self.call("C_Verify", session, *sized(data), *sized(made))

    def stray(self):
        """A call that has no operation to belong to, mostly; or one of two purposes at once."""
        session, data = self.session(), sized(self.data())
        if self.odd(0.4):
            self.call(*self.pick([("C_DigestUpdate", session, *data), ("C_FindObjectsFinal", session),
                                  ("C_DigestKey", session, self.object("aes", "generic")),
                                  ("C_SessionCancel", session, self.pick([0x100, 0x400, 0xFFFFFFFF]))]))
        else:
            self.output(*self.pick([("C_DecryptFinal", session), ("C_SignFinal", session),
                                    *[(function, session, *data) for function in (
                                        "C_Encrypt", "C_DigestEncryptUpdate", "C_SignEncryptUpdate", "C_SignRecover")]]))

    def play(self, count):
        weights = {self.open: 5, self.close: 4, self.login: 5, self.pins: 1, self.token: 0.2, self.restart: 0.7,
                   self.information: 6, self.draw: 12, self.seed: 2, self.beside: 2, self.create: 8, self.generate: 4,
                   self.look: 7, self.find: 4, self.operate: 21, self.stray: 4}
        if self.odd(0.1):
            self.information()  # before C_Initialize
        self.start()
        self.stale()
        self.open_first()
        for sequence in self.random.choices(list(weights), weights.values(), k=count):
            sequence()
        self.call("C_Finalize", 0)


def main():
    module, name, seed, count, reserved = (sys.argv[1:] + [""])[:5]
    signal.alarm(HANG_S)
    Sequences(module, targets.TARGETS[name], int(seed), reserved).play(int(count))
    print("end", flush=True)


if __name__ == "__main__":
    main()
