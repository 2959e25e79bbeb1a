/* Reads the limits of this process's control group and of all groups above it. */
#include "base/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a controller's files for this process are: version 2 has one tree, version 1 has one per controller. */
struct cgroup {
	char root[64], path[3072];
	bool version2;
};

/* /proc/self/cgroup has lines "0::/path" (version 2) or "4:cpu,cpuacct:/path" (version 1). */
static bool cgroup_find(const char *controller, struct cgroup *out)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	if (!file)
		return false;
	char line[4096];
	bool found = false;
	while (fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		char *list = strchr(line, ':');
		char *path = list ? strchr(list + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		list++;
		bool version2 = *list == '\0', named = false;
		for (char *save, *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save))
			named |= !strcmp(word, controller);
		if (!version2 && !named)
			continue;
		out->version2 = version2;
		snprintf(out->root, sizeof out->root, "/sys/fs/cgroup%s%s", version2 ? "" : "/", version2 ? "" : controller);
		snprintf(out->path, sizeof out->path, "%s", path);
		found = true;
		if (named) /* a hybrid system has its limits in version 1 */
			break;
	}
	fclose(file);
	return found;
}

/* Moves to the parent group; false above the root. The limits of all ancestors apply, and inside a container the path may name a
 * folder that is not mounted there, while the root is. */
static bool cgroup_parent(struct cgroup *group)
{
	char *slash = strrchr(group->path, '/');
	if (!slash || !group->path[0])
		return false;
	*slash = '\0';
	return true;
}

/* Reads up to two numbers from a file; "max" reads as -1. Returns how many were found. */
static int cgroup_numbers(const struct cgroup *group, const char *name, int64_t out[2])
{
	char path[4096], text[128] = "";
	snprintf(path, sizeof path, "%s%s/%s", group->root, strcmp(group->path, "/") ? group->path : "", name);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	char *got = fgets(text, sizeof text, file);
	fclose(file);
	if (!got)
		return 0;
	int count = 0;
	for (char *save, *word = strtok_r(text, " \n", &save); word && count < 2; word = strtok_r(NULL, " \n", &save))
		out[count++] = strcmp(word, "max") ? strtoll(word, NULL, 10) : -1;
	return count;
}

static int64_t cgroup_stat(const struct cgroup *group, const char *key)
{
	char path[4096], name[64];
	int64_t value = 0, found = 0;
	snprintf(path, sizeof path, "%s%s/memory.stat", group->root, strcmp(group->path, "/") ? group->path : "");
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	while (fscanf(file, "%63s %" SCNd64, name, &value) == 2) {
		if (!strcmp(name, key))
			found = value;
	}
	fclose(file);
	return found;
}

double cgroup_cpu_quota(void)
{
	struct cgroup group;
	double smallest = 0;
	if (!cgroup_find("cpu", &group))
		return 0;
	do {
		int64_t quota[2] = {-1, -1}, period[2] = {100000, 0};
		if (group.version2) {
			if (cgroup_numbers(&group, "cpu.max", quota) == 2)
				period[0] = quota[1];
		} else if (cgroup_numbers(&group, "cpu.cfs_quota_us", quota) < 1 ||
			   cgroup_numbers(&group, "cpu.cfs_period_us", period) < 1) {
			continue;
		}
		if (quota[0] > 0 && period[0] > 0) {
			double cores = (double)quota[0] / (double)period[0];
			if (smallest == 0 || cores < smallest)
				smallest = cores;
		}
	} while (cgroup_parent(&group));
	return smallest;
}

int64_t cgroup_memory_left(void)
{
	struct cgroup group;
	int64_t smallest = -1;
	if (!cgroup_find("memory", &group))
		return -1;
	do {
		int64_t limit[2] = {-1, 0}, used[2] = {0, 0};
		if (cgroup_numbers(&group, group.version2 ? "memory.max" : "memory.limit_in_bytes", limit) < 1 ||
		    cgroup_numbers(&group, group.version2 ? "memory.current" : "memory.usage_in_bytes", used) < 1)
			continue;
		/* Version 1 writes "no limit" as a number near 2^63. */
		if (limit[0] < 0 || limit[0] > INT64_MAX / 2)
			continue;
		int64_t cache = cgroup_stat(&group, group.version2 ? "inactive_file" : "total_inactive_file");
		int64_t left = limit[0] - used[0] + cache;
		if (left < 0)
			left = 0;
		if (smallest < 0 || left < smallest)
			smallest = left;
	} while (cgroup_parent(&group));
	return smallest;
}
