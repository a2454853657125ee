"""The system call filter, run by an interpreter of the few BPF instructions it is made of."""

import struct

import pytest

from services.sandbox import seccomp

ALLOWED, EPERM, EAGAIN, ENOSYS, EAFNOSUPPORT = 0x7FFF0000, 0x50001, 0x5000B, 0x50026, 0x50061
READ, MMAP, FUTEX, EXECVE = 0, 9, 202, 59
SIGCHLD, THREAD_FLAGS = 17, 0x3D0F00


def verdict(filter_, number, argument=0, machine="x86_64"):
    data = struct.pack("=iIQ6Q", number, seccomp.MACHINES[machine], 0, argument, *[0] * 5)
    code = list(struct.iter_unpack("=HBBI", filter_))
    at = held = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == seccomp.LOAD:
            held = struct.unpack_from("=I", data, value)[0]
        elif operation == seccomp.RETURN:
            return value
        else:
            holds = {
                seccomp.EQUAL: held == value,
                seccomp.AT_LEAST: held >= value,
                seccomp.ANY_BIT: bool(held & value),
            }
            at += if_true if holds[operation] else if_false


@pytest.fixture(params=[True, False], ids=["with processes", "without"])
def filter_(request):
    return seccomp.program(processes=request.param, machine="x86_64")


@pytest.mark.parametrize("number", [READ, MMAP, FUTEX, EXECVE])
def test_what_python_needs_is_allowed(filter_, number):
    assert verdict(filter_, number) == ALLOWED


@pytest.mark.parametrize("name", seccomp.DENIED)
@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_what_is_denied_is_denied_on_each_machine(name, machine):
    number = seccomp.DENIED[name][list(seccomp.MACHINES).index(machine)]
    made = seccomp.program(processes=True, machine=machine)
    assert verdict(made, number, machine=machine) == EPERM


@pytest.mark.parametrize("number", [425, 435, 442, 999])
def test_calls_newer_than_the_filter_do_not_exist(filter_, number):
    """io_uring, clone3 and all that is to come; libraries fall back."""
    assert verdict(filter_, number) == ENOSYS


@pytest.mark.parametrize("number", seccomp.NEEDED)
def test_the_new_calls_that_glibc_wants_are_there(filter_, number):
    assert verdict(filter_, number) == ALLOWED


def test_threads_may_be_started(filter_):
    assert verdict(filter_, 56, THREAD_FLAGS) == ALLOWED


@pytest.mark.parametrize("flag", [1 << bit for bit in (17, 25, 26, 27, 28, 29, 30)])
def test_no_namespace_can_be_made(filter_, flag):
    assert verdict(filter_, 56, flag | SIGCHLD) == EPERM


@pytest.mark.parametrize(("number", "argument"), [(56, SIGCHLD), (57, 0), (58, 0)])
def test_processes_are_allowed_or_not(number, argument):
    assert verdict(seccomp.program(processes=True, machine="x86_64"), number, argument) == ALLOWED
    assert verdict(seccomp.program(processes=False, machine="x86_64"), number, argument) == EAGAIN


@pytest.mark.parametrize(
    ("family", "answer"), [(1, ALLOWED), (2, ALLOWED), (40, EAFNOSUPPORT), (38, EAFNOSUPPORT)]
)
def test_sockets_are_of_namespaced_families_only(filter_, family, answer):
    """A vsock (40) reaches the host of a virtual machine from any network namespace."""
    assert verdict(filter_, 41, family) == answer


def test_the_32_bit_twin_is_closed(filter_):
    assert verdict(filter_, seccomp.X32 + READ) == ENOSYS


def test_another_architecture_is_killed(filter_):
    assert verdict(filter_, READ, machine="aarch64") == seccomp.KILL


def test_an_unknown_machine_has_no_filter():
    assert seccomp.program(processes=True, machine="riscv64") is None
