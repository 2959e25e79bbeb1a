/* What `bertc download` knows by name. To add a source, add a row to download_sources.c. */
#ifndef CMD_DOWNLOAD_SOURCES_H
#define CMD_DOWNLOAD_SOURCES_H

/* {wiki}, {date} and {book} stand for values of the command line ("enwiki", "latest", "1342"). */
struct download_source {
	const char *name; /* "squad"; a group is what comes before '/': "glue" means all of "glue/..." */
	const char *file; /* where it goes below --out */
	const char *url;
	const char *checksum; /* as its publisher or its users print it; NULL = unknown */
	const char *sums_url; /* a published list of checksums that has this file; NULL = none */
	const char *summary;  /* NULL: as the row before */
	double pause_seconds; /* between two files, where the host asks for it */
};

extern const struct download_source download_sources[]; /* ends with name NULL */

#endif
