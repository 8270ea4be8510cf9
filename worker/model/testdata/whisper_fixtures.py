"""Makes the golden file of a model that hears: what transformers computes.

    python whisper_fixtures.py

needs what fixtures.py needs. Beside the configuration and the tensors, whose numbers are
formulas, the file holds generation_config.json, the rows that the encoder gives for
features that are a formula too, the logits of all positions of one text, and for several
features the language and the tokens that greedy decoding gives, without times and with
them. The variants change one setting.
"""

import copy
import json
import os
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from transformers.generation.logits_process import SuppressTokensAtBeginLogitsProcessor, SuppressTokensLogitsProcessor, WhisperTimeStampLogitsProcessor

from fixtures import TOLERANCE, encode, numbers, tensors_of, uniform, write, write_config

EOT, SOT, TRANSLATE, TRANSCRIBE, PREVIOUS, SILENT, PLAIN, VOCAB = 60, 61, 67, 66, 69, 70, 71, 123
LANGUAGES = {"<|en|>": 62, "<|de|>": 63, "<|zh|>": 64, "<|ja|>": 65}
CONFIG = {
    "architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "vocab_size": VOCAB, "d_model": 32, "num_mel_bins": 80, "activation_function": "gelu",
    "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 48,
    "max_source_positions": 50, "max_target_positions": 64, "decoder_start_token_id": SOT, "bos_token_id": EOT, "eos_token_id": EOT, "pad_token_id": EOT,
    "scale_embedding": False, "is_encoder_decoder": True, "tie_word_embeddings": True, "torch_dtype": "float32", "suppress_tokens": None, "begin_suppress_tokens": None,
}
GENERATION = {
    "eos_token_id": EOT, "bos_token_id": EOT, "pad_token_id": EOT, "decoder_start_token_id": SOT, "prev_sot_token_id": PREVIOUS, "no_timestamps_token_id": PLAIN,
    "is_multilingual": True, "lang_to_id": LANGUAGES, "task_to_id": {"transcribe": TRANSCRIBE, "translate": TRANSLATE}, "max_initial_timestamp_index": 10,
    "suppress_tokens": [1, 7, 12, 30, SOT, TRANSLATE, TRANSCRIBE, 68, PREVIOUS, SILENT, *LANGUAGES.values()], "begin_suppress_tokens": [4, EOT], "max_length": 64,
}
FAMILY = {"auto": "AutoModelForSpeechSeq2Seq", "scales": [
    ("conv1.weight", 0.0, 0.2), ("conv2.weight", 0.0, 0.2), ("decoder.embed_positions", 0.0, 1.2), ("embed_positions", 0.0, 0.5), ("embed_tokens", 0.0, 0.5),
    ("encoder_attn.out_proj.weight", 0.0, 0.5), ("decoder.layer_norm.weight", 3.0, 0.5), ("layer_norm.bias", 0.0, 0.3)]}
VARIANTS = {
    "encoder_attention_heads": {"encoder_attention_heads": 2},
    "decoder_attention_heads": {"decoder_attention_heads": 4},
    "encoder_layers": {"encoder_layers": 1},
    "num_mel_bins": {"num_mel_bins": 128},
    "encoder_ffn_dim": {"encoder_ffn_dim": 40},
    "decoder_ffn_dim": {"decoder_ffn_dim": 40},
    "tie_word_embeddings": {"tie_word_embeddings": False},
}
TOKENS, SOUNDS = 50, 4


def heard(config, number):
    """Features as (1, mel bins, frames): the rows of the formula are frames."""
    frames, bins = 2 * config["max_source_positions"], config["num_mel_bins"]
    return torch.tensor(uniform(f"features {number}", frames * bins).reshape(1, frames, bins)).transpose(1, 2).contiguous()


