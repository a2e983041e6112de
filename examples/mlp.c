/* SPDX-License-Identifier: MIT */
#include "mlp.h"

#include <cblas.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* The offsets of the four parts of a parameter array. */
struct parts {
	size_t hidden_w, hidden_b, out_w, out_b, end;
};

static struct parts parts_of(const struct mlp *net)
{
	const size_t in = (size_t)net->inputs, hid = (size_t)net->hidden,
		     out = (size_t)net->outputs;
	struct parts p;

	p.hidden_w = 0;
	p.hidden_b = p.hidden_w + hid * in;
	p.out_w = p.hidden_b + hid;
	p.out_b = p.out_w + out * hid;
	p.end = p.out_b + out;
	return p;
}

int mlp_open(struct mlp *net, int inputs, int hidden, int outputs, int batch)
{
	*net = (struct mlp){.inputs = inputs, .hidden = hidden, .outputs = outputs, .batch = batch};
	net->hidden_out = calloc((size_t)batch * (size_t)hidden, sizeof(float));
	net->hidden_err = calloc((size_t)batch * (size_t)hidden, sizeof(float));
	net->out = calloc((size_t)batch * (size_t)outputs, sizeof(float));
	if (net->hidden_out && net->hidden_err && net->out)
		return 0;
	mlp_close(net);
	return -1;
}

void mlp_close(struct mlp *net)
{
	free(net->hidden_out);
	free(net->hidden_err);
	free(net->out);
	*net = (struct mlp){0};
}

size_t mlp_size(const struct mlp *net)
{
	return parts_of(net).end;
}

uint64_t mlp_random(uint64_t seed, uint64_t position)
{
	uint64_t z = seed + (position + 1) * 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* n values, uniform within +-limit */
static void fill_uniform(float *dst, size_t n, float limit, uint64_t seed)
{
	for (size_t i = 0; i < n; i++) {
		const float unit = (float)(mlp_random(seed, i) >> 40) / (float)(1 << 24);

		dst[i] = (2.0f * unit - 1.0f) * limit;
	}
}

void mlp_init(const struct mlp *net, uint64_t seed, float *params)
{
	const struct parts p = parts_of(net);

	for (size_t i = 0; i < p.end; i++)
		params[i] = 0.0f;
	fill_uniform(params + p.hidden_w, p.hidden_b - p.hidden_w, sqrtf(6.0f / (float)net->inputs),
		mlp_random(seed, 0));
	fill_uniform(params + p.out_w, p.out_b - p.out_w, sqrtf(6.0f / (float)net->hidden),
		mlp_random(seed, 1));
}

/* y = x * w^T + b, n rows */
static void layer(
	const float *x, int inputs, const float *w, const float *b, float *y, int outputs, int n)
{
	for (int r = 0; r < n; r++)
		for (int c = 0; c < outputs; c++)
			y[r * outputs + c] = b[c];
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, outputs, inputs, 1.0f, x, inputs, w,
		inputs, 1.0f, y, outputs);
}

/* Gradients of a layer's weights and biases from the errors at its output. */
static void layer_gradient(
	const float *x, int inputs, const float *err, int outputs, int n, float *w, float *b)
{
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, outputs, inputs, n, 1.0f, err, outputs,
		x, inputs, 0.0f, w, inputs);
	for (int c = 0; c < outputs; c++)
		b[c] = 0.0f;
	for (int r = 0; r < n; r++)
		for (int c = 0; c < outputs; c++)
			b[c] += err[r * outputs + c];
}

static void forward(struct mlp *net, const float *params, const float *x, int n)
{
	const struct parts p = parts_of(net);

	layer(x, net->inputs, params + p.hidden_w, params + p.hidden_b, net->hidden_out,
		net->hidden, n);
	for (int i = 0; i < n * net->hidden; i++)
		if (net->hidden_out[i] < 0.0f)
			net->hidden_out[i] = 0.0f;
	layer(net->hidden_out, net->hidden, params + p.out_w, params + p.out_b, net->out,
		net->outputs, n);
}

/*
 * Turns one row of outputs into the error that is propagated back, scaled, and returns the row's
 * cross-entropy.
 */
static float softmax_error(float *row, int outputs, int label, float scale)
{
	float top = row[0], sum = 0.0f, loss;

	for (int c = 1; c < outputs; c++)
		if (row[c] > top)
			top = row[c];
	for (int c = 0; c < outputs; c++)
		sum += expf(row[c] - top);
	/* cppcheck-suppress invalidFunctionArg ; the sum has a term of 1 */
	loss = logf(sum) - (row[label] - top);
	for (int c = 0; c < outputs; c++)
		row[c] = (expf(row[c] - top) / sum - (c == label ? 1.0f : 0.0f)) * scale;
	return loss;
}

float mlp_gradient(struct mlp *net, const float *params, const float *x, const uint8_t *labels,
	int n, float *gradient)
{
	const struct parts p = parts_of(net);
	float loss = 0.0f;

	forward(net, params, x, n);
	for (int r = 0; r < n; r++)
		loss += softmax_error(net->out + (ptrdiff_t)r * net->outputs, net->outputs,
			labels[r], 1.0f / (float)n);
	layer_gradient(net->hidden_out, net->hidden, net->out, net->outputs, n, gradient + p.out_w,
		gradient + p.out_b);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, net->hidden, net->outputs, 1.0f,
		net->out, net->outputs, params + p.out_w, net->hidden, 0.0f, net->hidden_err,
		net->hidden);
	for (int i = 0; i < n * net->hidden; i++)
		if (net->hidden_out[i] <= 0.0f)
			net->hidden_err[i] = 0.0f;
	layer_gradient(x, net->inputs, net->hidden_err, net->hidden, n, gradient + p.hidden_w,
		gradient + p.hidden_b);
	return loss / (float)n;
}

int mlp_correct(struct mlp *net, const float *params, const float *x, const uint8_t *labels, int n)
{
	int correct = 0;

	forward(net, params, x, n);
	for (int r = 0; r < n; r++) {
		const float *row = net->out + (ptrdiff_t)r * net->outputs;
		int best = 0;

		for (int c = 1; c < net->outputs; c++)
			if (row[c] > row[best])
				best = c;
		correct += best == labels[r];
	}
	return correct;
}
