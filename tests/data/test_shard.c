/* The bytes of a shard, spelled out by hand; every number of the index corrupted once; faults while writing. */
#include <errno.h>
#include "base/owned_files.h"
#include "base/rng.h"
#include <unistd.h>
#include "data/shard.h"
#include "data/shard_check.h"
#include "data/shared_documents.h"
#include "test.h"

/* Three documents: {7 8 9} {10}; an empty one; {300 2}. */
static const unsigned char index_bytes[] = {
	'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0,          /* magic */
	1,   0,   0,   0,   0,   0,   0,   0,             /* version */
	8,                                                /* uint16 */
	3,   0,   0,   0,   0,   0,   0,   0,             /* sentences */
	4,   0,   0,   0,   0,   0,   0,   0,             /* document ends, including the leading 0 */
	3,   0,   0,   0,   1,   0,   0,   0, 2, 0, 0, 0, /* lengths */
	0,   0,   0,   0,   0,   0,   0,   0,             /* byte offsets */
	6,   0,   0,   0,   0,   0,   0,   0,             /* */
	8,   0,   0,   0,   0,   0,   0,   0,             /* */
	0,   0,   0,   0,   0,   0,   0,   0,             /* ends */
	2,   0,   0,   0,   0,   0,   0,   0,             /* */
	2,   0,   0,   0,   0,   0,   0,   0,             /* */
	3,   0,   0,   0,   0,   0,   0,   0,             /* */
};
static const unsigned char id_bytes[] = {7, 0, 8, 0, 9, 0, 10, 0, 44, 1, 2, 0};

static void write_sample(const char *prefix, int32_t vocab_size)
{
	struct shard_writer *writer;
	struct shard_description description = {.vocab_hash = 0xfedcba9876543210u,
						.lowercase = true,
						.source_fingerprint = 0x8000000000000001u,
						.unknown_tokens = 2,
						.text_form = "sentences"};
	assert_ok(shard_writer_open(&writer, prefix, vocab_size));
	assert_ok(shard_writer_sentence(writer, (int32_t[]){7, 8, 9}, 3));
	assert_ok(shard_writer_sentence(writer, (int32_t[]){10}, 1));
	assert_ok(shard_writer_end_document(writer));
	assert_ok(shard_writer_end_document(writer));
	assert_ok(shard_writer_sentence(writer, (int32_t[]){300, 2}, 2));
	assert_ok(shard_writer_commit(writer, &description)); /* ends the last document by itself */
	assert_int_equal(description.documents, 3);
	assert_int_equal(description.sentences, 3);
	assert_int_equal(description.tokens, 6);
}

