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

/* The factor for gradients of losses. */
static double scale_of(const struct replica *r, int head)
{
	return r->scalars->inverse_weight[head] * r->scalars->loss_scale;
}

/* Cross entropy of `count` logits that are `stride` apart; the gradient (times `factor`) goes to `gradients`, if that is not
 * NULL. *best is the most likely class. */
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

/* Label smoothing moves a share of the target from the label to all classes: returns what this adds to the cross entropy of a
 * row, and adds to its gradient. */
static double smooth(const struct xent *a, int64_t row, int64_t label, double factor)
{
	const double *logits = ref_row(&a->logits, row);
	double share = a->label_smoothing / (double)a->logits.columns, sum = 0;
	for (int64_t c = 0; c < a->logits.columns; c++) {
		sum += logits[label] - logits[c];
		if (a->dlogits.data)
			ref_row(&a->dlogits, row)[c] += factor * ((c == label ? a->label_smoothing : 0) - share);
	}
	return share * sum;
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
		if (a->label_smoothing > 0)
			own += smooth(a, i, label, weight * scale_of(r, a->head));
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

/* log(1 + exp(x)) */
static double softplus(double x)
{
	return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
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
			double positive = a->positive_weights ? a->positive_weights[c] : 1, p = 1 / (1 + exp(-x));
			double excess = (positive - 1) * value; /* beyond that of a value without a weight */
			sum += (x > 0 ? x : 0) - x * value + log1p(exp(-fabs(x))) + excess * softplus(-x);
			right = right && (x > 0) == (value > 0.5);
			if (a->dlogits.data)
				ref_row(&a->dlogits, i)[c] = weight == 0 ? 0
									 : weight * (p - value - excess * (1 - p)) /
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

static double list_shares(const struct list_loss *a, int64_t first, int64_t count, double factor)
{
	const double *z = ref_row(&a->logits, first);
	int64_t best;
	double lse = ref_log_sum_exp(z, count, &best), all = 0, loss = 0;
	for (int64_t j = 0; j < count; j++) {
		all += a->targets[first + j];
		loss += a->targets[first + j] * (lse - z[j]);
	}
	for (int64_t j = 0; a->dlogits.data && j < count; j++)
		ref_row(&a->dlogits, first)[j] = factor == 0 ? 0 : factor * (all * exp(z[j] - lse) - a->targets[first + j]);
	return loss;
}

/* Returns the weighted sum. */
static double list_margins(const struct list_loss *a, int64_t first, int64_t count, double factor)
{
	const double *z = ref_row(&a->logits, first);
	double loss = 0, sum = 0;
	for (int64_t j = first + 1; j < first + count; j++) {
		double off = z[0] - z[j - first] - ((double)a->targets[first] - a->targets[j]);
		double slope = a->weights[j] == 0 ? 0 : 2 * a->weights[j] * off * factor;
		loss += a->weights[j] == 0 ? 0 : a->weights[j] * off * off;
		sum += slope;
		if (a->dlogits.data)
			ref_row(&a->dlogits, j)[0] = -slope;
	}
	if (a->dlogits.data)
		ref_row(&a->dlogits, first)[0] = sum;
	return loss;
}

void ref_list_loss(struct replica *r, const struct list_loss *a)
{
	double loss = 0, scale = scale_of(r, a->head);
	for (int64_t i = 0; i < a->count; i++) {
		int64_t first = a->starts[i], count = a->starts[i + 1] - first;
		if (count == 0)
			continue;
		if (a->kind == LIST_MARGINS) {
			loss += list_margins(a, first, count, scale);
			continue;
		}
		double own = list_shares(a, first, count, a->weights[first] * scale);
		loss += a->weights[first] == 0 ? 0 : a->weights[first] * own;
	}
	*a->loss += loss;
}

/* Log-sum-exp of `count` logits, `stride` apart, divided by the temperature. */
static double soft_log_sum(const double *logits, int64_t count, int64_t stride, double temperature)
{
	double largest = -INFINITY, sum = 0;
	for (int64_t j = 0; j < count; j++)
		largest = fmax(largest, logits[j * stride] / temperature);
	for (int64_t j = 0; j < count; j++)
		sum += exp(logits[j * stride] / temperature - largest);
	return largest + log(sum);
}

/* T^2 KL(teacher, student); its gradient is mixed into the existing one. */
static double divergence(const struct soft_loss *a, int64_t row, int64_t column, int64_t count, int64_t stride, double factor)
{
	const double *teacher = ref_row(&a->teacher, row) + column, *student = ref_row(&a->logits, row) + column;
	double *gradients = ref_row(&a->dlogits, row) + column, t = a->temperature, sum = 0;
	double teachers = soft_log_sum(teacher, count, stride, t), students = soft_log_sum(student, count, stride, t);
	for (int64_t j = 0; j < count; j++) {
		double p = exp(teacher[j * stride] / t - teachers), log_q = student[j * stride] / t - students;
		sum += p > 0 ? p * (teacher[j * stride] / t - teachers - log_q) : 0;
		double own = factor == 0 ? 0 : factor * t * (exp(log_q) - p);
		gradients[j * stride] = (1 - a->share) * gradients[j * stride] + a->share * own;
	}
	return t * t * sum;
}

/* The same for a single probability, or the squared difference of two numbers. */
static double soft_error(const struct soft_loss *a, int64_t row, int64_t column, double factor)
{
	double teacher = ref_row(&a->teacher, row)[column], student = ref_row(&a->logits, row)[column], t = a->temperature;
	double *gradient = &ref_row(&a->dlogits, row)[column], loss, own;
	if (a->kind == SOFT_NUMBERS) {
		loss = (student - teacher) * (student - teacher);
		own = 2 * (student - teacher);
	} else {
		double p = 1 / (1 + exp(-teacher / t));
		loss = t * t * (softplus(student / t) - softplus(teacher / t) - p * (student - teacher) / t);
		own = t * (1 / (1 + exp(-student / t)) - p);
	}
	*gradient = (1 - a->share) * *gradient + (factor == 0 ? 0 : a->share * factor * own);
	return loss;
}

void ref_soft_loss(struct replica *r, const struct soft_loss *a)
{
	int64_t columns = a->logits.columns;
	double loss = 0;
	for (int64_t i = 0; i < a->count; i++) {
		double weight = a->weights[i], factor = weight * scale_of(r, a->head), sum = 0;
		if (a->kind == SOFT_CLASSES)
			sum = divergence(a, i, 0, columns, 1, factor);
		for (int64_t c = 0; c < columns && a->kind == SOFT_ROWS; c++)
			sum += divergence(a, a->starts[i], c, a->starts[i + 1] - a->starts[i], columns,
					  factor / (double)columns) /
			       (double)columns;
		for (int64_t c = 0; c < columns && (a->kind == SOFT_SIGMOIDS || a->kind == SOFT_NUMBERS); c++)
			sum += soft_error(a, i, c, factor / (double)columns) / (double)columns;
		loss += weight == 0 ? 0 : weight * sum;
	}
	*a->loss += loss;
}

void ref_hidden_error(struct replica *r, const struct hidden_error *a)
{
	double factor = a->factor * r->scalars->inverse_tokens * r->scalars->loss_scale, loss = 0;
	int64_t columns = a->x.columns;
	for (int64_t t = 0; t < a->x.rows; t++) {
		double sum = 0;
		for (int64_t j = 0; j < columns; j++) {
			double difference = ref_row(&a->x, t)[j] - ref_row(&a->target, t)[j];
			sum += difference * difference;
			ref_row(&a->dx, t)[j] = factor * 2 * difference / (double)columns;
		}
		loss += sum / (double)columns;
	}
	*a->loss += loss;
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

/* One of the pointers of pointer_xent: where its numbers are in a row, and the sequence that it points into. */
struct pointer {
	const struct pointer_xent *a;
	int64_t query, key, size; /* columns */
	int64_t first, count;     /* rows of the sequence */
};

static double dot(const double *a, const double *b, int64_t count)
{
	double sum = 0;
	for (int64_t i = 0; i < count; i++)
		sum += a[i] * b[i];
	return sum;
}

static double pointer_logit(const struct pointer *p, int64_t row, int64_t place)
{
	const double *query = (const double *)ref_row(&p->a->logits, row) + p->query;
	const double *key = (const double *)ref_row(&p->a->logits, p->first + place) + p->key;
	return dot(query, key, p->size) / sqrt((double)p->size);
}

/* Log-sum-exp of a row's logits, and the most likely place. */
static double pointer_lse(const struct pointer *p, int64_t row, int64_t *best)
{
	double largest = -INFINITY, sum = 0;
	*best = 0;
	for (int64_t j = 0; j < p->count; j++) {
		double logit = pointer_logit(p, row, j);
		if (logit > largest) {
			largest = logit;
			*best = j;
		}
	}
	for (int64_t j = 0; j < p->count; j++)
		sum += exp(pointer_logit(p, row, j) - largest);
	return largest + log(sum);
}

static void pointer_gradients(const struct pointer *p, int64_t row, double lse, int64_t label, double factor)
{
	const struct pointer_xent *a = p->a;
	for (int64_t j = 0; j < p->count; j++) {
		double share = exp(pointer_logit(p, row, j) - lse) - (j == label ? 1 : 0);
		double d = factor * share / sqrt((double)p->size);
		for (int64_t k = 0; k < p->size; k++) {
			ref_row(&a->dlogits, row)[p->query + k] += d * ref_row(&a->logits, p->first + j)[p->key + k];
			ref_row(&a->dlogits, p->first + j)[p->key + k] += d * ref_row(&a->logits, row)[p->query + k];
		}
	}
}

void ref_pointer_xent(struct replica *r, const struct pointer_xent *a)
{
	int64_t size = (a->logits.columns - a->classes) / (2 * a->pointers), s = 0;
	double loss = 0, correct = 0;
	for (int64_t row = 0; a->dlogits.data && row < a->dlogits.rows; row++)
		for (int64_t c = 0; c < a->dlogits.columns; c++)
			ref_row(&a->dlogits, row)[c] = 0;
	for (int64_t i = 0; i < a->count; i++) {
		int64_t row = a->rows[i], best;
		const int32_t *labels = a->labels + i * (1 + a->pointers);
		bool right = false, wrong = false;
		BUG_IF(i > 0 && row <= a->rows[i - 1]);
		while (row >= a->batch->starts[s + 1])
			s++;
		for (int64_t k = -1; k < a->pointers; k++) {
			int64_t query = a->classes + 2 * k * size, label = labels[1 + k];
			double weight = label < 0 ? 0 : a->weights[i], factor = weight * scale_of(r, a->head), own;
			struct pointer p = {a, query, query + size, size, a->batch->starts[s], 0};
			p.count = a->batch->starts[s + 1] - p.first;
			BUG_IF(label < -1 || label >= (k < 0 ? a->classes : p.count));
			if (k < 0) {
				own = cross_entropy(ref_row(&a->logits, row), a->dlogits.data ? ref_row(&a->dlogits, row) : NULL,
						    a->classes, 1, label, factor, &best);
			} else {
				double lse = pointer_lse(&p, row, &best);
				ref_row(&a->lse, k)[i] = lse;
				own = label < 0 ? 0 : lse - pointer_logit(&p, row, label);
				if (a->dlogits.data && factor != 0)
					pointer_gradients(&p, row, lse, label, factor);
			}
			if (weight == 0)
				continue;
			loss += weight * own;
			right = right || best == label;
			wrong = wrong || best != label;
		}
		correct += right && !wrong ? a->weights[i] : 0;
	}
	*a->loss += loss;
	*a->correct += correct;
}
