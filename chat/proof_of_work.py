"""Proof of work: where a model asks for it, each question through a public key has to cost its sender a moment.

A challenge is signed and short-lived, and its solution is bound to the question: nothing has to be kept of either, and
an answer to one question is none to another. The puzzle is hashcash's: a number that gives a hash with leading zeros.
"""

from hashlib import sha256

from django.core import signing

BITS = 14  # about 16,000 hashes: a fifth of a second on a laptop, a second on a slow phone
VALID_SECONDS = 120
HEADER = "X-Sitewise-Proof"
_SALT = "sitewise.proof-of-work"


class ProofMissing(Exception):
    """The question came without the work that this model asks for, or with one that does not hold."""

    def __init__(self, reason: str):
        super().__init__(f"This chatbot asks for proof of work with each question, and {reason}.")


def make_challenge(key_id: int, model_slug: str) -> str:
    """Return a challenge for this key and model, which has to be solved within VALID_SECONDS."""
    return signing.dumps([key_id, model_slug], salt=_SALT)


def refuse_unproven(proof: str, key_id: int, model_slug: str, question: str) -> None:
    """Raise ProofMissing unless the proof, `challenge:number`, solves a fresh challenge for this very question."""
    challenge, _, number = proof.rpartition(":")
    if not challenge:
        raise ProofMissing(f"the header {HEADER} is missing")
    try:
        issued_for = signing.loads(challenge, salt=_SALT, max_age=VALID_SECONDS)
    except signing.SignatureExpired:
        raise ProofMissing("this one is too old") from None
    except signing.BadSignature:
        raise ProofMissing("this one was not made here") from None
    if issued_for != [key_id, model_slug] or not is_solved(challenge, question, number):
        raise ProofMissing("this one does not fit the question")


def is_solved(challenge: str, question: str, number: str) -> bool:
    """Return whether the number gives a SHA-256 that begins with BITS zeros."""
    asked = sha256(question.encode()).hexdigest()
    digest = sha256(f"{challenge}:{asked}:{number}".encode()).digest()
    return int.from_bytes(digest) >> (len(digest) * 8 - BITS) == 0
