/* The table of sources that `bertc download` knows by name. */
#include "cmd/download_sources.h"

#include <stddef.h>

#define WIKIMEDIA "https://dumps.wikimedia.org/{wiki}/{date}/{wiki}-{date}-"
#define SQUAD "https://rajpurkar.github.io/SQuAD-explorer/dataset/"
#define GLUE "https://dl.fbaipublicfiles.com/glue/data/"
#define MRPC "https://dl.fbaipublicfiles.com/senteval/senteval_data/msr_paraphrase_"
#define GOOGLE "https://storage.googleapis.com/bert_models/"
#define HUGGING_FACE "https://huggingface.co/google-bert/"

/* One of Google's archives: weights, bert_config.json, and vocab.txt. */
#define CHECKPOINT(model, date, text)                                                                                            \
	{                                                                                                                        \
		.name = "google/" model, .file = "google/" model ".zip", .url = GOOGLE date "/" model ".zip", .summary = text    \
	}
#define VOCABULARY(model, text)                                                                                                  \
	{                                                                                                                        \
		.name = "vocab/" model, .file = "vocab/" model "/vocab.txt",                                                     \
		.url = HUGGING_FACE model "/resolve/main/vocab.txt", .summary = text                                             \
	}
#define SQUAD_FILE(json, sum, text)                                                                                              \
	{                                                                                                                        \
		.name = "squad", .file = "squad/" json, .url = SQUAD json, .checksum = sum, .summary = text                      \
	}
#define GLUE_TASK(task, file_name, archive, sum, text)                                                                           \
	{                                                                                                                        \
		.name = "glue/" task, .file = "glue/" file_name, .url = GLUE archive, .checksum = sum, .summary = text           \
	}

const struct download_source download_sources[] = {
	{.name = "wikipedia",
	 .file = "wikipedia/{wiki}-{date}-pages-articles-multistream.xml.bz2",
	 .url = WIKIMEDIA "pages-articles-multistream.xml.bz2",
	 .sums_url = WIKIMEDIA "sha1sums.txt",
	 .summary = "all articles of a Wikipedia (--language, --date), an input of `bertc extract`"},
	{.name = "gutenberg",
	 .file = "gutenberg/{book}.txt",
	 .url = "https://www.gutenberg.org/cache/epub/{book}/pg{book}.txt",
	 .summary = "books of Project Gutenberg by their numbers (--books)",
	 .pause_seconds = 2},
	SQUAD_FILE("train-v1.1.json", "md5:981b29407e0affa3b1b156f72073b945",
		   "questions and answers of SQuAD 1.1 and 2.0, training and development"),
	SQUAD_FILE("dev-v1.1.json", "md5:3e85deb501d4e538b6bc56f786231552", NULL),
	SQUAD_FILE("train-v2.0.json", "md5:62108c273c268d70893182d5cf8df740", NULL),
	SQUAD_FILE("dev-v2.0.json", "md5:246adae8b7002f8679c027697b0b7cf8", NULL),
	GLUE_TASK("CoLA", "CoLA.zip", "CoLA.zip", "sha256:f212fcd832b8f7b435fb991f101abf89f96b933ab400603bf198960dfc32cbff",
		  "acceptable sentences"),
	GLUE_TASK("SST-2", "SST-2.zip", "SST-2.zip", "sha256:d67e16fb55739c1b32cdce9877596db1c127dc322d93c082281f64057c16deaa",
		  "sentiment of film reviews"),
	{.name = "glue/MRPC",
	 .file = "glue/MRPC/msr_paraphrase_train.txt",
	 .url = MRPC "train.txt",
	 .checksum = "md5:793daf7b6224281e75fe61c1f80afe35",
	 .summary = "paraphrases in news"},
	{.name = "glue/MRPC",
	 .file = "glue/MRPC/msr_paraphrase_test.txt",
	 .url = MRPC "test.txt",
	 .checksum = "md5:e437fdddb92535b820fe8852e2df8a49"},
	GLUE_TASK("QQP", "QQP.zip", "QQP-clean.zip", "md5:884bf26e39c783d757acc510a2a516ef", "duplicate questions"),
	GLUE_TASK("STS-B", "STS-B.zip", "STS-B.zip", "md5:d573676be38f1a075a5702b90ceab3de", "likeness of two sentences, 0 to 5"),
	GLUE_TASK("MNLI", "MNLI.zip", "MNLI.zip", NULL, "does the second sentence follow?"),
	GLUE_TASK("QNLI", "QNLI.zip", "QNLIv2.zip", "md5:b4efd6554440de1712e9b54e14760e82",
		  "does the sentence answer the question?"),
	GLUE_TASK("RTE", "RTE.zip", "RTE.zip", "md5:bef554d0cafd4ab6743488101c638539", "entailment, a small set"),
	GLUE_TASK("WNLI", "WNLI.zip", "WNLI.zip", "md5:a1b4bd2861017d302d29e42139657a42", "pronouns (Winograd)"),
	GLUE_TASK("AX", "AX.tsv", "AX.tsv", NULL, "diagnostic sentences"),
	CHECKPOINT("uncased_L-12_H-768_A-12", "2018_10_18", "Google's BERT-base, lower case"),
	CHECKPOINT("uncased_L-24_H-1024_A-16", "2018_10_18", "BERT-large, lower case"),
	CHECKPOINT("cased_L-12_H-768_A-12", "2018_10_18", "BERT-base, cased"),
	CHECKPOINT("cased_L-24_H-1024_A-16", "2018_10_18", "BERT-large, cased"),
	CHECKPOINT("multi_cased_L-12_H-768_A-12", "2018_11_23", "BERT-base, 104 languages, cased"),
	CHECKPOINT("chinese_L-12_H-768_A-12", "2018_11_03", "BERT-base, Chinese"),
	CHECKPOINT("wwm_uncased_L-24_H-1024_A-16", "2019_05_30", "BERT-large, whole-word masking, lower case"),
	CHECKPOINT("wwm_cased_L-24_H-1024_A-16", "2019_05_30", "BERT-large, whole-word masking, cased"),
	CHECKPOINT("uncased_L-2_H-128_A-2", "2020_02_20", "BERT-tiny, lower case"),
	CHECKPOINT("uncased_L-4_H-256_A-4", "2020_02_20", "BERT-mini, lower case"),
	CHECKPOINT("uncased_L-4_H-512_A-8", "2020_02_20", "BERT-small, lower case"),
	CHECKPOINT("uncased_L-8_H-512_A-8", "2020_02_20", "BERT-medium, lower case"),
	VOCABULARY("bert-base-uncased", "the vocabulary of lower-case BERT alone, 30,522 entries"),
	VOCABULARY("bert-base-cased", "cased, 28,996 entries"),
	VOCABULARY("bert-base-multilingual-cased", "104 languages, 119,547 entries"),
	VOCABULARY("bert-base-chinese", "Chinese, 21,128 entries"),
	{0},
};
