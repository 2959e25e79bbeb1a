/* Reading back what was written; every rule of the format violated once; false sizes. */
#include "test.h"
#include <unistd.h>
#include "base/hash.h"
#include "formats/safetensors.h"

static char folder[64], path[128];

static int set_up(void **state)
{
	const char *base = getenv("TMPDIR");
	snprintf(folder, sizeof folder, "%.40s/safetensors-XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/x.safetensors", folder);
	return 0;
}

static int tear_down(void **state)
{
	return folder_remove(folder) == OK ? 0 : -1;
}

/* Writes a file by hand: length, header, then `data_bytes` zeros. */
static void put(uint64_t length, const char *header, size_t header_size, size_t data_bytes)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	for (int i = 0; i < 8; i++)
		fputc((int)(length >> (8 * i) & 255), file);
	assert_int_equal(fwrite(header, 1, header_size, file), header_size);
	for (size_t i = 0; i < data_bytes; i++)
		fputc(0, file);
	assert_int_equal(fclose(file), 0);
}

static void refuses(const char *what, const char *reason)
{
	struct safetensors file;
	enum status status = safetensors_open(&file, path);
	if (status != ERR_DATA || !strstr(error_last()->message, reason) || !strstr(error_last()->message, path))
		fail_msg("%s: status %d, message \"%s\" instead of \"%s\"", what, (int)status,
			 status == OK ? "" : error_last()->message, reason);
}

static const struct {
	const char *what, *header;
	size_t data;
	const char *reason;
} attacks[] = {
	{"overlap",
	 "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
	 "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
	 12, "overlaps"},
	{"the same bytes twice",
	 "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
	 "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
	 8, "overlaps"},
	{"hole",
	 "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
	 "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
	 12, "hole"},
	{"hole at the start", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "hole"},
	{"bytes at the end", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, "after the last"},
	{"truncated data", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, "truncated"},
	{"begin behind end", "{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,-4]}}", 0, "not a size"},
	{"ends before it begins",
	 "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
	 "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,2]}}",
	 4, "ends before"},
	{"offset 2^64-1", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,18446744073709551615]}}", 4, "not a size"},
	{"shape against offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "shape needs 8"},
	{"shape product overflow", "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,0]}}", 0,
	 "too large"},
	{"strides overflow in an empty tensor",
	 "{\"a\":{\"dtype\":\"F32\",\"shape\":[0,1099511627776,1099511627776],\"data_offsets\":[0,0]}}", 0, "too large"},
	{"byte count overflow", "{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0,
	 "too large"},
	{"rank 9", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, "at most 8"},
	{"duplicate names",
	 "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
	 "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
	 2, "twice"},
	{"duplicate fields", "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "twice"},
	{"number in metadata", "{\"__metadata__\":{\"format\":1}}", 0, "is not a string"},
	{"metadata no object", "{\"__metadata__\":\"pt\"}", 0, "not an object"},
	{"invalid UTF-8", "{\"a\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "UTF-8"},
	{"NUL in a name", "{\"a\\u0000\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "NUL"},
	{"control character in a name", "{\"a\\n\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
	 "control character"},
	{"unknown type", "{\"a\":{\"dtype\":\"F12\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "unknown type"},
	{"type is a number", "{\"a\":{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "no \"dtype\""},
	{"negative size", "{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1, "not a size"},
	{"minus zero", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[-0,1]}}", 1, "not a size"},
	{"1e0 as a size", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1e0],\"data_offsets\":[0,1]}}", 1, "not a size"},
	{"1.0 as a size", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}", 1, "not a size"},
	{"text as a size", "{\"a\":{\"dtype\":\"U8\",\"shape\":[\"1\"],\"data_offsets\":[0,1]}}", 1, "not a size"},
	{"no shape", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "not an array"},
	{"one offset", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1]}}", 1, "two numbers"},
	{"three offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}", 1, "at most 2"},
	{"tensor no object", "{\"a\":[1]}", 0, "not an object"},
	{"lone surrogate", "{\"\\ud800\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "surrogate"},
	{"byte order mark", "\xef\xbb\xbf{}", 0, "does not begin"},
	{"leading space", " {}", 0, "does not begin"},
	{"an array", "[]", 0, "does not begin"},
	{"two objects", "{}{}", 0, "JSON"},
	{"cut off", "{\"a\":{\"dtype\":", 0, "JSON"},
};

static void attacks_are_refused(void **state)
{
	for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++) {
		put(strlen(attacks[i].header), attacks[i].header, strlen(attacks[i].header), attacks[i].data);
		refuses(attacks[i].what, attacks[i].reason);
	}
}

static void lengths_are_refused(void **state)
{
	put((uint64_t)1 << 63, "{}", 2, 0);
	refuses("length 2^63", "at most");
	put(UINT64_MAX, "{}", 2, 0);
	refuses("length 2^64-1", "at most");
	put(100000001, "{}", 2, 0);
	refuses("length above the limit", "at most");
	put(3, "{}", 2, 0);
	refuses("length beyond the file", "in a file of 10");
	put(0, "", 0, 0);
	refuses("length 0", "does not begin");
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite("\2\0\0\0\0\0\0", 1, 7, file), 7);
	assert_int_equal(fclose(file), 0);
	refuses("seven bytes", "7 bytes");
	assert_int_equal(truncate(path, 0), 0);
	refuses("empty file", "0 bytes");
}

