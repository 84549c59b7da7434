"""Why somebody is not let in by a provider."""

from mlcd.core.errors import MlcdError


class SignInRefused(MlcdError):
    """Somebody is not let in; the message says why, in one line, without a secret."""


class ProviderFault(SignInRefused):
    """The provider is away, or its answer cannot be believed: it lets nobody in."""
