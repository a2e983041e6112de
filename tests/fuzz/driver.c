/* SPDX-License-Identifier: MIT
 *
 * Runs a fuzz target without libFuzzer. Each seed is run whole, cut after each of its first bytes,
 * and in damaged copies. The seeds are in tests/fuzz/corpus/FUZZ_NAME, or are named on the command
 * line.
 */
#include <glob.h>
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
	bool ok = true;
	char pattern[4096];
	glob_t found;

	snprintf(pattern, sizeof pattern, "%s/tests/fuzz/corpus/%s/*", top != NULL ? top : ".",
		FUZZ_NAME);
	if (glob(pattern, 0, NULL, &found) != 0) {
		fprintf(stderr, "no seeds: %s\n", pattern);
		return false;
	}
	for (size_t i = 0; ok && i < found.gl_pathc; i++)
		ok = run_file(found.gl_pathv[i]);
	printf("%s: %zu seeds\n", FUZZ_NAME, found.gl_pathc);
	globfree(&found);
	return ok;
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
