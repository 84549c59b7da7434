"""A client of an OpenID Connect provider: the URL to sign in at, and the claims about who has signed in.

Authorization code flow with PKCE. Authlib builds the requests and validates the claims, joserfc checks the signature.
Nothing that the provider sends is trusted before that, nor without TLS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx

from mlcd.core.errors import MissingExtra
from mlcd.service.sign_in.errors import ProviderFault, SignInRefused
from mlcd.service.sign_in.pending import Pending
from mlcd.service.sign_in.settings import LOOPBACK, SignInSettings, check_address

ALGORITHMS = tuple(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512))
"""Never `none`, and no HMAC: the client's secret could be used to forge a signature."""
KINDS_OF_KEYS = ("RSA", "EC")
ANSWER_S = 10.0
KNOWN_FOR = timedelta(hours=1)
LEEWAY_S = 60  # tolerated difference between its clock and ours
LARGEST_ANSWER = 1 << 20
CLAIMS_OF_NAME = ("preferred_username", "email")
LONGEST_SUBJECT = 255  # by the specification


class Provider:
    """A provider. `redirect_uri`: our page that it sends browsers back to. `now`: the clock."""

    def __init__(
        self, settings: SignInSettings, secret: str | None, redirect_uri: str, now: Callable[[], datetime]
    ) -> None:
        try:
            import authlib  # noqa: F401
        except ImportError:
            raise MissingExtra("sign-in by OpenID Connect", "oidc") from None
        self.settings, self._secret, self._redirect_uri, self._now = settings, secret, redirect_uri, now
        self._metadata: tuple[datetime, dict[str, Any]] | None = None
        self._keys: list[dict[str, Any]] = []

    def address_for(self, pending: Pending) -> str:
        """The URL where a browser signs in."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        return str(
            prepare_grant_uri(
                self._endpoint("authorization_endpoint"),
                client_id=self.settings.client_id,
                response_type="code",
                redirect_uri=self._redirect_uri,
                scope=list(self.settings.scopes),
                state=pending.state,
                nonce=pending.nonce,
                code_challenge=create_s256_code_challenge(pending.verifier),
                code_challenge_method="S256",
            )
        )

    def claims(self, pending: Pending, code: str, issuer: str | None) -> dict[str, Any]:
        """The verified claims about the person who came back with this code. `issuer`: the `iss` parameter, if any."""
        self._check_issuer(issuer)
        answer = self._exchanged(pending, code)
        claims = self._checked(answer, pending.nonce)
        if not all(name in claims for name in (self.settings.groups_claim, *self._name_claims()[:1])):
            claims = self._with_userinfo(claims, answer)
        return claims

    def name_in(self, claims: Mapping[str, Any]) -> str:
        """The member's name according to the claims, in lower case."""
        for claim in self._name_claims():
            if isinstance(name := claims.get(claim), str) and name:
                if claim == "email" and claims.get("email_verified") is False:
                    raise SignInRefused(f"{self.shown} has not verified the email address of this account")
                return name.lower() if name.isascii() else name  # some non-ASCII letters become a to z
        raise SignInRefused(f"{self.shown} sends no claim {' or '.join(self._name_claims())} for this account")

    def groups_in(self, claims: Mapping[str, Any]) -> set[str]:
        """The person's groups according to the claims."""
        groups = claims.get(self.settings.groups_claim)
        return {groups} if isinstance(groups, str) else {each for each in _list(groups) if isinstance(each, str)}

    @property
    def shown(self) -> str:
        """The provider's display name."""
        return self.settings.shown

    def _name_claims(self) -> tuple[str, ...]:
        return (self.settings.name_claim,) if self.settings.name_claim else CLAIMS_OF_NAME

    def _check_issuer(self, issuer: str | None) -> None:
        """Refuse an answer that another provider has sent (mix-up attack, RFC 9207)."""
        expected = self._discovered().get("authorization_response_iss_parameter_supported") is True
        if (issuer is None and expected) or issuer not in (None, self.settings.issuer):
            raise SignInRefused(f"this answer is not from {self.shown}; begin again")

    def _exchanged(self, pending: Pending, code: str) -> dict[str, Any]:
        """The tokens for a code."""
        from authlib.oauth2.auth import ClientAuth
        from authlib.oauth2.rfc6749.parameters import prepare_token_request

        body = prepare_token_request(
            "authorization_code", redirect_uri=self._redirect_uri, code=code, code_verifier=pending.verifier
        )
        auth = ClientAuth(self.settings.client_id, self._secret, self._way_of_auth())
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        url, headers, body = auth.prepare("POST", self._endpoint("token_endpoint"), headers, body)
        return self._request("POST", url, "does not take this sign-in", headers=headers, content=body)

    def _way_of_auth(self) -> str:
        """Send the secret in the body if possible: providers decode special characters in the header differently."""
        if self._secret is None:
            return "none"
        ways = _list(self._discovered().get("token_endpoint_auth_methods_supported"))
        return "client_secret_post" if "client_secret_post" in ways else "client_secret_basic"

    def _checked(self, answer: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """The claims of the ID token, after checking signature, issuer, audience, time and nonce."""
        from authlib.oidc.core import CodeIDToken
        from joserfc.errors import JoseError

        try:
            token = self._decoded(str(answer.get("id_token", "")))
            client = self.settings.client_id
            required = {
                "iss": {"essential": True, "value": self.settings.issuer},
                "aud": {"essential": True, "value": client},
                "sub": {"essential": True},
            }
            params = {"nonce": nonce, "client_id": client, "access_token": answer.get("access_token")}
            claims = CodeIDToken(token.claims, token.header, required, params)
            claims.validate(now=int(self._now().timestamp()), leeway=LEEWAY_S)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise ProviderFault(f"the token of {self.shown} is not valid: {_why(error)}") from None
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or not subject.isprintable():
            raise ProviderFault(f"the token of {self.shown} is not valid: claim 'sub'")
        return dict(claims)

    def _decoded(self, token: str) -> Any:
        """The token with its signature checked. The provider's keys are fetched again if the key is unknown."""
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError
        from joserfc.jwk import KeySet

        for fetched in (bool(self._keys), False):
            if not fetched:
                self._keys = self._fetched_keys()
            try:
                return jwt.decode(token, KeySet.import_key_set({"keys": self._keys}), algorithms=ALGORITHMS)
            except InvalidKeyIdError:
                if not fetched:
                    raise
        raise AssertionError("the second turn returns or raises")

    def _fetched_keys(self) -> list[dict[str, Any]]:
        answer = self._request("GET", self._endpoint("jwks_uri"), "does not give its keys")
        keys = [each for each in _list(answer.get("keys")) if isinstance(each, dict)]
        found = [each for each in keys if each.get("kty") in KINDS_OF_KEYS and each.get("use", "sig") == "sig"]
        if not found:
            raise ProviderFault(f"{self.shown} publishes no usable key")
        return found

    def _with_userinfo(self, claims: dict[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
        """The claims together with those of the userinfo endpoint, which must be about the same subject."""
        if "userinfo_endpoint" not in self._discovered() or not isinstance(access := answer.get("access_token"), str):
            return claims
        headers = {"Authorization": f"Bearer {access}"}
        more = self._request("GET", self._endpoint("userinfo_endpoint"), "does not say who this is", headers=headers)
        if more.get("sub") != claims["sub"]:
            raise ProviderFault(f"{self.shown} answers about another person than the one who signed in")
        return {**more, **claims}

    def _discovered(self) -> dict[str, Any]:
        """The provider's metadata (discovery document); it and the keys are fetched again every hour."""
        now = self._now()
        if self._metadata is None or now - self._metadata[0] >= KNOWN_FOR:
            issuer = self.settings.issuer
            url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
            metadata = self._request("GET", url, "does not describe itself")
            if metadata.get("issuer") != issuer:
                raise ProviderFault(f"{self.shown} calls itself {str(metadata.get('issuer'))[:200]!r}, not {issuer!r}")
            self._metadata, self._keys = (now, metadata), []
        return self._metadata[1]

    def _endpoint(self, name: str) -> str:
        url = str(self._discovered().get(name, ""))
        try:
            check_address(url, "ask its operator")
        except ValueError as error:
            raise ProviderFault(f"{self.shown}: {name} {error}") from None
        return url

    def _request(self, method: str, url: str, otherwise: str, **more: Any) -> dict[str, Any]:
        """Request a JSON object. No error message repeats what was sent, nor more of the answer than an error code."""
        try:
            response = _limited(method, url, **more)
            document = response.json() if response.content else None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ProviderFault(f"{self.shown} cannot be reached ({type(error).__name__}); try again") from None
        except (ValueError, RecursionError):
            document = None
        if not response.is_success or not isinstance(document, dict):
            word = document.get("error") if isinstance(document, dict) else None
            why = f", {word}" if isinstance(word, str) and is_error_word(word) else ""
            raise ProviderFault(f"{self.shown} {otherwise} ({response.status_code}{why})")
        return document


def _limited(method: str, url: str, **more: Any) -> httpx.Response:
    """A response of at most a megabyte: a larger one is cut off, and then is not JSON."""
    direct = urlsplit(url).hostname in LOOPBACK  # without a proxy
    with (
        httpx.Client(timeout=ANSWER_S, follow_redirects=False, trust_env=not direct) as client,
        client.stream(method, url, **more) as response,
    ):
        body = b""
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > LARGEST_ANSWER:
                break
    return httpx.Response(response.status_code, content=body)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def is_error_word(text: str) -> bool:
    """Whether this is an error code as in the specifications, such as `access_denied`: safe to show."""
    return len(text) <= 60 and text.replace("_", "").isascii() and text.replace("_", "").isalpha()


def _why(error: Exception) -> str:
    """The error in words, without anything from the token."""
    from joserfc.errors import BadSignatureError, ClaimError, ExpiredTokenError, InvalidKeyIdError

    if isinstance(error, ExpiredTokenError):
        return "it has expired; is a clock wrong?"
    if isinstance(error, ClaimError):
        return f"claim '{error.claim}'"
    if isinstance(error, BadSignatureError):
        return "its signature is wrong"
    return (
        "it is signed with an unknown key" if isinstance(error, InvalidKeyIdError) else "its signature is not accepted"
    )
