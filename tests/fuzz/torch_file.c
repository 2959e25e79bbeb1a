/* PyTorch's files: zip archives and the older form, both with the pickle in them. Inputs that begin with 'P'
 * are taken for a pickle alone. */
#include "fuzz.h"
#include "formats/torch_file.h"

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

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	fuzz_write_seeds(*argv, seeds, sizeof seeds / sizeof *seeds);
	fuzz_seed_file(*argv, "tests/golden/bert_tiny.bin");
	fuzz_seed_file(*argv, "tests/golden/bert_tiny_old.bin");
	fuzz_seed_file(*argv, "tests/golden/bert_tiny_nvidia.pt");
	return 0;
}

/* Everything that a reader would use of a file that was accepted. */
static void use(const struct torch_file *file)
{
	for (int64_t i = 0; i < file->count; i++) {
		const struct stored_tensor *tensor = &file->tensors[i];
		float block[64];
		if (stored_tensor_verify(tensor) != OK || !dtype_is_floating(tensor->dtype))
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
	if (torch_file_open(&file, fuzz_file("torch", bytes, count)) == OK) {
		use(&file);
		torch_file_close(&file);
	}
	return 0;
}
