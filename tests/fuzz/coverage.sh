#!/bin/sh
# Shows which lines and branches of each parser the inputs in $FUZZ_OUT/corpus reach: runs the targets, built with coverage,
# on them. $FUZZ_OUT/coverage/NAME has the sources with a count for each line.
cd "$(dirname "$0")/../.." || exit 1
mkdir -p "$FUZZ_OUT/coverage" || exit 1
FUZZ_SCRATCH=$(mktemp -d /dev/shm/bertc-fuzz-XXXXXX) || exit 1
export FUZZ_SCRATCH
trap 'rm -rf "$FUZZ_SCRATCH"' EXIT

# The files of src/ that a target is for.
sources() {
	case $1 in
	bzip2_blocks) echo formats/bzip2_blocks ;;
	checkpoint) echo weights/manifest weights/checkpoint_folder train/checkpoint train/guard model/config ;;
	checksum) echo formats/checksum ;;
	corpus) echo text/corpus text/text_form text/input_form text/document_builder text/text_batch text/gutenberg ;;
	example) echo formats/example data/instance_row ;;
	fetch) echo formats/fetch ;;
	json) echo base/json base/json_writer ;;
	json_records) echo formats/json_records formats/records ;;
	megatron_index | shard_json) echo data/shard ;;
	metrics) echo report/history ;;
	options_config) echo base/option base/option_config base/option_foreign base/option_parse base/option_section ;;
	pairs) echo data/rewriting data/line_shard ;;
	safetensors) echo formats/safetensors formats/weights_file ;;
	sentences) echo text/sentences text/sentence_words ;;
	static_instances) echo data/static_instances ;;
	stream) echo formats/stream formats/line_reader formats/bzip2_blocks ;;
	tf_bundle) echo formats/tf_bundle formats/sorted_table ;;
	tf_checkpoint) echo formats/weights_find ;;
	tfrecord) echo formats/tfrecord data/record_reader formats/example data/instance_row ;;
	tokenizer | tokenizer_plain) echo text/tokenizer text/tokenizer_normalize text/tokenizer_wordpiece text/unicode ;;
	tokenizer_json) echo text/vocab_json text/tokenizer_folder ;;
	torch_file) echo formats/torch_file formats/zip formats/pickle ;;
	unpack) echo formats/unpack ;;
	vocab) echo text/vocab ;;
	warc) echo formats/warc ;;
	wiki_markup) echo text/wiki_markup text/wiki_tags text/wiki_templates text/wiki_line text/html_entities ;;
	wiki_xml) echo formats/wiki_xml ;;
	wikiextractor) echo formats/wikiextractor ;;
	esac
}

printf '%-18s %9s %9s  %s\n' target lines branches files
for program; do
	name=$(basename "$program")
	files=
	for source in $(sources "$name"); do files="$files src/$source.c"; done
	LLVM_PROFILE_FILE="$FUZZ_SCRATCH/raw" "$program" -runs=0 -close_fd_mask=2 -max_len=65536 "$FUZZ_OUT/corpus/$name" \
		>"$FUZZ_SCRATCH/log" 2>&1 || { echo "$name: failed"; tail -n 5 "$FUZZ_SCRATCH/log"; continue; }
	llvm-profdata merge -o "$FUZZ_SCRATCH/profile" "$FUZZ_SCRATCH/raw" || exit 1
	# shellcheck disable=SC2086
	llvm-cov show "$program" -instr-profile="$FUZZ_SCRATCH/profile" -show-branches=count $files >"$FUZZ_OUT/coverage/$name"
	# Of the functions that were entered; those that never were (most of them write files) are listed.
	# shellcheck disable=SC2086
	llvm-cov report "$program" -instr-profile="$FUZZ_SCRATCH/profile" -show-functions $files 2>/dev/null |
		awk -v name="$name" -v files="$files" '
			NF == 10 && $5 == $6 { sub(/.*:/, "", $1); never = never " " $1; next }
			NF == 10 && $1 != "TOTAL" {
				lines += $5; lines_missed += $6; branches += $8; branches_missed += $9
			}
			END {
				printf "%-18s %8.1f%% %8.1f%% %s\n", name, 100 * (1 - lines_missed / lines),
					100 * (1 - branches_missed / branches), files
				if (never != "") printf "%39snever entered:%s\n", "", never
			}'
done
