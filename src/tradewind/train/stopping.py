"""Handles SIGTERM at once, even while PyTorch waits for a peer inside C++."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from tradewind.train.contract import STOPPED


class StopSignal:
    """`received` becomes True at SIGTERM or Ctrl-C. Before training starts, the process exits: there is nothing to save."""

    def __init__(self) -> None:
        self.received = False
        self.training = False
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _ignore)
        threading.Thread(target=self._watch, args=(reader,), daemon=True).start()

    def _watch(self, reader: int) -> None:
        while os.read(reader, 1):
            self.received = True
            if not self.training:
                os._exit(STOPPED)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing: the wake-up pipe reports the signal, but Python requires a handler."""
    del number, frame
