"""Two local servers to test refreshing: moto's for EC2, and a test server for the Price List API."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

MakeItem = Callable[..., str]


@pytest.fixture
def price_list_item() -> MakeItem:
    """Makes one JSON text of a GetProducts `PriceList`, in the shape the API's documentation gives."""

    def make(instance_type: str, usd: str, *, unit: str = "Hrs", currency: str = "USD") -> str:
        sku, term, rate = "HB5V2X8TXQUTDZBV", "JRTCKXETXF", "6YS6EN2CT7"
        dimension = {
            "unit": unit,
            "endRange": "Inf",
            "description": f"${usd} per On Demand Linux {instance_type} Instance Hour",
            "appliesTo": [],
            "rateCode": f"{sku}.{term}.{rate}",
            "beginRange": "0",
            "pricePerUnit": {currency: usd},
        }
        on_demand = {
            f"{sku}.{term}": {
                "priceDimensions": {f"{sku}.{term}.{rate}": dimension},
                "sku": sku,
                "effectiveDate": "2026-08-01T00:00:00Z",
                "offerTermCode": term,
                "termAttributes": {},
            }
        }
        return json.dumps(
            {
                "product": {
                    "productFamily": "Compute Instance",
                    "attributes": {
                        "instanceType": instance_type,
                        "regionCode": "us-east-1",
                        "operatingSystem": "Linux",
                        "tenancy": "Shared",
                        "preInstalledSw": "NA",
                        "capacitystatus": "Used",
                        "marketoption": "OnDemand",
                    },
                    "sku": sku,
                },
                "serviceCode": "AmazonEC2",
                "terms": {"OnDemand": on_demand},
                "version": "20260801000000",
                "publicationDate": "2026-08-01T00:00:00Z",
            }
        )

    return make


@dataclass
class PricingServer:
    """Answers GetProducts with these pages, one a request, and remembers what it was asked."""

    url: str
    pages: list[list[str]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture
def pricing_server() -> Iterator[PricingServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append(asked)
            page = int(asked.get("NextToken", "0"))
            answer: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": state.pages[page]}
            if page + 1 < len(state.pages):
                answer["NextToken"] = str(page + 1)
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Tests read `requests`; the terminal stays quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = PricingServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    moto_server = pytest.importorskip(
        "moto.server", reason="refreshing is tested against moto: pip install 'mlcd[dev]'"
    )
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def make_client() -> Iterator[Callable[[str, str], Any]]:
    """Makes boto3 clients of a service at an address, with keys that open nothing, and closes them."""
    boto3 = pytest.importorskip("boto3", reason="refreshing needs boto3: pip install 'mlcd[aws]'")
    config = pytest.importorskip("botocore.config").Config(retries={"total_max_attempts": 1})
    clients = []

    def make(service: str, url: str) -> Any:
        client = boto3.client(
            service,
            region_name="us-east-1",
            endpoint_url=url,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=config,
        )
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()