static void put_bytes(const char *path, const void *bytes, size_t count)
{
	FILE *file = fopen(path, "wb"); /* many small files: avoids the fsync of file_write() */
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

static void check_file(const char *path, const void *bytes, size_t count)
{
	struct buffer buffer = {0};
	assert_ok(file_read(path, 1 << 20, &buffer));
	assert_int_equal(buffer.size, count);
	assert_memory_equal(buffer.data, bytes, count);
	buffer_release(&buffer);
}

static void check_sample(const char *prefix, bool wide, bool described)
{
	struct shard shard;
	int32_t ids[3];
	assert_ok(shard_open(&shard, prefix));
	assert_int_equal(shard.wide, wide);
	assert_int_equal(shard.described, described);
	assert_int_equal(shard.sentence_count, 3);
	assert_int_equal(shard.document_count, 3);
	assert_int_equal(shard.token_count, 6);
	assert_int_equal(shard.longest_sentence, 3);
	assert_int_equal(shard_document(&shard, 0), 0);
	assert_int_equal(shard_document(&shard, 1), 2);
	assert_int_equal(shard_document(&shard, 2), 2);
	assert_int_equal(shard_document(&shard, 3), 3);
	assert_ok(shard_tokens(&shard, 0, 1, 2, 30000, ids));
	assert_int_equal(ids[0], 8);
	assert_int_equal(ids[1], 9);
	assert_ok(shard_tokens(&shard, 2, 0, 2, 301, ids));
	assert_int_equal(ids[0], 300);
	assert_int_equal(ids[1], 2);
	assert_error(ERR_DATA, ".bin': sentence 2 holds id 300", shard_tokens(&shard, 2, 0, 2, 300, ids));
	shard_close(&shard);
	shard_close(&shard);
}

static void test_bytes(void **state)
{
	assert_false(shard_exists(test_path("new/folder/a")));
	write_sample(test_path("new/folder/a"), 65499);
	assert_true(shard_exists(test_path("new/folder/a")));
	check_file(test_path("new/folder/a.idx"), index_bytes, sizeof index_bytes);
	check_file(test_path("new/folder/a.bin"), id_bytes, sizeof id_bytes);
	check_sample(test_path("new/folder/a"), false, true);

	struct shard shard;
	assert_ok(shard_open(&shard, test_path("new/folder/a")));
	const struct shard_description *d = &shard.description;
	assert_true(d->vocab_hash == 0xfedcba9876543210u);
	assert_true(d->source_fingerprint == 0x8000000000000001u);
	assert_int_equal(d->vocab_size, 65499);
	assert_int_equal(d->unknown_tokens, 2);
	assert_true(d->lowercase);
	assert_false(d->strip_accents);
	assert_string_equal(d->text_form, "sentences");
	shard_close(&shard);
}

/* From 65,500 entries on, ids have four bytes. */
static void test_wide(void **state)
{
	write_sample(test_path("wide"), 65500);
	assert_int_equal(file_size(test_path("wide.bin")), 24);
	check_sample(test_path("wide"), true, true);
}

/* Files of other programs have no description. */
static void test_foreign(void **state)
{
	put_bytes(test_path("f.idx"), index_bytes, sizeof index_bytes);
	put_bytes(test_path("f.bin"), id_bytes, sizeof id_bytes);
	assert_false(shard_exists(test_path("f")));
	check_sample(test_path("f"), false, false);

	struct shard shard;
	assert_ok(shard_open(&shard, test_path("f")));
	assert_ok(shard_check_vocab(&shard, 1, 301));
	assert_error(ERR_DATA, "f.bin': sentence 2 holds id 300", shard_check_vocab(&shard, 1, 300));
	shard_close(&shard);
}

/* Another program's sentences may lie anywhere in the file: here, all at its beginning. */
static void test_overlapping_sentences(void **state)
{
	enum { SENTENCES = 4000, EACH = 10 };
	struct buffer index = {0};
	const int64_t counts[] = {SENTENCES, 2}, documents[] = {0, SENTENCES};
	const int32_t length = EACH;
	const int64_t offset = 0;
	int64_t shared = 0, all = 0;
	unsigned char ids[2 * EACH] = {1};
	buffer_append(&index, index_bytes, 18);
	buffer_append(&index, counts, sizeof counts);
	for (int i = 0; i < SENTENCES; i++)
		buffer_append(&index, &length, sizeof length);
	for (int i = 0; i < SENTENCES; i++)
		buffer_append(&index, &offset, sizeof offset);
	buffer_append(&index, documents, sizeof documents);
	put_bytes(test_path("overlap.idx"), index.data, index.size);
	put_bytes(test_path("overlap.bin"), ids, sizeof ids);
	buffer_release(&index);
	struct shard shard;
	assert_ok(shard_open(&shard, test_path("overlap")));
	assert_ok(shared_documents_count(&shard, 1, &shard, 1, &shared, &all));
	assert_int_equal(shared, 1);
	assert_int_equal(all, 1);
	shard_close(&shard);
}

static void test_negative_id(void **state)
{
	unsigned char wide[sizeof index_bytes];
	static const int32_t ids[] = {7, 8, 9, -10, 300, 2};
	memcpy(wide, index_bytes, sizeof wide);
	wide[17] = 4;
	wide[54] = 12;
	wide[62] = 16;
	put_bytes(test_path("n.idx"), wide, sizeof wide);
	put_bytes(test_path("n.bin"), ids, sizeof ids);
	struct shard shard;
	int32_t out[1];
	assert_ok(shard_open(&shard, test_path("n")));
	assert_error(ERR_DATA, "sentence 1", shard_check_vocab(&shard, 0, 30000));
	assert_error(ERR_DATA, "sentence 1", shard_tokens(&shard, 1, 0, 1, 30000, out));
	shard_close(&shard);
}

static void test_wrong_vocabulary(void **state)
{
	struct shard shard;
	write_sample(test_path("v"), 400);
	assert_ok(shard_open(&shard, test_path("v")));
	assert_ok(shard_check_vocab(&shard, 0xfedcba9876543210u, 400));
	assert_error(ERR_STATE, "fedcba9876543211", shard_check_vocab(&shard, 0xfedcba9876543211u, 400));
	assert_error(ERR_STATE, "of 400 entries", shard_check_vocab(&shard, 0xfedcba9876543210u, 401));
	shard_close(&shard);
}

static const struct {
	size_t offset;
	unsigned char value;
	const char *reason;
} damages[] = {
	{0, 'N', "not a Megatron index"},
	{8, 1, "not a Megatron index"},
	{9, 2, "index version 2"},
	{17, 5, "type code 5"},
	{17, 1, "type code 1"},
	{18, 4, "header promises"},
	{25, 0x80, "header promises"},
	{26, 0, "header promises"},
	{33, 0x20, "header promises"}, /* multiplied by 8 it is 0 modulo 2^64 */
	{34, 0, "sentence 0 has 0 tokens"},
	{37, 0x80, "sentence 0 has -"},
	{37, 0x7f, "sentence 0 has 21"}, /* above the limit */
	{42, 3, "sentence 2 (3 tokens at byte 8)"},
	{46, 1, "sentence 0 (3 tokens at byte 1)"},
	{53, 0x80, "sentence 0 (3 tokens at byte -"},
	{53, 0x7f, "sentence 0 (3 tokens at byte 9"},
	{62, 10, "sentence 2 (2 tokens at byte 10)"},
	{70, 1, "document end 0"},
	{78, 3, "document end 2"},
	{85, 0x80, "document end 1"},
	{94, 4, "document end 3"},
	{94, 2, "last document ends at sentence 2 of 3"},
};

static void test_damage(void **state)
{
	struct shard shard;
	put_bytes(test_path("d.bin"), id_bytes, sizeof id_bytes);
	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
		unsigned char bytes[sizeof index_bytes];
		memcpy(bytes, index_bytes, sizeof bytes);
		bytes[damages[i].offset] = damages[i].value;
		put_bytes(test_path("d.idx"), bytes, sizeof bytes);
		assert_error(ERR_DATA, damages[i].reason, shard_open(&shard, test_path("d")));
		assert_null(shard.idx.data);
	}
	for (size_t size = 0; size < sizeof index_bytes; size++) {
		put_bytes(test_path("d.idx"), index_bytes, size);
		assert_error(ERR_DATA, "d.idx", shard_open(&shard, test_path("d")));
	}
	unsigned char header[34] = {0}; /* no sentence, and not even the leading 0 of the ends */
	memcpy(header, index_bytes, 18);
	put_bytes(test_path("d.idx"), header, sizeof header);
	assert_error(ERR_DATA, "header promises", shard_open(&shard, test_path("d")));
	put_bytes(test_path("d.idx"), index_bytes, sizeof index_bytes);
	for (size_t size = 0; size < sizeof id_bytes; size++) {
		put_bytes(test_path("d.bin"), id_bytes, size);
		assert_error(ERR_DATA, "is not within", shard_open(&shard, test_path("d")));
	}
	assert_error(ERR_USAGE, "no such token shard", shard_open(&shard, test_path("absent")));
}

