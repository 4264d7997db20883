"""OpenAI's wire: an agent as a model behind `/openai/v1`."""
