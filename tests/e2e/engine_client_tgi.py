"""The public client of text-generation-inference, as its users have it, against a contract server; prints JSON.

Arguments: the server's URL, and the URL of one that has too much to do.
"""

import json
import sys

from text_generation import Client
from text_generation.errors import OverloadedError

url, busy_url = sys.argv[1:]
client = Client(url)
whole = client.generate("one two three", max_new_tokens=4, decoder_input_details=True)
streamed = list(client.generate_stream("one two three", max_new_tokens=4))
chat = client.chat([{"role": "user", "content": "one two"}], max_tokens=3)
errors = {}
try:
    Client(busy_url).generate("one", max_new_tokens=1)
except OverloadedError as error:
    errors["busy"] = str(error)
print(
    json.dumps(
        {
            "text": whole.generated_text,
            "finish": whole.details.finish_reason.value,
            "prefill": [token.logprob for token in whole.details.prefill],
            "tokens": [token.text for token in whole.details.tokens],
            "streamed": [response.token.text for response in streamed],
            "last": streamed[-1].generated_text,
            "chat": chat.choices[0].message.content,
            "errors": errors,
        }
    )
)
