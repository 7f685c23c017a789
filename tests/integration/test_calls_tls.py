"""An engine behind TLS with a certificate of its own authority (``caSecretRef``)."""

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from hexflow_api import Resources
from hexflow_router.fleet import fleet_of
from hexflow_router.upstream import HttpUpstream
from support.datapath import BODY, a_request, data_path
from support.resources import MODEL, a_pool
from support.serving import RawEngine, answer, completion


async def well(engine: RawEngine, writer: asyncio.StreamWriter, body: object) -> None:
    await answer(writer, completion())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
async def test_an_engine_with_a_private_certificate_is_trusted_by_its_authority_alone(tmp_path: Path) -> None:
    folder = tmp_path / "engine-ca"
    folder.mkdir()
    certificate, key = folder / "ca.crt", tmp_path / "key.pem"
    making = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    made = f"-addext subjectAltName=DNS:localhost -keyout {key} -out {certificate}"
    subprocess.run([*making.split(), *made.split()], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    engine = RawEngine(well, model=MODEL)
    server = await asyncio.start_server(engine._serve, "localhost", 0, ssl=context, family=2)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
    trusting = {"url": url, "caSecretRef": {"name": "engine-ca", "key": "ca.crt"}}
    body = BODY.replace(b"tiny", MODEL.encode())
    async with server:
        fleet = fleet_of(Resources(pools=(a_pool(endpoints=[trusting]),)), tmp_path)
        upstream = HttpUpstream()
        upstream.trust(fleet.trust)
        async with data_path(*fleet.pools, upstream=upstream) as path:
            (exchange,) = path.driver.release([a_request(body=body, model=MODEL)])
            assert (await exchange.read()).status == 200
        wary = fleet_of(Resources(pools=(a_pool(endpoints=[{"url": url}]),)), tmp_path)
        async with data_path(*wary.pools) as path:
            assert path.discovery.watches()[0].reason == "ConnectFailed"
