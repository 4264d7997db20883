"""One contract, many dialects: thin translations of `ConversationalLLM`, none with logic of its own."""
