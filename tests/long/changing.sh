#!/bin/sh
# Everything that commands read is replaced by something else of its kind while they read it, at each of their opens in
# turn: a model by one with other weights and another order of words, a file of examples by another, a vocabulary, shards, a
# text. Each time the command must refuse, or give the result for one or the other, never a mixture of both.
#   OPENS=40 FILTER=export sh tests/long/changing.sh        number of opens to try; BERTC names the program
set -u
. "$(dirname "$0")/world.inc"
begin
most=${OPENS:-40}
filter=${FILTER:-}
${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -O1 -shared -fPIC -o "$work/changing.so" "$(dirname "$0")/changing.c" -ldl || exit 1
preload="$(ldd "$bertc" | awk '/libasan/ {print $3}') $work/changing.so"
home=$work
# Two worlds of the same form: a and b.
for each in a b; do
	work=$home/$each
	mkdir "$work"
	small_text 60
	small_tasks
	small_config 16 1 32
	"$bertc" vocab --quiet --corpus "$work/text" --vocab_size 120 --out "$work/vocab.txt" || exit 1
	seed=1 animal=cat verb=photographs
	if [ $each = b ]; then
		seed=2 animal=dog verb=draws
		for file in text train.tsv dev.tsv lines questions.json tags.conll pairs.jsonl; do
			sed 's/cat/DOG/g; s/dog/cat/g; s/DOG/dog/g' "$work/$file" >"$work/new" && mv "$work/new" "$work/$file"
		done
		# The same words in another order: after the fortieth, every two are swapped.
		awk 'NR > 40 && NR % 2 == 1 { held = $0; next } { print } NR > 40 { print held; held = "" } END { if (held) print held }' \
			"$home/a/vocab.txt" >"$work/vocab.txt"
	fi
	awk -v animal=$animal 'BEGIN {
		print "context\tsource\ttarget"
		for (i = 0; i < 24; i++) print "the " animal " sees\twhat does it see\twhat does the " animal " see"
	}' >"$work/rewriting.tsv"
	sed "s/paints/$verb/" "$work/text" >"$work/new"
	"$bertc" pretrain $small --corpus "$work/text" --model "$work/config.json" --vocab_file "$work/vocab.txt" --out "$work/base" \
		--num_train_steps 4 --seed $seed &&
		"$bertc" finetune $small --task classification --model "$work/base" --train "$work/train.tsv" --num_train_steps 4 \
			--out "$work/tuned" --seed $seed &&
		"$bertc" export --quiet --model "$work/base" --to sentence_transformers --out "$work/vectors" &&
		"$bertc" finetune $small --task classification --model "$home/a/base" --train "$work/train.tsv" --num_train_steps 4 \
			--out "$work/teacher" --seed $seed &&
		mkdir "$work/shards" && "$bertc" prepare --quiet --corpus "$work/text" --vocab_file "$home/a/vocab.txt" --out "$work/shards/x" &&
		"$bertc" finetune $small --task classification --model "$home/a/base" --train "$work/train.tsv" --num_train_steps 4 \
			--adapter lora --out "$work/adapter" &&
		for form in tfrecord hdf5 instances; do
			"$bertc" instances --quiet --corpus "$work/text" --vocab_file "$home/a/vocab.txt" --max_seq_length 32 --out "$work/x.$form" || exit 1
		done
	# The pairs as a data set in BEIR's layout, as vectors, and for a reranker.
	mkdir -p "$work/beir/qrels" "$work/sets"
	cp "$work/train.tsv" "$work/dev.tsv" "$work/sets" && cp "$work/dev.tsv" "$work/sets/test.tsv"
	awk -F '"' -v d="$work/" -v shift=$seed 'BEGIN { print "query-id\tcorpus-id\tscore" >(d "beir/qrels/test.tsv"); print "query\tpassage\tlabel" >(d "rank.tsv") }
		{
			printf "{\"_id\": \"q%d\", \"text\": \"%s\"}\n", NR, $4 >(d "beir/queries.jsonl")
			printf "{\"_id\": \"d%d\", \"title\": \"\", \"text\": \"%s\"}\n", NR, $8 >(d "beir/corpus.jsonl")
			printf "q%d\td%d\t1\n", NR, (NR + shift) % 24 + 1 >(d "beir/qrels/test.tsv")
			printf "%s\t%s\t%d\n", $4, $8, NR % 2 >(d "rank.tsv")
			print $8 >(d "documents")
		}' "$work/pairs.jsonl"
	echo "learning_rate = ${seed}e-3" >"$work/options"
	"$bertc" finetune $small --task reranking --model "$work/base" --train "$work/rank.tsv" --num_train_steps 2 --out "$work/reranker" &&
		"$bertc" embed --quiet --model "$work/vectors" "$work/documents" --format npy --out "$work/documents.npy" || exit 1