/* With a description, every flipped bit of the index is noticed, and files from different runs cannot be mixed. */
static void test_description_guards(void **state)
{
	struct shard shard;
	write_sample(test_path("g"), 400);
	for (size_t bit = 0; bit < 8 * sizeof index_bytes; bit++) {
		unsigned char bytes[sizeof index_bytes];
		memcpy(bytes, index_bytes, sizeof bytes);
		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		put_bytes(test_path("g.idx"), bytes, sizeof bytes);
		assert_error(ERR_DATA, "g.idx", shard_open(&shard, test_path("g")));
	}
	put_bytes(test_path("g.idx"), index_bytes, sizeof index_bytes);
	assert_ok(shard_open(&shard, test_path("g")));
	shard_close(&shard);
	unsigned char longer[sizeof id_bytes + 2] = {0};
	memcpy(longer, id_bytes, sizeof id_bytes);
	put_bytes(test_path("g.bin"), longer, sizeof longer);
	assert_error(ERR_DATA, "\"bin_bytes\" is 12", shard_open(&shard, test_path("g")));
	put_bytes(test_path("g.bin"), id_bytes, sizeof id_bytes);
	put_bytes(test_path("g.json"), "{\"format\": \"x\"}", 15);
	assert_error(ERR_DATA, "format \"x\"", shard_open(&shard, test_path("g")));
	put_bytes(test_path("g.json"), "{", 1);
	assert_error(ERR_DATA, "g.json", shard_open(&shard, test_path("g")));
}

