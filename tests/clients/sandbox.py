"""sandbox.py - what systemd does for a unit: sandbox.py UNIT COMMAND...

Reads the lines of UNIT that restrict a process, imposes them and runs the command. ProtectSystem= and the like, which
need a mount namespace, are left out. Exits with 77 if a line cannot be imposed here.
"""
import errno
import os
import re
import socket
import subprocess
import sys

PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
# A filter of calls brings NoNewPrivileges with it; hosts.sh sets a stricter limit of locked memory than LimitMEMLOCK=.
LEFT_OUT = {"LimitMEMLOCK", "NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp", "ProtectProc", "ProcSubset",
            "SystemCallArchitectures"}


def calls_of(name):
    """The system calls of a set such as @system-service."""
    if not name.startswith("@"):
        return {name}
    listing = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True).stdout
    return set().union(*map(calls_of, re.findall(r"^ +([@a-z_0-9-]+)$", listing, re.MULTILINE)))


def filter_calls(value):
    rules = seccomp.SyscallFilter(seccomp.KILL_PROCESS)
    # Some systemd always permits.
    for name in calls_of(value) | {"execve", "exit", "exit_group", "rt_sigreturn", "getrlimit"}:
        try:
            rules.add_rule(seccomp.ALLOW, name)
        except (RuntimeError, ValueError, OSError):
            pass    # of another processor
    rules.load()


def deny_write_execute(_value):
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    for call, argument, bits in (("mmap", 2, PROT_WRITE | PROT_EXEC), ("mprotect", 2, PROT_EXEC),
                                 ("pkey_mprotect", 2, PROT_EXEC), ("shmat", 2, SHM_EXEC)):
        rules.add_rule(seccomp.ERRNO(errno.EPERM), call, seccomp.Arg(argument, seccomp.MASKED_EQ, bits, bits))
    rules.load()


def restrict_families(value):
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    for family in set(range(1, 64)) - {getattr(socket, name) for name in value.split()}:
        rules.add_rule(seccomp.ERRNO(errno.EAFNOSUPPORT), "socket", seccomp.Arg(0, seccomp.EQ, family))
    rules.load()


# The filter of calls comes last, because imposing the others needs some.
RULES = {"MemoryDenyWriteExecute": deny_write_execute, "RestrictAddressFamilies": restrict_families,
         "SystemCallFilter": filter_calls}

with open(sys.argv[1], encoding="utf-8") as unit:
    lines = dict(line.strip().split("=", 1) for line in unit if "=" in line)
assert lines.keys() - LEFT_OUT == RULES.keys(), lines
try:
    import seccomp
    for name, impose in RULES.items():
        impose(lines[name])
except (ImportError, OSError, RuntimeError) as error:
    print("SKIP sandbox.py:", error)
    sys.exit(77)
os.execvp(sys.argv[2], sys.argv[2:])
