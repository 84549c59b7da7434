"""The offline phase of serving: measure models and their operators into a knowledge base."""
