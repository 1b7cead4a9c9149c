"""Options without a neutral meaning: models other than decoders of text."""

from __future__ import annotations

from translator.frameworks.megatron.table.own_group import lost, machinery
from translator.mapping.rows import Row
from translator.spec.touches import Touches

ROWS: tuple[Row, ...] = (
    machinery(
        """
        bert_binary_head bert_embedder_type bert_load mask_prob output_bert_embeddings short_seq_prob
        """,
        Touches.NOTHING,
        "concerns BERT and T5 only",
    ),
    lost(
        "decoder_num_layers decoder_seq_length",
        Touches.TRAINING,
        "of the decoder beside an encoder; the result has one stack of layers",
    ),
    machinery(
        """
        biencoder_projection_dim biencoder_shared_query_context_model block_data_path embedding_path
        evidence_data_path ict_head_size ict_load indexer_batch_size indexer_log_interval query_in_block_prob
        retriever_report_topk_accuracies retriever_score_scaling retriever_seq_length sample_rate titles_data_path
        use_one_sent_docs
        """,
        Touches.NOTHING,
        "concerns retrievers only",
    ),
    machinery(
        """
        retro_add_retriever retro_attention_gate retro_cyclic_train_iters retro_encoder_attention_dropout
        retro_encoder_hidden_dropout retro_encoder_layers retro_num_neighbors retro_num_retrieved_chunks
        retro_project_dir retro_verify_neighbor_count
        """,
        Touches.NOTHING,
        "concerns retrieval-enhanced models only",
    ),
    machinery(
        """
        classes_fraction data_per_class_fraction dino_bottleneck_size dino_freeze_last_layer dino_head_hidden_size
        dino_local_crops_number dino_local_img_size dino_norm_last_layer dino_teacher_temp dino_warmup_teacher_temp
        dino_warmup_teacher_temp_epochs img_h img_w iter_per_epoch mask_factor mask_type num_channels num_classes
        patch_dim swin_backbone_type vision_backbone_type vision_pretraining vision_pretraining_type
        """,
        Touches.NOTHING,
        "concerns vision models only",
    ),
)
