"""What the widget's script is told by the server, and what it is refused."""

import gzip
import hashlib
import json
import time
from datetime import timedelta

import pytest
from django.core import signing
from django.test import Client
from django.utils import timezone

from chat import proof_of_work
from chat.markup_tree import tree_of
from chat.models import Lead, Session, Turn
from chat.proof_of_work import ProofMissing, is_solved, refuse_unproven
from chat.sessions import recall
from chat.widget_script import current_script, keep_current_script
from chat.widget_words import languages, words_in
from models_app.models import MLModel
from tenants.models import ApiKey
from tenants.store import activated

SHOP = "https://shop.test"
SESSION = f"w-{'0a' * 16}"


@pytest.fixture
def key(acme, support) -> str:
    kind = ApiKey.Kind.PUBLIC
    return ApiKey.mint(tenant=acme, name="widget", kind=kind, model_slugs=["support"], allowed_origins=[SHOP])[1]


@pytest.fixture
def call(key):
    """Return the function that calls the server as the script does, from the shop's page."""

    def send(what, origin=SHOP, **fields):
        body = json.dumps({"key": key, "model": "support", "language": "en"} | fields)
        headers = {"Origin": origin} if origin else {}
        return Client().post(f"/widget/v1/{what}", body, content_type="text/plain", headers=headers)

    return send


@pytest.fixture
def turn(support) -> Turn:
    return Turn.objects.create(model=support, question="When?", answer="At nine.", session_key=SESSION)


