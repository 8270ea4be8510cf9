// Prints what llama.cpp makes of texts: gguf_vectors.py runs it.
//
//     c++ -O1 -I include -I ggml/include gguf_tokens.cpp libllama.a libggml.a libggml-cpu.a libggml-base.a -o gguf_tokens
//     gguf_tokens VOCABULARY.gguf < texts > ids
//
// A text is its length and its bytes; an answer is the number of ids, and the
// ids. All numbers are 32 bits, little-endian.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "llama.h"

int main(int argc, char **argv) {
    llama_log_set([](enum ggml_log_level, const char *, void *) {}, nullptr);
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    llama_model *model = argc == 2 ? llama_model_load_from_file(argv[1], params) : nullptr;
    if (!model) {
        fprintf(stderr, "cannot load %s\n", argc == 2 ? argv[1] : "nothing");
        return 1;
    }
    const llama_vocab *vocab = llama_model_get_vocab(model);
    uint32_t n;
    while (fread(&n, 4, 1, stdin) == 1) {
        std::string text(n, 0);
        if (fread(&text[0], 1, n, stdin) != n) return 1;
        std::vector<llama_token> ids(n + 8);
        int32_t count = llama_tokenize(vocab, text.data(), n, ids.data(), ids.size(), false, false);
        if (count < 0) return 1;
        fwrite(&count, 4, 1, stdout);
        fwrite(ids.data(), 4, count, stdout);
    }
    return 0;
}
