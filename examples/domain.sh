#!/bin/sh
# A domain project, from raw text to a service: the vocabulary of a published model is extended by the words of the text, the model
# is trained further on the text, then taught to find ships, ports, and goods; it is evaluated, served, and asked from Python.
#   MODEL=hf:OWNER/NAME or a folder; STEPS=updates of the continued pre-training; OUT=folder; BERTC=program; PYTHON=interpreter
set -eu
here=$(dirname "$0") bertc=${BERTC:-bertc} python=${PYTHON:-python3} model=${MODEL:-hf:sentence-transformers/all-MiniLM-L6-v2} out=${OUT:-runs/harbor}
address=${ADDRESS:-127.0.0.1:8080}
"$python" "$here/reports.py" "$out/data"

"$bertc" vocab --extend "$model" --corpus "$out/data/text.txt" --out "$out/vocab.txt"
"$bertc" pretrain --corpus "$out/data/text.txt" --init_checkpoint "$model" --vocab_file "$out/vocab.txt" --remap_vocab \
	--num_train_steps "${STEPS:-200}" --max_seq_length 64 --train_batch_size 32 --out "$out/adapted"
"$bertc" finetune --task tagging --model "$out/adapted" --train "$out/data/train.conll" --dev "$out/data/dev.conll" \
	--num_train_epochs "${EPOCHS:-5}" --out "$out/tagger"
"$bertc" evaluate --model "$out/tagger" --test "$out/data/test.conll"

"$bertc" serve --model harbor="$out/tagger" --listen "$address" --no_progress &
server=$!
trap 'kill $server && wait $server || true' EXIT
"$python" "$here/client.py" "http://$address" "Yesterday the schooner Blue Heron came to Holmwick with herring ."
