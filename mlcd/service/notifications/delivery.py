"""Sends notifications until each has arrived: at least once, and in order for each receiver.

Receivers are served in parallel, by a bounded number of threads for each kind, and each for a limited time: a slow or
dead receiver delays no other.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import groupby

from mlcd.core.errors import LedgerError
from mlcd.service.notifications.abandoned_runs import AbandonedRunDetector
from mlcd.service.notifications.reader import BATCH, NotificationReader
from mlcd.service.notifications.receivers import Kind, Receiver, Receivers
from mlcd.service.notifications.senders import Sender

AT_ONCE = 8
LONGEST_TURN_S = 15.0
"""How long one receiver is served at a time; then the others have their serving."""
_LOG = logging.getLogger("mlcd.service.notifications")


class NotificationDelivery:
    """Delivers notifications. `senders`: how to send to each kind of receiver; `at_once`: threads for each sender."""

    def __init__(
        self, receivers: Receivers, reader: NotificationReader, senders: Mapping[Kind, Sender], at_once: int = AT_ONCE
    ) -> None:
        self._receivers, self._reader, self._senders = receivers, reader, senders
        self._pools = {
            sender: ThreadPoolExecutor(at_once, thread_name_prefix="news") for sender in set(senders.values())
        }
        self._in_progress: dict[int, Future[None]] = {}
        self._read: dict[int, int] = {}
        """The last entry that was read for each receiver. The database gets it with a delivery, and now and then."""
        self._ending = threading.Event()

    async def run_forever(self, every_s: float, abandoned_runs: AbandonedRunDetector) -> None:
        """Check for notifications every `every_s` seconds until cancelled; then finish what is being sent."""
        try:
            while True:
                await asyncio.sleep(every_s)
                for step in (abandoned_runs.look, self.start):
                    try:
                        await asyncio.to_thread(step)
                    except LedgerError:  # the database is unreachable: the next round retries
                        continue
                    except Exception:
                        _LOG.exception("checking for notifications failed; it is retried")
        finally:
            await asyncio.to_thread(self.close)

    def start(self) -> list[Future[None]]:
        """Start to send to each receiver what it has not got yet, unless it is still being served."""
        newest = self._reader.newest()
        self._in_progress = {number: serving for number, serving in self._in_progress.items() if not serving.done()}
        started = []
        for receiver in self._receivers.due():
            if receiver.number not in self._in_progress and self._read_for(receiver) < newest:
                pool = self._pools[self._senders[receiver.kind]]
                serving = self._in_progress[receiver.number] = pool.submit(self._serve_safely, receiver)
                started.append(serving)
        return started

    def deliver(self) -> None:
        """Send to each receiver what it has not got yet, and wait for that."""
        wait(self.start())

    def close(self) -> None:
        """Finish the notifications that are being sent, and end."""
        self._ending.set()
        for pool in self._pools.values():
            pool.shutdown(cancel_futures=True)

    def _read_for(self, receiver: Receiver) -> int:
        return max(receiver.sent, self._read.get(receiver.number, 0))

    def _serve_safely(self, receiver: Receiver) -> None:
        try:
            self._serve(receiver)
        except LedgerError:  # the database is unreachable: the next round retries
            return
        except Exception:
            _LOG.exception("receiver %s: sending failed; it is retried", receiver.number)

    def _serve(self, receiver: Receiver) -> None:
        until_s, sender = time.monotonic() + LONGEST_TURN_S, self._senders[receiver.kind]
        stored, read = receiver.sent, self._read_for(receiver)
        while (page := self._reader.after(read)).end > read:
            for seq, of_entry in groupby(filter(receiver.wants, page.notifications), key=lambda each: each.seq):
                for notification in of_entry:
                    if self._ending.is_set() or time.monotonic() > until_s:
                        return
                    if why := sender.send(receiver, notification):
                        _LOG.warning("receiver %s: %s", receiver.number, why)
                        self._receivers.failed(receiver, why)
                        return
                self._receivers.arrived(receiver, stored := seq)
            read = self._read[receiver.number] = page.end
            if read - stored >= BATCH:
                self._receivers.arrived(receiver, stored := read)
