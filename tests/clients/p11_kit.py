"""p11_kit.py - uses libp11-kit itself: p11_kit.py managed|unmanaged

Takes all registered modules for each of 30 connections, and gives them back at first, but not later; draws with each.
An unmanaged module is initialised and finalised by the program itself.
"""
import ctypes
import sys

UNMANAGED = 1
INITIALIZE, FINALIZE, GET_SLOT_LIST, OPEN_SESSION, CLOSE_SESSION, GENERATE_RANDOM = 0, 1, 4, 12, 13, 64
SERIAL_SESSION = 4
OS_LOCKING_OK = 2

ULONG = ctypes.c_ulong


class InitializeArgs(ctypes.Structure):
    _fields_ = [("mutexes", ctypes.c_void_p * 4), ("flags", ULONG), ("reserved", ctypes.c_void_p)]


class FunctionList(ctypes.Structure):
    _fields_ = [("version", ctypes.c_ubyte * 2), ("functions", ctypes.c_void_p * 68)]


def call(module, number, *arguments):
    return ctypes.CFUNCTYPE(ULONG)(module.contents.functions[number])(*arguments)


def draw(module):
    """The codes of one life of a session, and whether the bytes are any."""
    slots, count, session = (ULONG * 8)(), ULONG(8), ULONG()
    drawn = ctypes.create_string_buffer(32)
    codes = [call(module, GET_SLOT_LIST, 1, ctypes.byref(slots), ctypes.byref(count)),
             call(module, OPEN_SESSION, ULONG(slots[0]), ULONG(SERIAL_SESSION), None, None, ctypes.byref(session)),
             call(module, GENERATE_RANDOM, session, drawn, ULONG(32)),
             call(module, CLOSE_SESSION, session)]
    return codes, drawn.raw != bytes(32)


def main():
    kit = ctypes.CDLL("libp11-kit.so.0")
    modules_type = ctypes.POINTER(ctypes.POINTER(FunctionList))
    kit.p11_kit_modules_load_and_initialize.restype = modules_type
    kit.p11_kit_modules_load.restype = modules_type
    kit.p11_kit_modules_finalize_and_release.argtypes = [modules_type]
    kit.p11_kit_modules_release.argtypes = [modules_type]
    for number in range(30):
        if sys.argv[1] == "managed":
            modules = kit.p11_kit_modules_load_and_initialize(0)
        else:
            modules = kit.p11_kit_modules_load(None, UNMANAGED)
            args = InitializeArgs(flags=OS_LOCKING_OK)
            print("initialize", call(modules[0], INITIALIZE, ctypes.byref(args)))
        print(number, draw(modules[0]), bool(modules[1]))
        if sys.argv[1] == "unmanaged":
            print("finalize", call(modules[0], FINALIZE, None))
            kit.p11_kit_modules_release(modules)
        elif number < 15:
            kit.p11_kit_modules_finalize_and_release(modules)


main()
