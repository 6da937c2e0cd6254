"""remote.py - a client of a token behind p11-kit's server, which is killed and started again: remote.py MODULE COMMAND

MODULE is what the client loads, COMMAND starts the server. Prints the answer to each step.
"""
import os
import signal
import socket
import subprocess
import sys
import time

import PyKCS11

SOCKET = os.environ["P11_KIT_SERVER_ADDRESS"].removeprefix("unix:path=")
HANG_S = 30


def listens():
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(SOCKET) == 0


def start_server():
    if os.path.exists(SOCKET):
        os.unlink(SOCKET)
    server = subprocess.Popen(sys.argv[2], shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True)
    until = time.monotonic() + HANG_S
    while not listens():
        assert time.monotonic() < until and server.poll() is None, "the server does not start"
        time.sleep(0.01)
    return server


def kill(server):
    """The server has a process for each client."""
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def step(what, do, *arguments):
    try:
        result = do(*arguments)
    except PyKCS11.PyKCS11Error as error:
        result = error
    print(f"{what}: {result}", flush=True)


def ids(session):
    return len({bytes(session.generateRandom(16)) for _ in range(50)})


def signature(session):
    key = session.findObjects([(PyKCS11.CKA_CLASS, PyKCS11.CKO_PRIVATE_KEY)])[0]
    return bytes(session.sign(key, b"hello", PyKCS11.Mechanism(PyKCS11.CKM_SHA256_RSA_PKCS))).hex()


def life(library):
    session = library.openSession(library.getSlotList(tokenPresent=True)[0], PyKCS11.CKF_SERIAL_SESSION)
    step("login", session.login, "1234")
    step("ids", ids, session)
    step("signature", signature, session)
    return session


def main():
    server = start_server()
    library = PyKCS11.PyKCS11Lib()
    library.load(sys.argv[1])
    session = life(library)
    kill(server)
    # A large request goes to the token each time. What a pool holds it may still give, until a call has failed.
    step("2000 bytes, server killed", session.generateRandom, 2000)
    step("ids, server killed", ids, session)
    step("signature, server killed", signature, session)
    server = start_server()
    step("ids, server started again", ids, session)
    step("finalize", library.lib.C_Finalize)
    step("initialize", library.lib.C_Initialize)
    life(library)
    kill(server)


main()
