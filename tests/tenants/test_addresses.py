import ipaddress
import socket
import ssl
from urllib.parse import urlsplit

import httpcore2
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.addresses import (
    AddressPolicy,
    AddressRefused,
    crawler_policy,
    guarded_async_http_client,
    guarded_http_client,
    operators_policy,
    provider_policy,
    refuse_url,
    system_resolver,
)
from tests.fakes.certificates import Authority
from tests.fakes.website import Answer, Website, redirect

PUBLIC = "93.184.216.34"


def answers(*rounds: list[str]):
    """Return a resolver that gives these answers one after the other, the last one for ever."""
    waiting = list(rounds)
    return lambda host, port: waiting.pop(0) if len(waiting) > 1 else waiting[0]


class Line:
    """A network whose every address leads to one website; it remembers which addresses were dialled."""

    def __init__(self, site: Website):
        self.dialled: list[str] = []
        self._port = site.port

    def dial(self, address: str, port: int, timeout_seconds: float) -> socket.socket:
        self.dialled.append(address)
        return socket.create_connection(("127.0.0.1", self._port), timeout_seconds)


class SyncLine(httpcore2.NetworkBackend, Line):
    def connect_tcp(self, host, port, *args, **kwargs):
        self.dialled.append(host)
        return httpcore2.SyncBackend().connect_tcp("127.0.0.1", self._port, *args, **kwargs)


class AsyncLine(httpcore2.AsyncNetworkBackend, Line):
    async def connect_tcp(self, host, port, *args, **kwargs):
        self.dialled.append(host)
        return await httpcore2.AnyIOBackend().connect_tcp("127.0.0.1", self._port, *args, **kwargs)


def refusal_of(url: str, policy: AddressPolicy | None = None, look_up: bool = False) -> str | None:
    try:
        refuse_url(url, policy or AddressPolicy(resolver=answers([PUBLIC])), look_up)
    except AddressRefused as refused:
        return str(refused)
    return None


def test_all_spellings_of_the_case_are_refused_before_anything_is_sent(case):
    urls = case("X02")["input"]["urls"]
    assert [url for url in urls if refusal_of(url) is None] == []


def test_each_numeric_spelling_of_the_case_is_also_refused_at_connecting(case):
    for url in case("X02")["input"]["urls"]:
        host = urlsplit(url.replace("\\", "/")).hostname
        if host and url.startswith("http"):
            with pytest.raises(AddressRefused):
                AddressPolicy(resolver=system_resolver).connect(host, 80, 1.0)


@given(st.ip_addresses(v=4).filter(lambda address: address.is_private))
def test_a_private_address_is_refused_as_integer_as_hexadecimal_and_mapped(address):
    mapped = f"[{ipaddress.IPv6Address(0xFFFF << 32 | int(address))}]"
    for host in (str(address), str(int(address)), hex(int(address)), mapped):
        assert refusal_of(f"http://{host}/")


@pytest.mark.parametrize(
    "url",
    [
        "https://ex.test/",
        "http://ex.test:8080/a?b=c#d",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]/",
        "https://münchen.de/",
    ],
)
def test_ordinary_addresses_are_not_refused(url):
    assert refusal_of(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ex.test",
        "//ex.test/",
        "ftp://ex.test/",
        "javascript:alert(1)",
        "http://",
        "http:///path",
        "http://ex.test:99999/",
        "http://ex.test:port/",
        "http://[::1/",
        "http://300.1.1.1/",
        "http://%31%32%37.0.0.1/",
        "http://user:password@ex.test/",
        "http://ex.test /",
        "http://ex.test\n/",
        "http://sub.localhost/",
    ],
)
def test_malformed_and_foreign_addresses_are_refused_with_a_reason(url):
    assert refusal_of(url)


def test_a_name_is_looked_up_early_only_on_request_and_one_that_leads_nowhere_is_not_refused():
    inside = AddressPolicy(resolver=answers(["10.0.0.7"]))
    assert refusal_of("https://intranet.test/", inside) is None
    assert "10.0.0.7" in refusal_of("https://intranet.test/", inside, look_up=True)

    def unknown(host, port):
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    assert refusal_of("https://ex.test/", AddressPolicy(resolver=unknown), look_up=True) is None


