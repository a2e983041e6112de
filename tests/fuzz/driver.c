/* SPDX-License-Identifier: MIT
 *
 * Runs a fuzz target without libFuzzer: each seed, every beginning of it, and a number of damaged
 * copies. The seeds lie in tests/fuzz/corpus/FUZZ_NAME, or are named on the command line.
 */
#include <dirent.h>
#include <stdbool.h>
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/fuzz/fuzz.h"

#define SEED_MAX  65536u
#define N_DAMAGED 500

static void run_copy(const uint8_t *p, size_t len)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);

	FUZZ_CHECK(copy != NULL);
	memcpy(copy, p, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static void run_seed(uint8_t *p, size_t len)
{
	struct tl_rng r = tl_rng_new(len);

	run_copy(p, len);
	for (size_t n = 0; n < len && n < 1024; n++)
		run_copy(p, n);
	for (int i = 0; len > 0 && i < N_DAMAGED; i++) {
		size_t at = tl_range(&r, 0, len - 1);
		uint8_t was = p[at];

		p[at] = (uint8_t)tl_u64(&r);
		run_copy(p, len);
		p[at] = was;
	}
}

static bool run_file(const char *path)
{
	static uint8_t buf[SEED_MAX];
	FILE *f = fopen(path, "rb");
	size_t len;

	if (f == NULL) {
		perror(path);
		return false;
	}
	len = fread(buf, 1, sizeof buf, f);
	fclose(f);
	run_seed(buf, len);
	return true;
}

static bool run_corpus(void)
{
	const char *top = getenv("abs_top_srcdir");
	char dir_name[3000], path[4096];
	struct dirent *e;
	int n = 0;
	DIR *dir;

	snprintf(dir_name, sizeof dir_name, "%s/tests/fuzz/corpus/%s", top != NULL ? top : ".",
		FUZZ_NAME);
	dir = opendir(dir_name);
	if (dir == NULL) {
		perror(dir_name);
		return false;
	}
	while ((e = readdir(dir)) != NULL) {
		snprintf(path, sizeof path, "%s/%s", dir_name, e->d_name);
		if (e->d_name[0] != '.' && run_file(path))
			n++;
	}
	closedir(dir);
	printf("%s: %d seeds\n", FUZZ_NAME, n);
	return n > 0;
}

int main(int argc, char **argv)
{
	if (argc == 1)
		return run_corpus() ? EXIT_SUCCESS : EXIT_FAILURE;
	for (int i = 1; i < argc; i++)
		if (!run_file(argv[i]))
			return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
