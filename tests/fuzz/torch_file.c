/* PyTorch's files: zip archives and the older format, both containing the pickle. Inputs that begin with 'P' are treated
 * as a pickle alone; in archives, checksums are corrected first, so that the code behind them is reached. */
#include <zlib.h>
#include "fuzz.h"
#include "formats/weights/torch_file.h"

static const struct fuzz_seed seeds[] = {
	FUZZ_SEED("P\x80\2}q\0(X\1\0\0\0actorch._utils\n_rebuild_tensor_v2\nq\1(("
		  "X\7\0\0\0storagectorch\nFloatStorage\n"
		  "X\1\0\0\0"
		  "0X\3\0\0\0cpuK\6tQK\0K\2K\3\x86K\3K\1\x86\x89"
		  "ccollections\nOrderedDict\n)RtRu."),
	FUZZ_SEED("P\x80\4\x95\0\0\0\0\0\0\0\0}\x94\x8c\1a\x94K\1s."),
	FUZZ_SEED("P\x80\2](K\1J\xff\xff\xff\xffM\1\2\x8a\2\1\2G?\xf0\0\0\0\0\0\0N\x88\x89"
		  "eq\0h\0\x85\x86."),
	FUZZ_SEED("P\x80\2}q\0h\0h\0s."),
	FUZZ_SEED("P\x80\2ccollections\nOrderedDict\n)Rq\0}(U\1aK\1ub."),
	FUZZ_SEED("P\x80\2\x8c\2os\x8c\6system\x93\x8c\2ls\x85R."),
	FUZZ_SEED("PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
};

/* A dictionary of one 2 x 3 tensor, whose storage has the key "0". */
#define DICTIONARY(persistent_end)                                                                                               \
	"\x80\2}q\0(X\1\0\0\0actorch._utils\n_rebuild_tensor_v2\nq\1((X\7\0\0\0storagectorch\nFloatStorage\n"                    \
	"X\1\0\0\0"                                                                                                              \
	"0X\3\0\0\0cpuK\6" persistent_end "tQK\0K\2K\3\x86K\3K\1\x86\x89"                                                        \
	"ccollections\nOrderedDict\n)RtRu."
#define NUMBERS "abcdefghijklmnopqrstuvwx"
/* As torch.save wrote before it used archives. */
#define OLD_HEAD                                                                                                                 \
	"\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\2M\xe9\3.\x80\2}q\0(X\x10\0\0\0protocol_versionq\1M\xe9\3X\r\0\0\0"       \
	"little_endianq\2\x88u."

static size_t put_number(unsigned char *out, uint32_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		out[i] = (unsigned char)(value >> 8 * i);
	return (size_t)bytes;
}

/* The fields shared by a local header and one in the directory, without checksums: those are corrected for every input. */
static size_t put_entry(unsigned char *out, bool local, const char *name, uint32_t size, uint32_t offset)
{
	unsigned char *at = out;
	memset(out, 0, 64);
	memcpy(at, local ? "PK\3\4" : "PK\1\2", 4);
	at += local ? 4 : 6;
	at += 14; /* version, flags, method (stored), time, checksum */
	at += put_number(at, size, 4);
	at += put_number(at, size, 4);
	at += put_number(at, (uint32_t)strlen(name), 2);
	at += local ? 2 : 12;
	at += local ? 0 : put_number(at, offset, 4);
	memcpy(at, name, strlen(name));
	return (size_t)(at - out) + strlen(name);
}

static void add_archive(char **arguments)
{
	static const char dictionary[] = DICTIONARY("");
	static const struct {
		const char *name, *bytes;
		uint32_t size;
	} entries[] = {
		{"a/data.pkl", dictionary, sizeof dictionary - 1}, {"a/byteorder", "little", 6}, {"a/data/0", NUMBERS, 24}};
	unsigned char file[1024], directory[512];
	size_t used = 0, listed = 0;
	for (int i = 0; i < 3; i++) {
		listed += put_entry(directory + listed, false, entries[i].name, entries[i].size, (uint32_t)used);
		used += put_entry(file + used, true, entries[i].name, entries[i].size, 0);
		memcpy(file + used, entries[i].bytes, entries[i].size);
		used += entries[i].size;
	}
	memcpy(file + used, directory, listed);
	unsigned char *end = file + used + listed;
	memset(end, 0, 22);
	memcpy(end, "PK\5\6", 4);
	put_number(end + 8, 3, 2);
	put_number(end + 10, 3, 2);
	put_number(end + 12, (uint32_t)listed, 4);
	put_number(end + 16, (uint32_t)used, 4);
	fuzz_add_seed(arguments, file, used + listed + 22);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char old[] = OLD_HEAD DICTIONARY("N") "\x80\2]q\0X\1\0\0\0000q\1a.\6\0\0\0\0\0\0\0" NUMBERS;
	(void)argc;
	fuzz_write_seeds(*argv, seeds, sizeof seeds / sizeof *seeds);
	fuzz_add_seed(*argv, old, sizeof old - 1);
	add_archive(*argv);
	return 0;
}

static uint32_t number_at(const unsigned char *bytes, int count)
{
	uint32_t value = 0;
	for (int i = 0; i < count; i++)
		value |= (uint32_t)bytes[i] << 8 * i;
	return value;
}

/* Corrects the checksums of the entries that a simple search for a zip archive's headers finds. */
static void put_checksums(unsigned char *bytes, size_t count)
{
	for (size_t at = 0; at + 46 <= count; at++) {
		if (memcmp(bytes + at, "PK\1\2", 4) != 0)
			continue;
		size_t size = number_at(bytes + at + 20, 4), local = number_at(bytes + at + 42, 4);
		if (local + 30 > count)
			continue;
		size_t begin = local + 30 + number_at(bytes + local + 26, 2) + number_at(bytes + local + 28, 2);
		if (begin > count || size > count - begin)
			continue;
		uint32_t crc = (uint32_t)crc32(0, bytes + begin, (uInt)size);
		put_number(bytes + at + 16, crc, 4);
		put_number(bytes + local + 14, crc, 4);
	}
}

/* Uses everything that a reader would use of an accepted file. */
static void use(const struct torch_file *file)
{
	for (int64_t i = 0; i < file->count; i++) {
		const struct stored_tensor *tensor = &file->tensors[i];
		float block[64];
		if (stored_tensor_verify(tensor) != OK)
			continue;
		for (int64_t done = 0; done < tensor->count && done < 4096; done += 64) {
			int64_t part = tensor->count - done < 64 ? tensor->count - done : 64;
			BUG_IF(stored_tensor_read(tensor, done, part, block) != OK);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	if (count > 2 && bytes[0] == 'P' && bytes[1] == 0x80) {
		struct pickle pickle;
		char *copy = fuzz_copy(bytes + 1, count - 1);
		if (pickle_read(&pickle, "fuzz", 0, (const unsigned char *)copy, count - 1) == OK) {
			BUG_IF(!pickle.root || pickle.bytes > count - 1);
			pickle_member(pickle.root, "model");
			pickle_release(&pickle);
		}
		free(copy);
		return 0;
	}
	struct torch_file file;
	unsigned char *copy = (unsigned char *)fuzz_copy(bytes, count);
	put_checksums(copy, count);
	if (torch_file_open(&file, fuzz_file("torch", copy, count)) == OK) {
		use(&file);
		torch_file_close(&file);
	}
	free(copy);
	return 0;
}
