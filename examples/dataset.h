/* SPDX-License-Identifier: MIT
 *
 * Labelled images from a pair of gzipped IDX files, the format of MNIST and its relatives.
 */
#ifndef EXAMPLES_DATASET_H
#define EXAMPLES_DATASET_H

#include <stddef.h>
#include <stdint.h>

struct dataset {
	size_t count;    /* images */
	size_t pixels;   /* per image */
	uint8_t *images; /* count x pixels */
	uint8_t *labels; /* count */
};

/*
 * Reads FOLDER/NAME-images-idx3-ubyte.gz and FOLDER/NAME-labels-idx1-ubyte.gz. Returns 0, or -1
 * after an error message on standard error. To be freed with dataset_close.
 */
int dataset_open(struct dataset *set, const char *folder, const char *name);
void dataset_close(struct dataset *set);
/* Writes one image as floats with mean 0 and standard deviation 1, approximately. */
void dataset_image(const struct dataset *set, size_t index, float *dst);

#endif