/* Headers of megabytes that would turn into a tree of gigabytes. */
static void bombs_are_refused(void **state)
{
	size_t size = 4 << 20;
	char *text = malloc(size);
	assert_non_null(text);
	memset(text, '[', size);
	put(size, text, size, 0);
	refuses("brackets only", "does not begin");
	text[0] = '{';
	put(size, text, size, 0);
	refuses("a brace and brackets", "more than");
	memcpy(text, "{\"a\":", 5);
	memset(text + 5, '[', 100);
	put(105, text, 105, 0);
	refuses("deep nesting", "64 deep");
	for (size_t i = 5; i < size; i++)
		text[i] = i == 5 ? '[' : i % 2 ? ',' : '1';
	put(size, text, size, 0);
	refuses("rank of a million", "more than");
	free(text);

	char name[5000];
	memset(name, 'n', sizeof name);
	char header[6000];
	int length =
		snprintf(header, sizeof header, "{\"%.*s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 4097, name);
	put((uint64_t)length, header, (size_t)length, 1);
	refuses("long name", "longer than");
}

static void odd_but_legal(void **state)
{
	struct safetensors file;
	put(2, "{}", 2, 0);
	assert_int_equal(safetensors_open(&file, path), OK);
	assert_int_equal(file.count, 0);
	safetensors_close(&file);

	/* Trailing spaces, an empty tensor, a scalar, an unaligned one, metadata, an unknown field. */
	const char *header = "{\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
			     "\"f\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[1,5],\"more\":null},"
			     "\"e\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[5,5]},"
			     "\"__metadata__\":{\"k\":\"v=w\"}}   ";
	put(strlen(header), header, strlen(header), 5);
	assert_int_equal(safetensors_open(&file, path), OK);
	assert_int_equal(file.count, 3);
	assert_string_equal(file.entries[0].name, "e");
	assert_int_equal(file.entries[0].count, 0);
	assert_int_equal(file.entries[1].rank, 0);
	assert_int_equal(file.entries[1].count, 1);
	float value = 1;
	assert_int_equal(safetensors_to_float(&file.entries[1], path, &value), OK);
	assert_true(value == 0);
	assert_int_equal(safetensors_to_float(&file.entries[2], path, &value), ERR_DATA);
	assert_int_equal(file.metadata.count, 1);
	assert_string_equal(file.metadata.names[0], "k=v=w");
	assert_null(safetensors_find(&file, "x"));
	safetensors_close(&file);
}

static void written_is_read(void **state)
{
	float f32[6] = {1, -2, 3.5f, 0, 1e-30f, 7};
	double f64[2] = {3.141592653589793, -1e300};
	uint16_t f16[5] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0xfc00}; /* 1 -2 2^-24 65504 -inf */
	uint16_t bf16[2] = {0x3f80, 0xc040};                        /* 1 -3 */
	int64_t i64[1] = {42};
	struct safetensors_entry entries[] = {
		{.name = "b.bf16", .dtype = ST_BF16, .rank = 1, .shape = {2}, .data = bf16, .bytes = 4},
		{.name = "z", .dtype = ST_F32, .rank = 1, .shape = {2}, .data = f32, .bytes = 8},
		{.name = "a", .dtype = ST_F32, .rank = 2, .shape = {2, 3}, .data = f32, .bytes = 24},
		{.name = "half", .dtype = ST_F16, .rank = 1, .shape = {5}, .data = f16, .bytes = 10},
		{.name = "i", .dtype = ST_I64, .rank = 1, .shape = {1}, .data = i64, .bytes = 8},
		{.name = "d", .dtype = ST_F64, .rank = 1, .shape = {2}, .data = f64, .bytes = 16},
	};
	char *metadata_names[] = {(char[]){"step=12"}};
	struct name_list metadata = {.names = metadata_names, .count = 1};
	uint32_t crc = 0;
	int64_t bytes = 0;
	assert_int_equal(safetensors_write(path, entries, 6, &metadata, &crc, &bytes), OK);

	struct buffer content = {0};
	assert_int_equal(file_read(path, 1 << 20, &content), OK);
	assert_int_equal(content.size, bytes);
	assert_int_equal(crc32c(0, content.data, content.size), crc);
	/* Large alignments first, then by name; the data begin at a multiple of 8. */
	assert_int_equal((unsigned char)content.data[0] % 8, 0);
	const char *order[] = {"\"i\"", "\"d\"", "\"a\"", "\"z\"", "\"b.bf16\"", "\"half\""};
	const char *last = content.data + 8;
	for (int i = 0; i < 6; i++) {
		const char *at = strstr(last, order[i]);
		assert_non_null(at);
		last = at;
	}
	buffer_release(&content);

	struct safetensors file;
	assert_int_equal(safetensors_open(&file, path), OK);
	assert_int_equal(file.count, 6);
	assert_int_equal(file.metadata.count, 2);
	assert_string_equal(file.metadata.names[0], "format=pt");
	assert_string_equal(file.metadata.names[1], "step=12");
	const struct safetensors_entry *a = safetensors_find(&file, "a");
	assert_non_null(a);
	assert_int_equal(a->rank, 2);
	assert_int_equal(a->shape[1], 3);
	assert_memory_equal(a->data, f32, sizeof f32);
	double value[6];
	assert_int_equal(safetensors_to_double(safetensors_find(&file, "half"), path, value), OK);
	assert_true(value[0] == 1 && value[1] == -2 && value[2] == 0x1p-24 && value[3] == 65504);
	assert_true(value[4] == -(double)__builtin_inff());
	assert_int_equal(safetensors_to_double(safetensors_find(&file, "b.bf16"), path, value), OK);
	assert_true(value[0] == 1 && value[1] == -3);
	assert_int_equal(safetensors_to_double(safetensors_find(&file, "d"), path, value), OK);
	assert_memory_equal(value, f64, sizeof f64);
	float narrow[6];
	assert_int_equal(safetensors_to_float(a, path, narrow), OK);
	assert_memory_equal(narrow, f32, sizeof f32);
	assert_int_equal(safetensors_to_float(safetensors_find(&file, "i"), path, narrow), ERR_DATA);
	safetensors_close(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attacks_are_refused), cmocka_unit_test(lengths_are_refused), cmocka_unit_test(bombs_are_refused),
		cmocka_unit_test(odd_but_legal),       cmocka_unit_test(written_is_read),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
