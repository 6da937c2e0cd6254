"""targets.py - the modules that the proxy is compared before, and what each of them bears."""
import dataclasses
import pathlib
import subprocess

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")


@dataclasses.dataclass
class Target:
    path: pathlib.Path
    pin: bytes = b"1234"
    so_pin: bytes = b"12345678"
    null_args: bool = True      # C_Initialize(NULL) is the same to the proxy and the target
    minds_null: bool = True     # survives NULL where a length, a structure or random bytes belong
    minds_room: bool = True     # keeps to the room that it is given, and says how much it wants
    knows_slot: bool = True     # where nothing happened, C_WaitForSlotEvent writes no slot that was never set
    token_keys: bool = True     # survives the use of a token's key after a logout
    slot: int = 0               # where the token is, in the list of slots
    reserved: str = ""          # what pReserved is to say, with {token}

    def make_token(self, directory):
        """The token that each run gets a copy of."""
        directory.mkdir()

    def environment(self, token, seed):
        return {}


class SoftHsm(Target):
    def environment(self, token, seed):
        config = token / "softhsm2.conf"
        config.write_text(f"directories.tokendir = {token}/tokens\nobjectstore.backend = file\n"
                          "log.level = ERROR\nslots.removable = false\n")
        return {"SOFTHSM2_CONF": str(config)}

    def make_token(self, directory):
        (directory / "tokens").mkdir(parents=True)
        subprocess.run(["softhsm2-util", "--init-token", "--free", "--label", "oracle", "--pin", self.pin,
                        "--so-pin", self.so_pin], env=self.environment(directory, 0), check=True,
                       stdout=subprocess.DEVNULL)


class Softoken(Target):
    def make_token(self, directory):
        directory.mkdir()
        pin = directory / "pin"
        pin.write_bytes(self.pin)
        subprocess.run(["certutil", "-N", "-d", f"sql:{directory}", "-f", pin], check=True)


class Scripted(Target):
    # What it is besides, by turns: see tests/targets/target.h.
    variants = ("", "login for random", "reuse handles; C_GenerateRandom in slot 1: fail 0x30", "no generator",
                "C_GenerateRandom: fail 0x30", "C_SeedRandom: fail 0x120", "C_SeedRandom: fail 0x121",
                "C_SeedRandom: fail 0x54", "C_SeedRandom: fail 0x101", "sessions at most 3")

    def environment(self, token, seed):
        return {"TARGET_SCRIPT": f"slots 2; interfaces 3.2 3.0 2.40f; {self.variants[seed % len(self.variants)]}"}


TARGETS = {
    "softhsm": SoftHsm(pathlib.Path("/usr/lib/softhsm/libsofthsm2.so")),
    # A string in pReserved is the only argument that makes it start. It crashes where what it writes to is NULL, and with
    # too little room writes all the same, or a length that it never set. Its second slot has the keys.
    "softoken": Softoken(LIBRARIES / "libsoftokn3.so", so_pin=b"", null_args=False, minds_null=False, minds_room=False,
                         token_keys=False, slot=1,
                         reserved="configdir='sql:{token}' certPrefix='' keyPrefix='' secmod='secmod.db' flags="),
    "opensc": Target(LIBRARIES / "opensc-pkcs11.so", knows_slot=False),
    "ykcs11": Target(LIBRARIES / "libykcs11.so"),
    "scripted": Scripted(pathlib.Path("scripted.so")),  # in the folder of the tests' targets
}
