"""Weights under names, or in shapes, that an engine drops, refuses or applies to something else."""

from collections.abc import Callable

import numpy as np

from bench.corpus.case import Build, Kind
from bench.corpus.workshop import PREFIX, ROOT, Tensors, Workshop, renamed

KEYS = Kind("keys")
Q_A = f"{ROOT}layers.0.self_attn.q_proj.lora_A.weight"
Q_B = f"{ROOT}layers.0.self_attn.q_proj.lora_B.weight"

# Names as other ways of training and saving leave them: (case, what a reason must say, old part, new part).
_RENAMED = (
    ("compiled", "torch.compile", ROOT, f"{PREFIX}_orig_mod.model."),
    ("compiled_around_peft", "torch.compile", ROOT, f"_orig_mod.{ROOT}"),
    ("ddp_inside", "DistributedDataParallel|DDP", ROOT, f"{PREFIX}module.model."),
    ("ddp_around_peft", "DistributedDataParallel|DDP", ROOT, f"module.{ROOT}"),
    ("fsdp", "FSDP", ".self_attn", "._fsdp_wrapped_module.self_attn"),
    ("fsdp_around_peft", "FSDP", ROOT, f"_fsdp_wrapped_module.{ROOT}"),
    ("checkpointed", "checkpointing", ".self_attn", "._checkpoint_wrapped_module.self_attn"),
    ("peft_in_peft", "second PEFT wrap", ROOT, f"{PREFIX}{ROOT}"),
    ("peft_on_peft_layers", "base_layer", ".lora_", ".base_layer.lora_"),
    ("adapter_name_kept", "default", ".weight", ".default.weight"),
    ("no_prefix", "prefix", PREFIX, ""),
    ("model_missing", "prefix", ROOT, PREFIX),
    ("model_twice", "prefix", ROOT, f"{ROOT}model."),
    ("multimodal", "multimodal", ROOT, f"{ROOT}language_model."),
    ("value_head", "value-head", ROOT, f"pretrained_model.{ROOT}"),
    ("kohya_halves", "kohya", ".lora_A", ".lora_down"),
    ("torchtune", "torchtune|MLX", ".lora_A.weight", ".lora_a.weight"),
    ("another_architecture", "no module", "self_attn", "attention"),
)


def _renaming(old: str, new: str) -> Build:
    def build(work: Workshop) -> None:
        work.weights(renamed(work.lora(), old, new))
        work.config()

    return build


def _register(name: str, reason: str, build: Build) -> None:
    build.__name__ = name
    KEYS.reject(reason)(build)


for _name, _reason, _old, _new in _RENAMED:
    _register(_name, _reason, _renaming(_old, _new))


def _changed(change: Callable[[Tensors], None]) -> Build:
    """A case that is an adapter with changed tensors."""

    def build(work: Workshop) -> None:
        tensors = work.lora()
        change(tensors)
        work.weights(tensors)
        work.config()

    build.__name__ = change.__name__
    return build


@KEYS.reject("kohya")
@_changed
def kohya(tensors: Tensors) -> None:
    for name in list(tensors):
        flat = name.removeprefix(PREFIX).replace(".lora_A", "|down").replace(".lora_B", "|up").replace(".", "_")
        tensors[f"lora_model_{flat.replace('|', '.lora_').replace('_weight', '.weight')}"] = tensors.pop(name)


@KEYS.reject("qkv_proj|fused")
def fused_qkv(work: Workshop) -> None:
    outputs = sum(work.width(f"self_attn.{part}_proj")[1] for part in "qkv")
    tensors: Tensors = {}
    for layer in range(work.base.layers):
        tensors |= work.pair(f"{ROOT}layers.{layer}.self_attn.qkv_proj", work.hidden, outputs)
    work.weights(tensors)
    work.config(target_modules=["qkv_proj"])


@KEYS.reject("layer")
def layers_that_do_not_exist(work: Workshop) -> None:
    tensors = work.lora()
    work.weights(tensors | renamed(work.lora(layers=[0]), "layers.0.", f"layers.{work.base.layers}."))
    work.config()


