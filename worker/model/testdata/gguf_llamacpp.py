"""What llama.cpp makes of a GGUF file: logits, a second reference beside transformers,
and tokens, for worker/tokenizer/testdata/gguf_vectors.py.

LLAMACPP names a folder with llama.cpp's libraries, as the npm package
@node-llama-cpp/linux-x64 3.22.1 has them in bins/linux-x64; the package llama-cpp-py-sync
0.11739 has the declarations, of which one is newer than those libraries.
llama.cpp quantises activations where weights are blocks, so that only files of floats
can be held to a tolerance as narrow as that of the golden files.
"""

import ctypes
import functools
import glob
import os

import cffi
import numpy as np

from llama_cpp_py_sync import _cffi_bindings


RELEASE = "v0.5.0"  # of those libraries


@functools.cache
def library():
    folder = os.path.join(os.environ["LLAMACPP"], "")
    (ggml,) = glob.glob(folder + "libggml.*so")
    (llama,) = glob.glob(folder + "libllama.*so")
    for name in (folder + "libggml-base.so", ggml):
        held = ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    held.ggml_backend_load.restype = ctypes.c_void_p
    assert held.ggml_backend_load((folder + "libggml-cpu-haswell.so").encode())
    ffi = cffi.FFI()
    ffi.cdef(_cffi_bindings._LLAMA_H_CDEF.replace("    size_t moe_cache_size;\n", ""))
    lib = ffi.dlopen(llama)
    lib.llama_log_set(heard(ffi), ffi.NULL)
    lib.llama_backend_init()
    return ffi, lib


said = []


@functools.cache
def heard(ffi):
    return ffi.callback("void(enum ggml_log_level, const char *, void *)", lambda level, text, data: said.append(ffi.string(text).decode(errors="replace")))


def logits(path, ids, vocab):
    """The logits of all positions."""
    ffi, lib = library()
    p = lib.llama_model_default_params()
    p.n_gpu_layers = 0
    model = lib.llama_model_load_from_file(path.encode(), p)
    assert model != ffi.NULL, "".join(said[-5:])
    c = lib.llama_context_default_params()
    assert c.no_perf and c.offload_kqv and c.op_offload and not c.embeddings, "the declarations are not those of the library"
    c.n_ctx = c.n_batch = c.n_ubatch = 256
    c.n_threads = c.n_threads_batch = 2
    c.type_k = c.type_v = 0  # F32
    c.flash_attn_type = 0
    context = lib.llama_init_from_model(model, c)
    assert context != ffi.NULL, "".join(said[-5:])
    batch = lib.llama_batch_init(len(ids), 0, 1)
    batch.n_tokens = len(ids)
    for i, token in enumerate(ids):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, 1
        batch.seq_id[i][0] = 0
    assert lib.llama_decode(context, batch) == 0, "".join(said[-5:])
    rows = [np.frombuffer(ffi.buffer(lib.llama_get_logits_ith(context, i), 4 * vocab), dtype=np.float32).copy() for i in range(len(ids))]
    lib.llama_batch_free(batch)
    lib.llama_free(context)
    lib.llama_model_free(model)
    return np.stack(rows)


def tokens(path, texts):
    """The tokens of texts, without those around them; control tokens stay text."""
    ffi, lib = library()
    p = lib.llama_model_default_params()
    p.vocab_only = True
    model = lib.llama_model_load_from_file(path.encode(), p)
    assert model != ffi.NULL, "".join(said[-5:])
    vocab, answers = lib.llama_model_get_vocab(model), []
    for text in map(str.encode, texts):
        ids = ffi.new("llama_token[]", len(text) + 8)
        count = lib.llama_tokenize(vocab, text, len(text), ids, len(text) + 8, False, False)
        assert count >= 0
        answers.append(list(ids[0:count]))
    lib.llama_model_free(model)
    return answers
