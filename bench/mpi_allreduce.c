/* SPDX-License-Identifier: MIT */
/* All-reduces of MPI for bench/compare, which compiles this program with mpicc and starts it with
 * mpirun. Usage: mpi_allreduce FOLDER
 *
 * Every rank reads lines "BYTES WARM-UPS N" from the pipe FOLDER/rank-RANK, until the pipe is
 * closed. So a rank without work sleeps. Waiting in MPI would take a processor from the other
 * contenders. Rank 0 answers each line with a line of N times in seconds, each from the slowest
 * rank (fp32 sum, in place).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order {
	size_t count; /* elements */
	int warm_ups, n;
};

__attribute__((noreturn)) static void die(const char *why)
{
	fprintf(stderr, "mpi_allreduce: %s\n", why);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	exit(EXIT_FAILURE);
}

static void all_reduce(float *buf, const struct order *o)
{
	MPI_Allreduce(MPI_IN_PLACE, buf, (int)o->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* Returns whether a first sum, whose result is known, is right. */
static int first_is_right(float *buf, const struct order *o, int rank, int world_size)
{
	float wanted = (float)(world_size * (world_size + 1)) / 2;
	int right = 1;

	for (size_t i = 0; i < o->count; i++)
		buf[i] = (float)(rank + 1);
	all_reduce(buf, o);
	for (size_t i = 0; i < o->count; i++)
		right = right && buf[i] == wanted;
	return right;
}

static void measure(float *buf, double *times, const struct order *o)
{
	memset(buf, 0, o->count * sizeof *buf); /* the sum of zeros stays zero */
	for (int i = 0; i < o->warm_ups; i++)
		all_reduce(buf, o);
	for (int i = 0; i < o->n; i++) {
		double began = MPI_Wtime();

		all_reduce(buf, o);
		times[i] = MPI_Wtime() - began;
	}
}

static void carry_out(const struct order *o, int rank, int world_size)
{
	float *buf = malloc(o->count * sizeof *buf);
	double *times = malloc((size_t)o->n * sizeof *times);
	double *longest = malloc((size_t)o->n * sizeof *longest);
	int right, all_right;

	if (!buf || !times || !longest)
		die("no memory");
	right = first_is_right(buf, o, rank, world_size);
	MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	measure(buf, times, o);
	MPI_Reduce(times, longest, o->n, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	/* A rank sends its remaining data in this call, because it sends nothing while it sleeps.
	 */
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		if (!all_right)
			printf("error: a wrong sum");
		for (int i = 0; all_right && i < o->n; i++)
			printf("%.9f ", longest[i]);
		printf("\n");
		fflush(stdout);
	}
	free(buf);
	free(times);
	free(longest);
}

int main(int argc, char **argv)
{
	char line[100], path[4096], *at;
	struct order o;
	int rank, world_size;
	FILE *f;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	snprintf(path, sizeof path, "%s/rank-%d", argc > 1 ? argv[1] : ".", rank);
	f = fopen(path, "r");
	if (!f)
		die(path);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		printf("ready\n");
		fflush(stdout);
	}
	while (fgets(line, sizeof line, f)) {
		o.count = strtoul(line, &at, 10) / sizeof(float);
		o.warm_ups = (int)strtol(at, &at, 10);
		o.n = (int)strtol(at, NULL, 10);
		carry_out(&o, rank, world_size);
	}
	fclose(f);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