def test_loopback_opens_on_request_and_nothing_else_does():
    policy = AddressPolicy(allow_loopback=True)
    for url in ("http://localhost:8000/", "http://127.0.0.1/", "http://[::1]/", "http://2130706433/"):
        assert refusal_of(url, policy) is None
    for url in ("http://0.0.0.0/", "http://10.0.0.1/", "http://169.254.169.254/", "http://[::]/"):
        assert refusal_of(url, policy)


def test_a_listed_host_is_open_by_name_or_by_name_and_port_only():
    policy = AddressPolicy(
        allowed_hosts=frozenset({"llm.internal:8080", "gpu.internal", "[fd00::5]:80"}), resolver=answers(["10.0.0.5"])
    )
    assert policy.resolve("LLM.internal.", 8080) == ["10.0.0.5"]
    assert policy.resolve("gpu.internal", 9999) == ["10.0.0.5"]
    assert policy.resolve("fd00::5", 80) == ["fd00::5"]
    for host, port in (("llm.internal", 22), ("fd00::5", 81), ("other.internal", 8080), ("10.0.0.5", 8080)):
        with pytest.raises(AddressRefused):
            policy.resolve(host, port)


@pytest.mark.parametrize("answer", [[PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "fd00::1"], ["garbage"]])
def test_an_answer_that_holds_a_closed_address_is_refused_as_a_whole(answer):
    with Website() as site:
        line = Line(site)
        with pytest.raises(AddressRefused) as refused:
            AddressPolicy(resolver=answers(answer), dial=line.dial).connect("mixed.test", 80, 1.0)
    assert refused.value.host == "mixed.test"
    assert refused.value.address in answer
    assert line.dialled == []


def test_the_checked_address_is_the_one_that_is_dialled(case):
    assert case("X04")["expected"]["connected_to"] == [PUBLIC]
    with Website() as site:
        line = Line(site)
        policy = AddressPolicy(resolver=answers([PUBLIC], ["127.0.0.1"]), dial=line.dial)
        policy.connect("rebind.test", 80, 1.0).close()
        with pytest.raises(AddressRefused):
            policy.connect("rebind.test", 80, 1.0)
    assert line.dialled == [PUBLIC]


def test_the_next_address_is_tried_when_one_does_not_answer():
    dialled = []

    def dial(address, port, timeout_seconds):
        dialled.append(address)
        if len(dialled) < 3:
            raise ConnectionRefusedError(111, "Connection refused")
        return socket.socket()

    policy = AddressPolicy(resolver=answers(["1.1.1.1", "2606:4700::1111", "8.8.8.8"]), dial=dial)
    policy.connect("ex.test", 80, 1.0).close()
    assert dialled == ["1.1.1.1", "2606:4700::1111", "8.8.8.8"]


def test_a_name_without_any_address_is_a_failed_look_up():
    with pytest.raises(socket.gaierror):
        AddressPolicy(resolver=answers([])).resolve("ex.test", 80)
    with pytest.raises(socket.gaierror):
        system_resolver("a" * 70 + ".test", 80)


def test_policies_follow_the_settings(settings):
    settings.SITEWISE_ALLOW_LOOPBACK = False
    settings.SITEWISE_PROVIDER_HOSTS = frozenset({"Ollama.internal:11434"})
    settings.SITEWISE_LLM_URL = "http://127.0.0.1:9001/v1"
    settings.SITEWISE_EMBEDDING_URL = "https://vectors.internal/v1"
    assert crawler_policy() == AddressPolicy()
    policy = provider_policy()
    assert refusal_of("http://ollama.internal:11434/v1", policy) is None
    assert refusal_of("http://127.0.0.1:9001/v1", policy), "the operator's own provider is not the tenants' to reach"
    assert not policy.is_listed("vectors.internal", 443)
    own = operators_policy()
    assert refusal_of("http://127.0.0.1:9001/v1", own) is None
    assert own.is_listed("vectors.internal", 443)
    assert not own.is_listed("vectors.internal", 80)
    assert refusal_of("http://127.0.0.1:9002/", own)
    settings.SITEWISE_ALLOW_LOOPBACK = True
    assert crawler_policy().allow_loopback
    assert provider_policy().allow_loopback