static void test_writer_refuses(void **state)
{
	struct shard_writer *writer;
	assert_ok(shard_writer_open(&writer, test_path("w"), 100));
	assert_error(ERR_DATA, "id 100", shard_writer_sentence(writer, (int32_t[]){5, 100}, 2));
	assert_error(ERR_DATA, "id -1", shard_writer_sentence(writer, (int32_t[]){-1}, 1));
	shard_writer_abandon(writer);
	shard_writer_abandon(NULL);
	struct name_list names = {0};
	assert_ok(folder_list(test_folder, &names));
	for (int64_t i = 0; i < names.count; i++)
		assert_null(strstr(names.names[i], "w."));
	name_list_release(&names);
}

/* The k-th call of one kind fails. */
static struct file_operations real;
static int failing_call;

static int count_down(void)
{
	if (--failing_call != 0)
		return 0;
	errno = ENOSPC;
	return -1;
}

static int failing_open(const char *path, int flags, mode_t mode)
{
	return count_down() ? -1 : real.open(path, flags, mode);
}

static ssize_t failing_write(int fd, const void *bytes, size_t count)
{
	return count_down() ? -1 : real.write(fd, bytes, count);
}

static int failing_fsync(int fd)
{
	return count_down() ? -1 : real.fsync(fd);
}

static int failing_rename(const char *from, const char *to)
{
	return count_down() ? -1 : real.rename(from, to);
}

static enum status try_sample(const char *prefix, int32_t id)
{
	struct shard_writer *writer;
	struct shard_description description = {.vocab_hash = (uint64_t)id};
	TRY(shard_writer_open(&writer, prefix, 1000));
	enum status status = shard_writer_sentence(writer, (int32_t[]){id, id + 1}, 2);
	if (status == OK)
		return shard_writer_commit(writer, &description);
	shard_writer_abandon(writer);
	return status;
}

/* Whichever call fails while a shard replaces an older one: what can be opened as complete is one of the two, never a
 * mixture; no temporary file is left. */
