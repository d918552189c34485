"""Coroutines, tasks and asynchronous generators."""

import asyncio
import contextlib


class Turn:
    """An awaitable that lets other tasks run once."""

    def __await__(self):
        yield


class Resource:
    def __init__(self, log):
        self.log = log

    async def __aenter__(self):
        self.log.append("in")
        await Turn()
        return self

    async def __aexit__(self, *_exception):
        await Turn()
        self.log.append("out")
        return False


class Countdown:
    def __init__(self, start):
        self.left = start

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.left:
            raise StopAsyncIteration
        self.left -= 1
        await Turn()
        return self.left


@contextlib.asynccontextmanager
async def managed():
    await Turn()
    try:
        yield "managed"
    finally:
        await Turn()


async def numbers(limit):
    try:
        for number in range(limit):
            await Turn()
            yield number
    finally:
        await Turn()


async def work(number):
    for _ in range(number):
        await asyncio.sleep(0)
    return number


async def fail():
    await Turn()
    raise ValueError("fail")


async def cancelled():
    try:
        await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        await Turn()
        raise


async def deep(depth):
    return await deep(depth - 1) if depth else await work(2)


async def everything():
    log = []
    assert await asyncio.gather(*(work(number) for number in range(4))) == [0, 1, 2, 3]
    results = await asyncio.gather(fail(), work(1), return_exceptions=True)
    assert isinstance(results[0], ValueError)
    async with Resource(log), managed() as name:
        assert name == "managed"
    assert [number async for number in numbers(3)] == [0, 1, 2]
    assert [number async for number in Countdown(3)] == [2, 1, 0]
    async with contextlib.aclosing(numbers(5)) as stream:
        async for number in stream:
            if number == 2:
                break
    task = asyncio.create_task(cancelled())
    await Turn()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert await deep(5) == 2
    return log


def by_hand():
    """Runs a coroutine without a loop."""
    coroutine, turns = deep(3), 0
    try:
        while True:
            coroutine.send(None)
            turns += 1
    except StopIteration as stop:
        assert stop.value == 2
    closed = fail()
    closed.send(None)
    closed.close()
    return turns


def main():
    assert asyncio.run(everything()) == ["in", "out"]
    assert by_hand() == 2
