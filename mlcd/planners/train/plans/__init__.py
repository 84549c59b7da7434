"""Step time and memory of training plans of language models: analytical models, what is learned, what is believed."""
