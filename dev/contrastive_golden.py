"""Reference values of the losses and measures of embeddings, from sentence-transformers, PyTorch and SciPy in float64.

    python dev/contrastive_golden.py tests/golden/contrastive.json

For tests/tasks/test_contrastive.c and test_embedding.c: a list of steps, each with "kind", "temperature", "width", "starts" (of
the examples' texts), "texts" (equal numbers are equal texts), "vectors", "scores", with dot products "flops" (the factors of FlopsLoss), for guided negatives "gap" and, with a guide of its own, its
vectors "guides" of "guide_width", and the results: "loss", "gradients"; and a
list of sets with "vectors", "texts", "starts", "scores" and their measures. Gradients come from PyTorch's autograd. For batches
with equal texts sentence-transformers has no rule, so that loss is written out here with PyTorch's own cross entropy.
"""
import json
import sys

import numpy
import sentence_transformers
import torch
from scipy import stats
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sparse_encoder import losses as sparse_losses
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

torch.set_default_dtype(torch.float64)
random = numpy.random.RandomState(3)


def draw(count, width, spread=1.0):
    return numpy.round(random.randn(count, width) * spread, 3).astype(numpy.float32).astype(float)


def finish(kind, temperature, starts, texts, vectors, scores, loss_of):
    x = torch.tensor(vectors, requires_grad=True)
    loss = loss_of(x)
    loss.backward()
    return dict(kind=kind, temperature=temperature, width=vectors.shape[1], starts=starts, texts=texts,
                vectors=vectors.ravel().tolist(), scores=scores, loss=loss.item(), gradients=x.grad.ravel().tolist())


def in_batch(examples, texts_each, width, temperature):
    starts = [i * texts_each for i in range(examples + 1)]
    vectors = draw(examples * texts_each, width)
    loss = losses.MultipleNegativesRankingLoss(None, scale=1 / temperature)
    return finish("in_batch", temperature, starts, list(range(examples * texts_each)), vectors, [0.0] * examples,
                  lambda x: loss.compute_loss_from_embeddings([x[k::texts_each] for k in range(texts_each)], None))


def in_batch_with_equal_texts(temperature):
    """The loss of examples of two to four texts, some of which are equal."""
    starts = [0, 2, 5, 7, 11, 13, 15]
    texts = [10, 20, 11, 21, 22, 10, 23, 12, 20, 24, 11, 13, 21, 14, 14]
    vectors = draw(len(texts), 9)
    of = {t: vectors[i] for i, t in reversed(list(enumerate(texts)))}
    vectors = numpy.array([of[t] for t in texts])

    def loss_of(x):
        unit = torch.nn.functional.normalize(x, dim=1)
        total = 0
        for e, anchor in enumerate(starts[:-1]):
            kept = []
            for other, first in enumerate(starts[:-1]):
                for t in range(first + 1, starts[other + 1]):
                    own = t == anchor + 1
                    right = texts[t] in (texts[anchor], texts[anchor + 1]) or (t == first + 1 and texts[first] == texts[anchor])
                    if own or not right:
                        kept.append(t)
            logits = unit[anchor] @ unit[kept].T / temperature
            total = total + torch.nn.functional.cross_entropy(logits[None], torch.tensor([kept.index(anchor + 1)]))
        return total / (len(starts) - 1)

    return finish("in_batch", temperature, starts, texts, vectors, [0.0] * (len(starts) - 1), loss_of)


def scored(kind, examples, width, temperature, levels):
    starts = list(range(0, 2 * examples + 1, 2))
    vectors = draw(2 * examples, width)
    scores = (random.randint(0, levels, examples) / (levels - 1)).astype(numpy.float32).astype(float).tolist()
    loss = losses.CoSENTLoss(None, scale=1 / temperature) if kind == "cosent" else losses.CosineSimilarityLoss(None)
    return finish(kind, temperature, starts, list(range(2 * examples)), vectors, scores,
                  lambda x: loss.compute_loss_from_embeddings([x[::2], x[1::2]], torch.tensor(scores)))


