#!/usr/bin/python3
"""sequences.py - plays calls that it makes from a seed: the same seed, the same calls, whatever they are answered.

usage: sequences.py MODULE TARGET SEED SEQUENCES [RESERVED]

A script is many short sequences, each from one method below. Part of what it does is wrong on purpose: closed sessions,
NULL where a pointer belongs, buffers too short. RESERVED stands in pReserved of the structures for C_Initialize.
Without SEQUENCES it makes the token of that target fit for use.
"""
import random
import signal
import sys
import time

import targets
from player import Block, FILL, Found, Handle, Length, Mechanism, OK, Out, Player, Random, Template, WORD

HANG_S = 60

# Mechanisms: their number, and their parameter as player.py has it.
IV = b"\x0b" * 16
DIGESTS = [(0x210,), (0x220,), (0x250,), (0x270,)]  # MD5, SHA-1, SHA-256, SHA-512
CIPHERS = [(0x1081,), (0x1082, IV), (0x1085, IV),   # AES ECB, CBC, CBC_PAD, GCM
           (0x1087, (b"\x0c" * 12, 12, 96, 0, 0, 128))]
MACS = [(0x251,), (0x221,), (0x271,), (0x108A,)]    # HMAC: SHA-256, SHA-1, SHA-512; CMAC
KEY_WRAPS = [(0x2109,), (0x210A,)]                  # AES_KEY_WRAP, and with padding
RSA_PKCS = [(0x1,)]
RSA_SIGNATURES = RSA_PKCS + [(0x40,), (0x3,),       # PKCS, SHA256_RSA_PKCS, X_509, PSS
                             (0xD, (0x220, 1, 20)), (0x43, (0x250, 2, 32))]
SIGNATURES = {"generic": MACS, "rsa": RSA_SIGNATURES, "ec": [(0x1041,)]}
NONSENSE = [(0x80001234,), (0xFFFFFFFF,), (0x1082,), (0x1087, b"\0"), (0x250, b"\1\2")]
SIZES = [0, 1, 15, 16, 17, 32, 48, 100, 255, 1024]
ROOM = [0, 1, 15, 16, 32, 64, 256, 600]
CLASS, TOKEN, PRIVATE, LABEL, VALUE, ID, KEY_TYPE = 0x0, 0x1, 0x2, 0x3, 0x11, 0x102, 0x100
SENSITIVE, VALUE_LEN, EXTRACTABLE = 0x103, 0x161, 0x162
ENCRYPT, DECRYPT, WRAP, UNWRAP, SIGN, VERIFY, DERIVE = 0x104, 0x105, 0x106, 0x107, 0x108, 0x10A, 0x10C
MODULUS_BITS, EXPONENT, EC_PARAMS = 0x121, 0x122, 0x180
P256 = bytes.fromhex("06082a8648ce3d030107")
KINDS = ("data", "aes", "generic", "rsa", "rsa_public", "ec", "ec_public")


