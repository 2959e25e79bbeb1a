/* What the report of a run is told before the first step: facts of model, text and machine. */
#include "cmd/pretrain.h"
#include "train/pretraining_report.h"

static enum status open_report(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	const struct vocab *vocab = &run->data.vocab;
	struct unigram unigram;
	if (run->data.train_file_count > 0)
		TRY(unigram_measure_static(run->data.train_files, run->data.train_file_count, vocab->count, &unigram));
	else
		TRY(unigram_measure(run->data.train, run->data.train_count, vocab->count, &unigram));
	const struct run_data_set *set = run->data.evaluation_count > 0 ? &run->data.evaluation[0] : NULL;
	struct report_progress progress = train_progress(&run->training.state);
	TRY(samples_open(&run->samples, settings->out, set ? set->shards : NULL, set ? set->shard_count : 0, run->model,
			 &run->replica, vocab, &progress));
	run->training.report = (struct report){
		.folder = settings->out,
		.metrics_path = run->metrics_path,
		.gemm_rate = run->gemm_rate,
		.options = run->options,
		.task = pretraining_report(&(struct pretraining_report_facts){
			.vocab_size = run->config.vocab_size,
			.unigram = &unigram,
			.vocab = vocab,
			.next_sentence = run->phases[0].instance_settings.next_sentence != NEXT_SENTENCE_NONE,
			.samples = &run->samples,
		}),
		.facts =
			{
				.device = run->backend->description,
				.layers = run->config.num_hidden_layers,
				.hidden = run->config.hidden_size,
				.parameters = run->model->element_count,
				.vocab_size = run->config.vocab_size,
				.epoch_tokens = (double)pretrain_train_tokens(run),
			},
	};
	return OK;
}

/* In all ranks at once: they share caches and memory. */
enum status pretrain_measure_rate(struct pretrain *run)
{
	double (*gemm_rate)(struct backend *) = run->backend->functions->gemm_rate;
	run->gemm_rate = gemm_rate ? gemm_rate(run->backend) : 0.0;
	return ranks_count(run->comm) > 1 ? comm_sum(run->comm, &run->gemm_rate, 1) : OK;
}

enum status pretrain_open_report(struct pretrain *run)
{
	run->training.report.silent = !is_first_rank(run->comm);
	return is_first_rank(run->comm) ? open_report(run) : OK;
}
