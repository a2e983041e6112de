/* SPDX-License-Identifier: MIT
 *
 * Data-parallel training that survives the loss of trainers and admits newcomers.
 *
 * Every trainer computes the gradient of its own minibatch, all of them average their
 * gradients with one pcclAllReduce, and each applies the average to its own copy of the weights.
 * All trainers start from the same weights and add the same bits, so the copies stay identical: the
 * hash in the last line is the same for all.
 *
 * Three functions handle failures: all_reduce, share_state and train. They repeat calls that lost
 * a peer; they synchronize the state from time to time, so that newcomers get it; and a trainer
 * that is left alone waits for other trainers.
 */
#include "dataset.h"
#include "mlp.h"
#include "options.h"

#include <pccl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	PIXELS = 28 * 28,
	HIDDEN = 256,
	CLASSES = 10,
	TEST_BATCH = 500,
	ADMIT_EVERY = 50, /* steps between two checks for newcomers */
	TAG_GRADIENT = 1,
	TAG_LOSS = 2,
	TENSORS = 3,
	GRADIENTS = 16, /* in the file of --gradient */
};

static const float MOMENTUM = 0.9f;

/* The state of a run, equal on all its trainers. */
struct state {
	float *weights;  /* mlp_size(net), in memory shared with the agent */
	float *velocity; /* the same size, likewise */
	uint64_t step;   /* steps done */
	pcclTensorInfo_t tensors[TENSORS];
	pcclSharedState_t shared; /* the tensors, with the next revision */
};

struct trainer {
	struct options opt;
	struct dataset images;
	struct mlp net;
	pcclComm_t *comm;
	struct state state;
	float *gradient; /* gradient of the weights, in shared memory, too */
	float *x;        /* the minibatch: images and labels */
	uint8_t *y;
	FILE *report;
	unsigned world_size; /* trainers whose gradients were in the last average */
	unsigned retries;    /* calls that had to be repeated because a trainer was lost */
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list args;

