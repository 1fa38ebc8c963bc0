// The units that llama-server is linked with beside its own sources. Those for images and sounds are left out: a server
// of text alone never calls them.
#include <cstdio>
#include <cstdlib>

// C that its own build compiles as C++.
#include "hash/sha1/sha1.c"
#include "mtmd.h"

// By its name alone: its types do not matter.
#define LEFT_OUT(name)                                                                                                 \
    void left_out_##name() __asm__(#name);                                                                             \
    void left_out_##name() {                                                                                           \
        std::fputs(#name " is left out\n", stderr);                                                                    \
        std::abort();                                                                                                  \
    }

// Every server calls these.
void mtmd_log_set(ggml_log_callback, void *) {}
mtmd_context_params mtmd_context_params_default(void) { return {}; }

LEFT_OUT(mtmd_batch_add_chunk)
LEFT_OUT(mtmd_batch_encode)
LEFT_OUT(mtmd_batch_free)
LEFT_OUT(mtmd_batch_get_output_embd)
LEFT_OUT(mtmd_batch_init)
LEFT_OUT(mtmd_bitmap_free)
LEFT_OUT(mtmd_bitmap_init)
LEFT_OUT(mtmd_bitmap_init_from_audio)
LEFT_OUT(mtmd_bitmap_set_id)
LEFT_OUT(mtmd_decode_use_mrope)
LEFT_OUT(mtmd_decode_use_non_causal)
LEFT_OUT(mtmd_encode_chunk)
LEFT_OUT(mtmd_free)
LEFT_OUT(mtmd_gen_audio_get_info)
LEFT_OUT(mtmd_get_audio_sample_rate)
LEFT_OUT(mtmd_get_cap_from_file)
LEFT_OUT(mtmd_get_output_embd)
LEFT_OUT(mtmd_image_tokens_get_decoder_pos)
LEFT_OUT(mtmd_image_tokens_get_n_tokens)
LEFT_OUT(mtmd_init_from_file)
LEFT_OUT(mtmd_input_chunk_copy)
LEFT_OUT(mtmd_input_chunk_free)
LEFT_OUT(mtmd_input_chunk_get_id)
LEFT_OUT(mtmd_input_chunk_get_n_pos)
LEFT_OUT(mtmd_input_chunk_get_n_tokens)
LEFT_OUT(mtmd_input_chunk_get_placeholder)
LEFT_OUT(mtmd_input_chunk_get_tokens_image)
LEFT_OUT(mtmd_input_chunk_get_tokens_text)
LEFT_OUT(mtmd_input_chunk_get_type)
LEFT_OUT(mtmd_input_chunk_load)
LEFT_OUT(mtmd_input_chunk_save)
LEFT_OUT(mtmd_input_chunks_free)
LEFT_OUT(mtmd_input_chunks_get)
LEFT_OUT(mtmd_input_chunks_init)
LEFT_OUT(mtmd_input_chunks_size)
LEFT_OUT(mtmd_support_audio)
LEFT_OUT(mtmd_support_vision)
LEFT_OUT(mtmd_tokenize)

LEFT_OUT(_Z21mtmd_get_memory_usagePKc19mtmd_context_params)