done 2>"$home/error" || { cat "$home/error"; exit 1; }

# look: the command's results as one number. Files that contain times, paths, and checksums of these are left out.
look() {
	(
		cat "$home/printed"
		find "$home/out" -type f ! -name .lock ! -name .bertc-files ! -name '*.log' ! -name '*.html' ! -name 'events*' ! -name README.md ! -name '*.jsonl' \
			! -name settings.json ! -name training_state.json ! -name MANIFEST.json ! -name sweep.json ! -name .bertc ! -name 'input-*' | sort | xargs -r cat
	) | cksum
}

changes=0 refused=0
# check NAME WHAT COMMAND...: WHAT, a path below $home/in that the command reads, is replaced; the command writes to
# $home/out
check() {
	name=$1 what=$2
	shift 2
	case $name in *$filter*) ;; *) return ;; esac
	for each in a b; do
		rm -rf "$home/in" "$home/out" && mkdir "$home/in" "$home/out" && cp -a "$home/$each/$what" "$home/in/"
		$bertc "$@" >"$home/printed" 2>"$home/said" </dev/null || { bad "$name: $(tail -3 "$home/said")"; return; }
		eval "of_$each=\$(look)"
	done
	[ "$of_a" != "$of_b" ] || { bad "$name: both give the same"; return; }
	number=1
	while [ $number -le "$most" ]; do
		rm -rf "$home/in" "$home/out" "$home/hit" "$home/other" && mkdir "$home/in" "$home/out" "$home/other"
		cp -a "$home/a/$what" "$home/in/" && cp -a "$home/b/$what" "$home/other/"
		LD_PRELOAD="$preload" CHANGE_PATH="$home/in/$what" CHANGE_OTHER="$home/other/$what" CHANGE_AT=$number CHANGE_HIT="$home/hit" \
			$bertc "$@" >"$home/printed" 2>"$home/said" </dev/null
		status=$?
		[ -e "$home/hit" ] || break
		changes=$((changes + 1))
		if [ $status -eq 0 ]; then
			found=$(look)
			[ "$found" = "$of_a" ] || [ "$found" = "$of_b" ] || bad "$name, open $number: neither the one nor the other: $(tail -2 "$home/said")"
		elif own_status $status; then
			refused=$((refused + 1))
		else
			bad "$name, open $number: exit status $status: $(tail -3 "$home/said")"
		fi
		number=$((number + 1))
	done
	echo "$name: $((number - 1)) opens; $changes changes so far, $refused refused"
}

