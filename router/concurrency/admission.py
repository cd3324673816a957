"""Whose turn it is on the event loop, so that no burst of requests keeps it from all other work."""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter
from typing import Final

from router.errors import Overloaded

SLICE_SECONDS: Final = 0.01
"""How long requests may compute in one round of the event loop before the others wait in line."""


class Admission:
    """Lets requests in: each at its turn, and never more than ``most`` at the same time.

    A request that finds the event loop free goes on at once. When those of one round of the loop
    have computed for ``SLICE_SECONDS``, the next ones wait in line. One goes on in the next round,
    and twice as many as in the last round whenever that took less than half of the slice. So a line
    comes to an end as soon as those who wait need no more than a slice together.

        await admission.turn()
        with admission:
            await admission.turn(is_inside=True)
            ...  # decide, for some milliseconds
    """

    def __init__(self, most: int) -> None:
        """No request is inside yet."""
        self._most = most
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._round_began: float | None = None
        self._going_on = 0  # from the line, in this round

    async def turn(self, *, is_inside: bool = False) -> None:
        """Go on at once if this round of the loop has time left, else wait in line.

        Args:
            is_inside: whether the request was let in before. Then it goes before those that were
                not.

        Raises:
            Overloaded: see ``__enter__``.
        """
        if self._round_began is None:
            self._begin_round()
        elif self._waiting or perf_counter() - self._round_began > SLICE_SECONDS:
            turn = asyncio.get_running_loop().create_future()
            if is_inside:
                self._waiting.appendleft(turn)
                await turn
            else:
                with self:
                    self._waiting.append(turn)
                    await turn

    def __enter__(self) -> None:
        """Raises ``Overloaded`` when too many requests are inside already."""
        if self._inside >= self._most:
            raise Overloaded(self._inside)
        self._inside += 1

    def __exit__(self, *error: object) -> None:
        self._inside -= 1

    @property
    def empty(self) -> bool:
        """Whether no request is inside."""
        return self._inside == 0

    def _begin_round(self) -> None:
        self._round_began = perf_counter()
        asyncio.get_running_loop().call_soon(self._next_round, self._round_began)

    def _next_round(self, last_began: float) -> None:
        self._round_began = None
        quick = perf_counter() - last_began < SLICE_SECONDS / 2
        most, self._going_on = max(1, 2 * self._going_on) if quick else 1, 0
        while self._waiting and self._going_on < most:
            turn = self._waiting.popleft()
            if not turn.done():  # else its request was cancelled
                turn.set_result(None)
                self._going_on += 1
        if self._going_on:
            self._begin_round()
