"""Commands to copy: pull and verify a version, load it into an engine by hand, ask it through the gateway. Pure.

Names of tenants, adapters, versions and aliases have no characters that a shell or JSON minds (``registry.naming``).
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from registry.models import Version
from registry.naming import BUNDLE_FILE
from registry.web.adapters.reports import ENGINES

# The ranks that vLLM's --max-lora-rank takes.
_VLLM_RANKS: Final = (1, 8, 16, 32, 64, 128, 256, 320, 512)
_JSON: Final = '-H "Content-Type: application/json"'
_QUESTION: Final = '"messages": [{"role": "user", "content": "Where is my parcel?"}]'


@dataclass(frozen=True, slots=True)
class Snippet:
    """A title and what is to be copied; ``then`` is for another shell, while the first goes on."""

    title: Promise | str
    text: str
    then: str = ""


def pulling(ref: str) -> Snippet:
    """Get the files; refused unless digests and signatures are right."""
    return Snippet(_("Get the files"), f"lorekeeper pull {ref} {_folder(ref)}")


def verifying(ref: str, *, public_url: str) -> tuple[Snippet, ...]:
    """Check what was pulled, with keys that were saved before: our command, and the public tool."""
    folder = _folder(ref)
    keys = f"curl -fsS {public_url}/.well-known/lorekeeper/keys.json -o keys.json"
    return (
        Snippet(_("Save the registry's public keys, once"), keys),
        Snippet(_("Get the files with both signatures"), f"lorekeeper pull {ref} {folder}"),
        Snippet(
            _("Check files, signatures and name; needs no network"),
            f"lorekeeper verify {folder} --key keys.json --expect {ref}",
        ),
        Snippet(
            _("Or check the files with the public tool, with the key below saved as key.pem"),
            "pip install model-signing pyOpenSSL\n"
            f"python -m model_signing verify key {folder} --signature {folder}/{BUNDLE_FILE} \\\n"
            "    --public_key key.pem --no-ignore-git-paths",
        ),
    )


def loading(version: Version, engine: str) -> Snippet:
    """Start an engine with the version and ask it; ``./base`` is the folder of the base model."""
    ref, name = str(version), f"{version.adapter.name}-{version.name}"
    text = _LOADING[engine].format(
        name=name,
        folder=_folder(ref).removeprefix("./"),
        rank=version.rank or 0,
        vllm_rank=_rank_for_vllm(version.rank or 1),
        modules=" ".join(version.target_modules),
        json=_JSON,
        question=_QUESTION,
    )
    start, ask = text.split("\n\n")
    return Snippet(ENGINES[engine], start, ask)


def asking(tenant: str, alias: str) -> tuple[Snippet, ...]:
    """Ask the version through the gateway, by an alias that points at it."""
    return (
        Snippet(
            "curl",
            f'curl "$LOREKEEPER_GATEWAY_URL/v1/chat/completions" -H "Authorization: Bearer $LOREKEEPER_API_KEY" \\\n'
            f"    {_JSON} \\\n"
            f'    -d \'{{"model": "{alias}", {_QUESTION}}}\'',
        ),
        Snippet(
            _("Python, with OpenAI's package"),
            "import os\n\nimport openai\n\n"
            "client = openai.OpenAI(\n"
            '    base_url=os.environ["LOREKEEPER_GATEWAY_URL"] + "/v1", api_key=os.environ["LOREKEEPER_API_KEY"]\n'
            ")\n"
            "answer = client.chat.completions.create(\n"
            f'    model="{alias}",\n'
            '    messages=[{"role": "user", "content": "Where is my parcel?"}],\n'
            ")\n"
            "print(answer.choices[0].message.content)",
        ),
        Snippet(_("Command line"), f'lorekeeper chat {tenant}/{alias} "Where is my parcel?" --stream'),
    )


def _folder(ref: str) -> str:
    return "./" + ref.partition("/")[2].replace("@", "-")


def _rank_for_vllm(rank: int) -> int:
    """The smallest that vLLM takes and that is enough."""
    place = bisect_left(_VLLM_RANKS, rank)
    return _VLLM_RANKS[min(place, len(_VLLM_RANKS) - 1)]


_LOADING: Final = {
    "vllm": """\
vllm serve ./base --enable-lora --max-lora-rank {vllm_rank} --lora-modules {name}="$PWD/{folder}"

curl http://127.0.0.1:8000/v1/chat/completions {json} \\
    -d '{{"model": "{name}", {question}}}'""",
    "sglang": """\
python -m sglang.launch_server --model-path ./base --served-model-name base --enable-lora \\
    --max-lora-rank {rank} --lora-target-modules {modules} --lora-paths {name}="$PWD/{folder}"

curl http://127.0.0.1:30000/v1/chat/completions {json} \\
    -d '{{"model": "base:{name}", {question}}}'""",
    "tgi": """\
LORA_ADAPTERS={name}="$PWD/{folder}" text-generation-launcher --model-id ./base --port 3000

curl http://127.0.0.1:3000/generate {json} \\
    -d '{{"inputs": "Where is my parcel?", "parameters": {{"adapter_id": "{name}", "max_new_tokens": 64}}}}'""",
    "lorax": """\
lorax-launcher --model-id ./base --port 3000

curl http://127.0.0.1:3000/generate {json} \\
    -d '{{"inputs": "Where is my parcel?",
         "parameters": {{"adapter_id": "'"$PWD"'/{folder}", "adapter_source": "local"}}}}'""",
}
