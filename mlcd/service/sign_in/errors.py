"""Errors of the sign-in with a provider."""

from mlcd.core.errors import MlcdError


class SignInRefused(MlcdError):
    """The sign-in is refused; the message says why, in one line, without a secret."""


class ProviderFault(SignInRefused):
    """The provider cannot be reached, or its answer is not trustworthy."""