	fputs("fashion-mnist: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void must(pcclResult_t result, const char *what)
{
	if (result != pcclSuccess)
		die("%s: %s", what, pcclGetLastError());
}

static void *shared_floats(size_t count)
{
	void *memory;

	must(pcclMemAlloc(count * sizeof(float), &memory), "allocating");
	return memory;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/*
 * Reduces in place, with all present trainers. If a peer is lost, the call restores the buffer, so
 * the same call is made again, with the remaining peers. Returns false if no other trainer is left.
 */
static bool all_reduce(struct trainer *t, float *buffer, const pcclReduceDescriptor_t *descriptor)
{
	pcclReduceInfo_t info;
	pcclResult_t result;

	while ((result = pcclAllReduce(buffer, buffer, descriptor, t->comm, &info)) ==
		pcclRankConnectionLost)
		t->retries++;
	if (result == pcclTooFewPeers)
		return false;
	must(result, "all-reduce");
	t->world_size = info.local_world_size;
	return true;
}

/* Reports a synchronization that transferred something. */
static void report_sync(struct trainer *t, const pcclSharedStateSyncInfo_t *info, double seconds)
{
	const uint64_t most = info->tx_bytes > info->rx_bytes ? info->tx_bytes : info->rx_bytes;

	if (most == 0)
		return;
	fprintf(t->report, "sync %llu %llu %llu %.1f\n", (unsigned long long)t->state.step,
		(unsigned long long)info->tx_bytes, (unsigned long long)info->rx_bytes,
		(double)most * 1e-6 / seconds);
	fflush(t->report);
}

/*
 * Makes the state the same on all trainers. All trainers call this after newcomers were admitted,
 * and newcomers call it first: their revision is lower, so they get the contents of the others.
 * Usually only newcomers get contents, because those of the others are already equal.
 */
static void share_state(struct trainer *t)
{
	const double began = now();
	pcclSharedStateSyncInfo_t info;
	pcclResult_t result;

	while ((result = pcclSynchronizeSharedState(t->comm, &t->state.shared,
			PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, &info)) ==
		pcclRankConnectionLost)
		t->retries++;
	must(result, "synchronizing the state");
	t->state.shared.revision++;
	report_sync(t, &info, now() - began);
}

/* Returns the number of trainers in the run, as of the last call. */
static unsigned company(const struct trainer *t)
{
	int n;

	must(pcclGetAttribute(t->comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &n), "counting");
	return (unsigned)n;
}

/* Admits all waiting newcomers. All trainers of the run call it together. */
static void update_topology(struct trainer *t)
{
	must(pcclUpdateTopology(t->comm), "updating the topology");
}

/* Waits until there are enough trainers, or there is a run in progress to take part in. */
static void gather(struct trainer *t, unsigned enough)
{
	share_state(t);
	while (company(t) < (t->state.step > 0 ? 2 : enough)) {
		usleep(50000);
		update_topology(t);
		share_state(t);
	}
}

static void admit_newcomers(struct trainer *t)
{
	bool pending;

	must(pcclArePeersPending(t->comm, &pending), "asking for newcomers");
	if (pending)
		update_topology(t);
	share_state(t);
}

/* Draws this trainer's minibatch of a step: it depends only on seed, trainer and step. */
static void draw_minibatch(struct trainer *t, uint64_t step)
{
	const uint64_t stream = mlp_random(mlp_random(t->opt.seed, t->opt.id), step);

	for (unsigned i = 0; i < t->opt.batch; i++) {
		const size_t pick = mlp_random(stream, i) % t->images.count;

		dataset_image(&t->images, pick, t->x + (size_t)i * PIXELS);
		t->y[i] = t->images.labels[pick];
	}
}

/* Stochastic gradient descent with momentum, computed only from values that all trainers have in
 * common. */
static void apply_gradient(struct trainer *t)
{
	struct state *s = &t->state;

	for (size_t i = 0; i < mlp_size(&t->net); i++) {
		s->velocity[i] = MOMENTUM * s->velocity[i] - t->opt.rate * t->gradient[i];
		s->weights[i] += s->velocity[i];
	}
	s->step++;
}

/* Averages the gradients of all trainers. Only what crosses the network is quantized. */
static bool average_gradients(struct trainer *t)
{
	const pcclReduceDescriptor_t descriptor = {
		.count = mlp_size(&t->net),
		.op = pcclAvg,
		.tag = TAG_GRADIENT,
		.src_descriptor = {pcclFloat, t->opt.hint},
		.quantization_options = t->opt.quantization,
	};

	return all_reduce(t, t->gradient, &descriptor);
}

/* Averages the losses of all trainers, only for the report. The loss is not a part of the gradient,
 * because it is much larger than its other elements: it would spoil the quantization of its block.
 */
static float average_loss(struct trainer *t, float loss)
{
	const pcclReduceDescriptor_t descriptor = {
		.count = 1,
		.op = pcclAvg,
		.tag = TAG_LOSS,
		.src_descriptor.datatype = pcclFloat,
	};

	(void)all_reduce(t, &loss, &descriptor);
	return loss;
}

/* Writes gradients of different minibatches, so that pccl-bench quant can add them up. */
static void write_gradients(struct trainer *t)
{
	const size_t count = mlp_size(&t->net);
	FILE *f = fopen(t->opt.gradient, "w");
	bool good = f != NULL;

	for (unsigned i = 0; good && i < GRADIENTS; i++) {
		draw_minibatch(t, t->opt.steps + (uint64_t)i); /* no step has these numbers */
		(void)mlp_gradient(
			&t->net, t->state.weights, t->x, t->y, (int)t->opt.batch, t->gradient);
		good = fwrite(t->gradient, sizeof(float), count, f) == count;
	}
	if (!f || fclose(f) != 0 || !good)
		die("%s cannot be written", t->opt.gradient);
}

static void train(struct trainer *t)
{
	const double megabytes = (double)(mlp_size(&t->net) * sizeof(float)) * 1e-6;

	while (t->state.step < t->opt.steps) {
		const uint64_t step = t->state.step;
		double began, seconds;
		float loss;

		if (t->opt.gradient && step == t->opt.steps / 2)
			write_gradients(t);
		draw_minibatch(t, step);
		loss = mlp_gradient(
			&t->net, t->state.weights, t->x, t->y, (int)t->opt.batch, t->gradient);
		began = now();
		if (!average_gradients(t)) {
			gather(t, 2);
			continue;
		}
		seconds = now() - began;
		loss = average_loss(t, loss);
		fprintf(t->report, "%llu %.4f %u %.1f %u\n", (unsigned long long)step + 1,
			(double)loss, t->world_size, megabytes / seconds, t->retries);
		fflush(t->report);
		apply_gradient(t);
		if ((step + 1) % ADMIT_EVERY == 0 && step + 1 < t->opt.steps)
			admit_newcomers(t);
	}
}

static double test_accuracy(struct trainer *t)
{
	float *x = calloc((size_t)TEST_BATCH * PIXELS, sizeof *x);
	struct dataset test;
	int correct = 0;
	double accuracy;

	if (!x || dataset_open(&test, t->opt.data, "t10k") != 0 || test.pixels != PIXELS)
		die("the test images cannot be read");
	for (size_t at = 0; at < test.count; at += TEST_BATCH) {
		const size_t left = test.count - at;
		const int n = left < TEST_BATCH ? (int)left : TEST_BATCH;

		for (int i = 0; i < n; i++)
			dataset_image(&test, at + (size_t)i, x + (size_t)i * PIXELS);
		correct += mlp_correct(&t->net, t->state.weights, x, test.labels + at, n);
	}
	accuracy = (double)correct / (double)test.count;
	dataset_close(&test);
	free(x);
	return accuracy;
}

/* FNV-1a, 64 bits: equal weights have equal hashes, one different bit gives another hash. */
static uint64_t hash_weights(const struct trainer *t)
{
	const unsigned char *bytes = (const unsigned char *)t->state.weights;
	const size_t size = mlp_size(&t->net) * sizeof(float);
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	return hash;
}

static void open_training_set(struct trainer *t)
{
	if (dataset_open(&t->images, t->opt.data, "train") != 0)
		die("the training images cannot be read");
	if (t->images.pixels != PIXELS)
		die("the images have %zu pixels instead of %d", t->images.pixels, PIXELS);
	for (size_t i = 0; i < t->images.count; i++)
		if (t->images.labels[i] >= CLASSES)
			die("image %zu has the label %d", i, t->images.labels[i]);
}

static void describe_state(struct state *s, size_t weights)
{
	s->tensors[0] = (pcclTensorInfo_t){
		.name = "weights", .data = s->weights, .count = weights, .datatype = pcclFloat};
	s->tensors[1] = (pcclTensorInfo_t){
		.name = "velocity", .data = s->velocity, .count = weights, .datatype = pcclFloat};
	s->tensors[2] = (pcclTensorInfo_t){
		.name = "step", .data = &s->step, .count = 1, .datatype = pcclUint64};
	s->shared = (pcclSharedState_t){.count = TENSORS, .infos = s->tensors};
}

static void allocate(struct trainer *t)
{
	const int batch = t->opt.batch > TEST_BATCH ? (int)t->opt.batch : TEST_BATCH;
	struct state *s = &t->state;
	size_t weights;

	t->x = calloc((size_t)t->opt.batch * PIXELS, sizeof *t->x);
	t->y = calloc(t->opt.batch, sizeof *t->y);
	if (!t->x || !t->y || mlp_open(&t->net, PIXELS, HIDDEN, CLASSES, batch) != 0)
		die("out of memory");
	weights = mlp_size(&t->net);
	t->gradient = shared_floats(weights);
	s->weights = shared_floats(weights);
	s->velocity = shared_floats(weights);
	mlp_init(&t->net, t->opt.seed, s->weights);
	describe_state(s, weights);
}

static void release(struct trainer *t)
{
	must(pcclMemFree(t->state.weights), "freeing");
	must(pcclMemFree(t->state.velocity), "freeing");
	must(pcclMemFree(t->gradient), "freeing");
	mlp_close(&t->net);
	dataset_close(&t->images);
	free(t->x);
	free(t->y);
	if (t->report != stdout)
		fclose(t->report);
}

/* The BLAS library's own threads would only slow down the other trainers. */
extern void openblas_set_num_threads(int n) __attribute__((weak));

int main(int argc, char **argv)
{
	struct trainer t = {0};

	options_parse(&t.opt, argc, argv);
	if (openblas_set_num_threads)
		openblas_set_num_threads(1);
	t.report = t.opt.report ? fopen(t.opt.report, "w") : stdout;
	if (!t.report)
		die("%s cannot be written", t.opt.report);
	open_training_set(&t);

	must(pcclInit(), "init");
	allocate(&t);
	must(pcclCreateCommunicator(&t.opt.params, &t.comm), "creating a communicator");
	if (t.opt.error_feedback)
		must(pcclSetErrorFeedback(t.comm, TAG_GRADIENT, true), "setting error feedback");
	must(pcclConnect(t.comm), "connecting");
	gather(&t, t.opt.wait_for);
	train(&t);
	must(pcclDestroyCommunicator(t.comm), "leaving");

	fprintf(t.report, "result id=%u accuracy=%.4f hash=%016llx retries=%u world=%u\n", t.opt.id,
		test_accuracy(&t), (unsigned long long)hash_weights(&t), t.retries, t.world_size);
	release(&t);
	return 0;
}
