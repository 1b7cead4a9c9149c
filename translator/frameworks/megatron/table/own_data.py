"""Options without a neutral meaning: datasets and tokenizers."""

from __future__ import annotations

from translator.frameworks.megatron.table.own_group import lost, machinery
from translator.mapping.rows import Row
from translator.spec.touches import Touches

ROWS: tuple[Row, ...] = (
    lost(
        "data_args_path per_split_data_args_path train_data_path valid_data_path test_data_path",
        Touches.OPERATION,
        "names datasets, per split or in a file; point the result at its data by hand",
    ),
    lost(
        "dataloader_type data_sharding",
        Touches.TRAINING,
        "says in which order samples come; the result's loader has an order of its own",
    ),
    lost(
        "dataloader_inter_document_masking",
        Touches.TRAINING,
        "attention stays inside each document by packed sequence bounds; no leaf says it",
    ),
    lost(
        "allow_ambiguous_pad_tokens",
        Touches.TRAINING,
        "says whether tokens that share the padding id count in the loss; no leaf says it",
    ),
    lost(
        """
        fim_data fim_eod_token fim_fragment_rate fim_middle_token fim_no_prefix fim_pad_token fim_prefix_token
        fim_rate fim_split_sample fim_spm_rate fim_suffix_token
        """,
        Touches.TRAINING,
        "documents are rearranged for fill-in-the-middle; the result trains on them as they are",
    ),
    lost(
        "sft sft_tokenizer_prompt_format",
        Touches.TRAINING,
        "trains on conversations, with a loss on the answers only; the result trains on plain text",
    ),
    machinery(
        """
        create_attention_mask_in_dataloader data_cache_path dataloader_defer_npy_index_mmap dataloader_fast_cache_load
        enable_msc disable_msc_deprecated mid_level_dataset_surplus mmap_bin_files num_dataset_builder_threads
        object_storage_cache_path per_dataset_sequences_path
        """,
        Touches.OPERATION,
        "says how indexed datasets are opened and cached; the samples are the same",
    ),
    lost(
        "pad_vocab_size",
        Touches.MEMORY,
        "the vocabulary is not padded; no leaf says it, state --padded-vocab-size",
    ),
    lost("vocab_extra_ids", Touches.MEMORY, "adds sentinel tokens to the vocabulary; the result does not have them"),
    lost(
        """
        vocab_file merge_file metadata_path special_tokens tiktoken_num_special_tokens tiktoken_pattern
        tiktoken_special_tokens tokenizer_hf_include_special_tokens tokenizer_hf_no_include_special_tokens
        tokenizer_hf_use_fast tokenizer_hf_no_use_fast tokenizer_sentencepiece_ignore_extra_whitespaces
        tokenizer_sentencepiece_legacy null_tokenizer_eod_id null_tokenizer_pad_id chat_template
        """,
        Touches.OPERATION,
        "configures the tokenizer; the result takes its tokenizer from one path",
    ),
    machinery(
        "legacy_tokenizer trust_remote_code use_tokenizer_model_from_checkpoint_args",
        Touches.OPERATION,
        "says which code and which copy the tokenizer is loaded from",
    ),
)
