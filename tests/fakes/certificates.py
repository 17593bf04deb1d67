"""A certificate authority of the tests' own, for servers that speak TLS under any name."""

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID_FOR = datetime.timedelta(days=1)


class Authority:
    """Vouches for servers; `file` holds its certificate (PEM), `names_asked` the host names clients sent (SNI)."""

    def __init__(self, folder: Path):
        self.names_asked: list[str | None] = []
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        self._certificate = self._sign("Test authority", self._key.public_key(), constraints)
        self.file = str(folder / "authority.pem")
        Path(self.file).write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def server_context(self, host: str) -> ssl.SSLContext:
        """Return the TLS set-up of a server with a certificate for this host name alone."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(host, key.public_key(), x509.SubjectAlternativeName([x509.DNSName(host)]))
        chain = self._folder / f"{host}.pem"
        chain.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        context.sni_callback = lambda _socket, name, _context: self.names_asked.append(name)
        return context

    def _sign(
        self, name: str, public_key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        own_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(own_name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - VALID_FOR)
            .not_valid_after(now + VALID_FOR)
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            .sign(self._key, hashes.SHA256())
        )
