"""Makes the golden file of this folder: what Pillow and transformers do.

    python fixtures.py

needs Pillow, numpy, torch and transformers; their versions stand in the file. Go alone
runs the tests. Pixels are formulas or small files, and results digests: everything here
is equal to the bit, but for what is said to be compared by mean difference.
"""

import base64
import hashlib
import io
import json
import os

import numpy as np
import PIL
import transformers
from PIL import Image, ImageOps, features
from transformers.models.glm4v.image_processing_pil_glm4v import Glm4vImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

HERE = os.path.dirname(os.path.abspath(__file__))


def pixels(width, height, seed):
    """Noise on a slope, which the test makes alike: bytes (height, width, 3)."""
    y, x, c = np.mgrid[0:height, 0:width, 0:3].astype(np.uint64)
    z = (x * 7919 + y * 104729 + c * 1299709 + seed) * 0x9E3779B97F4A7C15
    z = z & 0xFFFFFFFFFFFFFFFF
    noise = (z >> np.uint64(58)).astype(np.int64)  # 0 to 63
    slope = (x * 191 // max(width, 1) if seed % 2 else y * 191 // max(height, 1)).astype(np.int64)
    return (noise + slope).astype(np.uint8)


def digest(a):
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()[:32]


def resizes():
    filters = {1: Image.Resampling.LANCZOS, 2: Image.Resampling.BILINEAR, 3: Image.Resampling.BICUBIC, 4: Image.Resampling.BOX}
    sizes = [
        (64, 48, 32, 24), (37, 211, 28, 56), (211, 37, 56, 28), (1, 200, 28, 56), (200, 1, 100, 28), (5, 5, 28, 28),
        (640, 480, 84, 56), (100, 100, 100, 37), (100, 100, 37, 100), (300, 200, 299, 20), (200, 300, 20, 299), (28, 28, 28, 28),
        (17, 400, 160, 84), (90, 350, 28, 28), (123, 457, 112, 140), (50, 20, 196, 84),
    ]
    out = []
    for i, (w, h, width, height) in enumerate(sizes):
        for number, f in filters.items():
            a = np.asarray(Image.fromarray(pixels(w, h, i)).resize((width, height), f))
            out.append([w, h, i, width, height, number, digest(a)])
    return out


def upright(data):
    """What vLLM makes of a file: EXIF followed, transparency on white, RGB."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if image.mode in ("LA", "PA", "La") or "transparency" in image.info:
        image = image.convert("RGBA")
    if image.mode == "RGBA":
        white = Image.new("RGB", image.size, (255, 255, 255))
        white.paste(image, mask=image.split()[3])
        return np.asarray(white)
    return np.asarray(image.convert("RGB"))


def files():
    """Small files of each kind, with their pixels: [name, base64, width, height, digest or pixels, exact]."""
    rgb = Image.fromarray(pixels(24, 17, 3))
    smooth = Image.fromarray(np.asarray(Image.fromarray(pixels(6, 5, 4)).resize((40, 30), Image.Resampling.BICUBIC)))
    alpha = rgb.convert("RGBA")
    alpha.putalpha(Image.fromarray(pixels(24, 17, 5)[:, :, 0]))
    grey = rgb.convert("L")
    grey_alpha = alpha.convert("LA")
    palette = rgb.quantize(16)
    exif = Image.Exif()
    out = []

    def add(name, image, kind, exact=True, **more):
        buf = io.BytesIO()
        image.save(buf, kind, **more)
        a = upright(buf.getvalue())
        result = digest(a) if exact else base64.b64encode(a.tobytes()).decode()
        out.append([name, base64.b64encode(buf.getvalue()).decode(), a.shape[1], a.shape[0], result, exact])

    add("png rgb", rgb, "PNG")
    add("png grey", grey, "PNG")
    add("png one bit", grey.convert("1"), "PNG")
    add("png rgba", alpha, "PNG")
    add("png grey with alpha", grey_alpha, "PNG")
    add("png palette", palette, "PNG")
    add("png palette with a transparent entry", palette, "PNG", transparency=3)
    add("png palette with alphas", palette, "PNG", transparency=bytes(range(0, 256, 16)))
    add("png rgb with a transparent colour", rgb, "PNG", transparency=rgb.getpixel((5, 4)))
    add("gif", palette, "GIF")
    add("gif with a transparent entry", palette, "GIF", transparency=3)
    add("bmp", rgb, "BMP")
    add("webp lossless", rgb, "WEBP", lossless=True)
    for turn in range(1, 9):
        exif[0x0112] = turn
        add(f"png turned {turn}", rgb, "PNG", exif=exif)
        add(f"jpeg turned {turn}", smooth, "JPEG", exact=False, quality=95, exif=exif)
    exif[0x0112] = 6
    add("webp turned", rgb, "WEBP", lossless=True, exif=exif)
    for ratio in ("4:4:4", "4:2:2", "4:2:0"):
        add(f"jpeg {ratio}", smooth, "JPEG", exact=False, quality=85, subsampling=ratio)
        add(f"jpeg {ratio} of odd sides", smooth.crop((0, 0, 33, 21)), "JPEG", exact=False, quality=85, subsampling=ratio)
    add("jpeg progressive", smooth, "JPEG", exact=False, quality=85, progressive=True)
    add("jpeg grey", smooth.convert("L"), "JPEG", exact=False, quality=85)
    add("jpeg cmyk", smooth.convert("CMYK"), "JPEG", exact=False, quality=95)
    add("webp lossless with alpha", alpha, "WEBP", lossless=True)
    add("webp lossy with alpha", alpha.resize((48, 34), Image.Resampling.BICUBIC), "WEBP", exact=False, quality=90)
    add("webp lossy", smooth, "WEBP", exact=False, quality=80)
    return out


def processors():
    """Targets and features of processors: settings, sizes, grids and digests of pixels and rows."""
    out = []
    configs = [
        {"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2,
         "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]},
        {"image_processor_type": "Qwen2VLImageProcessor", "size": {"shortest_edge": 3136, "longest_edge": 20000}, "resample": 2},
        {"image_processor_type": "Qwen2VLImageProcessorFast", "size": {"shortest_edge": 65536, "longest_edge": 16777216}, "patch_size": 16, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]},
        {"size": {"shortest_edge": 4096, "longest_edge": 40000}, "patch_size": 16, "merge_size": 1, "temporal_patch_size": 1, "resample": 1},
        {"image_processor_type": "Glm4vImageProcessor"},
        {"image_processor_type": "Glm46VImageProcessorFast", "size": {"shortest_edge": 12544, "longest_edge": 30000}, "image_mean": [0.5, 0.5, 0.5]},
    ]
    for config in configs:
        given = {k: v for k, v in config.items() if k != "image_processor_type"}
        p = (Glm4vImageProcessorPil if "Glm" in config.get("image_processor_type", "") else Qwen2VLImageProcessorPil)(**given)
        grids = []
        for w, h in [(640, 480), (1920, 1080), (2480, 3508), (200, 50), (28, 28), (29, 27), (1, 200), (4000, 20), (70, 70), (42, 42)]:
            lines, line = grid_of(p, w, h)
            grids.append([w, h, lines, line])
        rows = []
        for i, (w, h) in enumerate([(37, 211), (1, 150), (100, 60), (64, 64), (300, 150)]):
            out_ = p(Image.fromarray(pixels(w, h, i)), return_tensors="np")
            _, lines, line = out_["image_grid_thw"][0].tolist()
            rows.append([w, h, i, lines, line, digest(out_["pixel_values"].astype("<f4"))])
        out.append({"config": config, "grids": grids, "rows": rows})
    return out


def grid_of(p, w, h):
    from transformers.models.glm4v import image_processing_pil_glm4v as glm
    from transformers.models.qwen2_vl import image_processing_pil_qwen2_vl as qwen

    size = p.size if isinstance(p.size, dict) else {"shortest_edge": p.size.shortest_edge, "longest_edge": p.size.longest_edge}
    limits = {"factor": p.patch_size * p.merge_size, "min_pixels": size["shortest_edge"], "max_pixels": size["longest_edge"]}
    if isinstance(p, Glm4vImageProcessorPil):
        height, width = glm.smart_resize(p.temporal_patch_size, h, w, p.temporal_patch_size, **limits)
    else:
        height, width = qwen.smart_resize(h, w, **limits)
    return height // p.patch_size, width // p.patch_size


def main():
    golden = {"pillow": PIL.__version__, "libjpeg": features.version("libjpeg_turbo") or features.version("jpg"), "transformers": transformers.__version__,
              "resizes": resizes(), "files": files(), "processors": processors()}
    with open(os.path.join(HERE, "golden.json"), "w") as f:
        f.write(json.dumps(golden, separators=(",", ":")).replace("],[", "],\n[") + "\n")


main()
