"""operations.py - sequences of calls that use a key or a digest, with room for what comes or without."""
from calls import (Calls, CIPHERS, CLASS, DIGESTS, KEY_TYPE, KEY_WRAPS, MACS, PRIVATE, ROOM, RSA_SIGNATURES,
                   TOKEN, template)


class Operations(Calls):
    # Operations: begin, and then in one go or in parts, with room or without.

    def output(self, function, *before):
        """One call that gives bytes behind these arguments: now and then it is first asked how many, or has no room."""
        if self.odd(0.3):
            self.call(function, *before, 0, f"len:{self.pick([0, 999])}")
        if self.odd(0.3):
            room = self.pick(ROOM) if self.target.minds_room else 600
            self.call(function, *before, f"out:{room}", f"len:{room}")
        if self.odd(0.03) and self.target.minds_null:
            self.call(function, *before, "out:600", 0)
        kept = self.name("b")
        self.call(function, *before, f"out:1200>{kept}", "len:1200")
        return kept

    def cipher(self):
        session = self.session()
        asymmetric = self.odd(0.5 if self.objects["rsa"] else 0.02)
        mechanism = self.mechanism([(0x1, "")] if asymmetric else CIPHERS)
        key = self.object("rsa_public") if asymmetric else self.object("secret")
        self.call("C_EncryptInit", session, mechanism, key)
        word, size = self.data(16 if self.odd(0.5) else None)
        if self.odd(0.6):
            kept = self.output("C_Encrypt", session, word, size)
        else:
            kept = self.output("C_EncryptUpdate", session, word, size)
            if self.odd(0.2):
                self.anything()
            self.output("C_EncryptFinal", session)
        self.call("C_DecryptInit", session, mechanism, self.object("rsa") if asymmetric else key)
        if self.odd(0.6):
            self.output("C_Decrypt", session, f"<{kept}", f"#{kept}")
        else:
            self.output("C_DecryptUpdate", session, f"<{kept}", f"#{kept}")
            self.output("C_DecryptFinal", session)

    def digest(self):
        session = self.session()
        self.call("C_DigestInit", session, self.mechanism(DIGESTS))
        word, size = self.data()
        if self.odd(0.5):
            self.output("C_Digest", session, word, size)
            return
        for _ in range(self.pick([0, 1, 2])):
            self.call("C_DigestUpdate", session, word, size)
        if self.odd(0.3):
            self.call("C_DigestKey", session, self.object("secret"))
        if self.odd(0.2):
            self.draw()
        if self.odd(0.2):
            self.operation_state(session)
        self.output("C_DigestFinal", session)

    def operation_state(self, session):
        kept = self.name("b")
        # Not compared byte by byte: softoken's has holes that it never writes to.
        self.call("C_GetOperationState", session, f"rnd:1200>{kept}",
                  f"len:{self.pick([1200, 1200, 10]) if self.target.minds_room else 1200}")
        self.call("C_SetOperationState", session, f"<{kept}", f"#{kept}", 0, 0)

    def sign(self):
        session = self.session()
        kind = self.pick([kind for kind in ("secret", "rsa", "ec") if self.objects[kind]] or ["secret"])
        mechanism = self.mechanism({"secret": MACS, "rsa": RSA_SIGNATURES, "ec": [(0x1041, "")]}[kind])
        word, size = self.data(20 if kind == "ec" or self.odd(0.3) else None)
        public = kind if kind == "secret" else kind + "_public"
        self.call("C_SignInit", session, mechanism, self.object(kind))
        if self.odd(0.6):
            kept = self.output("C_Sign", session, word, size)
        else:
            self.call("C_SignUpdate", session, word, size)
            kept = self.output("C_SignFinal", session)
        self.call("C_VerifyInit", session, mechanism, self.object(public))
        if self.odd(0.6):
            self.call("C_Verify", session, word, size, f"<{kept}", f"#{kept}")
        else:
            self.call("C_VerifyUpdate", session, word, size)
            self.call("C_VerifyFinal", session, f"<{kept}", f"#{kept}")

    def wrap(self):
        session, name = self.session(), self.name("o")
        kept = self.output("C_WrapKey", session, self.mechanism(KEY_WRAPS), self.object("secret"), self.object("secret"))
        words, count = template(f"{CLASS}:u:4", f"{KEY_TYPE}:u:0x1f", f"{TOKEN}:b:0", f"{PRIVATE}:b:0")
        self.call("C_UnwrapKey", session, self.mechanism(KEY_WRAPS[:1]), self.object("secret"), f"<{kept}", f"#{kept}",
                  words, count, f"&{name}")
        self.objects["secret"].append(name)

    def stray(self):
        """A call that has no operation to belong to, mostly; or one of two purposes at once."""
        session = self.session()
        word, size = self.data()
        which = self.random.randrange(8)
        if which == 0:
            self.output("C_Encrypt", session, word, size)
        elif which == 1:
            self.output("C_DecryptFinal", session)
        elif which == 2:
            self.output("C_SignFinal", session)
        elif which == 3:
            self.call("C_DigestUpdate", session, word, size)
        elif which == 4:
            self.call("C_FindObjectsFinal", session)
        elif which == 5:
            self.output(self.pick(["C_DigestEncryptUpdate", "C_SignEncryptUpdate"]), session, word, size)
        elif which == 6:
            self.call("C_SignRecoverInit", session, self.mechanism([(0x1, "")]), self.object("rsa"))
            self.output("C_SignRecover", session, word, size)
        else:
            self.call("C_SessionCancel", session, self.pick([0x100, 0x400, 0xFFFFFFFF]))
