"""What a plan of training a language model takes: the time of a step, the memory, and what is learned of both."""
