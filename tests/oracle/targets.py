"""targets.py - the modules that the proxy is compared before, and a token of its own for each run."""
import dataclasses
import pathlib
import shutil
import subprocess

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")


@dataclasses.dataclass
class Target:
    name: str
    paths: tuple                # where the module may be: the first that is there
    pin: str = "1234"
    so_pin: str = "12345678"
    null_args: bool = True      # C_Initialize(NULL) is the same to the proxy and the target
    minds_null: bool = True     # survives NULL where a length, a structure or random bytes belong
    minds_room: bool = True     # keeps to the room that it is given, and says how much it wants
    knows_slot: bool = True     # where nothing happened, C_WaitForSlotEvent writes no slot that was never set
    without: tuple = ()         # sequences of scripts.py that it does not survive
    token_keys: bool = True     # survives the use of a token's key after a logout
    slot: str = "slot0"         # where the token is
    preparation: tuple = ()     # calls that make the token fit for use
    reserved: str = ""          # what pReserved is to say, with {token}

    def module(self):
        return next((path for path in map(pathlib.Path, self.paths) if path.exists()), None)

    def make_token(self, directory):
        """The token that each run gets a copy of."""
        directory.mkdir()

    def environment(self, token):
        return {}

    def vary(self, seed):
        """Another token of its kind for each seed, if it can be more than one."""


class SoftHsm(Target):
    def environment(self, token):
        config = token / "softhsm2.conf"
        config.write_text(f"directories.tokendir = {token}/tokens\nobjectstore.backend = file\n"
                          "log.level = ERROR\nslots.removable = false\n")
        return {"SOFTHSM2_CONF": str(config)}

    def make_token(self, directory):
        (directory / "tokens").mkdir(parents=True)
        subprocess.run(["softhsm2-util", "--init-token", "--free", "--label", "oracle", "--pin", self.pin,
                        "--so-pin", self.so_pin], env=self.environment(directory), check=True,
                       stdout=subprocess.DEVNULL)


# What the scripted target is besides, by turns.
VARIANTS = ("", "login for random", "no generator", "C_GenerateRandom: fail 0x30", "C_SeedRandom: fail 0x120",
            "C_SeedRandom: fail 0x121", "C_SeedRandom: fail 0x54", "C_SeedRandom: fail 0x101",
            "sessions at most 3")


@dataclasses.dataclass
class Scripted(Target):
    script: str = ""            # see tests/targets/target.h
    variants: tuple = ("",)
    variant: str = ""

    def environment(self, token):
        return {"TARGET_SCRIPT": f"{self.script}; {self.variant}"}

    def vary(self, seed):
        self.variant = self.variants[seed % len(self.variants)]


def all_targets(test_targets):
    scripted = (pathlib.Path(test_targets) / "scripted.so",)
    return [
        SoftHsm("softhsm", ("/usr/lib/softhsm/libsofthsm2.so", LIBRARIES / "softhsm/libsofthsm2.so")),
        # A string in pReserved is the only argument that makes it start. It crashes where what it writes to is
        # NULL, and with too little room writes all the same, or a length that it never set. Its second
        # slot has the keys, once a PIN is set.
        Target("softoken", (LIBRARIES / "libsoftokn3.so", LIBRARIES / "nss/libsoftokn3.so"), so_pin="",
               null_args=False, minds_null=False, minds_room=False, token_keys=False, slot="slot1", preparation=(
                   "C_Initialize pInitArgs=init:2", "slots",
                   "C_OpenSession slotID=slot1 flags=6 pApplication=0 Notify=0 phSession=&s1",
                   "C_Login hSession=s1 userType=0 pPin=x: ulPinLen=0",
                   "C_InitPIN hSession=s1 pPin=x:31323334 ulPinLen=4", "C_Finalize pReserved=0"),
               reserved="configdir='sql:{token}' certPrefix='' keyPrefix='' secmod='secmod.db' flags="),
        Target("opensc", (LIBRARIES / "opensc-pkcs11.so",), knows_slot=False),
        Target("ykcs11", (LIBRARIES / "libykcs11.so", LIBRARIES / "libykcs11.so.2")),
        Scripted("scripted", scripted, script="slots 2; interfaces 3.2 3.0 2.40f", variants=VARIANTS),
    ]


def copy_token(template, directory):
    shutil.copytree(template, directory)
