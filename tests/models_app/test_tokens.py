import random

import pytest
import tiktoken
from django.conf import settings as project_settings
from hypothesis import given
from hypothesis import strategies as st

from models_app import tokens
from models_app.model_files import CL100K_RANKS, O200K_RANKS, has_pinned_content
from models_app.tokens import (
    LONGEST_PART,
    context_window_of,
    count_tokens,
    encoding_name_of,
    estimate_tokens,
    truncate_to_tokens,
)
from tests.conftest import needs

LLMS = {"cl100k_base": "", "o200k_base": "gpt-4o"}
PROSE = (
    "Refunds are paid within 14 days, to the card you paid with. Rückerstattungen dauern zwei Wochen! "
    "退款需要多长时间？请提供订单号。 Как вернуть деньги?\n\n| City | Fee |\n|---|---|\n| Oslo | 4.50 |\n\n"
    "```py\ndef total(x_y):\n    return x_y['fee'] + 1\n```\nसदस्यता रद्द करें 👩‍👩‍👧‍👦 — it's done.\r\n"
)


@pytest.fixture(scope="module", autouse=True)
def ranks():
    for file in (CL100K_RANKS, O200K_RANKS):
        there = has_pinned_content(project_settings.SITEWISE_MODELS_DIR / file.name, file)
        needs(there, f"tiktoken's ranks {file.name} (manage.py fetch_models)")


@pytest.fixture
def no_ranks(settings, tmp_path):
    """A models folder without ranks, as before the set-up."""
    tokens.unload()
    settings.SITEWISE_MODELS_DIR = tmp_path
    yield tmp_path
    tokens.unload()


