/* Pickles as data: values are read, code never runs, and malicious input can only fail. */
#include "test.h"
#include "formats/weights/pickle.h"
#include "formats/weights/torch_file.h"

#define BYTES(literal) literal, sizeof literal - 1

static enum status read(struct pickle *out, const char *bytes, size_t size)
{
	return pickle_read(out, "x.bin", 100, (const unsigned char *)bytes, size);
}

static void refused(const char *bytes, size_t size, const char *part)
{
	struct pickle pickle;
	assert_error(ERR_DATA, part, read(&pickle, bytes, size));
	assert_null(pickle.memory);
}

static void values_come_out(void **state)
{
	struct pickle pickle;
	/* {'a': [1, -1, 513, 258, -2, 1.0, None, True, 'b'], 'c': ()} */
	assert_ok(read(&pickle, BYTES("\x80\2}q\0(X\1\0\0\0aq\1](K\1J\xff\xff\xff\xffM\1\2\x8a\2\2\1\x8a\1\xfe"
				      "G?\xf0\0\0\0\0\0\0N\x88U\1beX\1\0\0\0c)u.rest")));
	assert_int_equal(pickle.bytes, 57);
	const struct pickle_value *list = pickle_member(pickle.root, "a"), *empty = pickle_member(pickle.root, "c");
	assert_int_equal(list->kind, PICKLE_LIST);
	assert_int_equal(list->items.count, 9);
	static const int64_t integers[] = {1, -1, 513, 258, -2};
	for (int i = 0; i < 5; i++)
		assert_int_equal(list->items.values[i]->integer, integers[i]);
	assert_true(list->items.values[5]->number == 1.0);
	assert_int_equal(list->items.values[6]->kind, PICKLE_NONE);
	assert_int_equal(list->items.values[7]->kind, PICKLE_BOOL);
	assert_string_equal(list->items.values[8]->text.bytes, "b");
	assert_int_equal(empty->kind, PICKLE_TUPLE);
	assert_null(pickle_member(pickle.root, "d"));
	assert_null(pickle_member(empty, "d"));
	pickle_release(&pickle);
	/* Protocol 4, and a dict that holds itself. */
	assert_ok(read(&pickle, BYTES("\x80\4\x95\0\0\0\0\0\0\0\0}\x94\x8c\1a\x94h\0s.")));
	assert_ptr_equal(pickle_member(pickle.root, "a"), pickle.root);
	pickle_release(&pickle);
}

#define STORAGE(elements)                                                                                                        \
	"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"                                                                       \
	"0X\3\0\0\0cpu" elements "tQ"
#define TENSOR(elements, offset, shape, strides)                                                                                 \
	"\x80\2ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE(elements) offset shape strides "\x89"                               \
											    "ccollections\nOrderedDict\n)RtR."

static void tensors_stay_within_their_storage(void **state)
{
	struct pickle pickle;
	assert_ok(read(&pickle, BYTES(TENSOR("K\6", "K\0", "K\2K\3\x86", "K\3K\1\x86"))));
	assert_int_equal(pickle.root->kind, PICKLE_TENSOR);
	assert_int_equal(pickle.root->tensor->count, 6);
	assert_string_equal(pickle.root->tensor->storage->storage.key, "0");
	pickle_release(&pickle);
	assert_ok(read(&pickle, BYTES(TENSOR("K\6", "K\6", "K\0K\3\x86", "K\3K\1\x86")))); /* empty */
	pickle_release(&pickle);
	static const char beyond[] = "beyond its storage";
	refused(BYTES(TENSOR("K\6", "K\1", "K\2K\3\x86", "K\3K\1\x86")), beyond);
	refused(BYTES(TENSOR("K\6", "K\0", "K\2K\3\x86", "K\4K\1\x86")), beyond);
	refused(BYTES(TENSOR("K\1", "K\0",
			     "J\0\0\0\x40"
			     "\x85",
			     "K\0\x85")),
		beyond); /* the same number a billion times */
	refused(BYTES(TENSOR("K\6", "K\0",
			     "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"
			     "K\3\x86",
			     "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\1\x86")),
		beyond);
	refused(BYTES(TENSOR("K\6", "K\0", "K\2\x85", "K\3K\1\x86")), "strides");
	refused(BYTES(TENSOR("K\6", "K\0", "J\xff\xff\xff\xff\x85", "K\1\x85")), "not a size");
	refused(BYTES(TENSOR("J\xff\xff\xff\xff", "K\0", "K\2\x85", "K\1\x85")), "elements");
}

/* Like torch.save with a tensor that has what it calls metadata. */
#define VIEW(facts)                                                                                                              \
	"\x80\2ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE("K\6") "K\0K\2K\3\x86K\3K\1\x86\x89"                                \
								    "ccollections\nOrderedDict\n)R" facts "tR."

static void views_with_another_sign_are_refused(void **state)
{
	struct pickle pickle;
	assert_ok(read(&pickle, BYTES(VIEW("}"))));
	pickle_release(&pickle);
	assert_ok(read(&pickle, BYTES(VIEW("N"))));
	pickle_release(&pickle);
	assert_ok(read(&pickle, BYTES(VIEW("}X\3\0\0\0neg\x89s"))));
	pickle_release(&pickle);
	refused(BYTES(VIEW("}X\3\0\0\0neg\x88s")), "\"neg\"");
	assert_non_null(strstr(error_last()->hint, "resolve_neg"));
	refused(BYTES(VIEW("}X\4\0\0\0conj\x88s")), "\"conj\"");
	refused(BYTES(VIEW("}K\1\x88s")), "\"?\"");
	refused(BYTES(VIEW("K\1")), "seventh argument");
}