def load(config, tensors):
    with tempfile.TemporaryDirectory() as tmp:
        write_config(config, tmp)
        with open(os.path.join(tmp, "generation_config.json"), "w") as f:
            json.dump(GENERATION, f)
        save_file({t[0]: numbers(*t) for t in tensors}, os.path.join(tmp, "model.safetensors"), {"format": "pt"})
        model, info = transformers.AutoModelForSpeechSeq2Seq.from_pretrained(tmp, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        assert not info["unexpected_keys"] and not [k for k in info["missing_keys"] if "proj_out" not in k], info
        return model.eval()


def run(config, tensors, ids):
    model = load(config, tensors)
    with torch.no_grad():
        out = model(input_features=heard(config, 0), decoder_input_ids=torch.tensor([ids]), use_cache=False)
    return out.logits[0].numpy(), out.encoder_last_hidden_state[0].numpy()


def greedy(model, number, prompt, times):
    """The tokens behind a prompt by transformers' own rules, and how often the times' chance together decided."""
    generation = model.generation_config
    features, ids, decided = heard(CONFIG, number), list(prompt), 0
    rules = [SuppressTokensAtBeginLogitsProcessor(GENERATION["begin_suppress_tokens"], len(prompt)), SuppressTokensLogitsProcessor(GENERATION["suppress_tokens"])]
    timed = WhisperTimeStampLogitsProcessor(generation, begin_index=len(prompt))
    alone = WhisperTimeStampLogitsProcessor(generation, begin_index=len(prompt), _detect_timestamp_from_logprob=False)
    with torch.no_grad():
        encoded = model.get_encoder()(features)
        while len(ids) < CONFIG["max_target_positions"]:
            scores = model(encoder_outputs=encoded, decoder_input_ids=torch.tensor([ids]), use_cache=False).logits[:, -1]
            for rule in rules:
                scores = rule(torch.tensor([ids]), scores)
            if times:
                plain = int(alone(torch.tensor([ids]), scores).argmax())
                scores = timed(torch.tensor([ids]), scores)
                decided += plain != int(scores.argmax())
            ids.append(int(scores.argmax()))
            if ids[-1] == EOT:
                break
    return ids[len(prompt):], decided


def decode(model, number):
    with torch.no_grad():
        language = int(model.detect_language(input_features=heard(CONFIG, number))[0])
    prompt = [SOT, language, TRANSCRIBE]
    plain, _ = greedy(model, number, prompt + [PLAIN], False)
    timed, decided = greedy(model, number, prompt, True)
    code = {v: k for k, v in LANGUAGES.items()}[language].strip("<|>")
    for ids, more in ((plain, {}), (timed, {"return_timestamps": True})):
        said = model.generate(heard(CONFIG, number), language=code, task="transcribe", max_new_tokens=50, **more)[0].tolist()
        # Behind the first stretch, transformers begins anew from its last time.
        sure = next((i + 1 for i in range(1, 40) if more and min(ids[i : i + 2]) > PLAIN), 40)
        assert said[:sure] == ids[:sure], (said, ids)
    print(f"    sound {number}: {code}, {plain}, {timed}, times together decided {decided} times")
    return {"language": language, "plain": plain, "timed": timed, "decided": decided}


def make():
    ids = [SOT, 62, TRANSCRIBE, PLAIN] + [int(v) for v in (uniform("ids", TOKENS - 4) * 0.5 + 0.5) * EOT]
    tensors = [t for t in tensors_of(CONFIG, FAMILY) if t[0] != "proj_out.weight"]
    logits, rows = run(CONFIG, tensors, ids)
    greatest = float(np.abs(logits).max())
    print(f"whisper: {len(tensors)} tensors, {len(ids)} tokens, std {logits.std():.2f}, greatest {greatest:.2f}, rows up to {np.abs(rows).max():.2f}")
    assert logits.std() >= 1, "the logits are too flat to tell anything"
    variants = []
    for title, patch in VARIANTS.items():
        changed = {**copy.deepcopy(CONFIG), **patch}
        wanted = [t for t in tensors_of(changed, FAMILY) if changed["tie_word_embeddings"] is False or t[0] != "proj_out.weight"]
        extra = [t for t in wanted if t not in tensors]
        without = sorted({t[0] for t in tensors} - {t[0] for t in wanted})
        other, _ = run(changed, wanted, ids)
        far = float(np.abs(other - logits).max() / greatest)
        print(f"    {title}: differs by {far:.3g} of the greatest")
        assert far >= 100 * TOLERANCE, f"{title} makes too little difference"
        variants.append({"name": title, "patch": patch, "tensors": extra, "without": without, "last": encode(other[-2:]), "difference": far})
    model = load(CONFIG, tensors)
    sounds = [decode(model, i) for i in range(SOUNDS)]
    write("whisper", {"transformers": transformers.__version__, "config": CONFIG, "generation": GENERATION, "tensors": tensors, "ids": ids,
                      "rows": encode(rows), "logits": encode(logits), "sounds": sounds, "variants": variants})


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    make()