@pytest.mark.parametrize(
    ("llm_name", "encoding"),
    [
        ("", "cl100k_base"),
        ("gpt-4o-mini", "o200k_base"),
        ("openai/gpt-4o", "o200k_base"),
        ("openrouter/openai/gpt-4.1-mini", "o200k_base"),
        ("GPT-5", "o200k_base"),
        ("o3", "o200k_base"),
        ("gpt-oss-20b", "o200k_base"),
        ("ft:gpt-4o-mini:acme::abc", "o200k_base"),
        ("openai/gpt-4o:free", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("text-davinci-003", "cl100k_base"),
        ("meta-llama/Llama-3.1-8B-Instruct", "cl100k_base"),
        ("something nobody knows", "cl100k_base"),
    ],
)
def test_the_encoding_goes_by_the_name_of_the_llm(llm_name, encoding):
    assert encoding_name_of(llm_name) == encoding


def test_each_encoding_counts_its_own_way():
    assert count_tokens("hello world") == 2
    assert count_tokens("退款需要多长时间") > count_tokens("退款需要多长时间", "gpt-4o")
    assert count_tokens("") == count_tokens("", "gpt-4o") == 0


def test_special_tokens_in_a_page_count_as_text(case):
    wanted = case("T01")
    for encoding in wanted["input"]["encodings"]:
        llm_name = LLMS[encoding]
        for marker, count in wanted["expected"]["count_of"].items():
            assert count_tokens(marker, llm_name) == count
        text = wanted["input"]["text"]
        assert count_tokens(text, llm_name) > 15
        assert truncate_to_tokens(text, 1000, llm_name) == text


@pytest.mark.parametrize("llm_name", LLMS.values())
def test_a_very_long_run_of_one_character_is_counted_and_cut(case, llm_name):
    wanted = case("T03")
    runs = ["a" * 100_000, "^" * 1_000_000, " " * 1_000_000, "\t " * 500_000, "退" * 100_000, "\u0301" * 300_000]
    for text in runs:
        assert count_tokens(text, llm_name) > 0
        cut = truncate_to_tokens(text, 100, llm_name)
        assert text.startswith(cut)
        assert count_tokens(cut, llm_name) <= 100
    assert count_tokens(runs[0], llm_name) == wanted["expected"]["count"]["a*100000"]


@pytest.mark.parametrize("encoding", LLMS)
def test_a_long_text_counts_exactly_as_in_one_piece(encoding, settings, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(settings.SITEWISE_MODELS_DIR))
    lines = PROSE.splitlines(keepends=True)
    text = "".join(random.Random(1).choices(lines, k=4000))
    assert len(text) > 5 * LONGEST_PART
    exact = len(tiktoken.get_encoding(encoding).encode_ordinary(text))
    assert count_tokens(text, LLMS[encoding]) == exact


SIGNS = [*"\n\n\n ./'_`*|-9aS\t\xa0\x85\u2028é—…日", "\n\n", "\r\n", "'s", "``", "**", "()", "word", "e\u0301", "²"]


@pytest.mark.parametrize("encoding", LLMS)
def test_paragraphs_that_are_counted_one_by_one_count_as_in_one_piece(encoding, settings, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(settings.SITEWISE_MODELS_DIR))
    whole, choose = tiktoken.get_encoding(encoding), random.Random(2)
    for _ in range(20_000):
        text = "".join(choose.choices(SIGNS, k=choose.randint(1, 10)))
        assert count_tokens(text, LLMS[encoding]) == len(whole.encode_ordinary(text)), repr(text)


def test_the_count_of_joined_parts_is_not_the_sum_of_their_counts():
    parts = ["foo", "bar", "Hello", " wor", "ld"]
    assert sum(count_tokens(part, "gpt-4o") for part in parts) == 5
    assert count_tokens("".join(parts), "gpt-4o") == 3


@given(st.text(max_size=80) | st.text("aé退👩‍ \n'", max_size=80), st.integers(0, 30), st.sampled_from([*LLMS.values()]))
def test_a_cut_text_is_a_beginning_that_fits(text, limit, llm_name):
    cut = truncate_to_tokens(text, limit, llm_name)
    assert text.startswith(cut)
    assert count_tokens(cut, llm_name) <= limit
    assert cut == text or count_tokens(text, llm_name) > limit


def test_a_cut_uses_the_room_there_is():
    long = PROSE * 300
    cut = truncate_to_tokens(long, 20_000)
    assert len(cut) > LONGEST_PART
    assert 19_997 <= count_tokens(cut) <= 20_000
    assert truncate_to_tokens(long, 0) == ""


def test_a_cut_leaves_no_broken_character():
    family = "👩‍👩‍👧‍👦" * 5
    for limit in range(30):
        assert "\ufffd" not in truncate_to_tokens(family, limit)


def test_half_a_surrogate_pair_is_counted_and_cut():
    text = "before \ud83d after " * 20
    assert count_tokens(text) > 20
    assert text.startswith(truncate_to_tokens(text, 10))


def test_after_unloading_counts_are_the_same():
    before = count_tokens(PROSE)
    tokens.unload()
    assert count_tokens(PROSE) == before


def test_without_ranks_the_count_is_an_estimate_and_the_log_says_what_to_run(no_ranks, caplog):
    texts = [PROSE, *PROSE.splitlines(), "退款需要多长时间？", "a", "1234567", "सदस्यता रद्द करें", "👩‍👩‍👧‍👦"]
    estimates = [count_tokens(text) for text in texts]
    assert "fetch_models" in caplog.text
    assert estimates == [estimate_tokens(text) for text in texts]


@pytest.mark.parametrize("llm_name", LLMS.values())
def test_the_estimate_is_above_the_true_count_and_below_three_times_it(llm_name):
    for text in [PROSE, *PROSE.splitlines(), "Refunds are paid within 14 days. " * 50, "退款需要多长时间？" * 20]:
        assert count_tokens(text, llm_name) <= estimate_tokens(text) <= 3 * count_tokens(text, llm_name) + 2


def test_without_ranks_a_cut_keeps_to_the_estimate(no_ranks):
    cut = truncate_to_tokens(PROSE, 30)
    assert PROSE.startswith(cut)
    assert 28 <= estimate_tokens(cut) <= 30
    assert truncate_to_tokens(PROSE, 10_000) == PROSE
    assert truncate_to_tokens(PROSE, 0) == ""


def test_a_damaged_rank_file_is_neither_used_nor_removed(no_ranks):
    damaged = no_ranks / CL100K_RANKS.name
    damaged.write_bytes(b"IQ== 0\n")
    assert count_tokens(PROSE) == estimate_tokens(PROSE)
    assert damaged.read_bytes() == b"IQ== 0\n"


@pytest.mark.parametrize(
    ("llm_name", "window"),
    [
        ("", 8_192),
        ("unheard-of-llm", 8_192),
        ("gpt-4", 8_192),
        ("gpt-4o-mini", 128_000),
        ("openai/gpt-4.1-nano", 1_047_576),
        ("gpt-3.5-turbo-0125", 16_385),
        ("ft:gpt-4o-mini:acme::abc", 128_000),
        ("anthropic/claude-sonnet-4", 200_000),
        ("llama3.1:8b", 131_072),
        ("llama3:8b", 8_192),
        ("mistralai/Mistral-7B-Instruct-v0.3", 32_768),
        ("mistral-large-latest", 131_072),
        ("smollm2-135m-instruct", 8_192),
    ],
)
def test_the_context_window_goes_by_the_family_of_the_llm(llm_name, window):
    assert context_window_of(llm_name) == window
