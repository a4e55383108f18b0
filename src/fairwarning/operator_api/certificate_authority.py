"""Makes our own certificate authority and the certificates that it signs, as PEM.

The authority can sign only for this machine's own names and addresses. So a client that trusts it
is safe for all other names, even if the key is stolen. `cryptography` takes long to load, so import
this module only to make a certificate.
"""

import ipaddress
import socket
from collections.abc import Iterable
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_SKEW = timedelta(days=1)
"""Certificates are valid from this long before now, because other clocks may be wrong."""
_COMMON_NAME_MAX = 64  # The limit of X.509 for a common name.
_CA_MAY = x509.KeyUsage(
    digital_signature=False, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
    encipher_only=False, decipher_only=False,
)  # fmt: skip
_SERVER_MAY = x509.KeyUsage(
    digital_signature=True, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, key_cert_sign=False, crl_sign=False,
    encipher_only=False, decipher_only=False,
)  # fmt: skip
_THIS_MACHINE = x509.NameConstraints(
    permitted_subtrees=[
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_network("127.0.0.0/8")),
        x509.IPAddress(ipaddress.ip_network("::1/128")),
    ],
    excluded_subtrees=None,
)


def new_authority(now: datetime, until: datetime) -> str:
    """Return the key and the certificate of a new authority, as one PEM text."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"Fairwarning on {socket.gethostname()}")
    made = (
        _builder(subject, subject, key, now, until)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_CA_MAY, critical=True)
        .add_extension(_THIS_MACHINE, critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pem(key, made)


def new_certificate(authority: str, names: Iterable[str], now: datetime, until: datetime) -> str:
    """Return a server's key and certificate, as one PEM text, signed by `authority`.

    Raises ValueError if `authority` cannot be read.
    """
    issuer = x509.load_pem_x509_certificate(authority.encode())
    issuer_key = serialization.load_pem_private_key(authority.encode(), None)
    if not isinstance(issuer_key, ec.EllipticCurvePrivateKey):
        raise ValueError("its key is of another kind")
    key = ec.generate_private_key(ec.SECP256R1())
    above = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(above)
    made = (
        _builder(_subject("localhost"), issuer.subject, key, now, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_SERVER_MAY, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_name(each) for each in names]), critical=False)
        .add_extension(identifier, critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return _pem(key, made)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_COMMON_NAME_MAX])])


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _pem(key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> str:
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return (secret + certificate.public_bytes(serialization.Encoding.PEM)).decode()
