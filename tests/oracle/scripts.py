"""scripts.py - makes scripts of calls for the player, from a seed: the same seed, the same calls.

A script is many short sequences, each from one method of Scripts below, over sessions s1... and objects o1...
Part of what it does is wrong on purpose: closed sessions, NULL where a pointer belongs, buffers too short.
"""
from calls import (CIPHERS, CLASS, DECRYPT, DERIVE, EC_PARAMS, ENCRYPT, EXPONENT, EXTRACTABLE,
                   ID, KEY_TYPE, LABEL, MACS, MODULUS_BITS, NONSENSE, P256, PRIVATE,
                   RSA_SIGNATURES, SENSITIVE, SIGN, TOKEN, UNWRAP, VALUE, VALUE_LEN, VERIFY,
                   WRAP, template)
from operations import Operations


class Scripts(Operations):
    # Life and information.

    def start(self):
        if self.target.null_args and self.odd(0.2):
            self.call("C_Initialize", 0)
        else:
            self.call("C_Initialize", f"init:{self.pick([2, 2, 2, 3])}")
        self.lines.append("slots")

    def restart(self):
        self.call("C_Finalize", self.pick([0] * 4 + ["x:00"]))
        # Not without a C_Finalize that works: a proxy that had its thread stays loaded, as its manual says.
        if self.odd(0.4):
            self.call("C_Finalize", 0)
            self.lines.append("reload")
        if self.odd(0.3):
            self.information()
            self.draw()
        if self.odd(0.2):
            self.call("C_Finalize", 0)
        self.start()
        if self.odd(0.2):
            self.start()
        self.open_first()
        self.find()

    def information(self):
        which = self.random.randrange(9)
        slot = self.slot()
        if which == 0:
            self.call("C_GetInfo", "out:88")
        elif which == 1:
            self.call("C_GetSlotInfo", slot, "out:112")
        elif which == 2:
            self.call("C_GetTokenInfo", slot, "out:208")
        elif which == 3:
            self.call("C_GetMechanismList", slot, 0, "len:0")
            room = self.pick([0, 1, 20, 400]) if self.target.minds_room else 400
            self.call("C_GetMechanismList", slot, f"out:{8 * room}", f"len:{room}")
        elif which == 4:
            number = self.pick(CIPHERS + RSA_SIGNATURES + MACS + NONSENSE)[0]
            self.call("C_GetMechanismInfo", slot, f"{number:#x}", "out:24")
        elif which == 5:
            self.call("C_GetSlotList", self.pick([0, 1]), 0, "len:0")
            room = self.pick([0, 1, 9])
            self.call("C_GetSlotList", self.pick([0, 1]), f"out:{8 * room}", f"len:{room}")
        elif which == 6:
            self.call("C_WaitForSlotEvent", 1, "len:0" if self.target.knows_slot else "some:1", 0)
        elif which == 7:
            self.call(self.pick(["C_GetFunctionStatus", "C_CancelFunction"]), self.session())
        elif self.target.minds_null:
            self.call("C_GetInfo", 0)

    # Sessions and logins.

    def open(self):
        session, slot, flags = self.name("s"), self.slot(), self.pick([6] * 9 + [4] * 4 + [2, 0])
        if self.odd(0.03) and self.target.minds_null:
            self.call("C_OpenSession", slot, flags, 0, 0, 0)
        self.call("C_OpenSession", slot, flags, 0, 0, f"&{session}")
        self.sessions.append(session)
        if slot == self.target.slot and flags & 4:
            self.open_sessions.append(session)

    def open_first(self):
        """Sessions, a login and keys: what most programs have before they do anything."""
        self.open_sessions.clear()
        self.sessions.clear()  # a handle of another life may be another session now, or the proxy's own
        for objects in self.objects.values():
            objects.clear()  # SoftHSM takes an object's handle of another life for a pointer: it crashes
        while len(self.open_sessions) < 2:
            self.open()
        if self.odd(0.85):
            self.call("C_Login", self.open_sessions[0], 1, "x:" + self.target.pin.encode().hex(),
                      len(self.target.pin))
        for _ in range(3):
            self.create()

    def close(self):
        which = self.random.randrange(8)
        if which == 0:
            self.close_all()
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
            self.call("C_GetSessionInfo", session, "out:32")
        self.call("C_GetTokenInfo", self.target.slot, "out:208")

    def close_all(self):
        slot = self.slot()
        self.call("C_CloseAllSessions", slot)
        if slot == self.target.slot:
            self.open_sessions.clear()
        if self.odd(0.2):
            self.draw()
        self.open()

    def login(self):
        user = self.pick([1, 1, 1, 1, 0, 2, 7])
        pin = self.pick([self.target.pin] * 5 + [self.target.so_pin, "wrong", ""])
        if user == 0 and self.odd(0.8):
            pin = self.target.so_pin
        word, length = "x:" + pin.encode().hex(), len(pin)
        if self.odd(0.05) and self.target.minds_null:
            word = 0
        self.call("C_Login", self.session(), user, word, length)
        self.call("C_GetSessionInfo", self.session(), "out:32")

    def logout(self):
        self.call("C_Logout", self.session())

    def pins(self):
        pin, length = "x:" + self.target.pin.encode().hex(), len(self.target.pin)
        if self.odd(0.5):
            self.call("C_InitPIN", self.session(), pin, length)
        else:
            self.call("C_SetPIN", self.session(), pin, length, pin, length)

    def token(self):
        if self.odd(0.5):
            self.call("C_CloseAllSessions", self.target.slot)
            self.open_sessions.clear()
        so_pin = "x:" + self.target.so_pin.encode().hex()
        self.call("C_InitToken", self.pick([self.target.slot] * 2 + ["slot1"]), so_pin, len(self.target.so_pin),
                  "x:" + b"another one".ljust(32).hex())
        self.lines.append("slots")

    # Random, and what the proxy adds: pools that fill in the background meanwhile.

    def draw(self):
        session = self.session()
        for _ in range(self.pick([1, 2, 5])):
            size = self.pick([1, 8, 16, 32, 200, 1024, 1025, 5000])
            if self.odd(0.05) and self.target.minds_null:
                self.call("C_GenerateRandom", session, 0, self.pick([0, 1, 16, 5000]))
            else:
                self.call("C_GenerateRandom", session, f"rnd:{size}", size)
        if self.odd(0.6):
            self.lines.append(f"pause {self.pick([1, 3, 10])}")

    def seed(self):
        word, size = self.data(self.pick([0, 1, 16, 100]))
        self.call("C_SeedRandom", self.session(), 0 if self.odd(0.1) and self.target.minds_null else word, size)
        self.draw()

    # Objects.

    def create(self):
        kind = self.pick(["data", "secret", "secret"])
        token, private = self.pick([0] * 5 + [1]), self.pick([0, 0, 0, 1])
        if kind == "secret" and not self.target.token_keys:
            token = 0
        rows = [f"{TOKEN}:b:{token}", f"{PRIVATE}:b:{private}", f"{LABEL}:x:{self.data(4)[0][2:]}"]
        if kind == "data":
            rows += [f"{CLASS}:u:0", f"{VALUE}:{self.data(self.pick([1, 16, 100]))[0]}"]
        else:
            uses = [f"{use}:b:1" for use in (ENCRYPT, DECRYPT, SIGN, VERIFY, WRAP, UNWRAP, DERIVE)]
            rows += [f"{CLASS}:u:4", f"{KEY_TYPE}:u:{self.pick([0x1F, 0x1F, 0x10])}",
                     f"{SENSITIVE}:b:0", f"{EXTRACTABLE}:b:1",
                     f"{VALUE}:{self.data(self.pick([16, 16, 32]))[0]}"]
            rows += uses
        if self.odd(0.1):
            rows.pop(self.random.randrange(len(rows)))
        if self.odd(0.05):
            rows.append("0x90000001:u:1")
        words, count = template(*rows)
        name = self.name("o")
        self.call("C_CreateObject", self.session(), words, count, f"&{name}")
        self.objects[kind].append(name)

    def generate(self):
        name, session = self.name("o"), self.session()
        words, count = template(f"{TOKEN}:b:0", f"{PRIVATE}:b:0", f"{SENSITIVE}:b:0", f"{EXTRACTABLE}:b:1",
                                f"{ENCRYPT}:b:1", f"{DECRYPT}:b:1", f"{SIGN}:b:1",
                                f"{VALUE_LEN}:u:{self.pick([16, 24, 32, 5])}")
        self.call("C_GenerateKey", session, self.mechanism([(0x1080, "")]), words, count, f"&{name}")
        self.objects["secret"].append(name)

    def generate_pair(self):
        public, private, session = self.name("o"), self.name("o"), self.session()
        kind = self.pick(["rsa", "ec", "ec", "ec"])
        if kind == "rsa":
            wanted, number = [f"{MODULUS_BITS}:u:1024", f"{EXPONENT}:x:010001", f"{ENCRYPT}:b:1"], 0x0
        else:
            wanted, number = [f"{EC_PARAMS}:x:{P256}"], 0x1040
        public_words, public_count = template(f"{TOKEN}:b:0", f"{VERIFY}:b:1", *wanted)
        private_words, private_count = template(f"{TOKEN}:b:0", f"{PRIVATE}:b:0", f"{SIGN}:b:1",
                                                *([f"{DECRYPT}:b:1"] if kind == "rsa" else []))
        self.call("C_GenerateKeyPair", session, self.mechanism([(number, "")]), public_words, public_count,
                  private_words, private_count, f"&{public}", f"&{private}")
        self.objects[kind].append(private)
        self.objects[kind + "_public"].append(public)

    def look(self):
        session, thing = self.session(), self.object()
        which = self.random.randrange(6)
        if which == 0:
            self.call("C_GetObjectSize", session, thing, "len:0")
        elif which == 1:
            words, count = template(f"{LABEL}:x:{self.data(3)[0][2:]}")
            self.call("C_SetAttributeValue", session, thing, words, count)
        elif which == 2:
            name = self.name("o")
            token = self.pick([0, 1]) if self.target.token_keys else 0
            words, count = template(f"{LABEL}:x:{self.data(3)[0][2:]}", f"{TOKEN}:b:{token}")
            self.call("C_CopyObject", session, thing, words, count, f"&{name}")
            self.objects["data"].append(name)
        elif which == 3:
            self.call("C_DestroyObject", session, thing)
        else:
            rows = [f"{self.pick([CLASS, TOKEN, LABEL, VALUE, ID, KEY_TYPE, 0x90000002])}:" +
                    self.pick(["null:0", "out:200"] + ["out:8", "out:1", "out:0"] * self.target.minds_room)
                    for _ in range(self.pick([1, 2, 4]))]
            words, count = template(*rows)
            self.call("C_GetAttributeValue", session, thing, words, count)

    def find(self):
        session = self.session()
        words, count = self.pick([("0", 0), template(f"{CLASS}:u:{self.pick([0, 4])}"),
                                  template(f"{TOKEN}:b:{self.pick([0, 1])}")])
        self.call("C_FindObjectsInit", session, words, count)
        for room in self.pick([["find:200"], ["some:1", "some:2", "some:200"], []]):
            self.call("C_FindObjects", session, room, room[5:], "len:77")
            if self.odd(0.1):
                self.draw()
        if not self.odd(0.1):
            self.call("C_FindObjectsFinal", session)

    def anything(self):
        weights = {self.open: 5, self.close: 4, self.login: 5, self.logout: 2, self.pins: 1, self.token: 0.2,
                   self.restart: 0.7, self.information: 6, self.draw: 12, self.seed: 2, self.create: 8,
                   self.generate: 3, self.generate_pair: 1, self.look: 7, self.find: 4, self.cipher: 7,
                   self.digest: 7, self.sign: 7, self.wrap: 2, self.stray: 4}
        kinds = [method for method in weights if method.__name__ not in self.target.without]
        self.random.choices(kinds, [weights[method] for method in kinds])[0]()

    def make(self, sequences):
        """A list of lines."""
        if self.odd(0.1):
            self.information()  # before C_Initialize
        self.start()
        self.open_first()
        for _ in range(sequences):
            self.anything()
        self.call("C_Finalize", 0)
        return self.lines
