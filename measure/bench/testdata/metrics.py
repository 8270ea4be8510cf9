"""Makes metrics.json: samples, and the figures that vLLM's own benchmark client computes of them.

    python metrics.py > metrics.json        (in an environment with vLLM 0.32)
"""
import json
import random

from vllm.benchmarks.lib.endpoint_request_func import RequestFuncOutput
from vllm.benchmarks.serve import calculate_metrics

draw = random.Random(20261122)
samples, outputs = [], []
for i in range(200):
    start = round(i * 0.05 + draw.random() * 0.01, 6)
    ttft = round(draw.expovariate(4), 6)
    itl = [round(draw.expovariate(40), 6) for _ in range(draw.choice([0, 1, 5, 30]))]
    ok = draw.random() > 0.05
    tokens = len(itl) + 1 + draw.choice([0, 0, 3])
    prompt = draw.randint(1, 900)
    samples.append(dict(sent=start, ttft=ttft, gaps=itl, prompt=prompt, output=tokens, ok=ok))
    o = RequestFuncOutput()
    o.success, o.prompt_len, o.output_tokens, o.start_time = ok, prompt, tokens, start
    o.ttft, o.itl, o.latency, o.error = ttft, itl, ttft + sum(itl), "" if ok else "refused"
    outputs.append(o)

duration = max(o.start_time + o.latency for o in outputs)
points = [50.0, 95.0, 99.0]
m, lens = calculate_metrics([None] * len(outputs), outputs, duration, None, points, {"ttft": 400, "tpot": 30, "e2el": 900})
figures = {k: float(getattr(m, k)) for k in (
    "completed failed total_input total_output request_throughput request_goodput output_throughput total_token_throughput "
    "max_output_tokens_per_s max_concurrent_requests").split()}
for name in ("ttft", "tpot", "itl", "e2el"):
    for what in ("mean", "median", "std"):
        figures[f"{what}_{name}_ms"] = float(getattr(m, f"{what}_{name}_ms"))
    for p, v in getattr(m, f"percentiles_{name}_ms"):
        figures[f"p{int(p)}_{name}_ms"] = float(v)
print(json.dumps(dict(duration=duration, points=points, samples=samples, figures=figures)))
