import threading

import numpy as np
import pytest

from models_app.e5_pack import E5Pack
from models_app.local_embedder import LocalEmbedder
from models_app.model_files import ModelFilesMissing, embedder_files
from models_app.pieces import Pieces
from tests.conftest import needs_local_embedder
from tests.models_app.e5_reference import ReferenceNetwork, ReferencePieces

TEXTS = {
    "Latin": "Refunds are paid within 14 days. Rückerstattungen dauern zwei Wochen, naïvement.",
    "Cyrillic": "Как отменить подписку и вернуть деньги за заказ?",
    "Chinese": "退款需要多长时间？请提供订单号。",
    "Arabic": "كيف أعيد ضبط جهاز التوجيه إلى إعدادات المصنع؟",
    "Devanagari": "सदस्यता रद्द करने में कितना समय लगता है?",
    "Hangul": "환불 정책은 다음과 같습니다.",
    "Thai": "วิธีรีเซ็ตรหัสผ่านของบัญชีผู้ใช้",
    "code": "def total(x_y): return f'{x_y:>10}'  # ERR-1234, C++, 3.14",
    "long": "The router keeps its settings; press the button for ten seconds to reset them. " * 40,
}
JUNK = [
    "",
    " \t\n",
    "𐍈𐍉",
    "日本語𐍈𐍈text",
    "x" * 300,
    "ﷺ" * 30,
    "e\u0301 \u200b\ufeff",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "\x00\x01",
    "a\ud800b",
]


@pytest.fixture(scope="module")
def pack():
    needs_local_embedder()
    return E5Pack(embedder_files().weights)


@pytest.fixture(scope="module")
def pieces(pack):
    return Pieces(pack, embedder_files().piece_index)


@pytest.fixture(scope="module")
def embedder():
    needs_local_embedder()
    return LocalEmbedder(embedder_files())


@pytest.fixture(scope="module")
def network(pack):
    return ReferenceNetwork(pack)


@pytest.fixture(scope="module")
def plain_search(pack):
    return ReferencePieces(pack)


@pytest.mark.parametrize("script", TEXTS)
def test_a_vector_agrees_with_the_network_in_full_precision(embedder, pieces, network, script):
    text = TEXTS[script]
    exact = network.embed(pieces.ids(f"passage: {text}", embedder.token_limit))
    assert float(embedder.embed_passages([text])[0] @ exact) > 0.997


@pytest.mark.parametrize("text", [*TEXTS.values(), *JUNK[:-1]])
def test_pieces_are_those_of_a_plain_search_over_the_vocabulary(plain_search, pieces, text):
    assert pieces.ids(text, 10_000) == plain_search.ids(text.replace("e\u0301", "é"))


def test_pieces_are_those_that_sentencepiece_gives(pieces):
    # Taken from SentencePiece itself, loaded with the same vocabulary.
    assert pieces.ids("Hello world, wie geht es dir? 日本語のテキスト", 100) == [
        *(0, 35378, 8999, 4, 1225, 8644, 198, 5402, 32, 6, 98449, 154, 193508, 2)
    ]


def test_neighbouring_unknown_characters_are_one_unknown_piece(pack, pieces):
    blank = 6
    assert pieces.ids("𐍈𐍉𐍊", 100) == [pack.begin, blank, pack.unknown, pack.end]


def test_a_page_that_speaks_of_an_end_mark_does_not_end_there(pack, pieces):
    ids = pieces.ids("the </s> and <s> and <mask> tags", 100)
    assert ids.count(pack.end) == ids.count(pack.begin) == 1


def test_decomposed_letters_are_the_same_as_composed_ones(embedder):
    composed, decomposed = embedder.embed_passages(["café Ünder", "cafe\u0301 U\u0308nder"])
    assert np.array_equal(composed, decomposed)


def test_vectors_are_unit_rows_of_float32_and_any_text_has_one(embedder):
    vectors = embedder.embed_passages(JUNK)
    assert vectors.shape == (len(JUNK), embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert embedder.embed_passages([]).shape == (0, embedder.dimensions)
    assert embedder.embed_question("").shape == (embedder.dimensions,)


def test_a_vector_depends_on_its_text_alone(embedder):
    alone = embedder.embed_passages([TEXTS["Latin"]])[0]
    among_others = embedder.embed_passages([TEXTS["long"], TEXTS["Latin"], "x"])[1]
    assert np.array_equal(alone, among_others)


def test_what_lies_beyond_the_token_limit_is_cut_off(embedder):
    long = "refund " * 600
    assert embedder.count_tokens(long) > embedder.token_limit
    shorter, longer = embedder.embed_passages([long, long + "another subject altogether " * 5000])
    assert np.array_equal(shorter, longer)


def test_the_token_count_is_of_the_whole_passage_as_the_model_sees_it(embedder, pieces):
    assert embedder.count_tokens("Refunds") == len(pieces.ids("passage: Refunds", 100))
    assert embedder.count_tokens("退" * 5000) > 2000


def test_a_text_fits_a_window_up_to_its_last_token(embedder):
    words = embedder.window_tokens - embedder.count_tokens("")
    assert embedder.count_tokens("refund " * words) == embedder.window_tokens < embedder.token_limit
    assert embedder.fits_window("refund " * words)
    assert not embedder.fits_window("refund " * (words + 1))
    assert not embedder.fits_window("refund " * 100_000)
    assert embedder.fits_window("")


def test_a_question_finds_the_passage_that_answers_it_in_another_language(embedder):
    passages = embedder.embed_passages(["Refunds are paid within 14 days.", "Our office is in Oslo.", "We ship cups."])
    assert np.argmax(passages @ embedder.embed_question("Wann bekomme ich mein Geld zurück?")) == 0
    assert np.argmax(passages @ embedder.embed_question("办公室在哪里？")) == 1


def test_after_unloading_it_loads_again_and_gives_the_same_vectors(embedder):
    before = embedder.embed_question("How long does it take?")
    embedder.unload()
    embedder.unload()
    assert np.array_equal(embedder.embed_question("How long does it take?"), before)


def test_threads_may_embed_while_another_unloads(embedder):
    expected = embedder.embed_passages([TEXTS["Cyrillic"]])
    results = []

    def work():
        for _ in range(5):
            results.append(embedder.embed_passages([TEXTS["Cyrillic"]]))
            embedder.unload()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 15
    assert all(np.array_equal(result, expected) for result in results)


def test_without_its_files_the_command_to_run_is_named(settings, tmp_path):
    settings.SITEWISE_MODELS_DIR = tmp_path
    with pytest.raises(ModelFilesMissing, match=r"manage\.py fetch_models"):
        embedder_files()
