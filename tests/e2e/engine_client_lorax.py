"""The public client of LoRAX, as its users have it, against a contract server; prints JSON.

Arguments: the server's URL, and the folder of an adapter.
"""

import json
import sys

from lorax import Client
from lorax.errors import GenerationError

url, adapter = sys.argv[1:]
client = Client(url)
base = client.generate("one two three", max_new_tokens=4)
whole = client.generate(
    "one two three", adapter_id=adapter, adapter_source="local", max_new_tokens=4, decoder_input_details=True
)
streamed = list(client.generate_stream("one two three", adapter_id=adapter, adapter_source="local", max_new_tokens=4))
errors = {}
try:
    client.generate("one", adapter_id=f"{adapter}-gone", adapter_source="local", max_new_tokens=1)
except GenerationError as error:
    errors["gone"] = str(error)
print(
    json.dumps(
        {
            "base": base.generated_text,
            "text": whole.generated_text,
            "finish": whole.details.finish_reason.value,
            "prompt_tokens": whole.details.prompt_tokens,
            "prefill": [token.logprob for token in whole.details.prefill],
            "streamed": [response.token.text for response in streamed],
            "last": streamed[-1].generated_text,
            "errors": errors,
        }
    )
)
