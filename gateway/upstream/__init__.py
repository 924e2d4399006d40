"""The engines behind the gateway: opening a request, checking the answer, relaying its bytes."""
