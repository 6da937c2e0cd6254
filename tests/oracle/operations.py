"""operations.py - sequences of calls that use a key or a digest, with room for what comes or without."""
from calls import (Calls, CIPHERS, CLASS, DIGESTS, KEY_TYPE, KEY_WRAPS, MACS, PRIVATE, ROOM, RSA_SIGNATURES,
                   TOKEN, template)


class Operations(Calls):
    # Operations: begin, and then in one go or in parts, with room or without.

    def output(self, function, before, key, length):
        """One call that gives bytes: now and then it is first asked how many, or has no room."""
        out, size = key, length
        if self.odd(0.3):
            self.call(function, **before, **{out: 0, size: f"len:{self.pick([0, 999])}"})
        if self.odd(0.3):
            room = self.pick(ROOM) if self.target.minds_room else 600
            self.call(function, **before, **{out: f"out:{room}", size: f"len:{room}"})
        if self.odd(0.03) and self.target.minds_null:
            self.call(function, **before, **{out: "out:600", size: 0})
        kept = self.name("b")
        self.call(function, **before, **{out: f"out:1200>{kept}", size: "len:1200"})
        return kept

    def cipher(self):
        session = self.session()
        asymmetric = self.odd(0.5 if self.objects["rsa"] else 0.02)
        mechanism = self.mechanism([(0x1, "")] if asymmetric else CIPHERS)
        self.call("C_EncryptInit", hSession=session, pMechanism=mechanism,
                  hKey=self.object("rsa_public") if asymmetric else self.object("secret"))
        key = self.lines[-1].split("hKey=")[1]
        word, size = self.data(16 if self.odd(0.5) else None)
        if self.odd(0.6):
            kept = self.output("C_Encrypt", {"hSession": session, "pData": word, "ulDataLen": size},
                               "pEncryptedData", "pulEncryptedDataLen")
        else:
            kept = self.output("C_EncryptUpdate", {"hSession": session, "pPart": word, "ulPartLen": size},
                               "pEncryptedPart", "pulEncryptedPartLen")
            if self.odd(0.2):
                self.anything()
            self.output("C_EncryptFinal", {"hSession": session}, "pLastEncryptedPart",
                        "pulLastEncryptedPartLen")
        self.call("C_DecryptInit", hSession=session, pMechanism=mechanism,
                  hKey=self.object("rsa") if asymmetric else key)
        whole = {"hSession": session, "pEncryptedData": f"<{kept}", "ulEncryptedDataLen": f"#{kept}"}
        if self.odd(0.6):
            self.output("C_Decrypt", whole, "pData", "pulDataLen")
        else:
            self.output("C_DecryptUpdate",
                        {"hSession": session, "pEncryptedPart": f"<{kept}",
                         "ulEncryptedPartLen": f"#{kept}"},
                        "pPart", "pulPartLen")
            self.output("C_DecryptFinal", {"hSession": session}, "pLastPart", "pulLastPartLen")

    def digest(self):
        session = self.session()
        self.call("C_DigestInit", hSession=session, pMechanism=self.mechanism(DIGESTS))
        word, size = self.data()
        if self.odd(0.5):
            self.output("C_Digest", {"hSession": session, "pData": word, "ulDataLen": size}, "pDigest",
                        "pulDigestLen")
            return
        for _ in range(self.pick([0, 1, 2])):
            self.call("C_DigestUpdate", hSession=session, pPart=word, ulPartLen=size)
        if self.odd(0.3):
            self.call("C_DigestKey", hSession=session, hKey=self.object("secret"))
        if self.odd(0.2):
            self.draw()
        if self.odd(0.2):
            self.operation_state(session)
        self.output("C_DigestFinal", {"hSession": session}, "pDigest", "pulDigestLen")

    def operation_state(self, session):
        kept = self.name("b")
        # Not compared byte by byte: softoken's has holes that it never writes to.
        self.call("C_GetOperationState", hSession=session, pOperationState=f"rnd:1200>{kept}",
                  pulOperationStateLen=f"len:{self.pick([1200, 1200, 10]) if self.target.minds_room else 1200}")
        self.call("C_SetOperationState", hSession=session, pOperationState=f"<{kept}",
                  ulOperationStateLen=f"#{kept}", hEncryptionKey=0, hAuthenticationKey=0)

    def sign(self):
        session = self.session()
        kind = self.pick([kind for kind in ("secret", "rsa", "ec") if self.objects[kind]] or ["secret"])
        mechanism = self.mechanism({"secret": MACS, "rsa": RSA_SIGNATURES,
                                    "ec": [(0x1041, "")]}[kind])
        word, size = self.data(20 if kind == "ec" or self.odd(0.3) else None)
        public = kind if kind == "secret" else kind + "_public"
        self.call("C_SignInit", hSession=session, pMechanism=mechanism, hKey=self.object(kind))
        if self.odd(0.6):
            kept = self.output("C_Sign", {"hSession": session, "pData": word, "ulDataLen": size},
                               "pSignature", "pulSignatureLen")
        else:
            self.call("C_SignUpdate", hSession=session, pPart=word, ulPartLen=size)
            kept = self.output("C_SignFinal", {"hSession": session}, "pSignature", "pulSignatureLen")
        self.call("C_VerifyInit", hSession=session, pMechanism=mechanism, hKey=self.object(public))
        if self.odd(0.6):
            self.call("C_Verify", hSession=session, pData=word, ulDataLen=size, pSignature=f"<{kept}",
                      ulSignatureLen=f"#{kept}")
        else:
            self.call("C_VerifyUpdate", hSession=session, pPart=word, ulPartLen=size)
            self.call("C_VerifyFinal", hSession=session, pSignature=f"<{kept}", ulSignatureLen=f"#{kept}")

    def wrap(self):
        session, name = self.session(), self.name("o")
        whole = {"hSession": session, "pMechanism": self.mechanism(KEY_WRAPS),
                 "hWrappingKey": self.object("secret"), "hKey": self.object("secret")}
        kept = self.output("C_WrapKey", whole, "pWrappedKey", "pulWrappedKeyLen")
        words, count = template(f"{CLASS}:u:4", f"{KEY_TYPE}:u:0x1f", f"{TOKEN}:b:0", f"{PRIVATE}:b:0")
        self.call("C_UnwrapKey", hSession=session, pMechanism=self.mechanism(KEY_WRAPS[:1]),
                  hUnwrappingKey=self.object("secret"), pWrappedKey=f"<{kept}", ulWrappedKeyLen=f"#{kept}",
                  pTemplate=words, ulAttributeCount=count, phKey=f"&{name}")
        self.objects["secret"].append(name)

    def stray(self):
        """A call that has no operation to belong to, mostly; or one of two purposes at once."""
        session = self.session()
        word, size = self.data()
        which = self.random.randrange(8)
        if which == 0:
            self.output("C_Encrypt", {"hSession": session, "pData": word, "ulDataLen": size},
                        "pEncryptedData", "pulEncryptedDataLen")
        elif which == 1:
            self.output("C_DecryptFinal", {"hSession": session}, "pLastPart", "pulLastPartLen")
        elif which == 2:
            self.output("C_SignFinal", {"hSession": session}, "pSignature", "pulSignatureLen")
        elif which == 3:
            self.call("C_DigestUpdate", hSession=session, pPart=word, ulPartLen=size)
        elif which == 4:
            self.call("C_FindObjectsFinal", hSession=session)
        elif which == 5:
            function = self.pick(["C_DigestEncryptUpdate", "C_SignEncryptUpdate"])
            self.output(function, {"hSession": session, "pPart": word, "ulPartLen": size}, "pEncryptedPart",
                        "pulEncryptedPartLen")
        elif which == 6:
            self.call("C_SignRecoverInit", hSession=session, pMechanism=self.mechanism([(0x1, "")]),
                      hKey=self.object("rsa"))
            self.output("C_SignRecover", {"hSession": session, "pData": word, "ulDataLen": size},
                        "pSignature", "pulSignatureLen")
        else:
            self.call("C_SessionCancel", hSession=session, flags=self.pick([0x100, 0x400, 0xFFFFFFFF]))