def margins(examples, texts_each, width):
    """MarginMSE with sentence-transformers' dot product of unit vectors. "scores" are the numbers of the examples."""
    starts = [i * texts_each for i in range(examples + 1)]
    vectors = draw(examples * texts_each, width)
    marks = numpy.round(random.rand(examples, texts_each - 1), 3).astype(numpy.float32).astype(float)
    loss = losses.MarginMSELoss(None, similarity_fct=sentence_transformers.util.pairwise_cos_sim)
    row = finish("margin", 1, starts, list(range(examples * texts_each)), vectors, list(map(float, range(examples))),
                 lambda x: loss.compute_loss_from_embeddings([x[k::texts_each] for k in range(texts_each)], torch.tensor(marks)))
    return dict(row, marks=marks.ravel().tolist())


def targets(examples, texts_each, width):
    """MSELoss of a model that normalizes, towards a teacher's vectors, which this scales to length 1."""
    starts = [i * texts_each for i in range(examples + 1)]
    vectors, target = draw(examples * texts_each, width), draw(examples, width)
    unit = torch.nn.functional.normalize(torch.tensor(target), dim=1)
    loss = losses.MSELoss(torch.nn.Module())
    row = finish("target", 1, starts, list(range(examples * texts_each)), vectors, list(map(float, range(examples))),
                 lambda x: loss.compute_loss_from_embeddings(
                     [torch.nn.functional.normalize(x[k::texts_each], dim=1) for k in range(texts_each)], [unit] * texts_each))
    return dict(row, targets=target.ravel().tolist())


def nested(examples, texts_each, width, widths, weights):
    """MatryoshkaLoss over in-batch negatives."""
    starts = [i * texts_each for i in range(examples + 1)]
    vectors = draw(examples * texts_each, width)
    loss = losses.MultipleNegativesRankingLoss(None, scale=20)

    def loss_of(x):
        cut = [[losses.matryoshka.shrink(x[k::texts_each], w) for k in range(texts_each)] for w in widths]
        return sum(weight * loss.compute_loss_from_embeddings(part, None) for weight, part in zip(weights, cut))

    row = finish("in_batch", 0.05, starts, list(range(examples * texts_each)), vectors, [0.0] * examples, loss_of)
    return dict(row, widths=widths, weights=weights)


def measured(examples, texts_each, width, repeats):
    """Positives are close to their anchors; the last `repeats` examples have the anchor of an earlier one."""
    starts = [i * texts_each for i in range(examples + 1)]
    texts, vectors = list(range(examples * texts_each)), draw(examples * texts_each, width)
    vectors[1::texts_each] = numpy.round(vectors[::texts_each] + 1.2 * vectors[1::texts_each], 3)
    for r in range(repeats):
        texts[starts[examples - 1 - r]], vectors[starts[examples - 1 - r]] = texts[starts[r]], vectors[starts[r]]
    vectors = vectors.astype(numpy.float32).astype(float)
    unit = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    queries, corpus, relevant = {}, {}, {}
    for e in range(examples):
        queries[texts[starts[e]]] = starts[e]
        for t in range(starts[e] + 1, starts[e + 1]):
            corpus[texts[t]] = t
        relevant.setdefault(str(texts[starts[e]]), set()).add(str(texts[starts[e] + 1]))
    ids = list(queries)
    hits = [[dict(corpus_id=str(t), score=float(unit[queries[q]] @ unit[p])) for t, p in corpus.items()] for q in ids]
    evaluator = InformationRetrievalEvaluator({str(q): "" for q in ids}, {str(t): "" for t in corpus}, relevant)
    computed = evaluator.compute_metrics(hits)
    cosines = [float(unit[s] @ unit[s + 1]) for s in starts[:-1]]
    scores = (random.randint(0, 6, examples) / 5 + numpy.array(cosines)).round(3).astype(numpy.float32).astype(float).tolist()
    out = dict(width=width, starts=starts, texts=texts, vectors=vectors.ravel().tolist(), scores=scores,
               ndcg=computed["ndcg@k"][10], mrr=computed["mrr@k"][10], spearmanr=stats.spearmanr(scores, cosines)[0],
               pearson=stats.pearsonr(scores, cosines)[0])
    if texts_each > 2:
        right = [unit[s] @ unit[s + 1] > unit[s] @ unit[t] for s in starts[:-1] for t in range(s + 2, s + texts_each)]
        out["accuracy"] = float(numpy.mean(right))
    return out