def test_the_script_may_be_read_by_any_page_and_is_kept_by_its_browser(db):
    response = Client().get("/widget/v1.js", headers={"Accept-Encoding": "gzip, br"})
    assert response["Access-Control-Allow-Origin"] == "*"
    assert response["Content-Encoding"] == "gzip"
    assert gzip.decompress(response.content) == current_script().text
    assert not response.cookies
    again = Client().get("/widget/v1.js", headers={"If-None-Match": response["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_version_has_an_address_of_its_own_that_never_changes(db):
    script = current_script()
    response = Client().get(script.path)
    assert "immutable" in response["Cache-Control"]
    digest = hashlib.sha384(response.content)
    assert script.version == digest.hexdigest()[:16]
    assert Client().get("/widget/v1-0123456789abcdef.js").status_code == 404


def test_a_version_that_was_handed_out_is_served_after_an_upgrade(settings, tmp_path, db):
    settings.SITEWISE_DATA_DIR = tmp_path
    keep_current_script()
    assert (tmp_path / "widget" / f"{current_script().version}.js").read_bytes() == current_script().text
    older = b"// an older script"
    version = hashlib.sha384(older).hexdigest()[:16]
    (tmp_path / "widget" / f"{version}.js").write_bytes(older)
    assert Client().get(f"/widget/v1-{version}.js").content == older
    (tmp_path / "widget" / f"{version}.js").write_bytes(b"// somebody changed it")
    assert Client().get(f"/widget/v1-{version}.js").status_code == 404


def test_the_widget_is_told_what_it_shows(call, support):
    support.greeting, support.conversation_starters = "Hello!", "When are you open?\n\n Where are you? "
    support.questionnaire = "What is your name?\nWhich bike?\n- City\n- Cargo"
    support.save()
    response = call("config", language="de")
    told = response.json()
    assert response["Access-Control-Allow-Origin"] == SHOP
    assert not response.cookies
    assert told["greeting"] == "Hello!"
    assert told["starters"] == ["When are you open?", "Where are you?"]
    assert told["questionnaire"] == [
        {"question": "What is your name?", "choices": []},
        {"question": "Which bike?", "choices": ["City", "Cargo"]},
    ]
    assert told["words"]["send"] == "Senden"
    assert (told["takes_emails"], told["proof_bits"], told["earlier"]) == (False, 0, [])


@pytest.mark.parametrize("origin", ["https://evil.test", "http://shop.test", "https://shop.test.evil.test", "null", ""])
def test_another_origin_is_refused_in_words_its_page_can_show(call, origin):
    response = call("config", origin=origin, language="fr")
    assert response.status_code == 403
    assert response.json()["words"] == words_in("fr")["refused"]
    assert "origin" in response.json()["error"]["message"]
    assert response["Access-Control-Allow-Origin"] == "*"  # nothing of the tenant is in it


def test_a_secret_key_is_told_to_stay_on_its_server(call, acme):
    _, secret = ApiKey.mint(tenant=acme, name="server", kind="secret", model_slugs=["support"])
    response = call("config", key=secret)
    assert response.status_code == 403
    assert "secret key" in response.json()["error"]["message"]


@pytest.mark.parametrize("body", ["", "[]", "{", '{"key": 1}', "[" * 100_000, '{"key": "swp_x", "model": []}'])
def test_what_no_widget_would_send_is_refused(db, body):
    response = Client().post("/widget/v1/config", body, content_type="text/plain", headers={"Origin": SHOP})
    assert response.status_code in (400, 401)


def test_a_body_of_a_megabyte_is_refused(call):
    assert call("rendered", text="ü" * 500_000).status_code == 413


def test_a_get_is_told_what_is_allowed(db):
    response = Client().get("/widget/v1/config")
    assert (response.status_code, response["Allow"]) == (405, "POST")


def test_an_answer_is_rendered_to_a_tree_without_any_script(call):
    text = (
        'A **bold** [page](https://a.test/x)<script>alert(1)</script>\n\n- one\n- two & "three"\n\n```\nif a < b:\n```'
    )
    tree = call("rendered", text=text).json()["tree"]
    assert tree[0][:5] == ["p", {}, "A ", ["strong", {}, "bold"], " "]
    assert tree[0][5] == ["a", {"href": "https://a.test/x"}, "page"]
    assert tree[1] == ["ul", {}, ["li", {}, "one"], ["li", {}, 'two & "three"']]
    assert tree[2] == ["pre", {}, ["code", {}, "if a < b:\n"]]
    assert '"script"' not in json.dumps(tree)


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "//evil.test", " java\nscript:x", "vbscript:x"]
)
def test_a_link_that_could_run_something_has_no_address(address):
    assert "href" not in json.dumps(tree_of(f"[x](<{address}>)"))


def test_words_between_marks_keep_their_blanks():
    assert tree_of("*a*\n*b*") == [["p", {}, ["em", {}, "a"], "\n", ["em", {}, "b"]]]


def test_the_visitors_answers_begin_the_conversation(call, support):
    support.questionnaire = "Your name?\nWhich bike?\n- City\n- Cargo"
    support.save()
    assert call("questionnaire", session=SESSION, answers=[" Kim ", "Cargo"]).status_code == 200
    memory = recall(support, SESSION, timezone.now())
    assert [(each.question, each.answer) for each in memory.questionnaire_answers] == [
        ("Your name?", "Kim"),
        ("Which bike?", "Cargo"),
    ]
    assert call("questionnaire", session=SESSION, answers=["", "City"]).status_code == 200
    assert Session.objects.get().questionnaire_answers == [["Which bike?", "City"]]


@pytest.mark.parametrize("answers", [["Kim"], ["Kim", "Unicycle"], ["x" * 501, "City"], "Kim", [1, 2], [None, "City"]])
def test_answers_that_were_not_asked_for_are_refused(call, support, answers):
    support.questionnaire = "Your name?\nWhich bike?\n- City\n- Cargo"
    support.save()
    response = call("questionnaire", session=SESSION, answers=answers)
    assert response.status_code == 400
    assert not Session.objects.exists()


@pytest.mark.parametrize("session", ["ann", "", "w-12", f"w-{'0A' * 16}", f"{SESSION}\n", None])
def test_only_ids_that_nobody_can_guess_open_a_conversation(call, support, session):
    """Else whoever holds the public key could read what a program's user asked, as such names are often simple."""
    Session.objects.create(model=support, key="ann", memory=[["Secret?", "Yes"]], last_used_at=timezone.now())
    assert "Secret" not in call("config", session=session).content.decode()


def test_a_conversation_is_found_again_on_the_next_page(call, support):
    Session.objects.create(model=support, key=SESSION, memory=[["When?", "At **nine**."]], last_used_at=timezone.now())
    earlier = call("config", session=SESSION).json()["earlier"]
    assert earlier == [["When?", [["p", {}, "At ", ["strong", {}, "nine"], "."]]]]
    Session.objects.update(last_used_at=timezone.now() - timedelta(hours=1))
    assert call("config", session=SESSION).json()["earlier"] == []


def test_a_conversation_of_another_tenant_is_not_there(call, globex, support):
    with activated(globex):
        other = MLModel.objects.create(slug="support", name="Theirs")
        Session.objects.create(model=other, key=SESSION, memory=[["Secret?", "Yes"]], last_used_at=timezone.now())
    assert call("config", session=SESSION).json()["earlier"] == []


def test_a_thumb_and_its_reason_stand_on_the_turn(call, turn):
    assert call("feedback", turn=str(turn.public_id), rating=-1, reason=" Incorrect ").status_code == 200
    turn.refresh_from_db()
    assert (turn.rating, turn.rating_reason) == (-1, "Incorrect")
    assert call("feedback", turn=turn.public_id.hex, rating=0).status_code == 200
    turn.refresh_from_db()
    assert (turn.rating, turn.rating_reason) == (0, "")


@pytest.mark.parametrize("fields", [{"rating": 2}, {"rating": "x"}, {"turn": "7"}, {"reason": "x" * 301}])
def test_a_thumb_that_makes_no_sense_is_refused(call, turn, fields):
    assert call("feedback", **{"turn": str(turn.public_id), "rating": 1} | fields).status_code == 400
    turn.refresh_from_db()
    assert turn.rating == 0


def test_an_e_mail_is_taken_where_the_owner_wants_it(call, support, turn):
    lead = {"email": "kim@visitor.test", "session": SESSION, "turn": str(turn.public_id)}
    assert call("lead", **lead).status_code == 403
    support.takes_emails = True
    support.save()
    assert call("lead", **lead).status_code == 200
    assert call("lead", **lead).status_code == 200  # sent twice, kept once
    assert [(kept.email, kept.turn, kept.session_key) for kept in Lead.objects.all()] == [
        ("kim@visitor.test", turn, SESSION)
    ]
    assert call("lead", email="no mail", session=SESSION).status_code == 400


def test_a_conversation_leaves_a_few_e_mails_only(call, support):
    support.takes_emails = True
    support.save()
    statuses = [call("lead", email=f"kim{number}@visitor.test", session=SESSION).status_code for number in range(7)]
    assert statuses == [200] * 5 + [403] * 2


def solved(challenge: str, question: str) -> str:
    return next(f"{challenge}:{number}" for number in range(10**6) if is_solved(challenge, question, str(number)))


def test_work_that_was_done_is_accepted_for_its_own_question_only(call, key):
    prefix = ApiKey.find(key).pk
    challenge = call("challenge").json()["challenge"]
    proof = solved(challenge, "When?")
    refuse_unproven(proof, prefix, "support", "When?")
    for wrong in [
        (proof, prefix, "support", "Where?"),
        (proof, prefix, "sales", "When?"),
        (proof, 0, "support", "When?"),
    ]:
        with pytest.raises(ProofMissing, match="does not fit"):
            refuse_unproven(*wrong)


@pytest.mark.parametrize("proof", ["", "x", ":1", "a:b:c:1", "\x00:\x00"])
def test_work_on_a_made_up_challenge_is_refused(proof):
    with pytest.raises(ProofMissing):
        refuse_unproven(proof, 1, "support", "When?")


class Backdated(signing.TimestampSigner):
    """Signs as proof_of_work does, some seconds ago."""

    def __init__(self, seconds: int):
        super().__init__(salt="sitewise.proof-of-work")
        self._seconds = seconds

    def timestamp(self):
        return signing.b62_encode(int(time.time()) - self._seconds)


def test_a_challenge_is_good_for_two_minutes_only():
    fresh = Backdated(110).sign_object([1, "support"])
    refuse_unproven(solved(fresh, "When?"), 1, "support", "When?")
    stale = Backdated(125).sign_object([1, "support"])
    with pytest.raises(ProofMissing, match="too old"):
        refuse_unproven(solved(stale, "When?"), 1, "support", "When?")


def test_every_language_has_every_word():
    assert len(languages()) == 20
    for language in languages():
        words = words_in(language)
        assert words.keys() == words_in("en").keys()
        assert all(word.strip() for word in words.values())
    assert words_in("xx") == words_in("en")


def test_an_address_that_calls_without_end_is_told_to_wait(call):
    statuses = [call("challenge").status_code for _ in range(121)]
    assert statuses == [200] * 120 + [429]
    refused = call("config")
    assert refused.json()["words"] == words_in("en")["busy"]
    assert int(refused["Retry-After"]) > 0


def test_a_model_that_asks_for_work_answers_no_question_without_it(call, key, support):
    support.wants_proof_of_work, support.retrieval = True, "keyword"
    support.save()
    challenge = call("challenge").json()["challenge"]
    assert call("config").json()["proof_bits"] == proof_of_work.BITS

    def ask(question, **headers):
        body = {"model": "support", "messages": [{"role": "user", "content": question}]}
        headers |= {"Authorization": f"Bearer {key}", "Origin": SHOP}
        return Client().post("/v1/chat/completions", body, content_type="application/json", headers=headers)

    assert ask("When?").status_code == 403
    assert ask("When?").json()["error"]["code"] == "proof_of_work_required"
    assert ask("Where?", **{"X-Sitewise-Proof": solved(challenge, "When?")}).status_code == 403
    assert ask("When?", **{"X-Sitewise-Proof": solved(challenge, "When?")}).status_code == 200
    assert Turn.objects.get().channel == "widget"
