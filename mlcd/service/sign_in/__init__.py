"""Sign-in by a provider of OpenID Connect: its settings, the protocol, who members are there."""