def weights_of_words(examples, texts_each, width, query, document):
    """SpladeLoss of sentence-transformers' SparseEncoder."""
    starts = [i * texts_each for i in range(examples + 1)]
    vectors = numpy.maximum(draw(examples * texts_each, width), 0)
    loss, flops = sparse_losses.SparseMultipleNegativesRankingLoss(None), sparse_losses.FlopsLoss(None)

    def loss_of(x):
        parts = [x[k::texts_each] for k in range(texts_each)]
        return (loss.compute_loss_from_embeddings(parts, None) + query * flops.compute_loss_from_embeddings(parts[0])
                + document * flops.compute_loss_from_embeddings(torch.cat(parts[1:])))

    row = finish("in_batch", 1.0, starts, list(range(examples * texts_each)), vectors, [0.0] * examples, loss_of)
    return dict(row, flops=[query, document])


def guided(examples, texts_each, width, gap, guide_width=0):
    """GISTEmbedLoss on vectors of a few topics, so that some negatives are nearer; guide_width 0: the model is its own guide.
    The examples' numbers in the set, of which their guides' vectors are, do not begin with 0."""
    starts = [i * texts_each for i in range(examples + 1)]
    topics = draw(3, width)
    vectors = numpy.round(topics[random.randint(0, 3, examples * texts_each)] + 0.7 * draw(examples * texts_each, width), 3)
    vectors = vectors.astype(numpy.float32).astype(float)
    loss = losses.GISTEmbedLoss.__new__(losses.GISTEmbedLoss)
    torch.nn.Module.__init__(loss)
    loss.model = loss.guide = lambda features: dict(sentence_embedding=features["vectors"])
    scores, more = [0.0] * examples, {}
    if guide_width:
        guides = numpy.round(draw(3, guide_width)[random.randint(0, 3, examples * texts_each)]
                             + 0.7 * draw(examples * texts_each, guide_width), 3)
        guides /= numpy.linalg.norm(guides, axis=1, keepdims=True)
        loss.guide = lambda features: dict(sentence_embedding=torch.tensor(guides[features["places"]]))
        scores = [float(examples - 1 - i) for i in range(examples)]
        rows = [i for e in reversed(range(examples)) for i in range(e * texts_each, (e + 1) * texts_each)]
        more = dict(guides=guides[rows].ravel().tolist(), guide_width=guide_width)
    loss.temperature, loss.margin, loss.margin_strategy, loss.must_retokenize = 0.05, -gap, "absolute", False
    loss.contrast_anchors = loss.contrast_positives = loss.gather_across_devices = False
    loss.similarity_fct, loss.cross_entropy_loss = torch.nn.CosineSimilarity(dim=-1), torch.nn.CrossEntropyLoss()
    places = numpy.arange(examples * texts_each)
    row = finish("in_batch", 0.05, starts, list(range(examples * texts_each)), vectors, scores,
                 lambda x: loss([dict(vectors=x[k::texts_each], places=places[k::texts_each]) for k in range(texts_each)], None))
    return dict(row, gap=gap, **more)


steps = [in_batch(5, 2, 16, 0.05), in_batch(7, 3, 21, 0.05), in_batch(4, 4, 40, 0.2), in_batch_with_equal_texts(0.1),
         scored("cosent", 8, 16, 0.05, 4), scored("cosent", 5, 19, 0.5, 2), scored("cosine", 6, 16, 0.05, 5)]
sets = [measured(30, 2, 12, 0), measured(24, 2, 8, 5), measured(20, 4, 10, 3)]
steps += [margins(5, 3, 16), margins(4, 5, 21), targets(6, 1, 16), targets(4, 2, 19), nested(5, 2, 24, [24, 11, 4], [1, 1, 1]),
          nested(4, 3, 16, [8, 16], [0.25, 2.0])]
steps += [weights_of_words(5, 2, 24, 0.5, 0.25), weights_of_words(4, 3, 17, 0.0, 2.0)]
steps += [guided(8, 2, 16, 0.0), guided(6, 3, 21, -0.2), guided(7, 2, 16, 0.1)]
steps += [guided(8, 2, 16, 0.0, 11), guided(6, 3, 21, -0.2, 32)]
json.dump(dict(steps=steps, sets=sets), open(sys.argv[1], "w"), indent=None)
print(f"{len(steps)} steps, {len(sets)} sets; sentence-transformers {sentence_transformers.__version__}, torch {torch.__version__}")
