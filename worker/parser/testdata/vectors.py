# Writes vectors.json: what vLLM's own parsers say of outputs.json, whole texts of ours.
# Run with the Python of an installed vLLM, in this folder: python vectors.py
import json
import logging

logging.disable(logging.CRITICAL)

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager

SPECIAL = """<think> </think> <tool_call> </tool_call> <seed:think> </seed:think> <seed:tool_call> </seed:tool_call> <seed:bos> <seed:eos>
<arg_key> </arg_key> <arg_value> </arg_value> <|im_start|> <|im_end|> <|system|> <|user|> <|assistant|> <|observation|> <tool_calls> </tool_calls>
<｜tool▁calls▁begin｜> <｜tool▁calls▁end｜> <｜tool▁call▁begin｜> <｜tool▁call▁end｜> <｜tool▁sep｜> <|tool_calls_section_begin|> <|tool_calls_section_end|>
<|tool_call_begin|> <|tool_call_end|> <|tool_call_argument_begin|> <|tool_call|> <answer> </answer> <response> </response>""".split()

alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
core = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
core.decoder = decoders.ByteLevel()
core.add_tokens([AddedToken(s, normalized=False) for s in SPECIAL])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core)

data = json.load(open("outputs.json"))
tools = [{"type": "function", "function": f} for f in data["tools"]]
request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "x"}], tools=tools)


def make(cls, *more):
    try:
        return cls(tokenizer, *more)
    except TypeError:
        return cls(tokenizer)


out = []
for kind, parsers in data["outputs"].items():
    for name in parsers["parsers"]:
        for text in parsers["texts"]:
            row = {"kind": kind, "parser": name, "text": text}
            try:
                if kind.startswith("tools"):
                    p = make(ToolParserManager.get_tool_parser(name), request.tools)
                    got = p.extract_tool_calls(text, request)
                    row["content"] = got.content or ""
                    row["calls"] = [[c.function.name, c.function.arguments] for c in got.tool_calls]
                else:
                    p = make(ReasoningParserManager.get_reasoning_parser(name))
                    reasoning, content = p.extract_reasoning(text, request)
                    row["reasoning"], row["content"] = reasoning or "", content or ""
            except Exception as e:  # what vLLM cannot take says nothing of ours
                row["error"] = type(e).__name__ + ": " + str(e)[:80]
            out.append(row)
with open("vectors.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(r, ensure_ascii=False) for r in out) + "\n]\n")
print(len(out), "vectors,", sum("error" in r for r in out), "errors")
