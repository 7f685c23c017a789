"""A router over emulated instances: in this process for most tests, as processes for those about processes.

Both use a little database and a book of their own, so that a test can say in one line what the model says.
"""

import asyncio
import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
from ruamel.yaml import YAML

from hexflow_emulator import EmulatorOptions, emulator_app, parse
from hexflow_router.assembly import Router, running_router
from hexflow_router.settings import Settings
from support.resources import MODEL, pool_data, workflow_data
from support.serving import serving

WORKFLOW = "shop-questions"
QUESTION = "How many customers live in Berlin?"
UNKNOWN_QUESTION = "What is the airspeed of an unladen swallow?"
BERLINERS = 3
LINKING = '{"tables": [{"table": "customers", "columns": ["id", "city"]}]}'
RIGHT = "SELECT COUNT(*) FROM customers WHERE city = 'Berlin'"
WRONG_COLUMN = "SELECT COUNT(*) FROM customers WHERE town = 'Berlin'"
WRONG_ROWS = "SELECT COUNT(*) FROM customers"


def fenced(sql: str) -> str:
    """Return what a model says around a statement."""
    return f"Customers have a city, so their number is what is asked for.\n```sql\n{sql}\n```"


def an_entry(
    question: str = QUESTION, candidates: Sequence[str] = (RIGHT,), corrected: str = RIGHT
) -> dict[str, Any]:
    """Return an entry of an answer book."""
    return {
        "question": question,
        "answers": {
            "schema-linking": [{"text": LINKING}],
            "candidate": [{"text": text if "SELECT" not in text else fenced(text)} for text in candidates],
            "correction": [{"text": fenced(corrected)}],
            "unit-tests": [{"text": '{"tests": ["counts only customers of Berlin"]}'}],
            "choice": [{"text": '{"passes": [1]}'}],
            "chat": [{"text": "There are three."}],
        },
    }


def make_database(path: Path) -> Path:
    """Write the little database."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT)")
        cities = ["Berlin"] * BERLINERS + ["Tokyo", "Lima"]
        connection.executemany(
            "INSERT INTO customers (name, city) VALUES (?, ?)",
            [(f"customer {number}", city) for number, city in enumerate(cities)],
        )
        connection.commit()
    return path


def write_yaml(path: Path, *documents: Mapping[str, Any]) -> None:
    """Write YAML documents to a file, whole or not at all."""
    draft = path.with_suffix(".draft")
    with draft.open("w", encoding="utf-8") as file:
        YAML(typ="safe").dump_all([dict(document) for document in documents], file)
    draft.replace(path)


def secret_data(name: str, **data: str) -> dict[str, Any]:
    """Return a Secret as its YAML has it."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


@dataclass(frozen=True, slots=True, kw_only=True)
class Laptop:
    """Hold a folder with resources, a database, a book and the list of instances."""

    folder: Path

    @property
    def resources(self) -> Path:
        """The folder of resources."""
        return self.folder / "resources"

    @property
    def book(self) -> Path:
        """The answer book."""
        return self.folder / "book.yaml"

    @property
    def instances(self) -> Path:
        """The file that lists the instances."""
        return self.folder / "instances.json"

    def write_workflow(self, **spec: Any) -> None:
        """Write the workflow, changed by ``spec`` (camelCase)."""
        write_yaml(self.resources / "workflow.yaml", workflow_data(WORKFLOW, **spec))

    def write_pools(self, *pools: Mapping[str, Any]) -> None:
        """Write the pools."""
        write_yaml(self.resources / "pools.yaml", *pools)

    def write_book(self, *entries: Mapping[str, Any]) -> None:
        """Write the answer book."""
        write_yaml(self.book, {"book": 1, "entries": [dict(entry) for entry in entries]})

    def list_instances(self, instances: Mapping[str, tuple[str, str]]) -> None:
        """List instances: id -> pool and URL."""
        listed = [{"id": key, "pool": pool, "url": url} for key, (pool, url) in instances.items()]
        draft = self.instances.with_suffix(".draft")
        draft.write_bytes(msgspec.json.encode({"instances": listed}))
        draft.replace(self.instances)

    def settings(self, **changes: Any) -> Settings:
        """Return settings of a router over this folder."""
        values: dict[str, Any] = {
            "config": (self.resources,),
            "instances": self.instances,
            "port": 0,
            "admin_port": 0,
            "time_scale": 50,
        }
        return Settings(**(values | changes))


def a_laptop(folder: Path, *entries: Mapping[str, Any], **workflow: Any) -> Laptop:
    """Lay out a folder: two emulated pools, the workflow, the database and the book."""
    laptop = Laptop(folder=folder)
    laptop.resources.mkdir(parents=True)
    make_database(laptop.resources / "shop.sqlite")
    laptop.write_pools(
        pool_data("a100", emulated=True),
        pool_data("l40s", gpuType="L40S", tensorParallelSize=4, emulated=True),
    )
    laptop.write_workflow(**workflow)
    write_yaml(laptop.resources / "secret.yaml", secret_data("shop", dsn="sqlite:///shop.sqlite"))
    laptop.write_book(*(entries or (an_entry(),)))
    laptop.list_instances({})
    return laptop


