"""pykcs11.py - what a Python program does with PyKCS11: pykcs11.py MODULE MODE [COMMAND]

draw        a hundred session ids of 16 bytes, and a signature if there is a key
remote      a token behind p11-kit's server, which COMMAND starts; it is killed and started again
"""
import os
import signal
import socket
import subprocess
import sys
import time

import PyKCS11

HANG_S = 30


def signature(session):
    keys = session.findObjects([(PyKCS11.CKA_CLASS, PyKCS11.CKO_PRIVATE_KEY)])
    return keys and bytes(session.sign(keys[0], b"hello", PyKCS11.Mechanism(PyKCS11.CKM_SHA256_RSA_PKCS))).hex()


def different(session):
    return len({bytes(session.generateRandom(16)) for _ in range(100)})


def answer(do, *arguments):
    """What it gives, or the name of the error."""
    try:
        return do(*arguments)
    except PyKCS11.PyKCS11Error as error:
        return str(error)


def life(library):
    slot = library.getSlotList(tokenPresent=True)[0]
    session = library.openSession(slot, PyKCS11.CKF_SERIAL_SESSION | PyKCS11.CKF_RW_SESSION)
    print(answer(session.login, "1234"), different(session), "different ids;", signature(session), flush=True)
    return session


def start_server():
    address = os.environ["P11_KIT_SERVER_ADDRESS"].removeprefix("unix:path=")
    if os.path.exists(address):
        os.unlink(address)
    server = subprocess.Popen(sys.argv[3], shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True)
    until = time.monotonic() + HANG_S
    while socket.socket(socket.AF_UNIX).connect_ex(address) != 0:
        assert time.monotonic() < until and server.poll() is None, "the server does not start"
        time.sleep(0.01)
    return server


def kill(server):
    """The server has a process for each client."""
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()


library = PyKCS11.PyKCS11Lib()
if sys.argv[2] == "draw":
    library.load(sys.argv[1])
    life(library).closeSession()
else:
    server = start_server()
    library.load(sys.argv[1])
    session = life(library)
    kill(server)
    # A large request goes to the token each time. What a pool holds it may still give, until a call has failed.
    print(answer(session.generateRandom, 2000), answer(different, session), answer(signature, session))
    server = start_server()
    print(answer(different, session), answer(library.lib.C_Finalize), answer(library.lib.C_Initialize))
    life(library)
    kill(server)
