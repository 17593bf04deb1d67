"""Keeps secrets: provider keys encrypted at rest, API keys as a look-up prefix and a keyed hash."""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

PREFIX_LENGTH = 12


class SecretLost(Exception):
    """An encrypted secret was made with another key, and has to be entered again."""


@dataclass(frozen=True)
class MintedKey:
    """A new API key: the text is shown once, the other parts are stored."""

    text: str
    prefix: str
    salt: str
    digest: str


def encrypt(secret: str) -> str:
    """Return the secret as a token that only this installation's key opens; an empty one stays empty."""
    return _fernet().encrypt(secret.encode()).decode() if secret else ""


def decrypt(token: str) -> str:
    """Return the secret in a token made by encrypt; raises SecretLost when the key has changed."""
    if not token:
        return ""
    try:
        return _fernet().decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise SecretLost("This key was stored under another SITEWISE_SECRET_KEY: enter it again.") from error


def mint_api_key(kind: str) -> MintedKey:
    """Return a new API key such as `sws_<prefix>_<secret>`; kind is "secret" or "public"."""
    prefix = f"sw{kind[0]}_{secrets.token_hex(PREFIX_LENGTH // 2)}"
    text = f"{prefix}_{secrets.token_urlsafe(32)}"
    salt = secrets.token_hex(16)
    return MintedKey(text=text, prefix=prefix, salt=salt, digest=_digest(text, salt))


def prefix_of(text: str) -> str:
    """Return the look-up prefix of an API key as it was sent, or "" when it has none."""
    kind, separator, rest = text.partition("_")
    return f"{kind}_{rest[:PREFIX_LENGTH]}" if separator else ""


def is_same_key(text: str, salt: str, digest: str) -> bool:
    """Return whether the key that was sent is the one stored, in constant time."""
    return hmac.compare_digest(_digest(text, salt), digest)


def _digest(text: str, salt: str) -> str:
    # Keyed by the row's own salt, not by SITEWISE_SECRET_KEY: losing that key must not revoke every customer's keys.
    return hmac.new(bytes.fromhex(salt), text.encode(), hashlib.sha256).hexdigest()


def _fernet() -> Fernet:
    derived = HKDF(SHA256(), length=32, salt=None, info=b"sitewise provider keys").derive(settings.SECRET_KEY.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
