"""SIGTERM: noticed at once, even while PyTorch waits inside C++ for a peer."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from tradewind.train.contract import STOPPED


class Stopping:
    """asked turns True at the first SIGTERM (or Ctrl-C). Before training there is nothing to save: the process ends."""

    def __init__(self) -> None:
        self.asked = False
        self.training = False
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _noted)
        threading.Thread(target=self._watch, args=(reader,), daemon=True).start()

    def _watch(self, reader: int) -> None:
        while os.read(reader, 1):
            self.asked = True
            if not self.training:
                os._exit(STOPPED)


def _noted(number: int, frame: FrameType | None) -> None:
    """The signal is reported through the wake-up pipe; Python needs some handler for that."""
    del number, frame
