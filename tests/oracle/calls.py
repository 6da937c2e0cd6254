"""calls.py - one scripted call, and what it is made of: names, handles, bytes, mechanisms."""
import random

from player import rows_up_to

ROWS = rows_up_to(302)

# Mechanisms: their number, and their parameter as player.py has it.
IV = "x:" + "0b" * 16
DIGESTS = [(0x210, ""), (0x220, ""), (0x250, ""), (0x270, "")]  # MD5, SHA-1, SHA-256, SHA-512
CIPHERS = [(0x1081, ""), (0x1082, IV), (0x1085, IV),            # AES ECB, CBC, CBC_PAD,
           (0x1087, f"p:{'0c' * 12};u:12;u:96;u:0;u:0;u:128")]  # GCM
MACS = [(0x251, ""), (0x221, ""), (0x271, ""), (0x108A, "")]  # HMAC: SHA-256, SHA-1, SHA-512; CMAC
KEY_WRAPS = [(0x2109, ""), (0x210A, "")]                        # AES_KEY_WRAP, and with padding
RSA_SIGNATURES = [(0x1, ""), (0x40, ""), (0x3, ""),             # PKCS, SHA256_RSA_PKCS, X_509,
                  (0xD, "u:0x220;u:1;u:20"), (0x43, "u:0x250;u:2;u:32")]  # PSS
NONSENSE = [(0x80001234, ""), (0xFFFFFFFF, ""), (0x1082, ""), (0x1087, "x:00"), (0x250, "x:0102")]
SIZES = [0, 1, 15, 16, 17, 32, 48, 100, 255, 1024]
ROOM = [0, 1, 15, 16, 32, 64, 256, 600]
CLASS, TOKEN, PRIVATE, LABEL, VALUE, ID, KEY_TYPE = 0x0, 0x1, 0x2, 0x3, 0x11, 0x102, 0x100
SENSITIVE, VALUE_LEN, EXTRACTABLE, MODIFIABLE = 0x103, 0x161, 0x162, 0x170
ENCRYPT, DECRYPT, WRAP, UNWRAP, SIGN, VERIFY, DERIVE = 0x104, 0x105, 0x106, 0x107, 0x108, 0x10A, 0x10C
MODULUS_BITS, EXPONENT, EC_PARAMS = 0x121, 0x122, 0x180
P256 = "06082a8648ce3d030107"
ERRORS_ON_PURPOSE = 0.15


def template(*rows):
    return "{" + ";".join(rows) + "}", len(rows)


class Calls:
    def __init__(self, seed, target):
        self.random = random.Random(seed)
        self.target = target
        self.lines = []
        self.sessions = []       # all that there ever were
        self.open_sessions = []  # as far as one can tell
        self.objects = {"data": [], "secret": [], "rsa": [], "rsa_public": [], "ec": [], "ec_public": []}
        self.count = 0

    # What a call is made of.

    def call(self, function, *arguments):
        names = [name for _, name in ROWS[function]]
        self.lines.append(" ".join([function] + [f"{name}={value}" for name, value in zip(names, arguments, strict=True)]))

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def odd(self, chance=ERRORS_ON_PURPOSE):
        return self.random.random() < chance

    def pick(self, things):
        return self.random.choice(things)

    def session(self):
        """A session, mostly one that is open."""
        if self.open_sessions and self.odd(0.92):
            return self.pick(self.open_sessions)
        return self.pick(self.sessions + ["0", "0x7ffffff2", "0xffffffffffffffff"])

    def object(self, *kinds):
        known = [name for kind in kinds or self.objects for name in self.objects[kind]]
        if not known or self.odd(0.06):
            return self.pick(["0", "0x7ffffff3"])
        return self.pick(known[-4:])

    def data(self, size=None):
        size = self.pick(SIZES) if size is None else size
        return "x:" + bytes(self.random.randrange(256) for _ in range(size)).hex(), size

    def slot(self):
        return self.pick([self.target.slot] * 8 + ["slot0", "slot1", "0x7ffffff4"])

    def mechanism(self, pairs):
        if self.odd(0.08):
            pairs = NONSENSE
        number, parameter = self.pick(pairs)
        return f"({number:#x}:{parameter})" if parameter else f"({number:#x})"
