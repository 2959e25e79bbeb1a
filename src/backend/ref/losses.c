/* Losses over the outputs of heads. */
#include "backend/ref/ref.h"

#include <math.h>

double ref_log_sum_exp(const double *row, int64_t count, int64_t *out_best)
{
	int64_t best = 0;
	for (int64_t j = 1; j < count; j++)
		if (row[j] > row[best])
			best = j;
	double sum = 0;
	for (int64_t j = 0; j < count; j++)
		sum += exp(row[j] - row[best]);
	*out_best = best;
	return row[best] + log(sum);
}

/* What gradients of losses are multiplied by. */
static double scale_of(const struct replica *r, int head)
{
	return r->scalars->inverse_weight[head] * r->scalars->loss_scale;
}

/* Cross entropy of `count` logits that lie `stride` apart; the gradient (times `factor`) goes to `gradients`, if that is not
 * NULL. *best is the likeliest. */
static double cross_entropy(const double *logits, double *gradients, int64_t count, int64_t stride, int64_t label, double factor,
			    int64_t *best)
{
	*best = 0;
	for (int64_t j = 1; j < count; j++)
		if (logits[j * stride] > logits[*best * stride])
			*best = j;
	double sum = 0;
	for (int64_t j = 0; j < count; j++)
		sum += exp(logits[j * stride] - logits[*best * stride]);
	double lse = logits[*best * stride] + log(sum);
	for (int64_t j = 0; gradients && j < count; j++)
		gradients[j * stride] = factor == 0 ? 0 : factor * (exp(logits[j * stride] - lse) - (j == label ? 1 : 0));
	return label < 0 ? 0 : lse - logits[label * stride];
}

void ref_xent(struct replica *r, const struct xent *a)
{
	double loss = 0, correct = 0;
	for (int64_t i = 0; i < a->logits.rows; i++) {
		int64_t best, label = a->labels[i];
		BUG_IF(label < -1 || label >= a->logits.columns);
		double weight = label < 0 ? 0 : a->weights[i];
		double *gradients = a->dlogits.data ? ref_row(&a->dlogits, i) : NULL;
		double own = cross_entropy(ref_row(&a->logits, i), gradients, a->logits.columns, 1, label,
					   weight * scale_of(r, a->head), &best);
		if (weight == 0)
			continue;
		loss += weight * own;
		correct += best == label ? weight : 0;
	}
	*a->loss += loss;
	*a->correct += correct;
}

void ref_squared_error(struct replica *r, const struct squared_error *a)
{
	int64_t columns = a->outputs.columns;
	double loss = 0;
	for (int64_t i = 0; i < a->outputs.rows; i++) {
		double weight = a->weights[i], sum = 0;
		for (int64_t c = 0; c < columns; c++) {
			double difference = ref_row(&a->outputs, i)[c] - a->values[i * columns + c];
			sum += difference * difference;
			if (a->doutputs.data)
				ref_row(&a->doutputs, i)[c] =
					weight == 0 ? 0 : weight * 2 * difference / (double)columns * scale_of(r, a->head);
		}
		loss += weight == 0 ? 0 : weight * sum / (double)columns;
	}
	*a->loss += loss;
}

void ref_binary_xent(struct replica *r, const struct binary_xent *a)
{
	int64_t columns = a->logits.columns;
	double loss = 0, correct = 0;
	for (int64_t i = 0; i < a->logits.rows; i++) {
		double weight = a->weights[i], sum = 0;
		bool right = true;
		for (int64_t c = 0; c < columns; c++) {
			double x = ref_row(&a->logits, i)[c], value = a->values[i * columns + c];
			sum += (x > 0 ? x : 0) - x * value + log1p(exp(-fabs(x)));
			right = right && (x > 0) == (value > 0.5);
			if (a->dlogits.data)
				ref_row(&a->dlogits, i)[c] = weight == 0 ? 0
									 : weight * (1 / (1 + exp(-x)) - value) /
										   (double)columns * scale_of(r, a->head);
		}
		loss += weight == 0 ? 0 : weight * sum / (double)columns;
		correct += right ? weight : 0;
	}
	*a->loss += loss;
	*a->correct += correct;
}

void ref_group_xent(struct replica *r, const struct group_xent *a)
{
	double loss = 0, correct = 0;
	for (int64_t i = 0; i < a->count; i++) {
		int64_t first = a->starts[i], count = a->starts[i + 1] - first, label = a->labels[i], best;
		BUG_IF(label < -1 || label >= count);
		double weight = label < 0 ? 0 : a->weights[i];
		double own = cross_entropy(ref_row(&a->logits, first), a->dlogits.data ? ref_row(&a->dlogits, first) : NULL,
					   count, a->logits.columns, label, weight * scale_of(r, a->head), &best);
		if (weight == 0)
			continue;
		loss += weight * own;
		correct += best == label ? weight : 0;
	}
	*a->loss += loss;
	*a->correct += correct;
}

void ref_segment_xent(struct replica *r, const struct segment_xent *a)
{
	double loss = 0, correct = 0;
	for (int64_t i = 0; i < a->batch->sequence_count; i++) {
		int64_t first = a->batch->starts[i], count = a->batch->starts[i + 1] - first;
		bool right = false, wrong = false;
		for (int64_t c = 0; c < 2; c++) {
			int64_t label = a->labels[2 * i + c], best;
			BUG_IF(label < -1 || label >= count);
			double weight = label < 0 ? 0 : a->weights[i];
			double own = cross_entropy(ref_row(&a->logits, first) + c,
						   a->dlogits.data ? ref_row(&a->dlogits, first) + c : NULL, count,
						   a->logits.columns, label, weight / 2 * scale_of(r, a->head), &best);
			if (weight == 0)
				continue;
			loss += weight * own / 2;
			right = right || best == label;
			wrong = wrong || best != label;
		}
		correct += right && !wrong ? a->weights[i] : 0;
	}
	*a->loss += loss;
	*a->correct += correct;
}
