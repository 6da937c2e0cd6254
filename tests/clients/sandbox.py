"""sandbox.py - what systemd does for a unit: sandbox.py UNIT COMMAND...

Reads the lines of UNIT that restrict a process, imposes them and runs the command. ProtectSystem= and the like, which
need a mount namespace, are left out. Exits with 77 if a line cannot be imposed here.
"""
import errno
import os
import re
import resource
import subprocess
import sys

PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
LEFT_OUT = ("ProtectSystem", "ProtectHome", "PrivateTmp", "ProtectProc", "ProcSubset", "SystemCallArchitectures")
FAMILIES = {"AF_UNIX": 1}


def calls_of(sets):
    """The system calls of sets such as @system-service, and what systemd always permits."""
    todo, calls = list(sets), {"execve", "exit", "exit_group", "rt_sigreturn", "getrlimit"}
    while todo:
        name = todo.pop()
        if name.startswith("@"):
            listing = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True,
                                     check=True).stdout
            todo += re.findall(r"^ +([@a-z_0-9-]+)$", listing, re.MULTILINE)
        else:
            calls.add(name)
    return calls


def filter_calls(value):
    rules = seccomp.SyscallFilter(seccomp.KILL_PROCESS)
    for name in calls_of(value.split()):
        try:
            rules.add_rule(seccomp.ALLOW, name)
        except (RuntimeError, ValueError, OSError):
            pass    # of another processor
    rules.load()


def deny_write_execute(_value):
    denied = seccomp.ERRNO(errno.EPERM)
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    both = PROT_WRITE | PROT_EXEC
    rules.add_rule(denied, "mmap", seccomp.Arg(2, seccomp.MASKED_EQ, both, both))
    rules.add_rule(denied, "mprotect", seccomp.Arg(2, seccomp.MASKED_EQ, PROT_EXEC, PROT_EXEC))
    rules.add_rule(denied, "pkey_mprotect", seccomp.Arg(2, seccomp.MASKED_EQ, PROT_EXEC, PROT_EXEC))
    rules.add_rule(denied, "shmat", seccomp.Arg(2, seccomp.MASKED_EQ, SHM_EXEC, SHM_EXEC))
    rules.load()


def restrict_families(value):
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    for family in range(1, 64):
        if family not in [FAMILIES[name] for name in value.split()]:
            rules.add_rule(seccomp.ERRNO(errno.EAFNOSUPPORT), "socket", seccomp.Arg(0, seccomp.EQ, family))
    rules.load()


def no_new_privileges(_value):
    import ctypes
    assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0


def limit(name):
    def impose(value):
        units = {"": 1, "K": 1024, "M": 1024 ** 2}
        number, unit = re.fullmatch(r"(\d+)([KM]?)", value).groups()
        most = int(number) * units[unit]
        resource.setrlimit(getattr(resource, "RLIMIT_" + name), (most, most))
    return impose


RULES = {"NoNewPrivileges": no_new_privileges, "LimitMEMLOCK": limit("MEMLOCK"), "LimitNOFILE": limit("NOFILE"),
         "LimitAS": limit("AS"), "MemoryDenyWriteExecute": deny_write_execute,
         "RestrictAddressFamilies": restrict_families, "SystemCallFilter": filter_calls}


def main():
    with open(sys.argv[1], encoding="utf-8") as unit:
        lines = dict(line.strip().split("=", 1) for line in unit if "=" in line)
    assert all(name in RULES or name in LEFT_OUT for name in lines), lines
    try:
        # The filter of calls comes last, because imposing the others needs some.
        for name in RULES:
            if name in lines:
                RULES[name](lines[name])
    except (OSError, RuntimeError, AssertionError) as error:
        print("SKIP sandbox.py:", name, error)
        sys.exit(77)
    os.execvp(sys.argv[2], sys.argv[2:])


try:
    import seccomp
except ImportError:
    print("SKIP sandbox.py: there is no python3-seccomp")
    sys.exit(77)
main()