static void code_is_named_and_not_run(void **state)
{
	refused(BYTES("cos\nsystem\n(X\2\0\0\0lstR."), "os.system");
	assert_non_null(strstr(error_last()->message, "byte 100"));
	refused(BYTES("\x80\4\x8c\2os\x8c\6system\x93."), "os.system");
	refused(BYTES("c__builtin__\neval\n."), "__builtin__.eval");
	refused(BYTES("ctorch._utils\n_rebuild_tensor_v3\n."), "_rebuild_tensor_v3");
	refused(BYTES("cpretty\x1b[31m\nname\n."), "pretty?[31m.name");
	refused(BYTES("\x80\2ctorch\nFloatStorage\n)R."), "torch.FloatStorage");
	refused(BYTES("(X\1\0\0\0aios\nsystem\n."), "opcode 0x69"); /* INST */
	refused(BYTES("\x80\2)\x81."), "opcode 0x81");              /* NEWOBJ */
	refused(BYTES("\x80\2\x82\1."), "opcode 0x82");             /* EXT1 */
	refused(BYTES("Pa\n."), "opcode 0x50");                     /* PERSID */
	refused(BYTES("\x80\2X\1\0\0\0aQ."), "not a storage");
}

static void broken_pickles(void **state)
{
	static const char whole[] = TENSOR("K\6", "K\0", "K\2K\3\x86", "K\3K\1\x86");
	for (size_t size = 0; size < sizeof whole - 1; size++)
		refused(whole, size, "truncated");
	refused(BYTES("\x80\1N."), "protocol 1");
	refused(BYTES("\x80\2."), "0 values");
	refused(BYTES("\x80\2NN."), "2 values");
	refused(BYTES("\x80\2(N."), "values");
	refused(BYTES("\x80\2t."), "mark");
	refused(BYTES("\x80\2N\x86."), "more values");
	refused(BYTES("\x80\2}(Nu."), "without a value");
	refused(BYTES("\x80\2N(Nu."), "dictionary");
	refused(BYTES("\x80\2}Na."), "list");
	refused(BYTES("\x80\2h\0."), "recalls value 0");
	refused(BYTES("\x80\2Nr\xff\xff\xff\xff."), "remembers value");
	refused(BYTES("\x80\2q\0."), "memoizes");
	refused(BYTES("\x80\2\x8a\x09\0\0\0\0\0\0\0\0\1."), "9 bytes");
	refused(BYTES("\x80\2X\xff\xff\xff\x7fN."), "truncated");
}

/* A million values encoded in a megabyte take a few dozen megabytes, not more; deep nesting causes no recursion. */
static void many_values(void **state)
{
	size_t count = 1000000;
	char *bytes = malloc(2 * count + 8);
	assert_non_null(bytes);
	memset(bytes, '(', count);
	memset(bytes + count, 't', count);
	bytes[2 * count] = '.';
	struct pickle pickle;
	assert_ok(read(&pickle, bytes, 2 * count + 1));
	assert_int_equal(pickle.root->kind, PICKLE_TUPLE);
	pickle_release(&pickle);
	char *large = calloc(1, PICKLE_BYTES_LIMIT + 10);
	assert_non_null(large);
	memset(large, 'N', PICKLE_BYTES_LIMIT + 10);
	refused(large, PICKLE_BYTES_LIMIT + 10, "truncated");
	free(large);
	free(bytes);
}

/* As torch.save wrote before it used archives: magic, protocol, system, the dictionary, the keys, the numbers. */
#define A_TENSOR                                                                                                                 \
	"ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE("K\6") "K\0K\2K\3\x86K\3K\1\x86\x89"                                      \
							      "ccollections\nOrderedDict\n)RtR"
static const char beside[] = "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."
			     "\x80\2M\xe9\3."
			     "\x80\2}U\rlittle_endian\x88s."
			     "\x80\2}(U\4step" A_TENSOR "U\5model}U\1a" A_TENSOR "su."
			     "\x80\2]U\1"
			     "0a."
			     "\6\0\0\0\0\0\0\0"
			     "abcdefghijklmnopqrstuvwx";

static void a_tensor_beside_the_model_is_none_of_it(void **state)
{
	struct torch_file file;
	assert_ok(file_write(test_path("x.pt"), beside, sizeof beside - 1));
	assert_ok(torch_file_open(&file, test_path("x.pt")));
	assert_int_equal(file.count, 1);
	assert_string_equal(file.tensors[0].name, "a");
	torch_file_close(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_out),
		cmocka_unit_test(tensors_stay_within_their_storage),
		cmocka_unit_test(views_with_another_sign_are_refused),
		cmocka_unit_test(code_is_named_and_not_run),
		cmocka_unit_test(broken_pickles),
		cmocka_unit_test(many_values),
		cmocka_unit_test(a_tensor_beside_the_model_is_none_of_it),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
