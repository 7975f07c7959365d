"""The state of a stream, saved by a child process while the stream goes on.

A state of a million nodes takes seconds to write. A child sees it as it was when the child began (the operating system
copies what the stream changes since), and writes that, so that the stream waits only for the child to begin. The child
ends with the stream, however that ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import warnings

from censnet.runs.stream import Stream

SHARE = 20  # of the time, at most one part in so many is spent on saving
POLL = 0.05  # seconds between two looks at whether a child has ended
_SET_PARENT_DEATH_SIGNAL = 1  # of prctl(2)


class StreamSaver:
    """Saves the state of a stream to its directory when it is due.

    Args:
        stream: with a directory.
        every: seconds between two savings, or more where they take long; 0: after each line, before the next one.

    Example:
        >>> with StreamSaver(stream, every=10.0) as saver:  # doctest: +SKIP
        ...     for line in lines:
        ...         stream.feed(line)
        ...         saver.save_if_due()
    """

    def __init__(self, stream: Stream, every: float) -> None:
        self.stream, self.every = stream, every
        self._saved = stream.position.lines
        self._began = time.monotonic()
        self._look_at, self._child = self._began + every, 0

    def __enter__(self) -> StreamSaver:
        return self

    def __exit__(self, *_: object) -> None:
        """Save what was fed since. A child that still writes is ended: what it has is older."""
        if self._child:
            os.kill(self._child, signal.SIGKILL)
            if self._has_failed(os.waitpid(self._child, 0)[1]):
                self._saved = -1
        if self.stream.position.lines > self._saved:
            self.stream.save()

    def save_if_due(self) -> None:
        """Save if it is time to, in a child where there can be one."""
        now = time.monotonic()
        if now < self._look_at:
            return
        if self._child and not self._has_ended(now):
            self._look_at = now + POLL
        elif now >= self._look_at:
            self._began = now
            if self.every and can_fork():
                self._fork()
                self._look_at = now + POLL
            else:
                self._save()

    # -- inside -------------------------------------------------------------------------------------------------------

    def _save(self) -> None:
        self.stream.save()
        self._saved = self.stream.position.lines
        self._wait(time.monotonic())

    def _wait(self, now: float) -> None:
        """Until the next saving, after one that has just ended."""
        self._look_at = now + max(self.every, SHARE * (now - self._began) if self.every else 0)

    def _fork(self) -> None:
        parent, number = os.getpid(), self.stream.reserve_save()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads of libraries, none of which the child uses
            child = os.fork()
        if child == 0:
            code = 1
            try:
                ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
                if os.getppid() == parent:
                    self.stream.save_as(number)
                    code = 0
            finally:
                os._exit(code)
        self._child, self._saved = child, self.stream.position.lines

    def _has_ended(self, now: float) -> bool:
        """Whether the child has ended; where it could not save, the stream does, and says why if it cannot either."""
        child, status = os.waitpid(self._child, os.WNOHANG)
        if not child:
            return False
        self._child = 0
        if self._has_failed(status):
            self._save()
        else:
            self._wait(now)
        return True

    def _has_failed(self, status: int) -> bool:
        return os.waitstatus_to_exitcode(status) != 0


def can_fork() -> bool:
    """Whether a child can be made that ends with its parent, and no thread of ours would be missing in it."""
    return sys.platform == "linux" and threading.active_count() == 1
