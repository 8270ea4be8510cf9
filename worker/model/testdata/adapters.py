"""Makes lora.json: what transformers with PEFT computes of a model with adapters.

    python adapters.py

needs what fixtures.py needs, and peft. As there, no weights are kept: those of the model are
of the family qwen3, and those of the adapters are made alike, by their names.

PEFT computes the corrections in float32. Here their operands are bfloat16, so there are logits of
both kinds: as PEFT gives them, and with its operands rounded.
"""

import json
import os
import tempfile

import numpy as np
import peft
import torch
import transformers
from safetensors.numpy import save_file

from families import FAMILIES
from fixtures import LAST, TOKENS, encode, numbers, tensors_of, uniform, write, write_config

FAMILY = FAMILIES["qwen3"]
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
MLP = ["gate_proj", "up_proj", "down_proj"]

# Every linear; some of them, with ranks and factors by pattern; one alone, of a high rank.
ADAPTERS = {
    "all": {"r": 8, "lora_alpha": 16, "target_modules": ATTENTION + MLP},
    "patterns": {
        "r": 4,
        "lora_alpha": 6,
        "use_rslora": True,
        "target_modules": ["q_proj", "v_proj", "down_proj"],
        "rank_pattern": {"layers.1.self_attn.q_proj": 7, "down_proj": 2},
        "alpha_pattern": {"v_proj": 3, r"layers.[02].mlp.down_proj": 1.5},
    },
    "wide": {"r": 40, "lora_alpha": 40, "target_modules": r".*layers\.[13]\.mlp\.up_proj"},
}


def modules(model, options):
    """The ranks and shapes of what PEFT makes of an adapter's options."""
    wrapped = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **options))
    state = peft.get_peft_model_state_dict(wrapped)
    return {name: list(t.shape) for name, t in sorted(state.items())}


def rounded(x):
    """x as an operand of a bfloat16 linear: what is below 2**-50 is zero."""
    y = x.bfloat16().float()
    return torch.where(y.abs() < 2.0**-50, torch.zeros_like(y), y)


def round_operands(model):
    """Has every A and B of an adapter read rounded operands."""
    for name, module in model.named_modules():
        if name.endswith(("lora_A.default", "lora_B.default")):
            module.weight.data = rounded(module.weight.data)
            module.register_forward_pre_hook(lambda _, args: (rounded(args[0]),))
    return model


def main():
    config = FAMILY["config"]
    ids = [int(v) for v in (uniform("ids", TOKENS) * 0.5 + 0.5) * config["vocab_size"]]
    tensors = tensors_of(config, FAMILY)
    adapters = []
    with tempfile.TemporaryDirectory() as tmp:
        write_config(config, tmp)
        save_file({t[0]: numbers(*t) for t in tensors}, os.path.join(tmp, "model.safetensors"), {"format": "pt"})

        def load():
            m = transformers.AutoModelForCausalLM.from_pretrained(tmp, dtype=torch.float32, attn_implementation="eager")
            return m.eval()

        def run(model):
            with torch.no_grad():
                return model(torch.tensor([ids]), use_cache=False).logits[0].float().numpy()

        plain = run(load())
        greatest = float(np.abs(plain).max())
        for title, options in ADAPTERS.items():
            shapes = modules(load(), options)
            made = []
            for i, (name, shape) in enumerate(shapes.items()):
                columns = shape[1]
                scale = round((1.7 if "lora_A" in name else 0.35) / columns**0.5, 4)
                made.append([name, shape, 0.0, scale, ["F32", "F16"][i % 2]])
            folder = os.path.join(tmp, title)
            os.makedirs(folder)
            peft.LoraConfig(task_type="CAUSAL_LM", base_model_name_or_path="base", inference_mode=True, **options).save_pretrained(folder)
            with open(os.path.join(folder, "adapter_config.json")) as f:
                saved = json.load(f)
            save_file({title_: numbers(title_, *rest) for title_, *rest in made}, os.path.join(folder, "adapter_model.safetensors"), {"format": "pt"})
            logits = run(peft.PeftModel.from_pretrained(load(), folder))
            again = run(round_operands(peft.PeftModel.from_pretrained(load(), folder)))
            print(f"    rounding moves it by {np.abs(again - logits).max() / greatest:.2g}")
            far = float(np.abs(logits - plain).max() / greatest)
            print(f"{title}: {len(made)} tensors, differs by {far:.3g} of the greatest")
            assert far >= 0.2, "the adapter makes too little difference"
            adapters.append({"name": title, "config": saved, "tensors": made, "last": encode(logits[-LAST:]), "rounded": encode(again[-LAST:]), "difference": round(far, 4)})
    write("lora", {"transformers": transformers.__version__, "peft": peft.__version__, "config": config, "tensors": tensors, "ids": ids,
                   "logits": encode(plain), "adapters": adapters})


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    main()
