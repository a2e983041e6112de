/* SPDX-License-Identifier: MIT */
#include "dataset.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

enum { MAX_DIMENSIONS = 3, MAX_ITEMS = 1 << 24, MAX_BYTES = 1 << 30 };

/*
 * Reads an IDX header: two zero bytes, the element type (8: unsigned bytes), the number of
 * dimensions, and each dimension as four bytes, the highest byte first. Returns the number of bytes
 * that follow, or 0 if this is not an IDX header; *count receives the first dimension.
 */
static size_t read_header(gzFile file, int dimensions, size_t *count)
{
	unsigned char head[4 + 4 * MAX_DIMENSIONS];
	const unsigned length = 4 + 4 * (unsigned)dimensions;
	size_t total = 1;

	if (gzread(file, head, length) != (int)length || head[0] != 0 || head[1] != 0 ||
		head[2] != 8 || head[3] != dimensions)
		return 0;
	for (int d = 0; d < dimensions; d++) {
		const unsigned char *at = head + 4 + 4 * (ptrdiff_t)d;
		const size_t n =
			(size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];

		if (d == 0)
			*count = n;
		if (n == 0 || n > MAX_ITEMS || (total *= n) > MAX_BYTES)
			return 0;
	}
	return total;
}

/* Returns the contents of an IDX file, to be freed, or NULL after an error message. */
static uint8_t *read_idx(const char *path, int dimensions, size_t *count, size_t *bytes)
{
	gzFile file = gzopen(path, "rb");
	uint8_t *data = NULL;

	if (!file) {
		fprintf(stderr, "%s: cannot be opened (Debian: dataset-fashion-mnist)\n", path);
		return NULL;
	}
	*bytes = read_header(file, dimensions, count);
	if (*bytes != 0)
		data = malloc(*bytes);
	if (data && gzread(file, data, (unsigned)*bytes) != (int)*bytes) {
		free(data);
		data = NULL;
	}
	if (!data)
		fprintf(stderr, "%s: not an IDX file of %d dimensions\n", path, dimensions);
	gzclose(file);
	return data;
}

int dataset_open(struct dataset *set, const char *folder, const char *name)
{
	char path[4096];
	size_t labels = 0, bytes = 0;

	*set = (struct dataset){0};
	snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte.gz", folder, name);
	set->images = read_idx(path, 3, &set->count, &bytes);
	if (!set->images)
		return -1;
	set->pixels = bytes / set->count;
	snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte.gz", folder, name);
	set->labels = read_idx(path, 1, &labels, &bytes);
	if (set->labels && labels == set->count)
		return 0;
	if (set->labels)
		fprintf(stderr, "%s: %zu labels for %zu images\n", path, labels, set->count);
	dataset_close(set);
	return -1;
}

void dataset_close(struct dataset *set)
{
	free(set->images);
	free(set->labels);
	*set = (struct dataset){0};
}

void dataset_image(const struct dataset *set, size_t index, float *dst)
{
	const uint8_t *src = set->images + index * set->pixels;

	/* mean and standard deviation of the training images */
	for (size_t i = 0; i < set->pixels; i++)
		dst[i] = ((float)src[i] / 255.0f - 0.286f) / 0.353f;
}
