/* Verification of instance files. */
#include <stdio.h>
#include "base/temporary.h"
#include "data/pretraining/instance_files.h"
#include "formats/example.h"
#include "formats/tfrecord.h"

/* Checks the frames and checksums of all records. *out_instances: whether the first one has the features of pre-training data. */
static enum status verify_frames(const char *path, bool *out_instances)
{
	struct tfrecord_reader *reader;
	struct tf_example example;
	enum status status;
	*out_instances = false;
	TRY(tfrecord_open(&reader, path));
	for (int64_t i = 0;; i++) {
		const unsigned char *payload;
		size_t size;
		TRY_GOTO(tfrecord_next(reader, &payload, &size), done);
		if (payload == NULL)
			break;
		if (i == 0 && example_parse(&example, payload, size) == OK)
			*out_instances = example_find(&example, "masked_lm_positions") != NULL;
	}
done:
	tfrecord_close(reader);
	return status;
}

static enum status verify_records(const char *path, struct instance_counts *out)
{
	struct record_reader *reader;
	const struct instance *instance;
	bool instances;
	enum status status;
	TRY(verify_frames(path, &instances));
	if (!instances)
		return OK;
	TRY(record_reader_open(&reader, path, &(struct instance_demands){0}));
	do {
		status = record_reader_next(reader, &instance);
	} while (status == OK && instance != NULL);
	*out = *record_reader_counts(reader);
	record_reader_close(reader);
	return status;
}

enum status instance_file_verify(const char *path, struct instance_counts *out)
{
	enum instance_format format;
	char own[PATH_BYTES];
	struct temporary_folder folder;
	*out = (struct instance_counts){0};
	TRY(instance_file_format(path, &format));
	if (format == INSTANCE_STATIC)
		return static_file_verify(path);
	if (format == INSTANCE_TFRECORD)
		return verify_records(path, out);
	TRY(temporary_folder_make(&folder, "verify"));
	enum status status = path_join(own, folder.path, "converted");
	if (status == OK)
		status = instance_file_convert(path, &(struct instance_demands){0}, own, out);
	temporary_folder_remove(&folder);
	return status;
}