def emulator_options(laptop: Laptop, *arguments: str, time_scale: float = 50) -> EmulatorOptions:
    """Return options of an emulated instance that speaks from the laptop's book."""
    return parse(
        [
            *f"serve {MODEL} --time-scale {time_scale} --scheduling-policy priority".split(),
            *("--book", str(laptop.book), *arguments),
        ],
        environment={},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningRouter:
    """Hold a router that runs in this process, with clients of both of its ports."""

    router: Router
    url: str
    client: httpx.AsyncClient
    admin: httpx.AsyncClient
    engines: Mapping[str, str]
    """URL of each emulated instance."""

    async def fault(self, *faults: str, instance: str | None = None) -> None:
        """Make something go wrong at an instance, or at all."""
        for name, url in self.engines.items():
            if instance in (None, name):
                response = await self.client.post(f"{url}/emulator/faults", json={"faults": list(faults)})
                assert response.status_code < 300, response.text

    async def busy(self) -> int:
        """Return how many calls the engines say they hold."""
        pages = [(await self.client.get(f"{url}/metrics")).text for url in self.engines.values()]
        lines = [line for page in pages for line in page.splitlines()]
        return sum(
            int(float(line.rpartition(" ")[2]))
            for line in lines
            if line.startswith(("vllm:num_requests_running{", "vllm:num_requests_waiting{"))
        )

    async def ask(
        self,
        question: str = QUESTION,
        *,
        workflow: str = WORKFLOW,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> httpx.Response:
        """Ask a question."""
        return await self.client.post(
            f"/v1/workflows/{workflow}/queries",
            json={"question": question, **fields},
            headers=dict(headers or {}),
        )

    async def metric(self, name: str) -> float:
        """Return the sum of a metric's series."""
        page = (await self.admin.get("/metrics")).text
        return sum(
            float(line.rpartition(" ")[2])
            for line in page.splitlines()
            if re.match(rf"{re.escape(name)}[ {{]", line)
        )

    async def until_ready(self) -> None:
        """Wait until the router is ready."""
        async with asyncio.timeout(10):
            while (await self.client.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.02)


@asynccontextmanager
async def a_router(
    laptop: Laptop, *arguments: str, instances: Sequence[str] = ("a100", "l40s"), **settings: Any
) -> AsyncIterator[RunningRouter]:
    """Run a router and one emulated instance for each pool named, all in this process, over real sockets.

    ``arguments`` go to every emulator.
    """
    scale = settings.get("time_scale", 50)
    async with contextlib.AsyncExitStack() as stack:
        engines = {}
        for number, pool in enumerate(instances):
            app = emulator_app(emulator_options(laptop, *arguments, time_scale=scale))
            engines[f"{pool}-{number}"] = await stack.enter_async_context(serving(app))
        laptop.list_instances({name: (name.rpartition("-")[0], url) for name, url in engines.items()})
        router = await stack.enter_async_context(running_router(laptop.settings(**settings)))
        url = await stack.enter_async_context(serving(router.app))
        admin_url = await stack.enter_async_context(serving(router.admin_app))
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=30))
        admin = await stack.enter_async_context(httpx.AsyncClient(base_url=admin_url, timeout=30))
        running = RunningRouter(router=router, url=url, client=client, admin=admin, engines=engines)
        if instances:
            await running.until_ready()
        yield running


async def server_events(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """Yield server-sent events as dictionaries of id, event and data."""
    event: dict[str, Any] = {}
    async for line in response.aiter_lines():
        if not line:
            if event:
                yield event
            event = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            event[name] = msgspec.json.decode(value) if name == "data" else value


# As processes


class Process:
    """A process of ours whose output is kept, and which is gone when its block ends."""

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | dict(environment or {}),
        )
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._lines.append(line)
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    @property
    def output(self) -> str:
        """All that it wrote so far."""
        return "".join(self._lines)

    def wait_for(self, pattern: str, *, seconds: float = 30) -> str:
        """Wait for a line that matches; return its first group."""
        deadline = time.monotonic() + seconds
        seen = 0
        while True:
            with self._news:
                while seen == len(self._lines):
                    left = deadline - time.monotonic()
                    if left <= 0 or (self._process.poll() is not None and not self._reader.is_alive()):
                        raise AssertionError(f"no line with {pattern!r} in:\n{self.output}")
                    self._news.wait(min(left, 0.2))
                line = self._lines[seen]
                seen += 1
            if found := re.search(pattern, line):
                return found[1]

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def wait(self, *, seconds: float = 30) -> int:
        """Wait for its end; return its exit status."""
        status = self._process.wait(seconds)
        self._reader.join(5)
        return status

    def end(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()
        self.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def a_process(*arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Process]:
    """Run Python with arguments for the length of the block."""
    process = Process(*arguments, environment=environment)
    try:
        yield process
    finally:
        process.end()


@contextmanager
def an_emulator_process(
    laptop: Laptop, *arguments: str, time_scale: float = 50
) -> Iterator[tuple[Process, str]]:
    """Run an emulated instance as a process; yield it and its URL."""
    with a_process(
        "-m", "hexflow_emulator", "serve", MODEL, "--host", "127.0.0.1", "--port", "0",
        "--book", str(laptop.book), "--time-scale", str(time_scale), *arguments,
    ) as process:  # fmt: skip
        yield process, process.wait_for(r"at (http://\S+)")


@contextmanager
def a_router_process(
    laptop: Laptop, *arguments: str, time_scale: float = 50
) -> Iterator[tuple[Process, str, str]]:
    """Run a router as a process; yield it and the URLs of its two ports."""
    with a_process(
        "-m", "hexflow_router", "--config", str(laptop.resources), "--instances", str(laptop.instances),
        "--port", "0", "--admin-port", "0", "--time-scale", str(time_scale), *arguments,
    ) as process:  # fmt: skip
        url = process.wait_for(r"Questions and calls at (http://\S+)")
        admin = process.wait_for(r"debugging at (http://\S+)")
        yield process, url, admin


SIGTERM = signal.SIGTERM