@KEYS.reject("torch.compile")
@_changed
def half_of_the_layers_misnamed(tensors: Tensors) -> None:
    for name in list(tensors):
        if int(name.split(".")[4]) % 2:
            tensors[name.replace(ROOT, f"{PREFIX}_orig_mod.model.")] = tensors.pop(name)


@KEYS.reject("lora_B|missing")
@_changed
def one_b_missing(tensors: Tensors) -> None:
    del tensors[Q_B]


@KEYS.reject("lora_B|missing")
@_changed
def every_b_missing(tensors: Tensors) -> None:
    for name in [name for name in tensors if "lora_B" in name]:
        del tensors[name]


@KEYS.reject("expert")
def experts_of_a_dense_base(work: Workshop) -> None:
    work.weights(work.lora() | work.pair(f"{ROOT}layers.0.mlp.experts", work.hidden, work.hidden))
    work.config()


@KEYS.reject("embedding|vocabulary")
def a_changed_embedding(work: Workshop) -> None:
    shape = (work.base.modules["lm_head"].outputs, work.hidden)
    work.weights({**work.lora(), f"{ROOT}embed_tokens.base_layer.weight": np.full(shape, 0.5, np.float16)})
    work.config()


@KEYS.reject("base|weight")
@_changed
def weights_of_the_base_itself(tensors: Tensors) -> None:
    tensors[f"{ROOT}norm.weight"] = np.ones(tensors[Q_A].shape[1], np.float32)


@KEYS.reject("transposed|shape")
@_changed
def transposed(tensors: Tensors) -> None:
    for name in tensors:
        tensors[name] = tensors[name].T


@KEYS.reject("shape|base")
@_changed
def of_a_narrower_base(tensors: Tensors) -> None:
    for name, array in tensors.items():
        tensors[name] = array[:, :512] if "lora_A" in name else array[:128]


@KEYS.reject("shape")
@_changed
def a_third_of_the_rows(tensors: Tensors) -> None:
    tensors[Q_B] = tensors[Q_B][: len(tensors[Q_B]) // 3]


@KEYS.reject("empty|shape")
@_changed
def without_rows(tensors: Tensors) -> None:
    for name, array in tensors.items():
        tensors[name] = array[:0] if "lora_A" in name else array[:, :0]


@KEYS.reject("empty|ZeRO")
@_changed
def as_zero3_leaves_them(tensors: Tensors) -> None:
    for name in tensors:
        tensors[name] = np.zeros(0, np.float32)


@KEYS.reject("rank|shape")
@_changed
def halves_of_two_ranks(tensors: Tensors) -> None:
    tensors[Q_A] = tensors[Q_A][:4]


@KEYS.reject("matrix|shape")
@_changed
def flat_weights(tensors: Tensors) -> None:
    tensors[Q_A] = tensors[Q_A].reshape(-1)


@KEYS.reject("vocabulary|shape")
def an_embedding_of_another_vocabulary(work: Workshop) -> None:
    vocabulary, name = work.base.modules["lm_head"].outputs + 64, f"{ROOT}embed_tokens.lora_embedding_"
    rows, columns = np.full((8, vocabulary), 0.01, np.float32), np.full((work.hidden, 8), 0.01, np.float32)
    work.weights({**work.lora(), f"{name}A": rows, f"{name}B": columns})
    work.config()


@KEYS.reject("embedding|vocabulary")
def an_embedding_changed_beside_its_lora(work: Workshop) -> None:
    vocabulary, name = work.base.modules["lm_head"].outputs, f"{ROOT}embed_tokens"
    rows, columns = np.full((8, vocabulary), 0.01, np.float32), np.full((work.hidden, 8), 0.01, np.float32)
    changed = work.embedding().copy()
    changed[7] += 1
    halves = {f"{name}.lora_embedding_A": rows, f"{name}.lora_embedding_B": columns}
    work.weights({**work.lora(), **halves, f"{name}.base_layer.weight": changed})
    work.config(target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "embed_tokens"])
