"""Sign-in with an OpenID Connect provider: its settings, the protocol, and the members' accounts there."""
