"""The broker of the embedded mode on a real database; workers on it are in test_celery.py."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.conf import settings
from django.db import connection
from kombu import Connection, Exchange, Queue

from evalsite.embedded.broker import LONGEST_QUEUE_NAME, install, short_queue_name

pytestmark = pytest.mark.django_db


def dsn() -> str:
    name = connection.settings_dict["NAME"]
    return replace(settings.DATABASE_ADDRESS, name=name).dsn()


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Connection]":
    name = connection.settings_dict["NAME"]
    monkeypatch.setattr(settings, "DATABASE_ADDRESS", replace(settings.DATABASE_ADDRESS, name=name))
    options = {
        "conn_string": dsn(),
        "init_extension": False,
        "wait_time_seconds": 0,
        "polling_interval": 0.05,
        "visibility_timeout": 1,
        "use_notify": True,
    }
    with Connection(
        "pgmq://localhost",
        transport="evalsite.embedded.broker:Transport",
        transport_options=options,
    ) as opened:
        yield opened


def test_short_queue_name_keeps_what_fits() -> None:
    assert short_queue_name("celery") == "celery"


def test_short_queue_name_cuts_and_tells_apart() -> None:
    first, second = short_queue_name("x" * 60 + "1"), short_queue_name("x" * 60 + "2")
    assert first != second
    assert max(len(first), len(second)) <= LONGEST_QUEUE_NAME


def test_install_twice_changes_nothing() -> None:
    install(dsn())
    install(dsn())


def test_message_comes_back_until_it_is_acknowledged(broker: "Connection") -> None:
    with broker.SimpleQueue("q" * 60) as queue:
        queue.put({"n": 1})
        assert queue.get(timeout=5).payload == {"n": 1}
        time.sleep(1.1)
        again = queue.get(timeout=5)
        assert again.payload == {"n": 1}
        again.ack()
        time.sleep(1.1)
        with pytest.raises(queue.Empty):
            queue.get(timeout=0.3)


# kombu's way to silence it is not made for threads; processes have none of this.
@pytest.mark.filterwarnings("ignore:list_queues")
def test_queue_is_declared_by_many_at_once(broker: "Connection") -> None:
    def declare(n: int) -> str:
        # A connection each, as each process has one.
        with broker.clone() as own:
            return str(Queue(f"first-{n // 4}")(own.channel()).declare())

    install(dsn())
    with ThreadPoolExecutor(4) as threads:
        declared = list(threads.map(declare, range(24)))
    assert declared == [f"first-{n // 4}" for n in range(24)]


def test_reply_queue_is_found_by_another_process(broker: "Connection") -> None:
    exchange = Exchange("reply.test", type="direct", durable=False)
    queue = Queue("a-reply-queue-of-somebody", exchange, routing_key="k")
    asker = broker.channel()
    bound = queue(asker)
    bound.declare()
    # Another connection, as another process has it: it knows no binding but those of the table.
    with broker.clone() as other:
        answerer = other.channel()
        assert answerer.get_table("reply.test") == [("k", "k", "a-reply-queue-of-somebody")]
        bound.delete()
        assert answerer.get_table("reply.test") == []


def test_ordinary_queue_keeps_its_bindings_in_memory(broker: "Connection") -> None:
    channel = broker.channel()
    Queue("jobs", Exchange("jobs", type="direct"), routing_key="jobs")(channel).declare()
    assert [queue for _, _, queue in channel.get_table("jobs")] == ["jobs"]