in=$home/in out=$home/out all=$home/a
machine="--quiet --threads 1"
steps="--num_train_steps 2 --save_checkpoints_steps 100"
check fill base fill --threads 1 --model "$in/base" 'the old [MASK] sees the dog.'
check predict tuned predict $machine --model "$in/tuned" "$all/lines" --out "$out/answers"
check predict-lines lines predict $machine --model "$all/tuned" "$in/lines" --out "$out/answers"
check evaluate tuned evaluate $machine --model "$in/tuned" --test "$all/dev.tsv" --json
check evaluate-base base evaluate $machine --model "$in/base" --corpus "$all/text" --max_seq_length 32 --eval_instances 64 --json
check embed vectors embed $machine --model "$in/vectors" "$all/lines" --format npy --out "$out/vectors.npy"
check score base score $machine --model "$in/base" "$all/lines" --out "$out/scores"
check export-onnx tuned export $machine --model "$in/tuned" --to onnx --out "$out/model"
check export-int8 tuned export $machine --model "$in/tuned" --to int8 --out "$out/model"
check export-vectors vectors export $machine --model "$in/vectors" --to sentence_transformers --out "$out/model"
check export-tensorflow base export $machine --model "$in/base" --to tensorflow --out "$out/model"
check export-triton tuned export $machine --model "$in/tuned" --to triton --out "$out/model"
check tokenize vocab.txt tokenize --threads 1 --vocab_file "$in/vocab.txt" "$all/lines"
check prepare vocab.txt prepare $machine --corpus "$all/text" --vocab_file "$in/vocab.txt" --out "$out/x"
check prepare-text text prepare $machine --corpus "$in/text" --vocab_file "$all/vocab.txt" --out "$out/x"
check vocab text vocab $machine --corpus "$in/text" --vocab_size 100 --out "$out/vocab.txt"
check extend vocab.txt vocab $machine --extend "$in/vocab.txt" --corpus "$all/new" --min_frequency 1 --vocab_size 125 --out "$out/vocab.txt"
check extend-text new vocab $machine --extend "$all/vocab.txt" --corpus "$in/new" --min_frequency 1 --vocab_size 125 --out "$out/vocab.txt"
check extract text extract $machine "$in/text" --out "$out/text"
check instances vocab.txt instances $machine --corpus "$all/text" --vocab_file "$in/vocab.txt" --max_seq_length 32 --out "$out/x.tfrecord"
check pretrain-text text pretrain $small $steps --corpus "$in/text" --model "$all/config.json" --vocab_file "$all/vocab.txt" --out "$out/run"
check pretrain-data shards pretrain $small $steps --data "$in/shards/x" --model "$all/config.json" --vocab_file "$all/vocab.txt" --out "$out/run"
check pretrain-initial base pretrain $small $steps --corpus "$all/text" --init_checkpoint "$in/base" --out "$out/run"
check finetune-model base finetune $small $steps --task classification --model "$in/base" --train "$all/train.tsv" --dev "$all/dev.tsv" --out "$out/run"
check few-shot-train train.tsv finetune $small $steps --task classification --few_shot --model "$all/vectors" --train "$in/train.tsv" --out "$out/run"
check few-shot-model vectors finetune $small $steps --task classification --few_shot --model "$in/vectors" --train "$all/train.tsv" --out "$out/run"
check finetune-teacher teacher finetune $small $steps --task classification --model "$all/base" --teacher "$in/teacher" --train "$all/train.tsv" --out "$out/run"
check finetune-train train.tsv finetune $small $steps --task classification --model "$all/base" --train "$in/train.tsv" --out "$out/run"
check finetune-dev dev.tsv finetune $small $steps --task classification --model "$all/base" --train "$all/train.tsv" --dev "$in/dev.tsv" --out "$out/run"
check finetune-tags tags.conll finetune $small $steps --task tagging --model "$all/base" --train "$in/tags.conll" --out "$out/run"
check finetune-squad questions.json finetune $small $steps --task squad --model "$all/base" --train "$in/questions.json" --out "$out/run"
check finetune-rewriting rewriting.tsv finetune $small $steps --task rewriting --model "$all/base" --train "$in/rewriting.tsv" --out "$out/run"
check finetune-vectors pairs.jsonl finetune $small $steps --task embedding --model "$all/base" --train "$in/pairs.jsonl" --out "$out/run"
check sweep train.tsv finetune $small $steps --task classification --model "$all/base" --train "$in/train.tsv" --dev "$all/dev.tsv" \
	--sweep "learning_rate=1e-4,1e-3" --out "$out/run"
check sweep-model base finetune $small $steps --task classification --model "$in/base" --train "$all/train.tsv" --dev "$all/dev.tsv" \
	--sweep "learning_rate=1e-4,1e-3" --out "$out/run"
check sweep-teacher teacher finetune $small $steps --task classification --model "$all/base" --teacher "$in/teacher" --train "$all/train.tsv" \
	--dev "$all/dev.tsv" --sweep "learning_rate=1e-4,1e-3" --out "$out/run"
