"""Makes convolution.json: what torch's convolutions compute.

    python convolution.py

needs torch (CPU); the version that was used stands in the file. Go alone runs the test.

No inputs are kept. Number i of a row-major array is ((i * 7919 + seed) mod 1009 - 504) / 512,
made alike here and in convolution_test.go: features (lines, line, channels) with seed 13, weights as
torch has them (outputs, channels of a group, taps down, taps along) with 101, biases with 307.
All is computed in float64.
"""

import json
import os

import torch
import torch.nn.functional as F

# As the towers of published models have them, with fewer channels.
CASES = {
    "whisper, first": dict(channels=10, outputs=18, kernel=[3, 1], padding=[1, 0, 1, 0], lines=11),
    "whisper, second": dict(channels=18, outputs=18, kernel=[3, 1], stride=[2, 1], padding=[1, 0, 1, 0], lines=11),
    "wav2vec2, features": dict(channels=1, outputs=7, kernel=[10, 1], stride=[5, 1], lines=53, bias=False),
    "wav2vec2, positions": dict(channels=12, outputs=12, groups=3, kernel=[8, 1], padding=[4, 0, 3, 0], lines=9),
    "conformer, subsampling": dict(channels=1, outputs=6, kernel=[3, 3], stride=[2, 2], padding=[1, 1, 1, 1], lines=9, line=8),
    "conformer, depthwise": dict(channels=19, outputs=19, groups=19, kernel=[31, 1], padding=[15, 0, 15, 0], lines=21),
    "fastconformer, depthwise subsampling": dict(channels=5, outputs=5, groups=5, kernel=[3, 3], stride=[2, 2], padding=[1, 1, 1, 1], lines=5, line=6),
    "causal, dilated": dict(channels=4, outputs=9, kernel=[3, 1], dilation=[3, 1], padding=[6, 0, 0, 0], lines=8),
    "clip, patches": dict(channels=3, outputs=8, kernel=[14, 14], stride=[14, 14], lines=42, line=30, bias=False),
    "square, two groups": dict(channels=4, outputs=6, groups=2, kernel=[3, 2], stride=[1, 2], dilation=[2, 1], padding=[2, 0, 1, 1], lines=6, line=7),
}


def numbers(seed, *shape):
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.int64)
    return (((i * 7919 + seed) % 1009 - 504).double() / 512).reshape(shape)


def case(channels, outputs, kernel, lines, line=1, groups=1, stride=(1, 1), dilation=(1, 1), padding=(0, 0, 0, 0), bias=True):
    """padding is zeros before the lines and a line, then behind them."""
    x = numbers(13, lines, line, channels).permute(2, 0, 1)[None]
    w = numbers(101, outputs, channels // groups, *kernel)
    b = numbers(307, outputs) if bias else None
    top, left, bottom, right = padding
    x = F.pad(x, (left, right, top, bottom))
    if line == 1 and kernel[1] == 1:
        y = F.conv1d(x[..., 0], w[..., 0], b, stride[0], 0, dilation[0], groups)[..., None]
    else:
        y = F.conv2d(x, w, b, tuple(stride), 0, tuple(dilation), groups)
    return dict(channels=channels, outputs=outputs, kernel=list(kernel), lines=lines, line=line, groups=groups, stride=list(stride),
                dilation=list(dilation), padding=list(padding), bias=bias, places=list(y.shape[2:]),
                out=[float(f"{v:.9g}") for v in y[0].permute(1, 2, 0).flatten().tolist()])


if __name__ == "__main__":
    cases = {name: case(**settings) for name, settings in CASES.items()}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "convolution.json"), "w") as f:
        f.write("{\n" + json.dumps("torch") + ": " + json.dumps(torch.__version__.split("+")[0]) + ",\n\"cases\": {\n")
        f.write(",\n".join(json.dumps(name) + ": " + json.dumps(c, separators=(",", ":")) for name, c in cases.items()))
        f.write("\n}}\n")
