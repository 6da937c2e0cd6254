"""openvpn.py - gives OpenVPN the PIN by its management interface, and waits until it is connected: openvpn.py SOCKET"""
import socket
import sys
import time

HANG_S = 30


def connect(path):
    until = time.monotonic() + HANG_S
    while True:
        management = socket.socket(socket.AF_UNIX)
        try:
            management.connect(path)
            return management
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def main():
    management = connect(sys.argv[1])
    management.settimeout(HANG_S)
    management.sendall(b"state on\n")
    lines = management.makefile("r")
    for line in lines:
        if line.startswith(">PASSWORD:Need"):
            name = line.split("'")[1]
            management.sendall(f'password "{name}" "1234"\n'.encode())
        if "CONNECTED,SUCCESS" in line:
            return 0
        if ">PASSWORD:Verification Failed" in line or ">FATAL" in line:
            print(line)
            return 1
    return 1


sys.exit(main())