def test_the_guarded_client_connects_to_the_checked_address_and_keeps_the_host_name():
    with Website({"/v1/models": "ok"}) as site:
        line = SyncLine(site)
        policy = AddressPolicy(resolver=answers([PUBLIC], ["127.0.0.1"]))
        with guarded_http_client(policy, 5.0, network=line) as client:
            assert client.get("http://rebind.test/v1/models").text == "ok"
        with guarded_http_client(policy, 5.0, network=line) as client, pytest.raises(AddressRefused):
            client.get("http://rebind.test/v1/models")
    assert line.dialled == [PUBLIC]
    assert [request.host for request in site.requests] == ["rebind.test"]


async def test_the_asynchronous_guarded_client_does_the_same():
    with Website({"/v1/models": "ok"}) as site:
        line = AsyncLine(site)
        policy = AddressPolicy(resolver=answers([PUBLIC], ["127.0.0.1"]))
        async with guarded_async_http_client(policy, 5.0, network=line) as client:
            assert (await client.get("http://rebind.test/v1/models")).text == "ok"
        async with guarded_async_http_client(policy, 5.0, network=line) as client:
            with pytest.raises(AddressRefused):
                await client.get("http://rebind.test/v1/models")
    assert line.dialled == [PUBLIC]


async def test_guarded_clients_stream_a_posted_answer_follow_no_redirect_and_use_no_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    policy = AddressPolicy(allow_loopback=True)
    pieces = Answer(pieces=[b"one ", b"two"], content_type="text/plain")
    with Website({"/stream": pieces, "/go": redirect("http://10.0.0.1/")}) as site:
        with guarded_http_client(policy, 5.0) as client:
            assert client.get(site.url("/go")).status_code == 302
            with client.stream("POST", site.url("/stream"), json={"a": 1}) as response:
                assert b"".join(response.iter_bytes()) == b"one two"
        async with (
            guarded_async_http_client(policy, 5.0) as client,
            client.stream("POST", site.url("/stream"), json={"a": 1}) as response,
        ):
            assert b"".join([part async for part in response.aiter_bytes()]) == b"one two"
    assert [request.body for request in site.requests] == [b"", b'{"a":1}', b'{"a":1}']


async def test_guarded_clients_name_failures_as_their_callers_know_them():
    def unknown(host, port):
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    policy = AddressPolicy(allow_loopback=True, resolver=unknown)
    with guarded_http_client(policy, 0.2) as client:
        with pytest.raises(httpx2.ConnectError):
            client.get("http://ex.test/")
        with Website(
            {"/slow": Answer(pieces=[b"a", b"b"], pause_seconds=1.0), "/cut": Answer(is_dropped=True)}
        ) as site:
            with pytest.raises(httpx2.ReadTimeout):
                client.get(site.url("/slow"))
            with pytest.raises(httpx2.RemoteProtocolError):
                client.get(site.url("/cut"))
            async with guarded_async_http_client(policy, 0.2) as async_client:
                with pytest.raises(httpx2.ReadTimeout):
                    await async_client.get(site.url("/slow"))
                with pytest.raises(httpx2.ConnectError):
                    await async_client.get("http://ex.test/")


async def test_guarded_clients_verify_the_certificate_by_the_host_name(tmp_path):
    authority = Authority(tmp_path)
    policy = AddressPolicy(resolver=answers([PUBLIC]))
    tls = ssl.create_default_context(cafile=authority.file)
    with Website({"/": "secret"}, tls=authority.server_context("good.test")) as site:
        line = SyncLine(site)
        with guarded_http_client(policy, 5.0, tls=tls, network=line) as client:
            assert client.get("https://good.test/").text == "secret"
            with pytest.raises(httpx2.ConnectError, match="certificate"):
                client.get("https://evil.test/")
        async with guarded_async_http_client(policy, 5.0, tls=tls, network=AsyncLine(site)) as client:
            assert (await client.get("https://good.test/")).text == "secret"
            with pytest.raises(httpx2.ConnectError, match="certificate"):
                await client.get("https://evil.test/")
    assert authority.names_asked[:2] == ["good.test", "evil.test"]
