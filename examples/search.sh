#!/bin/sh
# Semantic search over one's own documents (here bertc's own pages): a vector for each paragraph, nearest neighbors with NumPy, and a
# reranker trained on the pages' headings, which reads a question and a paragraph together.
#   sh search.sh [QUESTION]   MODEL=hf:OWNER/NAME or a folder; PAGES="a.md b.md"; OUT=folder; BERTC=program; PYTHON=interpreter
set -eu
here=$(dirname "$0") bertc=${BERTC:-bertc} python=${PYTHON:-python3} model=${MODEL:-hf:sentence-transformers/all-MiniLM-L6-v2} out=${OUT:-runs/search}
# shellcheck disable=SC2086
"$python" "$here/paragraphs.py" "$out" ${PAGES:-"$here"/../docs/*.md}
echo "${1:-How can I continue a run that was interrupted?}" >"$out/question.txt"

"$bertc" embed --model "$model" "$out/paragraphs.txt" --out "$out/paragraphs.npy"
"$bertc" embed --model "$model" "$out/question.txt" --out "$out/question.npy"
"$python" "$here/neighbors.py" "$out/paragraphs.txt" "$out/paragraphs.npy" "$out/question.txt" "$out/question.npy" 10 >"$out/nearest.tsv"
echo "Nearest by their vectors:"
sed 1d "$out/nearest.tsv" | head -n 3 | cut -f 2,3 | cut -c 1-120

"$bertc" finetune --task reranking --model "$model" --train "$out/judged.tsv" --num_train_epochs "${EPOCHS:-3}" --out "$out/reranker"
"$bertc" predict --model "$out/reranker" "$out/nearest.tsv" --format tsv --out "$out/scores.tsv"
echo "The same ten, ranked again:"
sed 1d "$out/nearest.tsv" | cut -f 2 | paste "$out/scores.tsv" - | sort -rn | head -n 3 | cut -c 1-120
