#!/bin/sh
# A classifier from a CSV: MODEL=hf:OWNER/NAME or a folder; OUT=folder; BERTC=program
set -eu
here=$(dirname "$0") bertc=${BERTC:-bertc} model=${MODEL:-hf:sentence-transformers/all-MiniLM-L6-v2} out=${OUT:-runs/feedback}
"$bertc" finetune --task classification --model "$model" --train "$here/feedback.csv" --dev "$here/feedback_dev.csv" \
	--num_train_epochs "${EPOCHS:-10}" --out "$out"
"$bertc" evaluate --model "$out" --test "$here/feedback_dev.csv"
printf '%s\n' 'The parcel never arrived.' 'When do you open on Sundays?' 'Thank you, the repair was quick.' |
	"$bertc" predict --model "$out"