static void test_faults(void **state)
{
	int failures = 0;
	real = file_operations;
	for (int call = 1;; call++) {
		assert_ok(try_sample(test_path("x/t"), 500));
		failing_call = call;
		file_operations.open = failing_open;
		file_operations.write = failing_write;
		file_operations.fsync = failing_fsync;
		file_operations.rename = failing_rename;
		enum status status = try_sample(test_path("x/t"), 600);
		file_operations = real;
		struct shard shard;
		if (shard_exists(test_path("x/t"))) {
			int32_t ids[2];
			assert_ok(shard_open(&shard, test_path("x/t")));
			assert_true(shard.described);
			assert_ok(shard_tokens(&shard, 0, 0, 2, 1000, ids));
			assert_int_equal(shard.description.vocab_hash, ids[0]);
			if (status == OK)
				assert_int_equal(ids[0], 600);
			shard_close(&shard);
		} else {
			assert_int_equal(status, ERR_RESOURCE);
		}
		struct name_list names = {0};
		assert_ok(folder_list(test_path("x"), &names));
		/* Files without a description are listed as ours, so that the next attempt may replace them. */
		assert_true(names.count <= 3 + (strcmp(names.names[0], OWNED_FILES_NAME) == 0));
		name_list_release(&names);
		if (failing_call > 0) {
			assert_int_equal(status, OK);
			break;
		}
		failures += status != OK;
	}
	assert_true(failures >= 9); /* at least an open, a write and an fsync of three files */
}

static enum status write_numbers(struct shard_writer *writer, int32_t first, int32_t last)
{
	for (int32_t i = first; i < last; i++) { /* sentence i: i % 5 + 1 times i; three sentences per document */
		int32_t ids[5] = {i, i, i, i, i};
		TRY(shard_writer_sentence(writer, ids, i % 5 + 1));
		if (i % 3 == 2)
			TRY(shard_writer_end_document(writer));
	}
	return OK;
}

static void same_shards(const char *a, const char *b)
{
	static const char *const suffixes[] = {".bin", ".idx", ".json"};
	for (int i = 0; i < 3; i++) {
		char left[PATH_BYTES], right[PATH_BYTES];
		struct buffer x = {0}, y = {0};
		snprintf(left, sizeof left, "%s%s", a, suffixes[i]);
		snprintf(right, sizeof right, "%s%s", b, suffixes[i]);
		assert_ok(file_read(left, 1 << 24, &x));
		assert_ok(file_read(right, 1 << 24, &y));
		assert_int_equal(x.size, y.size);
		assert_memory_equal(x.data, y.data, x.size);
		buffer_release(&x);
		buffer_release(&y);
	}
}

/* Saved, written further, killed, resumed: as if nothing had happened. */
static void test_resume(void **state)
{
	struct shard_description d = {0};
	struct shard_writer *writer, *second;
	struct shard_writer_state saved;
	for (int32_t vocab = 1000; vocab <= 100000; vocab *= 100) {
		assert_ok(shard_writer_open(&writer, test_path("whole"), vocab));
		assert_ok(write_numbers(writer, 0, 900));
		assert_ok(shard_writer_commit(writer, &d));
		assert_ok(shard_writer_open(&writer, test_path("cut"), vocab));
		assert_ok(write_numbers(writer, 0, 300));
		assert_ok(shard_writer_save(writer, &saved));
		assert_ok(write_numbers(writer, 300, 500));
		assert_error(ERR_LOCKED, "another process", shard_writer_resume(&second, test_path("cut"), vocab, &saved));
		shard_writer_suspend(writer);
		assert_ok(shard_writer_resume(&writer, test_path("cut"), vocab, &saved));
		assert_ok(write_numbers(writer, 300, 900));
		assert_ok(shard_writer_commit(writer, &d));
		same_shards(test_path("whole"), test_path("cut"));
	}
	/* A part that has lost bytes cannot be resumed. */
	assert_ok(shard_writer_open(&writer, test_path("lost"), 1000));
	assert_ok(write_numbers(writer, 0, 300));
	assert_ok(shard_writer_save(writer, &saved));
	shard_writer_suspend(writer);
	assert_int_equal(truncate(test_path("lost.bin.part"), 10), 0);
	assert_error(ERR_DATA, "shorter", shard_writer_resume(&writer, test_path("lost"), 1000, &saved));
}