class Sequences(Player):
    def __init__(self, path, target, seed, reserved):
        super().__init__(path, reserved)
        self.random = random.Random(seed)
        self.pick = self.random.choice
        self.target = target
        self.sessions, self.open_sessions = [], []  # all that there ever were; what is open, as far as one can tell
        self.objects = {kind: [] for kind in KINDS}

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
        known = [thing for kind in kinds or KINDS for thing in self.objects[kind]]
        return self.pick([0, 0x7FFFFFF3] if not known or self.odd(0.06) else known[-4:])

    def make(self, kind, function, *arguments):
        """What is made is known if that went well: elsewhere it has to go the same way."""
        made = Handle()
        if self.call(function, *arguments, made.room()) == OK:
            self.objects[kind].append(made)

    def data(self, size=None):
        return self.random.randbytes(self.pick(SIZES) if size is None else size)

    def a_slot(self):
        return self.pick([self.slot(self.target.slot)] * 8 + [self.slot(0), self.slot(1), 0x7FFFFFF4])

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
        return out.got, len(out.got)

    # Life and information.

    def start(self):
        flags = None if self.target.null_args and self.odd(0.2) else self.pick([2, 2, 2, 3])
        self.locks = flags is not None
        self.call("C_Initialize", self.structure(flags) if flags else None)
        self.learn_slots()

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
            ("C_GetMechanismInfo", slot, self.pick(CIPHERS + RSA_SIGNATURES + MACS + NONSENSE)[0], Out(24)),
            ("C_GetSlotList", self.pick([0, 1]), None, Length(0)),
            ("C_GetSlotList", self.pick([0, 1]), Out(8 * room), Length(room)),
            ("C_WaitForSlotEvent", 1, happened, 0), ("C_GetFunctionStatus", self.session()),
            ("C_CancelFunction", self.session())]))

    # Sessions and logins.

    def open(self):
        session, slot, flags = Handle(), self.a_slot(), self.pick([6] * 9 + [4] * 4 + [2, 0])
        if self.null(0.03):
            self.call("C_OpenSession", slot, flags, 0, 0, None)
        if self.call("C_OpenSession", slot, flags, 0, 0, session.room()) == OK:
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
            self.call("C_Login", self.session(), 1, self.target.pin, len(self.target.pin))
        for _ in range(3):
            self.create()

    def close(self):
        which = self.random.randrange(8)
        if which == 0:
            self.call("C_CloseAllSessions", self.slot(self.target.slot))
            self.open_sessions.clear()
            self.open()
        elif which == 1:
            while self.open_sessions:  # the last one logs out
                self.call("C_CloseSession", self.open_sessions.pop())
            self.open()
        elif which < 4:
            closed = self.session()
            self.call("C_CloseSession", closed)
            if closed in self.open_sessions:
                self.open_sessions.remove(closed)
        for session in self.sessions[-3:]:
            self.call("C_GetSessionInfo", session, Out(32))
        self.call("C_GetTokenInfo", self.slot(self.target.slot), Out(208))

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
        session, *pin = self.session(), self.target.pin, len(self.target.pin)
        self.call(*self.pick([("C_InitPIN", session, *pin), ("C_SetPIN", session, *pin, *pin)]))

    def token(self):
        if self.odd(0.5):
            self.call("C_CloseAllSessions", self.slot(self.target.slot))
            self.open_sessions.clear()
        self.call("C_InitToken", self.pick([self.slot(self.target.slot)] * 2 + [self.slot(1)]), self.target.so_pin,
                  len(self.target.so_pin), b"another one".ljust(32))
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
        session, again, number = Handle(), Handle(), self.slot(self.target.slot)
        self.call("C_OpenSession", number, 4, 0, 0, session.room())
        self.call("C_Login", session, 1, self.target.pin, len(self.target.pin))
        for _ in range(100):
            self.call("C_GenerateRandom", session, Random(32), 32)
        time.sleep(0.02)
        self.call("C_GetTokenInfo", number, Out(208))
        self.call("C_Logout", session)
        self.call("C_GenerateRandom", session, Random(32), 32)
        # A token may give the same handle out again, for another slot.
        self.call("C_CloseSession", session)
        self.call("C_OpenSession", self.slot(1), 4, 0, 0, again.room())
        self.call("C_GenerateRandom", again, Random(32), 32)
        self.call("C_CloseSession", again)

    def beside(self):
        """Two threads, each with a session of its own."""
        if not self.locks:
            return
        lists = []
        for _ in range(2):
            session, number, data = Handle(), self.slot(self.target.slot), self.data(32)
            draws = [("C_GenerateRandom", session, Random(size), size) for size in [16] * 20 + [2000]]
            lists.append([("C_OpenSession", number, 4, 0, 0, session.room()), *draws,
                          ("C_DigestInit", session, Mechanism(0x250)), ("C_DigestUpdate", session, data, 32), *draws,
                          ("C_DigestFinal", session, Out(64), Length(64)), ("C_CloseSession", session)])
        self.side_by_side(*lists)

    # Objects.

    def create(self):
        kind = self.pick(["data", "aes", "generic"])
        token = self.odd() and (kind == "data" or self.target.token_keys)
        rows = [(TOKEN, token), (PRIVATE, self.pick([False] * 3 + [True])), (LABEL, self.data(4))]
        rows += [(CLASS, 0 if kind == "data" else 4), (VALUE, self.data(self.pick([16, 16, 32])))]
        if kind != "data":
            rows += [(KEY_TYPE, 0x1F if kind == "aes" else 0x10), (SENSITIVE, False), (EXTRACTABLE, True)]
            rows += [(use, True) for use in (ENCRYPT, DECRYPT, SIGN, VERIFY, WRAP, UNWRAP, DERIVE)]
        if self.odd(0.1):
            rows.pop(self.random.randrange(len(rows)))
        if self.odd(0.05):
            rows.append((0x90000001, 1))
        self.make(kind, "C_CreateObject", self.session(), Template(*rows), len(rows))

    def generate(self):
        template = Template((TOKEN, False), (PRIVATE, False), (SENSITIVE, False), (EXTRACTABLE, True), (ENCRYPT, True),
                            (DECRYPT, True), (SIGN, True), (VALUE_LEN, self.pick([16, 24, 32, 5])))
        self.make("aes", "C_GenerateKey", self.session(), self.mechanism([(0x1080,)]), template, template.count)

    def generate_pair(self):
        kind = self.pick(["rsa", "ec", "ec", "ec"])
        number, rows = {"ec": (0x1040, [(EC_PARAMS, P256)]),
                        "rsa": (0x0, [(MODULUS_BITS, 1024), (EXPONENT, b"\1\0\1"), (ENCRYPT, True)])}[kind]
        public = Template((TOKEN, False), (VERIFY, True), *rows)
        private = Template((TOKEN, False), (PRIVATE, False), (SIGN, True), *[(DECRYPT, True)] * (kind == "rsa"))
        self.objects[kind + "_public"].append(Handle())
        self.make(kind, "C_GenerateKeyPair", self.session(), self.mechanism([(number,)]), public, public.count, private,
                  private.count, self.objects[kind + "_public"][-1].room())

    def look(self):
        session, thing, label = self.session(), self.object(), (LABEL, self.data(3))
        token = self.target.token_keys and self.odd(0.5)
        rooms = [None, 200] + [8, 1, 0] * self.target.minds_room
        wanted = [(self.pick([CLASS, TOKEN, LABEL, VALUE, ID, KEY_TYPE, 0x90000002]), room if room is None else Out(room))
                  for room in self.random.choices(rooms, k=self.pick([1, 2, 4]))]
        if self.odd():
            self.make("data", "C_CopyObject", session, thing, Template(label, (TOKEN, token)), 2)
        self.call(*self.pick([
            ("C_GetObjectSize", session, thing, Length(0)), ("C_SetAttributeValue", session, thing, Template(label), 1),
            ("C_DestroyObject", session, thing),
            *[("C_GetAttributeValue", session, thing, Template(*wanted), len(wanted))] * 2]))

    def find(self):
        session = self.session()
        template = Template(*self.pick([[], [(CLASS, self.pick([0, 4]))], [(TOKEN, self.odd(0.5))]]))
        self.call("C_FindObjectsInit", session, template, template.count)
        # Which of them come is not foretold where not all fit.
        for room in self.pick([[Found(200 * WORD)], [Block(FILL * WORD), Block(FILL * 200 * WORD)], []]):
            self.call("C_FindObjects", session, room, room.len // WORD, Length(77))
            if self.odd(0.1):
                self.draw()
        if not self.odd(0.1):
            self.call("C_FindObjectsFinal", session)

    # Operations: begin, and then in one go or in parts.

    def in_parts(self, function, session, given, update):
        """All at once, or in parts, of which each gives output if update is so."""
        if self.odd(0.6):
            return self.output(function, session, *given)
        if not update:
            self.call(function + "Update", session, *given)
            return self.output(function + "Final", session)
        made = self.output(function + "Update", session, *given)
        self.output(function + "Final", session)
        return made

    def cipher(self):
        session = self.session()
        asymmetric = self.odd(0.5 if self.objects["rsa"] else 0.02)
        mechanism = self.mechanism(RSA_PKCS if asymmetric else CIPHERS)
        key = self.object("rsa_public" if asymmetric else "aes")
        data = self.data(16 if self.odd(0.5) else None)
        self.call("C_EncryptInit", session, mechanism, key)
        made = self.in_parts("C_Encrypt", session, (data, len(data)), True)
        self.call("C_DecryptInit", session, mechanism, self.object("rsa") if asymmetric else key)
        self.in_parts("C_Decrypt", session, made, True)

    def digest(self):
        session, data = self.session(), self.data()
        self.call("C_DigestInit", session, self.mechanism(DIGESTS))
        if self.odd(0.5):
            self.output("C_Digest", session, data, len(data))
            return
        for _ in range(self.pick([0, 1, 2])):
            self.call("C_DigestUpdate", session, data, len(data))
        if self.odd(0.3):
            self.call("C_DigestKey", session, self.object("aes", "generic"))
        self.output("C_DigestFinal", session)

    def sign(self):
        session = self.session()
        kind = self.pick([kind for kind in SIGNATURES if self.objects[kind]] or ["generic"])
        mechanism, data = self.mechanism(SIGNATURES[kind]), self.data(20 if kind == "ec" or self.odd(0.3) else None)
        self.call("C_SignInit", session, mechanism, self.object(kind))
        made = self.in_parts("C_Sign", session, (data, len(data)), False)
        self.call("C_VerifyInit", session, mechanism, self.object(kind if kind == "generic" else kind + "_public"))
        self.call("C_Verify", session, data, len(data), *made)

    def wrap(self):
        session = self.session()
        made = self.output("C_WrapKey", session, self.mechanism(KEY_WRAPS), self.object("aes"), self.object())
        template = Template((CLASS, 4), (KEY_TYPE, 0x1F), (TOKEN, False), (PRIVATE, False))
        self.make("aes", "C_UnwrapKey", session, self.mechanism(KEY_WRAPS[:1]), self.object("aes"), *made, template,
                  template.count)

    def stray(self):
        """A call that has no operation to belong to, mostly; or one of two purposes at once."""
        session, data = self.session(), self.data()
        if self.odd(0.4):
            self.call(*self.pick([("C_DigestUpdate", session, data, len(data)), ("C_FindObjectsFinal", session),
                                  ("C_SessionCancel", session, self.pick([0x100, 0x400, 0xFFFFFFFF]))]))
            return
        function = self.pick(["C_Encrypt", "C_DecryptFinal", "C_SignFinal", "C_DigestEncryptUpdate", "C_SignEncryptUpdate",
                              "C_SignRecover"])
        self.output(function, session, *[] if function.endswith("Final") else (data, len(data)))

    def anything(self):
        weights = {self.open: 5, self.close: 4, self.login: 5, self.pins: 1, self.token: 0.2,
                   self.restart: 0.7, self.information: 6, self.draw: 12, self.seed: 2, self.create: 8,
                   self.generate: 3, self.generate_pair: 1, self.look: 7, self.find: 4, self.cipher: 7,
                   self.digest: 7, self.sign: 7, self.wrap: 2, self.stray: 4, self.beside: 1}
        self.random.choices(list(weights), weights.values())[0]()

    def play(self, count):
        if self.odd(0.1):
            self.information()  # before C_Initialize
        self.start()
        self.stale()
        self.open_first()
        for _ in range(count):
            self.anything()
        self.call("C_Finalize", 0)

    def prepare(self):
        """A user's PIN, which softoken's token has not at first."""
        self.start()
        session = Handle()
        self.call("C_OpenSession", self.slot(self.target.slot), 6, 0, 0, session.room())
        self.call("C_Login", session, 0, self.target.so_pin, len(self.target.so_pin))
        self.call("C_InitPIN", session, self.target.pin, len(self.target.pin))
        self.call("C_Finalize", 0)


def main():
    module, name, seed, count, reserved = (sys.argv[1:] + [""])[:5]
    signal.alarm(HANG_S)
    sequences = Sequences(module, targets.TARGETS[name], int(seed), reserved)
    sequences.play(int(count)) if int(count) else sequences.prepare()
    print("end", flush=True)


if __name__ == "__main__":
    main()
