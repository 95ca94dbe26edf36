#!/usr/bin/env python3
"""Runs a command as the foreground job of the terminal, like a shell.

Ctrl-C sends SIGINT to the whole foreground process group. If make is in this group, it ends by the signal and the shell
reports an error, even if the command stopped in order and exited with 0.
"""

import os
import signal
import sys


def run(terminal: int, command: list[str]) -> int:
    # A process outside of the foreground group gets SIGTTOU when it sets the foreground group.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    group = os.getpgrp()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(terminal, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: os.kill(child, received))
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        os.tcsetpgrp(terminal, group)
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        # Ctrl-Z stopped the job: stop the whole group, and continue with it.
        os.killpg(group, signal.SIGSTOP)
        os.tcsetpgrp(terminal, child)
        os.killpg(child, signal.SIGCONT)


def main() -> None:
    command = sys.argv[1:]
    terminal = sys.stdin.fileno()
    if os.isatty(terminal) and os.tcgetpgrp(terminal) == os.getpgrp():
        sys.exit(run(terminal, command))
    os.execvp(command[0], command)


main()
