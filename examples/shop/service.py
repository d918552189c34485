"""Answers requests in several threads, and keeps the reports."""

import hashlib
import queue
import sqlite3
import threading
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import reports
import store

THREADS = 2


class Request:
    def __init__(self, customer: int, form: str) -> None:
        self.customer = customer
        self.form = form


@dataclass
class Answer:
    tag: str
    body: bytes


#: Reports by request.
made: dict[Request, bytes] = {}


def answer_all(folder: Path, requests: Iterable[tuple[int, str]]) -> list[Answer]:
    waiting: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
    answers: list[Answer] = []
    threads = [
        threading.Thread(target=work, args=(folder, waiting, answers), name=f"worker {number}")
        for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for customer, form in requests:
        waiting.put(Request(customer, form))
    for _ in threads:
        waiting.put(None)
    for thread in threads:
        thread.join()
    return answers


def work(folder: Path, waiting: "queue.SimpleQueue[Request | None]", answers: list[Answer]) -> None:
    connection = store.connect(folder)
    while (request := waiting.get()) is not None:
        answers.append(answer(connection, request))
    connection.close()


def answer(connection: sqlite3.Connection, request: Request) -> Answer:
    body = report_for(connection, request)
    tag = hashlib.sha256(body).hexdigest()[:16]
    return Answer(tag, zlib.compress(body, 6))


def report_for(connection: sqlite3.Connection, request: Request) -> bytes:
    if request not in made:
        made[request] = reports.render(connection, request.customer, request.form)
    return made[request]


def checksum(answers: list[Answer]) -> str:
    """Returns a checksum of all answers, independent of their order."""
    return hashlib.sha256("".join(sorted(answer.tag for answer in answers)).encode()).hexdigest()[:16]