static void test_drop(void **state)
{
	struct shard_description d = {0};
	struct shard_writer *writer;
	struct shard shard;
	uint8_t sentences[2] = {0x06, 0x80}, documents[1] = {0x04}; /* sentences 1, 2, 15; document 2: 6, 7, 8 */
	int64_t sevens;
	int32_t ids[5];
	for (int32_t vocab = 1000; vocab <= 100000; vocab *= 100) {
		assert_ok(shard_writer_open(&writer, test_path("drop"), vocab));
		assert_ok(write_numbers(writer, 0, 15));
		assert_ok(shard_writer_sentence(writer, (int32_t[]){15}, 1)); /* all of its document is dropped */
		assert_ok(shard_writer_end_document(writer));
		assert_ok(shard_writer_drop(&writer, sentences, documents, 12, &sevens));
		assert_int_equal(sevens, 3);
		assert_ok(shard_writer_commit(writer, &d));
		assert_ok(shard_open(&shard, test_path("drop")));
		assert_int_equal(shard.sentence_count, 10);
		assert_int_equal(shard.document_count, 4);
		int32_t expected[] = {0, 3, 4, 5, 9, 10, 11, 12, 13, 14};
		for (int i = 0; i < 10; i++) {
			assert_int_equal(shard_length(&shard, i), expected[i] % 5 + 1);
			assert_ok(shard_tokens(&shard, i, 0, 1, vocab, ids));
			assert_int_equal(ids[0], expected[i]);
		}
		shard_close(&shard);
		assert_false(file_exists(test_path("drop.kept.bin")));
	}
}

/* Ids belong to a shard's identity and are compared with their checksum, immediately or in the background. */
static void test_contents(void **state)
{
	struct shard good, bad;
	struct shard_check *check;
	unsigned char changed[sizeof id_bytes];
	write_sample(test_path("contents"), 400);
	write_sample(test_path("other"), 400);
	assert_ok(shard_open(&good, test_path("contents")));
	assert_ok(shard_check_contents(&good, NULL, NULL));
	memcpy(changed, id_bytes, sizeof changed);
	changed[2] ^= 1;
	put_bytes(test_path("other.bin"), changed, sizeof changed);
	assert_ok(shard_open(&bad, test_path("other"))); /* its index is right, and every id is valid */
	assert_error(ERR_DATA, "other.bin': its checksum is", shard_check_contents(&bad, NULL, NULL));
	const struct shard_contents both[] = {shard_contents(&good), shard_contents(&bad)};
	assert_error(ERR_DATA, "other.bin': its checksum is", shard_check_start(&check, both, 2, 1 << 20));
	assert_null(check);
	assert_ok(shard_check_start(&check, both, 1, 1 << 20));
	assert_null(check); /* nothing is left to check */
	assert_ok(shard_check_wait(check));
	assert_ok(shard_check_start(&check, both, 2, 0));
	assert_non_null(check);
	assert_error(ERR_DATA, "other.bin': its checksum is", shard_check_wait(check));
	assert_error(ERR_DATA, "other.bin': its checksum is", shard_check_status(check));
	shard_check_close(check);
	assert_ok(shard_check_start(&check, both, 1, 0));
	assert_ok(shard_check_wait(check));
	shard_check_close(check);
	/* Without a description, the ids themselves are the identity. */
	uint64_t before = good.content_hash;
	shard_close(&good);
	shard_close(&bad);
	assert_int_equal(unlink(test_path("contents.json")), 0);
	assert_int_equal(unlink(test_path("other.json")), 0);
	assert_ok(shard_open(&good, test_path("contents")));
	assert_ok(shard_open(&bad, test_path("other")));
	assert_true(good.content_hash == before);
	assert_true(bad.content_hash != before);
	shard_close(&good);
	shard_close(&bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),          cmocka_unit_test(test_wide),
		cmocka_unit_test(test_foreign),        cmocka_unit_test(test_overlapping_sentences),
		cmocka_unit_test(test_negative_id),    cmocka_unit_test(test_wrong_vocabulary),
		cmocka_unit_test(test_damage),         cmocka_unit_test(test_description_guards),
		cmocka_unit_test(test_writer_refuses), cmocka_unit_test(test_faults),
		cmocka_unit_test(test_resume),         cmocka_unit_test(test_drop),
		cmocka_unit_test(test_contents),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
