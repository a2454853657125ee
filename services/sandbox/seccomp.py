"""The system calls that no program in a cage has a use for, as a filter for the kernel.

Classic BPF, as seccomp(2) takes it: eight bytes an instruction, each call's number compared in turn. All
else is allowed: this stands behind the namespaces, and in front of the kernel's larger surfaces.
"""

import platform
import struct

# <linux/bpf_common.h>, <linux/seccomp.h>
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; low half of the first argument
EPERM, EAGAIN, ENOSYS, EAFNOSUPPORT = 1, 11, 38, 97

X32 = 0x40000000  # numbers of x86-64's 32-bit twin
NEW_NAMESPACES = 0x7E020000  # CLONE_NEW*: cgroup, uts, ipc, user, pid, net, mount
THREAD = 0x00010000  # CLONE_THREAD
FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK; a vsock would reach a host
# From here on numbers are the same everywhere and the calls new: io_uring, pidfd, clone3, new mounts, …
UNIFIED, NEEDED = 424, (436, 439, 441)  # close_range, faccessat2, epoll_pwait2

DENIED = {  # by name: the number on x86-64, that on AArch64
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "syslog": (103, 116),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60),
    "personality": (135, 92), "lookup_dcookie": (212, 18), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266), "mknodat": (259, 33),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58), "move_pages": (279, 239),
    "migrate_pages": (256, 238), "mbind": (237, 235), "nfsservctl": (180, 42),
}  # fmt: skip
X86_ONLY = (133, 134, 154, 156, 172, 173)  # mknod, uselib, modify_ldt, _sysctl, iopl, ioperm
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_*
CLONE, SOCKET, FORKS = {"x86_64": 56, "aarch64": 220}, {"x86_64": 41, "aarch64": 198}, (57, 58)


def program(*, processes: bool, machine: str | None = None) -> bytes | None:
    """The filter, with or without new processes; None for a kind of processor it is not written for."""
    machine = machine or platform.machine()
    if machine not in MACHINES:
        return None
    x86 = machine == "x86_64"
    numbers = [pair[0 if x86 else 1] for pair in DENIED.values()] + (list(X86_ONLY) if x86 else [])
    code = [_do(LOAD, ARCHITECTURE), _do(EQUAL, MACHINES[machine], 1, 0), _do(RETURN, KILL)]
    code += [_do(LOAD, NUMBER), *([_do(AT_LEAST, X32, 0, 1), _errno(ENOSYS)] if x86 else [])]
    for number in numbers:
        code += [_do(EQUAL, number, 0, 1), _errno(EPERM)]
    if x86 and not processes:
        for number in FORKS:
            code += [_do(EQUAL, number, 0, 1), _errno(EAGAIN)]
    for number in NEEDED:
        code += [_do(EQUAL, number, 0, 1), _do(RETURN, ALLOW)]
    code += [_do(AT_LEAST, UNIFIED, 0, 1), _errno(ENOSYS)]
    clone = [_do(LOAD, ARGUMENT), _do(ANY_BIT, NEW_NAMESPACES, 0, 1), _errno(EPERM)]
    clone += [] if processes else [_do(ANY_BIT, THREAD, 1, 0), _errno(EAGAIN)]
    clone += [_do(RETURN, ALLOW)]
    code += [_do(EQUAL, CLONE[machine], 0, len(clone)), *clone]
    code += [_do(EQUAL, SOCKET[machine], 1, 0), _do(RETURN, ALLOW), _do(LOAD, ARGUMENT)]
    for family in FAMILIES:
        code += [_do(EQUAL, family, 0, 1), _do(RETURN, ALLOW)]
    return b"".join([*code, _errno(EAFNOSUPPORT)])


def _do(operation: int, value: int, skip_if: int = 0, skip_else: int = 0) -> bytes:
    return struct.pack("=HBBI", operation, skip_if, skip_else, value)


def _errno(number: int) -> bytes:
    return _do(RETURN, ERRNO | number)
