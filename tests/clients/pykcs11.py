"""pykcs11.py - what a Python program does with PyKCS11: pykcs11.py MODULE MODE

ids         a hundred session ids of 16 bytes
draw        thirty, and a signature
fork        a pool of four processes, each with the module loaded, initialised and used before the fork and after it
threads     eight threads with a session each, and one that signs
"""
import multiprocessing
import sys
import threading

import PyKCS11


def load():
    library = PyKCS11.PyKCS11Lib()
    library.load(sys.argv[1])
    return library


def open_session(library):
    slot = library.getSlotList(tokenPresent=True)[0]
    return library.openSession(slot, PyKCS11.CKF_SERIAL_SESSION | PyKCS11.CKF_RW_SESSION)


def ids(session, count):
    return [bytes(session.generateRandom(16)).hex() for _ in range(count)]


def signature(session):
    key = session.findObjects([(PyKCS11.CKA_CLASS, PyKCS11.CKO_PRIVATE_KEY)])[0]
    return bytes(session.sign(key, b"hello", PyKCS11.Mechanism(PyKCS11.CKM_SHA256_RSA_PKCS))).hex()


def answer(do, *arguments):
    """What it gives, or the name of the error."""
    try:
        return do(*arguments)
    except PyKCS11.PyKCS11Error as error:
        return str(error)


class Child:
    """Carries on with the parent's session, then starts anew as a child should.

    One at a time: SoftHSM writes to its token at a login, and one that starts then finds no token.
    """
    session = None
    one_at_a_time = multiprocessing.get_context("fork").Lock()

    @classmethod
    def work(cls, _number):
        try:
            inherited = len(answer(ids, cls.session, 3))
        except TypeError:
            inherited = "none"
        with cls.one_at_a_time:
            session = open_session(load())
            logged_in = answer(session.login, "1234")
        return (inherited, logged_in, signature(session)), ids(session, 30)


def fork():
    library = load()
    Child.session = open_session(library)
    Child.session.login("1234")
    mine = ids(Child.session, 30)
    with multiprocessing.get_context("fork").Pool(4, maxtasksperchild=1) as pool:
        results = pool.map(Child.work, range(12), chunksize=1)
    mine += ids(Child.session, 30)
    everything = mine + [one for _, drawn in results for one in drawn]
    print(len(everything), "ids,", len(set(everything)), "different")
    print(sorted({answers for answers, _ in results}, key=str))
    print(signature(Child.session))


def threads():
    library = load()
    first = open_session(library)
    first.login("1234")
    drawn, signatures = [], set()

    def draw():
        drawn.extend(ids(open_session(library), 200))

    def sign():
        signatures.update(signature(first) for _ in range(20))

    workers = [threading.Thread(target=draw) for _ in range(8)] + [threading.Thread(target=sign)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(len(drawn), "ids,", len(set(drawn)), "different;", signatures)


def draw():
    session = open_session(load())
    session.login("1234")
    print(len(set(ids(session, 30))), "different ids;", signature(session))
    session.logout()
    session.closeSession()


def only_ids():
    print(len(set(ids(open_session(load()), 100))), "different ids")


{"ids": only_ids, "draw": draw, "fork": fork, "threads": threads}[sys.argv[2]]()