check folds train.tsv finetune $small $steps --task classification --folds 2 --model "$all/base" --train "$in/train.tsv" --out "$out/run"
check folds-model base finetune $small $steps --task classification --folds 2 --model "$in/base" --train "$all/train.tsv" --out "$out/run"
check finetune-sets sets finetune $small $steps --task classification --model "$all/base" --data_dir "$in/sets" --do_train --do_eval --do_predict --out "$out/run"
check finetune-test dev.tsv finetune $small $steps --task classification --model "$all/base" --train "$all/train.tsv" --test "$in/dev.tsv" --out "$out/run"
check finetune-guide vectors finetune $small $steps --task embedding --guide "$in/vectors" --false_negative_gap 0 --model "$all/base" \
	--train "$all/pairs.jsonl" --out "$out/run"
check finetune-teacher-vectors documents.npy finetune $small $steps --task embedding --teacher_vectors "$in/documents.npy" \
	--model "$all/vectors" --train "$all/documents" --out "$out/run"
check finetune-sentences vectors finetune $small $steps --task embedding --model "$in/vectors" --train "$all/pairs.jsonl" --out "$out/run"
check finetune-adapter base finetune $small $steps --task classification --adapter lora --model "$in/base" --train "$all/train.tsv" --out "$out/run"
check finetune-options options finetune $small $steps --config "$in/options" --task classification --model "$all/base" --train "$all/train.tsv" \
	--out "$out/run"
check adapter adapter predict $machine --model "$in/adapter/final" "$all/lines" --out "$out/answers"
check adapter-export adapter export $machine --model "$in/adapter/final" --to onnx --out "$out/model"
check adapter-tuned adapter finetune $small $steps --task classification --model "$in/adapter/final" --train "$all/train.tsv" --out "$out/run"
for form in tfrecord hdf5 instances; do
	check pretrain-$form x.$form pretrain $small $steps --input_file "$in/x.$form" --model "$all/config.json" --vocab_file "$all/vocab.txt" --out "$out/run"
	[ $form = instances ] || check convert-$form x.$form instances $machine --convert "$in/x.$form" --out "$out/x.instances"
done
check pretrain-texts text pretrain $small $steps --corpus "$all/new" "$in/text" --model "$all/config.json" --vocab_file "$all/vocab.txt" --out "$out/run"
check pretrain-learned text pretrain $small $steps --corpus "$in/text" --vocab_size 100 --model "$all/config.json" --out "$out/run"
check pretrain-eval text pretrain $small $steps --corpus "$all/new" --eval_corpus "$in/text" --model "$all/config.json" --vocab_file "$all/vocab.txt" \
	--out "$out/run"
check pretrain-mixture shards pretrain $small $steps --data "$in/shards/x:0.5" "$all/shards/x:0.5" --model "$all/config.json" --vocab_file "$all/vocab.txt" \
	--out "$out/run"
check pretrain-remap base pretrain $small $steps --corpus "$all/text" --init_checkpoint "$in/base/final" --vocab_file "$all/vocab.txt" --remap_vocab \
	--out "$out/run"
check evaluate-instances x.instances evaluate $machine --model "$all/base" --input_file "$in/x.instances" --json
check evaluate-data shards evaluate $machine --model "$all/base" --data "$in/shards/x" --max_seq_length 32 --eval_instances 64 --json
check evaluate-test dev.tsv evaluate $machine --model "$all/tuned" --test "$in/dev.tsv" --json
check mine pairs.jsonl mine $machine --model "$all/vectors" --train "$in/pairs.jsonl" --out "$out/mined"
check mine-model vectors mine $machine --model "$in/vectors" --train "$all/pairs.jsonl" --out "$out/mined"
check mine-vectors documents.npy mine $machine --model "$all/vectors" --corpus_vectors "$in/documents.npy" --train "$all/pairs.jsonl" --out "$out/mined"
check mine-reranker reranker mine $machine --model "$all/vectors" --reranker "$in/reranker" --train "$all/pairs.jsonl" --output_scores --out "$out/mined"
check retrieval beir evaluate $machine --model "$all/vectors" --retrieval "$in/beir" --json
check retrieval-model vectors evaluate $machine --model "$in/vectors" --retrieval "$all/beir" --json
echo "$changes changes, $refused of them refused"
exit $failed
