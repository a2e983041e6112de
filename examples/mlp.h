/* SPDX-License-Identifier: MIT
 *
 * A small neural network: inputs, one hidden layer with ReLU, outputs with softmax. All parameters
 * lie in one flat array of floats that the caller owns, and so does the gradient, in the same
 * order: hidden weights, hidden biases, output weights, output biases. One thread.
 */
#ifndef EXAMPLES_MLP_H
#define EXAMPLES_MLP_H

#include <stddef.h>
#include <stdint.h>

struct mlp {
	int inputs, hidden, outputs;
	int batch;         /* the most samples of one call */
	float *hidden_out; /* scratch: batch x hidden */
	float *hidden_err; /* scratch: batch x hidden */
	float *out;        /* scratch: batch x outputs */
};

/* Returns 0, or -1 if memory is exhausted. */
int mlp_open(struct mlp *net, int inputs, int hidden, int outputs, int batch);
void mlp_close(struct mlp *net);

/* Number of parameters. */
size_t mlp_size(const struct mlp *net);
/* Random parameters: the same bits for the same seed, on every machine. */
void mlp_init(const struct mlp *net, uint64_t seed, float *params);
/* Computes the gradient of the mean cross-entropy over n samples, at most net->batch of them. x: n
 * rows of inputs; labels: n numbers below `outputs`. Returns the loss. */
float mlp_gradient(struct mlp *net, const float *params, const float *x, const uint8_t *labels,
	int n, float *gradient);
/* Returns how many of n samples are classified correctly. */
int mlp_correct(struct mlp *net, const float *params, const float *x, const uint8_t *labels, int n);

/* Returns a random number for a position in the sequence of a seed. The function has no state and
 * gives the same number on every machine. */
uint64_t mlp_random(uint64_t seed, uint64_t position);

#endif
