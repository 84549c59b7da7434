"""Sends news until each has arrived: at least once, and in order for each receiver.

Receivers are served at the same time, by a bounded number of threads for each way of sending, and each for a while at
most: one that is slow or dead holds up no other.
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
from mlcd.service.news.left_behind import LeftBehind
from mlcd.service.news.reading import BATCH, NewsReader
from mlcd.service.news.receivers import Kind, Receiver, Receivers
from mlcd.service.news.ways import Way

AT_ONCE = 8
TURN_S = 15.0
"""How long one receiver is served at a time; then it waits behind the others."""
_LOG = logging.getLogger("mlcd.service.news")


class Courier:
    """Sends what is due. `ways`: how to send to each kind of receiver; `at_once`: threads for each way."""

    def __init__(
        self, receivers: Receivers, reader: NewsReader, ways: Mapping[Kind, Way], at_once: int = AT_ONCE
    ) -> None:
        self._receivers, self._reader, self._ways = receivers, reader, ways
        self._pools = {way: ThreadPoolExecutor(at_once, thread_name_prefix="news") for way in set(ways.values())}
        self._turns: dict[int, Future[None]] = {}
        self._read: dict[int, int] = {}
        """How far the ledger was read for each receiver. Stored only with what arrived, and now and then."""
        self._ending = threading.Event()

    async def run_forever(self, every_s: float, left_behind: LeftBehind) -> None:
        """Look for news every so often, until cancelled; then what is being sent is waited for."""
        try:
            while True:
                await asyncio.sleep(every_s)
                for step in (left_behind.look, self.begin):
                    try:
                        await asyncio.to_thread(step)
                    except LedgerError:  # the database is away: it is looked for again
                        continue
                    except Exception:
                        _LOG.exception("news could not be looked for; it is tried again")
        finally:
            await asyncio.to_thread(self.close)

    def begin(self) -> list[Future[None]]:
        """Begin to send to each receiver what it has not had; those that are still being served go on."""
        newest = self._reader.newest()
        self._turns = {number: turn for number, turn in self._turns.items() if not turn.done()}
        begun = []
        for receiver in self._receivers.due():
            if receiver.number not in self._turns and self._read_for(receiver) < newest:
                pool = self._pools[self._ways[receiver.kind]]
                turn = self._turns[receiver.number] = pool.submit(self._turn, receiver)
                begun.append(turn)
        return begun

    def deliver(self) -> None:
        """Send to each receiver what it has not had, as long as it takes it."""
        wait(self.begin())

    def close(self) -> None:
        """End after what is being sent now."""
        self._ending.set()
        for pool in self._pools.values():
            pool.shutdown(cancel_futures=True)

    def _read_for(self, receiver: Receiver) -> int:
        return max(receiver.sent, self._read.get(receiver.number, 0))

    def _turn(self, receiver: Receiver) -> None:
        try:
            self._serve(receiver)
        except LedgerError:  # the database is away: it is tried again
            return
        except Exception:
            _LOG.exception("receiver %s: news could not be sent; it is tried again", receiver.number)

    def _serve(self, receiver: Receiver) -> None:
        until_s, way = time.monotonic() + TURN_S, self._ways[receiver.kind]
        stored, read = receiver.sent, self._read_for(receiver)
        while (page := self._reader.after(read)).end > read:
            for seq, of_entry in groupby(filter(receiver.wants, page.news), key=lambda news: news.seq):
                for news in of_entry:
                    if self._ending.is_set() or time.monotonic() > until_s:
                        return
                    if why := way.send(receiver, news):
                        _LOG.warning("receiver %s: %s", receiver.number, why)
                        self._receivers.failed(receiver, why)
                        return
                self._receivers.arrived(receiver, stored := seq)
            read = self._read[receiver.number] = page.end
            if read - stored >= BATCH:
                self._receivers.arrived(receiver, stored := read)
