"""Become another program that dies together with the process that started it.

Run by path as `python -I -S child.py PARENT_PID PROGRAM [ARGUMENT ...]`, so it imports nothing of ours and starts in a few
milliseconds.  A shim instead of `preexec_fn`: code between fork and exec may hang when the parent has threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask the kernel for SIGKILL at the parent's death, then replace this process by the program."""
    parent, argv = int(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    # The parent may have died before the request reached the kernel; then nobody would send the signal.
    if os.getppid() != parent:
        sys.exit("the parent is gone")
    try:
        os.execv(argv[0], argv)  # noqa: S606 - replacing this process is what it is for
    except OSError as error:
        sys.exit(f"{argv[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
