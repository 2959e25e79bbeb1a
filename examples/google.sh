#!/bin/sh
# A command line of google-research/bert, moved over: all that changes is what stands before the options. BERT_BASE_DIR is a folder with
# Google's three files, which `bertc download google/uncased_L-12_H-768_A-12` fetches; GLUE_DIR has CoLA's files.
#   BERT_BASE_DIR=folder GLUE_DIR=folder sh google.sh     OUT=folder; BERTC=program
set -eu
bertc=${BERTC:-bertc} out=${OUT:-runs/cola}
# was: python run_classifier.py
"$bertc" finetune \
	--task_name=CoLA --do_train=true --do_eval=true --data_dir="$GLUE_DIR/CoLA" --vocab_file="$BERT_BASE_DIR/vocab.txt" \
	--bert_config_file="$BERT_BASE_DIR/bert_config.json" --init_checkpoint="$BERT_BASE_DIR/bert_model.ckpt" \
	--max_seq_length="${LENGTH:-128}" --train_batch_size=32 --learning_rate=2e-5 --num_train_epochs=3.0 --output_dir="$out" \
	--optimizer google_adamw
cat "$out/eval_results.txt"
