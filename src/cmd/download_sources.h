/* The sources that `bertc download` knows by name. To add one, add a row to download_sources.c. */
#ifndef CMD_DOWNLOAD_SOURCES_H
#define CMD_DOWNLOAD_SOURCES_H

/* {wiki}, {date}, and {book} are replaced with values from the command line ("enwiki", "latest", "1342"). */
struct download_source {
	const char *name; /* "squad"; the part before a '/' names a group: "glue" means all of "glue/..." */
	const char *file; /* path below --out */
	const char *url;
	const char *checksum; /* as published, or as its users report it; NULL = unknown */
	const char *sums_url; /* a published list of checksums that includes this file; NULL = none */
	const char *summary;  /* NULL: same as the previous row */
	double pause_seconds; /* pause between two files, if the host asks for one */
};

extern const struct download_source download_sources[]; /* ends with name NULL */

#endif
