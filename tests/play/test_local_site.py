"""Who is let in: the browser of the person at this machine, and nobody else."""

import errno
import http.client
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from jaxarc.play.local_site import MOST_BYTES, LocalSite, PortError

SERVER = """
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from jaxarc.play.local_site import LocalSite
async def answer(request):
    await request.body()
    return PlainTextResponse("welcome")
app = Starlette(routes=[Route("/", answer), Route("/act", answer, methods=["POST"])])
site = LocalSite(app, 0, ["hub.example:8443"])
print(site.url, site.entrance, flush=True)
site.run()
"""


class Site(NamedTuple):
    addresses: list[str]
    pid: int
    first_peak: int  # bytes of memory
    errors: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    errors = tmp_path_factory.mktemp("site") / "errors"
    with (
        errors.open("w") as file,
        subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=file, text=True) as process,
    ):
        addresses = process.stdout.readline().split()
        yield Site(addresses, process.pid, peak_memory(process.pid), errors)
        process.terminate()
        process.wait(10)


def peak_memory(pid):
    """Bytes of memory that a process had at most; 0 where the system does not say."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@pytest.fixture(scope="module")
def addresses(site):
    return site.addresses


@pytest.fixture(scope="module")
def port(addresses):
    return urlsplit(addresses[0]).port


@pytest.fixture(scope="module")
def home(addresses):
    """The path that the token opens."""
    return urlsplit(addresses[0]).path


@pytest.fixture
def ask(port):
    def ask(path, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    return ask


def change(**headers):
    return {"method": "POST", "body": "{}", "Content_Type": "application/json", **headers}


def test_the_token_opens_the_page_with_strict_headers(ask, home):
    answer = ask(home)
    assert (answer.status, answer.text) == (200, "welcome")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert "Server" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/wrong/", "/act", "//", "/%2e%2e/", "/wr%C3%B6ng/"])
def test_without_the_token_nothing_is_reported(ask, path):
    answer = ask(path)
    assert answer.status == 403
    assert "welcome" not in answer.text


def test_a_token_that_is_nearly_right_is_wrong(ask, home):
    assert ask(home[:-2] + "/").status == 403
    assert ask(home[:-1] + "x/").status == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "[::1]", "0.0.0.0"])
def test_a_name_that_was_rebound_to_this_machine_is_refused(ask, home, host):
    assert ask(home, Host=host).status == 403


def test_localhost_is_this_machine_too(ask, home, port):
    assert ask(home, Host=f"localhost:{port}").status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1:1"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_origins_are_refused(ask, home, origin, method):
    asked = change(Origin=origin) if method == "POST" else {"Origin": origin}
    assert ask(home + ("act" if method == "POST" else ""), **asked).status == 403


def test_a_page_of_another_site_that_sends_no_origin_is_refused(ask, home):
    assert ask(home, Sec_Fetch_Site="cross-site").status == 403
    assert ask(home, Sec_Fetch_Site="same-site").status == 403
    assert ask(home, Sec_Fetch_Site="none").status == 200


def test_a_change_needs_the_own_origin_json_and_a_small_body(ask, home, port):
    own = f"http://127.0.0.1:{port}"
    assert ask(home + "act", **change(Origin=own)).status == 200
    assert ask(home + "act", **change()).status == 403
    assert ask(home + "act", **{**change(Origin=own), "Content_Type": "text/plain"}).status == 415
    assert ask(home + "act", **{**change(Origin=own), "method": "PUT"}).status == 415
    assert ask(home + "act", **{**change(Origin=own), "body": iter([b"{}"])}).status == 200, "says no length"


@pytest.mark.parametrize("length", [MOST_BYTES + 2, 15 * MOST_BYTES])
def test_who_sends_a_long_body_before_it_listens_gets_its_answer(ask, home, port, length):
    def slowly():
        for _ in range(3):
            time.sleep(0.05)  # the site has read the headers, or the part before
            yield b"x" * (length // 3)

    asked = change(Origin=f"http://127.0.0.1:{port}", Content_Length=str(length))
    assert ask(home + "act", **{**asked, "body": slowly()}).status == 413


def test_an_allowed_proxy_is_answered_and_its_name_is_no_more_than_a_name(ask, home):
    assert ask(home, Host="hub.example:8443").status == 200
    assert ask(home, Host="Hub.Example:8443", Origin="https://hub.example:8443").status == 200
    asked = {"Host": "hub.example:8443", "Origin": "https://hub.example:8443"}
    assert ask(home + "act", **change(**asked)).status == 200
    assert ask("/act", **change(**asked)).status == 403, "the token is needed there, too"
    assert ask(home + "act", **change(**{**asked, "Origin": "https://hub.example"})).status == 403
    assert ask(home, Host="hub.example").status == 403
    assert ask(home, Host="hub.example:8443", Sec_Fetch_Site="cross-site").status == 403


def test_the_entrance_leads_in_once(ask, addresses, home):
    path = urlsplit(addresses[1]).path
    first = ask(path)
    assert (first.status, f"/{first.headers['Location']}") == (303, home), (
        "relative, as a proxy may add a path in front"
    )
    assert ask(path).status == 403


def test_only_this_machine_can_connect(port):
    with socket.socket() as other:
        assert other.connect_ex(("127.0.0.1", port)) == 0
    with socket.socket() as other:
        assert other.connect_ex(("127.0.0.2", port)) == errno.ECONNREFUSED


def test_a_taken_port_is_reported_with_what_to_do(port):
    with pytest.raises(PortError, match=f"{port}.*--port"):
        LocalSite(lambda *_: None, port)


def test_a_web_socket_is_never_opened(port, home):
    handshake = (
        f"GET {home} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nOrigin: http://evil.example\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(handshake.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize("path", ["../local_site.py", "%2e%2e/local_site.py", "..%2flocal_site.py", "//etc/passwd"])
def test_no_path_leads_out_of_the_pages(ask, home, path):
    answer = ask(f"{home}{path}")
    assert answer.status in (403, 404)
    assert "import" not in answer.text
    assert "root:" not in answer.text


ENDLESS = 64 * 2**20  # bytes, of a body that nobody reads


def send_long(port, head, chunked):
    """Send a long body, and return the first bytes of the answer; None where the site closed before."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(head.encode())
        part = b"x" * 2**20
        framed = b"%x\r\n%s\r\n" % (len(part), part) if chunked else part
        try:
            for _ in range(ENDLESS // len(part)):
                connection.sendall(framed)
            return connection.recv(12)
        except (ConnectionResetError, BrokenPipeError):
            return None


LONG = {
    "GET": ("GET", "", f"Content-Length: {ENDLESS}"),
    "GET in chunks": ("GET", "", "Transfer-Encoding: chunked"),
    "POST in chunks beside a small length": ("POST", "act", "Content-Length: 2\r\nTransfer-Encoding: chunked"),
}


@pytest.mark.parametrize(("method", "path", "length"), LONG.values(), ids=LONG)
def test_a_body_is_limited_as_it_arrives(port, home, ask, site, method, path, length):
    head = (
        f"{method} {home}{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
        f"Content-Type: application/json\r\n{length}\r\n\r\n"
    )
    assert send_long(port, head, "chunked" in length) in (None, b"HTTP/1.1 413")
    assert peak_memory(site.pid) <= site.first_peak + ENDLESS // 4
    assert ask(home).status == 200


def test_a_client_that_leaves_while_it_posts_is_no_event(port, home, ask, site):
    head = (
        f"POST {home}act HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(head.encode())
    assert ask(home).status == 200
    assert site.errors.read_text() == ""
